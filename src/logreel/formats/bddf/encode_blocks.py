"""Encode the blocks that hold no data: descriptors, with fields in order of their numbers, and the end block."""

from __future__ import annotations

import struct

from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import (
    POD_TYPES,
    FileDescriptor,
    FileIndex,
    Identifier,
    MessageSeriesType,
    PodType,
    SeriesDeclaration,
    StructType,
)
from logreel.formats.bddf.records import DESCRIPTOR, END, END_MAGIC
from logreel.schemas.protobuf.build import mapping, number, packed, part, text

#: Size field of the end block, as the reference writer sets it; readers ignore it.
END_SIZE = 24


def descriptor(field: int, content: bytes) -> bytes:
    """Return a descriptor block with one message, given by its field number; 0: an empty block."""
    body = part(field, content) if field else b""
    return struct.pack("<Q", DESCRIPTOR << 56 | len(body)) + body


def file_descriptor(file: FileDescriptor) -> bytes:
    """Return the first block of a file."""
    version = b"".join(number(i + 1, n) for i, n in enumerate(file.version))
    body = part(1, version) + mapping(2, file.annotations)
    return descriptor(descriptors.FILE, body + number(3, file.checksum) + number(4, file.checksum_size))


def identifier(name: Identifier) -> bytes:
    """Return the bytes of a SeriesIdentifier."""
    return text(1, name.type) + mapping(2, name.spec)


def series_descriptor(series: SeriesDeclaration) -> bytes:
    """Return the block that declares a series."""
    body = number(1, series.index) + part(2, identifier(series.identifier)) + number(3, series.hash)
    match series.type:
        case MessageSeriesType(content, name, is_metadata):
            body += part(4, text(1, content) + text(2, name) + number(3, is_metadata))
        case PodType(pod_type, dimension):
            body += part(5, number(1, POD_TYPES.index(pod_type)) + packed(2, dimension))
        case StructType(members):
            body += part(6, mapping(1, members))
    body += mapping(7, series.annotations) + b"".join(part(8, name) for name in series.names)
    return descriptor(descriptors.SERIES, body + text(9, series.description))


def file_index(index: FileIndex) -> bytes:
    """Return the file index block, which is empty for a file without series."""
    if not index.identifiers:
        return descriptor(0, b"")
    names = b"".join(part(1, identifier(identity)) for identity in index.identifiers)
    return descriptor(descriptors.FILE_INDEX, names + packed(2, index.offsets) + packed(3, index.hashes))


def end_block_head(index: int) -> bytes:
    """Return the end block up to its checksum, which covers this part; *index* is the offset of the file index."""
    return struct.pack("<QQ", END << 56 | END_SIZE, index)


def end_block_tail(digest: bytes) -> bytes:
    """Return the end block from its checksum on."""
    return digest + END_MAGIC
