"""Catalogue of the served logs, and a cache of open ones.

The catalogue has the regular files of known formats at and below the given paths, with opaque ids. Logs are opened at
first use, least recently used ones closed, and reopened when their file changes; the cache also keeps what they contain
without open files: channels with facts, counts and times.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from logreel.errors import FileChangedError, LogError, NotFoundError
from logreel.io.source import Definitions, Source
from logreel.log.log import Channel, Log
from logreel.log.scan import ALIASES
from logreel.log.source_files import FOR_BOTH, refusal
from logreel.log.times import utc_shift
from logreel.ops.inspect.info import info
from logreel.registry.open import open_one_of_several
from logreel.registry.registry import find_format

#: Bytes of the digest that is the id of a log.
ID_BYTES = 10


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identity, size and time of a file, to detect changes."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStamp:
        """Return the stamp for the result of ``os.stat``."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class ServedLog:
    """A log that is served.

    id    digest of the name, so that it does not change while the file stays in its place
    name  path relative to the given folder
    path  real path
    """

    id: str
    name: str
    path: Path
    stamp: FileStamp
    format: str


class LogCatalogue:
    """Finds the logs at and below *paths*; folders are scanned again for each list.

    Hidden files, symbolic links that lead out of a folder, and files of unknown formats are left out. Raises OSError
    for a missing path, UnknownFormatError if a given file is no log.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._roots = [Path(os.path.abspath(path)) for path in paths]
        self._lock = Lock()
        self._known: dict[str, ServedLog] = {}
        self._formats: dict[Path, tuple[FileStamp, str | None]] = {}
        for root in self._roots:
            if not stat.S_ISDIR(os.stat(root).st_mode):
                find_format(Source.open(root))

    def list(self) -> list[ServedLog]:
        """Return the current logs, sorted by name."""
        with self._lock:
            self._known = {entry.id: entry for entry in self._found()}
            return sorted(self._known.values(), key=lambda entry: (entry.name, entry.id))

    def find(self, id: str) -> ServedLog:
        """Return the current log with this id; raises NotFoundError with the nearest ids."""
        with self._lock:
            known = self._known.get(id)
            again = None if known is None else self._entry(known.path, known.name, id)
        if again is not None and self._is_inside(again.path):
            return again
        known = {entry.id: entry for entry in self.list()}.get(id)
        if known is None:
            raise NotFoundError("log", id, self._known)
        return known

    def _is_inside(self, path: Path) -> bool:
        real = Path(os.path.realpath(path))
        return real == path and any(real.is_relative_to(os.path.realpath(root)) for root in self._roots)

    def _found(self) -> Iterator[ServedLog]:
        seen = set[Path]()
        for number, root in enumerate(self._roots):
            for path, name in _files(root):
                real = Path(os.path.realpath(path))
                if real in seen or not real.is_relative_to(os.path.realpath(root)):
                    continue
                seen.add(real)
                digest = hashlib.blake2b(b"%d/" % number + os.fsencode(name), digest_size=ID_BYTES)
                entry = self._entry(real, name, digest.hexdigest())
                if entry is not None:
                    yield entry
        self._formats = {path: known for path, known in self._formats.items() if path in seen}

    def _entry(self, path: Path, name: str, id: str) -> ServedLog | None:
        """Return the entry of the file at *path*; None if it is no log."""
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                return None
            stamp = FileStamp.of(status)
            known = self._formats.get(path)
            if known is None or known[0] != stamp:
                known = self._formats[path] = stamp, _format_of(path)
        except OSError:
            return None
        text = os.fsencode(name).decode("utf-8", "backslashreplace")
        return None if known[1] is None else ServedLog(id, text, path, stamp, known[1])


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield path and relative name of each file below *root*, or of *root* itself if it is a file."""
    if not root.is_dir():
        yield os.fspath(root), root.name
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                path = os.path.join(folder, name)
                yield path, os.path.relpath(path, root)


def _format_of(path: Path) -> str | None:
    try:
        return find_format(Source.open(path)).name
    except LogError:
        return None


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
