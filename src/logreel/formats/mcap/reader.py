"""Read an MCAP file by its summary or record by record, skipping damaged bytes; ``FoundFile`` is its content.

The reader is incremental: ``feed`` reads the complete records that the file has more than before, ``finish`` takes
the rest as the end of the file.

Chunks with a usable message index are not decompressed.
"""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import Problem
from logreel.formats.mcap import records
from logreel.formats.mcap.chunks import COMPRESSIONS, LARGEST, crc_problem, problem_of, unpack
from logreel.formats.mcap.records import (
    ENTRY,
    HEAD,
    INDEX,
    MAGIC,
    NUMBERS,
    TAIL,
    AttachmentRecord,
    BadRecord,
    ChannelRecord,
    Chunk,
    ChunkIndex,
    Record,
    Statistics,
    read_schema,
    record_at,
)
from logreel.io.arrays import I64, distinct
from logreel.io.source import Source
from logreel.kernels import mcap
from logreel.log.scan import ENOUGH, IncompleteError, IncrementalReader, Schema, UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Key of channel metadata whose value is JSON of all values that are not text, and name of the metadata record that
#: describes the log which the file was converted from.
OWN = "logreel"


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages found by reading, in file order: channel ids, times in ns, offsets of payloads, sizes in bytes."""

    key: I64
    time: I64
    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]


@dataclass(slots=True)
class ChunkMessages:
    """The messages of a chunk, or of an interval of the file that is treated as one.

    chunk     its number
    pos       file offset where it begins, for the offsets of problems
    base      offset in the chunk's bytes that entries are relative to
    end       offset where the chunk's bytes end
    indexes   int64[k, 3]  channel id, number of messages, file offset of each index record, if *messages* is None
    messages  the messages, if they were read
    """

    chunk: int
    pos: int
    base: int
    end: int
    indexes: I64 = field(default_factory=partial[I64](np.zeros, (0, 3), np.int64))
    messages: Messages | None = None

    def counts(self) -> I64:
        """Return int64[k, 2]: channel ids and their numbers of messages."""
        if self.messages is None:
            return self.indexes[:, :2]
        return np.column_stack(np.unique(self.messages.key, return_counts=True))


def read_messages(parts: list[ChunkMessages]) -> Messages:
    """Return the messages of those *parts* that were read, one after another."""
    empty = np.zeros(0, np.int64)
    messages = [part.messages for part in parts if part.messages is not None]
    key, time, entry, size = (
        np.concatenate([empty, *(getattr(chunk_messages, name) for chunk_messages in messages)])
        for name in ("key", "time", "entry", "size")
    )
    return Messages(key, time, entry.astype(np.uint32), size.astype(np.uint32))


@dataclass(slots=True)
class FoundFile:
    """The content of a file; parts and chunks are in file order.

    source      the file, once it was read
    by_summary  True if the chunks were found by the summary
    chunks      chunks and intervals with messages, which *parts* refer to by number
    every       all chunk records, for verification
    data_end    file offset of the data end record and the checksum in it; None if there is no such record
    metadata_places                        file offsets of the metadata records
    indexed_attachments, indexed_metadata  file offsets according to the summary
    late        offset and name of each definition that a file read from the front has behind the end of its data only
    """

    profile: str = ""
    library: str = ""
    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, ChannelRecord] = field(default_factory=dict)
    parts: list[ChunkMessages] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)
    every: list[Chunk] = field(default_factory=list)
    attachments: list[AttachmentRecord] = field(default_factory=list)
    metadata: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    metadata_places: list[int] = field(default_factory=list)
    indexed_attachments: list[int] = field(default_factory=list)
    indexed_metadata: list[int] = field(default_factory=list)
    late: list[tuple[int, str]] = field(default_factory=list)
    statistics: Statistics | None = None
    problems: list[Problem] = field(default_factory=list)
    by_summary: bool = False
    data_end: tuple[int, int] | None = None
    source: Source = field(default_factory=partial(Source, b"", ""))

    @property
    def origin(self) -> dict[str, str] | None:
        """The record of the log that the file was converted from: the last one, since appending adds another."""
        return next((record for name, record in reversed(self.metadata) if name == OWN), None)

    def note(self, code: str, pos: int, size: int, lost: bool, text: str) -> None:
        """Add a Problem."""
        self.problems.append(Problem(code, pos, size, lost, text))

    def add_record(self, source: Source, record: Record, where: int | None = None) -> None:
        """Add a record that is no message and no chunk; raise BadRecord if its content does not fit.

        where  file offset of the chunk, if *source* is its decompressed content
        """
        opcode = record.kind
        if opcode == records.HEADER:
            f = record.fields(source)
            if not self.library:
                self.profile, self.library = f.text(), f.text()
        elif opcode == records.SCHEMA:
            number, schema = read_schema(record.fields(source))
            if not number:
                # Channels with this number have no schema (specification, "Schema").
                self.note(
                    "definition",
                    record.pos if where is None else where,
                    0,
                    False,
                    "a schema has the number 0: ignored",
                )
                return
            self._note_late(number in self.schemas, f"schema {number}", record, where)
            if self.schemas.setdefault(number, schema) != schema:
                self._note_redefined(f"schema {number}", record, where)
        elif opcode == records.CHANNEL:
            channel = ChannelRecord.read(record.fields(source))
            self._note_late(channel.id in self.channels, f"channel {channel.id}", record, where)
            if self.channels.setdefault(channel.id, channel) != channel:
                self._note_redefined(f"channel {channel.id}", record, where)
        elif opcode == records.ATTACHMENT:
            self.attachments.append(AttachmentRecord.read(source, record))
        elif opcode == records.METADATA:
            f = record.fields(source)
            self.metadata.append((f.text(), f.map()))
            self.metadata_places.append(record.pos)
        elif opcode == records.ATTACHMENT_INDEX:
            self.indexed_attachments.append(record.fields(source).number(8))
        elif opcode == records.METADATA_INDEX:
            self.indexed_metadata.append(record.fields(source).number(8))
        elif opcode == records.STATISTICS:
            self.statistics = Statistics.read(record.fields(source))
        elif opcode == records.DATA_END:
            self.data_end = record.pos, record.fields(source).number(4)
        elif opcode > records.DATA_END:
            whose = "an application's own" if opcode >= records.PRIVATE else "an unknown"
            text = f"{whose} record of kind {opcode} was passed over"
            at, size = (record.pos, records.HEAD + record.size) if where is None else (where, 0)
            self.note("unknown", at, size, opcode < records.PRIVATE, text)

    def _note_late(self, is_known: bool, what: str, record: Record, where: int | None) -> None:
        if self.data_end is not None and where is None and not is_known:
            self.late.append((record.pos, what))

    def _note_redefined(self, what: str, record: Record, where: int | None) -> None:
        self.note(
            "redefined", record.pos if where is None else where, 0, False, f"{what} is defined in two ways"
        )

    def add_messages(self, part: ChunkMessages) -> None:
        """Add *part* unless it was read and has no messages."""
        if part.messages is None or len(part.messages.key):
            self.parts.append(part)


#: Most messages of one call of the kernel.
BATCH = 1 << 15
#: Largest extent of a block outside of chunks: offsets relative to its base have 32 bits.
MAX_SPAN = 1 << 31
_STOP = 1 << records.CHUNK | 1 << records.FOOTER
#: Bytes of an incomplete record after which its stated size is not believed any more.
PENDING = 1 << 28


def read(source: Source, trust: bool = True) -> FoundFile:
    """Return the content of a file; *trust* as for ``Reader``."""
    return Reader(source, trust).finish()


class Reader(IncrementalReader):
    """Reads one file from the front.

    pos          offset after the last record that was read
    file         what was found so far
    finished     whether there is a footer
    has_summary  whether the footer states a summary
    trust        False: chunks are decompressed even if they have a usable message index
    """

    def __init__(self, source: Source, trust: bool = True) -> None:
        self._source, self._trust = source, trust
        self.finished = self.has_summary = False
        self.pos = 0
        self.file = FoundFile()

    def _extend(self, source: Source) -> None:
        self._source = source

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
                try:
                    self.pos = _read_chunk(source, pos, end, file, self._trust)
                    continue
                except BadRecord:
                    why = mcap.BAD
            if why == mcap.STOP:
                if not self._is_final and record_at(source, pos, end).end + len(MAGIC) > end:
                    raise IncompleteError(PENDING)
                # The offset of the summary, which a file without one states as 0.
                self.has_summary = any(source.read(pos + HEAD, 8))
                self.finished, self.pos = True, _after_footer(source, pos, end, file)
            elif why == mcap.CUT:
                if not self._is_final:
                    raise IncompleteError(PENDING)
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
        messages = buffers.messages(lo, hi, base)
        file.add_messages(ChunkMessages(len(file.chunks), base, 0, last - base, messages=messages))
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
    """Read a whole chunk and the message index after it; return the offset of the next record, or raise BadRecord."""
    chunk = Chunk.read(source, pos, end)
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
    none, entries = np.zeros((0, 3), np.int64), list[tuple[int, int, int]]()
    try:
        while (record := record_at(source, pos, end)).kind == records.MESSAGE_INDEX:
            head = source.read(pos + HEAD, 6)
            count = int.from_bytes(head[2:], "little")
            if count > record.size - 6:
                return none, pos
            entries.append((int.from_bytes(head[:2], "little"), count // records.ENTRY, pos))
            pos = record.end
    except BadRecord:
        return none, pos
    return (
        (np.array(entries, np.int64).reshape(-1, 3), pos) if record.kind <= records.DATA_END else (none, pos)
    )


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
    existing = Chunk(pos, chunk.start, chunk.end, chunk.size, 0, chunk.compression, chunk.data, stored)
    file.every.append(existing)
    _read_compressed(source, existing, file)
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
        file.add_messages(ChunkMessages(number, where, 0, end, messages=buffers.messages(0, n, 0)))
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
    hit = mcap.find_records(source.data, pos + 1, end)
    size, at = hit - pos, pos if where is None else where
    inside = "" if where is None else " of an unpacked chunk"
    # Bytes of a decompressed chunk are not bytes of the file.
    here = size if where is None else 0
    if not source.data[pos:hit].any():
        file.note("zeros", at, here, True, f"{size} bytes of zeros between records{inside}")
    elif hit == end and cut:
        file.note("truncated", at, here, True, f"the last {size} bytes{inside} are a cut record")
    else:
        file.note("garbage", at, here, True, f"{size} bytes{inside} that are no record")
    return hit


#: Bytes at the end of a remote file that are fetched first: a small summary is among them.
TAIL_BYTES = 64 << 10


def read_by_summary(source: Source) -> FoundFile | None:
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
    chunks.sort(key=lambda chunk: chunk.pos)
    if any(not chunk.offsets and chunk.size for chunk in chunks):
        return None
    if not _read_gaps(source, chunks, start, file):
        return None
    offsets = np.frombuffer(b"".join(chunk.offsets for chunk in chunks), NUMBERS)
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
        *((chunk.pos, chunk.pos + chunk.length + chunk.index_length) for chunk in chunks),
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
    counts = np.array([len(chunk.offsets) // NUMBERS.itemsize for chunk in chunks])
    indexes, wrong = _indexes(chunks, counts, offsets)
    for n, (chunk, end) in enumerate(zip(chunks, np.cumsum(counts).tolist(), strict=True)):
        made = _chunk(chunk)
        if made.data + made.stored != chunk.pos + chunk.length:
            # The chunk's record has further bytes after its content.
            return False
        if n in wrong:
            if not wrong[n]:
                return False
            raise BadRecord(wrong[n])
        file.every.append(made)
        if counts[n]:
            file.add_messages(
                ChunkMessages(len(file.chunks), chunk.pos, 0, chunk.size, indexes[end - counts[n] : end])
            )
            file.chunks.append(made)
    return True


def _indexes(chunks: list[ChunkIndex], counts: I64, offsets: NDArray[np.void]) -> tuple[I64, dict[int, str]]:
    """Return int64[m, 3] of all message index records in file order, and what is wrong, by chunk number.

    counts     int64[k]  index records of each chunk
    offsets  NUMBERS[m]  channel ids and file offsets of the index records

    The columns are channel id, number of messages and file offset. An empty text means that records have further bytes
    after their content, so that the numbers of messages are unknown.
    """
    chunk, ends = np.repeat(np.arange(len(chunks)), counts), np.cumsum(counts)
    offsets = offsets[np.lexsort((offsets["value"], chunk))]
    # Unsigned, so that offsets beyond int64 do not become negative.
    number, at = offsets["id"].astype(np.int64), offsets["value"].astype(np.uint64)
    behind = np.array([entry.pos + entry.length for entry in chunks], np.uint64)
    length = np.array([entry.index_length for entry in chunks], np.uint64)
    after = np.append(at[1:], at[:1])
    after[(ends - 1)[counts > 0]] = (behind + length)[counts > 0]
    size = after - at - INDEX
    short = (at < behind[chunk]) | (after < at) | (after - at < INDEX)
    keys = np.sort(chunk << 16 | number)
    wrong = dict[int, str]()
    for n in (keys[1:][np.diff(keys) == 0] >> 16).tolist():
        wrong[n] = f"the chunk at {chunks[n].pos} has two indexes of one channel"
    # There are further bytes between a chunk and the first of its index records.
    nonempty = np.flatnonzero(counts)
    for n in nonempty[at[(ends - counts)[nonempty]] != behind[nonempty]].tolist():
        wrong.setdefault(n, "")
    # In reverse order, so that the first one of a chunk remains.
    for k in np.flatnonzero(short | (size % ENTRY != 0))[::-1].tolist():
        text = f"the index of the chunk at {chunks[chunk[k]].pos} is not as long as it says"
        wrong[int(chunk[k])] = text if short[k] else ""
    return np.column_stack([number, (size // ENTRY).astype(np.int64), at.astype(np.int64)]), wrong


def _chunk(chunk_index: ChunkIndex) -> Chunk:
    """Return the chunk of a chunk index; raise BadRecord if it is impossible."""
    data = chunk_index.pos + HEAD + 40 + len(chunk_index.compression.encode())
    if chunk_index.compression not in COMPRESSIONS:
        raise BadRecord(f"a chunk of unknown compression {chunk_index.compression[:20]!r}")
    if chunk_index.stored > chunk_index.pos + chunk_index.length - data or (
        not chunk_index.compression and chunk_index.size != chunk_index.stored
    ):
        raise BadRecord(f"the chunk at {chunk_index.pos} is shorter than its content")
    if chunk_index.size > LARGEST:
        raise BadRecord(
            f"the chunk at {chunk_index.pos} has {chunk_index.size} bytes; at most {LARGEST} are read"
        )
    return Chunk(
        chunk_index.pos,
        chunk_index.start,
        chunk_index.end,
        chunk_index.size,
        -1,
        chunk_index.compression,
        data,
        chunk_index.stored,
    )
