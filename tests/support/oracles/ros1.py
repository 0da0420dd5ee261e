"""ROS 1 for tests: definitions in bags, random messages, and logs of them in memory.

The reader of records shares no code with the package.
"""

from __future__ import annotations

import bz2
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from logreel.index.block_table import Blocks
from logreel.index.channel_index import ChannelRules, FieldAt
from logreel.index.message_index import MessageIndex
from logreel.io.source import FILE, Chunks, Source
from logreel.layout import nodes
from logreel.layout.layout import Layout
from logreel.lenses import text_lines
from logreel.log.log import Channel, Log
from logreel.log.scan import ChannelInfo, Scan, Schema, Services
from logreel.registry.format import Format
from logreel.schemas.ros1msg import define, layout


@dataclass(frozen=True)
class Connection:
    """Type information of one topic in a bag."""

    type: str
    md5: str
    text: str


def fields_of(data: bytes) -> dict[str, bytes]:
    out, pos = {}, 0
    while pos + 4 <= len(data):
        (n,) = struct.unpack_from("<I", data, pos)
        name, _, value = data[pos + 4 : pos + 4 + n].partition(b"=")
        out[name.decode("latin-1")] = value
        pos += 4 + n
    return out


def records(data: bytes, pos: int = 0) -> Iterator[tuple[dict[str, bytes], bytes]]:
    """Yield header fields and data of every record up to the first invalid one."""
    while pos + 8 <= len(data):
        (n,) = struct.unpack_from("<I", data, pos)
        if n > len(data) - pos - 8:
            return
        head = fields_of(data[pos + 4 : pos + 4 + n])
        (size,) = struct.unpack_from("<I", data, pos + 4 + n)
        if "op" not in head:
            return
        if head["op"] == b"\x04" and len(head.get("count", b"")) == 4 and "conn" in head:
            # The length of these is wrong in bags of 2010.
            size = 12 * int.from_bytes(head["count"], "little")
        yield head, data[pos + 8 + n : pos + 8 + n + size]
        pos += 8 + n + size


def unpacked(head: dict[str, bytes], data: bytes) -> bytes:
    kind = head["compression"]
    if kind == b"bz2":
        return bz2.decompress(data)
    if kind == b"lz4":
        import pytest

        return pytest.importorskip("lz4.frame").decompress(data)
    return data


def connections(path: Path) -> list[tuple[Connection, list[bytes]]]:
    """Return the connections of a bag of version 1.2 or 2.0, with the payloads of their messages."""
    data = path.read_bytes()
    if data.startswith(b"#ROSRECORD V1.2"):
        return _old(data)
    if data.startswith(b"#ROSBAG V2.0"):
        return _new(data)
    return []


def _old(data: bytes) -> list[tuple[Connection, list[bytes]]]:
    found: dict[bytes, tuple[Connection, list[bytes]]] = {}
    for head, body in records(data, 16):
        if head["op"] == b"\x01":
            one = Connection(head["type"].decode(), head["md5"].decode(), head["def"].decode())
            found.setdefault(head["topic"], (one, []))
        elif head["op"] == b"\x02" and head["topic"] in found:
            found[head["topic"]][1].append(body)
    return list(found.values())


def _new(data: bytes) -> list[tuple[Connection, list[bytes]]]:
    found: dict[bytes, tuple[Connection, list[bytes]]] = {}
    parts = [(head, body) for head, body in records(data, 13)]
    for head, body in [*parts]:
        if head["op"] == b"\x05":
            parts += records(unpacked(head, body))
    for head, body in parts:
        if head["op"] == b"\x07":
            inner = {name: value.decode() for name, value in fields_of(body).items()}
            if "type" not in inner:
                continue  # cut off
            one = Connection(inner["type"], inner["md5sum"], inner["message_definition"])
            found.setdefault(head["conn"], (one, []))
    for head, body in parts:
        if head["op"] == b"\x02" and head["conn"] in found:
            found[head["conn"]][1].append(body)
    return list(found.values())


def payloads_1_1(path: Path) -> dict[tuple[str, str], list[bytes]]:
    """Return the payloads of a bag of version 1.1, which has no definitions, by topic and type."""
    data, found = path.read_bytes(), {}
    pos = data.index(b"\n") + 1
    while pos < len(data):
        topic, _, name, rest = data[pos : pos + 1000].split(b"\n", 3)
        pos += min(1000, len(data) - pos) - len(rest)
        (size,) = struct.unpack_from("<I", data, pos + 8)
        found.setdefault((topic.decode(), name.decode()), []).append(data[pos + 12 : pos + 12 + size])
        pos += 12 + size
    return found


_RANDOM = {"uint8": "<B", "int8": "<b", "uint16": "<H", "int16": "<h", "uint32": "<I", "int32": "<i"}
_RANDOM |= {"uint64": "<Q", "int64": "<q"}


def random_payload(node: nodes.Node, rng: random.Random) -> bytes:
    """Return the bytes of a random message: short lists, ASCII text, no NaN."""
    match node:
        case nodes.Scalar(type="bool"):
            return bytes([rng.randrange(2)])
        case nodes.Scalar(type="float32"):
            return struct.pack("<f", rng.uniform(-1e3, 1e3))
        case nodes.Scalar(type="float64"):
            return struct.pack("<d", rng.uniform(-1e3, 1e3))
        case nodes.Scalar(type=t):
            return rng.randbytes(struct.calcsize(_RANDOM[t]))
        case nodes.Time(signed=signed):
            return struct.pack("<iI" if signed else "<II", rng.randrange(2**31), rng.randrange(10**9))
        case nodes.String():
            text = "".join(rng.choices("abc xyz/_", k=rng.randrange(8))).encode()
            return struct.pack("<I", len(text)) + text
        case nodes.Bytes():
            n = rng.randrange(20)
            return struct.pack("<I", n) + rng.randbytes(n)
        case nodes.FixedArray(item=item, count=n):
            return b"".join(random_payload(item, rng) for _ in range(n))
        case nodes.Sequence(item=item):
            n = rng.randrange(4)
            return struct.pack("<I", n) + b"".join(random_payload(item, rng) for _ in range(n))
        case nodes.Struct(fields=fields):
            return b"".join(random_payload(f.node, rng) for f in fields)
        case nodes.Padding(size=n):
            return bytes(n)
    raise AssertionError(node)


_PACK = {**_RANDOM, "bool": "<?", "float32": "<f", "float64": "<d"}


def encoded(node: nodes.Node, value: Any) -> bytes:
    """Return *value* encoded by *node*; missing members of a dict are zero or empty."""
    match node:
        case nodes.Scalar(type=t):
            return struct.pack(_PACK[t], value or 0)
        case nodes.Time():
            return struct.pack("<ii", *divmod(value or 0, 10**9))
        case nodes.String() | nodes.Bytes():
            raw = value.encode() if isinstance(value, str) else bytes(value or b"")
            return struct.pack("<I", len(raw)) + raw
        case nodes.FixedArray(item=item, count=n):
            return b"".join(encoded(item, v) for v in (value or [None] * n))
        case nodes.Sequence(item=nodes.Scalar(type=t)):
            items = [] if value is None else list(value)
            return struct.pack(f"<I{len(items)}{_PACK[t].lstrip('<')}", len(items), *items)
        case nodes.Sequence(item=item):
            items = [] if value is None else list(value)
            return struct.pack("<I", len(items)) + b"".join(encoded(item, v) for v in items)
        case nodes.Struct(fields=fields):
            return b"".join(encoded(f.node, (value or {}).get(f.name)) for f in fields)
    raise AssertionError(node)


@cache
def layout_of(name: str) -> Layout:
    """Return the Layout of a standard message."""
    return layout(define(name))


def channel(name: str, *messages: dict[str, Any]) -> Channel:
    """Return a channel of a standard message; message i has the time i seconds."""
    root = layout_of(name).root
    return log_of(name, [encoded(root, message) for message in messages])["/x"]


def log_of(name: str, payloads: list[bytes], epoch: str = "unix") -> Log:
    """Return a log with one channel ``/x`` of a standard message; message i has the time i seconds."""
    data, starts = b"", []
    for i, payload in enumerate(payloads):
        data += struct.pack("<QI", i * 10**9, len(payload))
        starts.append(len(data))
        data += payload
    source = Source.open(data)
    start = np.array([[0, len(payloads)]], np.int64)
    blocks = Blocks(np.zeros(1, np.int64), np.full(1, FILE, np.int32), start, np.array(starts, np.uint32))
    index = MessageIndex(Chunks(source), blocks, [ChannelRules(FieldAt(-12, 8), FieldAt(-4, 4))])
    info = ChannelInfo("/x", Schema(name, "ros1msg"), lambda: layout_of(name))
    return Log(
        source,
        FORMAT.name,
        Scan("1", epoch, 0, len(payloads) * 10**9, [info], index, []),
        Services(text_lines),
    )


FORMAT = Format("none", "in memory", (), lambda source: False, lambda source, saved: None)
