"""Exclusive unfinished files: locked against other writers, created without following links."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from logreel.errors import LogError
from logreel.io.platform import FLAGS, NO_FOLLOW, NO_WAIT, lock

_FLAGS = os.O_RDWR | FLAGS | NO_FOLLOW
#: Number of attempts: another process may finish or remove the file between two steps.
_TRIES = 100


def create_locked(path: Path, force: bool) -> int:
    """Create the empty file *path*, locked until the returned handle is closed.

    force  replace an unfinished file of this name, unless another writer has locked it

    The lock ends with the process in any case. Raises LogError if the name exists.
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
        # Another writer with *force* removed it before it was locked.
        os.close(handle)
    raise LogError("cannot be created: others keep creating and removing it", path=os.fspath(path))


def is_at(handle: int, path: Path) -> bool:
    """Return whether *path* still names the open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False


def _clear(path: Path) -> None:
    """Remove an unfinished file that is not locked, or a link without following it."""
    try:
        handle = os.open(path, _FLAGS | NO_WAIT)
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
    """Return the error for a *path* that cannot be created."""
    if path.is_symlink():
        return LogError("is a symbolic link, which is not followed: remove it", path=os.fspath(path))
    with contextlib.suppress(OSError):
        handle = os.open(path, _FLAGS | NO_WAIT)
        try:
            if not lock(handle):
                return _recording(path)
        finally:
            os.close(handle)
    text = "exists: a recording that was not finished, which 'logreel recover' can save"
    return LogError(text, path=os.fspath(path))
