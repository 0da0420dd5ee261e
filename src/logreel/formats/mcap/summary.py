"""Reading of the summary at the end of an MCAP file, which is used if it is complete and consistent."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import COMPRESSIONS, LARGEST
from logreel.formats.mcap.found import ChunkMessages, FoundFile
from logreel.formats.mcap.records import (
    ENTRY,
    HEAD,
    INDEX,
    MAGIC,
    NUMBERS,
    TAIL,
    BadRecord,
    Chunk,
    ChunkIndex,
)
from logreel.io.arrays import I64, distinct
from logreel.io.source import Source

#: Bytes at the end of a remote file that are fetched first: a small summary is among them.
TAIL_BYTES = 64 << 10


def read(source: Source) -> FoundFile | None:
    """Return the content of a file by its summary, without reading chunks; None if it does not cover all messages.

    Raises BadRecord if the summary contradicts itself or the file.
    """
    tail = source.size - TAIL
    source.span(source.size - TAIL_BYTES, source.size)
    raw = source.read(tail, TAIL)
    if tail < len(MAGIC) or raw[0] != records.FOOTER or raw[-8:] != MAGIC or raw[1] != 20:
        return None
    start, crc = int.from_bytes(raw[9:17], "little"), int.from_bytes(raw[25:29], "little")
    if start == 0:
        return None
    if not len(MAGIC) <= start <= tail:
        raise BadRecord(f"it is said to be at {start}")
    source.span(start, source.size)
    if crc and zlib.crc32(source.span_view[start : source.size - 12]) != crc:
        raise BadRecord("its checksum is wrong")
    file, chunks = FoundFile(by_summary=True), list[ChunkIndex]()
    for record in records.records(source, start, tail):
        if record.kind == records.CHUNK_INDEX:
            chunks.append(ChunkIndex.read(record.fields(source)))
        else:
            file.add_record(source, record)
    if not chunks:
        return None
    if file.statistics is not None and file.statistics.chunks != len(chunks):
        raise BadRecord(f"it counts {file.statistics.chunks} chunks and describes {len(chunks)}")
    chunks.sort(key=lambda one: one.pos)
    if any(not one.offsets and one.size for one in chunks):
        return None
    if not _read_gaps(source, chunks, start, file):
        return None
    offsets = np.frombuffer(b"".join(one.offsets for one in chunks), NUMBERS)
    if not _has_definitions(distinct(offsets["id"]).tolist(), file):
        return None
    return file if _add_chunks(chunks, offsets, file) else None


def _has_definitions(numbers: list[int], file: FoundFile) -> bool:
    """Return whether the summary repeats these channels and their schemas."""
    channels = [file.channels.get(number) for number in numbers]
    return all(ch is not None and (not ch.schema or ch.schema in file.schemas) for ch in channels)


def _read_gaps(source: Source, chunks: list[ChunkIndex], end: int, file: FoundFile) -> bool:
    """Add the records between the chunks, up to *end*; return False if there are messages among them."""
    pos = len(MAGIC)
    for begin, behind in [
        *((one.pos, one.pos + one.length + one.index_length) for one in chunks),
        (end, end),
    ]:
        if begin < pos:
            raise BadRecord(f"chunks overlap at {begin}")
        for record in records.records(source, pos, begin):
            if record.kind == records.MESSAGE:
                return False
            if record.kind in (records.CHUNK, records.MESSAGE_INDEX, records.FOOTER):
                raise BadRecord(f"it does not name what stands at {record.pos}")
            file.add_record(source, record)
        pos = behind
    if pos != end:
        raise BadRecord("a chunk ends behind it")
    return True


def _add_chunks(chunks: list[ChunkIndex], offsets: NDArray[np.void], file: FoundFile) -> bool:
    """Add the chunks; the numbers of messages follow from the distances between index records.

    Returns False if they do not, because some record has further bytes after its content.
    """
    many = np.array([len(one.offsets) // NUMBERS.itemsize for one in chunks])
    indexes, wrong = _indexes(chunks, many, offsets)
    for n, (one, end) in enumerate(zip(chunks, np.cumsum(many).tolist(), strict=True)):
        made = _chunk(one)
        if made.data + made.stored != one.pos + one.length:
            # The chunk's record has further bytes after its content.
            return False
        if n in wrong:
            if not wrong[n]:
                return False
            raise BadRecord(wrong[n])
        file.every.append(made)
        if many[n]:
            file.add_messages(
                ChunkMessages(len(file.chunks), one.pos, 0, one.size, indexes[end - many[n] : end])
            )
            file.chunks.append(made)
    return True


def _indexes(chunks: list[ChunkIndex], many: I64, offsets: NDArray[np.void]) -> tuple[I64, dict[int, str]]:
    """Return int64[m, 3] of all message index records in file order, and what is wrong, by chunk number.

    many     int64[k]  index records of each chunk
    offsets  NUMBERS[m]  channel ids and file offsets of the index records

    The columns are channel id, number of messages and file offset. An empty text means that records have further bytes
    after their content, so that the numbers of messages are unknown.
    """
    chunk, ends = np.repeat(np.arange(len(chunks)), many), np.cumsum(many)
    offsets = offsets[np.lexsort((offsets["value"], chunk))]
    # Unsigned, so that offsets beyond int64 do not become negative.
    number, at = offsets["id"].astype(np.int64), offsets["value"].astype(np.uint64)
    behind = np.array([one.pos + one.length for one in chunks], np.uint64)
    length = np.array([one.index_length for one in chunks], np.uint64)
    after = np.append(at[1:], at[:1])
    after[(ends - 1)[many > 0]] = (behind + length)[many > 0]
    size = after - at - INDEX
    short = (at < behind[chunk]) | (after < at) | (after - at < INDEX)
    keys = np.sort(chunk << 16 | number)
    wrong = dict[int, str]()
    for n in (keys[1:][np.diff(keys) == 0] >> 16).tolist():
        wrong[n] = f"the chunk at {chunks[n].pos} has two indexes of one channel"
    # There are further bytes between a chunk and the first of its index records.
    nonempty = np.flatnonzero(many)
    for n in nonempty[at[(ends - many)[nonempty]] != behind[nonempty]].tolist():
        wrong.setdefault(n, "")
    # In reverse order, so that the first one of a chunk remains.
    for k in np.flatnonzero(short | (size % ENTRY != 0))[::-1].tolist():
        text = f"the index of the chunk at {chunks[chunk[k]].pos} is not as long as it says"
        wrong[int(chunk[k])] = text if short[k] else ""
    return np.column_stack([number, (size // ENTRY).astype(np.int64), at.astype(np.int64)]), wrong


def _chunk(one: ChunkIndex) -> Chunk:
    """Return the chunk of a chunk index; raise BadRecord if it is impossible."""
    data = one.pos + HEAD + 40 + len(one.compression.encode())
    if one.compression not in COMPRESSIONS:
        raise BadRecord(f"a chunk of unknown compression {one.compression[:20]!r}")
    if one.stored > one.pos + one.length - data or (not one.compression and one.size != one.stored):
        raise BadRecord(f"the chunk at {one.pos} is shorter than its content")
    if one.size > LARGEST:
        raise BadRecord(f"the chunk at {one.pos} has {one.size} bytes; at most {LARGEST} are read")
    return Chunk(one.pos, one.start, one.end, one.size, -1, one.compression, data, one.stored)
