"""The state of a replay between two messages: pause, step, seek, rate and loop, by the clock of the machine.

Also the clock itself, the channel ``/clock`` with the time of the replay, and reading ahead.
"""

from __future__ import annotations

import struct
import time
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition

import numpy as np

from logreel.errors import UsageError
from logreel.index.block_table import TIME_MAX, TIME_MIN, Blocks
from logreel.index.channel_index import ChannelRules
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Chunks, Source
from logreel.log.log import Channel, Message
from logreel.log.scan import ChannelInfo, Scan, Schema
from logreel.log.times import SECOND
from logreel.ops.replay.sink import Sink
from logreel.ops.replay.timeline import PlayPosition, Run, Timeline
from logreel.registry.format import Format
from logreel.registry.open import log_of
from logreel.schemas import ros1msg

#: The last ns before a message is due are waited for in a loop, since sleeping is less precise.
TAIL = 100_000
#: Longest sleep, ns.
LONGEST = 60 * 10**9
#: Longest wait in seconds, after which Python handles signals that arrived in another thread.
LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Linear relation between replay time and machine time; rounding errors do not add up.

    wall  ns of the machine's clock when the replay time is *log* ns
    rate  replay time per machine time; negative: backwards
    """

    wall: int
    log: int
    rate: float

    def due(self, log: int) -> int:
        """Return the machine time of the replay time *log*, ns."""
        return self.wall + round((log - self.log) / self.rate)

    def at(self, wall: int) -> int:
        """Return the replay time at machine time *wall*, ns."""
        return self.log + round((wall - self.wall) * self.rate)


class Timer:
    """Clock of the machine; tests replace it."""

    def now(self) -> int:
        """Return the time of a monotonic clock, ns."""
        return time.monotonic_ns()

    def sleep(self, changed: Condition, ns: int) -> None:
        """Sleep at most *ns*, or until *changed*, whose lock is held, is notified."""
        changed.wait(min(ns / 1e9, LOOK))

    def nap(self) -> None:
        """Let other threads run."""
        time.sleep(0)


class RunPrefetcher:
    """Takes runs from an iterator; on request, reads and decompresses the next one in a thread."""

    def __init__(self, runs: Iterator[Run]) -> None:
        self._runs = runs
        self._pool: ThreadPoolExecutor | None = None
        self._coming: Future[Run | None] | None = None

    def take(self, ahead: bool) -> Run | None:
        """Return the next run, or None after the last one.

        ahead  True: start reading the run after it
        """
        run = self._next() if self._coming is None else self._coming.result()
        self._coming = None
        if ahead and run is not None:
            self._pool = self._pool or ThreadPoolExecutor(1, "logreel-ahead")
            self._coming = self._pool.submit(self._loaded)
        return run

    def _next(self) -> Run | None:
        return next(self._runs, None)

    def _loaded(self) -> Run | None:
        run = self._next()
        if run is not None:
            run.load()
        return run

    def close(self) -> None:
        """Stop the thread and drop what it reads."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


TOPIC, TYPE, DEFINITION = "/clock", "rosgraph_msgs/Clock", "time clock\n"
_SCHEMA = Schema(TYPE, "ros1msg", DEFINITION)


def clock_channel(channels: Sequence[Channel], epoch: str, topic: str = TOPIC) -> Channel:
    """Return a channel ``/clock`` of a separate log; raises UsageError if *channels* have its *topic* already."""
    if any(ch.topic == topic for ch in channels):
        raise UsageError(f"the log has a channel {topic} already: leave it out with exclude, -x {topic}")
    info = ChannelInfo(topic, _SCHEMA, lambda: ros1msg.layout(ros1msg.define(TYPE, DEFINITION)))
    source = Source(b"", TOPIC)
    index = MessageIndex(
        Chunks(source), Blocks.empty(1), [ChannelRules(lambda index: np.zeros(0, np.int64), 8)]
    )
    scan = Scan("", epoch, None, None, [info], index, [])
    fmt = Format("clock", "clock", (), lambda source: False, lambda source, saved: None)
    return log_of(source, fmt, scan)[topic]


def clock_message(channel: Channel, time: int) -> Message:
    """Return a message of ``/clock`` with *time* (ns), limited to the range of ROS times, 0 to 2^32 s."""
    second, rest = divmod(min(max(time, 0), (1 << 32) * SECOND - 1), SECOND)
    return Message(time, channel, memoryview(struct.pack("<II", second, rest)))


@dataclass(slots=True)
class Requests:
    """Requests from any thread.

    asked    True: there is a new request
    stay     wait at the end
    restart  start again from the first message
    target   time to move to, ns
    steps    number of messages to play; negative: backwards
    limit    time after which forward replay waits, ns; None: no limit
    is_at_limit  True: it waits there
    pausing  pause before messages of the channels that were chosen for it
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
    limit: int | None = None
    is_at_limit: bool = False
    pausing: bool = True


@dataclass(frozen=True, slots=True)
class PlayTurn:
    """Messages to play now: those of *run* from index *first* to *last*, exclusive.

    pace      relation of their times to machine time; None: due at once
    in_force  True: messages in force at the position, which do not move it
    """

    run: Run
    first: int
    last: int
    pace: Pace | None = None
    in_force: bool = False

    def dues(self, start: int, end: int) -> I64:
        """Return int64[n]: machine times at which messages from *start* to *end* are due, ns."""
        if self.pace is None:
            raise ValueError("these messages have no moment")
        time = self.run.time[self.first : self.last]
        time = time[(time >= start) & (time <= end)] - self.pace.log
        return self.pace.wall + np.rint(time / self.pace.rate).astype(np.int64)


#: Messages of the logs, or one of ``/clock``.
Turns = Generator[PlayTurn | Message, None, None]
#: As Turns; returns whether to continue.
Going = Generator[PlayTurn | Message, None, bool]


class _Ahead:
    """Messages that follow a position in one direction.

    prefetch  True: read the run after the current one in a thread

    first  index of the next message in the current run; increased by the number of messages played
    """

    def __init__(self, runs: Iterator[Run], prefetch: bool) -> None:
        self._source = RunPrefetcher(runs)
        self._run = self._source.take(prefetch)
        self.first = 0

    def next(self, prefetch: bool) -> tuple[Run, int] | None:
        """Return the run of the next message and its index there; None after the last message."""
        while self._run is not None and self.first >= len(self._run):
            self._run, self.first = self._source.take(prefetch), 0
        return None if self._run is None else (self._run, self.first)

    def close(self) -> None:
        """Drop what was read in advance."""
        self._source.close()


class Transport:
    """Moves along a Timeline as requested; all methods except ``position`` are for the thread that plays.

    silence  ns to which intervals without messages are shortened; None: not at all
    clock    the channel ``/clock`` and its messages per second; None: none
    breaks   numbers of channels; the replay pauses before each of their messages
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
        breaks: frozenset[int] = frozenset(),
    ) -> None:
        self._timeline, self._requests, self._changed = timeline, requests, changed
        self._sink, self.timer, self._silence, self._clock = sink, timer, silence, clock
        #: Position between two messages, and its time.
        self._place = PlayPosition(TIME_MIN)
        self._reached = self._start_of_replay(requests.rate)
        self._next: int | None = None
        self._paused, self._rate = requests.paused, requests.rate
        self._pace: Pace | None = None
        self._tick = self._reached
        #: Messages from the position on; None until a direction is played.
        self._ahead: _Ahead | None = None
        self._fresh = False
        self._breaks = np.array(sorted(breaks), np.int32)
        #: Run and index of the message before which the replay paused last.
        self._broken: tuple[Run | None, int] = None, 0

    def delay(self, ns: int) -> None:
        """Wait for *ns*, or until the replay is stopped; other requests stay."""
        due = self.timer.now() + ns
        with self._changed:
            while not self._requests.stopped and (left := due - self.timer.now()) > 0:
                self.timer.sleep(self._changed, min(left, LONGEST))

    def position(self) -> int:
        """Return the current replay time, ns."""
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
        """Whether the replay runs, or ran last, backwards."""
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
                    # Do not catch up on earlier delays.
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
                yield from self._play_one(step)
            elif self._paused:
                yield from self._pause()
            elif not (yield from self._play_due()) and not (yield from self._handle_end()):
                return

    def _adapt(self) -> None:
        """Apply a new rate or pause."""
        before, state = (self._paused, self._rate), (self._requests.paused, self._requests.rate)
        self._paused, self._rate = state
        self._anchor()
        if state != before:
            self._sink.changed()

    def mark_played(self, turn: PlayTurn, count: int) -> None:
        """Record that the first *count* messages of *turn* were played."""
        self._fresh = self._fresh or count > 0
        if turn.in_force or not count:
            return
        last = turn.first + count
        time = turn.run.times[last - 1]
        same = 1 if count == 1 else int((turn.run.time[turn.first : last] == time).sum())
        with self._changed:
            if self._ahead is not None:
                self._ahead.first = last
            self._place = self._place.behind(time, same, self._place.step)
            self._reached, self._next = self._timeline.clamp(time), None

    def close(self) -> None:
        """Drop what was read ahead."""
        if self._ahead is not None:
            self._ahead.close()

    # ------------------------------------------------------------------------------------------------ moving

    def _start_of_replay(self, rate: float) -> int:
        """Return the time at which a replay at *rate* starts."""
        return self._timeline.clamp(TIME_MAX if rate < 0 else TIME_MIN)

    def _restart(self) -> Turns:
        """Move to the start."""
        rate = self._requests.rate
        return self._move_to(
            PlayPosition(TIME_MAX - 1, 0, -1) if rate < 0 else self._begin(), self._start_of_replay(rate)
        )

    def _begin(self) -> PlayPosition:
        """Return the position before the first message."""
        begin = self._timeline.bounds[0]
        return PlayPosition(TIME_MIN if begin is None else begin)

    def _move(self, target: int) -> Turns:
        """Move to time *target*."""
        return self._move_to(
            self._begin() if target == self._start_of_replay(1.0) else PlayPosition(target), target
        )

    def _move_to(self, place: PlayPosition, moment: int) -> Turns:
        """Move to *place* at time *moment*, and yield the messages in force there."""
        with self._changed:
            self._place, self._reached, self._next = place, moment, None
            self._requests.ended = False
        self._leave()
        if self._fresh:
            self._sink.moved(moment)
        if TIME_MIN < place.time < TIME_MAX - 1:
            for run in self._timeline.in_force(place.time):
                yield PlayTurn(run, 0, len(run), in_force=True)
        self._anchor()

    def _anchor(self) -> None:
        """Start the pace at the current time and position."""
        self._tick = self._reached
        stands = self._paused or not self._rate
        self._pace = None if stands else Pace(self.timer.now(), self._reached, self._rate)

    def _leave(self) -> None:
        self.close()
        self._ahead = None

    def _next_message(self, step: int) -> tuple[Run, int] | None:
        """Return the run of the next message in direction *step* and its index there; None after the last message."""
        if self._ahead is None or self._place.step != step:
            self._leave()
            self._place = self._timeline.facing(self._place, step)
            self._ahead = _Ahead(self._timeline.runs(self._place), self._pace is not None)
            # Do not catch up on the time of the search.
            self._anchor()
        return self._ahead.next(self._pace is not None)

    # ----------------------------------------------------------------------------------------------- playing

    def _play_one(self, step: int) -> Turns:
        """Play one message at once."""
        self._requests.ended = False
        if (message := self._next_message(step)) is not None:
            run, first = message
            yield PlayTurn(run, first, first + 1)
            yield from self._clock_messages(self._reached)

    def _pause(self) -> Turns:
        """Wait for requests; ``/clock`` repeats the same time."""
        self._sink.flush()
        if self._clock is None:
            self._wait(None)
        elif self._wait(self.timer.now() + round(SECOND / self._clock[1])):
            yield from self._clock_messages(self._reached)

    def _play_due(self) -> Going:
        """Yield the next messages when they are due; return False after the last message."""
        step = -1 if self._rate < 0 else 1
        if (message := self._next_message(step)) is None:
            return False
        (run, first), pace = message, self._pace
        last, edge = len(run), self._start_of_replay(step)
        if pace is not None and step * run.times[first] < step * edge:
            # Messages from before the start are not timed.
            yield PlayTurn(run, first, self._index_after(run, first, edge - step, step))
            self._anchor()
            return True
        self._next = time = self._timeline.clamp(run.times[first])
        if pace is not None:
            pace = self._pace_without_silence(pace, time, step)
        ticks = self._clock is not None and step * self._tick <= step * time
        if self._exceeds_limit(self._tick if ticks else time, step):
            yield from self._hold(pace)
            return True
        if self._clock is not None and ticks:
            if pace is None or self._wait(pace.due(self._tick)):
                yield from self._clock_messages(self._tick)
                self._tick += step * max(1, round((abs(self._rate) or 1.0) * SECOND / self._clock[1]))
            return True
        if pace is not None and not self._wait(pace.due(time)):
            return True
        last = self._index_of_break(run, first)
        if last == first:
            self._break_at(run, first)
            return True
        if pace is not None:
            last = min(last, self._index_after(run, first, pace.at(self.timer.now()), step))
        limit = self._requests.limit
        if limit is not None and step > 0:
            last = min(last, self._index_after(run, first, limit, step))
        if self._clock is not None:
            last = min(last, self._index_after(run, first, self._tick - step, step))
        yield PlayTurn(run, first, last, pace)
        return True

    def _exceeds_limit(self, time: int, step: int) -> bool:
        """Return whether messages of *time* have to wait for another limit."""
        limit = self._requests.limit
        return limit is not None and step > 0 and time > limit

    def _hold(self, pace: Pace | None) -> Turns:
        """Go on to the limit, and wait there for requests; ``/clock`` repeats the same time."""
        limit = self._requests.limit
        if limit is None or (pace is not None and limit > self._reached and not self._wait(pace.due(limit))):
            return
        with self._changed:
            self._reached, self._pace, self._next = (
                max(self._reached, self._timeline.clamp(limit)),
                None,
                None,
            )
            # A new limit may have come meanwhile.
            requests = self._requests
            requests.is_at_limit = requests.limit == limit
            requests.asked = requests.asked or not requests.is_at_limit
        if requests.is_at_limit:
            yield from self._pause()
        requests.is_at_limit = False
        if pace is not None:
            self._pace = Pace(self.timer.now(), self._reached, pace.rate)

    def _index_of_break(self, run: Run, first: int) -> int:
        """Return the index of the next message before which to pause, from *first* on; else the length of *run*."""
        if not len(self._breaks) or not self._requests.pausing:
            return len(run)
        begin = first + (self._broken[0] is run and self._broken[1] == first)
        breaks = np.flatnonzero(np.isin(run.channel[begin:], self._breaks))
        return begin + int(breaks[0]) if len(breaks) else len(run)

    def _break_at(self, run: Run, first: int) -> None:
        """Pause before a message; it is played when the replay continues."""
        self._broken = run, first
        with self._changed:
            self._requests.paused = self._requests.asked = True

    def _index_after(self, run: Run, first: int, moment: int, step: int) -> int:
        """Return the index after the messages up to *moment*, at least one message."""
        if step * moment >= step * self._start_of_replay(-step):
            return len(run)
        return max(first + 1, bisect_right(run.times, step * moment, first, key=lambda time: step * time))

    def _pace_without_silence(self, pace: Pace, time: int, step: int) -> Pace:
        """Return the pace, moved to shorten an interval without messages up to *time*."""
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

    def _handle_end(self) -> Going:
        """Handle the end of the replay; return whether to continue."""
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
        """Wait until *due*, ns (None: forever); return False if a request arrives meanwhile."""
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
