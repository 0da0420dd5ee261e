"""Whether the times of a log can be true, and how long it recorded where they cannot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logreel.index.channel_index import TIMES_AT_ONCE
from logreel.io.arrays import I64
from logreel.log.times import utc_text
from logreel.ops.inspect.summary import EARLIEST_NS

if TYPE_CHECKING:
    from logreel.log.log import Log

#: Values of the column ``clock``.
PLAUSIBLE, IMPLAUSIBLE = "ok", "implausible"
HOUR = 3600 * 10**9
#: A pause that no recording has within one log, and a duration that none has, in ns.
LONGEST_PAUSE, LONGEST = 7 * 24 * HOUR, 366 * 24 * HOUR
#: Start of the year 2100 in ns of Unix time, after which no log was recorded.
LATEST_NS = 4_102_444_800 * 10**9
#: Parts into which a span is divided to find pauses.
_PARTS = 1024


@dataclass(frozen=True, slots=True)
class JudgedClock:
    """What the times of a log say of its clock.

    state     ``ok`` or ``implausible``; empty for a log without messages
    reason    why it is implausible; else empty
    duration_ns  from the first to the last message; of a log whose clock was set while it recorded, of the longer side
              by number of messages; None if that is implausible, too
    """

    state: str
    reason: str = ""
    duration_ns: int | None = None


def clock_of(log: Log, shift: int | None) -> JudgedClock:
    """Return what the times of *log* say of its clock; *shift*: ns to UTC, None if unknown.

    All times are looked at only if they lie more than a week apart.
    """
    if log.start is None or log.end is None:
        return JudgedClock("")
    first, last = log.start, log.end
    span, pause = last - first, 0
    while last - first > LONGEST_PAUSE and (side := _without_pause(log, first, last)) is not None:
        first, last, length = side
        pause = max(pause, length)
    duration = last - first if last - first <= LONGEST else None
    if pause:
        reason = (
            f"{span // HOUR} h from the first to the last message, {pause // HOUR} h of them without any: "
        )
        return JudgedClock(IMPLAUSIBLE, f"{reason}the clock was set while the log was recorded", duration)
    if duration is None:
        return JudgedClock(IMPLAUSIBLE, f"{span // HOUR} h from the first to the last message")
    if shift is not None:
        if first + shift < EARLIEST_NS:
            return JudgedClock(
                IMPLAUSIBLE, f"begins at {utc_text(first + shift)}: the clock was not set", duration
            )
        if last + shift > LATEST_NS:
            return JudgedClock(IMPLAUSIBLE, f"ends at {utc_text(last + shift)}", duration)
    return JudgedClock(PLAUSIBLE, "", duration)


def _without_pause(log: Log, first: int, last: int) -> tuple[int, int, int] | None:
    """Return first and last time of the side with more messages of a pause of more than a week, and its length.

    The later side of two equal ones. None if there is no pause of more than half of the span.
    """
    width = (last - first) // _PARTS + 1
    counts = np.zeros(_PARTS, np.int64)
    for times in _times_between(log, first, last):
        counts += np.bincount(_offsets(times, first) // np.uint64(width), minlength=_PARTS)
    filled = np.flatnonzero(counts)
    gaps = np.diff(filled)
    if not len(gaps):
        return None
    widest = int(gaps.argmax())
    edge = first + (int(filled[widest]) + 1) * width
    before, after = int(counts[: filled[widest] + 1].sum()), int(counts[filled[widest + 1] :].sum())
    bounds = [first, last, first, last]
    lows: list[int] = []
    highs: list[int] = []
    for times in _times_between(log, first, last):
        early = _offsets(times, first) < np.uint64(edge - first)
        if early.any():
            highs.append(int(times[early].max()))
        if not early.all():
            lows.append(int(times[~early].min()))
    bounds[1], bounds[2] = max(highs), min(lows)
    pause = bounds[2] - bounds[1]
    if pause <= max(LONGEST_PAUSE, (last - first) // 2):
        return None
    return (bounds[2], bounds[3], pause) if after >= before else (bounds[0], bounds[1], pause)


def _offsets(times: I64, first: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return uint64[n]: ns from *first*, also where an int64 does not hold them."""
    return times.astype(np.uint64) - np.uint64(first % (1 << 64))


def _times_between(log: Log, first: int, last: int) -> Iterator[I64]:
    """Yield int64[k]: times of messages of all channels from *first* to *last*, both included."""
    for ch in log.channels.values():
        for low in range(0, len(ch), TIMES_AT_ONCE):
            rows = np.arange(low, min(low + TIMES_AT_ONCE, len(ch)), dtype=np.int64)
            times = log.index.times_at(ch.number, rows)
            yield times[(times >= first) & (times <= last)]
