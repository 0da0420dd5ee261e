"""The blocks that hold no data, as bytes; the twin of ``messages``, with fields in the order of their numbers."""

from __future__ import annotations

import struct

from logreel.formats.bddf import messages
from logreel.formats.bddf.messages import (
    POD_TYPES,
    FileDescriptor,
    FileIndex,
    Identifier,
    MessageType,
    PodType,
    Series,
    StructType,
)
from logreel.formats.bddf.records import DESCRIPTOR, END, END_MAGIC
from logreel.schemas.protobuf.build import mapping, number, packed, part, text

#: What the end block says of its size; readers do not ask.
END_SIZE = 24


def descriptor(kind: int, content: bytes) -> bytes:
    """A descriptor block that holds one of the four messages; 0: an empty one."""
    body = part(kind, content) if kind else b""
    return struct.pack("<Q", DESCRIPTOR << 56 | len(body)) + body


def file_descriptor(file: FileDescriptor) -> bytes:
    """The first block of a file."""
    version = b"".join(number(i + 1, n) for i, n in enumerate(file.version))
    told = part(1, version) + mapping(2, file.annotations)
    return descriptor(messages.FILE, told + number(3, file.checksum) + number(4, file.checksum_size))


def identifier(name: Identifier) -> bytes:
    """The name of a series."""
    return text(1, name.type) + mapping(2, name.spec)


def series_descriptor(series: Series) -> bytes:
    """The block that declares a series."""
    body = number(1, series.index) + part(2, identifier(series.identifier)) + number(3, series.hash)
    match series.type:
        case MessageType(content, name, is_metadata):
            body += part(4, text(1, content) + text(2, name) + number(3, is_metadata))
        case PodType(kind, dimension):
            body += part(5, number(1, POD_TYPES.index(kind)) + packed(2, dimension))
        case StructType(members):
            body += part(6, mapping(1, members))
    body += mapping(7, series.annotations) + b"".join(part(8, name) for name in series.names)
    return descriptor(messages.SERIES, body + text(9, series.description))


def file_index(index: FileIndex) -> bytes:
    """The last descriptor of a file, which is empty where there is no series."""
    if not index.identifiers:
        return descriptor(0, b"")
    names = b"".join(part(1, identifier(one)) for one in index.identifiers)
    return descriptor(messages.FILE_INDEX, names + packed(2, index.offsets) + packed(3, index.hashes))


def ending(index: int) -> bytes:
    """The end block up to its checksum, which covers all of this; *index* is the place of the file index."""
    return struct.pack("<QQ", END << 56 | END_SIZE, index)


def closing(digest: bytes) -> bytes:
    """The rest of the end block."""
    return digest + END_MAGIC
