"""Blocks of a BDDF file: their headers, the messages in descriptor blocks, and the end block.

Descriptors are parsed without the protobuf library: there are few of them, a field with invalid text must not make
the whole message unreadable, and opening a file should import no library. Field numbers: docs/formats/bddf.md.
``schema_maker`` writes them. ``STORAGE`` counts blocks by kind, for ``logreel du``.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.io.arrays import I64
from logreel.io.source import Buffer, Source
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord
from logreel.schemas.protobuf.wire import BadWire, entry, items, packed

#: Field numbers of the four messages that a DescriptorBlock can hold.
FILE, SERIES, SERIES_INDEX, FILE_INDEX = 1, 2, 3, 4
CHECKSUM_NONE, CHECKSUM_SHA1 = 1, 2
#: A sample with more dimensions is damage: it is shown as bytes, and further dimensions are not read.
MAX_DIMENSIONS = 32
#: Names of the POD types by their number; 0 is no type.
POD_TYPES = (
    "",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)


@dataclass(frozen=True, slots=True)
class Identifier:
    """Identifier of a series: a type, and values by key."""

    type: str = ""
    spec: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Identifier:
        """Parse a SeriesIdentifier. Raises BadWire."""
        type_name, spec = "", {}
        for item in items(data):
            if item.number == 1:
                type_name = item.text
            elif item.number == 2:
                key, value = entry(item.bytes)
                spec[key] = value.text
        return cls(type_name, spec)

    @property
    def hash(self) -> int:
        """First 8 bytes, big-endian, of the SHA-1 of type, keys and values; different identifiers can share one."""
        pairs = sorted((k.encode("utf-8", "replace"), v) for k, v in self.spec.items())
        digest = hashlib.sha1(self.type.encode("utf-8", "replace"), usedforsecurity=False)
        for key, value in pairs:
            digest.update(key + value.encode("utf-8", "replace"))
        return int.from_bytes(digest.digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class MessageSeriesType:
    """Type of a series of messages: MIME type, type name, and whether other messages cannot be read without it."""

    content_type: str = ""
    name: str = ""
    is_metadata: bool = False


@dataclass(frozen=True, slots=True)
class PodType:
    """Type of a series of plain values (POD): name of the type (empty: unknown) and dimensions of one sample.

    At most MAX_DIMENSIONS + 1 dimensions are kept, which is enough to see that there are too many.
    """

    type: str = ""
    dimension: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StructType:
    """Type of a series that joins others: hash of the identifier of each member, by member name."""

    members: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeriesDeclaration:
    """Declaration of a series; *names* are those of the additional indexes of each of its data blocks."""

    index: int = 0
    identifier: Identifier = field(default_factory=Identifier)
    hash: int = 0
    type: MessageSeriesType | PodType | StructType | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    description: str = ""

    @classmethod
    def parse(cls, data: bytes) -> SeriesDeclaration:
        """Parse a SeriesDescriptor. Raises BadWire."""
        index, hash_, description = 0, 0, ""
        identifier = Identifier()
        series_type: MessageSeriesType | PodType | StructType | None = None
        annotations: dict[str, str] = {}
        names = []
        for item in items(data):
            match item.number:
                case 1:
                    index = item.integer
                case 2:
                    identifier = Identifier.parse(item.bytes)
                case 3:
                    hash_ = item.integer
                case 4:
                    series_type = _message_type(item.bytes)
                case 5:
                    series_type = _pod_type(item.bytes)
                case 6:
                    series_type = StructType(
                        {
                            k: v.integer
                            for k, v in (entry(m.bytes) for m in items(item.bytes) if m.number == 1)
                        }
                    )
                case 7:
                    key, value = entry(item.bytes)
                    annotations[key] = value.text
                case 8:
                    names.append(item.text)
                case 9:
                    description = item.text
        return cls(index, identifier, hash_, series_type, annotations, tuple(names), description)


def _message_type(data: bytes) -> MessageSeriesType:
    content, name, metadata = "", "", False
    for item in items(data):
        if item.number == 1:
            content = item.text
        elif item.number == 2:
            name = item.text
        elif item.number == 3:
            metadata = bool(item.integer)
    return MessageSeriesType(content, name, metadata)


def _pod_type(data: bytes) -> PodType:
    pod_type = 0
    dimension: list[int] = []
    for item in items(data):
        if item.number == 1:
            pod_type = item.integer
        elif item.number == 2:
            more = islice(packed(item), MAX_DIMENSIONS + 1 - len(dimension))
            dimension += [n & 0xFFFFFFFF for n in more]
    return PodType(POD_TYPES[pod_type] if pod_type < len(POD_TYPES) else "", tuple(dimension))


@dataclass(frozen=True, slots=True)
class FileDescriptor:
    """Content of the first block: version, annotations of the file, type and size of its checksum."""

    version: tuple[int, int, int] = (0, 0, 0)
    annotations: Mapping[str, str] = field(default_factory=dict)
    checksum: int = 0
    checksum_size: int = 0

    @classmethod
    def parse(cls, data: bytes) -> FileDescriptor:
        """Parse a FileFormatDescriptor. Raises BadWire."""
        version = [0, 0, 0]
        annotations: dict[str, str] = {}
        checksum = size = 0
        for item in items(data):
            if item.number == 1:
                for part in items(item.bytes):
                    if part.number <= 3:
                        version[part.number - 1] = part.integer
            elif item.number == 2:
                key, value = entry(item.bytes)
                annotations[key] = value.text
            elif item.number == 3:
                checksum = item.integer
            elif item.number == 4:
                size = item.integer
        return cls((version[0], version[1], version[2]), annotations, checksum, size)


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Content of the last descriptor block: identifier, offset of the index, and hash of each series."""

    identifiers: tuple[Identifier, ...] = ()
    offsets: tuple[int, ...] = ()
    hashes: tuple[int, ...] = ()

    @classmethod
    def parse(cls, data: bytes) -> FileIndex:
        """Parse a FileIndex. Raises BadWire."""
        identifiers: list[Identifier] = []
        offsets: list[int] = []
        hashes: list[int] = []
        for item in items(data):
            if item.number == 1:
                identifiers.append(Identifier.parse(item.bytes))
            elif item.number == 2:
                offsets += packed(item)
            elif item.number == 3:
                hashes += packed(item)
        return cls(tuple(identifiers), tuple(offsets), tuple(hashes))


def open_descriptor(data: bytes) -> tuple[int, bytes]:
    """Return the message of a DescriptorBlock: its field number and bytes. Raises BadWire.

    If there are several, the last one counts; without any the field number is 0.
    """
    descriptor_kind, content = 0, b""
    for item in items(data):
        if item.number in (FILE, SERIES, SERIES_INDEX, FILE_INDEX):
            descriptor_kind, content = item.number, item.bytes
    return descriptor_kind, content


PROTOBUF, JSON = "application/protobuf", "application/json"
#: Annotation of a series of JSON messages: the JSON Schema of their fields.
JSON_SCHEMA = "logreel:json_schema"
#: The same in files of earlier versions; keys without an organization are reserved.
OLD_JSON_SCHEMA = "json_schema"


#: Annotation of a series that was a channel of another format: what it was there, as JSON.
BEFORE = "logreel:original"
#: Annotation of a series of protobuf messages: base64 of a FileDescriptorSet of their type.
DESCRIPTORS = "logreel:file_descriptor_set"


def own_descriptors(annotations: Mapping[str, str]) -> bytes:
    """Return the FileDescriptorSet among the annotations of a series; empty if there is none that is valid base64."""
    try:
        return base64.b64decode(annotations.get(DESCRIPTORS, ""), validate=True)
    except ValueError:
        return b""


def schema_in_annotations(annotations: Mapping[str, str]) -> str | None:
    """Return the JSON Schema among the annotations of a series, or None."""
    return annotations.get(JSON_SCHEMA, annotations.get(OLD_JSON_SCHEMA))


MAGIC, END_MAGIC = b"BDDF", b"FDDB"
DATA, DESCRIPTOR, END = 0, 1, 2
#: Bytes of the end block, whatever its size field says: header, offset of the file index, SHA-1, end magic.
END_BYTES = 40
#: Distance from the end of the file to the field that holds the offset of the file index.
INDEX_AT = 32
#: Distance from the end of the file to the checksum, which covers everything before it.
DIGEST_AT = 24
#: A larger descriptor block is damage, or the index of a long series, which is parsed only on demand.
MAX_DESCRIPTOR = 1 << 24
#: A larger DataDescriptor is damage.
_MAX_DATA_DESCRIPTOR = 4096

_WORD, _LENGTH = struct.Struct("<Q"), struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a block: 8 bytes. *size* does not count them, nor the 4 bytes after the header of a data block."""

    pos: int
    kind: int
    size: int

    @property
    def body(self) -> int:
        """Offset of the first byte after the header."""
        return self.pos + 8

    @property
    def next(self) -> int:
        """Offset of the next block."""
        if self.kind == END:
            return self.pos + END_BYTES
        return self.pos + (12 if self.kind == DATA else 8) + self.size


def read_header(source: Source, pos: int, end: int) -> Header | None:
    """Return the block header at *pos*, or None if fewer than 8 bytes are left before *end*."""
    if not 0 <= pos <= end - 8:
        return None
    source.span(pos, pos + 8)
    (word,) = _WORD.unpack_from(source.span_view, pos)
    return Header(pos, word >> 56, word & (1 << 56) - 1)


def read_descriptor(source: Source, pos: int, end: int, limit: int = MAX_DESCRIPTOR) -> tuple[int, bytes]:
    """Return the message in the descriptor block at *pos*: its field number and its bytes. Raises BadWire."""
    head = read_header(source, pos, end)
    if head is None or head.kind != DESCRIPTOR or head.next > end:
        raise BadWire("no whole descriptor block")
    if head.size > limit:
        raise BadWire(f"a descriptor of {head.size} bytes; at most {limit} are read")
    return open_descriptor(source.read(head.body, head.size))


def data_series(source: Source, pos: int, end: int) -> tuple[int, int] | None:
    """Return series index and end of the data block at *pos*, or None if no complete and valid one is there."""
    head = read_header(source, pos, end)
    if head is None or head.kind != DATA or head.next > end:
        return None
    (size,) = _LENGTH.unpack_from(source.view, head.body)
    if not 2 <= size <= min(head.size, _MAX_DATA_DESCRIPTOR):
        return None
    series = 0
    try:
        for item in items(source.read(head.body + 4, size)):
            if item.number == 1:
                series = item.integer
            elif item.number == 2 and any(
                part.number == 2 and part.integer >= 10**9 for part in items(item.bytes)
            ):
                return None
    except BadWire:
        return None
    return series, head.next


@dataclass(frozen=True, slots=True)
class EndBlock:
    """The last block of a file: its offset, the offset of the file index (0: no index), and the checksum."""

    pos: int
    index: int
    digest: bytes


def read_end_block(source: Source, pos: int) -> EndBlock | None:
    """Return the end block at *pos*, or None if no complete one is there."""
    raw = source.read(pos, END_BYTES) if pos >= 0 else b""
    if len(raw) < END_BYTES or raw[7] != END or raw[-4:] != END_MAGIC:
        return None
    return EndBlock(pos, _WORD.unpack_from(raw, 8)[0], raw[16:36])


#: Descriptor blocks by the first byte of their message, which is the tag of its only field.
KINDS = {0x0A: storage.FILE_HEADER, 0x12: storage.DEFINITIONS, 0x1A: storage.INDEX, 0x22: storage.INDEX}
#: Longest DataDescriptor that is looked for, bytes.
_LONGEST = 4096


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0 and data[:4].tobytes() == MAGIC:
        yield StoredRecord(storage.FILE_HEADER, 4)
        at = 4
    while end - at >= 8:
        word = int.from_bytes(data[at : at + 8].tobytes(), "little")
        block_type, size = word >> 56, word & (1 << 56) - 1
        record_size = END_BYTES if block_type == END else size + (12 if block_type == DATA else 8)
        if record_size > end - at:
            return
        what = "other blocks"
        if block_type == DATA:
            what = storage.UNASSIGNED
        elif block_type == END:
            what = storage.INDEX
        elif block_type == DESCRIPTOR and size:
            what = KINDS.get(int(data[at + 8]), what)
        yield StoredRecord(what, record_size)
        at += record_size


def _heads(data: Buffer, start: I64, size: I64) -> I64:
    """Return int64[n]: bytes of each data block before its payload; 0 where no block begins."""
    sizes = np.zeros(len(start), np.int64)
    left = np.arange(len(start))
    for n in range(_LONGEST):
        if not len(left):
            break
        at = start[left] - n - 12
        fits = at >= 0
        head = np.ascontiguousarray(data[at[fits, None] + np.arange(12)])
        words, lengths = head[:, :8].copy().view("<u8")[:, 0], head[:, 8:].copy().view("<u4")[:, 0]
        # The kind of a data block is 0, so the word is the size.
        fits[fits] = (words == (size[left][fits] + n).astype(np.uint64)) & (lengths == n)
        sizes[left[fits]] = n + 12
        left = left[~fits]
    return sizes


STORAGE = Storage(_heads, _records)
