"""Encoding of messages of a fixed size as protobuf, directly from their bytes; see kernels/protobuf.py."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import protobuf as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    HIDDEN,
    MAX_LEAVES,
    SCALARS,
    FixedArray,
    Measure,
    Node,
    Scalar,
    Struct,
    Time,
    measure,
)
from logreel.schemas.protobuf.encoder import OPAQUE, varint
from logreel.schemas.protobuf.types import ProtoField, ProtoMessage

WORDS, LONGS, VARINTS, SPAN = kernel.FIXED_WORDS, kernel.FIXED_LONGS, kernel.FIXED_VARINTS, kernel.FIXED_SPAN
PACKED, MESSAGE, MESSAGES, TIME = (
    kernel.FIXED_PACKED,
    kernel.FIXED_MESSAGE,
    kernel.FIXED_MESSAGES,
    kernel.FIXED_TIME,
)
#: By number type: op, wire type, width for the kernel (negative: signed), most bytes written.
_NUMBERS = {
    "bool": (VARINTS, 0, 0, 1),
    "uint8": (VARINTS, 0, 1, 2),
    "uint16": (VARINTS, 0, 2, 3),
    "uint32": (VARINTS, 0, 4, 5),
    "uint64": (VARINTS, 0, 8, 10),
    # Negative numbers are written with 64 bits.
    "char": (VARINTS, 0, -1, 10),
    "int8": (VARINTS, 0, -1, 10),
    "int16": (VARINTS, 0, -2, 10),
    "int32": (VARINTS, 0, -4, 10),
    "int64": (VARINTS, 0, -8, 10),
    "float32": (WORDS, 5, 0, 4),
    "float64": (LONGS, 1, 0, 8),
}
#: Most bytes of seconds and nanoseconds with their tags.
_TIME = 22


@dataclass(frozen=True, slots=True)
class FixedEncoder:
    """Encoder of messages of a fixed-size Layout as the type of ``descriptor_from_layout``.

    ops   int32[m, 8], see kernels/protobuf.py
    size  bytes of a message
    most  most bytes of an encoded message
    """

    ops: NDArray[np.int32]
    size: int
    most: int


def fixed_encoder(layout: Layout, message: ProtoMessage) -> FixedEncoder | None:
    """Return the encoder of messages of *layout*, None if they have to be encoded by way of a table.

    message  ``descriptor_from_layout(layout, name)``
    """
    if layout.size is None or layout.measure.runs > MAX_LEAVES or _takes_table(layout.root):
        return None
    plan = _Plan()
    most = plan.fields(layout.record, message, 0)
    return FixedEncoder(np.array(plan.ops, np.int32).reshape(-1, 8), layout.size, most)


def _takes_table(node: Node) -> bool:
    """Return whether *node* contains text, which may be shorter and invalid UTF-8, or arrays of opaque bytes."""
    match node:
        case FixedArray(item=Scalar(type="char")):
            return True
        case FixedArray(item=FixedArray(item=Scalar(type="uint8"), count=n)) if n > OPAQUE:
            return True
        case FixedArray(item=item):
            return _takes_table(item)
        case Struct(fields=fields):
            return any(_takes_table(f.node) for f in fields)
    return False


class FixedEncoders:
    """Several encoders, which are used by their index in *every*."""

    def __init__(self, every: Sequence[FixedEncoder]) -> None:
        self._ops = np.concatenate([np.zeros((0, 8), np.int32), *(one.ops for one in every)])
        first = itertools.accumulate((len(one.ops) for one in every), initial=0)
        rows = [(at, len(one.ops), one.size, one.most) for at, one in zip(first, every, strict=False)]
        self._kinds = np.array(rows, kernel.KIND)

    def encode(
        self, kind: NDArray[np.int32], buffers: list[Buffer], which: NDArray[np.int32] | None, place: I64
    ) -> tuple[NDArray[np.uint8], I64]:
        """Return encoded messages one after another, and int64[n + 1] offsets of the messages and the end.

        kind     int32[n]  index of the encoder of each message
        buffers  contiguous; message i begins at byte place[i] of its buffer
        which    int32[n]  number of the buffer of each message; None: all are in the first
        place    int64[n]

        Raises IndexError for a message that does not have the bytes of its Layout in its buffer.
        """
        out = np.empty(int(self._kinds["writes"][kind].sum()) + kernel.ROOM, np.uint8)
        start = np.empty(len(kind) + 1, np.int64)
        which = np.zeros(0, np.int32) if which is None else np.ascontiguousarray(which, np.int32)
        place = np.ascontiguousarray(place, np.int64)
        kernel.write_fixed(self._ops, self._kinds, kind, buffers, which, place, start, out)
        return out[int(start[0]) :], start - start[0]


@dataclass(slots=True)
class _Plan:
    """Builder of ops; each method adds some and returns the most bytes that they write."""

    ops: list[list[int]] = field(default_factory=list)
    sizes: dict[int, Measure] = field(default_factory=dict)

    def fields(self, struct: Struct, message: ProtoMessage, at: int) -> int:
        most, made = 0, iter(message.fields)
        for f in struct.fields:
            if not isinstance(f.node, HIDDEN):
                most += self.one(f.node, next(made), at)
            at += self.size(f.node)
        return most

    def one(self, node: Node, f: ProtoField, at: int) -> int:
        match node:
            case Scalar(type=kind):
                return self.number(kind, f, at)
            case FixedArray(item=item, count=n):
                return self.many(item, n, f, at) if n else 0
            case _:
                before = len(self.ops)
                most = self.body(node, f.kind, at)
                return self.op(MESSAGE, f, most, 0, 0, 0, 0, len(self.ops) - before)

    def number(self, kind: str, f: ProtoField, at: int) -> int:
        """Add a number, to the previous op if it follows its numbers."""
        code, wire, more, most = _NUMBERS[kind]
        tag, size = _tag(f, wire)
        step = 8 << 8 * (4 - size)
        if self.ops:
            last = self.ops[-1]
            count = last[5]
            # Field numbers begin with 1: the first field of a message never follows another.
            if last == [code, tag - step, size, at - count * SCALARS[kind][1], more, count, step, 0]:
                last[1], last[5] = tag, count + 1
                return size + most
        self.ops.append([code, tag, size, at, more, 1, step, 0])
        return size + most

    def many(self, item: Node, n: int, f: ProtoField, at: int) -> int:
        size = self.size(item)
        if isinstance(item, Scalar):
            code, _, more, most = _NUMBERS[item.type]
            if code != VARINTS or f.kind == "bytes":
                return self.op(SPAN, f, n * size, at, 0, n * size, 0, 0)
            return self.op(PACKED, f, n * most, at, more, n, 0, 0)
        before = len(self.ops)
        most = self.body(item, f.kind, 0)
        return n * self.op(MESSAGES, f, most, at, 0, n, size, len(self.ops) - before)

    def body(self, node: Node, kind: Any, at: int) -> int:
        """Add the content of a message of this kind."""
        match node:
            case Struct():
                return self.fields(node, kind, at)
            case Time(signed=signed):
                self.ops.append([TIME, 0, 0, at, signed, 0, 0, 0])
                return _TIME
            case _:
                return self.one(node, kind.fields[0], at)

    def op(self, code: int, f: ProtoField, most: int, *rest: int) -> int:
        """Add an op that writes a tag, a length and at most *most* bytes."""
        tag, size = _tag(f, 2)
        self.ops.append([code, tag, size, *rest])
        return size + len(varint(most)) + most

    def size(self, node: Node) -> int:
        if isinstance(node, Scalar):
            return SCALARS[node.type][1]
        return measure(node, self.sizes).size or 0


def _tag(f: ProtoField, wire: int) -> tuple[int, int]:
    """Return a tag for the kernel: as a number of four bytes, and how many of them are used."""
    tag = varint(f.number << 3 | wire)
    return int.from_bytes(tag.rjust(4, b"\0"), "little"), len(tag)
