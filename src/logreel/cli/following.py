"""The option -f of verbs that follow growing files: opening, waiting, and a clean end on Ctrl-C."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw
from logreel.cli.signals import LOOPS, StopSignals, current

if TYPE_CHECKING:
    from logreel.cli.inputs import Logs
    from logreel.log.log import Channel, Log
    from logreel.log.times import Time
    from logreel.ops.selection import Selection

#: Seconds between two looks at a file.
POLL = 0.01
#: Seconds after which Ctrl-C ends waiting at the latest.
AT_ONCE = 0.05


class Ending(Event):
    """Event that a signal sets, so that the last line is complete; waiting for it flushes the output.

    Event.set may not be called by a signal handler while the same thread waits: this one needs no lock.
    """

    def __init__(self, signals: StopSignals) -> None:
        super().__init__()
        self._signals, self._is_set = signals, False
        #: Function that writes out what is in the buffer of the output.
        self.flush: Callable[[], object] = sys.stdout.flush
        self._pipe: select.poll | None = None
        try:
            if os.name == "posix":
                self._pipe = select.poll()
                self._pipe.register(sys.stdout.fileno(), 0)
        except (OSError, ValueError):
            self._pipe = None

    def is_set(self) -> bool:
        """Return whether following ends."""
        return self._is_set or self._signals.received != 0

    def set(self) -> None:
        """End following."""
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        """Print what is in the buffer, and wait; raises BrokenPipeError if the output is no longer read."""
        self.flush()
        if not self.is_set():
            if self._pipe is not None and any(state & select.POLLERR for _, state in self._pipe.poll(0)):
                raise BrokenPipeError
            end = time.monotonic() + (POLL if timeout is None else timeout)
            while not self.is_set() and (rest := end - time.monotonic()) > 0:
                time.sleep(min(rest, AT_ONCE))
        return self.is_set()


@contextmanager
def ending() -> Iterator[Ending]:
    """Yield an Ending that a signal sets; what does not see it is interrupted a little later."""
    signals = current()
    with signals.seen_by_loop(LOOPS):
        yield Ending(signals)


@contextmanager
def opened(logs: Logs, event: Ending, **opening: Any) -> Iterator[Log]:
    """Open the growing log, the only one of *logs*; wait until it has begun, which is said on stderr.

    opening  options for opening it, in addition to those of *logs*

    Raises KeyboardInterrupt if *event* ends waiting, UsageError for several files.
    """
    from logreel.errors import UsageError
    from logreel.registry.open_growing import open_growing

    if len(logs.names) != 1:
        raise UsageError(f"-f follows one file, not {len(logs.names)}")
    (file,) = logs.names
    # A pipe that is empty so far needs no word.
    waiting = None if file == "-" else draw.say
    log = open_growing(file, **logs.opening, **opening, poll=POLL, stop=event, waiting=waiting)
    if log is None:
        raise KeyboardInterrupt
    with log:
        yield log


def comes_slowly(names: Sequence[str], *bounds: Time | None, to_file: bool = False) -> bool:
    """Return whether the only log is standard input from another process, which can be shown while it comes.

    bounds   times of -S and -E: one that counts from the end needs all of it
    to_file  whether the verb writes a file while it comes; otherwise -o needs all of it
    """
    from logreel.io.growing_file import arrives_slowly

    if [*names] != ["-"] or any(isinstance(bound, str) and bound.strip()[:1] == "-" for bound in bounds):
        return False
    context = click.get_current_context(silent=True)
    out = None if context is None else context.params.get("out")
    return (to_file or out in (None, "-")) and arrives_slowly(sys.stdin.buffer)


def refuse_output() -> None:
    """Raise UsageError if the verb on the command line got -o: that file would appear only at the end."""
    from logreel.errors import UsageError

    context = click.get_current_context(silent=True)
    if context is not None and context.params.get("out") is not None:
        raise UsageError("-f prints as messages come: redirect the output with > instead of -o")


class Choice:
    """The channels that -t and -x choose of a growing log, in all files that it consists of.

    fields  field paths that -t names, by topic, of the channels so far; None: all fields
    """

    def __init__(self, selection: Selection) -> None:
        self._topics, self._exclude = tuple(selection.topics or ()), tuple(selection.exclude)
        self._unknown = {*self._topics, *self._exclude}
        self.fields: dict[str, list[str] | None] = {}

    def __call__(self, log: Log) -> list[Channel]:
        """Return the channels of the log so far; names that no channel has may come later."""
        from logreel.errors import TopicError
        from logreel.log.topic_fields import fields_by_topic

        kept: dict[str, list[str] | None] = {}
        if not self._topics:
            kept = dict.fromkeys(ch.topic for ch in log.match(None))
        for topic in self._topics:
            with suppress(TopicError):
                kept |= fields_by_topic(log, topic)
                self._unknown.discard(topic)
        for topic in self._exclude:
            with suppress(TopicError):
                without = {ch.topic for ch in log.match(topic)}
                kept = {name: paths for name, paths in kept.items() if name not in without}
                self._unknown.discard(topic)
        self.fields.update(kept)
        return [ch for topic, ch in log.channels.items() if topic in kept]

    def check(self, log: Log) -> None:
        """Raise TopicError for names that no channel has had, if the log is complete."""
        from logreel.cli.inputs import chosen_fields
        from logreel.ops.selection import Selection

        self(log)
        if log.is_complete:
            topics = [topic for topic in self._topics if topic in self._unknown]
            exclude = [topic for topic in self._exclude if topic in self._unknown]
            chosen_fields(log, Selection(topics=topics or None, exclude=exclude))


def check_interval(log: Log, first: str, bounds: tuple[Time | None, Time | None]) -> None:
    """Raise UsageError if -S and -E do not touch a complete log; of several parts, the last one alone says nothing.

    first  name of the first part
    """
    from logreel.log.times import interval

    if log.is_complete and log.name == first:
        interval(log, *bounds)


def finish(log: Log, event: Ending, skipped: list[str] | None = None) -> int:
    """Return the exit code: 130 after Ctrl-C, else as ``draw.finish``; the end of a growing file is not lost."""
    sys.stdout.flush()
    if event.is_set():
        raise current().error()
    lost = [p for p in log.problems if p.lost and (log.is_complete or p.offset + p.size < log.size)]
    return draw.finish(log, skipped or []) if lost or skipped else 0
