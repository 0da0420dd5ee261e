"""Records of bags since version 1.2: a header of ``name=value`` fields, then data.

Sources: the bag format pages and the programs that wrote the files; docs/formats/rosbag.md names them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from logreel.dataclass import dataclass
from logreel.io.source import Source
from logreel.kernels import rosbag

OP_DEFINITION, OP_MESSAGE, OP_FILE, OP_INDEX, OP_CHUNK, OP_CHUNK_INFO, OP_CONNECTION = range(1, 8)
#: A longer header is taken for damage: real headers contain a definition of some kilobytes at most.
MAX_HEADER = 1 << 24
#: Longest header of a record that is searched for after damage; only definitions need more than some hundred bytes.
LONGEST_FOUND = 1 << 15
#: Header and data of the file header together; padded, so that it can be completed in place.
FILE_HEADER = 4096
#: First line of some bags of version 1.0.
MULTILOG = b"##MULTILOG##\n"
#: Longest topic or type name in a bag of versions 0 to 1.1.
MAX_LINE = 256
#: Fields that identify the connection of a message without a number, as bit sets of kernels/rosbag.py:
#: topic, checksum and type together, or the topic alone.
ALL_NAMES, TOPIC = 7, 1

U32, U64 = struct.Struct("<I"), struct.Struct("<Q")

Fields = dict[bytes, bytes]


class BadRecord(ValueError):
    """The bytes are no record; *cut*: they are the beginning of one, but its end is after the end of the data."""

    def __init__(self, text: str, cut: bool = False) -> None:
        super().__init__(text)
        self.cut = cut


@dataclass(frozen=True, slots=True)
class Record:
    """A record: offset, header fields, offset and size of its data."""

    pos: int
    fields: Fields
    data: int
    size: int

    @property
    def op(self) -> int:
        """Kind of the record, one of the OP constants."""
        return self.fields[b"op"][0]

    @property
    def end(self) -> int:
        """Offset of the next record."""
        return self.data + self.size

    def u32(self, name: bytes) -> int:
        """Return a field of 4 or 8 bytes as an unsigned number; raise BadRecord if it is missing or of another size."""
        value = self.fields.get(name, b"")
        if len(value) not in (4, 8):
            raise BadRecord(f"field {name.decode()} is missing or not a number")
        return int.from_bytes(value, "little")

    def time(self, name: bytes) -> int:
        """Return a field as a time in ns; -1 if it is missing or of another size."""
        value = self.fields.get(name, b"")
        return U32.unpack(value[:4])[0] * 10**9 + U32.unpack(value[4:])[0] if len(value) == 8 else -1

    def text(self, name: bytes) -> str:
        """Return a field as text, invalid UTF-8 replaced; empty if it is missing."""
        return self.fields.get(name, b"").decode("utf-8", "replace")


def parse_fields(header: bytes) -> Fields:
    """Return the ``name=value`` fields of a header, of a repeated name the last one; raise BadRecord."""
    fields: Fields = {}
    at = 0
    while at < len(header):
        if len(header) - at < 4:
            raise BadRecord("a header field is cut")
        (n,) = U32.unpack_from(header, at)
        at += 4
        name, equals, value = header[at : at + n].partition(b"=")
        if n > len(header) - at or not equals:
            raise BadRecord("a header field has no name or a wrong length")
        fields[name] = value
        at += n
    return fields


def read_record(source: Source, pos: int, end: int) -> Record:
    """Return the record at *pos*, whose data may end after *end*; raise BadRecord if its header does not fit."""
    left = end - pos
    if left < 4:
        raise BadRecord("the header length is cut", cut=True)
    n = _u32(source, pos)
    if n > MAX_HEADER:
        raise BadRecord(f"a header of {n} bytes; at most {MAX_HEADER} are read")
    if n > left - 8:
        raise BadRecord(f"a header of {n} bytes where {left} are left", cut=True)
    fields = parse_fields(source.read(pos + 4, n))
    if len(fields.get(b"op", b"")) != 1:
        raise BadRecord("a record without op")
    size = _u32(source, pos + 4 + n)
    return Record(pos, fields, pos + 8 + n, size)


def _u32(source: Source, pos: int) -> int:
    source.span(pos, pos + 4)
    (value,) = U32.unpack_from(source.span_view, pos)
    return int(value)


def find_record(source: Source, pos: int, end: int) -> int:
    """Return the first offset after *pos* at which a whole record begins, or *end*."""
    return rosbag.find_record(source.span(pos, end), pos + 1, end, LONGEST_FOUND)


def topic_key(topic: bytes) -> int:
    """Return the key that the kernel gives to messages that are identified by their topic alone (FNV-1a, as int64)."""
    key = 14695981039346656037
    for byte in topic:
        key = (key ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return key - (1 << 64) if key >> 63 else key


def fields_bytes(named: Mapping[str, bytes], order: Sequence[str] = ()) -> bytes:
    """Return the header fields as bytes, sorted by name like those of the C++ recorder; *order*: other order."""
    parts = [name.encode() + b"=" + named[name] for name in order or sorted(named)]
    return b"".join(U32.pack(len(part)) + part for part in parts)


def record_head(op: int, named: Mapping[str, bytes], size: int, order: Sequence[str] = ()) -> bytes:
    """Return the bytes of a record up to its data, of *size* bytes."""
    head = fields_bytes({"op": bytes((op,)), **named}, order)
    return b"".join((U32.pack(len(head)), head, U32.pack(size)))


def record_bytes(op: int, named: Mapping[str, bytes], data: bytes = b"", order: Sequence[str] = ()) -> bytes:
    """Return the bytes of a whole record; *order* of its fields: by name if empty."""
    return record_head(op, named, len(data), order) + data


def file_header_bytes(named: Mapping[str, bytes]) -> bytes:
    """Return the file header record, padded with blanks to FILE_HEADER bytes of header and data."""
    blanks = FILE_HEADER + 8 - len(record_head(OP_FILE, named, 0))
    return record_bytes(OP_FILE, named, b" " * blanks)
