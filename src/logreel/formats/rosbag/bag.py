"""What is found in a bag of version 2.0, by its index or by reading everything."""

from __future__ import annotations

from dataclasses import dataclass, field

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import COMPRESSIONS, Chunk
from logreel.formats.rosbag.connections import Connection
from logreel.formats.rosbag.encryption import Cipher
from logreel.formats.rosbag.found import Found, Indexed
from logreel.formats.rosbag.reader import ALL_NAMES, TOPIC
from logreel.formats.rosbag.records import BadRecord, Fields, Record, parse_fields, topic_key
from logreel.io.source import Source

#: How much slower than reading a chunk unpacking it is, about.
_COST = {"lz4": 4, "bz2": 100}
#: Looking at this many plain bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 30
#: Type and checksum where they cannot be read; recorders wrote it where they did not know.
UNKNOWN = "*"
_DEFINITION = {b"type", b"md5sum", b"message_definition"}


@dataclass(slots=True)
class Bag:
    """What was found: messages by the index or else per chunk, connections by number, chunks in file order.

    is_early  True for the development versions
    cipher    what decrypts it, None if it is not encrypted
    """

    parts: list[Found] = field(default_factory=list)
    connections: dict[int, Connection] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    index: Indexed | None = None
    chunk_count: int = 0
    compressions: set[str] = field(default_factory=set)
    costly: int = 0
    is_early: bool = False
    cipher: Cipher | None = None

    def count(self, chunk: Chunk) -> None:
        """Take note of a chunk for the summary."""
        self.chunk_count += 1
        self.compressions.add(chunk.compression)
        self.costly += chunk.size * _COST.get(chunk.compression, 1)

    @property
    def named(self) -> int:
        """What tells the connection of a message that has no number."""
        return TOPIC if self.is_early else ALL_NAMES

    @property
    def is_cheap(self) -> bool:
        """True if looking at every message takes no time that people notice."""
        return self.costly < CHEAP_BYTES


def take_connection(source: Source, record: Record, bag: Bag, salvage: bool = False) -> None:
    """Take in a connection record; a whole one met before is not replaced.

    Raises BadRecord if it is not whole; with *salvage* only if it does not tell the topic.
    """
    try:
        fields = parse_fields(source.read(record.data, record.size))
    except BadRecord:
        if not salvage:
            raise
        fields = {}
    whole = b"type" in fields and b"md5sum" in fields
    if b"topic" not in record.fields or not (whole or salvage):
        raise BadRecord("a connection without topic, type or checksum")
    number = record.u32(b"conn")
    known = bag.connections.get(number)
    if known is not None and not (whole and known.type == UNKNOWN):
        return

    def text(name: bytes) -> str:
        return fields.get(name, b"").decode("utf-8", "replace")

    bag.connections[number] = Connection(
        number,
        record.text(b"topic"),
        text(b"type") if whole else UNKNOWN,
        text(b"md5sum") if whole else UNKNOWN,
        text(b"message_definition"),
        text(b"callerid"),
        text(b"latching") == "1",
        _header(fields),
    )


def _header(fields: Fields) -> tuple[tuple[str, str], ...]:
    """The header of the publisher but for the definition."""
    said = ((name, value) for name, value in fields.items() if name not in _DEFINITION)
    return tuple((name.decode("utf-8", "replace"), value.decode("utf-8", "replace")) for name, value in said)


def take_definition(record: Record, bag: Bag) -> None:
    """Take in a definition record of a development version, which messages refer to by their topic."""
    topic, md5 = record.text(b"topic"), record.text(b"md5") or record.text(b"md5sum")
    key = topic_key(record.fields.get(b"topic", b""))
    bag.connections.setdefault(key, Connection(key, topic, record.text(b"type"), md5, record.text(b"def")))


def chunk_of(record: Record, bag: Bag) -> Chunk:
    """The chunk whose header is *record*; raises BadRecord if it is none."""
    compression = record.text(b"compression")
    if record.op != records.OP_CHUNK or compression not in COMPRESSIONS:
        raise BadRecord(f"there is no chunk at {record.pos}, or one of compression {compression[:20]!r}")
    # Chunks are encrypted when they are finished.
    cipher = bag.cipher if record.size else None
    return Chunk(record.pos, record.data, record.size, compression, record.u32(b"size"), cipher)
