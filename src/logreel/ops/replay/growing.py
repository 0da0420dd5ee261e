"""Replay of a log while it is written."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from threading import Event
from typing import Any

from logreel.errors import UsageError
from logreel.log.growing_log import POLL
from logreel.log.log import Log
from logreel.log.times import Time
from logreel.ops.replay.sink import Sink


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
    """What sinks that follow see of the replay: its log and channels so far."""

    def __init__(self, log: Log, choose: Callable[[Log], list[Any]], rate: float) -> None:
        self.logs, self.rate, self.backwards, self.paused = [log], rate, False, False
        self.channels = choose(log)


def play_growing(
    log: Log,
    sink: Sink,
    *,
    choose: Callable[[Log], list[Any]],
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

    Raises UsageError for a negative rate, and for a sink that must know all messages before.
    """
    if rate < 0:
        raise UsageError("a log that is still written is not played backwards")
    if not sink.follows:
        raise UsageError(
            "this sink needs the whole log: a log that is still written can be played to stdout or null"
        )
    stop = stop or Event()
    waiting = _Waiting(stop, sink)
    sink.open(_Controls(log, choose, rate))  # type: ignore[arg-type]
    played, restarts = 0, log.replacements
    begin = first = 0
    waiting.waited = True
    try:
        for message in itertools.islice(log.follow(choose, start, end, poll=poll, stop=waiting), count):
            now = time.perf_counter_ns()
            if waiting.waited or restarts != log.replacements:
                begin, first, restarts, waiting.waited = now, message.time, log.replacements, False
            due = begin + int((message.time - first) / rate) if rate else now
            if due > now:
                sink.flush()
                if stop.wait((due - now) / 1e9):
                    break
            sink.message(message)
            played += 1
    finally:
        sink.close()
    return played
