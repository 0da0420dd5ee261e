"""The write-ahead log of an SQLite database: transactions that were committed, and not yet copied into the database.

It lies beside the database, as ``x.db3-wal``. It is read where it is and never changed; "WAL File Format" of SQLite
(sqlite.org/walformat.html) describes it.
"""

from __future__ import annotations

import os
import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, Problem
from logreel.io.growing_file import TIME_STEP
from logreel.io.platform import is_range_locked, map_file, map_to_change
from logreel.io.source import Buffer, Source

#: Bytes of the headers of the file and of each frame.
_HEAD, _FRAME = 32, 24
_BIG, _LITTLE = 0x377F0683, 0x377F0682
SUFFIX, JOURNAL = "-wal", "-journal"
#: Bytes that SQLite locks while it writes the pages of a transaction, and how many: https://sqlite.org/lockingv3.html
_EXCLUSIVE = 0x40000002, 510
#: Where the first page has the counter of changes and the number of pages, and their bytes.
_COUNTERS = 24, 8


def with_wal(source: Source, problems: list[Problem]) -> Buffer:
    """Return the bytes of a database with the committed pages of the write-ahead log beside it.

    They are put together in a temporary file; without a log, the bytes are those of *source*, or of a copy if it grows.
    What the log has behind the last commit is a Problem ``wal`` with its bytes, and a hot journal, which nothing reads,
    one ``journal``. Raises LogError if the recorder writes a transaction, or copies pages of a growing log, meanwhile.
    """
    if source.file is None:
        return source.data
    # Rows are added to pages that are there, and to the log, so the size of the database does not tell.
    source.beside += [path for path in (source.file, source.file + SUFFIX) if path not in source.beside]
    journal = source.file + JOURNAL
    if _size(journal):
        text = "a rollback journal lies beside the database: its last transaction may be there in part"
        problems.append(Problem("journal", 0, 0, False, text))
    modified = _modified(source)
    log = _log_beside(source)
    # Within a step of the times of files, pages that are copied while the log is read would not be noticed below.
    if source.grows and len(log) and time.time_ns() - modified[0] < TIME_STEP:
        raise LogError("pages were copied from the write-ahead log just now", path=source.name)
    data = _merged(source, log, problems) if len(log) else None
    if data is None:
        data = _copied(source) if source.grows else source.data
    if source.grows and len(log) and _modified(source) != modified:
        raise LogError("pages are being copied from the write-ahead log", path=source.name)
    return data


def _copied(source: Source) -> Buffer:
    """Return a copy of a growing database as it is between two transactions: SQLite changes pages where they are.

    A transaction changes the counter in the first page first, and holds a lock of other processes until all is there.
    """
    before = source.read(*_COUNTERS)
    # A recorder that gives the complete file another name has written all of it.
    with suppress(FileNotFoundError), open(str(source.file), "rb") as file:
        if is_range_locked(file.fileno(), *_EXCLUSIVE):
            raise LogError("a transaction is being written", path=source.name)
    pages = _spooled(source.data)
    if source.read(*_COUNTERS) != before:
        raise LogError("a transaction was written meanwhile", path=source.name)
    pages.flags.writeable = False
    return pages


def refuse_transactions(path: str) -> None:
    """Raise LogError if transactions of an older database lie where SQLite would apply them to a new one at *path*."""
    for end in (SUFFIX, JOURNAL):
        if _size(path + end):
            raise LogError(
                "belongs to an older database: SQLite would apply it to the new one",
                path=path + end,
                hint="remove it, or write to another name",
            )


def _size(path: str) -> int:
    """Return the size of a file; 0 if there is none, also when SQLite removes it just now."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _modified(source: Source) -> tuple[int, bytes]:
    """Return what changes of a growing database and its write-ahead log when pages are copied from this."""
    if source.file is None or not source.grows:
        return 0, b""
    try:
        with open(source.file + SUFFIX, "rb") as file:
            return os.stat(source.file).st_mtime_ns, file.read(_HEAD)
    except OSError:
        return 0, b""


def _log_beside(source: Source) -> Buffer:
    """Return the bytes of the write-ahead log beside a database; none if there is none."""
    try:
        with open(f"{source.file}{SUFFIX}", "rb") as file:
            # The recorder cuts that of a growing one, and what is mapped beyond the end must not be read.
            if source.grows or not os.fstat(file.fileno()).st_size:
                return np.frombuffer(file.read(), np.uint8)
            return np.frombuffer(map_file(file.fileno())[0], np.uint8)
    except OSError:
        return np.zeros(0, np.uint8)


def heads(source: Source, size: int) -> Iterator[bytes]:
    """Yield the first bytes of a database, and of the write-ahead log beside it."""
    yield source.read(0, size)
    if source.file is not None:
        with suppress(OSError), open(source.file + SUFFIX, "rb") as file:
            yield file.read(size)


def _merged(source: Source, log: Buffer, problems: list[Problem]) -> Buffer | None:
    """Return a copy of a database with the pages of its log; None if the log has none that count."""
    name, end = "the write-ahead log beside the database", source.size
    frames = _Frames(log)
    if frames.error:
        problems.append(Problem("wal", end, len(log), True, f"{name} is not read: {frames.error}"))
        return None
    if frames.rest:
        text = f"{name} has {frames.rest} bytes of a transaction that was not finished, or damaged"
        problems.append(Problem("wal", end, frames.rest, True, text))
    if not len(frames.page):
        return None
    text = f"{len(frames.page)} pages are from {name}: the recorder was not closed"
    problems.append(Problem("wal", end, 0, False, text))
    size, total = frames.size, frames.count * frames.size
    pages = _spooled(source.data[:total], total)
    for page, at in zip(frames.page.tolist(), frames.at.tolist(), strict=True):
        if page <= frames.count:
            pages[(page - 1) * size : page * size] = log[at : at + size]
    pages.flags.writeable = False
    return pages


def _spooled(data: Buffer, size: int | None = None) -> Buffer:
    """Return bytes in a temporary file that can be changed, with zeros up to *size*."""
    size = len(data) if size is None else size
    if not size:
        return np.zeros(0, np.uint8)
    with tempfile.TemporaryFile(prefix="logreel-") as spool:
        spool.write(data.data)
        spool.truncate(size)
        return np.frombuffer(map_to_change(spool.fileno(), size), np.uint8)


class _Frames:
    """The committed frames of a write-ahead log.

    size   bytes of a page
    page   int64[n], number of the page in each frame, *at* where its bytes are
    count  pages that the database has after the last commit
    rest   bytes of valid frames behind the last commit, and of damaged ones
    error  why nothing is read; empty: something is
    """

    def __init__(self, log: Buffer) -> None:
        self.page = self.at = np.zeros(0, np.int64)
        self.size = self.count = self.rest = 0
        self.error = ""
        head = log[:_HEAD].tobytes()
        magic, version, size = struct.unpack_from(">III", head.ljust(_HEAD, b"\0"))
        if magic not in (_BIG, _LITTLE) or version != 3007000:
            self.error = "its header is damaged"
            return
        self.size = 1 << 16 if size == 1 else size
        if self.size < 512 or self.size > 1 << 16 or self.size & (self.size - 1):
            self.error = f"it states pages of {size} bytes"
            return
        word_type = ">u4" if magic == _BIG else "<u4"
        if _sums(log[None, :24], word_type, (0, 0))[0] != struct.unpack_from(">II", head, 24):
            self.error = "the checksum of its header is wrong"
            return
        self._read(log, head, word_type)

    def _read(self, log: Buffer, head: bytes, word_type: str) -> None:
        step = _FRAME + self.size
        n = (len(log) - _HEAD) // step
        frames = log[_HEAD : _HEAD + n * step].reshape(n, step)
        numbers = frames[:, :_FRAME].copy().view(">u4").astype(np.int64)
        # Frames of an earlier time, which the log was not cut behind, have other salts.
        salts = np.array(struct.unpack_from(">II", head, 16), np.int64)
        other = np.flatnonzero((numbers[:, 2:4] != salts).any(axis=1))
        n = int(other[0]) if len(other) else n
        # All of a frame but its salts and sums is summed.
        valid, before = 0, struct.unpack_from(">II", head, 24)
        for lo in range(0, n, 256):
            part = np.concatenate(
                [frames[lo : min(lo + 256, n), :8], frames[lo : min(lo + 256, n), _FRAME:]], axis=1
            )
            sums = _sums(part, word_type, before)
            stated = [tuple(row) for row in numbers[lo : lo + len(part), 4:6].tolist()]
            same = next((i for i, (a, b) in enumerate(zip(sums, stated, strict=True)) if a != b), len(part))
            valid = lo + same
            if same < len(part):
                break
            before = sums[-1]
        commits = np.flatnonzero(numbers[:valid, 1])
        last = int(commits[-1]) + 1 if len(commits) else 0
        cut = len(log) - _HEAD - n * step if not len(other) else 0
        self.rest = (n - last) * step + cut
        self.page, self.count = numbers[:last, 0], int(numbers[last - 1, 1]) if last else 0
        self.at = _HEAD + _FRAME + step * np.arange(last)


def _sums(rows: Buffer, word_type: str, before: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the checksum after each row of bytes; that of a row goes on from the one before.

    A step is a linear map of the two sums and two words, so that a row is one, too, with constant factors.
    """
    words = np.ascontiguousarray(rows).view(word_type).astype(np.uint32)
    factors, before_factors = _factors(words.shape[1] // 2)
    own = np.stack([(words * factors[side]).sum(axis=1, dtype=np.uint32) for side in (0, 1)], axis=1)
    out, (a, b) = list[tuple[int, int]](), before
    for x, y in own.tolist():
        a, b = (
            (before_factors[0][0] * a + before_factors[0][1] * b + x) & 0xFFFFFFFF,
            (before_factors[1][0] * a + before_factors[1][1] * b + y) & 0xFFFFFFFF,
        )
        out.append((a, b))
    return out


@lru_cache(maxsize=8)
def _factors(steps: int) -> tuple[NDArray[np.uint32], tuple[tuple[int, int], tuple[int, int]]]:
    """Return uint32[2, 2 * steps]: the factor of each word in both sums; and the factors of the sums before them.

    One step: a += word + b; b += next word + a.
    """
    factors = np.zeros((2, 2 * steps), np.uint32)
    m = ((1, 0), (0, 1))
    for step in reversed(range(steps)):
        # The first word adds to both sums, the second one to the latter.
        for side in (0, 1):
            factors[side, 2 * step] = (m[side][0] + m[side][1]) & 0xFFFFFFFF
            factors[side, 2 * step + 1] = m[side][1]
        m = tuple(  # type: ignore[assignment]
            ((row[0] + row[1]) & 0xFFFFFFFF, (row[0] + 2 * row[1]) & 0xFFFFFFFF) for row in m
        )
    return factors, m
