"""What operating systems do differently, in one place, each with a twin for systems that lack it.

Windows has other locks, and reads and writes only where a file's position is; a browser has no mappings; neither has
owners of files. ``LOGREEL_PLATFORM=twins``, read at import, takes the twins on every system: so they are tested.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import struct
import sys
import time
from _thread import allocate_lock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import IO, TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from socket import socket

    from _typeshed import ReadableBuffer

P = ParamSpec("P")
T = TypeVar("T")

TWINS = os.environ.get("LOGREEL_PLATFORM") == "twins"


def _module(name: str) -> ModuleType | None:
    """Return a module of the standard library that only some systems have; a twin is taken in its place."""
    if TWINS:
        return None
    try:
        return __import__(name)
    except ImportError:
        return None


_fcntl, _msvcrt = _module("fcntl"), _module("msvcrt")
#: Whether threads can be started: a page in a browser has none of its own.
CAN_THREAD = not TWINS and sys.platform != "emscripten"
#: Whether files can be mapped: emscripten's mappings are copies that show no later change.
CAN_MAP = not TWINS and sys.platform != "emscripten"
HAS_OWNERS = not TWINS and hasattr(os, "geteuid")
_HAS_POSITIONS = not TWINS and hasattr(os, "pread")
#: Flags of ``os.open`` for every file: not for child processes, and no translation of line ends.
FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
#: Refuse links; 0 on systems without.
NO_FOLLOW = 0 if TWINS else getattr(os, "O_NOFOLLOW", 0)
#: Do not wait for the other end of a pipe; 0 on systems whose pipes have no names of files.
NO_WAIT = getattr(os, "O_NONBLOCK", 0)
#: Error numbers of file systems without locks, and of a lock that another handle has.
_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL}
_HELD = {errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK}
#: Where Windows locks a byte: what is locked cannot be read, so it is none that a file has.
_LOCKED_BYTE = 1 << 40
_moving = allocate_lock()

# ---------------------------------------------------------------------------------------------------- locks


def lock(handle: int) -> bool:
    """Lock an open file exclusively for this handle; return False if another handle has the lock."""
    try:
        if _fcntl is not None:
            _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        elif _msvcrt is not None:
            _at_locked_byte(handle, _msvcrt.LK_NBLCK)
    except OSError as error:
        if error.errno in _HELD:
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


def is_locked(handle: int) -> bool:
    """Return whether another handle has locked an open file; False on systems without locks.

    Only for files whose writer has locked them already: a writer that locks at this moment would fail.
    """
    try:
        if _fcntl is not None:
            _fcntl.flock(handle, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
            _fcntl.flock(handle, _fcntl.LOCK_UN)
        elif _msvcrt is not None:
            _at_locked_byte(handle, _msvcrt.LK_NBLCK)
            _at_locked_byte(handle, _msvcrt.LK_UNLCK)
    except OSError as error:
        return error.errno in _HELD
    return False


def is_range_locked(handle: int, start: int, size: int) -> bool:
    """Return whether another process writes under a lock of bytes of a file; False on systems that cannot tell."""
    ask = getattr(_fcntl, "F_OFD_GETLK", getattr(_fcntl, "F_GETLK", None))
    # The order of the members is that of Linux: type, whence, start, size, process.
    if _fcntl is None or ask is None or not sys.platform.startswith("linux"):
        return False
    flock = struct.Struct("@hhqqi4x")
    try:
        answer = _fcntl.fcntl(handle, ask, flock.pack(_fcntl.F_RDLCK, os.SEEK_SET, start, size, 0))
    except OSError:
        return False
    return bool(flock.unpack(answer)[0] != _fcntl.F_UNLCK)


def _at_locked_byte(handle: int, mode: int) -> None:
    """Lock or free the byte that stands for a file."""
    with _moved(handle, _LOCKED_BYTE):
        _msvcrt.locking(handle, mode, 1)  # type: ignore[union-attr]


@contextmanager
def _moved(handle: int, place: int) -> Iterator[None]:
    """Have the position of an open file at *place* in the block; it is afterwards where it was."""
    with _moving:
        before = os.lseek(handle, 0, os.SEEK_CUR)
        try:
            os.lseek(handle, place, os.SEEK_SET)
            yield
        finally:
            os.lseek(handle, before, os.SEEK_SET)


# -------------------------------------------------------------------------------------------------- threads


def pool(threads: int, name: str = "") -> Executor:
    """Return an executor with *threads* threads; for none, or its twin, one that does what it is given at once."""
    from concurrent.futures import Executor, Future, ThreadPoolExecutor

    if CAN_THREAD and threads:
        return ThreadPoolExecutor(threads, name)

    class AtOnce(Executor):
        def submit(self, call: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Future[T]:
            future = Future[T]()
            future.set_running_or_notify_cancel()
            try:
                future.set_result(call(*args, **options))
            except Exception as error:
                future.set_exception(error)
            return future

    return AtOnce()


# ------------------------------------------------------------------------------------------ bytes of open files


def read_at(handle: int, size: int, place: int) -> bytes:
    """Return at most *size* bytes from *place* on; the position of the file stays."""
    if _HAS_POSITIONS:
        return os.pread(handle, size, place)
    with _moved(handle, place):
        return os.read(handle, size)


def write_at(handle: int, data: ReadableBuffer, place: int, shown: object = None) -> None:
    """Write all of *data* at *place*; the position of the file stays. Raises OSError.

    shown  what ``map_shared`` has returned for this file, which has the bytes afterwards
    """
    left, at = memoryview(data).cast("B"), place
    while len(left):
        done = _write_part(handle, left, at)
        if isinstance(shown, bytearray):
            shown[at : at + done] = left[:done]
        left, at = left[done:], at + done


def _write_part(handle: int, data: memoryview, place: int) -> int:
    if _HAS_POSITIONS:
        return os.pwrite(handle, data, place)
    with _moved(handle, place):
        return os.write(handle, data)


#: The bytes of a mapped file, or of its twin in memory.
Mapped = mmap.mmap | bytes | bytearray


#: Bytes that are read at once where files cannot be mapped.
PIECE = 8 << 20


def map_file(handle: int, size: int = 0, place: int = 0) -> tuple[mmap.mmap | bytearray, int]:
    """Return bytes of an open file, and where in them *place* is; *size* 0: all.

    Mapped where files can be mapped, else read: they stay then as they are now. Raises OSError, and ValueError for a
    file that is empty or has fewer bytes.
    """
    size = size or os.fstat(handle).st_size - place
    if CAN_MAP:
        # Mappings begin at page borders.
        page = place // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        return mmap.mmap(handle, place - page + size, access=mmap.ACCESS_READ, offset=page), place - page
    out, at = bytearray(size), 0
    # No second copy: a browser has little memory, and its files copy each piece once more.
    with _moved(handle, place), open(handle, "rb", buffering=0, closefd=False) as file:
        while at < size and (count := file.readinto(memoryview(out)[at : at + PIECE])):
            at += count
    if at < size or not size:
        raise ValueError("there are fewer bytes than are to be mapped")
    return out, 0


def map_to_change(handle: int, size: int) -> mmap.mmap | bytearray:
    """Return the first *size* bytes of an open file to be changed, which nobody reads by the file afterwards."""
    return mmap.mmap(handle, size) if CAN_MAP else bytearray(read_at(handle, size, 0))


def map_shared(handle: int, size: int) -> mmap.mmap | bytearray:
    """Return the first *size* bytes of an open file, zeros until now, which show what ``write_at`` writes there."""
    return mmap.mmap(handle, size, access=mmap.ACCESS_READ) if CAN_MAP else bytearray(size)


def clone(source: int, target: int, request: int) -> bool:
    """Ask the system to share the blocks of two open files; return False where it cannot."""
    if _fcntl is None:
        return False
    try:
        _fcntl.ioctl(target, request, source)
    except OSError:
        return False
    return True


def widen_pipe(handle: int, size: int) -> None:
    """Let a pipe hold *size* bytes, where the system can do that."""
    if _fcntl is not None and hasattr(_fcntl, "F_SETPIPE_SZ"):
        try:
            _fcntl.fcntl(handle, _fcntl.F_SETPIPE_SZ, size)
        except OSError:
            return


# ------------------------------------------------------------------------------------------- names and owners


def readable(file: int | socket | IO[bytes], seconds: float) -> bool:
    """Return whether reading *file* would not block, after waiting for at most *seconds*.

    The end of a file, a closed connection and an error count as readable. ``select.select`` refuses file descriptors
    above 1023, which programs with many open logs have, except on Windows, whose sockets have no such numbers.
    """
    import select

    if TWINS or not hasattr(select, "poll"):
        return bool(select.select([file], [], [], seconds)[0])
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def replace(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Give a file the name *target*, in place of another one; raises OSError.

    Windows refuses that while another process, such as a scanner, has the file open: it is tried for half a second.
    """
    for wait in (0.02, 0.06, 0.12, 0.3) if TWINS or sys.platform == "win32" else ():
        try:
            return os.replace(source, target)
        except PermissionError:
            time.sleep(wait)
    return os.replace(source, target)


def open_folder(folder: str | os.PathLike[str]) -> int | None:
    """Open a folder to sync its names; None on systems that cannot open folders, and sync names by themselves."""
    if TWINS:
        return None
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError:
        return None


def copy_permissions(old: int, new: int) -> None:
    """Give the open file *new* the permissions of *old*, and its owner if this process may do that."""
    status = os.fstat(old)
    if HAS_OWNERS:
        os.fchmod(new, stat.S_IMODE(status.st_mode))
        try:
            os.fchown(new, status.st_uid, status.st_gid)
        except OSError:
            return


def user() -> int:
    """Return the number of the user; only where ``HAS_OWNERS``."""
    return os.geteuid()


def has_limited_room() -> bool:
    """Return whether the address space of this process is limited, as ``ulimit -v`` does it."""
    resource = _module("resource")
    return resource is not None and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def has_room(size: int) -> bool:
    """Return whether *size* bytes of address space are left; True where that cannot be asked."""
    if TWINS or not hasattr(mmap, "MAP_ANONYMOUS"):
        return True
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        mmap.mmap(-1, size, flags, mmap.PROT_READ).close()
    except OSError:
        return False
    return True
