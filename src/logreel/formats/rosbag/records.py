"""Records of bags since version 1.2: a header of ``name=value`` fields, then data.

Facts from the bag format pages and from the programs that wrote the files; docs/formats/rosbag.md tells which is which.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from logreel.io.source import Source
from logreel.kernels import rosbag

OP_DEFINITION, OP_MESSAGE, OP_FILE, OP_INDEX, OP_CHUNK, OP_CHUNK_INFO, OP_CONNECTION = range(1, 8)
#: A header longer than this is damage: real ones hold a definition of some kilobytes at most.
MAX_HEADER = 1 << 24
#: Of a record that is looked for after damage; only definitions need more than some hundred bytes.
LONGEST_FOUND = 1 << 15

_U32 = struct.Struct("<I")

Fields = dict[bytes, bytes]


class BadRecord(ValueError):
    """The bytes are no record; *cut* if they are, as far as they go, but end after the end of the data."""

    def __init__(self, text: str, cut: bool = False) -> None:
        super().__init__(text)
        self.cut = cut


@dataclass(frozen=True, slots=True)
class Record:
    """One record: its place, its header fields and the place of its data."""

    pos: int
    fields: Fields
    data: int
    size: int

    @property
    def op(self) -> int:
        """The kind of record."""
        return self.fields[b"op"][0]

    @property
    def end(self) -> int:
        """Where the next record begins."""
        return self.data + self.size

    def u32(self, name: bytes) -> int:
        """A field as an unsigned number; raises BadRecord if it is missing or of another size."""
        value = self.fields.get(name, b"")
        if len(value) not in (4, 8):
            raise BadRecord(f"field {name.decode()} is missing or not a number")
        return int.from_bytes(value, "little")

    def time(self, name: bytes) -> int:
        """A field as a time in ns; -1 if it is missing or of another size."""
        value = self.fields.get(name, b"")
        return _U32.unpack(value[:4])[0] * 10**9 + _U32.unpack(value[4:])[0] if len(value) == 8 else -1

    def text(self, name: bytes) -> str:
        """A field as text, invalid UTF-8 replaced; empty if it is missing."""
        return self.fields.get(name, b"").decode("utf-8", "replace")


def parse_fields(header: bytes) -> Fields:
    """The ``name=value`` fields of a header; of a repeated name the last one. Raises BadRecord."""
    fields: Fields = {}
    at = 0
    while at < len(header):
        if len(header) - at < 4:
            raise BadRecord("a header field is cut")
        (n,) = _U32.unpack_from(header, at)
        at += 4
        name, equals, value = header[at : at + n].partition(b"=")
        if n > len(header) - at or not equals:
            raise BadRecord("a header field has no name or a wrong length")
        fields[name] = value
        at += n
    return fields


def read_record(source: Source, pos: int, end: int) -> Record:
    """The record at *pos*; raises BadRecord if there is none that ends before *end*."""
    left = end - pos
    if left < 4:
        raise BadRecord("the header length is cut", cut=True)
    (n,) = _U32.unpack_from(source.view, pos)
    if n > MAX_HEADER:
        raise BadRecord(f"a header of {n} bytes")
    if n > left - 8:
        raise BadRecord(f"a header of {n} bytes where {left} are left", cut=True)
    fields = parse_fields(source.read(pos + 4, n))
    if len(fields.get(b"op", b"")) != 1:
        raise BadRecord("a record without op")
    (size,) = _U32.unpack_from(source.view, pos + 4 + n)
    return Record(pos, fields, pos + 8 + n, size)


def find_record(source: Source, pos: int, end: int) -> int:
    """The first position after *pos* where a whole record begins, or *end*."""
    return rosbag.find_record(source.data, pos + 1, end, LONGEST_FOUND)


def topic_key(topic: bytes) -> int:
    """What the compiled walk gives as the key of messages that name their topic and nothing else."""
    key = 14695981039346656037
    for byte in topic:
        key = (key ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return key - (1 << 64) if key >> 63 else key


MULTILOG = b"##MULTILOG##\n"


#: A topic name or a type name may be this long in a file of version 0.
MAX_LINE = 256
