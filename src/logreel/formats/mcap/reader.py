"""Reading of an MCAP file record by record, skipping damaged bytes.

The reader is incremental: ``feed`` reads the complete records that the file has more than before, ``finish`` takes the
rest as the end of the file.

Chunks with a usable message index are not decompressed.
"""

from __future__ import annotations

import numpy as np

from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import COMPRESSIONS, crc_problem, problem_of, unpack
from logreel.formats.mcap.found import ChunkMessages, FoundFile, Messages
from logreel.formats.mcap.records import HEAD, MAGIC, BadRecord, Chunk, record_at
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import mcap
from logreel.log.growing import ENOUGH, UndecidedError

#: Most messages of one call of the kernel.
BATCH = 1 << 15
#: Largest extent of a block outside of chunks: offsets relative to its base have 32 bits.
MAX_SPAN = 1 << 31
_STOP = 1 << records.CHUNK | 1 << records.FOOTER
#: Bytes of an incomplete record after which its stated size is not believed any more.
PENDING = 1 << 28


class _IncompleteError(Exception):
    """The record at the end is not complete yet."""


def read(source: Source, trust: bool = True) -> FoundFile:
    """Return the content of a file; *trust* as for ``Reader``."""
    return Reader(source, trust).finish()


class Reader:
    """Reads one file from the front.

    pos          offset after the last record that was read
    file         what was found so far
    finished     whether there is a footer
    has_summary  whether the footer states a summary
    trust        False: chunks are decompressed even if they have a usable message index
    """

    def __init__(self, source: Source, trust: bool = True) -> None:
        self._source, self._trust = source, trust
        self._is_final = self.finished = self.has_summary = False
        self.pos = 0
        self.file = FoundFile()

    def feed(self, source: Source) -> bool:
        """Read the complete records that *source*, which begins with the bytes so far, has after ``pos``.

        Returns False, with ``pos`` before them, if bytes follow that only later ones can explain.
        """
        self._source = source
        try:
            self._read()
        except UndecidedError:
            return False
        except _IncompleteError:
            return source.size - self.pos < PENDING
        return True

    def finish(self) -> FoundFile:
        """Read the rest as the end of the file, and return everything that was found."""
        self._is_final = True
        self._read()
        if not self.finished:
            self.file.note("unfinished", self._source.size, 0, False, UNFINISHED)
        return self.file

    def _read(self) -> None:
        source, file, end = self._source, self.file, self._source.size
        if not self.pos and source.head.startswith(MAGIC):
            self.pos = len(MAGIC)
        buffers = Buffers(max(0, end - self.pos))
        while self.pos < end:
            why, self.pos = _read_until_chunk(source, self.pos, end, file, buffers)
            pos, is_chunk = self.pos, self.pos < end and source.view[self.pos] == records.CHUNK
            if why == mcap.STOP and is_chunk:
                self.pos = _read_chunk(source, pos, end, file, self._trust)
            elif why == mcap.STOP:
                if not self._is_final and record_at(source, pos, end).end + len(MAGIC) > end:
                    raise _IncompleteError
                # The offset of the summary, which a file without one states as 0.
                self.has_summary = any(source.read(pos + HEAD, 8))
                self.finished, self.pos = True, _after_footer(source, pos, end, file)
            elif why == mcap.CUT:
                if not self._is_final:
                    raise _IncompleteError
                skip = _read_cut_chunk if is_chunk else _skip_cut_record
                self.pos = skip(source, pos, end, file)
            elif why == mcap.BAD:
                if not self._is_final and end - pos < ENOUGH:
                    raise UndecidedError
                self.pos = _skip_damage(source, pos, end, file, False)


#: Text of the problem of a file without a footer.
UNFINISHED = "there is no footer: the file was cut, or never finished"


class Buffers:
    """Arrays that the kernel fills with the records of *size* bytes."""

    def __init__(self, size: int) -> None:
        n = min(BATCH, size // records.MESSAGE_HEAD + 2)
        self.key, self.time, self.data, self.size = (np.empty(n, np.int64) for _ in range(4))
        self.note = np.empty(min(BATCH, size // HEAD + 2), np.int64)

    def walk(self, source: Source, pos: int, end: int, stop: int) -> tuple[int, int, int, int]:
        """Fill the arrays from *pos* on; return reason and offset of the end, number of messages and other records."""
        arrays = self.key, self.time, self.data, self.size, self.note
        return mcap.walk(source.data, pos, end, *arrays, stop)

    def messages(self, lo: int, hi: int, base: int) -> Messages:
        """Return messages lo … hi of the last walk, with offsets relative to *base*."""
        at = slice(lo, hi)
        entry, size = (self.data[at] - base).astype(np.uint32), self.size[at].astype(np.uint32)
        return Messages(self.key[at].copy(), self.time[at].copy(), entry, size)


def _read_until_chunk(
    source: Source, pos: int, end: int, file: FoundFile, buffers: Buffers
) -> tuple[int, int]:
    """Read the records from *pos* up to a chunk, a footer or damage; return the reason and the offset of the end."""
    why, stop, n, m = buffers.walk(source, pos, end, _STOP)
    bad = _take_notes(source, buffers.note[:m].tolist(), end, file)
    if bad is not None:
        n = int(np.searchsorted(buffers.data[:n], bad))
    lo = 0
    while lo < n:
        base = int(buffers.data[lo]) - records.MESSAGE_HEAD
        hi = max(int(np.searchsorted(buffers.data[:n], base + MAX_SPAN)), lo + 1)
        last = int(buffers.data[hi - 1] + buffers.size[hi - 1])
        found = buffers.messages(lo, hi, base)
        file.add_messages(ChunkMessages(len(file.chunks), base, 0, last - base, found=found))
        file.chunks.append(Chunk(base, 0, 0, last - base, 0, "", base, last - base))
        lo = hi
    return (why, stop) if bad is None else (mcap.BAD, bad)


def _take_notes(
    source: Source, places: list[int], end: int, file: FoundFile, where: int | None = None
) -> int | None:
    """Add the records at *places*, which are no messages; return the offset of the first unusable one, else None."""
    for at in places:
        try:
            file.add_record(source, record_at(source, at, end), where)
        except BadRecord:
            return at
    return None


def _after_footer(source: Source, pos: int, end: int, file: FoundFile) -> int:
    """Return the offset after the footer at *pos* and the magic; a missing magic is reported."""
    after = record_at(source, pos, end).end
    left = source.read(after, len(MAGIC))
    if left != MAGIC:
        file.note("truncated", after, end - after, False, "the mark at the end is missing")
        return end if MAGIC.startswith(left) else after
    return after + len(MAGIC)


# ------------------------------------------------------------------------------------------------------- chunks


def _read_chunk(source: Source, pos: int, end: int, file: FoundFile, trust: bool) -> int:
    """Read a whole chunk and the message index after it; return the offset of the next record."""
    try:
        chunk = Chunk.read(source, pos, end)
    except BadRecord:
        return _skip_damage(source, pos, end, file, False)
    after = record_at(source, pos, end).end
    if chunk.compression not in COMPRESSIONS:
        text = f"a chunk of unknown compression {chunk.compression[:20]!r}"
        file.note("chunk", pos, after - pos, True, text)
        return after
    file.every.append(chunk)
    indexes, after_index = _read_indexes(source, after, end)
    ids = indexes[:, 0].tolist()
    if trust and ids and len(set(ids)) == len(ids) and all(number in file.channels for number in ids):
        file.add_messages(ChunkMessages(len(file.chunks), pos, 0, chunk.size, indexes))
        file.chunks.append(chunk)
        return after_index
    if chunk.is_plain:
        # Its records are read like records outside of chunks.
        return chunk.data
    _read_compressed(source, chunk, file)
    return after


def _read_indexes(source: Source, pos: int, end: int) -> tuple[I64, int]:
    """Return int64[k, 3] of the message index records at *pos*, and the offset of their end.

    The columns are channel id, number of messages and file offset; there are no rows if the index may be cut.
    """
    none, found = np.zeros((0, 3), np.int64), list[tuple[int, int, int]]()
    try:
        while (one := record_at(source, pos, end)).kind == records.MESSAGE_INDEX:
            head = source.read(pos + HEAD, 6)
            count = int.from_bytes(head[2:], "little")
            if count > one.size - 6:
                return none, pos
            found.append((int.from_bytes(head[:2], "little"), count // records.ENTRY, pos))
            pos = one.end
    except BadRecord:
        return none, pos
    return (np.array(found, np.int64).reshape(-1, 3), pos) if one.kind <= records.DATA_END else (none, pos)


def _read_cut_chunk(source: Source, pos: int, end: int, file: FoundFile) -> int:
    """Read the existing part of a chunk whose stated end is after *end*; return the offset where it ends."""
    try:
        chunk = Chunk.read(source, pos, end)
    except BadRecord:
        chunk = None
    if chunk is None or chunk.compression not in COMPRESSIONS or chunk.data >= end:
        return _skip_damage(source, pos, end, file, True)
    if chunk.is_plain:
        file.note("truncated", pos, 0, False, "a chunk ends before all of its bytes")
        return chunk.data
    stop = mcap.find_records(source.data, chunk.data, end)
    stored = min(chunk.stored, stop - chunk.data)
    there = Chunk(pos, chunk.start, chunk.end, chunk.size, 0, chunk.compression, chunk.data, stored)
    file.every.append(there)
    _read_compressed(source, there, file)
    return chunk.data + stored


def _read_compressed(source: Source, chunk: Chunk, file: FoundFile) -> None:
    """Read the content of a compressed chunk."""
    data, wrong = unpack(source, chunk)
    problem = problem_of(chunk, wrong) if wrong else crc_problem(chunk, data)
    if problem is not None:
        file.problems.append(problem)
    number, inside = len(file.chunks), Source(data, source.name)
    file.chunks.append(chunk)
    read_inside(inside, number, chunk.pos, file)


def read_inside(inside: Source, number: int, where: int, file: FoundFile) -> None:
    """Read the records of a decompressed chunk.

    number  number of the chunk in *file.chunks*
    where   file offset of the chunk
    """
    pos, end = 0, inside.size
    buffers = Buffers(end)
    while pos < end:
        why, stop, n, m = buffers.walk(inside, pos, end, 0)
        bad = _take_notes(inside, buffers.note[:m].tolist(), end, file, where)
        if bad is not None:
            n = int(np.searchsorted(buffers.data[:n], bad))
        file.add_messages(ChunkMessages(number, where, 0, end, found=buffers.messages(0, n, 0)))
        if bad is not None:
            pos = _skip_damage(inside, bad, end, file, False, where)
        elif why in (mcap.CUT, mcap.BAD):
            pos = _skip_damage(inside, stop, end, file, why == mcap.CUT, where)
        else:
            pos = stop


def _skip_cut_record(source: Source, pos: int, end: int, file: FoundFile) -> int:
    return _skip_damage(source, pos, end, file, True)


def _skip_damage(
    source: Source, pos: int, end: int, file: FoundFile, cut: bool, where: int | None = None
) -> int:
    """Report the bytes at *pos* that are no record; return the offset of the next record, *end* if there is none.

    cut    True if the bytes are the beginning of a record that ends after *end*
    where  file offset of the chunk, if *source* is its decompressed content
    """
    found = mcap.find_records(source.data, pos + 1, end)
    size, at = found - pos, pos if where is None else where
    inside = "" if where is None else " of an unpacked chunk"
    # Bytes of a decompressed chunk are not bytes of the file.
    here = size if where is None else 0
    if not source.data[pos:found].any():
        file.note("zeros", at, here, True, f"{size} bytes of zeros between records{inside}")
    elif found == end and cut:
        file.note("truncated", at, here, True, f"the last {size} bytes{inside} are a cut record")
    else:
        file.note("garbage", at, here, True, f"{size} bytes{inside} that are no record")
    return found
