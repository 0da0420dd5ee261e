"""A player of logs: what people and programs hold in their hands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, Self

from logreel.errors import UsageError
from logreel.log.log import Log, Message
from logreel.log.times import Length, Time, duration_ns, time_ns
from logreel.ops.open_logs import open_many
from logreel.ops.replay.clock_messages import clock_channel
from logreel.ops.replay.pace import Timer
from logreel.ops.replay.sink import Calls, Sink
from logreel.ops.replay.tally import Tally
from logreel.ops.replay.timeline import Timeline
from logreel.ops.replay.transport import Requests, Transport, Turn, Turns

if TYPE_CHECKING:
    from logreel.io.source import Definitions, Readable
    from logreel.log.log import Channel


class Player:
    """Plays one or several logs at the pace of a clock.

    logs      an open Log, a path, or several of them
    rate      how much faster than recorded; 0: as fast as possible; negative: backwards
    start, end  ns, or times as people write them; half-open
    count     only so many messages, the first ones by time, besides what still holds at the start; None: all
    duration  no longer than this, ns or as people write it
    topics, exclude  names or shell patterns; None: all but the reserved ones
    align     how the clocks of further logs are moved, as for ``merge``
    loop      begin again at the end
    paused    wait for ``resume`` or ``step``
    skip_silence  shorten times without any message to so much, ns or as people write it
    clock     so many messages ``/clock`` per second, which tell the time of the replay; None: none
    stay      wait at the end for ``seek`` or ``stop``; None: if the sink says so
    on_message  called with each Message
    sink      a Sink to play to
    timer     another clock than the machine's, for tests
    definitions  as for ``logreel.open``, of logs that are not open yet

    Iterating gives the messages when they are due; ``run`` plays to *on_message* or *sink*, ``start`` does so in a
    thread of its own. All else may be called at any time and from any thread. A Player plays once. Logs that it
    opened itself are closed with it. Raises UsageError, TopicError, and as ``logreel.open`` does.
    """

    def __init__(
        self,
        logs: Readable | Log | Sequence[Readable | Log],
        *,
        rate: float = 1.0,
        start: Time | None = None,
        end: Time | None = None,
        count: int | None = None,
        duration: Length | None = None,
        topics: str | Iterable[str] | None = None,
        exclude: str | Iterable[str] = (),
        align: str | None = None,
        loop: bool = False,
        paused: bool = False,
        skip_silence: Length | None = None,
        clock: float | None = None,
        stay: bool | None = None,
        on_message: Callable[[Message], object] | None = None,
        sink: Sink | None = None,
        timer: Timer | None = None,
        definitions: Definitions = (),
    ) -> None:
        if on_message is not None and sink is not None:
            raise UsageError("play to a function or to a sink, not to both")
        if clock is not None and not 0 < clock <= 1e6:
            raise UsageError(f"a clock ticks more than 0 times a second, not {clock} times")
        silence = None if skip_silence is None else duration_ns(skip_silence)
        if silence is not None and silence < 0:
            raise UsageError(f"a silence is not shortened to {skip_silence}")
        self._stack = contextlib.ExitStack()
        several: Sequence[Readable | Log] = logs if isinstance(logs, (list, tuple)) else [logs]  # type: ignore[list-item]
        with contextlib.ExitStack() as stack:
            self.logs = open_many(several, stack, definitions)
            self._timeline = Timeline(
                self.logs,
                topics=topics,
                exclude=exclude,
                start=start,
                end=end,
                count=count,
                duration=duration,
                align=align,
            )
            #: The channels of which messages may come, log by log; ``/clock`` is the last one.
            self.channels: list[Channel] = list(self._timeline.channels)
            if clock is not None:
                self.channels.append(clock_channel(self.channels, self._timeline.epoch))
            self._stack = stack.pop_all()
        self.sink = sink if sink is not None else Sink() if on_message is None else Calls(on_message)
        self.tally = Tally(self.channels)
        self._changed = Condition()
        self._requests = Requests(_checked(rate), paused, loop, self.sink.waits if stay is None else stay)
        self._transport = Transport(
            self._timeline,
            self._requests,
            self._changed,
            self.sink,
            timer or Timer(),
            silence,
            None if clock is None else (self.channels[-1], clock),
        )
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self._begun = False
        self.finished = False

    # -------------------------------------------------------------------------------------------------- state

    @property
    def start_time(self) -> int:
        """ns of the first moment of play, by the clock of the first log."""
        return self._timeline.clamp(-(1 << 63))

    @property
    def end_time(self) -> int:
        """ns of its last moment."""
        return self._timeline.clamp(1 << 63)

    @property
    def position(self) -> int:
        """ns: the moment of the logs that it is now."""
        with self._changed:
            return self._transport.position()

    @property
    def utc_offset(self) -> int | None:
        """ns to add to a time to get UTC since 1970; None where the first log does not tell."""
        return 0 if self._timeline.epoch == "unix" else self._timeline.utc_offset

    @property
    def backwards(self) -> bool:
        """Whether the last message was reached from behind."""
        return self._transport.backwards

    def shift(self, ch: Channel) -> int:
        """ns that were added to the times of a channel for the clock of the replay."""
        return self._timeline.shift(ch)

    @property
    def paused(self) -> bool:
        """Whether it waits for ``resume``."""
        return self._requests.paused

    @property
    def ended(self) -> bool:
        """Whether it waits behind the last message for ``seek``, ``resume`` (from the start) or ``stop``."""
        return self._requests.ended

    @property
    def rate(self) -> float:
        """How much faster than recorded; may be set, also to 0 (as fast as possible) or below 0 (backwards)."""
        return self._requests.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        with self._change_requests() as requests:
            requests.rate = _checked(rate)

    # ----------------------------------------------------------------------------------------------- controls

    def pause(self) -> None:
        """Stop between two messages."""
        with self._change_requests() as requests:
            requests.paused = True

    def resume(self) -> None:
        """Go on; behind the last message, from the start."""
        with self._change_requests() as requests:
            if requests.ended:
                requests.restart = True
            requests.paused = False

    def toggle(self) -> None:
        """Pause, or go on."""
        (self.resume if self._requests.paused else self.pause)()

    def seek(self, time: Time) -> None:
        """Go on at another moment: ns, or a time as people write it; the nearest one that there is."""
        target = time_ns(time, self._timeline)
        with self._change_requests() as requests:
            requests.target, requests.steps = self._timeline.clamp(target), 0

    def skip(self, ns: int) -> None:
        """Go so much forward, or backward where it is negative."""
        self.seek(self.position + ns)

    def step(self, count: int = 1) -> None:
        """Pause, and hand out so many messages at once; negative: those before, one after another backwards."""
        with self._change_requests() as requests:
            requests.paused = True
            requests.steps += count

    def stop(self) -> None:
        """End the replay."""
        with self._change_requests() as requests:
            requests.stopped = True

    @contextlib.contextmanager
    def _change_requests(self) -> Iterator[Requests]:
        with self._changed:
            yield self._requests
            self._requests.asked = True
            self._changed.notify_all()

    # ------------------------------------------------------------------------------------------------ playing

    def __iter__(self) -> Iterator[Message]:
        """The messages, each when it is due, those of ``/clock`` included."""
        with contextlib.closing(self._turns()) as turns:
            for turn in turns:
                yield from [turn] if isinstance(turn, Message) else self._each(turn)

    def run(self) -> Tally:
        """Play to the sink until the end, or until ``stop``; tells what was played."""
        message, batch = self.sink.message, self.sink.batch
        with contextlib.closing(self._turns()) as turns:
            for turn in turns:
                if isinstance(turn, Message):
                    message(turn)
                elif turn.in_force:
                    self.sink.in_force(turn.run)
                    self._mark_played(turn, len(turn.run))
                elif self.sink.batches:
                    self._late(turn)
                    batch(turn.run[turn.first : turn.last])
                    self._mark_played(turn, turn.last - turn.first)
                else:
                    for one in self._each(turn):
                        message(one)
        return self.tally

    def _turns(self) -> Turns:
        """Whose turn it is, with the sink open."""
        if self._begun:
            raise UsageError("a player plays once: make another one")
        self._begun = True
        self.sink.open(self)
        try:
            yield from self._transport.turns()
        finally:
            self.finished = True
            self._transport.close()
            self.sink.close()

    def _each(self, turn: Turn) -> Iterator[Message]:
        """The messages of *turn* up to the moment when something else is asked for."""
        done, requests, now = 0, self._requests, self._transport.timer.now
        start, end = self.start_time, self.end_time
        try:
            for message in turn.run.messages(turn.first, turn.last):
                if turn.pace is not None and start <= message.time <= end:
                    self.tally.lateness(now() - turn.pace.due(message.time))
                done += 1
                yield message
                if requests.asked and not turn.in_force:
                    break
        finally:
            self._mark_played(turn, done)

    def _mark_played(self, turn: Turn, count: int) -> None:
        self._transport.mark_played(turn, count)
        self.tally.count(turn.run.channel[turn.first : turn.first + count])

    def _late(self, turn: Turn) -> None:
        if turn.pace is not None:
            now = self._transport.timer.now()
            self.tally.many(now - turn.dues(self.start_time, self.end_time))

    def start(self) -> Self:
        """Play to the sink in a thread of its own."""
        self._thread = Thread(target=self._in_thread, name="logreel-play", daemon=True)
        self._thread.start()
        return self

    def _in_thread(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self._error = error

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread has ended, *timeout* seconds at most; True if it has. Raises what it raised."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def close(self) -> None:
        """Stop, wait for the thread, and close the logs that the Player opened."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _checked(rate: float) -> float:
    if not abs(rate) < 1e9:
        raise UsageError(f"a rate is a number below a thousand million, not {rate}")
    return float(rate)


def play(*logs: Readable | Log, **options: Any) -> Player:
    """A Player of *logs*; see there for the options. Iterate over it, or ``run`` it."""
    return Player(logs, **options)
