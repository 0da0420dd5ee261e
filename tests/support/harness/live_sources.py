"""Run a live source with a queue of its own, without a recording."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, NamedTuple

from logreel.ops.record.source import BUFFER_BYTES, DeclaredChannel, Feed, LiveQueue, LiveSource, Lost

PATIENCE = 60


class Received(NamedTuple):
    """A message that a source passed on; *key*: topic, and number among the channels of the source."""

    topic: str
    channel: int
    time: int
    data: Any


def wait_for(what: Callable[[], object]) -> None:
    """Wait until *what* returns something true."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


class RunningSource:
    """A source in a thread, as a context manager that stops it.

    error  the exception that ended it, if any
    """

    def __init__(
        self, source: LiveSource, wants: Callable[[str], bool] = lambda topic: True, most: int = BUFFER_BYTES
    ) -> None:
        self.feed = Feed(source.name, LiveQueue(most), wants)
        self.error: BaseException | None = None
        self._messages: list[Received] = []
        self._source = source
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._source.run(self.feed)
        except BaseException as error:
            self.error = error

    def __enter__(self) -> RunningSource:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        self.feed.queue.stop()
        self.wait()

    def wait(self) -> None:
        """Wait until the source ends."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    @property
    def messages(self) -> list[Received]:
        """All messages so far."""
        while entries := self.feed.queue.take(0):
            for entry in entries:
                if not isinstance(entry, DeclaredChannel | Lost):
                    channel, stamp, data = entry
                    number = next(n for n, one in enumerate(self.feed.channels) if one is channel)
                    self._messages.append(Received(channel.topic, number, stamp, data))
        return self._messages

    def until(self, count: int) -> list[Received]:
        """Return all messages as soon as there are *count*."""
        wait_for(lambda: len(self.messages) >= count or not self._thread.is_alive())
        return self.messages
