"""A slow and plain reader of ROS 1 bags, the judge of the fast one: every record, one field at a time, no index.

It shares nothing with the package and never uses the index of a bag: what is there counts, in the order of the file.
After damage it goes on at the next byte where a whole record that makes sense begins.
"""

from __future__ import annotations

import bz2
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import lz4.frame

from bag_lz4 import blocks

MD5 = re.compile(rb"[0-9a-f]{32}|\*")
TYPE = re.compile(rb"[A-Za-z]\w*/[A-Za-z]\w*|\*")
RENAMED = {
    b"rostools/Time": b"roslib/Time",
    b"rostools/Log": b"roslib/Log",
    b"rostools/Header": b"roslib/Header",
}


@dataclass(frozen=True)
class Message:
    """One message; *place* is that of its data, in its chunk where *chunk* is the place of one, else in the file."""

    topic: str
    type: str
    md5: str
    time: int
    payload: bytes
    place: int
    chunk: int | None = None


@dataclass(frozen=True)
class Connection:
    """What a bag says about a topic; *definition* is empty where it does not say."""

    topic: str
    type: str
    md5: str
    definition: bytes = b""


@dataclass
class Bag:
    """What a bag holds, in the order of the file; *lost* are half-open ranges of bytes that are no record.

    Ranges inside of a compressed chunk are given as the range of the chunk.
    """

    version: str
    messages: list[Message] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)


class Bad(ValueError):
    """There is no record here."""


def u32(data: bytes, at: int, end: int) -> int:
    if at + 4 > end:
        raise Bad("cut")
    return int.from_bytes(data[at : at + 4], "little")


def seconds(sec: int, nsec: int) -> int:
    """ns; seconds near the top of the range are negative ones."""
    return (sec - 2**32 if sec >= 0xF0000001 else sec) * 10**9 + nsec


def read(data: bytes) -> Bag:
    """Everything in the bag *data*; raises ValueError where it is none."""
    line = data.partition(b"\n")[0]
    numbers = re.fullmatch(rb"#ROS\w* V(\d+)\.(\d+)", line)
    if not numbers:
        if line == b"##MULTILOG##":
            return _read_1_0(data)
        if line.startswith(b"#"):
            raise ValueError("no bag")
        return _read_0(data)
    version = f"{int(numbers[1])}.{int(numbers[2])}"
    readers = {"1.0": _read_1_0, "1.1": _read_1_1, "1.2": _read_1_2, "2.0": _read_2_0}
    return readers[version](data)


# ------------------------------------------------------------------------------------------- versions 0 to 1.1


def _line(data: bytes, at: int) -> tuple[bytes, int]:
    text, newline, _ = data[at : at + 300].partition(b"\n")
    if not newline:
        raise Bad("no line")
    return text.rstrip(), at + len(text) + 1


def _old_message(data: bytes, at: int) -> tuple[int, bytes, int]:
    """Time, payload and where it begins."""
    if at + 12 > len(data):
        raise Bad("cut")
    sec, nsec, size = struct.unpack_from("<III", data, at)
    if nsec >= 10**9 or size > len(data) - at - 12:
        raise Bad("cut or no message")
    return seconds(sec, nsec), data[at + 12 : at + 12 + size], at + 12


def _kind_and_sum(first: bytes, second: bytes) -> tuple[bytes, bytes]:
    if MD5.fullmatch(second) and TYPE.fullmatch(first):
        return first, second
    if MD5.fullmatch(first) and TYPE.fullmatch(second):
        return second, first
    raise Bad("no type and checksum")


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def _add(bag: Bag, row: tuple[bytes, bytes, bytes], found: tuple[int, bytes, int]) -> int:
    topic, kind, md5 = row
    names = _text(topic), _text(RENAMED.get(kind, kind)), _text(md5)
    bag.messages.append(Message(*names, *found))
    if Connection(*names) not in bag.connections:
        bag.connections.append(Connection(*names))
    return found[2] + len(found[1])


def _chain(data: bytes, at: int) -> int:
    """How many whole messages of version 0 follow each other from *at* on; -1 if what follows is none."""
    count = 0
    while at < len(data):
        try:
            _, payload, start = _old_message(data, at)
        except Bad:
            _, nsec, size = struct.unpack("<III", data[at : at + 12].ljust(12, b"\0"))
            return count if nsec < 10**9 and at + 12 + size > len(data) else -1
        at, count = start + len(payload), count + 1
    return count


def _read_0(data: bytes) -> Bag:
    bag = Bag("0")
    topic, after = _line(data, 0)
    try:
        first, at = _line(data, after)
        second, at = _line(data, at)
        row = topic, *_kind_and_sum(first, second)
        if _chain(data, at) < 0:
            raise Bad("no chain")
    except Bad:
        row, at = (topic, b"*", b"*"), after
    while at < len(data):
        try:
            at = _add(bag, row, _old_message(data, at))
        except Bad:
            bag.lost.append((at, len(data)))
            break
    return bag


def _read_1_0(data: bytes) -> Bag:
    bag = Bag("1.0")
    rows: dict[bytes, tuple[bytes, bytes, bytes]] = {}

    def row_at(at: int) -> int:
        topic, at = _line(data, at)
        first, at = _line(data, at)
        second, at = _line(data, at)
        rows[topic] = topic, *_kind_and_sum(first, second)
        return at

    def record_at(at: int) -> int:
        topic, after = _line(data, at)
        if topic not in rows:
            return row_at(at)
        return _add(bag, rows[topic], _old_message(data, after))

    _, at = _line(data, 0)
    quantity, at = _line(data, at)
    int(quantity)
    _walk(bag, data, at, record_at, lambda at: any(data.startswith(topic + b"\n", at) for topic in rows))
    return bag


def _read_1_1(data: bytes) -> Bag:
    bag = Bag("1.1")

    def record_at(at: int) -> int:
        topic, at = _line(data, at)
        md5, at = _line(data, at)
        kind, at = _line(data, at)
        if not topic or not MD5.fullmatch(md5) or not TYPE.fullmatch(kind) or not topic.isascii():
            raise Bad("no topic, checksum and type")
        if not topic.decode().isprintable():
            raise Bad("no topic")
        return _add(bag, (topic, kind, md5), _old_message(data, at))

    _walk(bag, data, _line(data, 0)[1], record_at, lambda at: True)
    return bag


def _walk(
    bag: Bag, data: bytes, at: int, record_at: Callable[[int], int], begins: Callable[[int], bool]
) -> None:
    """Record after record; where there is none, byte by byte to the next one."""
    while at < len(data):
        bad_from = at
        while at < len(data):
            try:
                if at > bad_from and not begins(at):
                    raise Bad("not here")
                following = record_at(at)
            except Bad:
                at += 1
            else:
                break
        if at > bad_from:
            bag.lost.append((bad_from, at))
        if at < len(data):
            at = following


# ---------------------------------------------------------------------------------------------- records of 1.2 on


@dataclass(frozen=True)
class Record:
    pos: int
    fields: dict[bytes, bytes]
    data: int
    size: int

    @property
    def op(self) -> int:
        return self.fields[b"op"][0]


NEEDS = {
    1: (b"topic", b"md5", b"type"),
    3: (b"index_pos",),
    4: (b"count",),
    5: (b"compression", b"size"),
    6: (b"chunk_pos", b"count"),
    7: (b"conn", b"topic"),
}
WIDTHS = {
    b"conn": 4,
    b"time": 8,
    b"count": 4,
    b"size": 4,
    b"chunk_pos": 8,
    b"index_pos": 8,
    b"sec": 4,
    b"nsec": 4,
}


def fields_of(data: bytes, at: int, end: int) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    while at < end:
        n = u32(data, at, end)
        name, equals, value = data[at + 4 : at + 4 + n].partition(b"=")
        if at + 4 + n > end or not equals:
            raise Bad("a field")
        found[name] = value
        at += 4 + n
    return found


def record_of(data: bytes, at: int, end: int, message: tuple[bytes, ...]) -> Record:
    """The record at *at*; it may end after *end*. *message*: fields that a message must have."""
    n = u32(data, at, end)
    if n > end - at - 8:
        raise Bad("the header is cut")
    found = fields_of(data, at + 4, at + 4 + n)
    if len(found.get(b"op", b"")) != 1:
        raise Bad("no op")
    for name in message if found[b"op"] == b"\x02" else NEEDS.get(found[b"op"][0], ()):
        if name not in found or len(found[name]) != WIDTHS.get(name, len(found[name])):
            raise Bad(f"no {name!r}")
    return Record(at, found, at + 8 + n, u32(data, at + 4 + n, end))


def records(
    data: bytes,
    at: int,
    end: int,
    message: tuple[bytes, ...],
    lost: list[tuple[int, int]],
    chunks: bool = False,
) -> Iterator[Record]:
    """Whole records from *at* to *end*; with *chunks* also a chunk that is cut, and what is inside of unpacked ones."""
    while at < end:
        bad_from, found = at, None
        while at < end and found is None:
            try:
                found = record_of(data, at, end, message)
                if found.data + found.size > end and not (chunks and found.op in (4, 5)):
                    raise Bad("cut")
            except Bad:
                found, at = None, at + 1
        if at > bad_from:
            lost.append((bad_from, at))
        if found is None:
            return
        yield found
        at = found.data + found.size
        if found.op == 4 and message == MESSAGE_2_0:
            at = found.data + 12 * int.from_bytes(found.fields[b"count"], "little")
        if found.op == 5 and found.fields[b"compression"] == b"none":
            at = found.data
        elif found.op == 5 and not found.size:
            return


MESSAGE_1_2 = b"topic", b"md5", b"type", b"sec", b"nsec"
MESSAGE_2_0 = b"conn", b"time"


def _read_1_2(data: bytes) -> Bag:
    bag = Bag("1.2")
    definitions: list[Connection] = []
    for r in records(data, 16, len(data), MESSAGE_1_2, bag.lost):
        if r.op not in (1, 2):
            continue
        names = tuple(r.fields[name].decode("utf-8", "replace") for name in (b"topic", b"type", b"md5"))
        if r.op == 1:
            definitions.append(Connection(*names, r.fields.get(b"def", b"")))
        else:
            time = int.from_bytes(r.fields[b"sec"], "little") * 10**9 + int.from_bytes(
                r.fields[b"nsec"], "little"
            )
            bag.messages.append(Message(*names, time, data[r.data : r.data + r.size], r.data))
    for m in bag.messages:
        fitting = [d for d in definitions if d.definition and (d.type, d.md5) == (m.type, m.md5)]
        made = Connection(m.topic, m.type, m.md5, fitting[0].definition if fitting else b"")
        if made not in bag.connections:
            bag.connections.append(made)
    return bag


def unpack(compression: bytes, packed: bytes) -> tuple[bytes, bool]:
    """As much as can be had of a chunk, and whether that is all."""
    out = b""
    if compression == b"bz2":
        decompressor = bz2.BZ2Decompressor()
        try:
            for at in range(0, len(packed), 16):
                if not decompressor.eof:
                    out += decompressor.decompress(packed[at : at + 16])
        except OSError:
            return out, False
        return out, decompressor.eof
    if compression != b"lz4":
        return b"", False
    try:
        return lz4.frame.decompress(packed), True
    except RuntimeError:
        return b"".join(blocks(packed)), False


def _read_2_0(data: bytes) -> Bag:
    bag = Bag("2.0")
    connections: dict[int, Connection] = {}
    found: list[tuple[int, int, bytes, int, int | None]] = []

    def take(r: Record, inside: bytes, chunk: int | None) -> None:
        number = int.from_bytes(r.fields.get(b"conn", b""), "little")
        if r.op == 7:
            try:
                inner = fields_of(inside, r.data, r.data + r.size)
            except Bad:
                return
            names = r.fields[b"topic"], inner.get(b"type", b""), inner.get(b"md5sum", b"")
            texts = (name.decode("utf-8", "replace") for name in names)
            connections.setdefault(number, Connection(*texts, inner.get(b"message_definition", b"")))
        elif r.op == 2:
            sec, nsec = struct.unpack("<II", r.fields[b"time"])
            payload = inside[r.data : r.data + r.size]
            found.append((number, sec * 10**9 + nsec, payload, r.data, chunk))

    for r in records(data, 13, len(data), MESSAGE_2_0, bag.lost, chunks=True):
        take(r, data, None)
        compression = r.fields.get(b"compression", b"")
        if r.op == 5 and compression != b"none":
            # An unfinished chunk does not know its size: the rest of the file is what it is.
            content, whole = unpack(compression, data[r.data : r.data + r.size] if r.size else data[r.data :])
            inner_lost: list[tuple[int, int]] = []
            for inner in records(content, 0, len(content), MESSAGE_2_0, inner_lost):
                take(inner, content, r.pos)
            if inner_lost or not whole:
                bag.lost.append((r.pos, min(len(data), r.data + r.size)))
    for number, time, payload, place, chunk in found:
        if number in connections:
            c = connections[number]
            bag.messages.append(Message(c.topic, c.type, c.md5, time, payload, place, chunk))
    bag.connections = list(dict.fromkeys(connections.values()))
    return bag
