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
_INVALID = "; what was read is not valid"


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
        self.name, self._data, self._owner = name, data, owner
        self._path = None if path is None else os.fspath(path)
        self._size = len(owner)
        self._number = mapguard.watch(data) if watch and mapguard.install() else -1
        # Of the first page, which begins before the first byte if that is not at the start of a page.
        self._first = data.ctypes.data % mmap.PAGESIZE if self._number >= 0 else 0
        if self._number >= 0:
            weakref.finalize(data, mapguard.forget, self._number).atexit = False
        self._stamp = self._stat()
        self._key = self._new_key()
        self._losses = mapguard.losses()
        self._head, self._tail = self._ends(data) if path is not None else (b"", b"")
        self._error: FileChangedError | None = None
        self._serial = next_serial()
        _alive.add(self)

    def _stat(self) -> os.stat_result | None:
        """Return what the system says of the file of that name."""
        try:
            return None if self._path is None else os.stat(self._path)
        except OSError:
            return None

    def _new_key(self) -> tuple[bytes, int, int, int, int] | None:
        """Return what the file has if it is unchanged; None where only its size is compared."""
        found = self._stamp
        if self._path is None or found is None:
            return None
        return os.fsencode(self._path), found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    @staticmethod
    def _ends(data: NDArray[np.uint8]) -> tuple[bytes, bytes]:
        return data[:_ENDS].tobytes(), data[-_ENDS:].tobytes()

    def error(self) -> FileChangedError | None:
        """Return the error if the bytes that were used until now may not be those of the file as it was opened."""
        if self._error is None and not self._is_untouched():
            self._error = self._find_error()
        return self._error

    @property
    def may_have_lost_pages(self) -> bool:
        """Whether pages of any file were replaced since the last ``check``."""
        return mapguard.losses() != self._losses

    def _is_untouched(self) -> bool:
        """Return whether no page was replaced anywhere, and the file is the same as before; costs one system call."""
        if self.may_have_lost_pages:
            return False
        return self._owner.size() == self._size if self._key is None else mapguard.is_same(*self._key)

    def _find_error(self) -> FileChangedError | None:
        losses = mapguard.losses()
        lost = mapguard.lost(self._number) if self._number >= 0 else -1
        named, before = self._stat(), self._stamp
        # Another file of that name is none of the mapped one.
        is_same = named is not None and before is not None and os.path.samestat(named, before)
        size = named.st_size if named is not None and is_same else self._owner.size()
        if size < self._size:
            text = f"the file was truncated from {self._size} to {size} bytes while it was open{_INVALID}"
            return FileChangedError(text, path=self.name, offset=size, hint=_HINT)
        if lost >= 0:
            text = f"the file was truncated, or could not be read, while it was open{_INVALID}"
            at = max(0, lost - self._first)
            return FileChangedError(text, path=self.name, offset=at, hint=_HINT)
        if is_same and named is not None and self._was_overwritten(named):
            text = f"the file was overwritten while it was open{_INVALID}"
            return FileChangedError(text, path=self.name, hint=_HINT)
        self._losses = losses
        return None

    def _was_overwritten(self, now: os.stat_result) -> bool:
        """Return whether bytes at the ends changed; only files whose modification time changed are compared."""
        if self._stamp is None or now.st_mtime_ns == self._stamp.st_mtime_ns:
            return False
        head, tail = self._ends(self._data)
        # Recorders write the number of messages into the head of a file when they complete it.
        if tail != self._tail or (head != self._head and now.st_size == self._size):
            return True
        self._stamp = now
        self._key = self._new_key()
        return False

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
