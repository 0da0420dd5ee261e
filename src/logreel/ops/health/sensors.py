"""The channels of a log that are sensors, by lenses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import Severity
from logreel.io.arrays import I64
from logreel.lenses import Lens, LocalPose, Text, Transform, lenses
from logreel.lenses.local import body_of
from logreel.log.log import Channel, Log

#: A channel is regular from this number of messages on, if its 10th and 80th percentile of the periods are within NEAR
#: and FAR medians: faults of a fifth of the time do not hide the rate.
MESSAGES, NEAR, FAR = 20, 0.5, 1.5
#: How the frames of poses end that a controller wants, which come and go with the mode.
WANTED = "_setpoint"
#: Messages come in bursts if their median period is this much shorter than their mean one.
BURSTS = 5


def sensors(log: Log) -> Iterator[tuple[Channel, list[Lens]]]:
    """Yield the channels with messages whose meaning a lens knows, except text and transforms."""
    for ch in log.channels.values():
        if len(ch) and not ch.reserved:
            found = _measured(ch)
            if found:
                yield ch, found


def _measured(ch: Channel) -> list[Lens]:
    """Return the lenses of what a channel measures; none of text, transforms, and poses that are only wanted."""
    return [
        lens
        for lens in lenses(ch)
        if not isinstance(lens, (Text, Transform))
        and not (isinstance(lens, LocalPose) and body_of(ch.topic).endswith(WANTED))
    ]


def severity_of(ch: Channel, severity: Severity) -> Severity:
    """Return *severity* for a sensor, ``note`` for a channel that may stop and begin on purpose, such as commands."""
    return severity if _measured(ch) else "note"


def regular(log: Log) -> Iterator[tuple[Channel, I64, int]]:
    """Yield the channels that come at a steady rate, with their times in order and the median period, in ns.

    Times before the start and after the end of the log are left out: its limits ignore absurd ones.
    """
    for ch in log.channels.values():
        if len(ch) < MESSAGES or ch.reserved:
            continue
        times = np.sort(ch.times)
        times = times[(times >= (log.start or 0)) & (times <= (log.end or 0))]
        if len(times) < MESSAGES:
            continue
        low, median, high = np.percentile(np.diff(times), [10, 50, 80]).tolist()
        mean = (times[-1] - times[0]) / (len(times) - 1)
        # A silent sensor or a gap makes the mean period longer, but messages in bursts are not steady at all.
        is_steady = low >= NEAR * median and high <= FAR * median and mean < BURSTS * median
        if median > 0 and is_steady:
            yield ch, times, round(median)
