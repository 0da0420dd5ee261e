"""Plain reader of ROS 1 bags, the reference for the fast reader: every record, one field at a time, no index.

It shares no code with the package, and reads the records in file order. After damage it continues at the next offset
where a complete and plausible record begins.
"""

from __future__ import annotations

import bz2
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import lz4.frame

from support.builders.bag_content import Bad, Bag, Connection, Message, u32
from support.builders.bag_lz4 import blocks
from support.oracles.rosbag_old import read_0, read_1_0, read_1_1

__all__ = ["Bag", "Connection", "Message", "read"]


def read(data: bytes) -> Bag:
    """Return the content of a bag. Raises ValueError for other data."""
    line = data.partition(b"\n")[0]
    numbers = re.fullmatch(rb"#ROS\w* V(\d+)\.(\d+)", line)
    if not numbers:
        if line == b"##MULTILOG##":
            return read_1_0(data)
        if line.startswith(b"#"):
            raise ValueError("no bag")
        return read_0(data)
    version = f"{int(numbers[1])}.{int(numbers[2])}"
    readers = {"1.0": read_1_0, "1.1": read_1_1, "1.2": _read_1_2, "2.0": _read_2_0}
    return readers[version](data)


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
    """Return the record at *at*, which may end after *end*; *message*: fields that a message must have."""
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
    """Yield complete records from *at* to *end*; *chunks*: also a truncated chunk, and records of plain chunks."""
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
            definitions.append(Connection(*names, r.fields.get(b"def", b"")))  # type: ignore[call-arg]
        else:
            time = int.from_bytes(r.fields[b"sec"], "little") * 10**9 + int.from_bytes(
                r.fields[b"nsec"], "little"
            )
            bag.messages.append(Message(*names, time, data[r.data : r.data + r.size], r.data))  # type: ignore[call-arg]
    for m in bag.messages:
        fitting = [d for d in definitions if d.definition and (d.type, d.md5) == (m.type, m.md5)]
        made = Connection(m.topic, m.type, m.md5, fitting[0].definition if fitting else b"")
        if made not in bag.connections:
            bag.connections.append(made)
    return bag


def unpack(compression: bytes, packed: bytes) -> tuple[bytes, bool]:
    """Return the decompressed bytes of a chunk (if damaged, the valid prefix), and whether it is complete."""
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
            connections.setdefault(number, Connection(*texts, inner.get(b"message_definition", b"")))  # type: ignore[call-arg]
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
