"""An MCAP file read record by record, stepping over damage.

Chunks are unpacked only where their message index does not tell what is in them.
"""

from __future__ import annotations

import numpy as np

from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import COMPRESSIONS, problem_of, unpack
from logreel.formats.mcap.found import ChunkMessages, FoundFile, Messages
from logreel.formats.mcap.records import HEAD, MAGIC, BadRecord, Chunk, record_at
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import mcap

#: Messages of one call of the compiled walk.
PIECE = 1 << 15
#: Places are relative, with 32 bits.
MAX_SPAN = 1 << 31
_STOP = 1 << records.CHUNK | 1 << records.FOOTER


def read(source: Source, trust: bool = True) -> FoundFile:
    """Everything in a file.

    trust  False: chunks are unpacked even where an index tells what is in them
    """
    file = FoundFile()
    pos, end = (len(MAGIC) if source.head.startswith(MAGIC) else 0), source.size
    buffers, finished = _Buffers(end - pos), False
    while pos < end:
        why, pos = _stretch(source, pos, end, file, buffers)
        if why == mcap.STOP and source.view[pos] == records.CHUNK:
            pos = _chunk(source, pos, end, file, trust)
        elif why == mcap.STOP:
            finished, pos = True, _after_footer(source, pos, end, file)
        elif why == mcap.CUT and source.view[pos] == records.CHUNK:
            pos = _cut_chunk(source, pos, end, file)
        elif why in (mcap.CUT, mcap.BAD):
            pos = step_over(source, pos, end, file, why == mcap.CUT)
    if not finished:
        file.note("unfinished", end, 0, False, "there is no footer: the file was cut, or never finished")
    return file


class _Buffers:
    def __init__(self, size: int) -> None:
        n = min(PIECE, size // records.MESSAGE_HEAD + 2)
        self.key, self.time, self.data, self.size = (np.empty(n, np.int64) for _ in range(4))
        self.note = np.empty(min(PIECE, size // HEAD + 2), np.int64)

    def walk(self, source: Source, pos: int, end: int, stop: int) -> tuple[int, int, int, int]:
        arrays = self.key, self.time, self.data, self.size, self.note
        return mcap.walk(source.data, pos, end, *arrays, stop)

    def found(self, lo: int, hi: int, base: int) -> Messages:
        """Messages lo … hi of the last walk; their places count from *base*."""
        at = slice(lo, hi)
        entry, size = (self.data[at] - base).astype(np.uint32), self.size[at].astype(np.uint32)
        return Messages(self.key[at].copy(), self.time[at].copy(), entry, size)


def _stretch(source: Source, pos: int, end: int, file: FoundFile, buffers: _Buffers) -> tuple[int, int]:
    """Take in the records from *pos* on up to a chunk or a footer; why it ended, and where."""
    why, stop, n, m = buffers.walk(source, pos, end, _STOP)
    bad = _take_notes(source, buffers.note[:m].tolist(), end, file)
    if bad is not None:
        n = int(np.searchsorted(buffers.data[:n], bad))
    lo = 0
    while lo < n:
        base = int(buffers.data[lo]) - records.MESSAGE_HEAD
        hi = max(int(np.searchsorted(buffers.data[:n], base + MAX_SPAN)), lo + 1)
        last = int(buffers.data[hi - 1] + buffers.size[hi - 1])
        found = buffers.found(lo, hi, base)
        file.add(ChunkMessages(len(file.chunks), base, 0, last - base, found=found))
        file.chunks.append(Chunk(base, 0, 0, last - base, 0, "", base, last - base))
        lo = hi
    if bad is not None:
        return mcap.FULL, step_over(source, bad, end, file, False)
    return why, stop


def _take_notes(
    source: Source, places: list[int], end: int, file: FoundFile, where: int | None = None
) -> int | None:
    """Take in records that are no messages; gives the place of the first that cannot be used."""
    for at in places:
        try:
            file.take(source, record_at(source, at, end), where)
        except BadRecord:
            return at
    return None


def _after_footer(source: Source, pos: int, end: int, file: FoundFile) -> int:
    after = record_at(source, pos, end).end
    left = source.read(after, len(MAGIC))
    if left != MAGIC:
        file.note("truncated", after, end - after, False, "the mark at the end is missing")
        return end if MAGIC.startswith(left) else after
    return after + len(MAGIC)


# ------------------------------------------------------------------------------------------------------- chunks


def _chunk(source: Source, pos: int, end: int, file: FoundFile, trust: bool) -> int:
    """Take in a whole chunk and the index behind it; gives where they end."""
    try:
        chunk = Chunk.read(source, pos, end)
    except BadRecord:
        return step_over(source, pos, end, file, False)
    after = record_at(source, pos, end).end
    if chunk.compression not in COMPRESSIONS:
        text = f"a chunk of unknown compression {chunk.compression[:20]!r}"
        file.note("chunk", pos, after - pos, True, text)
        return after
    file.every.append(chunk)
    indexes, behind = _indexes(source, after, end)
    ids = indexes[:, 0].tolist()
    if trust and ids and len(set(ids)) == len(ids) and all(number in file.channels for number in ids):
        file.add(ChunkMessages(len(file.chunks), pos, 0, chunk.size, indexes))
        file.chunks.append(chunk)
        return behind
    if chunk.is_plain:
        # Its records follow as if they were the file's own.
        return chunk.data
    _unpacked(source, chunk, file)
    return after


def _indexes(source: Source, pos: int, end: int) -> tuple[I64, int]:
    """Channel, messages and place of the index records at *pos*, and where they end; none where they may be cut."""
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


def _cut_chunk(source: Source, pos: int, end: int, file: FoundFile) -> int:
    """Take in what there is of a chunk that ends after *end*, or says so; gives where it ends."""
    try:
        chunk = Chunk.read(source, pos, end)
    except BadRecord:
        chunk = None
    if chunk is None or chunk.compression not in COMPRESSIONS or chunk.data >= end:
        return step_over(source, pos, end, file, True)
    if chunk.is_plain:
        file.note("truncated", pos, 0, False, "a chunk ends before all of its bytes")
        return chunk.data
    stop = mcap.find_records(source.data, chunk.data, end)
    stored = min(chunk.stored, stop - chunk.data)
    there = Chunk(pos, chunk.start, chunk.end, chunk.size, 0, chunk.compression, chunk.data, stored)
    file.every.append(there)
    _unpacked(source, there, file)
    return chunk.data + stored


def _unpacked(source: Source, chunk: Chunk, file: FoundFile) -> None:
    """Take in the content of a packed chunk."""
    data, wrong = unpack(source, chunk)
    if wrong:
        file.problems.append(problem_of(chunk, wrong))
    number, inside = len(file.chunks), Source(data, source.name)
    file.chunks.append(chunk)
    read_inside(inside, number, chunk.pos, file)


def read_inside(inside: Source, number: int, where: int, file: FoundFile) -> None:
    """Take in the records of an unpacked chunk, which begins at *where* in the file."""
    pos, end = 0, inside.size
    buffers = _Buffers(end)
    while pos < end:
        why, stop, n, m = buffers.walk(inside, pos, end, 0)
        bad = _take_notes(inside, buffers.note[:m].tolist(), end, file, where)
        if bad is not None:
            n = int(np.searchsorted(buffers.data[:n], bad))
        file.add(ChunkMessages(number, where, 0, end, found=buffers.found(0, n, 0)))
        if bad is not None:
            pos = step_over(inside, bad, end, file, False, where)
        elif why in (mcap.CUT, mcap.BAD):
            pos = step_over(inside, stop, end, file, why == mcap.CUT, where)
        else:
            pos = stop


def step_over(
    source: Source, pos: int, end: int, file: FoundFile, cut: bool, where: int | None = None
) -> int:
    """Report the bytes at *pos* that are no record; gives where the next one begins, *end* if none does.

    where  file position of the chunk that *source* is the content of
    """
    found = mcap.find_records(source.data, pos + 1, end)
    size, at = found - pos, pos if where is None else where
    inside = "" if where is None else " of an unpacked chunk"
    # Bytes of an unpacked chunk are none of the file.
    here = size if where is None else 0
    if not source.data[pos:found].any():
        file.note("zeros", at, here, True, f"{size} bytes of zeros between records{inside}")
    elif found == end and cut:
        file.note("truncated", at, here, True, f"the last {size} bytes{inside} are a cut record")
    else:
        file.note("garbage", at, here, True, f"{size} bytes{inside} that are no record")
    return found
