"""Blocks: the word that each begins with, and the two that tell of the whole file."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from logreel.formats.bddf.messages import open_descriptor
from logreel.io.source import Source
from logreel.schemas.protobuf.wire import BadWire, items

MAGIC, END_MAGIC = b"BDDF", b"FDDB"
DATA, DESCRIPTOR, END = 0, 1, 2
#: Bytes of the last block, whatever its size field says: header, place of the index, SHA-1, end magic.
END_BYTES = 40
#: From the end of the file: the place of the index.
INDEX_AT = 32
#: From the end of the file: what the checksum covers ends here.
DIGEST_AT = 24
#: A descriptor longer than this is damage, or an index of its own kind.
MAX_DESCRIPTOR = 1 << 24

_WORD, _LENGTH = struct.Struct("<Q"), struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Header:
    """The word that a block begins with; *size* leaves out the word itself and, in data blocks, four bytes more."""

    pos: int
    kind: int
    size: int

    @property
    def body(self) -> int:
        """Where what follows the word begins."""
        return self.pos + 8

    @property
    def next(self) -> int:
        """Where the next block begins."""
        if self.kind == END:
            return self.pos + END_BYTES
        return self.pos + (12 if self.kind == DATA else 8) + self.size


def read_header(source: Source, pos: int, end: int) -> Header | None:
    """The word at *pos*; None where it is cut."""
    if not 0 <= pos <= end - 8:
        return None
    (word,) = _WORD.unpack_from(source.view, pos)
    return Header(pos, word >> 56, word & (1 << 56) - 1)


def read_descriptor(source: Source, pos: int, end: int, limit: int = MAX_DESCRIPTOR) -> tuple[int, bytes]:
    """Which message the descriptor block at *pos* holds, and its bytes. Raises BadWire."""
    head = read_header(source, pos, end)
    if head is None or head.kind != DESCRIPTOR or head.next > end:
        raise BadWire("no whole descriptor block")
    if head.size > limit:
        raise BadWire(f"a descriptor of {head.size} bytes")
    return open_descriptor(source.read(head.body, head.size))


def data_series(source: Source, pos: int, end: int) -> tuple[int, int] | None:
    """Series and end of the data block at *pos*; None where there is none that is whole and sound."""
    head = read_header(source, pos, end)
    if head is None or head.kind != DATA or head.next > end:
        return None
    (size,) = _LENGTH.unpack_from(source.view, head.body)
    if not 2 <= size <= min(head.size, 4096):
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
class Ending:
    """The last block: its place, where it says the index is (0: nowhere), and the checksum."""

    pos: int
    index: int
    digest: bytes


def read_ending(source: Source, pos: int) -> Ending | None:
    """The end block at *pos*; None where there is none that is whole."""
    raw = source.read(pos, END_BYTES) if pos >= 0 else b""
    if len(raw) < END_BYTES or raw[7] != END or raw[-4:] != END_MAGIC:
        return None
    return Ending(pos, _WORD.unpack_from(raw, 8)[0], raw[16:36])
