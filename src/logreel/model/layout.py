"""How the bytes of one message are laid out: a small tree that every schema language compiles to.

A Layout says nothing of names of formats; it is a little-endian walk. Fixed-size Layouts also answer where each
leaf lies (``leaves``), so that whole columns come from one pass of the gather kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from logreel.errors import DefinitionError

#: NumPy type string and width in bytes of every Scalar type.
SCALARS: dict[str, tuple[str, int]] = {
    "bool": ("|b1", 1),
    "char": ("|i1", 1),
    "int8": ("|i1", 1),
    "uint8": ("|u1", 1),
    "int16": ("<i2", 2),
    "uint16": ("<u2", 2),
    "int32": ("<i4", 4),
    "uint32": ("<u4", 4),
    "int64": ("<i8", 8),
    "uint64": ("<u8", 8),
    "float32": ("<f4", 4),
    "float64": ("<f8", 8),
}

#: A Layout with more flattened leaves or deeper nesting than this is refused: no real schema comes near.
MAX_LEAVES = 100_000
MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number. ``char`` is a byte of text: alone an int8, in a FixedArray NUL-padded text."""

    type: str

    def __post_init__(self) -> None:
        if self.type not in SCALARS:
            raise DefinitionError(f"unknown scalar type {self.type!r}")


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds and nanoseconds as two 32-bit words: an int64 of nanoseconds. *signed*: a duration."""

    signed: bool = False


@dataclass(frozen=True, slots=True)
class String:
    """A length of *width* bytes (1, 2, 4), then that many bytes of text."""

    width: int = 4


@dataclass(frozen=True, slots=True)
class Bytes:
    """A length of *width* bytes (1, 2, 4), then that many opaque bytes."""

    width: int = 4


@dataclass(frozen=True, slots=True)
class Rest:
    """Everything to the end of the message; *text* tells characters from opaque bytes."""

    text: bool = False


@dataclass(frozen=True, slots=True)
class Padding:
    """*size* bytes that mean nothing: skipped, never shown."""

    size: int


@dataclass(frozen=True, slots=True)
class FixedArray:
    """*count* items, one after another, with no count in the bytes."""

    item: Node
    count: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A count of *width* bytes (1, 2, 4), then that many items."""

    item: Node
    width: int = 4


@dataclass(frozen=True, slots=True)
class Field:
    """One named member of a Struct; *unit* as the schema states it, empty if it does not."""

    name: str
    node: Node
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Struct:
    """Members in file order; Padding members have the name ``""``."""

    fields: tuple[Field, ...]

    def visible(self) -> Iterator[Field]:
        """The members that hold data."""
        return (f for f in self.fields if not isinstance(f.node, Padding))


Node = Scalar | Time | String | Bytes | Rest | Padding | FixedArray | Sequence | Struct


def size_of(node: Node) -> int | None:
    """Bytes of *node*, or None where the data decides."""
    match node:
        case Scalar(type=t):
            return SCALARS[t][1]
        case Time():
            return 8
        case Padding(size=n):
            return n
        case FixedArray(item=item, count=n):
            one = size_of(item)
            return None if one is None else one * n
        case Struct(fields=fields):
            total = 0
            for f in fields:
                one = size_of(f.node)
                if one is None:
                    return None
                total += one
            return total
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where one column of a fixed-size Layout lies inside a message.

    runs   byte offsets from the start of the payload; several for a leaf inside an array of structs
    items  scalars side by side in each run
    type   Scalar type, or ``time`` / ``duration``
    """

    path: tuple[str, ...]
    type: str
    runs: tuple[int, ...]
    items: int = 1

    @property
    def width(self) -> int:
        """Bytes of one run."""
        return self.items * (8 if self.type in ("time", "duration") else SCALARS[self.type][1])


def _leaves(node: Node, path: tuple[str, ...], at: tuple[int, ...]) -> Iterator[Leaf]:
    match node:
        case Scalar(type=t):
            yield Leaf(path, t, at)
        case Time(signed=signed):
            yield Leaf(path, "duration" if signed else "time", at)
        case FixedArray(item=Scalar(type=t), count=n):
            yield Leaf(path, t, at, n)
        case FixedArray(item=item, count=n):
            step = size_of(item)
            if step is None or len(at) * n > MAX_LEAVES:
                raise DefinitionError(f"array {'.'.join(path)} is too large or not of fixed size")
            yield from _leaves(item, path, tuple(a + i * step for a in at for i in range(n)))
        case Struct(fields=fields):
            skip = 0
            for f in fields:
                if not isinstance(f.node, Padding):
                    yield from _leaves(f.node, (*path, f.name), tuple(a + skip for a in at))
                skip += size_of(f.node) or 0
        case _:
            raise DefinitionError(f"{'.'.join(path)} has no fixed size")


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def parse_path(path: str) -> tuple[str | int, ...]:
    """``esc[0].esc_rpm`` as ``("esc", 0, "esc_rpm")``.

    Raises ValueError on anything else than names, dots and indices.
    """
    steps: list[str | int] = []
    pos = 0
    while pos < len(path):
        if pos and path[pos] == ".":
            pos += 1
        m = _STEP.match(path, pos)
        if m is None or (m[1] is not None and pos and path[pos - 1] != "."):
            raise ValueError(f"not a field path: {path!r}")
        steps.append(m[1] if m[1] is not None else int(m[2]))
        pos = m.end()
    if not steps:
        raise ValueError("an empty field path")
    return tuple(steps)


@dataclass(frozen=True)
class Layout:
    """The layout of a message: *root* is a Struct, or a Sequence of Structs where one message holds many records."""

    root: Struct | Sequence
    name: str = field(default="", compare=False)

    @cached_property
    def size(self) -> int | None:
        """Bytes of a message, or None where the data decides."""
        return size_of(self.root)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The columns of a fixed-size Layout, in file order; raises DefinitionError for another."""
        found = tuple(_leaves(self.root, (), (0,)))
        if sum(len(leaf.runs) for leaf in found) > MAX_LEAVES:
            raise DefinitionError(f"{self.name or 'layout'} has more than {MAX_LEAVES} leaves")
        return found

    @property
    def record(self) -> Struct:
        """The Struct that one row of a table shows."""
        if isinstance(self.root, Struct):
            return self.root
        item = self.root.item
        if not isinstance(item, Struct):
            raise DefinitionError(f"{self.name or 'layout'}: the records of a message must be structs")
        return item
