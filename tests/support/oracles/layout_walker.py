"""Plain decoders of nodes, one scalar at a time: the references for the fast ones."""

from __future__ import annotations

import struct
from typing import Any

from logreel.layout import nodes

FORMATS = {
    "bool": "<B",
    "char": "<b",
    "int8": "<b",
    "uint8": "<B",
    "int16": "<h",
    "uint16": "<H",
    "int32": "<i",
    "uint32": "<I",
    "int64": "<q",
    "uint64": "<Q",
    "float32": "<f",
    "float64": "<d",
}


class Short(Exception):
    """The bytes end inside the node."""


class Cursor:
    """Reader of consecutive bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)

    def take(self, n: int) -> bytes:
        if n > len(self.data):
            raise Short
        head, self.data = self.data[:n], self.data[n:]
        return head

    def count(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")


def decode(node: nodes.Node, data: bytes) -> Any:
    """Return the value of *node* at the start of *data*. Raises Short."""
    return walk(node, Cursor(data))


def decode_all(node: nodes.Node, data: bytes) -> tuple[Any, int]:
    """Return the value of *node* and the number of bytes left."""
    cursor = Cursor(data)
    value = walk(node, cursor)
    return value, len(cursor.data)


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def walk(node: nodes.Node, c: Cursor) -> Any:
    if isinstance(node, nodes.Scalar):
        raw = c.take(struct.calcsize(FORMATS[node.type]))
        value = struct.unpack(FORMATS[node.type], raw)[0]
        return value != 0 if node.type == "bool" else value
    if isinstance(node, nodes.Time):
        seconds, ns = struct.unpack("<ii" if node.signed else "<II", c.take(8))
        return seconds * 10**9 + ns
    if isinstance(node, nodes.String):
        return text(c.take(c.count(node.width)))
    if isinstance(node, nodes.Bytes):
        return c.take(c.count(node.width))
    if isinstance(node, nodes.Rest):
        raw = c.take(len(c.data))
        return text(raw) if node.text else raw
    if isinstance(node, nodes.Padding):
        return c.take(node.size)
    if isinstance(node, nodes.Skip):
        return walk(node.node, c)
    if isinstance(node, nodes.FixedArray):
        if node.item == nodes.Scalar("char"):
            return text(c.take(node.count).split(b"\0")[0])
        return [walk(node.item, c) for _ in range(node.count)]
    if isinstance(node, nodes.Sequence):
        n = c.count(node.width)
        if node.item in (nodes.Scalar("char"), nodes.Scalar("uint8")):
            return c.take(n)
        return [walk(node.item, c) for _ in range(n)]
    out = {}
    for f in node.fields:
        value = walk(f.node, c)
        if not isinstance(f.node, nodes.Padding | nodes.Skip):
            out[f.name] = value
    return out
