"""The channels of a log that are sensors, by lenses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import Severity
from logreel.io.arrays import I64
from logreel.lenses import Lens, Text, Transform, lenses
from logreel.log.log import Channel, Log

#: A channel is regular from this number of messages on, if its 10th and 80th percentile of the periods are within NEAR
#: and FAR medians: faults of a fifth of the time do not hide the rate.
MESSAGES, NEAR, FAR = 20, 0.5, 1.5


def sensors(log: Log) -> Iterator[tuple[Channel, list[Lens]]]:
    """Yield the channels with messages whose meaning a lens knows, except text and transforms."""
    for ch in log.channels.values():
        if len(ch) and not ch.reserved:
            found: list[Lens] = [lens for lens in lenses(ch) if not isinstance(lens, (Text, Transform))]
            if found:
                yield ch, found


def severity_of(ch: Channel, severity: Severity) -> Severity:
    """Return *severity* for a sensor, ``note`` for a channel that may stop and begin on purpose, such as commands."""
    is_sensor = any(not isinstance(lens, (Text, Transform)) for lens in lenses(ch))
    return severity if is_sensor else "note"


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
        if median > 0 and low >= NEAR * median and high <= FAR * median:
            yield ch, times, round(median)
