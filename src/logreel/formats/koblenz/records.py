"""Constants and structs of Koblenz logs: file header, message header, and what the size of a message counts.

Source: the public description of the format; docs/formats/koblenz.md lists what that leaves open.
``STORAGE`` is what of a log is no message, for ``logreel du``.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.io.source import Buffer, Source
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Sequence, String, Struct, size_of
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

MAGIC = b"\xa4VEL"
FILE_HEADER = 12
HEAD = 21
VALID_MARK = 0x49
#: Possible marks of valid messages, in the order in which they are tried. The description says ``"1" (Hex 0x49)``,
#: which contradicts itself: the digit is 0x31, and a boolean is 0x01.
MARKS = (VALID_MARK, 0x31, 0x01)
END_MARK = 0xFFFFFFFF
#: Text that logreel writes after the end mark, where any bytes are allowed, into parts of a log.
UTC_OFFSET = b"logreel utc_offset_ns="
#: Largest message in bytes.
MAX_SIZE = 64 << 20
MAX_ID, MAX_VERSION = 1 << 24, 1 << 16
#: Limit of times in ms; greater ones, after 30 000 years, are damage.
MAX_MS = 1e15

#: File header: magic, version, number of index entries.
HEADER = struct.Struct("<4s4sI")
_HEAD = struct.Struct("<IBiid")
#: Message header, for many at once.
HEADS = np.dtype([("size", "<u4"), ("mark", "u1"), ("type", "<i4"), ("version", "<i4"), ("ms", "<f8")])
_U32 = struct.Struct("<I")
_UTC_NOTE = re.compile(re.escape(UTC_OFFSET) + rb"(-?\d{1,19})\n")
_LONGEST_NOTE = 64


@dataclass(frozen=True, slots=True)
class SizeReading:
    """What the size field of a message counts, in bytes.

    base  size field of a message without payload
    add   bytes of a message that the size field does not count
    """

    name: str
    base: int
    add: int


#: In the order in which they are tried. Only the first one agrees with the whole description.
SIZE_READINGS = (SizeReading("A", 17, 4), SizeReading("B", 21, 0), SizeReading("C", 0, 21))


@dataclass(frozen=True, slots=True)
class Head:
    """The header of the message at *pos*."""

    pos: int
    size: int
    mark: int
    type: int
    version: int
    ms: float

    @property
    def payload(self) -> int:
        """Position where the payload begins."""
        return self.pos + HEAD

    def end(self, size_reading: SizeReading) -> int:
        """Return the position where the message ends."""
        return self.pos + self.size + size_reading.add

    def is_plausible(self, size_reading: SizeReading) -> bool:
        """Return whether all values are possible in a header; the mark is not checked."""
        return (
            size_reading.base <= self.size <= MAX_SIZE
            and 0 < self.type < MAX_ID
            and 0 <= self.version < MAX_VERSION
            and math.isfinite(self.ms)
            and abs(self.ms) < MAX_MS
        )


def read_head(source: Source, pos: int) -> Head | None:
    """Return the header at *pos*; None if the file ends inside it."""
    if not 0 <= pos <= source.size - HEAD:
        return None
    return Head(pos, *_HEAD.unpack_from(source.view, pos))


def read_heads(source: Source, pos: NDArray[np.int64]) -> NDArray[Any]:
    """Return HEADS[n]: the headers at *pos*, which must all be inside the file."""
    rows = source.data[pos[:, None] + np.arange(HEAD)]
    return np.ascontiguousarray(rows).view(HEADS)[:, 0]


def are_plausible(heads: NDArray[Any], size_reading: SizeReading) -> NDArray[np.bool_]:
    """Return bool[n]: whether all values of each header are possible; the marks are not checked."""
    good: NDArray[np.bool_] = (
        (heads["size"] >= size_reading.base)
        & (heads["size"] <= MAX_SIZE)
        & (heads["type"] > 0)
        & (heads["type"] < MAX_ID)
        & (heads["version"] >= 0)
        & (heads["version"] < MAX_VERSION)
    )
    # Comparisons with NaN are false.
    with np.errstate(invalid="ignore"):
        good &= np.abs(heads["ms"]) < MAX_MS
    return good


def pack_head(size: int, mark: int, type_id: int, version: int, ms: float) -> bytes:
    """Encode the header of a message."""
    return _HEAD.pack(size, mark, type_id, version, ms)


def pack_end_mark() -> bytes:
    """Return an end mark."""
    return _U32.pack(END_MARK)


def pack_utc_note(offset: int) -> bytes:
    """Return an end mark followed by the UTC offset in ns as text."""
    return _U32.pack(END_MARK) + UTC_OFFSET + str(offset).encode() + b"\n"


def read_utc_note(source: Source, end: int | None) -> int | None:
    """Return the UTC offset in ns written after the end mark at *end* (see ``pack_utc_note``), or None."""
    if end is None:
        return None
    match = _UTC_NOTE.match(source.read(end + 4, min(_LONGEST_NOTE, source.size - end - 4)))
    return None if match is None else int(match[1])


def is_end(source: Source, pos: int) -> bool:
    """Return whether the log ends at *pos*: with the file, or with the end mark."""
    if pos > source.size:
        return False
    return source.size - pos < 4 or _U32.unpack_from(source.view, pos)[0] == END_MARK


def content_end(node: Node, source: Source, pos: int, stop: int) -> int:
    """Return the end of the bytes of *node* that begin at *pos*; -1 if that is after *stop*."""
    if isinstance(node, Struct):
        for f in node.fields:
            pos = content_end(f.node, source, pos, stop)
            if pos < 0:
                return -1
        return pos
    size = size_of(node)
    if size is not None:
        return pos + size if size <= stop - pos else -1
    match node:
        case Rest():
            return stop
        case FixedArray(item=item, count=count):
            return _repeated(item, count, source, pos, stop)
        case String(width=width) | Bytes(width=width):
            return _counted(1, width, source, pos, stop)
        case Sequence(item=item, width=width) if (fixed := size_of(item)) is not None:
            return _counted(fixed, width, source, pos, stop)
        case Sequence(item=item, width=width) if width <= stop - pos:
            count = int.from_bytes(source.read(pos, width), "little")
            return _repeated(item, count, source, pos + width, stop)
    return -1


def _counted(item: int, width: int, source: Source, pos: int, stop: int) -> int:
    if width > stop - pos:
        return -1
    size = int.from_bytes(source.read(pos, width), "little") * item
    pos += width
    return pos + size if size <= stop - pos else -1


def _repeated(item: Node, count: int, source: Source, pos: int, stop: int) -> int:
    # Each item takes at least one byte, so a count that is too large ends the loop.
    for _ in range(count):
        pos = content_end(item, source, pos, stop)
        if pos < 0:
            return -1
    return pos


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0 and end >= FILE_HEADER:
        yield StoredRecord(storage.FILE_HEADER, FILE_HEADER)


STORAGE = Storage(HEAD, _records)
