"""Records of an MCAP file: opcode (here *kind*), u64 length, content.

Source: the MCAP specification, version 0. ``STORAGE`` counts them by kind, for ``logreel du``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping

import numpy as np

from logreel.dataclass import dataclass
from logreel.io.arrays import I64
from logreel.io.source import Buffer, Source
from logreel.log.scan import Schema
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

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
#: Kinds from here on are private records of applications.
PRIVATE = 0x80
#: Bytes of kind and length; of a message record before its payload; of a footer record and the magic after it.
HEAD, MESSAGE_HEAD, TAIL = 9, 31, 37
#: Bytes of a message index record without entries, and of an entry.
INDEX, ENTRY = 15, 16
#: Distance of sequence number, log time and publish time from the payload that they precede, in bytes.
SEQUENCE, LOG_TIME, PUBLISH_TIME = 20, 16, 8
TIME_MAX = (1 << 63) - 1
#: Entry of a map of channel ids to u64 numbers.
NUMBERS = np.dtype([("id", "<u2"), ("value", "<u8")])


class BadRecord(ValueError):
    """The bytes are no record of the expected kind, or contradict other records."""


class Fields:
    """Reader of the fields of one record, in order; its methods raise BadRecord if a field does not fit."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        """Return the next *size* bytes."""
        data, at = self.data, self.at
        end = at + size
        if end > len(data):
            raise BadRecord(f"a field of {size} bytes where {len(data) - at} are left")
        self.at = end
        return data[at:end]

    def number(self, width: int) -> int:
        """Return the next unsigned number of *width* bytes."""
        return int.from_bytes(self.take(width), "little")

    def time(self) -> int:
        """Return the next time in ns, limited to the maximum of int64."""
        return min(self.number(8), TIME_MAX)

    def raw(self) -> bytes:
        """Return the next bytes, which are preceded by their u32 number."""
        return self.take(self.number(4))

    def text(self) -> str:
        """Return the next string, invalid UTF-8 replaced."""
        return self.raw().decode("utf-8", "replace")

    def map(self) -> dict[str, str]:
        """Return the next map of strings to strings."""
        inner, values = Fields(self.raw()), dict[str, str]()
        while inner.at < len(inner.data):
            name = inner.text()
            values[name] = inner.text()
        return values

    def words(self, count: int) -> tuple[int, ...]:
        """Return the next *count* u64 numbers."""
        return struct.unpack(f"<{count}Q", self.take(8 * count))

    def numbers(self) -> bytes:
        """Return the bytes of the next map of channel ids to u64 numbers, entries of dtype NUMBERS."""
        raw = self.raw()
        if left := len(raw) % NUMBERS.itemsize:
            raise BadRecord(f"a field of {NUMBERS.itemsize} bytes where {left} are left")
        return raw


@dataclass(frozen=True, slots=True)
class Record:
    """File offset, kind and content size of a record."""

    pos: int
    kind: int
    size: int

    @property
    def end(self) -> int:
        """Offset of the next record."""
        return self.pos + HEAD + self.size

    def fields(self, source: Source) -> Fields:
        """Return the reader of its content."""
        return Fields(source.read(self.pos + HEAD, self.size))


_HEAD = struct.Struct("<BQ")


def _head(source: Source, pos: int) -> tuple[int, int]:
    source.span(pos, pos + HEAD)
    opcode, size = _HEAD.unpack_from(source.span_view, pos)
    return opcode, size


def record_at(source: Source, pos: int, end: int) -> Record:
    """Return the record at *pos*; raise BadRecord if there is none, or if it ends after *end*."""
    if not 0 <= pos <= end - HEAD:
        raise BadRecord(f"there is no record at {pos}")
    opcode, size = _head(source, pos)
    if opcode == 0 or size > end - pos - HEAD:
        raise BadRecord(f"there is no whole record at {pos}")
    return Record(pos, opcode, size)


def records(source: Source, pos: int, end: int) -> Iterator[Record]:
    """Yield the records from *pos* on; raise BadRecord if they do not end at *end*."""
    while pos < end:
        record = record_at(source, pos, end)
        yield record
        pos = record.end


@dataclass(frozen=True, slots=True)
class ChannelRecord:
    """A channel record."""

    id: int
    schema: int
    topic: str
    encoding: str
    metadata: Mapping[str, str]

    @classmethod
    def read(cls, f: Fields) -> ChannelRecord:
        """Return the channel of a record's content."""
        return cls(f.number(2), f.number(2), f.text(), f.text(), f.map())


def read_schema(f: Fields) -> tuple[int, Schema]:
    """Return id and content of a schema record."""
    number, name, encoding = f.number(2), f.text(), f.text()
    return number, Schema.of(name, encoding, f.raw())


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk record: offset, first and last time in ns, compression, and interval of its stored bytes.

    size    decompressed bytes, as stated
    crc     CRC-32 of the decompressed bytes; 0: none; -1: known from the summary only, which does not state it
    data    file offset of the stored bytes
    stored  number of stored bytes
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
        """Return the chunk at *pos*, whose stored bytes may end after *end*; raise BadRecord."""
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
        """True if it is not compressed."""
        return not self.compression


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """A chunk index record; *offsets* (dtype NUMBERS): file offset of the message index record of each channel."""

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
        """Return the chunk index of a record's content."""
        start, end, pos, length = f.words(4)
        offsets, index_length, compression = f.numbers(), f.number(8), f.text()
        times = min(start, TIME_MAX), min(end, TIME_MAX)
        return cls(*times, pos, length, offsets, index_length, compression, *f.words(2))


@dataclass(frozen=True, slots=True)
class AttachmentRecord:
    """An attachment record, with file offset and size of its data."""

    pos: int
    log_time: int
    create_time: int
    name: str
    media_type: str
    data: int
    size: int
    crc: int

    @classmethod
    def read(cls, source: Source, record: Record) -> AttachmentRecord:
        """Return the attachment of a record, without reading its data."""
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
    """A statistics record; *counts*: messages by channel id."""

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
        """Return the statistics of a record's content."""
        messages, schemas, channels = f.number(8), f.number(2), f.number(4)
        others = f.number(4), f.number(4), f.number(4), f.time(), f.time()
        counts = np.frombuffer(f.numbers(), NUMBERS)
        by_channel = dict(zip(counts["id"].tolist(), counts["value"].tolist(), strict=True))
        return cls(messages, schemas, channels, *others, by_channel)


def record_head(opcode: int, size: int) -> bytes:
    """Return kind and length of a record as bytes."""
    return struct.pack("<BQ", opcode, size)


def record_bytes(opcode: int, content: bytes) -> bytes:
    """Return a whole record as bytes."""
    return record_head(opcode, len(content)) + content


def string_bytes(text: str | bytes) -> bytes:
    """Return text or bytes preceded by their u32 number of bytes."""
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return struct.pack("<I", len(raw)) + raw


def map_bytes(values: Mapping[str, str]) -> bytes:
    """Return a map of strings to strings as bytes."""
    return string_bytes(b"".join(string_bytes(name) + string_bytes(value) for name, value in values.items()))


def numbers_bytes(ids: I64 | list[int], values: I64 | list[int]) -> bytes:
    """Return channel ids with their numbers as entries of a map."""
    made = np.empty(len(ids), NUMBERS)
    made["id"], made["value"] = ids, values
    return made.tobytes()


KINDS = {
    HEADER: storage.FILE_HEADER, FOOTER: storage.INDEX, SCHEMA: storage.DEFINITIONS,
    CHANNEL: storage.DEFINITIONS, MESSAGE: storage.UNASSIGNED, CHUNK: "chunks",
    MESSAGE_INDEX: storage.INDEX, CHUNK_INDEX: storage.INDEX,
    ATTACHMENT: storage.ATTACHMENTS, ATTACHMENT_INDEX: storage.INDEX,
    STATISTICS: storage.INDEX, METADATA: storage.METADATA, METADATA_INDEX: storage.INDEX,
    SUMMARY_OFFSET: storage.INDEX, DATA_END: storage.INDEX,
}  # fmt: skip
#: Bytes of a chunk before the length of its compression: kind, length, two times, size, checksum.
_CHUNK_HEAD = HEAD + 8 + 8 + 8 + 4


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    while at < end:
        if data[at : min(at + len(MAGIC), end)].tobytes() == MAGIC:
            yield StoredRecord(storage.FILE_HEADER, len(MAGIC))
            at += len(MAGIC)
            continue
        if end - at < HEAD:
            return
        opcode, length = int(data[at]), _number(data, at + 1, 8)
        if opcode == CHUNK and (chunk := _chunk(data, at, length, end)) is not None:
            yield chunk
            at += chunk.size
            continue
        if at + HEAD + length > end or (opcode not in KINDS and opcode < PRIVATE):
            return
        yield StoredRecord(KINDS.get(opcode, "private records"), HEAD + length)
        at += HEAD + length


def _chunk(data: Buffer, at: int, length: int, end: int) -> StoredRecord | None:
    """Return the chunk at *at*; None if it is incomplete."""
    if end - at < _CHUNK_HEAD + 4:
        return None
    name = _number(data, at + _CHUNK_HEAD, 4)
    head = _CHUNK_HEAD + 4 + name + 8
    if head > HEAD + length or at + head > end:
        return None
    compression = (
        data[at + _CHUNK_HEAD + 4 : at + _CHUNK_HEAD + 4 + name].tobytes().decode("utf-8", "replace")
    )
    content = _number(data, at + head - 8, 8)
    if compression:
        if content > HEAD + length - head or at + HEAD + length > end:
            return None
        return StoredRecord("chunks", HEAD + length, compression, head, content)
    return StoredRecord(storage.CHUNK_HEADERS, head, "none", head, min(content, HEAD + length - head))


def _number(data: Buffer, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width].tobytes(), "little")


STORAGE = Storage(MESSAGE_HEAD, _records)
