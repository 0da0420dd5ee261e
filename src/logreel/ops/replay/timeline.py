"""One or several logs as one sequence of messages, to be followed in both directions from any place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.model.channel import Channel
from logreel.model.chunks import FILE
from logreel.model.index import GONE, I64, TIME_MIN, Selection
from logreel.model.log import Log
from logreel.model.pieces import places
from logreel.ops.merging import clock_shift, kept_topics
from logreel.ops.parts import Part, in_force
from logreel.ops.replay.run import Run
from logreel.ops.streams import Pick, merged
from logreel.ops.times import duration_ns, interval

#: Messages of a run at most, and bytes of the unpacked chunks that they lie in.
RUN, RUN_BYTES = 2048, 8 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """A place between two messages.

    time    ns; everything earlier lies before the place, everything later behind it
    passed  how many messages of that time were passed on the way to it
    step    1: these were passed forwards, they are the first ones; -1: backwards, they are the last ones
    """

    time: int
    passed: int = 0
    step: int = 1

    def behind(self, time: int, count: int, step: int) -> Place:
        """The place behind *count* more messages of *time*, going on in direction *step*."""
        more = self.passed if (time, step) == (self.time, self.step) else 0
        return Place(time, more + count, step)


class Timeline:
    """The messages of *logs* with start <= time < end in one order: by time, then by log, then as they lie in the file.

    Times are those of the clock of the first log; see ``Player`` for the parameters.

    channels    those wanted, log by log in file order
    start, end  ns: of the first and of the last moment of play, robust against single absurd stamps
    """

    def __init__(
        self,
        logs: Sequence[Log],
        *,
        topics: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] = (),
        start: str | int | None = None,
        end: str | int | None = None,
        duration: str | int | None = None,
        align: str | None = None,
    ) -> None:
        if not logs:
            raise UsageError("there is nothing to play")
        self.logs = list(logs)
        first = self.logs[0]
        self.name, self.epoch, self.utc_offset = first.name, first.epoch, first.utc_offset
        self._shifts = [0, *(clock_shift(log, first, align) for log in self.logs[1:])]
        self.start, self.end = self._span()
        self.bounds = self._bounds(start, end, duration)
        self._clip()
        self.channels: list[Channel] = []
        #: For each log int32[c]: place in channels by number in the log.
        self._numbers: list[NDArray[np.int32]] = []
        self._chosen: list[list[int]] = []
        for log, names in zip(self.logs, kept_topics(self.logs, topics, exclude), strict=True):
            some = [ch for ch in log.match(names) if topics is not None or not ch.reserved]
            numbers = np.full(len(log.channels), -1, np.int32)
            numbers[[ch.number for ch in some]] = np.arange(len(some)) + len(self.channels)
            self.channels += some
            self._numbers.append(numbers)
            self._chosen.append([ch.number for ch in some])

    # ------------------------------------------------------------------------------------------------- times

    def _span(self) -> tuple[int | None, int | None]:
        some = [(log, shift) for log, shift in zip(self.logs, self._shifts, strict=True)]
        starts = [log.start + shift for log, shift in some if log.start is not None]
        ends = [log.end + shift for log, shift in some if log.end is not None]
        return min(starts, default=None), max(ends, default=None)

    def _bounds(
        self, start: str | int | None, end: str | int | None, duration: str | int | None
    ) -> tuple[int | None, int | None]:
        first, last = interval(self, start, end)
        if duration is not None:
            length = duration_ns(duration) if isinstance(duration, str) else duration
            begin = first if first is not None else self.start
            if length < 0:
                raise UsageError(f"a duration is not negative, as {duration!r} is")
            if begin is not None:
                last = begin + length if last is None else min(last, begin + length)
        return first, last

    def _clip(self) -> None:
        if self.start is None or self.end is None:
            return
        first, last = self.bounds
        self.start = self.start if first is None else max(self.start, first)
        self.end = max(self.start, self.end if last is None else min(self.end, last))

    def clamp(self, time: int) -> int:
        """The moment nearest to *time* between start and end; 0 where the logs have no time."""
        if self.start is None or self.end is None:
            return 0
        return min(max(time, self.start), self.end)

    def shift(self, ch: Channel) -> int:
        """ns added to the times of a channel; 0 for one of another log."""
        return next((shift for log, shift in zip(self.logs, self._shifts, strict=True) if log is ch.log), 0)

    # ---------------------------------------------------------------------------------------------- messages

    def turned(self, place: Place, step: int) -> Place:
        """The same place, as it is called by who goes in direction *step*."""
        if step == place.step:
            return place
        return Place(place.time, self._count_at(place.time) - place.passed, step)

    def runs(self, place: Place) -> Iterator[Run]:
        """What follows *place* in its direction."""
        skip, step = place.passed, place.step
        span = (place.time, None) if step > 0 else (None, place.time + 1)
        for pick in merged(self._parts(*span), reverse=step < 0):
            run = self._run(self._ordered(pick, step))
            if skip:
                passed = min(skip, len(run))
                run, skip = run[passed:], skip - passed
            yield from self._bounded(run)

    def in_force(self, time: int) -> Iterator[Run]:
        """What was said before *time* and still holds: latched messages, and what later ones cannot be read without."""
        parts = []
        for n, (log, shift) in enumerate(zip(self.logs, self._shifts, strict=True)):
            for ch in log.channels.values():
                rows = in_force(ch, time - shift) if self._numbers[n][ch.number] >= 0 else []
                if rows:
                    parts.append(Pick.of(n, _picked(log, ch.number, np.array(rows, np.int64)), shift))
        if parts:
            yield from self._bounded(self._run(self._ordered(Pick.all(parts), 1)))

    @property
    def empty(self) -> bool:
        """Whether there is no message to play."""
        return next(merged(self._parts(None, None)), None) is None

    def _count_at(self, time: int) -> int:
        return sum(len(pick.origin) for pick in merged(self._parts(time, time + 1)))

    def _parts(self, start: int | None, end: int | None) -> list[Part]:
        """All channels wanted between *start* and *end*, the bounds of play aside."""
        first = max((t for t in (start, self.bounds[0]) if t is not None), default=None)
        last = min((t for t in (end, self.bounds[1]) if t is not None), default=None)
        return [
            Part(
                log,
                {number: slice(0, log.index.count(number)) for number in chosen},
                None if first is None else max(first - shift, TIME_MIN),
                None if last is None else last - shift,
                shift=shift,
            )
            for log, shift, chosen in zip(self.logs, self._shifts, self._chosen, strict=True)
        ]

    def _ordered(self, pick: Pick, step: int) -> Pick:
        if len(self.logs) == 1 and bool((np.diff(pick.found.time) * step >= 0).all()):
            return pick
        return pick.rows(np.argsort(pick.found.time * step, kind="stable"))

    def _run(self, pick: Pick) -> Run:
        found, channel = pick.found, np.empty(len(pick.origin), np.int32)
        for n in np.unique(pick.origin).tolist():
            mine = pick.origin == n
            channel[mine] = self._numbers[n][found.channel[mine]]
        return Run(
            self.channels, self._view, channel, found.time, pick.origin, found.chunk, found.offset, found.size
        )

    def _view(self, origin: int, chunk: int) -> memoryview:
        return self.logs[origin].index.chunks.view(chunk)

    def _bounded(self, run: Run) -> Iterator[Run]:
        """The same messages in runs that are short, and of which each needs few unpacked chunks."""
        for start in range(0, len(run), RUN):
            yield from self._halved(run[start : start + RUN])

    def _halved(self, run: Run) -> Iterator[Run]:
        unpacked = [(origin, chunk) for origin, chunk in run.chunks if chunk > FILE]
        size = sum(self.logs[origin].index.chunks.size_of(chunk) for origin, chunk in unpacked)
        if size <= RUN_BYTES or len(unpacked) <= 2 or len(run) < 2:
            yield run
            return
        middle = len(run) // 2
        yield from self._halved(run[:middle])
        yield from self._halved(run[middle:])


def _picked(log: Log, number: int, rows: I64) -> Selection:
    """Messages of a channel at *rows*, ascending."""
    chunk, offset, size = places(log.index, number, rows)
    there = size != GONE
    times = log.index.times(number)[rows[there]]
    numbers = np.full(len(times), number, np.int32)
    return Selection(times, numbers, chunk[there], offset[there], size[there])
