"""Catalogue of the served logs: regular files of known formats at and below the given paths, with opaque ids."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock

from logreel.dataclass import dataclass
from logreel.errors import LogError, NotFoundError
from logreel.io.source import Source
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
