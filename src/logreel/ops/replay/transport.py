"""What goes on between two messages: waiting, and doing what was asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator
from dataclasses import dataclass
from threading import Condition

import numpy as np

from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import I64
from logreel.log.log import Channel, Message
from logreel.log.times import SECOND
from logreel.ops.replay.clock_messages import clock_message
from logreel.ops.replay.pace import LONGEST, TAIL, Pace, Timer
from logreel.ops.replay.prefetch import RunPrefetcher
from logreel.ops.replay.run import Run
from logreel.ops.replay.sink import Sink
from logreel.ops.replay.timeline import Place, Timeline


@dataclass(slots=True)
class Requests:
    """What was asked for, from any thread.

    asked    whether there is something new
    stay     wait at the end
    restart  from the first moment
    target   ns to go to
    steps    messages to hand out, backwards where negative
    """

    rate: float
    paused: bool
    loop: bool
    stay: bool
    asked: bool = False
    stopped: bool = False
    ended: bool = False
    restart: bool = False
    target: int | None = None
    steps: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """Messages whose turn it is: those of *run* from number *first* on, up to *last*.

    pace      by which they are due; None: at once
    in_force  they belong to the place, not behind it
    """

    run: Run
    first: int
    last: int
    pace: Pace | None = None
    in_force: bool = False

    def dues(self, start: int, end: int) -> I64:
        """int64[n]: when each message from *start* to *end* is due, by a pace."""
        if self.pace is None:
            raise ValueError("these messages have no moment")
        time = self.run.time[self.first : self.last]
        time = time[(time >= start) & (time <= end)] - self.pace.log
        return self.pace.wall + np.rint(time / self.pace.rate).astype(np.int64)


#: Messages of the logs, or one of the clock.
Turns = Generator[Turn | Message, None, None]
#: The same, telling at last whether to go on.
Going = Generator[Turn | Message, None, bool]


class Transport:
    """Moves along a Timeline as Requests say; all but ``position`` is for the thread that plays.

    silence  ns to which times without messages are shortened; None: they are not
    clock    a channel for the time, and how often per second
    """

    def __init__(
        self,
        timeline: Timeline,
        requests: Requests,
        changed: Condition,
        sink: Sink,
        timer: Timer,
        silence: int | None,
        clock: tuple[Channel, float] | None,
    ) -> None:
        self._timeline, self._requests, self._changed = timeline, requests, changed
        self._sink, self.timer, self._silence, self._clock = sink, timer, silence, clock
        #: Where it is: between which messages, and which moment that is.
        self._place = Place(TIME_MIN)
        self._reached = self._edge(requests.rate)
        self._next: int | None = None
        self._paused, self._rate = requests.paused, requests.rate
        self._pace: Pace | None = None
        self._tick = self._reached
        self._source: RunPrefetcher | None = None
        self._run: Run | None = None
        self._at = 0
        self._fresh = False

    def position(self) -> int:
        """The moment that it is, ns."""
        if self._requests.target is not None:
            return self._requests.target
        pace = self._pace
        if pace is None:
            return self._reached
        step = 1 if pace.rate > 0 else -1
        now = max(step * pace.at(self.timer.now()), step * self._reached)
        return step * (now if self._next is None else min(now, step * self._next))

    @property
    def backwards(self) -> bool:
        """Whether it goes, or went last, against the time."""
        return self._place.step < 0

    # ------------------------------------------------------------------------------------------------ turns

    def turns(self) -> Turns:
        """Yield turns when they are due; the caller reports with ``mark_played`` how many messages it took."""
        requests = self._requests
        yield from self._restart()
        while True:
            with self._changed:
                asked, requests.asked = requests.asked, False
                if asked:
                    # What was late until now is not to be made up for.
                    self._reached = self.position()
                step = (requests.steps > 0) - (requests.steps < 0)
                requests.steps -= step
                target, requests.target = requests.target, None
                restart, requests.restart = requests.restart, False
            if requests.stopped:
                return
            if asked:
                self._adapt()
            if target is not None or restart:
                yield from self._restart() if target is None else self._move(target)
            if step:
                yield from self._one(step)
            elif self._paused:
                yield from self._pause()
            elif not (yield from self._go()) and not (yield from self._end()):
                return

    def _adapt(self) -> None:
        """Take over the rate, and whether to stand still."""
        before, state = (self._paused, self._rate), (self._requests.paused, self._requests.rate)
        self._paused, self._rate = state
        self._anchor()
        if state != before:
            self._sink.changed()

    def mark_played(self, turn: Turn, count: int) -> None:
        """Note that the first *count* messages of *turn* were handed out."""
        self._fresh = self._fresh or count > 0
        if turn.in_force or not count:
            return
        last = turn.first + count
        time = turn.run.times[last - 1]
        same = 1 if count == 1 else int((turn.run.time[turn.first : last] == time).sum())
        with self._changed:
            self._at = last
            self._place = self._place.behind(time, same, self._place.step)
            self._reached, self._next = self._timeline.clamp(time), None

    def close(self) -> None:
        """Let go of what was read ahead."""
        if self._source is not None:
            self._source.close()

    # ------------------------------------------------------------------------------------------------ moving

    def _edge(self, rate: float) -> int:
        """The first moment for who goes at *rate*."""
        return self._timeline.clamp(TIME_MAX if rate < 0 else TIME_MIN)

    def _restart(self) -> Turns:
        """Go to the first moment."""
        rate = self._requests.rate
        return self._put(Place(TIME_MAX - 1, 0, -1) if rate < 0 else self._begin(), self._edge(rate))

    def _begin(self) -> Place:
        """The place before the first message."""
        begin = self._timeline.bounds[0]
        return Place(TIME_MIN if begin is None else begin)

    def _move(self, target: int) -> Turns:
        """Go to a moment."""
        return self._put(self._begin() if target == self._edge(1.0) else Place(target), target)

    def _put(self, place: Place, moment: int) -> Turns:
        """Go to *place*, which is at *moment*, and give what is in force there."""
        with self._changed:
            self._place, self._reached, self._next = place, moment, None
            self._requests.ended = False
        self._leave()
        if self._fresh:
            self._sink.moved(moment)
        if TIME_MIN < place.time < TIME_MAX - 1:
            for run in self._timeline.in_force(place.time):
                yield Turn(run, 0, len(run), in_force=True)
        self._anchor()

    def _anchor(self) -> None:
        """Count the time from now on."""
        self._tick = self._reached
        stands = self._paused or not self._rate
        self._pace = None if stands else Pace(self.timer.now(), self._reached, self._rate)

    def _leave(self) -> None:
        self.close()
        self._source = self._run = None

    def _ready(self, step: int) -> bool:
        """Whether there is a message in direction *step*: it is number ``_at`` of ``_run``."""
        if self._place.step != step or self._source is None:
            self._leave()
            self._place = self._timeline.facing(self._place, step)
            self._source = RunPrefetcher(self._timeline.runs(self._place))
            self._at = 0
            self._run = self._source.take(ahead=self._pace is not None)
            # What it took to find it is not to be made up for.
            self._anchor()
        while self._run is not None and self._at >= len(self._run):
            self._run, self._at = self._source.take(ahead=self._pace is not None), 0
        return self._run is not None

    # ----------------------------------------------------------------------------------------------- playing

    def _one(self, step: int) -> Turns:
        """One message at once."""
        self._requests.ended = False
        if self._ready(step) and self._run is not None:
            yield Turn(self._run, self._at, self._at + 1)
            yield from self._clock_messages(self._reached)

    def _pause(self) -> Turns:
        """Wait for requests; the clock goes on telling the same time."""
        self._sink.flush()
        if self._clock is None:
            self._wait(None)
        elif self._wait(self.timer.now() + round(SECOND / self._clock[1])):
            yield from self._clock_messages(self._reached)

    def _go(self) -> Going:
        """What comes next, when its time has come; gives False behind the last message."""
        step = -1 if self._rate < 0 else 1
        if not self._ready(step) or self._run is None:
            return False
        run, first, pace = self._run, self._at, self._pace
        last, edge = len(run), self._edge(step)
        if pace is not None and step * run.times[first] < step * edge:
            # From before the time of the log: they have no moment, and nobody is to catch up for them.
            yield Turn(run, first, self._until(run, first, edge - step, step))
            self._anchor()
            return True
        self._next = time = self._timeline.clamp(run.times[first])
        if pace is not None:
            pace = self._shortened(pace, time, step)
        if self._clock is not None and step * self._tick <= step * time:
            if pace is None or self._wait(pace.due(self._tick)):
                yield from self._clock_messages(self._tick)
                self._tick += step * max(1, round((abs(self._rate) or 1.0) * SECOND / self._clock[1]))
            return True
        if pace is not None:
            if not self._wait(pace.due(time)):
                return True
            last = self._until(run, first, pace.at(self.timer.now()), step)
        if self._clock is not None:
            last = min(last, self._until(run, first, self._tick - step, step))
        yield Turn(run, first, last, pace)
        return True

    def _until(self, run: Run, first: int, moment: int, step: int) -> int:
        """Number of the message behind those up to *moment*; at least one message is."""
        if step * moment >= step * self._edge(-step):
            return len(run)
        return max(first + 1, bisect_right(run.times, step * moment, first, key=lambda time: step * time))

    def _shortened(self, pace: Pace, time: int, step: int) -> Pace:
        """The pace that shortens the silence up to *time*, where it is one."""
        gap = step * (time - self._reached)
        if self._silence is None or gap <= self._silence:
            return pace
        with self._changed:
            self._reached = time - step * self._silence
            self._pace = Pace(pace.wall, pace.log + step * (gap - self._silence), pace.rate)
        self._tick = step * max(step * self._tick, step * self._reached)
        return self._pace

    def _clock_messages(self, time: int) -> Turns:
        if self._clock is not None:
            self._fresh = True
            yield clock_message(self._clock[0], time)

    def _end(self) -> Going:
        """Behind the last message: gives whether to go on."""
        requests = self._requests
        if requests.loop and not self._timeline.empty:
            yield from self._restart()
            return True
        if requests.stay:
            with self._changed:
                requests.paused = requests.ended = requests.asked = True
            return True
        return False

    def _wait(self, due: int | None) -> bool:
        """Wait until *due* (None: for ever); False if something was asked for meanwhile."""
        left = LONGEST if due is None else due - self.timer.now()
        if left > TAIL:
            self._sink.flush()
        with self._changed:
            while left > TAIL and not self._requests.asked:
                self.timer.sleep(self._changed, min(left - TAIL if due else left, LONGEST))
                left = LONGEST if due is None else due - self.timer.now()
            if self._requests.asked:
                return False
        while due is not None and self.timer.now() < due:
            self.timer.nap()
        return True
