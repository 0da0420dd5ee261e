"""Index files (sidecars), next to the log or in the user's cache: opening a log again does not scan it again.

A sidecar contains the scan as the format saves it: JSON data, then arrays. Its key is the size, the modification
time, and digests of head and tail of the log and of SAMPLES pieces all over it; a sidecar with another key is ignored.
Digests of all bytes are there, too: formats compare those of bytes that are used (``Source.digests``).
A checksum detects damage, and the format checks each position in it against the log before use, so no sidecar can make
a reader leave the log. But what it leaves out stays unseen: only files that nobody else can have written are used, and
``check``, ``recover`` and ``diff`` read the log itself.

    8   magic "LOGREELX"
    8   u64 length of the JSON text, which follows
    …   arrays, each at a multiple of 64 bytes after the JSON text
    4   u32 CRC-32 of all bytes before it
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import math
import mmap
import os
import threading
import zlib
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel._version import __version__
from logreel.errors import LogError
from logreel.io.arrays import aligned
from logreel.io.platform import map_file
from logreel.io.source import MapGuard, Source
from logreel.log.scan import Saved, Scan
from logreel.registry.format import Format
from logreel.registry.registry import INDEX_SUFFIX, find_format, is_worth_an_index, open_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"LOGREELX"
#: Maximum size of the cache folder; the least recently used files are removed first.
CACHE_BYTES = 2 << 30
#: A sidecar of this size is mapped, and one that was just written replaces the index in memory.
MAPPED_BYTES = 8 << 20
_ALIGN, _CHECK = 64, 4
#: Pieces of a log that are compared with a digest, and bytes of each: of the first and last byte, and evenly between.
SAMPLES, SAMPLE_BYTES = 256, 4096
#: A sidecar is at most so many times as large as its log, and so many bytes larger.
MAX_TIMES, _MORE = 4, 1 << 24


def cache_folder() -> Path | None:
    """Return the cache folder: ``$LOGREEL_CACHE``, else in the user's cache folder; None if set to ``off``."""
    chosen = os.environ.get("LOGREEL_CACHE")
    if chosen is not None:
        return None if chosen.lower() in ("", "off", "0") else Path(chosen)
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "logreel"


def _candidates(source: Source) -> Iterator[Path]:
    if source.path is not None:
        yield source.path.with_name(source.path.name + INDEX_SUFFIX)
        folder = cache_folder()
        if folder is not None and is_worth_an_index(source):
            yield folder / f"{source.identity}{INDEX_SUFFIX}"


def load(source: Source, fmt: Format) -> Scan | None:
    """Return the scan restored from a valid sidecar of *source*, or None."""
    like = None
    with contextlib.suppress(OSError):
        like = os.stat(source.path) if source.path is not None else None
    places = [place for place in _candidates(source) if os.path.exists(place)]
    if not places:
        return None
    # Most logs have no index.
    from logreel.io.trusted_file import open_trusted

    for place in places:
        file = open_trusted(place, like)
        if file is None:
            continue
        try:
            with file:
                saved = _read(file, source, fmt)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, MemoryError):
            continue
        scan = fmt.scan(source, saved) if saved is not None else None
        if scan is not None:
            source.is_restored = True
            return scan
        source.digests = None
    return None


def samples_of(source: Source) -> str:
    """Return the digest of pieces all over a log, or of all of it if it is no larger than these together."""
    digest = hashlib.blake2b(digest_size=16)
    if source.size <= SAMPLES * SAMPLE_BYTES:
        digest.update(source.view)
    else:
        for n in range(SAMPLES):
            at = (source.size - SAMPLE_BYTES) * n // (SAMPLES - 1)
            digest.update(source.view[at : at + SAMPLE_BYTES])
    return digest.hexdigest()


def _read(file: BufferedReader, source: Source, fmt: Format) -> Saved | None:
    """Return what a sidecar contains, or None if it is not one of this log; the cheapest comparisons come first."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(16)
    length = int.from_bytes(start[8:16], "little")
    # A file of any size costs nothing to make.
    if start[:8] != MAGIC or size > source.size * MAX_TIMES + _MORE or length > size - _CHECK - 16:
        return None
    text = file.read(length)
    head = json.loads(text)
    if (head["version"], head["format"], head["log"]) != (__version__, fmt.name, source.identity):
        return None
    base = _aligned(16 + length)
    if size != base + _size_of_arrays(head["arrays"]) + _CHECK or head["samples"] != samples_of(source):
        return None
    if size < MAPPED_BYTES:
        # What was compared cannot change or shrink later.
        # At the addresses that arrays of a mapped file have, modulo 64: kernels load numbers from them.
        data = aligned(size)[16 + length :]
        if file.readinto(data.data) != len(data):
            return None
    else:
        data = _mapped(file, source)[16 + length :]
    check = zlib.crc32(data[:-_CHECK].data, zlib.crc32(text, zlib.crc32(start)))
    if check != int.from_bytes(data[-_CHECK:].tobytes(), "little"):
        return None
    data, base = data[base - 16 - length :], 0
    end = len(data) - _CHECK
    from logreel.io.trusted_file import PieceDigests, piece_bytes

    digests = head["digests"]
    if len(digests) != -(-source.size // piece_bytes(source.size)) or not all(
        type(n) is int for n in digests
    ):
        return None
    source.digests = PieceDigests(source.data, digests)
    arrays = {}
    for name, (kind, shape, offset) in head["arrays"].items():
        dtype = np.dtype(kind)
        if dtype.kind not in "iu" or not all(isinstance(n, int) and n >= 0 for n in (*shape, offset)):
            return None
        # Python integers, since a product of forged dimensions must not overflow.
        count = 1
        for n in shape:
            count *= n
        if count * dtype.itemsize > end - base - offset:
            return None
        arrays[name] = (
            np.frombuffer(data.data, dtype, count, base + offset).reshape(shape)
            if count
            else np.zeros(shape, dtype)
        )
    return Saved(head["plain"], arrays)


def _mapped(file: BufferedReader, source: Source) -> NDArray[np.uint8]:
    """Return all bytes of a sidecar as a mapping, whose changes are reported as those of the log."""
    owner, _ = map_file(file.fileno())
    data = np.frombuffer(owner, np.uint8)
    if isinstance(owner, mmap.mmap):
        source.depends_on(MapGuard(data, owner, str(file.name), None, source.guard))
    return data


def _size_of_arrays(table: Mapping[str, Any]) -> int:
    """Return the bytes that the arrays take according to their table."""
    return max(
        (
            offset + _aligned(math.prod(shape) * np.dtype(kind).itemsize)
            for kind, shape, offset in table.values()
        ),
        default=0,
    )


def _aligned(n: int) -> int:
    return (n + _ALIGN - 1) // _ALIGN * _ALIGN


def _pieces(source: Source, fmt: Format, saved: Saved) -> Iterator[Any]:
    from logreel.io.trusted_file import digests_of

    table, offset = {}, 0
    arrays = {name: np.ascontiguousarray(a) for name, a in saved.arrays.items()}
    for name, a in arrays.items():
        table[name] = (a.dtype.str, a.shape, offset)
        offset += _aligned(a.nbytes)
    head: Mapping[str, Any] = {
        "version": __version__,
        "format": fmt.name,
        "log": source.identity,
        "samples": samples_of(source),
        "digests": digests_of(source.data),
        "plain": saved.plain,
        "arrays": table,
    }
    text = json.dumps(head).encode()
    yield MAGIC + len(text).to_bytes(8, "little") + text
    yield bytes(_aligned(16 + len(text)) - 16 - len(text))
    for a in arrays.values():
        yield a.reshape(-1).view(np.uint8)
        yield bytes(_aligned(a.nbytes) - a.nbytes)


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags, 0o644)


def _write(place: Path, source: Source, fmt: Format, saved: Saved, sync: bool = False) -> None:
    """Write a sidecar; *sync*: wait for the disk. Without that, a power failure may leave one that is refused."""
    name = place.with_name(f".{place.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        check = 0
        with open(name, "xb", opener=_opener) as out:
            for piece in _pieces(source, fmt, saved):
                check = zlib.crc32(piece, check)
                out.write(memoryview(piece))
            out.write(check.to_bytes(_CHECK, "little"))
            if sync:
                out.flush()
                os.fsync(out.fileno())
        source.check()
        name.replace(place)
        if sync:
            from logreel.io.atomic_file import sync_folder

            sync_folder(place.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            name.unlink()
        raise


def keep(source: Source, fmt: Format, scan: Scan) -> Scan:
    """Write *scan* to the cache if the log is large, ignoring failures; return it, mapped from there if it is large.

    The pages of a mapped index belong to the system, which may drop them, not to the process.
    """
    folder = cache_folder()
    if folder is None or source.path is None or not is_worth_an_index(source) or scan.saved is None:
        return scan
    if scan.encryption:
        # An index has topics, definitions and times.
        return scan
    from logreel.io.trusted_file import is_trusted_folder

    with contextlib.suppress(OSError, LogError):
        make_cache(folder)
        if not is_trusted_folder(folder):
            return scan
        _write(folder / f"{source.identity}{INDEX_SUFFIX}", source, fmt, scan.saved)
        prune(folder, INDEX_SUFFIX)
        if sum(array.nbytes for array in scan.saved.arrays.values()) >= MAPPED_BYTES:
            scan = load(source, fmt) or scan
            # It was made from the log just now.
            source.is_restored, source.digests = False, None
            # What was scanned holds itself by circles.
            gc.collect()
    return scan


def make_cache(folder: Path) -> None:
    """Create the cache folder, for the user alone, unless it is there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def prune(folder: Path, suffix: str) -> None:
    """Remove the least recently used files with *suffix* in the cache folder that are beyond CACHE_BYTES."""
    files = sorted(((p.stat().st_atime, p) for p in folder.glob(f"*{suffix}")), reverse=True)
    total = 0
    for _, path in files:
        total += path.stat().st_size
        if total > CACHE_BYTES:
            path.unlink(missing_ok=True)


def write(path: str, *, beside: bool = True, out: Path | None = None) -> Path:
    """Write the index of the log at *path*: next to it, to the cache, or to *out*; return the path of the file.

    Raises LogError if the format has no index to save or no cache folder exists, OSError if writing fails.
    """
    from logreel.io.trusted_file import is_trusted_folder

    source = open_source(path)
    if source.path is None:
        raise LogError("only a log in a regular file can have an index", path=source.name)
    fmt = find_format(source)
    scan = fmt.scan(source, None)
    if scan is not None and scan.encryption:
        raise LogError("is encrypted: an index would hold some of it without encryption", path=source.name)
    if scan is None or scan.saved is None:
        raise LogError(f"format {fmt.name} keeps no index", path=source.name)
    if out is None and beside:
        out = source.path.with_name(source.path.name + INDEX_SUFFIX)
    elif out is None:
        folder = cache_folder()
        if folder is None:
            raise LogError("there is no cache folder: LOGREEL_CACHE is off", path=source.name)
        make_cache(folder)
        out = folder / f"{source.identity}{INDEX_SUFFIX}"
    if not is_trusted_folder(out.parent, os.stat(source.path)):
        raise LogError(
            "others can write to the folder of the index, so that it would not be used",
            path=str(out),
            hint="take the right to write to the folder away from others, as with chmod go-w",
        )
    _write(out, source, fmt, scan.saved, sync=True)
    return out
