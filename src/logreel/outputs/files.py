"""New files and folders that appear complete or not at all, and replace others only on request."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from logreel.errors import LogError
from logreel.io.append_file import ACTIVE
from logreel.io.atomic_file import (
    exists,
    keep_sources,
    name_it,
    sync_folder,
    sync_name,
    target_of,
    temporary_for,
)
from logreel.io.new_folder import begun_folder, free_folder, install
from logreel.io.output_stream import OutputStream
from logreel.log.scan import Attachment

if TYPE_CHECKING:
    import pyarrow as pa


#: File with the content of a folder that logreel wrote, and the key in it that marks such a folder; ``force``
#: replaces only folders with this file.
MANIFEST, MANIFEST_KEY = "manifest.json", "logreel_manifest"


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
    temporary = temporary_for(target)
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
    """Yield a folder as ``io.new_folder`` does; *force* replaces one that logreel wrote."""
    with begun_folder(path, force, keep, has_manifest) as folder:
        yield folder


class GrowingFolder:
    """A new folder whose files can be seen while they are written: ``x.csv.active`` until it is complete.

    force  replace an existing folder, complete or not, if logreel wrote it
    keep   as for ``new_folder``

    Raises LogError for any other existing folder that is not empty, or file.
    """

    def __init__(self, path: str | os.PathLike[str], force: bool = False, keep: Iterable[str] = ()) -> None:
        self._path, self._force = path, force
        self._target = free_folder(path, force, keep, has_manifest)
        self.place = self._target.with_name(self._target.name + ACTIVE)
        free_folder(self.place, force, keep, has_manifest)
        if self.place.exists():
            shutil.rmtree(self.place)
        self.place.mkdir()
        # Marks the folder as one that logreel wrote.
        (self.place / MANIFEST).write_text(json.dumps({MANIFEST_KEY: 1, "complete": False}) + "\n")

    def finish(self) -> None:
        """Rename the folder to its final name."""
        sync_folder(self.place)
        install(self.place, self._target, self._path, self._force)
        sync_name(self._target, self._path)

    def discard(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.place, ignore_errors=True)


def has_manifest(folder: Path) -> bool:
    """Return whether *folder* contains a manifest that logreel wrote."""
    try:
        data = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and MANIFEST_KEY in data


#: Stems of file names that are reserved: device names of Windows, and the manifest of a folder.
_TAKEN = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{i}" for i in range(10)), *(f"lpt{i}" for i in range(10)), "manifest"]
)
#: Maximum bytes of a file name, accepted by all common file systems and archives.
MAX_BYTES = 200
_DIGEST = 10


def _clean(name: str) -> tuple[str, bool]:
    """Return *name* with only safe characters, and whether other characters were lost.

    Common names stay readable without loss: ``/imu/data`` is ``imu.data``, ``accel[1]`` is ``accel-1``.
    """
    text = re.sub(r"\[(\d+)\]", r"-\1", name.removeprefix("/").replace("/", "."))
    text = re.sub(r"^~", "_", text)
    clean = re.sub(r"[^A-Za-z0-9_.@+-]", "_", text)
    lost = clean != text
    # A leading dot hides a file, a leading dash looks like an option, a dot before the suffix is confusing.
    safe = re.sub(r"^[.-]+|\.+$", "_", clean) or "_"
    if safe.partition(".")[0].lower() in _TAKEN:
        safe = f"_{safe}"
    return safe, lost or safe not in (clean, f"_{clean}")


def _with_digest(name: str, base: str, room: int) -> str:
    """Return *base*, shortened to *room* bytes, with a digest of *name* at the end."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_DIGEST // 2).hexdigest()
    return f"{base[: room - _DIGEST - 1]}-{digest}"


def file_names(names: Iterable[str], suffix: str = "", taken: set[str] | None = None) -> dict[str, str]:
    """Return a safe file name with *suffix* for each of *names*.

    taken  lower-case file names that others have; the new ones are added

    Safe means: only ASCII letters, digits and ``_ . @ + -``, not hidden, no path, no device name, at most MAX_BYTES
    bytes. Different names get different file names, also without regard to case. A name that lost characters, or that
    would clash, ends with a digest of itself.
    """
    cleaned = {name: _clean(name) for name in names}
    count: dict[str, int] = {}
    for base, _ in cleaned.values():
        count[base.lower()] = count.get(base.lower(), 0) + 1
    room = MAX_BYTES - len(suffix)
    by_name: dict[str, str] = {}
    taken = set() if taken is None else taken
    for name, (base, lost) in cleaned.items():
        stem = base
        if lost or count[base.lower()] > 1 or len(base) > room:
            stem = _with_digest(name, base, room)
        n = 1
        while f"{stem}{suffix}".lower() in taken:
            n += 1
            stem = _with_digest(f"{name}\0{n}", base, room)
        taken.add(f"{stem}{suffix}".lower())
        by_name[name] = stem + suffix
    return by_name


def attachment_names(names: Iterable[str]) -> dict[str, str]:
    """Return file names as ``file_names`` does, with the suffix of each name kept: ``replay.txt``.

    Names with different suffixes get different file names, too, also where cleaning gives them the same suffix.
    """
    by_attachment: dict[str, str] = {}
    taken: set[str] = set()
    groups: dict[str, list[str]] = {}
    for name in names:
        match = re.search(r"\.[A-Za-z0-9]{1,10}$", name)
        groups.setdefault(match[0].lower() if match and match.start() else "", []).append(name)
    for suffix, members in groups.items():
        stems = {name[: len(name) - len(suffix)]: name for name in members}
        if len(stems) < len(members):
            stems, suffix = {name: name for name in members}, ""
        by_attachment |= {stems[stem]: file for stem, file in file_names(stems, suffix, taken).items()}
    return by_attachment


def extract(
    attachments: Iterable[Attachment],
    folder: str | os.PathLike[str],
    force: bool = False,
    all_names: Iterable[str] | None = None,
    sources: Iterable[str] = (),
) -> dict[str, str]:
    """Write each attachment to a file in *folder*; return the paths by attachment name.

    folder     created if it does not exist
    force      replace existing files
    all_names  names of all attachments of the log, so that an attachment gets the same file name when it is
               extracted alone
    sources    names of files that are never replaced: those of the log

    File names are safe for any attachment name, see ``attachment_names``. Raises LogError for an existing file.
    """
    contents = list(attachments)
    names = attachment_names([a.name for a in contents] if all_names is None else all_names)
    os.makedirs(folder, exist_ok=True)
    paths = {content.name: os.path.join(folder, names[content.name]) for content in contents}
    sources = list(sources)
    for path in paths.values():
        keep_sources(path, sources)
        if not force and os.path.lexists(path):
            # Before anything is written.
            raise exists(path)
    written = {}
    for content in contents:
        path = paths[content.name]
        with new_file(path, force) as out:
            out.write(content.read())
        written[content.name] = path
    return written
