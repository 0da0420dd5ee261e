"""Decoders of single messages to dicts, for ``msg.decode()`` and the text outputs.

A Layout is compiled once to the ops of ``kernels.layout_decode``; adjacent members of fixed size have one check.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from logreel.errors import DamagedError, Problem
from logreel.kernels import layout_decode as kernel
from logreel.layout.nodes import (
    HIDDEN,
    MAX_LEAVES,
    SCALARS,
    Align,
    Bytes,
    Expect,
    Field,
    FixedArray,
    Measure,
    Node,
    Rest,
    Scalar,
    Sequence,
    Skip,
    String,
    Struct,
    Time,
    measure,
    packed,
    size_of,
)

#: Format character of ``struct`` by Scalar type.
CODES = dict(
    zip(SCALARS, ("?", "b", "b", "B", "h", "H", "i", "I", "q", "Q", "f", "d"), strict=True),
    char="b",
)
#: Op code of a number by Scalar type.
_NUMBERS = {name: code for code, name in enumerate(SCALARS)}


def decoder(root: Struct | Sequence) -> Callable[[memoryview], dict[str, Any]]:
    """Return a function from the bytes of one message to a dict of the visible members of *root*, in file order.

    Numbers are int, float and bool; Time is int ns; text is str, with replacement characters where it is not
    UTF-8; char arrays end at the first NUL; opaque bytes and counted arrays of uint8 or char are bytes; other
    arrays are lists. Where a message contains many records the dict is ``{"records": [...]}``. Bytes after the
    last member are ignored. The function raises DamagedError (code ``truncated``) when a message ends early.
    """
    writer = _OpWriter()
    writer.node(Struct((Field("records", root),)) if isinstance(root, Sequence) else root)
    ops = [number for op in writer.ops for number in op]
    decode = kernel.MessageDecoder(ops, tuple(writer.objects), _refuse).decode
    if not _has_empty_items(root, {}):
        return decode
    check = _count_checker(root)

    def checked(data: memoryview) -> dict[str, Any]:
        check(data)
        return decode(data)

    return checked


def _refuse(data: memoryview, why: int, pos: int, need: int, expected: bytes) -> None:
    """Raise the error of a message that the kernel cannot decode."""
    view = memoryview(data).cast("B")
    if why == kernel.TOO_MANY:
        _raise_too_many_items(len(view))
    if why == kernel.SHORT:
        text = f"the message ends too early: {need} bytes expected at byte {pos} of {len(view)}"
        raise DamagedError(Problem("truncated", pos, max(0, len(view) - pos), True, text))
    actual = bytes(view[pos : pos + need]).hex(" ")
    text = f"expected bytes {expected.hex(' ')}, found {actual}: an encoding that is not known"
    raise DamagedError(Problem("payload", pos, need, True, text))


def _raise_too_many_items(size: int) -> None:
    from logreel.kernels.layout import SPARE

    text = f"the message claims more items without bytes than its {size} bytes and {SPARE} more"
    raise DamagedError(Problem("payload", 0, size, True, text))


def _count_checker(root: Struct | Sequence) -> Callable[[memoryview], None]:
    """Return a function that rejects messages with too many items without bytes."""
    import numpy as np

    from logreel.kernels import layout as counting
    from logreel.layout.program import compile_root

    program = compile_root(root)

    def check(data: memoryview) -> None:
        source = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
        stop, status = np.array([len(source)], np.int64), np.zeros(1, np.uint8)
        counts = np.zeros(len(program.columns), np.int64)
        counting.count(source, np.zeros(1, np.int64), stop, program.ops, counts, status)
        if status[0] == counting.TOO_MANY:
            _raise_too_many_items(len(source))

    return check


def _has_empty_items(node: Node, known: dict[int, bool]) -> bool:
    """Return whether any counted array in *node* has items without bytes; takes time by distinct nodes."""
    if id(node) not in known:
        match node:
            case Sequence(item=item):
                known[id(node)] = size_of(item) == 0 or _has_empty_items(item, known)
            case FixedArray(item=item) | Skip(node=item):
                known[id(node)] = _has_empty_items(item, known)
            case Struct(fields=fields):
                known[id(node)] = any(_has_empty_items(f.node, known) for f in fields)
            case _:
                known[id(node)] = False
    return known[id(node)]


class _OpWriter:
    """Writer of the ops of a node, and of the objects that they refer to by number."""

    def __init__(self) -> None:
        self.ops: list[list[int]] = []
        self.objects: list[Any] = []
        self.sizes: dict[int, Measure] = {}
        self._numbers: dict[str, int] = {}

    def _object(self, value: Any) -> int:
        self.objects.append(value)
        return len(self.objects) - 1

    def _name(self, name: str) -> int:
        if name not in self._numbers:
            # Names that users write are interned, so that they are found by identity.
            self._numbers[name] = self._object(sys.intern(name))
        return self._numbers[name]

    def _op(self, code: int, name: int = -1, a: int = 0, b: int = 0, c: int = 0) -> None:
        self.ops.append([code, name, a, b, c, 0])

    @contextmanager
    def _body(self, code: int, name: int, a: int, b: int = 0, c: int = 0) -> Iterator[None]:
        """Add an op whose body is the ops that are written meanwhile."""
        at = len(self.ops)
        self._op(code, name, a, b, c)
        yield
        self.ops[at][5] = len(self.ops) - at - 1

    def _struct(self, fields: tuple[Field, ...], name: int) -> Any:
        names = [sys.intern(f.name) for f in fields if not isinstance(f.node, HIDDEN)]
        return self._body(kernel.STRUCT, name, self._object(dict.fromkeys(names)))

    def _is_run(self, node: Node) -> bool:
        # A huge array of structs is checked item by item instead.
        extent = measure(node, self.sizes)
        return extent.size is not None and extent.runs <= MAX_LEAVES

    def _need(self, size: int) -> None:
        if size:
            self._op(kernel.NEED, a=size)

    def node(self, node: Node, name: int = -1) -> None:
        """Write the ops of a node whose bytes have not been checked."""
        if self._is_run(node):
            self._need(measure(node, self.sizes).size or 0)
            self._fixed(node, name)
            return
        match node:
            case Struct(fields=fields):
                with self._struct(fields, name):
                    self._members(fields)
            case FixedArray(item=item, count=n):
                with self._body(kernel.REPEAT, name, n, measure(item, self.sizes).least):
                    self.node(item)
            case Sequence(item=Scalar(type="char" | "uint8"), width=w):
                self._op(kernel.BYTES, name, w)
            case Sequence(item=Scalar(type=t), width=w, grid=None):
                self._op(kernel.COUNTED, name, w, _NUMBERS[t], SCALARS[t][1])
            case Sequence(item=item, width=w, grid=grid):
                with self._body(kernel.LIST, name, w, measure(item, self.sizes).least, packed(grid)):
                    # The bytes of items of fixed size have been checked with their count.
                    (self._fixed if self._is_run(item) else self.node)(item)
            case String(width=w, grid=grid, tail=tail):
                self._op(kernel.STRING, name, w, packed(grid), tail)
            case Bytes(width=w):
                self._op(kernel.BYTES, name, w)
            case Rest(text=text):
                self._op(kernel.REST, name, text)
            case Align(grid=grid):
                self._op(kernel.ALIGN, a=packed(grid))
            case Expect(data=data):
                self._op(
                    kernel.EXPECT,
                    -1,
                    len(data),
                    int.from_bytes(data.ljust(8, b"\0"), sys.byteorder, signed=True),
                )
            case Skip(node=inner):
                self.node(inner)
            case _:
                raise AssertionError(node)

    def _members(self, fields: tuple[Field, ...]) -> None:
        """Write members; adjacent ones of fixed size are checked together."""
        at = 0
        while at < len(fields):
            end = at
            while end < len(fields) and self._is_run(fields[end].node):
                end += 1
            self._need(sum(measure(f.node, self.sizes).size or 0 for f in fields[at:end]))
            for f in fields[at:end]:
                self._fixed(f.node, self._shown(f))
            if end < len(fields):
                self.node(fields[end].node, self._shown(fields[end]))
            at = end + 1

    def _shown(self, field: Field) -> int:
        return -1 if isinstance(field.node, HIDDEN) else self._name(field.name)

    def _fixed(self, node: Node, name: int = -1) -> None:
        """Write the ops of a node of fixed size whose bytes have been checked."""
        match node:
            case Scalar(type=t):
                self._op(_NUMBERS[t], name, SCALARS[t][1])
            case Time(signed=signed):
                self._op(kernel.TIME, name, signed)
            case FixedArray(item=Scalar(type="char"), count=n):
                self._op(kernel.TEXT, name, n)
            case FixedArray(item=Scalar(type=t), count=n):
                self._op(kernel.NUMBERS, name, _NUMBERS[t], n, SCALARS[t][1])
            case FixedArray(item=item, count=n):
                with self._body(kernel.ITEMS, name, n):
                    self._fixed(item)
            case Struct(fields=fields):
                with self._struct(fields, name):
                    for f in fields:
                        self._fixed(f.node, self._shown(f))
            case _:
                # Hidden bytes have no value.
                self._op(kernel.MOVE, a=measure(node, self.sizes).size or 0)
