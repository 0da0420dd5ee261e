"""New folders that appear complete or not at all, and replace others only on request."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from logreel.errors import LogError
from logreel.io.atomic_file import exchange, exists, sync_folder, sync_name, target_of, temporary_for


@contextlib.contextmanager
def begun_folder(
    path: str | os.PathLike[str], force: bool, keep: Iterable[str], is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """Yield a folder that is renamed to *path* after the block; after an exception it is removed.

    force    replace an existing folder
    keep     names of files that must not be in a folder that is replaced, as in ``Log.name``
    is_ours  returns whether a folder is one that may be replaced

    An existing empty folder is replaced. Raises LogError for any other existing folder or file.
    """
    target = free_folder(path, force, keep, is_ours)
    temporary = temporary_for(target)
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        install(temporary, target, path, force)
        sync_name(target, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def free_folder(
    path: str | os.PathLike[str], force: bool, keep: Iterable[str], is_ours: Callable[[Path], bool]
) -> Path:
    """Return the folder to be written at *path*; raises LogError if something is there that must not be replaced."""
    target = target_of(path, follow=True)
    if target.exists() and not target.is_dir():
        raise LogError("is a file, not a folder", path=os.fspath(path))
    if target.is_dir() and any(target.iterdir()):
        if not force:
            raise exists(path)
        if not is_ours(target):
            raise LogError("is a folder that logreel did not write: not replaced", path=os.fspath(path))
        if any(Path(os.path.realpath(name)).is_relative_to(target) for name in keep):
            raise LogError("holds the log itself: not replaced", path=os.fspath(path))
    return target


def install(temporary: Path, target: Path, path: str | os.PathLike[str], force: bool) -> None:
    """Rename *temporary* to *target*; with *force*, replace a folder that is not empty."""
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not force:
            raise exists(path) from None
        old = temporary
        if not exchange(temporary, target):
            old = temporary_for(target)
            os.rename(target, old)
            try:
                os.rename(temporary, target)
            except BaseException:
                os.rename(old, target)
                raise
        # At a power failure, the old folder must not be gone before the disk has the name of the new one.
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
