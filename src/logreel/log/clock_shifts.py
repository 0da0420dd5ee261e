"""Shifts between the clocks of several logs, and their common bounds."""

from __future__ import annotations

from collections.abc import Sequence

from logreel.errors import UsageError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.log.log import Log
from logreel.log.times import duration_ns, utc_shift


class Together:
    """Clock and bounds of several logs together; the clock is that of the first log with its shift.

    shifts  ns to add to the times of each log
    """

    def __init__(self, logs: Sequence[Log], shifts: Sequence[int]) -> None:
        self._moved = list(zip(logs, shifts, strict=True))
        first = logs[0]
        self.name, self.epoch = first.name, first.epoch
        offset = utc_shift(first)
        self.utc_offset = None if offset is None else offset - shifts[0]
        self.start = min((log.start + by for log, by in self._moved if log.start is not None), default=None)
        self.end = max((log.end + by for log, by in self._moved if log.end is not None), default=None)

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return whether any message has start <= time < end (ns), also outside of ``start`` and ``end``."""
        return any(log.holds_between(*earlier((start, end), by)) for log, by in self._moved)


def earlier(span: tuple[int | None, int | None], shift: int) -> tuple[int | None, int | None]:
    """Return *span* minus *shift*, limited to int64."""
    start, end = (None if t is None else min(max(t - shift, TIME_MIN), TIME_MAX) for t in span)
    return start, end


def clock_shifts(logs: Sequence[Log], align: str | None) -> list[int]:
    """Return ns to add to the times of each log: 0 for the first, unless *align* is ``utc`` and epochs differ."""
    first = logs[0]
    if align == "utc" and any(log.epoch != first.epoch for log in logs):
        return [clock_shift(log, None, align) for log in logs]
    return [0, *(clock_shift(log, first, align) for log in logs[1:])]


def clock_shift(log: Log, first: Log | None, align: str | None) -> int:
    """Return ns to add to the times of *log* to get times of the clock of *first*, or UTC if *first* is None."""
    if align is None:
        return 0
    if align == "start" and first is not None:
        return (first.start or 0) - (log.start if log.start is not None else first.start or 0)
    if align == "utc":
        for one in (log, first):
            if one is not None and utc_shift(one) is None:
                raise UsageError("does not tell how its clock relates to UTC", path=one.name)
        return (utc_shift(log) or 0) - ((utc_shift(first) or 0) if first is not None else 0)
    return duration_ns(align)
