"""Records of bags since version 1.2: a header of ``name=value`` fields, then data.

Sources: the bag format pages and the programs that wrote the files; docs/formats/rosbag.md names them. ``STORAGE``
counts records by kind, for ``logreel du``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from logreel.dataclass import dataclass
from logreel.io.arrays import I64
from logreel.io.source import Buffer, Source
from logreel.kernels import rosbag
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

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


KINDS = {
    OP_DEFINITION: storage.DEFINITIONS, OP_MESSAGE: storage.UNASSIGNED,
    OP_FILE: storage.FILE_HEADER, OP_INDEX: storage.INDEX, OP_CHUNK: "chunks",
    OP_CHUNK_INFO: storage.INDEX, OP_CONNECTION: storage.DEFINITIONS,
}  # fmt: skip
_LINE = b"#ROS"
#: Longest header of a message that is looked for, bytes; that of version 1.2 has the names of topic and type.
_LONGEST = 2048
#: Rounds of the search for headers of another length; further ones are taken for other bytes.
_ROUNDS = 64


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0 and data[: len(_LINE)].tobytes() == _LINE:
        line = data[: min(64, end)].tobytes().partition(b"\n")
        yield StoredRecord(storage.FILE_HEADER, len(line[0]) + len(line[1]))
        at += len(line[0]) + len(line[1])
    while end - at >= 8:
        n = _number(data, at)
        if n > end - at - 8:
            return
        try:
            fields = parse_fields(data[at + 4 : at + 4 + n].tobytes())
        except BadRecord:
            return
        op = fields.get(b"op", b"\0")[:1]
        head, size = n + 8, _number(data, at + 4 + n)
        compression = fields.get(b"compression", b"").decode("latin-1")
        if not op or op[0] not in KINDS:
            return
        if op[0] == OP_CHUNK and compression == "none" and b"encryption" not in fields:
            yield StoredRecord(storage.CHUNK_HEADERS, head, compression, head, size)
            at += head
            continue
        if size > end - at - head:
            return
        is_chunk = op[0] == OP_CHUNK
        yield StoredRecord(
            KINDS[op[0]], head + size, compression if is_chunk else "", head, size if is_chunk else 0
        )
        at += head + size


def _number(data: Buffer, at: int) -> int:
    return int.from_bytes(data[at : at + 4].tobytes(), "little")


def _heads(data: Buffer, start: I64, size: I64) -> I64:
    """Return int64[n]: bytes of each record before its payload; 0 where there is no header with fields.

    The length of a header stands only before it. Headers of one connection have one length, so few lengths are tried.
    """
    sizes = np.zeros(len(start), np.int64)
    left = np.arange(len(start))
    for _ in range(_ROUNDS):
        if not len(left):
            break
        n = _header_before(data, int(start[left[0]]))
        if n is None:
            left = left[1:]
            continue
        at = start[left] - n - 8
        fits = at >= 0
        fits[fits] = _u32_at(data, at[fits]) == n
        sizes[left[fits]] = n + 8
        left = left[~fits]
    return sizes


def _header_before(data: Buffer, start: int) -> int | None:
    """Return the length of the header of the record whose payload begins at *start*; None if there is none."""
    first = max(start - 8 - _LONGEST, 0)
    before = data[first : max(start - 4, first)].tobytes()
    for n in range(8, len(before) - 3):
        at = len(before) - n - 4
        if int.from_bytes(before[at : at + 4], "little") == n:
            try:
                fields = parse_fields(before[at + 4 :])
            except BadRecord:
                continue
            # The end of a header can look like a whole one, if the value before it is its length.
            if b"op" in fields and {b"conn", b"topic"} & {*fields} and {b"time", b"sec"} & {*fields}:
                return n
    return None


def _u32_at(data: Buffer, at: I64) -> I64:
    return np.ascontiguousarray(data[at[:, None] + np.arange(4)]).view("<u4")[:, 0].astype(np.int64)


STORAGE = Storage(_heads, _records)
