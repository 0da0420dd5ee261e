"""Gaps and drops of the rate of channels that come at a steady rate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.io.arrays import I64
from logreel.lenses.detection import Detection, Detector, NotAssessed, runs
from logreel.lenses.meaning import since_start
from logreel.log.log import Channel, Log
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
    """Yield a detection for each channel that at times comes much more slowly than usual, without gaps."""
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
        spans = [
            (int(times[max(int(np.searchsorted(times, start)) - WINDOW, 0)]), end)
            for start, end in runs(times[WINDOW:], slow & ~broken)
        ]
        spans = [(begin, end) for begin, end in spans if end - begin >= DROP_NS]
        if spans:
            yield _dropped(ch, times, period, spans)
    if not looked:
        yield NotAssessed("no channel has a steady rate")


def _dropped(ch: Channel, times: I64, period: int, spans: list[tuple[int, int]]) -> Detection:
    """Return one detection for all intervals in which a channel is slow, from the first to the last one."""

    def rate(span: tuple[int, int]) -> float:
        inside = int(np.searchsorted(times, span[1]) - np.searchsorted(times, span[0]))
        return inside * SECOND / (span[1] - span[0])

    worst = min(spans, key=rate)
    times_text = "" if len(spans) == 1 else f" ({len(spans)} times, here most of all)"
    return Detection(
        f"{ch.topic} comes at {rate(worst):.3g} Hz in place of {SECOND / period:.3g} Hz"
        f" from {since_start(worst[0], ch.log)} to {since_start(worst[1], ch.log)}{times_text}",
        severity_of(ch, "warn"),
        min(begin for begin, _ in spans),
        max(end for _, end in spans),
        (ch.topic,),
        {"rate": rate(worst), "usual_rate": SECOND / period, "intervals_ns": [list(span) for span in spans]},
        f"{SHARE:.0%} of the usual rate for {duration_text(DROP_NS)}",
        "logreel",
    )


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
