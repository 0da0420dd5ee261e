"""Cache of open logs, and of what they contain without open files: channels with facts, counts and times.

Logs are opened at first use, least recently used ones closed, and reopened when their file changes.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import FileChangedError, LogError
from logreel.io.source import Definitions, Source
from logreel.log.decrypted import FOR_BOTH, refusal
from logreel.log.log import Channel, Log
from logreel.log.scan import ALIASES
from logreel.log.times import utc_shift
from logreel.ops.inspect.info import info
from logreel.outputs.serve.catalogue import FileStamp, ServedLog
from logreel.registry.open import open_one_of_several

#: Number of open logs; each may have its index and 64 MiB of unpacked chunks in memory.
OPEN = 8
#: Number of cached summaries for the list.
SUMMARIES = 100_000


_CHANGED = "was changed while it was read: ask again"


class ChangedError(LogError):
    """A file was written to while it was read."""


class CachedLog:
    """An open log for one thread at a time; the thread that uses it holds *lock*."""

    def __init__(self, entry: ServedLog, definitions: Definitions = (), decrypt: bool = False) -> None:
        self.entry, self.lock = entry, Lock()
        self._definitions, self._decrypt = definitions, decrypt
        self._log: Log | None = None

    @contextmanager
    def log(self) -> Iterator[Log]:
        """Yield the log, locked for this thread. Raises what ``logreel.open`` raises, and ChangedError."""
        with self.lock:
            if self._log is None:
                source = Source.open(self.entry.path)
                # Error messages must not reveal the path on this machine.
                source.name = self.entry.name
                self.check()
                # Slices read the log itself: with an index, each of them would read it again.
                self._log = open_one_of_several(
                    source,  # type: ignore[arg-type]
                    definitions=self._definitions,
                    decrypt=self._decrypt,
                    indexed=False,
                )
            # Each answer goes over the network.
            if (refused := refusal(self._log, FOR_BOTH)) is not None:
                raise refused
            try:
                yield self._log
            except FileChangedError:
                raise ChangedError(_CHANGED) from None

    def check(self) -> None:
        """Raise ChangedError if the file was written to; a replaced or removed file stays readable."""
        was = self.entry.stamp
        try:
            stamp = FileStamp.of(os.stat(self.entry.path))
        except OSError:
            stamp = was
        if (stamp.device, stamp.inode) == (was.device, was.inode) and stamp != was:
            raise ChangedError(_CHANGED)
        try:
            if self._log is not None:
                self._log.check_unchanged()
        except FileChangedError:
            raise ChangedError(_CHANGED) from None


class LogsTogether:
    """Several logs opened as one, for one slice; as a CachedLog, with a lock of its own.

    Logs with other clocks than Unix time are aligned by their offsets to UTC. Those of different robots, or with
    different definitions of a topic, are refused without *anyway*.
    """

    def __init__(
        self,
        entries: Sequence[ServedLog],
        definitions: Definitions = (),
        decrypt: bool = False,
        anyway: bool = False,
    ) -> None:
        self.lock = Lock()
        self._anyway = anyway
        self._each = [CachedLog(entry, definitions, decrypt) for entry in entries]

    def __len__(self) -> int:
        return len(self._each)

    @contextmanager
    def log(self) -> Iterator[Log]:
        """Yield all logs as one. Raises what ``logreel.open`` raises for several files, and ChangedError."""
        with self.lock, ExitStack() as stack:
            logs = [stack.enter_context(cached.log()) for cached in self._each]
            align = None if all(log.epoch == "unix" for log in logs) else "utc"
            yield open_one_of_several(logs, align=align, anyway=self._anyway)

    def check(self) -> None:
        """Raise ChangedError if one of the files was written to."""
        for cached in self._each:
            cached.check()


class OpenLogs:
    """The most recently used logs, opened with *definitions* and *decrypt* as for ``logreel.open``."""

    def __init__(self, definitions: Definitions = (), decrypt: bool = False) -> None:
        self._definitions, self._decrypt = definitions, decrypt
        self._lock = Lock()
        self._cached: OrderedDict[str, CachedLog] = OrderedDict()
        self._summaries: dict[str, tuple[FileStamp, dict[str, Any]]] = {}

    def cached(self, entry: ServedLog) -> CachedLog:
        """Return the log of *entry*, which other threads may be using."""
        with self._lock:
            cached = self._cached.get(entry.id)
            if cached is None or cached.entry != entry:
                cached = self._cached[entry.id] = CachedLog(entry, self._definitions, self._decrypt)
            self._cached.move_to_end(entry.id)
            while len(self._cached) > OPEN:
                self._cached.popitem(last=False)
            return cached

    def summary(self, entry: ServedLog) -> dict[str, Any]:
        """Return the entry of a log in the list; the log is opened for it once."""
        known = self._summaries.get(entry.id)
        if known is None or known[0] != entry.stamp:
            if len(self._summaries) >= SUMMARIES:
                self._summaries.clear()
            known = self._summaries[entry.id] = entry.stamp, self._new_summary(entry)
        return known[1]

    def info(self, entry: ServedLog) -> dict[str, Any]:
        """Return the object of ``info --json``, with the name in the catalogue as path."""
        with self.cached(entry).log() as log:
            return info(log).as_dict()

    def _new_summary(self, entry: ServedLog) -> dict[str, Any]:
        facts: dict[str, Any] = dict.fromkeys(
            ("version", "epoch", "start_ns", "end_ns", "utc_offset_ns", "messages", "channels", "problems")
        )
        error = None
        try:
            with self.cached(entry).log() as log:
                facts = {
                    "version": log.version,
                    "epoch": log.epoch,
                    "start_ns": log.start,
                    "end_ns": log.end,
                    "utc_offset_ns": log.utc_offset,
                    "messages": log.message_count,
                    "channels": len(log.channels),
                    "problems": len(log.problems),
                }
        except LogError as failed:
            error = failed.text
        except OSError as failed:
            error = failed.strerror or "cannot be read"
        about = {"id": entry.id, "name": entry.name, "format": entry.format, "size": entry.stamp.size}
        return {**about, "modified_ns": entry.stamp.modified_ns, **facts, "error": error}


#: Channels of all contents that are kept.
CHANNELS = 100_000


@dataclass(frozen=True, slots=True)
class ChannelSpan:
    """Messages of a channel: their number, and the ns of the earliest and of the latest; None if there are none."""

    messages: int
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class ChannelContents:
    """One channel: its number in the log, what it says of itself, and all of its messages."""

    topic: str
    number: int
    type: str
    encoding: str
    facts: Mapping[str, tuple[str, ...]]
    every: ChannelSpan

    @classmethod
    def of(cls, ch: Channel) -> ChannelContents:
        """Return the contents of a channel of an open log."""
        facts = dict(ch.facts)
        facts |= {alias: facts[key] for alias, key in ALIASES.items()}
        return cls(ch.topic, ch.number, ch.schema.name, ch.schema.encoding, facts, stretch(ch.log, ch.number))


@dataclass(frozen=True, slots=True)
class Contents:
    """What one log contains.

    shift     ns from its clock to UTC since 1970; None if unknown
    error     why it cannot be opened; else empty
    """

    entry: ServedLog
    epoch: str | None
    shift: int | None
    channels: Mapping[str, ChannelContents]
    error: str = ""

    @classmethod
    def of(cls, entry: ServedLog, log: Log) -> Contents:
        """Return the contents of an open log."""
        channels = {topic: ChannelContents.of(ch) for topic, ch in log.channels.items()}
        return cls(entry, log.epoch, utc_shift(log), channels)


def stretch(log: Log, number: int, first: int | None = None, last: int | None = None) -> ChannelSpan:
    """Return the messages of a channel with first <= time < last (ns); None: no bound."""
    times = log.index.times(number)
    if (first, last) != (None, None):
        times = times[log.index.rows_between(number, first, last)]
    if not len(times):
        return ChannelSpan(0, None, None)
    return ChannelSpan(len(times), int(np.min(times)), int(np.max(times)))


class ContentsCache:
    """The contents of the logs that were asked for last; a log is opened for them once, until its file changes."""

    def __init__(self, logs: OpenLogs) -> None:
        self._logs = logs
        self._lock = Lock()
        self._kept: OrderedDict[str, Contents] = OrderedDict()
        self._channels = 0

    def of(self, entry: ServedLog) -> Contents:
        """Return the contents of a log; if it cannot be opened, ``error`` says why."""
        with self._lock:
            kept = self._kept.get(entry.id)
            if kept is not None and kept.entry == entry:
                self._kept.move_to_end(entry.id)
                return kept
        try:
            with self._logs.cached(entry).log() as log:
                contents = Contents.of(entry, log)
        except LogError as failed:
            contents = Contents(entry, None, None, {}, failed.text)
        except OSError as failed:
            contents = Contents(entry, None, None, {}, failed.strerror or "cannot be read")
        self._keep(contents)
        return contents

    def _keep(self, contents: Contents) -> None:
        with self._lock:
            self._drop(contents.entry.id)
            self._kept[contents.entry.id] = contents
            # Logs without channels take room, too.
            self._channels += len(contents.channels) + 1
            while self._channels > CHANNELS and len(self._kept) > 1:
                self._drop(next(iter(self._kept)))

    def _drop(self, id: str) -> None:
        old = self._kept.pop(id, None)
        if old is not None:
            self._channels -= len(old.channels) + 1

    def between(self, contents: Contents, topic: str, first: int | None, last: int | None) -> ChannelSpan:
        """Return the messages of a channel with first <= time < last (ns); the log is opened only if it must be."""
        ch = contents.channels[topic]
        every = ch.every
        if every.first is None or every.last is None:
            return every
        if (first is None or first <= every.first) and (last is None or last > every.last):
            return every
        if (first is not None and first > every.last) or (last is not None and last <= every.first):
            return ChannelSpan(0, None, None)
        with self._logs.cached(contents.entry).log() as log:
            return stretch(log, ch.number, first, last)
