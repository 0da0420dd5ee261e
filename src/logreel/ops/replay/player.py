"""Player of logs, also of one that is still written."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Condition, Event, Thread
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from logreel.errors import UsageError
from logreel.log.growing_log import POLL
from logreel.log.log import Channel, Log, Message
from logreel.log.scan import is_marked_latched
from logreel.log.source_files import decrypted_notes
from logreel.log.times import SECOND, Length, Time, time_ns
from logreel.log.topic_match import fitting, listed
from logreel.ops.replay.sink import Calls, Sink, Tally
from logreel.ops.replay.timeline import NewTopics, PlayedOptions, Playing, Timeline, checked_rate
from logreel.ops.replay.transport import TOPIC as CLOCK
from logreel.ops.replay.transport import PlayTurn, Requests, Timer, Transport, Turns, clock_channel
from logreel.ops.rewrite.parts import is_latched_by_name
from logreel.ops.selection import Selection, check_keywords, keywords
from logreel.registry.open import open_many

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


class Player:
    """Plays one or several logs in real time or at another rate.

    logs        an open Log, a path, or several of them
    selection   what is played; its members topics, exclude, start, end, count and latched can be given as keyword
                arguments instead. topics None: all except reserved ones; count is by time, plus those in force at the
                start
    playing     how it is played; its members can be given as keyword arguments instead
    on_message  function called with each Message
    sink        Sink that receives the messages
    timer       clock in place of the machine's, for tests
    definitions  as for ``logreel.open``, for logs that are not open yet

    Iteration yields messages when they are due; ``run`` plays to *on_message* or *sink*, ``start`` does so in a thread.
    All other methods may be called at any time from any thread. A Player plays once. It closes the logs that it
    opened. Raises UsageError, TopicError, and as ``logreel.open`` does.
    """

    #: Whether the log is still written; sinks get those by another way.
    grows = False

    @keywords(PlayedOptions, Selection, Playing)
    def __init__(
        self,
        logs: Openable | Log | Sequence[Openable | Log],
        *,
        selection: Selection | None = None,
        playing: Playing | None = None,
        on_message: Callable[[Message], object] | None = None,
        sink: Sink | None = None,
        timer: Timer | None = None,
        definitions: Definitions = (),
        **options: Unpack[PlayedOptions],
    ) -> None:
        check_keywords(Player.__init__, options)
        if on_message is not None and sink is not None:
            raise UsageError("play to a function or to a sink, not to both")
        played, playing = Selection.of(selection, options), Playing.of(playing, options)
        played.refuse("play", "where", "segment", "keep_latched", "around")
        self._stack = contextlib.ExitStack()
        several: Sequence[Openable | Log] = logs if isinstance(logs, (list, tuple)) else [logs]  # type: ignore[list-item]
        names = dict(playing.rename or {})
        clock_topic = CLOCK if playing.clock is None else names.pop(CLOCK, CLOCK)
        with contextlib.ExitStack() as stack:
            self.logs = open_many(several, stack, definitions)
            if sink is not None and sink.sends:
                for log in self.logs:
                    decrypted_notes(log)
            self._timeline = Timeline(self.logs, played, dataclasses.replace(playing, rename=names))
            #: Channels of all logs that are played; ``/clock`` is the last one.
            self.channels: list[Channel] = list(self._timeline.channels)
            if playing.clock is not None:
                self.channels.append(clock_channel(self.channels, self._timeline.epoch, clock_topic))
            self._stack = stack.pop_all()
        self.sink = sink if sink is not None else Sink() if on_message is None else Calls(on_message)
        self.tally = Tally(self.channels)
        self._changed = Condition()
        stay = self.sink.waits if playing.stay is None else playing.stay
        self._requests = Requests(float(playing.rate), playing.paused, playing.loop, stay)
        delay = playing.delay_ns
        self._delay = int(self.sink.delay * SECOND) if delay is None else delay
        self._transport = Transport(
            self._timeline,
            self._requests,
            self._changed,
            self.sink,
            timer or Timer(),
            playing.silence_ns,
            None if playing.clock is None else (self.channels[-1], playing.clock),
            self._timeline.numbers(playing.pause_topics),
        )
        self._thread: Thread | None = None
        self._error: BaseException | None = None
        self._begun = False
        self.finished = False

    # -------------------------------------------------------------------------------------------------- state

    @property
    def start_time(self) -> int:
        """First time of the replay, ns of the clock of the first log."""
        return self._timeline.clamp(-(1 << 63))

    @property
    def end_time(self) -> int:
        """Last time of the replay, ns."""
        return self._timeline.clamp(1 << 63)

    @property
    def position(self) -> int:
        """Current time of the replay, ns."""
        with self._changed:
            return self._transport.position()

    @property
    def utc_offset(self) -> int | None:
        """ns to add to a time to get Unix time; None if the first log does not say."""
        return 0 if self._timeline.epoch == "unix" else self._timeline.utc_offset

    @property
    def backwards(self) -> bool:
        """Whether the replay runs, or ran last, backwards."""
        return self._transport.backwards

    def shift(self, ch: Channel) -> int:
        """Return the ns added to the times of a channel to get replay times."""
        return self._timeline.shift(ch)

    def is_latched(self, ch: Channel) -> bool:
        """Return whether one of ``channels`` is latched: its last message stays valid until the next one."""
        return self._timeline.is_latched(ch)

    def in_force(self, ch: Channel) -> list[Message]:
        """Return the messages of one of ``channels`` that are in force at the position, with their original times.

        These are messages that receivers need which come later: the last one of each publisher of a latched channel, of
        transforms the last one of each frame. Empty for channels that are not latched.
        """
        return [
            message for run in self._timeline.in_force(self.position + 1, ch) for message in run.messages()
        ]

    @property
    def limit(self) -> int | None:
        """Time (ns) after which forward replay waits; None: no limit. Receivers set it to control the rate."""
        return self._requests.limit

    @limit.setter
    def limit(self, limit: int | None) -> None:
        with self._changed:
            requests = self._requests
            requests.limit = limit
            if requests.is_at_limit:
                requests.asked = True
                self._changed.notify_all()

    @property
    def held(self) -> bool:
        """Whether the replay waits at its ``limit``."""
        return self._requests.is_at_limit

    @property
    def pausing(self) -> bool:
        """Whether the Player pauses before messages of *pause_topics*; can be set."""
        return self._requests.pausing

    @pausing.setter
    def pausing(self, pausing: bool) -> None:
        self._requests.pausing = pausing

    @property
    def paused(self) -> bool:
        """Whether the replay waits for ``resume``."""
        return self._requests.paused

    @property
    def ended(self) -> bool:
        """Whether the replay waits at the end for ``seek``, ``resume`` (from the start) or ``stop``."""
        return self._requests.ended

    @property
    def rate(self) -> float:
        """Speed relative to the recording; can be set, also to 0 (as fast as possible) or below 0 (backwards)."""
        return self._requests.rate

    @rate.setter
    def rate(self, rate: float) -> None:
        with self._change_requests() as requests:
            requests.rate = checked_rate(rate)

    # ----------------------------------------------------------------------------------------------- controls

    def pause(self) -> None:
        """Pause between two messages."""
        with self._change_requests() as requests:
            requests.paused = True

    def resume(self) -> None:
        """Continue; at the end, from the start."""
        with self._change_requests() as requests:
            if requests.ended:
                requests.restart = True
            requests.paused = False

    def toggle(self) -> None:
        """Pause or continue."""
        (self.resume if self._requests.paused else self.pause)()

    def seek(self, time: Time) -> None:
        """Continue at another time (ns or text), limited to the interval of the replay."""
        target = time_ns(time, self._timeline)
        with self._change_requests() as requests:
            requests.target, requests.steps = self._timeline.clamp(target), 0

    def skip(self, ns: int) -> None:
        """Move by *ns*; negative: backwards."""
        self.seek(self.position + ns)

    def step(self, count: int = 1) -> None:
        """Pause and play *count* messages at once; negative: the previous ones, backwards."""
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
        """Yield messages when they are due, including those of ``/clock``."""
        with contextlib.closing(self._turns()) as turns:
            for turn in turns:
                yield from [turn] if isinstance(turn, Message) else self._messages_of_turn(turn)

    def run(self) -> Tally:
        """Play to the sink until the end or ``stop``; return the tally."""
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
                    for each in self._messages_of_turn(turn):
                        message(each)
        return self.tally

    def _turns(self) -> Turns:
        """Open the sink, yield all turns, and close the sink."""
        if self._begun:
            raise UsageError("a player plays once: make another one")
        self._begun = True
        self.sink.open(self)
        try:
            self._transport.delay(self._delay)
            yield from self._transport.turns()
        finally:
            self.finished = True
            self._transport.close()
            self.sink.close()

    def _messages_of_turn(self, turn: PlayTurn) -> Iterator[Message]:
        """Yield the messages of *turn* until another request arrives."""
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

    def _mark_played(self, turn: PlayTurn, count: int) -> None:
        self._transport.mark_played(turn, count)
        self.tally.count(turn.run.channel[turn.first : turn.first + count])

    def _late(self, turn: PlayTurn) -> None:
        if turn.pace is not None:
            now = self._transport.timer.now()
            self.tally.many(now - turn.dues(self.start_time, self.end_time))

    def start(self) -> Self:
        """Play to the sink in a thread."""
        self._thread = Thread(target=self._in_thread, name="logreel-play", daemon=True)
        self._thread.start()
        return self

    def _in_thread(self) -> None:
        try:
            self.run()
        except BaseException as error:
            self._error = error

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the thread, at most *timeout* seconds; return whether it ended. Raises its exception."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    def close(self) -> None:
        """Stop, wait for the thread, and close the logs opened by the Player."""
        self.stop()
        if self._thread is not None:
            self._thread.join()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def play(*logs: Openable | Log, **options: Any) -> Player:
    """Return a Player of *logs* with its options; iterate over it, or call ``run``."""
    return Player(logs, **options)


class _Waiting(Event):
    """Event of the caller that notes whether the follower waited for new messages, and flushes the sink before."""

    def __init__(self, stop: Event, sink: Sink) -> None:
        super().__init__()
        self._stop, self._sink = stop, sink
        self.waited = False

    def is_set(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        self.waited = True
        self._sink.flush()
        return self._stop.wait(timeout)


class _Controls:
    """What sinks see of the replay of a growing log, in place of a Player: it can be paused, and has no end."""

    grows, backwards, ended = True, False, False
    #: Time (ns) up to which a sink lets the replay go; None: no limit.
    limit: int | None = None

    def __init__(self, log: Log, rate: float, topics: NewTopics, latched: Sequence[str]) -> None:
        self.logs, self.rate, self.paused = [log], rate, False
        self.channels: list[Channel] = []
        self._log, self._latched = log, dict[Channel, Message]()
        self._topics, self._named = topics, latched
        #: Channels that are latched because the user names them.
        self._by_user: set[Channel] = set()
        self.position = log.start or 0

    @property
    def start_time(self) -> int:
        return self._log.start or 0

    @property
    def end_time(self) -> int:
        return self._log.end or 0

    @property
    def utc_offset(self) -> int | None:
        return 0 if self._log.epoch == "unix" else self._log.utc_offset

    def shift(self, ch: Channel) -> int:
        return 0

    def is_latched(self, ch: Channel) -> bool:
        return is_marked_latched(ch) or is_latched_by_name(ch) or ch in self._by_user

    def in_force(self, ch: Channel) -> list[Message]:
        """Return the last message of a latched channel."""
        return [self._latched[ch]] if ch in self._latched else []

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def added(self, channels: Iterable[Channel]) -> list[Channel]:
        """Return those of *channels* that have messages now and had none before, and remember them."""
        renamed = [(ch, self._topics.of(ch)) for ch in channels]
        new = [(ch, other) for ch, other in renamed if other not in self.channels and len(ch)]
        for pattern in self._named if new else ():
            named = fitting(self._log.channels, pattern)
            self._by_user |= {other for ch, other in new if ch.topic in named}
        self.channels += [other for _, other in new]
        return [other for _, other in new]

    def renamed(self, message: Message) -> Message:
        """Return *message* with its channel of the replay."""
        return message._replace(channel=self._topics.of(message.channel))

    def played(self, message: Message) -> None:
        """Note that *message* is the last one so far."""
        self.position = message.time
        if self.is_latched(message.channel):
            self._latched[message.channel] = message


class GrowingOptions(TypedDict, total=False):
    """Members of a Selection and a Playing that a growing log can be played with, as keyword arguments."""

    start: Time | None
    end: Time | None
    count: int | None
    latched: str | Iterable[str]
    rate: float
    delay: Length | None
    prefix: str
    rename: Mapping[str, str] | None
    stay: bool | None


@keywords(GrowingOptions, Selection, Playing)
def play_growing(
    log: Log,
    sink: Sink,
    *,
    choose: Callable[[Log], list[Channel]],
    poll: float = POLL,
    stop: Event | None = None,
    **options: Unpack[GrowingOptions],
) -> int:
    """Pass the messages of a growing log to *sink* in the order of the file; return their number.

    Messages that are there already come at the intervals of the recording divided by *rate*; a message that was waited
    for comes at once, and the next ones at their intervals after it. Ends as ``Log.follow`` does.

    choose  returns the Channels to be played, of those that the log has so far
    options  members of Selection and Playing. rate 0: without intervals; channels to be renamed may come later; stay:
             wait for *stop* after the last message, as messages in force are still sent to new receivers

    Raises UsageError for a negative rate, and for a sink that does not support this; TopicError, when the log is
    complete, for a channel to be renamed that has not come.
    """
    check_keywords(play_growing, options)
    selection, playing = Selection.of(None, options), Playing.of(None, options)
    rate, delay = playing.rate, playing.delay_ns
    if rate < 0:
        raise UsageError("a log that is still written is not played backwards")
    if not sink.follows:
        raise UsageError("this sink needs the whole log: wait until it is written")
    if sink.sends:
        decrypted_notes(log)
    stop = stop or Event()
    waiting = _Waiting(stop, sink)
    pause = sink.delay if delay is None else delay / SECOND
    topics = NewTopics(playing.prefix, playing.rename or {})
    controls = _Controls(log, rate, topics, listed(selection.latched))
    controls.added(choose(log))
    sink.open(controls)  # type: ignore[arg-type]
    # Receivers connect meanwhile.
    stop.wait(pause)
    played, restarts = 0, log.replacements
    begin = first = 0
    waiting.waited = True

    def chosen(now: Log) -> list[Channel]:
        channels = choose(now)
        if new := controls.added(channels):
            sink.add_channels(new)
        return channels

    try:
        following = log.follow(chosen, selection.start, selection.end, poll=poll, stop=waiting)
        for message in itertools.islice(following, selection.count):
            if controls.limit is not None and not played:
                # The log may have had no start when the sink was opened.
                sink.moved(message.time)
            while (controls.paused or _is_behind(controls, message)) and not stop.is_set():
                waiting.waited = True
                stop.wait(poll)
            if stop.is_set():
                break
            now = time.perf_counter_ns()
            # The clock of a further part may begin again.
            if waiting.waited or restarts != log.replacements or message.time < first:
                begin, first, restarts, waiting.waited = now, message.time, log.replacements, False
            due = begin + int((message.time - first) / rate) if rate else now
            if due > now:
                sink.flush()
                if stop.wait((due - now) / 1e9):
                    break
            message = controls.renamed(message)
            controls.played(message)
            sink.message(message)
            played += 1
        if log.is_complete:
            topics.check(log.match(None))
        sink.flush()
        while playing.stay and not stop.wait(poll):
            pass
    finally:
        sink.close()
    return played


def _is_behind(controls: _Controls, message: Message) -> bool:
    """Return whether what controls the rate of the replay has not come as far as *message*."""
    return controls.limit is not None and message.time > controls.limit
