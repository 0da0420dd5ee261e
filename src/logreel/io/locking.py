"""Unfinished files that belong to one writer: nobody else's bytes get into them, and no link leads elsewhere."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from logreel.errors import LogError

try:
    import fcntl
except ImportError:  # pragma: no cover - systems without it have no such locks
    fcntl = None  # type: ignore[assignment]

#: What systems of files answer that have no locks.
_NO_LOCKS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL}
_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
#: Others may finish or remove the file between two steps, but not for ever.
_TRIES = 100


def create_locked(path: Path, force: bool) -> int:
    """A handle of the empty file *path*, which belongs to it until it is closed.

    force  what was not finished under this name is replaced, unless somebody still writes it

    The lock ends with the process, however that ends. Raises LogError where the name is taken.
    """
    for _ in range(_TRIES):
        try:
            handle = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            if not force:
                raise _taken(path) from None
            _clear(path)
            continue
        if not lock(handle):
            os.close(handle)
            raise _recording(path)
        if is_at(handle, path):
            return handle
        # Somebody with *force* removed it before it was locked.
        os.close(handle)
    raise LogError("cannot be created: others keep creating and removing it", path=os.fspath(path))


def lock(handle: int) -> bool:
    """Lock an open file for this handle alone; False where another one holds it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether *path* still names the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False


def _clear(path: Path) -> None:
    """Remove an unfinished file that nobody writes, or a link, which is not followed."""
    try:
        handle = os.open(path, _FLAGS | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno != errno.ELOOP and not path.is_symlink():
            raise LogError(f"cannot be replaced: {error.strerror}", path=os.fspath(path)) from None
        path.unlink(missing_ok=True)
        return
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise LogError("is not a regular file", path=os.fspath(path))
        if not lock(handle):
            raise _recording(path)
        if is_at(handle, path):
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _recording(path: Path) -> LogError:
    text = "is being written by another recorder: let it finish, or choose another name"
    return LogError(text, path=os.fspath(path))


def _taken(path: Path) -> LogError:
    """Why *path* cannot be created."""
    if path.is_symlink():
        return LogError("is a symbolic link, which is not followed: remove it", path=os.fspath(path))
    with contextlib.suppress(OSError):
        handle = os.open(path, _FLAGS | getattr(os, "O_NONBLOCK", 0))
        try:
            if not lock(handle):
                return _recording(path)
        finally:
            os.close(handle)
    text = "exists: a recording that was not finished, which 'logreel recover' can save"
    return LogError(text, path=os.fspath(path))
