"""Replay of a log while it is written."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable
from threading import Event

from logreel.errors import UsageError
from logreel.log.growing_log import POLL
from logreel.log.log import Channel, Log, Message
from logreel.log.times import Time
from logreel.ops.replay.sink import Sink
from logreel.ops.rewrite.latched import is_latched_by_name, is_marked_latched


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

    grows, backwards, ended, limit = True, False, False, None

    def __init__(self, log: Log, rate: float) -> None:
        self.logs, self.rate, self.paused = [log], rate, False
        self.channels: list[Channel] = []
        self._log, self._latched = log, dict[Channel, Message]()
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
        return is_marked_latched(ch) or is_latched_by_name(ch)

    def in_force(self, ch: Channel) -> list[Message]:
        """Return the last message of a latched channel."""
        return [self._latched[ch]] if ch in self._latched else []

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def added(self, channels: Iterable[Channel]) -> list[Channel]:
        """Return those of *channels* that have messages now and had none before, and remember them."""
        new = [ch for ch in channels if ch not in self.channels and len(ch)]
        self.channels += new
        return new

    def played(self, message: Message) -> None:
        """Note that *message* is the last one so far."""
        self.position = message.time
        if self.is_latched(message.channel):
            self._latched[message.channel] = message


def play_growing(
    log: Log,
    sink: Sink,
    *,
    choose: Callable[[Log], list[Channel]],
    rate: float = 1.0,
    start: Time | None = None,
    end: Time | None = None,
    count: int | None = None,
    poll: float = POLL,
    stop: Event | None = None,
) -> int:
    """Pass the messages of a growing log to *sink* in the order of the file; return their number.

    Messages that are there already come at the intervals of the recording divided by *rate*; a message that was waited
    for comes at once, and the next ones at their intervals after it. Ends as ``Log.follow`` does.

    choose  returns the Channels to be played, of those that the log has so far
    rate    0: without intervals
    count   greatest number of messages; None: all

    Raises UsageError for a negative rate, and for a sink that does not support this.
    """
    if rate < 0:
        raise UsageError("a log that is still written is not played backwards")
    if not sink.follows:
        raise UsageError("this sink needs the whole log: wait until it is written")
    stop = stop or Event()
    waiting = _Waiting(stop, sink)
    controls = _Controls(log, rate)
    controls.added(choose(log))
    sink.open(controls)  # type: ignore[arg-type]
    # Receivers connect meanwhile.
    stop.wait(sink.delay)
    played, restarts = 0, log.replacements
    begin = first = 0
    waiting.waited = True

    def chosen(now: Log) -> list[Channel]:
        channels = choose(now)
        if new := controls.added(channels):
            sink.add_channels(new)
        return channels

    try:
        for message in itertools.islice(log.follow(chosen, start, end, poll=poll, stop=waiting), count):
            while controls.paused and not stop.is_set():
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
            controls.played(message)
            sink.message(message)
            played += 1
    finally:
        sink.close()
    return played
