"""Blocks of a file: their headers, and the end block."""

from __future__ import annotations

import struct

from logreel.dataclass import dataclass
from logreel.formats.bddf.descriptors import open_descriptor
from logreel.io.source import Source
from logreel.schemas.protobuf.wire import BadWire, items

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
