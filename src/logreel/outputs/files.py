"""New files and folders that appear complete or not at all, and replace others only on request."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from logreel.errors import LogError
from logreel.io.append_file import ACTIVE
from logreel.io.atomic_file import exchange, exists, name_it, sync_folder, sync_name, target_of
from logreel.io.output_stream import OutputStream

if TYPE_CHECKING:
    import pyarrow as pa

#: File with the content of a folder that logreel wrote, and the key in it that marks such a folder; ``force``
#: replaces only folders with this file.
MANIFEST, MANIFEST_KEY = "manifest.json", "logreel_manifest"


def _temporary(target: Path) -> Path:
    """Return a hidden name for a temporary file in the folder of *target*."""
    return target.with_name(f".logreel-{os.urandom(6).hex()}.partial")


@contextlib.contextmanager
def synced(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new binary file at *path*, which must not exist; it is synced to disk when the block ends."""
    with open(path, "xb") as out:
        yield out
        out.flush()
        os.fsync(out.fileno())


def sync_all() -> None:
    """Sync all written data to disk; for thousands of files much faster than syncing each of them."""
    # Not available on every system.
    getattr(os, "sync", lambda: None)()


@contextlib.contextmanager
def new_file(
    path: str | os.PathLike[str],
    force: bool = False,
    stream: OutputStream | None = None,
    seeks: bool = False,
) -> Iterator[IO[bytes]]:
    """Yield a binary file that is renamed to *path* after the block; after an exception it is removed.

    force   replace an existing file
    stream  written instead of a file at *path*
    seeks   True: a stream gets the content of a temporary file after the block, which may seek

    Raises LogError if *path* exists without *force*, or is not a regular file.
    """
    if stream is not None:
        if not seeks:
            yield cast("IO[bytes]", stream)
            return
        with tempfile.TemporaryDirectory(prefix="logreel-") as folder:
            # Some writers open the file by its name.
            with open(os.path.join(folder, "output"), "w+b") as out:
                yield out
                out.flush()
            with open(os.path.join(folder, "output"), "rb") as made:
                shutil.copyfileobj(made, stream, 1 << 20)
        return
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
        sync_name(target, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def new_table(
    path: str | os.PathLike[str],
    force: bool,
    write: Callable[[IO[bytes], pa.Schema, Iterable[pa.RecordBatch]], object],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    stream: OutputStream | None = None,
) -> int:
    """Write *batches* with *write* to a ``new_file``; return the number of rows."""
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    with new_file(path, force, stream) as out:
        write(out, schema, counted())
    return rows


@contextlib.contextmanager
def new_folder(path: str | os.PathLike[str], force: bool = False, keep: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a folder that is renamed to *path* after the block; after an exception it is removed.

    force  replace an existing folder, if logreel wrote it
    keep   names of files that must not be in a folder that is replaced, as in ``Log.name``

    An existing empty folder is replaced. Raises LogError for any other existing folder or file.
    """
    target = _free_folder(path, force, keep)
    temporary = _temporary(target)
    temporary.mkdir()
    try:
        yield temporary
        sync_folder(temporary)
        _install(temporary, target, path, force)
        sync_name(target, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


class GrowingFolder:
    """A new folder whose files can be seen while they are written: ``x.csv.active`` until it is complete.

    force  replace an existing folder, complete or not, if logreel wrote it
    keep   as for ``new_folder``

    Raises LogError for any other existing folder that is not empty, or file.
    """

    def __init__(self, path: str | os.PathLike[str], force: bool = False, keep: Iterable[str] = ()) -> None:
        self._path, self._force = path, force
        self._target = _free_folder(path, force, keep)
        self.place = self._target.with_name(self._target.name + ACTIVE)
        _free_folder(self.place, force, keep)
        if self.place.exists():
            shutil.rmtree(self.place)
        self.place.mkdir()
        # Marks the folder as one that logreel wrote.
        (self.place / MANIFEST).write_text(json.dumps({MANIFEST_KEY: 1, "complete": False}) + "\n")

    def finish(self) -> None:
        """Rename the folder to its final name."""
        sync_folder(self.place)
        _install(self.place, self._target, self._path, self._force)
        sync_name(self._target, self._path)

    def discard(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.place, ignore_errors=True)


def _free_folder(path: str | os.PathLike[str], force: bool, keep: Iterable[str]) -> Path:
    """Return the folder to be written at *path*; raises LogError if something is there that must not be replaced."""
    target = target_of(path, follow=True)
    if target.exists() and not target.is_dir():
        raise LogError("is a file, not a folder", path=os.fspath(path))
    if target.is_dir() and any(target.iterdir()):
        if not force:
            raise exists(path)
        if not has_manifest(target):
            raise LogError("is a folder that logreel did not write: not replaced", path=os.fspath(path))
        if any(Path(os.path.realpath(name)).is_relative_to(target) for name in keep):
            raise LogError("holds the log itself: not replaced", path=os.fspath(path))
    return target


def _install(temporary: Path, target: Path, path: str | os.PathLike[str], force: bool) -> None:
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
            old = _temporary(target)
            os.rename(target, old)
            try:
                os.rename(temporary, target)
            except BaseException:
                os.rename(old, target)
                raise
        # At a power failure, the old folder must not be gone before the disk has the name of the new one.
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)


def has_manifest(folder: Path) -> bool:
    """Return whether *folder* contains a manifest that logreel wrote."""
    try:
        data = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and MANIFEST_KEY in data
