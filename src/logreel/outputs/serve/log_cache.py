"""Cache of open logs: opened at first use, least recently used ones closed, reopened when their file changes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

from logreel.errors import FileChangedError, LogError
from logreel.io.source import Definitions, Source
from logreel.log.decrypted import FOR_BOTH, refusal
from logreel.log.log import Log
from logreel.ops.inspect.info import info
from logreel.outputs.serve.catalogue import Entry, Stamp
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

    def __init__(self, entry: Entry, definitions: Definitions = (), decrypt: bool = False) -> None:
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
            found = Stamp.of(os.stat(self.entry.path))
        except OSError:
            found = was
        if (found.device, found.inode) == (was.device, was.inode) and found != was:
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
        entries: Sequence[Entry],
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
            logs = [stack.enter_context(one.log()) for one in self._each]
            align = None if all(log.epoch == "unix" for log in logs) else "utc"
            yield open_one_of_several(logs, align=align, anyway=self._anyway)

    def check(self) -> None:
        """Raise ChangedError if one of the files was written to."""
        for one in self._each:
            one.check()


class Logs:
    """The most recently used logs, opened with *definitions* and *decrypt* as for ``logreel.open``."""

    def __init__(self, definitions: Definitions = (), decrypt: bool = False) -> None:
        self._definitions, self._decrypt = definitions, decrypt
        self._lock = Lock()
        self._cached: OrderedDict[str, CachedLog] = OrderedDict()
        self._summaries: dict[str, tuple[Stamp, dict[str, Any]]] = {}

    def cached(self, entry: Entry) -> CachedLog:
        """Return the log of *entry*, which other threads may be using."""
        with self._lock:
            cached = self._cached.get(entry.id)
            if cached is None or cached.entry != entry:
                cached = self._cached[entry.id] = CachedLog(entry, self._definitions, self._decrypt)
            self._cached.move_to_end(entry.id)
            while len(self._cached) > OPEN:
                self._cached.popitem(last=False)
            return cached

    def summary(self, entry: Entry) -> dict[str, Any]:
        """Return the entry of a log in the list; the log is opened for it once."""
        known = self._summaries.get(entry.id)
        if known is None or known[0] != entry.stamp:
            if len(self._summaries) >= SUMMARIES:
                self._summaries.clear()
            known = self._summaries[entry.id] = entry.stamp, self._new_summary(entry)
        return known[1]

    def info(self, entry: Entry) -> dict[str, Any]:
        """Return the object of ``info --json``, with the name in the catalogue as path."""
        with self.cached(entry).log() as log:
            return info(log).as_dict()

    def _new_summary(self, entry: Entry) -> dict[str, Any]:
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
