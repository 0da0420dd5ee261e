"""A file that another process may write, rename, replace or truncate while it is read."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import tempfile
import time
from enum import Enum
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Any, Self

from logreel.errors import LogError
from logreel.io.append_file import ACTIVE
from logreel.io.platform import FLAGS, NO_WAIT, is_locked
from logreel.io.source import Source

#: Nanoseconds without a write after which a file may have been left by its writer.
QUIET = 10**9
#: Nanoseconds in which a file system may give two writes the same time.
TIME_STEP = 20_000_000
#: A named pipe without a writer does not open otherwise.
_FLAGS = os.O_RDONLY | FLAGS | NO_WAIT


class FileChange(Enum):
    """What happened to a file since the last look.

    SAME      nothing, or only bytes that were there were overwritten
    GROWN     it has more bytes, or a file beside it was written (``Source.beside``)
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
        self.was_active = False
        #: Files that ``Source.beside`` names, and what they were when the last Source was made.
        self._beside = list[str]()
        self._seen: dict[str, tuple[int, ...]] = {}

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
        is_final = self.was_active and place == self.target
        self.close()
        # An unfinished file may get its final name at any moment from now on.
        self._handle, self._size, self.was_active = handle, 0, is_final or place == self.active
        return True

    def adopt(self, source: Source) -> None:
        """Continue with the file that *source* was opened from, if it still has one of the names."""
        for place in (self.active, self.target):
            with contextlib.suppress(OSError):
                handle = os.open(place, _FLAGS)
                if source.inode == _inode(os.fstat(handle)):
                    self.close()
                    self._handle, self._size, self._beside = handle, source.size, source.beside
                    self.was_active = place == self.active
                    return
                os.close(handle)

    def follows(self, part: GrowingFile) -> None:
        """Note that the same writer wrote *part* before: if it uses two names, the final one means complete."""
        self.was_active |= part.was_active

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

    def look(self) -> FileChange:
        """Return what happened since the last call of ``source``."""
        if self._handle < 0:
            return FileChange.REPLACED if self._newest() is not None else FileChange.SAME
        # Names before the size: nothing is written after the last rename.
        place = self._newest()
        newest = None if place is None else _stat(place)
        found = os.fstat(self._handle)
        if found.st_size != self._size:
            return FileChange.GROWN if found.st_size > self._size else FileChange.CUT
        if newest is not None and not os.path.samestat(newest, found):
            return FileChange.REPLACED
        if any(_signature(path) != self._seen.get(path, ()) for path in self._beside):
            return FileChange.GROWN
        is_complete = newest is not None and place == self.target and self.was_active
        return FileChange.COMPLETE if is_complete else FileChange.SAME

    def source(self, name: str) -> Source:
        """Return the bytes that the file has now as a Source called *name*."""
        found = os.fstat(self._handle)
        active = _stat(self.active)
        is_active = active is not None and os.path.samestat(active, found)
        self.was_active |= is_active
        place = self.active if is_active else self.target
        # Times have steps: what is written within one of them looks as before.
        now = time.time_ns()
        self._seen = {
            path: signature
            for path in self._beside
            if (signature := _signature(path)) and now - signature[-1] > TIME_STEP
        }
        source = Source.of_file(self._handle, name, place, self.guard, grows=True)
        self._size, source.beside = source.size, self._beside
        return source

    def look_again(self) -> None:
        """Let the next look find what is beside changed: what there is now could not be read."""
        self._seen = {}

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
        written = [signature[-1] for path in self._beside if (signature := _signature(path))]
        if abs(time.time_ns() - max(found.st_mtime_ns, *written, 0)) < QUIET:
            return False
        is_unfinished = active is not None and os.path.samestat(active, found)
        return not (is_unfinished and is_locked(self._handle))

    def close(self) -> None:
        """Close the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            self.was_active = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            self.close()


def _signature(path: str) -> tuple[int, ...]:
    """Return numbers that change when a file is written, the last one the time of that; () if there is none."""
    status = _stat(Path(path))
    return () if status is None else (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _inode(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


#: Most bytes that are taken from the stream at once.
PIECE = 1 << 20


def arrives_slowly(stream: Any) -> bool:
    """Return whether the bytes of a file object come from another process, and not from a regular file."""
    try:
        return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, AttributeError, ValueError):
        return False


class GrowingStream:
    """The bytes of a stream, which a thread copies to an unnamed temporary file as they come; see ``GrowingFile``.

    Memory does not grow with the stream; the temporary file does, because messages are read from it later.
    """

    #: Name of the complete file, of which there is none.
    target = None

    def __init__(self, stream: IO[bytes], name: str) -> None:
        if isinstance(stream, io.TextIOBase):
            raise TypeError(f"{name}: open the file in binary mode")
        self._name = name
        # Closed when the stream has ended and this object is closed.
        self._spool: IO[bytes] = tempfile.TemporaryFile(prefix="logreel-", buffering=0)  # noqa: SIM115
        self._news = Condition()
        self._there = self._taken = 0
        self._ended = self._closed = False
        self._error: OSError | None = None
        self._read = getattr(stream, "read1", stream.read)
        Thread(target=self._copy, name="logreel-stream", daemon=True).start()

    def _copy(self) -> None:
        try:
            while not self._closed:
                piece = self._read(PIECE)
                if piece is None:
                    raise BlockingIOError("the stream does not wait for data")
                if not piece:
                    break
                view = memoryview(piece)
                while len(view):
                    view = view[os.write(self._spool.fileno(), view) :]
                with self._news:
                    self._there += len(piece)
                    self._news.notify_all()
        except (OSError, ValueError) as error:
            self._error = error if isinstance(error, OSError) else None
        finally:
            with self._news:
                self._ended = True
                self._news.notify_all()
                if self._closed:
                    self._spool.close()

    @property
    def is_open(self) -> bool:
        """Return True: there are bytes to be waited for, or all have come."""
        return True

    @property
    def has_ended(self) -> bool:
        """Whether all bytes are there."""
        return self._ended

    def wait(self, seconds: float) -> None:
        """Wait until there are more bytes than ``source`` had, the stream has ended, or *seconds* are over."""
        with self._news:
            if not self._ended and self._there == self._taken:
                self._news.wait(seconds)

    def open(self) -> bool:
        """Return True: nothing is to be opened."""
        return True

    def look(self) -> FileChange:
        """Return GROWN if there are more bytes than ``source`` had, COMPLETE at the end, else SAME.

        Raises LogError if the stream could not be read, or its bytes could not be kept.
        """
        with self._news:
            if self._there > self._taken:
                return FileChange.GROWN
            if self._error is not None:
                why = self._error.strerror or str(self._error)
                raise LogError(f"cannot be read on: {why}", path=self._name)
            return FileChange.COMPLETE if self._ended else FileChange.SAME

    def source(self, name: str) -> Source:
        """Return the bytes that have come so far as a Source called *name*."""
        with self._news:
            self._taken = self._there
        return Source.of_stream(self._spool.fileno(), self._taken, name)

    def still_has(self, source: Source) -> bool:
        """Return True: no other program can change the temporary file."""
        return True

    def close(self) -> None:
        """Stop copying; bytes that were read stay valid."""
        with self._news:
            if not self._closed:
                self._closed = True
                if self._ended:
                    self._spool.close()

    def __del__(self) -> None:
        if hasattr(self, "_news"):
            self.close()
