"""Logs that are open: opened when they are first asked for, the latest used ones kept, anew when their file changes."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from logreel.errors import LogError
from logreel.io.source import Definitions, Source
from logreel.log.log import Log
from logreel.ops.inspect.info import info
from logreel.outputs.serve.catalogue import Entry, Stamp
from logreel.registry.open import open_one_of_several

#: Logs kept open; each may hold its index and 64 MiB of unpacked chunks.
OPEN = 8
#: Logs of which is kept what the list says of them.
TOLD = 100_000


class ChangedError(LogError):
    """Somebody wrote to a file while it was read."""


class CachedLog:
    """A log that is open, for one at a time: *turn* is held by whoever works with it."""

    def __init__(self, entry: Entry, definitions: Definitions = ()) -> None:
        self.entry, self.turn, self._definitions = entry, Lock(), definitions
        self._log: Log | None = None

    @contextmanager
    def log(self) -> Iterator[Log]:
        """The log, for this thread alone. Raises what opening it does, and ChangedError."""
        with self.turn:
            if self._log is None:
                source = Source.open(self.entry.path)
                # Sentences must not tell where on this machine the log lies.
                source.name = self.entry.name
                self.check()
                self._log = open_one_of_several(source, definitions=self._definitions)  # type: ignore[arg-type]
            yield self._log

    def check(self) -> None:
        """Raise ChangedError if somebody writes to the file; one that is replaced or removed stays readable."""
        try:
            found = Stamp.of(os.stat(self.entry.path))
        except OSError:
            return
        was = self.entry.stamp
        if (found.device, found.inode) == (was.device, was.inode) and found != was:
            raise ChangedError("was changed while it was read: ask again")


class Logs:
    """The logs that were used last, opened with *definitions* as for ``logreel.open``."""

    def __init__(self, definitions: Definitions = ()) -> None:
        self._definitions = definitions
        self._lock = Lock()
        self._cached: OrderedDict[str, CachedLog] = OrderedDict()
        self._told: dict[str, tuple[Stamp, dict[str, Any]]] = {}

    def cached(self, entry: Entry) -> CachedLog:
        """That of *entry*, which others may be using, too."""
        with self._lock:
            cached = self._cached.get(entry.id)
            if cached is None or cached.entry != entry:
                cached = self._cached[entry.id] = CachedLog(entry, self._definitions)
            self._cached.move_to_end(entry.id)
            while len(self._cached) > OPEN:
                self._cached.popitem(last=False)
            return cached

    def told(self, entry: Entry) -> dict[str, Any]:
        """What the list says of a log, which is opened for it once."""
        known = self._told.get(entry.id)
        if known is None or known[0] != entry.stamp:
            if len(self._told) >= TOLD:
                self._told.clear()
            known = self._told[entry.id] = entry.stamp, self._summary(entry)
        return known[1]

    def info(self, entry: Entry) -> dict[str, Any]:
        """The object of ``info --json``, with the name that the log has here for its path."""
        with self.cached(entry).log() as log:
            return info(log).as_dict()

    def _summary(self, entry: Entry) -> dict[str, Any]:
        told: dict[str, Any] = dict.fromkeys(
            ("version", "epoch", "start_ns", "end_ns", "utc_offset_ns", "messages", "channels", "problems")
        )
        error = None
        try:
            with self.cached(entry).log() as log:
                told = {
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
        return {**about, "modified_ns": entry.stamp.modified_ns, **told, "error": error}
