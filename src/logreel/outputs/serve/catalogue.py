"""Which logs are served: the regular files of known formats at and below the paths given, under opaque ids."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from logreel.errors import LogError, NotFoundError
from logreel.io.source import Source
from logreel.registry.registry import find_format

#: Bytes of a digest that an id is made of.
ID_BYTES = 10


@dataclass(frozen=True, slots=True)
class Stamp:
    """What says whether a file is the one it was."""

    device: int
    inode: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> Stamp:
        """That of a file."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file that is served.

    id    made of where it lies, so that it stays the same as long as the file does
    name  its path below what was given
    path  its real path
    """

    id: str
    name: str
    path: Path
    stamp: Stamp
    format: str


class Catalogue:
    """Finds the logs at and below *paths*; the folders are looked through anew whenever a list is asked for.

    Hidden files, symbolic links that lead out of a folder, and files of no known format are no logs. Raises OSError
    for a path that is not there, UnknownFormatError for a file given that is no log.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self._roots = [Path(os.path.abspath(path)) for path in paths]
        self._lock = Lock()
        self._known: dict[str, Entry] = {}
        self._formats: dict[Path, tuple[Stamp, str | None]] = {}
        for root in self._roots:
            if not stat.S_ISDIR(os.stat(root).st_mode):
                find_format(Source.open(root))

    def list(self) -> list[Entry]:
        """All logs there are now, by name."""
        with self._lock:
            self._known = {entry.id: entry for entry in self._found()}
            return sorted(self._known.values(), key=lambda entry: (entry.name, entry.id))

    def find(self, id: str) -> Entry:
        """The log of that id as it is now; raises TopicError that names the nearest ones."""
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

    def _found(self) -> Iterator[Entry]:
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

    def _entry(self, path: Path, name: str, id: str) -> Entry | None:
        """The file at *path*, if it is a log."""
        try:
            found = os.stat(path)
            if not stat.S_ISREG(found.st_mode):
                return None
            stamp = Stamp.of(found)
            known = self._formats.get(path)
            if known is None or known[0] != stamp:
                known = self._formats[path] = stamp, _format_of(path)
        except OSError:
            return None
        text = os.fsencode(name).decode("utf-8", "backslashreplace")
        return None if known[1] is None else Entry(id, text, path, stamp, known[1])


def _files(root: Path) -> Iterator[tuple[str, str]]:
    """Paths below *root* and their names there; of a file only itself."""
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
