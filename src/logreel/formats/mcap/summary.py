"""The summary at the end of an MCAP file. It is used where it tells everything and agrees with itself."""

from __future__ import annotations

import zlib
from collections import Counter

from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import COMPRESSIONS, MOST
from logreel.formats.mcap.found import File, Part
from logreel.formats.mcap.records import HEAD, MAGIC, TAIL, BadRecord, Chunk, ChunkIndex
from logreel.model.source import Source

#: Bytes of a message index record without entries, and of an entry.
INDEX, ENTRY = 15, 16


def read(source: Source) -> File | None:
    """What the summary tells; the chunks are not touched. None where it does not tell of all messages.

    Raises BadRecord where it contradicts itself or the file.
    """
    tail = source.size - TAIL
    raw = source.read(tail, TAIL)
    if tail < len(MAGIC) or raw[0] != records.FOOTER or raw[-8:] != MAGIC or raw[1] != 20:
        return None
    start, crc = int.from_bytes(raw[9:17], "little"), int.from_bytes(raw[25:29], "little")
    if start == 0:
        return None
    if not len(MAGIC) <= start <= tail:
        raise BadRecord(f"it is said to be at {start}")
    if crc and zlib.crc32(source.view[start : source.size - 12]) != crc:
        raise BadRecord("its checksum is wrong")
    file, chunks = File(by_summary=True), list[ChunkIndex]()
    for record in records.records(source, start, tail):
        if record.kind == records.CHUNK_INDEX:
            chunks.append(ChunkIndex.read(record.fields(source)))
        else:
            file.take(source, record)
    if not chunks:
        return None
    if file.statistics is not None and file.statistics.chunks != len(chunks):
        raise BadRecord(f"it counts {file.statistics.chunks} chunks and describes {len(chunks)}")
    chunks.sort(key=lambda one: one.pos)
    if any(not one.offsets and one.size for one in chunks):
        return None
    if not _gaps(source, chunks, start, file):
        return None
    if not _defined({number for one in chunks for number, _ in one.offsets}, file):
        return None
    if not all(_take(one, file) for one in chunks):
        return None
    _compare(file)
    return file


def _defined(numbers: set[int], file: File) -> bool:
    """Whether the summary repeats these channels and their schemas."""
    channels = [file.channels.get(number) for number in numbers]
    return all(ch is not None and (not ch.schema or ch.schema in file.schemas) for ch in channels)


def _gaps(source: Source, chunks: list[ChunkIndex], end: int, file: File) -> bool:
    """Take in what stands between the chunks, up to *end*; False where there are messages, too."""
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
            file.take(source, record)
        pos = behind
    if pos != end:
        raise BadRecord("a chunk ends behind it")
    return True


def _take(one: ChunkIndex, file: File) -> bool:
    """Take in a chunk: how many messages each channel has follows from the places of its index records.

    False where it does not, since records have something behind their content.
    """
    data = one.pos + HEAD + 40 + len(one.compression.encode())
    if one.compression not in COMPRESSIONS:
        raise BadRecord(f"a chunk of unknown compression {one.compression[:20]!r}")
    if one.stored > one.length - (data - one.pos) or (not one.compression and one.size != one.stored):
        raise BadRecord(f"the chunk at {one.pos} is shorter than its content")
    if one.size > MOST:
        raise BadRecord(f"the chunk at {one.pos} has {one.size} bytes")
    offsets = sorted((at, number) for number, at in one.offsets)
    behind = one.pos + one.length
    ends = [at for at, _ in offsets[1:]] + [behind + one.index_length]
    indexes = []
    for (at, number), after in zip(offsets, ends, strict=True):
        count, left = divmod(after - at - INDEX, ENTRY)
        if at < behind or count < 0:
            raise BadRecord(f"the index of the chunk at {one.pos} is not as long as it says")
        if left:
            return False
        indexes.append((number, count, at))
    if len({number for number, _ in one.offsets}) < len(offsets):
        raise BadRecord(f"the chunk at {one.pos} has two indexes of one channel")
    chunk = Chunk(one.pos, one.start, one.end, one.size, -1, one.compression, data, one.stored)
    file.every.append(chunk)
    if indexes:
        file.add(Part(len(file.chunks), one.pos, 0, one.size, indexes))
        file.chunks.append(chunk)
        file.bounds += [one.start, one.end]
    return True


def _compare(file: File) -> None:
    """Compare the messages of the chunks with those that the statistics count."""
    if file.statistics is None:
        return
    counts = Counter[int]()
    for part in file.parts:
        for number, count, _ in part.indexes:
            counts[number] += count
    said = {number: count for number, count in file.statistics.counts.items() if count}
    if said and said != {number: count for number, count in counts.items() if count}:
        raise BadRecord("its statistics count other messages than the index of the chunks")
    if file.statistics.messages != counts.total():
        raise BadRecord(f"it counts {file.statistics.messages} messages, the index {counts.total()}")
