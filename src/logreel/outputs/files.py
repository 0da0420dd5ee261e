"""New files and folders that appear whole or not at all, and never in place of another unless told so."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from logreel.errors import LogError

#: Names the files of a folder that logreel wrote; its presence is what allows ``force`` to replace the
#: folder.
MANIFEST, MANIFEST_KEY = "manifest.json", "logreel_manifest"

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def _target(path: str | os.PathLike[str]) -> Path:
    """Where *path* leads, links followed, after making sure that its folder is there."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise LogError("cannot be written: there is no such folder as its parent", path=os.fspath(path))
    return target


def _temporary(target: Path) -> Path:
    return target.with_name(f".logreel-{secrets.token_hex(6)}.partial")


def _sync_folder(folder: Path) -> None:
    # Not every system lets a folder be opened; the rename itself has happened by then.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """A new binary file at *path* that is on disk when the block ends; it must not exist."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    with os.fdopen(handle, "wb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def sync_all() -> None:
    """Have everything on disk that was written so far: for thousands of files far quicker than one by one."""
    # Not every system offers it.
    getattr(os, "sync", lambda: None)()


def _exists(path: str | os.PathLike[str]) -> LogError:
    return LogError("exists already, and is replaced only with --force", path=os.fspath(path))


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], force: bool = False) -> Iterator[IO[bytes]]:
    """A binary file that gets the name *path* when the block ends well; else nothing is left.

    force  replace a file of that name

    Raises LogError if there is one and *force* is not given, or where *path* is something else than a file.
    """
    target = _target(path)
    if target.is_dir():
        raise LogError("is a folder, not a file", path=os.fspath(path))
    if target.exists() and not target.is_file():
        raise LogError("is not a regular file", path=os.fspath(path))
    if target.exists() and not force:
        raise _exists(path)
    temporary = _temporary(target)
    try:
        with synced(temporary) as out:
            yield out
        if force:
            os.replace(temporary, target)
        else:
            _name(temporary, target, path)
        _sync_folder(target.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def _name(temporary: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Give the file its name unless something has taken it meanwhile, which a link alone notices."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if target.exists():
            raise _exists(path) from None
        os.rename(temporary, target)


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str], force: bool = False, keep: Path | None = None) -> Iterator[Path]:
    """A folder to fill, which gets the name *path* when the block ends well; else nothing is left.

    force  replace a folder of that name, if logreel wrote it
    keep   a file that must survive: it must not lie in a folder to be replaced

    An empty folder of that name is taken over. Raises LogError for another one.
    """
    target = _target(path)
    if target.exists() and not target.is_dir():
        raise LogError("is a file, not a folder", path=os.fspath(path))
    if target.is_dir() and any(target.iterdir()):
        if not force:
            raise _exists(path)
        if not is_ours(target):
            raise LogError("is a folder that logreel did not write: not replaced", path=os.fspath(path))
        if keep is not None and Path(os.path.realpath(keep)).is_relative_to(target):
            raise LogError("holds the log itself: not replaced", path=os.fspath(path))
    temporary = _temporary(target)
    temporary.mkdir()
    try:
        yield temporary
        _sync_folder(temporary)
        _install(temporary, target, path, force)
        _sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _install(temporary: Path, target: Path, path: str | os.PathLike[str], force: bool) -> None:
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not force:
            raise _exists(path) from None
        old = _temporary(target)
        os.rename(target, old)
        try:
            os.rename(temporary, target)
        except BaseException:
            os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)


def is_ours(folder: Path) -> bool:
    """True if *folder* holds a manifest that logreel wrote."""
    try:
        data = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and MANIFEST_KEY in data
