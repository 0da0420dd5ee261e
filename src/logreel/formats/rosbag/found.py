"""The content found in a bag: messages by chunk or by index, connections, chunks and problems."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import COMPRESSIONS, Chunk
from logreel.formats.rosbag.definitions import Connection
from logreel.formats.rosbag.encryption import Cipher
from logreel.formats.rosbag.records import (
    ALL_NAMES,
    TOPIC,
    BadRecord,
    Fields,
    Record,
    parse_fields,
    topic_key,
)
from logreel.io.arrays import I64
from logreel.io.source import Source

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
