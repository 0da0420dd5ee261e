"""Protobuf messages in the descriptor blocks of a BDDF file; ``encode_blocks`` writes them.

They are parsed without the protobuf library: there are few of them, a field with invalid text must not make the whole
message unreadable, and opening a file should import no library. Field numbers: docs/formats/bddf.md.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from itertools import islice

from logreel.dataclass import dataclass, field
from logreel.schemas.protobuf.wire import entry, items, packed

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
