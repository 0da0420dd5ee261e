"""Append-only files that end with a complete record at any moment, and get their final names when complete."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from pathlib import Path
from types import TracebackType
from typing import Self

from logreel.errors import LogError
from logreel.io.atomic_file import (
    create_locked,
    exists,
    is_at,
    name_it,
    sync_folder,
    sync_name,
    target_of,
    temporary_for,
)
from logreel.io.platform import (
    FLAGS,
    NO_FOLLOW,
    clone,
    copy_permissions,
    lock,
    pool,
    read_at,
    replace,
    write_at,
)

#: Request of Linux to share all blocks of one file with another (FICLONE).
_CLONE = 0x40049409
#: Bytes copied at once.
_COPIED = 8 << 20


class OldFile:
    """An existing regular file, open for reading until it is closed or replaced.

    path  its final name; links are not followed
    name  its name in error texts

    Raises LogError for a missing file, a link, or what is no regular file.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        if path.is_symlink():
            text = f"is a symbolic link, which appending would replace: append to {os.path.realpath(path)!r}"
            raise LogError(text, path=name)
        try:
            self._handle = os.open(path, os.O_RDONLY | FLAGS | NO_FOLLOW)
        except OSError as error:
            raise LogError(f"cannot be read: {error.strerror}", path=name) from None
        status = os.fstat(self._handle)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise LogError("is not a regular file", path=name)
        self._identity = _identity(status)

    def check(self) -> None:
        """Raise LogError if the path names another file by now, or the file has another size or modification time."""
        try:
            same = _identity(os.lstat(self._path)) == self._identity
        except OSError:
            same = False
        if not same:
            text = "was changed, replaced or removed by another program while it was appended to, and is left as it is"
            unfinished = f"{self._path.name}.active"
            raise LogError(
                text,
                path=self._name,
                hint=f"{unfinished} has the old and the new messages; logreel.recover completes it",
            )

    def copy_to(self, handle: int, size: int) -> None:
        """Make the first *size* bytes the content of the open, empty file *handle*; its position is then the end.

        Blocks are shared where the file system can do that, so that copying takes neither time nor space. The new file
        gets the permissions of the old one. Raises OSError if the bytes cannot be copied.
        """
        copy_permissions(self._handle, handle)
        if not size:
            return
        done = size if self._cloned(handle, size) else self._copied_in_kernel(handle, size)
        while done < size:
            part = read_at(self._handle, min(_COPIED, size - done), done)
            if not part:
                raise OSError("the old file was cut by another program")
            write_at(handle, part, done)
            done += len(part)
        os.lseek(handle, size, os.SEEK_SET)

    def _cloned(self, handle: int, size: int) -> bool:
        """Share all blocks with *handle*, and cut it after *size* bytes; return False if that is impossible."""
        if not clone(self._handle, handle, _CLONE):
            return False
        if os.fstat(handle).st_size < size:
            raise OSError("the old file was cut by another program")
        os.ftruncate(handle, size)
        return True

    def _copied_in_kernel(self, handle: int, size: int) -> int:
        """Copy without passing the bytes through this process; return how many were copied."""
        done = 0
        copy = getattr(os, "copy_file_range", None)
        # File systems without it raise one of many errors: the bytes are then copied by reading and writing.
        with contextlib.suppress(OSError):
            while copy is not None and done < size:
                more = copy(self._handle, handle, size - done, done, done)
                if not more:
                    break
                done += more
        return done

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", -1) >= 0:
            self.close()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


#: Bytes collected before they are written to the file.
BUFFER = 1 << 20
#: Initial size of the memory for them, and the greatest size that is kept.
ROOM, MOST_ROOM = 2 * BUFFER, 8 * BUFFER
#: Greatest number of pieces that wait for, or are written by, the background thread.
GIVEN = 3
#: Bytes that the background thread writes between two syncs to disk.
SYNCED = 32 << 20
#: Bytes copied at once.
COPIED = 4 << 20
#: Suffix of the name of unfinished files.
ACTIVE = ".active"

Piece = bytes | bytearray | memoryview


class Appender:
    """A new file at *path*, called ``path + ".active"`` until it is finished.

    Bytes become part of the file with ``commit``, in the order given: after any failure, the file ends at a commit.
    After an error nothing more can be written; bytes already written stay.

    force  replace an existing file, and an unfinished one that no process writes
    keep   False: the unfinished file has a unique name, and is removed if it is not completed
    append  continue the existing file *path*: the new file begins with its bytes (``keep_old``) and replaces it when
            complete, if no other program changed or replaced it meanwhile; *force* concerns only the unfinished file

    Links are replaced with *force*, never followed. The unfinished file is locked against all processes while it is
    written. Raises LogError where a file or link exists and *force* is not given, or another writer has locked it.
    """

    #: Whether the bytes written can be read from ``unfinished`` before the file is finished.
    readable = True

    def __init__(
        self, path: str | os.PathLike[str], force: bool = False, keep: bool = True, append: bool = False
    ) -> None:
        self.name = os.fspath(path)
        self._target, self._force, self._keep = target_of(path), force, keep
        self._old: OldFile | None = None
        if self._target.is_dir():
            raise LogError("is a folder, not a file", path=self.name)
        if self._target.exists() and not self._target.is_file():
            raise LogError("is not a regular file", path=self.name)
        if append:
            self._old = OldFile(self._target, self.name)
        elif os.path.lexists(self._target) and not force:
            raise exists(path)
        active = self._target.with_name(self._target.name + ACTIVE)
        self._active = active if keep else temporary_for(self._target)
        #: Bytes not yet written to the file: the buffer, how many, and how many of them are committed.
        self._pending = memoryview(bytearray(ROOM))
        # After everything that may lack memory: nothing would remove the file.
        self._handle = create_locked(self._active, force and keep)
        #: Whether the disk has the name of the unfinished file.
        self._is_named = False
        self._filled = self._committed = self._sound = 0
        self._error: LogError | None = None
        #: Pieces of the background thread with their bytes, bytes of all of them, and bytes since the last sync.
        self._thread: Executor | None = None
        self._given = deque[tuple[Future[None], int]]()
        self._under_way = self._unsynced = 0
        self._broken = False
        #: Lent memory that was returned and can be reused.
        self._free: list[bytearray] = []

    @property
    def unfinished(self) -> Path | bytes:
        """Path of the file until it is finished; the bytes themselves where they are in memory."""
        return self._active

    def keep_old(self, size: int) -> None:
        """Begin with the first *size* bytes of the file that is continued; called once, before anything is written."""
        if self._old is None or self.tell():
            raise ValueError("only a file that continues another one begins with it")
        self._old.check()
        try:
            self._old.copy_to(self._handle, size)
        except OSError as error:
            raise self._failed(error) from error
        self._sound = size

    def check(self) -> None:
        """Raise the error that ended writing, if any."""
        if self._error is not None:
            raise self._error

    def tell(self) -> int:
        """Return the offset of the next byte."""
        return self._sound + self._under_way + self._filled

    def write(self, piece: Piece) -> None:
        """Append bytes; they become part of the file with ``commit``."""
        self.check()
        if isinstance(piece, memoryview):
            piece = piece.cast("B")
        end = self._filled + len(piece)
        if end > len(self._pending):
            self._resize(end + max(ROOM, self._filled))
        self._pending[self._filled : end] = piece
        self._filled = end

    def _resize(self, room: int) -> None:
        """Replace the buffer by one of *room* bytes with the same content."""
        pending = memoryview(bytearray(room))
        pending[: self._filled] = self._pending[: self._filled]
        self._pending = pending

    def put(self, piece: Piece) -> None:
        """Append and commit bytes, with everything written so far; large pieces are not copied."""
        if len(piece) < BUFFER:
            self.write(piece)
            self.commit()
            return
        self.check()
        self._committed = self._filled
        self._write_committed()
        try:
            _write_all(self._handle, piece)
        except OSError as error:
            raise self._failed(error) from error
        self._sound += len(piece)

    def lend(self, size: int) -> memoryview:
        """Return *size* bytes of reused memory, to be filled and passed to ``give``; saves allocation."""
        room = self._free.pop() if self._free else bytearray()
        return memoryview(room if len(room) >= size else bytearray(size + size // 4))[:size]

    def give(self, piece: Piece) -> None:
        """Append and commit memory that the caller will not touch again; large pieces are written in the background.

        Errors of the background thread are raised by a later call.
        """
        if len(piece) < BUFFER:
            self.put(piece)
            self._take_back(piece)
            return
        self.check()
        if self._filled:
            self._committed = self._filled
            self._write_committed()
        self._wait_for_given(GIVEN - 1)
        self._thread = self._thread or pool(1, "logreel-write")
        self._under_way += len(piece)
        self._given.append((self._thread.submit(self._write_behind, piece), len(piece)))

    def _take_back(self, piece: Piece) -> None:
        """Return memory to the pool if it was lent."""
        if isinstance(piece, memoryview) and isinstance(piece.obj, bytearray):
            self._free.append(piece.obj)

    def _write_behind(self, piece: Piece) -> None:
        if self._broken:
            return
        try:
            _write_all(self._handle, piece)
            self._take_back(piece)
            self._unsynced += len(piece)
            # Sync meanwhile, so that the sync at the end is short.
            if not self._keep and self._unsynced >= SYNCED:
                self._unsynced = 0
                getattr(os, "fdatasync", os.fsync)(self._handle)
        except BaseException:
            self._broken = True
            raise

    def _wait_for_given(self, most: int = 0) -> None:
        """Wait until at most *most* of the given pieces are not written."""
        while len(self._given) > most:
            given, size = self._given.popleft()
            try:
                given.result()
            except OSError as error:
                # Pieces given after the failed one are not written.
                self._end_thread()
                self._given.clear()
                self._under_way = 0
                raise self._failed(error) from error
            self._under_way -= size
            self._sound += size

    def commit(self) -> None:
        """Make everything written so far part of the file."""
        self._committed = self._filled
        if self._committed >= BUFFER:
            self._write_committed()

    def flush(self, sync: bool = False) -> None:
        """Write committed bytes to the file; *sync*: wait until they are on disk."""
        self.check()
        self._write_committed()
        if sync:
            try:
                os.fsync(self._handle)
                # Bytes that nothing names are lost in a power failure. A hidden file is removed in any case.
                if self._keep and not self._is_named:
                    sync_folder(self._active.parent)
                    self._is_named = True
            except OSError as error:
                raise self._failed(error) from error

    def patch(self, place: int, piece: Piece) -> None:
        """Overwrite bytes at *place* that are in the file already; the file must be sound before and after."""
        self.flush()
        try:
            write_at(self._handle, piece, place)
        except OSError as error:
            raise self._failed(error) from error

    def splice(self, place: int, size: int, piece: Piece) -> None:
        """Replace *size* bytes at *place* by *piece* of any length; the bytes after it move, through a second file."""
        self.flush()
        other = temporary_for(self._active)
        try:
            handle = os.open(other, os.O_RDWR | os.O_CREAT | os.O_EXCL | FLAGS, 0o666)
            try:
                copy_permissions(self._handle, handle)
                for part in itertools.chain(
                    self._read(0, place), [piece], self._read(place + size, self._sound)
                ):
                    _write_all(handle, part)
                os.fsync(handle)
                lock(handle)
                self._check_place()
                replace(other, self._active)
                self._is_named = False
            except BaseException:
                os.close(handle)
                other.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise self._failed(error) from error
        os.close(self._handle)
        self._handle = handle
        self._sound += len(piece) - size

    def again(self, take: Callable[[bytes], None], upto: int) -> None:
        """Pass the bytes up to *upto* to *take* again, in pieces; only before any ``splice``."""
        self.flush()
        try:
            for part in self._read(0, upto):
                take(part)
        except OSError as error:
            raise self._failed(error) from error

    def _read(self, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            part = read_at(self._handle, min(COPIED, end - start), start)
            if not part:
                raise OSError("the file was cut by another program")
            start += len(part)
            yield part

    def finish(self) -> None:
        """Write everything, wait until it is on disk, and rename the file to its final name."""
        self.flush(sync=True)
        self._end_thread()
        try:
            self._check_place()
        except OSError as error:
            raise self._failed(error) from error
        # The lock is held until the file has its name.
        if self._old is not None:
            self._old.check()
            replace(self._active, self._target)
        elif self._force:
            replace(self._active, self._target)
        else:
            name_it(self._active, self._target, self.name)
        self._close()
        sync_name(self._target, self.name)

    def _check_place(self) -> None:
        """Raise an OSError if the unfinished path does not name the open file any more."""
        if not is_at(self._handle, self._active):
            raise OSError(f"another program moved or replaced {self._active.name}")

    def _close(self) -> None:
        """Close the file, which releases its lock."""
        with contextlib.suppress(OSError):
            os.close(self._handle)
        self._handle = -1
        if self._old is not None:
            self._old.close()
        # A writer is freed late, with the circles that it is in: a recording of windows has one after another.
        self._pending = memoryview(b"")
        self._filled = self._committed = 0
        self._free.clear()

    def leave(self) -> None:
        """Close the file under its unfinished name, with all commits written; remove it if ``keep`` is False."""
        with contextlib.suppress(LogError):
            self._wait_for_given()
        if self._keep:
            with contextlib.suppress(LogError):
                self.flush()
        self._end_thread()
        if not self._keep:
            self._remove()
        self._close()

    def discard(self) -> None:
        """Close the file and remove it."""
        keep, self._keep = self._keep, False
        self.leave()
        self._keep = keep

    def _remove(self) -> None:
        # Before closing: the lock guarantees that the name is still that of this file.
        if is_at(self._handle, self._active):
            self._active.unlink(missing_ok=True)

    def __del__(self) -> None:
        # A recording without references must not keep its lock.
        if getattr(self, "_handle", -1) >= 0:
            self._close()

    def _write_committed(self) -> None:
        self._wait_for_given()
        done = 0
        try:
            while done < self._committed:
                done += os.write(self._handle, self._pending[done : self._committed])
        except OSError as error:
            raise self._failed(error) from error
        rest = bytes(self._pending[done : self._filled])
        self._pending[: len(rest)] = rest
        self._sound, self._filled, self._committed = self._sound + done, len(rest), 0
        if len(self._pending) > MOST_ROOM:
            self._resize(max(ROOM, 2 * len(rest)))

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None

    def _failed(self, error: OSError) -> LogError:
        """Return the error to raise; truncate the file to its last sound end."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, self._sound)
        why = os.strerror(error.errno) if error.errno else str(error)
        self._error = LogError(f"cannot be written any more: {why}", path=self.name)
        return self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.leave()


def _write_all(handle: int, piece: Piece) -> None:
    view = memoryview(piece)
    while len(view):
        view = view[os.write(handle, view) :]
