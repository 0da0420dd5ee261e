"""Records of an MCAP file: a kind, a length of eight bytes, content.

Facts from the MCAP specification, version 0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.log.schema import Schema

if TYPE_CHECKING:
    pass

MAGIC = b"\x89MCAP0\r\n"
(
    HEADER,
    FOOTER,
    SCHEMA,
    CHANNEL,
    MESSAGE,
    CHUNK,
    MESSAGE_INDEX,
    CHUNK_INDEX,
    ATTACHMENT,
    ATTACHMENT_INDEX,
    STATISTICS,
    METADATA,
    METADATA_INDEX,
    SUMMARY_OFFSET,
    DATA_END,
) = range(1, 16)
#: Kinds from here on are for applications.
PRIVATE = 0x80
#: Bytes of kind and length; of a message before its payload, with these; of a footer and the magic behind it.
HEAD, MESSAGE_HEAD, TAIL = 9, 31, 37
#: Bytes of a message index record without entries, and of an entry.
INDEX, ENTRY = 15, 16
#: How far before its payload a message has its sequence number, log time and publish time.
SEQUENCE, LOG_TIME, PUBLISH_TIME = 20, 16, 8
TIME_MAX = (1 << 63) - 1
#: A number of each channel in a list of them.
NUMBERS = np.dtype([("id", "<u2"), ("value", "<u8")])


class BadRecord(ValueError):
    """The bytes are no such record."""


class Fields:
    """Reads the fields of one record in order; raises BadRecord where they do not fit."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        """So many bytes."""
        if size > len(self.data) - self.at:
            raise BadRecord(f"a field of {size} bytes where {len(self.data) - self.at} are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, width: int) -> int:
        """An unsigned number of so many bytes."""
        return int.from_bytes(self.take(width), "little")

    def time(self) -> int:
        """A time in ns, held at the maximum of int64."""
        return min(self.number(8), TIME_MAX)

    def raw(self) -> bytes:
        """Bytes behind their number as u32."""
        return self.take(self.number(4))

    def text(self) -> str:
        """Text behind its bytes as u32; what is no UTF-8 is replaced."""
        return self.raw().decode("utf-8", "replace")

    def map(self) -> dict[str, str]:
        """Text by text."""
        inner, found = Fields(self.raw()), dict[str, str]()
        while inner.at < len(inner.data):
            name = inner.text()
            found[name] = inner.text()
        return found

    def words(self, many: int) -> tuple[int, ...]:
        """So many unsigned numbers of 8 bytes."""
        return struct.unpack(f"<{many}Q", self.take(8 * many))

    def numbers(self) -> bytes:
        """A number of each channel in a list of them: NUMBERS."""
        raw = self.raw()
        if left := len(raw) % NUMBERS.itemsize:
            raise BadRecord(f"a field of {NUMBERS.itemsize} bytes where {left} are left")
        return raw


@dataclass(frozen=True, slots=True)
class Record:
    """Where a record lies."""

    pos: int
    kind: int
    size: int

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.pos + HEAD + self.size

    def fields(self, source: Source) -> Fields:
        """Its content."""
        return Fields(source.read(self.pos + HEAD, self.size))


_HEAD = struct.Struct("<BQ")


def record_at(source: Source, pos: int, end: int) -> Record:
    """The record at *pos*; raises BadRecord where there is none that ends before *end*."""
    if not 0 <= pos <= end - HEAD:
        raise BadRecord(f"there is no record at {pos}")
    kind, size = _HEAD.unpack_from(source.view, pos)
    if kind == 0 or size > end - pos - HEAD:
        raise BadRecord(f"there is no whole record at {pos}")
    return Record(pos, kind, size)


def records(source: Source, pos: int, end: int) -> Iterator[Record]:
    """Records from *pos* on; raises BadRecord where they do not end at *end*."""
    while pos < end:
        found = record_at(source, pos, end)
        yield found
        pos = found.end


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel record."""

    id: int
    schema: int
    topic: str
    encoding: str
    metadata: Mapping[str, str]

    @classmethod
    def read(cls, f: Fields) -> Channel:
        """Of its content."""
        return cls(f.number(2), f.number(2), f.text(), f.text(), f.map())


def read_schema(f: Fields) -> tuple[int, Schema]:
    """Number and content of a schema record."""
    number, name, encoding = f.number(2), f.text(), f.text()
    return number, Schema.of(name, encoding, f.raw())


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk: its record, how it is packed, and where its stored bytes lie.

    size    bytes that it unpacks to, as it says
    crc     of these bytes, 0 for none
    """

    pos: int
    start: int
    end: int
    size: int
    crc: int
    compression: str
    data: int
    stored: int

    @classmethod
    def read(cls, source: Source, pos: int, end: int) -> Chunk:
        """The chunk at *pos*, whose stored bytes may end after *end*; raises BadRecord."""
        head = source.read(pos, min(end - pos, HEAD + 256))
        if len(head) < HEAD or head[0] != CHUNK:
            raise BadRecord(f"there is no chunk at {pos}")
        length, f = int.from_bytes(head[1:HEAD], "little"), Fields(head[HEAD:])
        start, last, size, crc = f.time(), f.time(), f.number(8), f.number(4)
        compression, stored = f.text(), f.number(8)
        if length < f.at or stored > length - f.at:
            raise BadRecord(f"the chunk at {pos} is shorter than its content")
        return cls(pos, start, last, size, crc, compression, pos + HEAD + f.at, stored)

    @property
    def is_plain(self) -> bool:
        """True if its records lie in the file as they are."""
        return not self.compression


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """A chunk as the summary has it; *offsets* (NUMBERS) say where the message index of each channel lies."""

    start: int
    end: int
    pos: int
    length: int
    offsets: bytes
    index_length: int
    compression: str
    stored: int
    size: int

    @classmethod
    def read(cls, f: Fields) -> ChunkIndex:
        """Of its content."""
        start, end, pos, length = f.words(4)
        offsets, index_length, compression = f.numbers(), f.number(8), f.text()
        times = min(start, TIME_MAX), min(end, TIME_MAX)
        return cls(*times, pos, length, offsets, index_length, compression, *f.words(2))


@dataclass(frozen=True, slots=True)
class Attached:
    """An attachment record: where its data lies."""

    pos: int
    log_time: int
    create_time: int
    name: str
    media_type: str
    data: int
    size: int
    crc: int

    @classmethod
    def read(cls, source: Source, record: Record) -> Attached:
        """Of a record; its data is not touched."""
        f = Fields(source.read(record.pos + HEAD, min(record.size, 1 << 16)))
        log_time, create_time, name, media_type = f.time(), f.time(), f.text(), f.text()
        size = f.number(8)
        if size > record.size - f.at - 4:
            raise BadRecord("an attachment is longer than its record")
        data = record.pos + HEAD + f.at
        crc = int.from_bytes(source.read(data + size, 4), "little")
        return cls(record.pos, log_time, create_time, name, media_type, data, size, crc)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the file counts of itself."""

    messages: int
    schemas: int
    channels: int
    attachments: int
    metadata: int
    chunks: int
    start: int
    end: int
    counts: dict[int, int]

    @classmethod
    def read(cls, f: Fields) -> Statistics:
        """Of its content."""
        messages, schemas, channels = f.number(8), f.number(2), f.number(4)
        others = f.number(4), f.number(4), f.number(4), f.time(), f.time()
        counts = dict(np.frombuffer(f.numbers(), NUMBERS).tolist())
        return cls(messages, schemas, channels, *others, counts)


def record_head(kind: int, size: int) -> bytes:
    """Kind and length of a record."""
    return struct.pack("<BQ", kind, size)


def record_bytes(kind: int, content: bytes) -> bytes:
    """A whole record."""
    return record_head(kind, len(content)) + content


def string_bytes(text: str | bytes) -> bytes:
    """Text or bytes behind their number."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return struct.pack("<I", len(raw)) + raw


def map_bytes(found: Mapping[str, str]) -> bytes:
    """A map of text by text."""
    return string_bytes(b"".join(string_bytes(name) + string_bytes(value) for name, value in found.items()))


def numbers_bytes(ids: I64 | list[int], values: I64 | list[int]) -> bytes:
    """A number for each of these channels."""
    made = np.empty(len(ids), NUMBERS)
    made["id"], made["value"] = ids, values
    return made.tobytes()
