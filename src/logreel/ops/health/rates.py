"""Gaps and drops of the rate of channels that come at a steady rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses.detection import Detection, Detector, NotAssessed, runs
from logreel.lenses.meaning import since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text
from logreel.ops.health.sensors import regular, severity_of

#: A gap is longer than this number of periods, and than this time.
GAP_PERIODS, GAP_NS = 10, SECOND // 5
#: The rate drops if over this number of messages it is below this share of the usual one, for this time.
WINDOW, SHARE, DROP_NS = 10, 0.6, 2 * SECOND


def gaps(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each channel with gaps, from the first to the last one."""
    looked = False
    for ch, times, period in regular(log):
        looked = True
        steps = np.diff(times)
        rows = np.flatnonzero(steps > max(GAP_PERIODS * period, GAP_NS))
        if len(rows):
            worst = int(rows[np.argmax(steps[rows])])
            longest = int(steps[worst])
            count = "a gap" if len(rows) == 1 else f"{len(rows)} gaps, the longest"
            yield Detection(
                f"{ch.topic} has {count} of {duration_text(longest)} at {since_start(int(times[worst]), log)}",
                severity_of(ch, "warn"),
                int(times[rows[0]]),
                int(times[rows[-1] + 1]),
                (ch.topic,),
                {"gaps": len(rows), "longest_ns": longest, "period_ns": period},
                f"{GAP_PERIODS} periods and {duration_text(GAP_NS)}",
                "logreel",
            )
    if not looked:
        yield NotAssessed("no channel has a steady rate")


def drops(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which a channel comes much more slowly than usual, without gaps."""
    looked = False
    for ch, times, period in regular(log):
        looked = True
        if len(times) < 3 * WINDOW:
            continue
        steps = np.diff(times)
        span = times[WINDOW:] - times[:-WINDOW]
        slow = span > WINDOW * period / SHARE
        # A single gap makes a window long, too; it is told as a gap.
        broken = np.convolve(steps > GAP_PERIODS * period, np.ones(WINDOW, int))[WINDOW - 1 : len(steps)] > 0
        for start, end in runs(times[WINDOW:], slow & ~broken):
            begin = int(times[max(int(np.searchsorted(times, start)) - WINDOW, 0)])
            if end - begin < DROP_NS:
                continue
            inside = int(np.searchsorted(times, end) - np.searchsorted(times, begin))
            rate = inside * SECOND / (end - begin)
            yield Detection(
                f"{ch.topic} comes at {rate:.3g} Hz in place of {SECOND / period:.3g} Hz"
                f" from {since_start(begin, log)} to {since_start(end, log)}",
                severity_of(ch, "warn"),
                begin,
                end,
                (ch.topic,),
                {"rate": rate, "usual_rate": SECOND / period},
                f"{SHARE:.0%} of the usual rate for {duration_text(DROP_NS)}",
                "logreel",
            )
    if not looked:
        yield NotAssessed("no channel has a steady rate")


GAPS = Detector(
    "gaps",
    f"pauses of {GAP_PERIODS} periods and {duration_text(GAP_NS)} in channels with a steady rate",
    gaps,
)
RATE_DROP = Detector(
    "rate-drop",
    f"rates below {SHARE:.0%} of the usual one for {duration_text(DROP_NS)}",
    drops,
)
