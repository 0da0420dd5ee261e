"""Read the records of a bag, skipping damaged bytes, as all its versions do; ``FoundFile`` is its content.

Readers are incremental: ``feed`` reads the complete records that the file has more than before, ``finish`` takes the
rest as the end of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import COMPRESSIONS, Chunk, Cipher
from logreel.formats.rosbag.definitions import Connection
from logreel.formats.rosbag.records import (
    ALL_NAMES,
    TOPIC,
    BadRecord,
    Fields,
    Record,
    parse_fields,
    read_record,
    topic_key,
)
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import rosbag
from logreel.log.scan import ENOUGH, IncompleteError, IncrementalReader, UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Largest extent of a block in a file without chunks: offsets relative to its base have 32 bits.
MAX_SPAN = 1 << 31
#: Approximate cost of decompressing a byte of a chunk, relative to reading it.
_COST = {"lz4": 4, "bz2": 100}
#: Looking at this many uncompressed bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 30
#: Type and checksum where they cannot be read; recorders wrote it for types that they did not know.
UNKNOWN = "*"
_DEFINITION = {b"type", b"md5sum", b"message_definition"}


@dataclass(slots=True)
class ChunkMessages:
    """The messages of one chunk, or of an interval of a file without chunks.

    chunk  number of the chunk, FILE if its bytes are part of the file as they are
    pos    file offset where it begins, for the offsets of problems
    base   offset that *entry* is relative to
    end    offset where its data ends, in the file or in the decompressed chunk
    key    int64[n]    connection of each message; those of one connection are in file order
    time   int64[n]    ns
    entry  uint32[n]   start of the message's data
    size   uint32[n]   bytes of it
    """

    chunk: int
    pos: int
    base: int
    end: int
    key: NDArray[np.int64]
    time: I64
    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class IndexedMessages:
    """The messages of all chunks as the index of the bag names them, grouped by chunk and connection.

    pos    int64[k]     file offset of each chunk
    data   int64[k]     file offset of its data
    size   int64[k]     bytes of its decompressed data
    plain  True if no chunk is compressed or encrypted
    run    int64[m, 3]  chunk number, connection, number of messages of each group; ordered by chunk
    time   int64[n]     ns, group after group
    entry  uint32[n]    offset of each message's record in its chunk; ascending in each group
    span   int64[k, 2]  ns of the first and the last message of each chunk according to the summary, -1 if not stated
    """

    pos: I64
    data: I64
    size: I64
    plain: bool
    run: I64
    time: I64
    entry: NDArray[np.uint32]
    span: I64 = field(default_factory=lambda: np.zeros((0, 2), np.int64))


@dataclass(frozen=True, slots=True)
class Summary:
    """What the summary of a bag says of its chunks, in file order.

    pos    int64[k]     file offset of each chunk
    end    int64[k]     file offset of what follows it and its index records: the next chunk, or the summary
    pairs  int64[m, 3]  chunk number, connection and number of messages where there are any, ordered by chunk
    span   int64[k, 2]  ns of the first and the last message of each chunk, -1 if not stated
    """

    pos: I64
    end: I64
    pairs: I64
    span: I64


@dataclass(frozen=True, slots=True)
class IndexClaims:
    """The messages that the index of a chunk names: data start and size (to be filled in), connection, time in ns."""

    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]
    conn: NDArray[np.uint32]
    time: I64


@dataclass(slots=True)
class FoundFile:
    """The content of a bag of version 2.0: messages by index or by chunk, connections by number, chunks in file order.

    parts     messages by chunk; empty if *index* is used
    index     messages by the index; None if it is not used
    summary   of a remote bag that is read in ranges: what its summary says; *index* and *chunks* are empty then
    costly    estimated cost of decompressing all chunks, in uncompressed bytes read
    is_early  True for the development versions of April 2010
    cipher    decrypts the bag; None if it is not encrypted
    """

    parts: list[ChunkMessages] = field(default_factory=list)
    connections: dict[int, Connection] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    index: IndexedMessages | None = None
    summary: Summary | None = None
    chunk_count: int = 0
    compressions: set[str] = field(default_factory=set)
    costly: int = 0
    is_early: bool = False
    cipher: Cipher | None = None

    def count(self, chunk: Chunk) -> None:
        """Add *chunk* to the number of chunks, the compressions and the cost."""
        self.chunk_count += 1
        self.compressions.add(chunk.compression)
        self.costly += chunk.size * _COST.get(chunk.compression, 1)

    @property
    def named(self) -> int:
        """Fields that identify the connection of a message without a number: ALL_NAMES or TOPIC."""
        return TOPIC if self.is_early else ALL_NAMES

    @property
    def is_cheap(self) -> bool:
        """True if decompressing every chunk takes a fraction of a second."""
        return self.costly < CHEAP_BYTES


def add_connection(source: Source, record: Record, bag: FoundFile, salvage: bool = False) -> None:
    """Add the connection of a record to *bag*; a complete connection that is known already is kept.

    Raises BadRecord if the record is incomplete; with *salvage* only if it does not state the topic.
    """
    try:
        fields = parse_fields(source.read(record.data, record.size))
    except BadRecord:
        if not salvage:
            raise
        fields = {}
    complete = b"type" in fields and b"md5sum" in fields
    if b"topic" not in record.fields or not (complete or salvage):
        raise BadRecord("a connection without topic, type or checksum")
    number = record.u32(b"conn")
    known = bag.connections.get(number)
    if known is not None and not (complete and known.type == UNKNOWN):
        return

    def text(name: bytes) -> str:
        return fields.get(name, b"").decode("utf-8", "replace")

    bag.connections[number] = Connection(
        number,
        record.text(b"topic"),
        text(b"type") if complete else UNKNOWN,
        text(b"md5sum") if complete else UNKNOWN,
        text(b"message_definition"),
        text(b"callerid"),
        text(b"latching") == "1",
        _publisher_header(fields),
    )


def _publisher_header(fields: Fields) -> tuple[tuple[str, str], ...]:
    """Return the connection header of the publisher without type, checksum and definition."""
    items = ((name, value) for name, value in fields.items() if name not in _DEFINITION)
    return tuple((name.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for name, value in items)


def add_definition(record: Record, bag: FoundFile) -> None:
    """Add the definition record of a development version; messages refer to it by their topic."""
    topic, md5 = record.text(b"topic"), record.text(b"md5") or record.text(b"md5sum")
    key = topic_key(record.fields.get(b"topic", b""))
    bag.connections.setdefault(key, Connection(key, topic, record.text(b"type"), md5, record.text(b"def")))


def chunk_of(record: Record, bag: FoundFile) -> Chunk:
    """Return the chunk whose header is *record*; raise BadRecord if it is no chunk or of unknown compression."""
    compression = record.text(b"compression")
    if record.op != records.OP_CHUNK or compression not in COMPRESSIONS:
        raise BadRecord(f"there is no chunk at {record.pos}, or one of compression {compression[:20]!r}")
    # Recorders encrypt a chunk when they finish it; until then its stated size is 0.
    cipher = bag.cipher if record.size else None
    return Chunk(record.pos, record.data, record.size, compression, record.u32(b"size"), cipher)


END, CUT, BAD, FOREIGN, FULL = range(5)
OnRecord = Callable[[Record, Source], None]
#: Most messages of one call of the kernel.
BATCH = 1 << 15
#: Bytes of an incomplete record after which its stated size is not believed any more.
PENDING = 1 << 28


class Reader(IncrementalReader):
    """Reads the file of a bag of one version from its front.

    pos       offset after the last record that was read
    problems  damage found so far
    """

    pos: int
    problems: list[Problem]

    def __init__(self, source: Source) -> None:
        self._source = source

    def _extend(self, source: Source) -> None:
        self._source = source

    def finish(self) -> None:
        """Read the rest as the end of the file."""
        self._is_final = True
        self._read()

    def _read(self) -> None:
        end = self._source.size
        while self.pos < end:
            try:
                self.pos = self._after(self.pos)
            except BadRecord as error:
                if not self._is_final and error.cut:
                    raise IncompleteError(PENDING) from error
                if not self._is_final and end - self.pos < ENOUGH:
                    raise UndecidedError from error
                self.pos = self._skip(self.pos, error)

    def _after(self, pos: int) -> int:
        """Read what is at *pos*; return the offset of what follows. Raises BadRecord for what cannot be read."""
        raise NotImplementedError

    def _skip(self, pos: int, error: BadRecord) -> int:
        """Report the damage at *pos*; return the offset at which reading goes on."""
        return skip_damage(self._source, pos, self._source.size, self.problems, error.cut, why=str(error))

    def take_parts(self) -> list[ChunkMessages]:
        """Return the messages found since the last call, with offsets in the file unless their chunk is compressed."""
        raise NotImplementedError

    def connections(self) -> Iterable[Connection]:
        """Return the connections found so far; later ones follow them."""
        raise NotImplementedError


@dataclass(slots=True)
class Region:
    """An interval of bytes that is read: in the file or in a decompressed chunk.

    source   the file or the decompressed chunk
    chunk    number of the chunk, FILE for the file
    foreign  ops of records that end the region early, as a bit set
    where    file offset for problems, if the region is not in the file itself
    named    fields that identify the connection of a message without a number: ALL_NAMES or TOPIC
    grows    True: reading ends at what is no complete record, instead of skipping it
    """

    source: Source
    chunk: int
    pos: int
    end: int
    foreign: int = 0
    where: int | None = None
    named: int = ALL_NAMES
    grows: bool = False


def read_region(
    region: Region,
    on_record: OnRecord,
    problems: list[Problem],
) -> tuple[list[ChunkMessages], int]:
    """Return all messages of a region and the offset at which reading ended.

    on_record  called with each record that is no message; may raise BadRecord, then its bytes are skipped
    """
    source, pos, end = region.source, region.pos, region.end
    buffers = _Buffers(min(BATCH, (end - pos) // 8 + 2))
    messages: list[ChunkMessages] = []
    while pos < end:
        why, stop, n, m = buffers.walk(region, pos)
        bad, error = _pass_on(source, buffers.note[:m, 0].tolist(), end, on_record)
        if error is not None:
            # Its size is not to be trusted either: what follows is read again.
            n = int(np.searchsorted(buffers.data[:n], bad))
        if n:
            messages += buffers.messages(region, pos, n)
        if error is not None:
            if region.grows:
                return messages, bad
            pos = skip_damage(source, bad, end, problems, False, region.where, str(error))
            continue
        pos = stop
        if why == FOREIGN or (region.grows and why in (CUT, BAD)):
            break
        if why in (CUT, BAD):
            pos = skip_damage(source, pos, end, problems, why == CUT, region.where)
    return messages, pos


def ignore_record(record: Record, source: Source) -> None:
    """Ignore a record: the connections are known already."""


def _pass_on(
    source: Source, places: list[int], end: int, on_record: OnRecord
) -> tuple[int, BadRecord | None]:
    """Call *on_record* with the records at *places*; return the offset of the first unusable one, and its error."""
    for at in places:
        try:
            record = read_record(source, at, end)
            refuse_nested(source, record)
            on_record(record, source)
        except BadRecord as error:
            return at, error
    return end, None


def refuse_nested(source: Source, record: Record) -> None:
    """Raise BadRecord if the data of *record* contains records: then its size or op is damaged."""
    if records.find_record(source, record.data - 1, record.end) < record.end:
        raise BadRecord("it holds other records")


def wrong_header(head: Record) -> list[Problem]:
    """Return the problem of a file header whose op is that of another record; none if it is right."""
    if head.op == records.OP_FILE:
        return []
    return [
        Problem("header", head.pos, 0, False, f"the file header states that it is a record of op {head.op}")
    ]


def after_padding(source: Source, head: Record, problems: list[Problem]) -> int:
    """Return the offset of the first record after a file header, whose data is blanks unless its size is damaged."""
    padding = source.span(head.data, head.end)[head.data : head.end]
    if head.end <= source.size and ((padding == 0x20) | (padding == 0)).all():
        return head.end
    why = "the file header does not end where it says"
    return skip_damage(source, head.pos, source.size, problems, head.end > source.size, why=why)


def skip_damage(
    source: Source,
    pos: int,
    end: int,
    problems: list[Problem],
    cut: bool,
    where: int | None = None,
    why: str = "",
) -> int:
    """Report the bytes at *pos* that are no record; return the offset of the next record, *end* if there is none.

    cut    True if the bytes are the beginning of a record that ends after *end*
    where  file offset for the problem, if *source* is a decompressed chunk
    why    reason to be added to the text of the problem
    """
    if pos >= end:
        return end
    hit = records.find_record(source, pos, end)
    size = hit - pos
    at = pos if where is None else where
    inside = "" if where is None else " of an unpacked chunk"
    reason = f" ({why})" if why else ""
    # Bytes of a decompressed chunk are not bytes of the file.
    here = size if where is None else 0
    if not source.span(pos, hit)[pos:hit].any():
        # Real bags have zeros between the last chunk and the index.
        problems.append(
            Problem("zeros", at, here, hit == source.size, f"{size} bytes of zeros between records{inside}")
        )
    elif hit == end and cut:
        problems.append(
            Problem("truncated", at, here, True, f"the last {size} bytes{inside} are a cut record{reason}")
        )
    else:
        problems.append(
            Problem("garbage", at, here, True, f"{size} bytes{inside} that are no record{reason}")
        )
    return hit


class _Buffers:
    def __init__(self, n: int) -> None:
        self.key, self.time = np.empty(n, np.uint64), np.empty(n, np.int64)
        self.data, self.size = np.empty(n, np.int64), np.empty(n, np.int64)
        self.note = np.empty((n, 2), np.int64)

    def walk(self, region: Region, pos: int) -> tuple[int, int, int, int]:
        """Fill the arrays with records from *pos* on; return reason of the end, its offset, messages, other records."""
        arrays = (self.key, self.time, self.data, self.size, self.note)
        return rosbag.walk(region.source.data, pos, region.end, *arrays, region.foreign, region.named)

    def messages(self, region: Region, pos: int, n: int) -> list[ChunkMessages]:
        """Return the first *n* messages, divided where their offsets relative to the base would not fit 32 bits."""
        key, time, data, size = (
            a[:n].copy() for a in (self.key.view(np.int64), self.time, self.data, self.size)
        )
        parts, lo = [], 0
        while lo < n:
            base = pos if lo == 0 else int(data[lo])
            hi = int(np.searchsorted(data, base + MAX_SPAN))
            if hi == lo:
                base, hi = int(data[lo]), lo + 1
            at = slice(lo, hi)
            parts.append(_chunk_messages(region, base, key[at], time[at], data[at], size[at]))
            lo = hi
        return parts


def _chunk_messages(region: Region, base: int, key: I64, time: I64, data: I64, size: I64) -> ChunkMessages:
    entry = (data - base).astype(np.uint32)
    pos = base if region.where is None else region.where
    return ChunkMessages(region.chunk, pos, base, region.end, key, time, entry, size.astype(np.uint32))
