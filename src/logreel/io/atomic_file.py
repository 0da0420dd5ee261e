"""New files: locked while they are written, named when they are complete, never replacing others unless requested."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from logreel.errors import LogError, UsageError
from logreel.io.platform import FLAGS, NO_FOLLOW, NO_WAIT, lock, open_folder, replace

#: Name of a log read from standard input.
STDIN = "<stdin>"
_NO_SYNC = {
    errno.EINVAL,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
    errno.EBADF,
    errno.EACCES,
    errno.EROFS,
}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
_FLAGS = os.O_RDWR | FLAGS | NO_FOLLOW
#: Number of attempts: another process may finish or remove the file between two steps.
_TRIES = 100


def target_of(path: str | os.PathLike[str], follow: bool = False) -> Path:
    """Return the resolved *path*; create its folder if missing.

    follow  True: resolve a link of that name; False: the link itself, which a new file would replace
    """
    head, tail = os.path.split(os.fspath(path))
    named = not follow and tail not in ("", os.curdir, os.pardir)
    target = Path(os.path.join(os.path.realpath(head), tail) if named else os.path.realpath(path))
    if not target.parent.is_dir():
        raise LogError("cannot be written: there is no such folder as its parent", path=os.fspath(path))
    return target


def keep_sources(path: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> None:
    """Raise UsageError if *path* is one of the files that are read, compared by device and inode, through links too.

    sources  names as in ``Log.name``; names that are not paths, such as ``<bytes>``, are ignored
    """
    with contextlib.suppress(OSError, ValueError):
        found = os.stat(path)
        for source in sources:
            # Standard input may be a file that the shell has opened.
            with contextlib.suppress(OSError, ValueError):
                if os.path.samestat(found, os.stat(0 if source == STDIN else source)):
                    raise UsageError("input and output are the same file", path=os.fspath(path))


def exists(path: str | os.PathLike[str]) -> LogError:
    """Return the error for a path that exists."""
    return LogError(
        "exists already",
        path=os.fspath(path),
        hint="pass force=True to replace it",
    )


def sync_file(path: Path) -> None:
    """Write the content of a closed file to disk; raises OSError if the disk does not take it."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Write the entries of *folder* to disk; raises OSError if the disk does not take them.

    The files in it have their names by then, but may lose them at a power failure.
    """
    handle = open_folder(folder)
    if handle is None:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems cannot sync folders.
        if error.errno not in _NO_SYNC:
            raise OSError(error.errno, error.strerror, os.fspath(folder)) from None
    finally:
        os.close(handle)


def sync_name(target: Path, path: str | os.PathLike[str]) -> None:
    """Write the name of a complete file or folder to disk; raises LogError, which says that it is there, if not."""
    try:
        sync_folder(target.parent)
    except OSError as error:
        raise LogError(
            f"is complete, but the disk did not take its name ({error.strerror}): "
            "it may be missing after a power failure",
            path=os.fspath(path),
        ) from error


def temporary_for(target: Path) -> Path:
    """Return a hidden name for a temporary file or folder in the folder of *target*."""
    return target.with_name(f".logreel-{os.urandom(6).hex()}.partial")


def replace_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 text in place of the one at *path*, whole or not at all; raises OSError, else LogError."""
    temporary = temporary_for(path)
    try:
        with open(temporary, "x", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        replace(temporary, path)
        sync_name(path, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def make_folders(folder: Path) -> None:
    """Create *folder*, and those above it that are missing; write their names to disk, without which files are lost."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync_folder(one.parent)


def name_it(temporary: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Name the file *target* unless that exists meanwhile; a hard link detects this, a rename would not.

    The disk has the new name before the old one is removed: at a power failure, the file has one of both, or both.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise exists(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():
            raise exists(path) from None
        os.rename(temporary, target)
    else:
        try:
            sync_name(target, path)
        finally:
            # The file has one name, whatever the disk says.
            temporary.unlink()


#: Arguments of renameat2 (linux/fs.h, fcntl.h).
_EXCHANGE, _AT_FDCWD = 2, -100
_NOT_POSSIBLE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def exchange(one: Path, two: Path) -> bool:
    """Exchange the names of two existing files or folders atomically; return False where the system cannot do that.

    Raises OSError if it fails for another reason.
    """
    if not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    paths = os.fsencode(one), os.fsencode(two)
    if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], ctypes.c_uint(_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_POSSIBLE:
        return False
    raise OSError(code, os.strerror(code), os.fspath(two))


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
