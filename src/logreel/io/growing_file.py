"""A file that another process may write, rename, replace or truncate while it is read."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from enum import Enum
from pathlib import Path
from typing import Self

from logreel.errors import LogError
from logreel.io.append_file import ACTIVE
from logreel.io.locking import is_locked
from logreel.io.source import Source

#: Nanoseconds without a write after which a file may have been left by its writer.
QUIET = 10**9
#: A named pipe without a writer does not open otherwise.
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class Change(Enum):
    """What happened to a file since the last look.

    SAME      nothing, or only bytes that were there were overwritten
    GROWN     it has more bytes
    CUT       it has fewer bytes
    REPLACED  another file has its name
    COMPLETE  its writer has given it its final name
    """

    SAME, GROWN, CUT, REPLACED, COMPLETE = range(5)


class GrowingFile:
    """An open file, with the names under which its writer may continue it.

    path   its name; while logreel writes ``x``, the file is called ``x.active``, and both names mean the same here
    guard  as for ``Source.open``

    The file stays open until ``close``, so that its last bytes can be read after it was renamed or removed.
    """

    def __init__(self, path: Path, guard: bool = True) -> None:
        name = path.name.removesuffix(ACTIVE)
        self.target, self.active = path.with_name(name), path.with_name(name + ACTIVE)
        self._handle, self._size = -1, 0
        self.guard = guard
        self._was_active = False

    def open(self) -> bool:
        """Open the file that is written, else the complete one; return False if there is none (yet).

        Raises OSError if it cannot be read.
        """
        place = self._newest()
        if place is None:
            return False
        try:
            handle = os.open(place, _FLAGS)
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise LogError(
                "is no regular file, which can be followed; a pipe is read with -", path=str(place)
            )
        # Writers that insert something at the end complete another file than the one that they began.
        is_final = self._was_active and place == self.target
        self.close()
        # An unfinished file may get its final name at any moment from now on.
        self._handle, self._size, self._was_active = handle, 0, is_final or place == self.active
        return True

    def adopt(self, source: Source) -> None:
        """Continue with the file that *source* was opened from, if it still has one of the names."""
        for place in (self.active, self.target):
            with contextlib.suppress(OSError):
                handle = os.open(place, _FLAGS)
                if source.inode == _inode(os.fstat(handle)):
                    self.close()
                    self._handle, self._size = handle, source.size
                    self._was_active = place == self.active
                    return
                os.close(handle)

    def follows(self, part: GrowingFile) -> None:
        """Note that the same writer wrote *part* before: if it uses two names, the final one means complete."""
        self._was_active |= part._was_active

    def _newest(self) -> Path | None:
        """Return the name of the file that is written, or else of the complete one."""
        active, target = _stat(self.active), _stat(self.target)
        # An unfinished file that is older than the complete one is the rest of an earlier recording.
        if active is not None and (target is None or active.st_mtime_ns >= target.st_mtime_ns):
            return self.active
        return None if target is None else self.target

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return self._handle >= 0

    def look(self) -> Change:
        """Return what happened since the last call of ``source``."""
        if self._handle < 0:
            return Change.REPLACED if self._newest() is not None else Change.SAME
        # Names before the size: nothing is written after the last rename.
        place = self._newest()
        newest = None if place is None else _stat(place)
        found = os.fstat(self._handle)
        if found.st_size != self._size:
            return Change.GROWN if found.st_size > self._size else Change.CUT
        if newest is None:
            return Change.SAME
        if not os.path.samestat(newest, found):
            return Change.REPLACED
        return Change.COMPLETE if place == self.target and self._was_active else Change.SAME

    def source(self, name: str) -> Source:
        """Return the bytes that the file has now as a Source called *name*."""
        found = os.fstat(self._handle)
        active = _stat(self.active)
        is_active = active is not None and os.path.samestat(active, found)
        self._was_active |= is_active
        place = self.active if is_active else self.target
        source = Source.of_file(self._handle, name, place, self.guard, grows=True)
        self._size = source.size
        return source

    def still_has(self, source: Source) -> bool:
        """Return whether all bytes of *source* are still in the file; mapped bytes beyond its end must not be read."""
        return self._handle < 0 or os.fstat(self._handle).st_size >= source.size

    @property
    def modified_ns(self) -> int:
        """Time of the last write in ns; 0 if no file is open."""
        return os.fstat(self._handle).st_mtime_ns if self._handle >= 0 else 0

    @property
    def is_removed(self) -> bool:
        """Whether the open file has no name any more."""
        return self._handle >= 0 and not os.fstat(self._handle).st_nlink

    def is_left(self) -> bool:
        """Return whether probably nobody writes any more: not for a while, and the file is complete or not locked.

        So is a file that was removed, as recorders remove only complete parts. A file under its final name counts as
        complete, also if its writer uses no other name.
        """
        if self._handle < 0:
            return False
        found, active = os.fstat(self._handle), _stat(self.active)
        if not found.st_nlink:
            return True
        if abs(time.time_ns() - found.st_mtime_ns) < QUIET:
            return False
        is_unfinished = active is not None and os.path.samestat(active, found)
        return not (is_unfinished and is_locked(self._handle))

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            self._was_active = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            self.close()


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
