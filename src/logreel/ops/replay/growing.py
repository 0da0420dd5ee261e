"""Replay of a log while it is written."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Event
from typing import TypedDict, Unpack

from logreel.errors import UsageError
from logreel.log.decrypted import decrypted_notes
from logreel.log.growing_log import POLL
from logreel.log.log import Channel, Log, Message
from logreel.log.scan import is_marked_latched
from logreel.log.times import SECOND, Length, Time
from logreel.log.topic_match import fitting, listed
from logreel.ops.replay.sink import Sink
from logreel.ops.replay.timeline import NewTopics, Playing
from logreel.ops.rewrite.parts import is_latched_by_name
from logreel.ops.selection import Selection, check_keywords, keywords


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
