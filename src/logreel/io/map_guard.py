"""Files that shrink, are overwritten or become unreadable while they are mapped: notice it after the bytes were used.

``kernels/mapguard`` keeps the process alive and puts zeros where a file has no pages any more, so bytes of a mapping
are valid only if the file is found unchanged after they were used: every function that returns bytes of a log, or what
it computed from them, asks ``MapGuard.check`` at its end. Where the platform or the caller leaves the signal alone,
only the size and the modification time are compared.
"""

from __future__ import annotations

import copy
import itertools
import mmap
import os
import weakref
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from logreel.errors import FileChangedError
from logreel.kernels import mapguard

#: Bytes at both ends of a file that are compared if its modification time changed.
_ENDS = 4096
_serials = itertools.count()
_alive: weakref.WeakSet[MapGuard] = weakref.WeakSet()
_HINT = "open it again when nothing writes it"


class MapGuard:
    """What to ask of a mapped file after its bytes were used.

    data   uint8[n], the bytes mapped; they are watched as long as any array uses them
    owner  the mapping
    name   name of the file, for errors
    path   the file, if its modification time is compared as well, else None
    watch  False: leave the signal alone
    """

    def __init__(
        self, data: NDArray[np.uint8], owner: mmap.mmap, name: str, path: Path | None, watch: bool
    ) -> None:
        self.name, self._data, self._owner, self._path = name, data, owner, path
        self._size = len(owner)
        self._number = mapguard.watch(data) if watch and mapguard.install() else -1
        # Of the first page, which begins before the first byte if that is not at the start of a page.
        self._first = data.ctypes.data % mmap.PAGESIZE if self._number >= 0 else 0
        if self._number >= 0:
            weakref.finalize(data, mapguard.forget, self._number).atexit = False
        self._stamp = self._stat()
        self._head, self._tail = self._ends(data) if path is not None else (b"", b"")
        self._error: FileChangedError | None = None
        self._serial = next_serial()
        _alive.add(self)

    def _stat(self) -> tuple[int, int, int] | None:
        """Return device, inode and modification time of the file of that name."""
        try:
            found = None if self._path is None else os.stat(self._path)
        except OSError:
            return None
        return None if found is None else (found.st_dev, found.st_ino, found.st_mtime_ns)

    @staticmethod
    def _ends(data: NDArray[np.uint8]) -> tuple[bytes, bytes]:
        return data[:_ENDS].tobytes(), data[-_ENDS:].tobytes()

    def error(self) -> FileChangedError | None:
        """Return the error if the bytes that were used until now may not be those of the file as it was opened."""
        if self._error is None:
            self._error = self._find_error()
        return self._error

    def _find_error(self) -> FileChangedError | None:
        lost = mapguard.lost(self._number) if self._number >= 0 else -1
        now = self._owner.size()
        if now < self._size:
            text = f"the file was truncated from {self._size} to {now} bytes while it was open"
            return FileChangedError(
                f"{text}; what was read is not valid", path=self.name, offset=now, hint=_HINT
            )
        if lost >= 0:
            at = max(0, lost - self._first)
            text = (
                "the file was truncated, or could not be read, while it was open; what was read is not valid"
            )
            return FileChangedError(text, path=self.name, offset=at, hint=_HINT)
        if self._was_overwritten(now):
            text = "the file was overwritten while it was open; what was read is not valid"
            return FileChangedError(text, path=self.name, hint=_HINT)
        return None

    def _was_overwritten(self, size: int) -> bool:
        """Return whether bytes at the ends changed; only files whose modification time changed are compared."""
        before = self._stamp
        if before is None:
            return False
        now = self._stat()
        # Another file of that name is none of the mapped one.
        if now is None or now == before or now[:2] != before[:2]:
            return False
        self._stamp = now
        head, tail = self._ends(self._data)
        # Recorders write the number of messages into the head of a file when they complete it.
        return tail != self._tail or (head != self._head and size == self._size)

    def check(self) -> None:
        """Raise FileChangedError if the bytes that were used until now may not be those of the opened file."""
        if (found := self.error()) is not None:
            error = copy.copy(found)
            error.path = self.name
            raise error

    def release(self) -> None:
        """Stop reporting the file: another mapping of it replaces this one."""
        _alive.discard(self)


def next_serial() -> int:
    """Return a number that is greater than those of all guards so far."""
    return next(_serials)


def changed_files(since: int = 0) -> list[FileChangedError]:
    """Return an error for each file that is mapped now and was found changed.

    since  what ``next_serial`` returned; files mapped before are left out
    """
    guards = [one for one in list(_alive) if one._serial >= since]
    return [found for one in guards if (found := one.error()) is not None]


def mapping_of(buffer: object) -> mmap.mmap | None:
    """Return the mapping of a file that *buffer* is a part of: an mmap, a memoryview, or an array; None: of none."""
    for _ in range(16):
        if isinstance(buffer, mmap.mmap):
            return buffer
        buffer = getattr(buffer, "obj" if isinstance(buffer, memoryview) else "base", None)
    return None
