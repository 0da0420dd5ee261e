"""New files and folders that appear whole or not at all, and never in place of another unless told so."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from logreel.errors import LogError
from logreel.io.atomic_file import exists, name_it, sync_folder, target_of

if TYPE_CHECKING:
    import pyarrow as pa

#: Names the files of a folder that logreel wrote; its presence is what allows ``force`` to replace the
#: folder.
MANIFEST, MANIFEST_KEY = "manifest.json", "logreel_manifest"


def _temporary(target: Path) -> Path:
    return target.with_name(f".logreel-{secrets.token_hex(6)}.partial")


@contextlib.contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """A new binary file at *path*, its ``name``, that is on disk when the block ends; it must not exist."""
    with open(path, "xb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def sync_all() -> None:
    """Have everything on disk that was written so far: for thousands of files far quicker than one by one."""
    # Not every system offers it.
    getattr(os, "sync", lambda: None)()


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str], force: bool = False) -> Iterator[IO[bytes]]:
    """A binary file that gets the name *path* when the block ends well; else nothing is left.

    force  replace a file of that name

    Raises LogError if there is one and *force* is not given, or where *path* is something else than a file.
    """
    target = target_of(path)
    if target.is_dir():
        raise LogError("is a folder, not a file", path=os.fspath(path))
    if target.exists() and not target.is_file():
        raise LogError("is not a regular file", path=os.fspath(path))
    if os.path.lexists(target) and not force:
        raise exists(path)
    temporary = _temporary(target)
    try:
        with synced(temporary) as out:
            yield out
        if force:
            os.replace(temporary, target)
        else:
            name_it(temporary, target, path)
        sync_folder(target.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def new_table(
    path: str | os.PathLike[str],
    force: bool,
    write: Callable[[IO[bytes], pa.Schema, Iterable[pa.RecordBatch]], object],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> int:
    """Have *write* make a ``new_file`` of *batches*; gives how many rows they had."""
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    with new_file(path, force) as out:
        write(out, schema, counted())
    return rows


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str], force: bool = False, keep: Path | None = None) -> Iterator[Path]:
    """A folder to fill, which gets the name *path* when the block ends well; else nothing is left.

    force  replace a folder of that name, if logreel wrote it
    keep   a file that must survive: it must not lie in a folder to be replaced

    An empty folder of that name is taken over. Raises LogError for another one.
    """
    target = target_of(path, follow=True)
    if target.exists() and not target.is_dir():
        raise LogError("is a file, not a folder", path=os.fspath(path))
    if target.is_dir() and any(target.iterdir()):
        if not force:
            raise exists(path)
        if not is_ours(target):
            raise LogError("is a folder that logreel did not write: not replaced", path=os.fspath(path))
        if keep is not None and Path(os.path.realpath(keep)).is_relative_to(target):
            raise LogError("holds the log itself: not replaced", path=os.fspath(path))
    temporary = _temporary(target)
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        _install(temporary, target, path, force)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _install(temporary: Path, target: Path, path: str | os.PathLike[str], force: bool) -> None:
    try:
        os.rename(temporary, target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not force:
            raise exists(path) from None
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
