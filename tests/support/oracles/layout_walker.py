"""Naive decoders that judge the fast ones: one scalar at a time, straight from the meaning of each node."""

from __future__ import annotations

import struct
from typing import Any

from logreel.layout import layout as lo

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
    """The bytes end before the node does."""


class Cursor:
    """Takes bytes off the front."""

    def __init__(self, data: bytes) -> None:
        self.data = bytes(data)

    def take(self, n: int) -> bytes:
        if n > len(self.data):
            raise Short
        head, self.data = self.data[:n], self.data[n:]
        return head

    def count(self, width: int) -> int:
        return int.from_bytes(self.take(width), "little")


def decode(node: lo.Node, data: bytes) -> Any:
    """The value of *node* at the start of *data*; raises Short."""
    return walk(node, Cursor(data))


def decode_all(node: lo.Node, data: bytes) -> tuple[Any, int]:
    """The value of *node* and how many bytes are left over."""
    cursor = Cursor(data)
    value = walk(node, cursor)
    return value, len(cursor.data)


def text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def walk(node: lo.Node, c: Cursor) -> Any:
    if isinstance(node, lo.Scalar):
        raw = c.take(struct.calcsize(FORMATS[node.type]))
        value = struct.unpack(FORMATS[node.type], raw)[0]
        return value != 0 if node.type == "bool" else value
    if isinstance(node, lo.Time):
        seconds, ns = struct.unpack("<ii" if node.signed else "<II", c.take(8))
        return seconds * 10**9 + ns
    if isinstance(node, lo.String):
        return text(c.take(c.count(node.width)))
    if isinstance(node, lo.Bytes):
        return c.take(c.count(node.width))
    if isinstance(node, lo.Rest):
        raw = c.take(len(c.data))
        return text(raw) if node.text else raw
    if isinstance(node, lo.Padding):
        return c.take(node.size)
    if isinstance(node, lo.Skip):
        return walk(node.node, c)
    if isinstance(node, lo.FixedArray):
        if node.item == lo.Scalar("char"):
            return text(c.take(node.count).split(b"\0")[0])
        return [walk(node.item, c) for _ in range(node.count)]
    if isinstance(node, lo.Sequence):
        n = c.count(node.width)
        if node.item in (lo.Scalar("char"), lo.Scalar("uint8")):
            return c.take(n)
        return [walk(node.item, c) for _ in range(n)]
    out = {}
    for f in node.fields:
        value = walk(f.node, c)
        if not isinstance(f.node, lo.Padding | lo.Skip):
            out[f.name] = value
    return out
