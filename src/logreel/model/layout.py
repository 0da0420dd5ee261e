"""How the bytes of one message are laid out: a small tree that every schema language compiles to.

A Layout says nothing of names of formats; it is a little-endian walk. Fixed-size Layouts also answer where
each leaf lies (``leaves``), so that whole columns come from one pass of the gather kernel.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from logreel.errors import DefinitionError
from logreel.model.nodes import (
    HIDDEN,
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_SIZE,
    SCALARS,
    Align,
    Bytes,
    Expect,
    Field,
    FixedArray,
    Grid,
    Measure,
    Node,
    Padding,
    Rest,
    Scalar,
    Sequence,
    Skip,
    String,
    Struct,
    Time,
    measure,
    size_of,
)

__all__ = [
    "HIDDEN",
    "MAX_DEPTH",
    "MAX_LEAVES",
    "MAX_SIZE",
    "SCALARS",
    "Align",
    "Bytes",
    "Expect",
    "Field",
    "FixedArray",
    "Grid",
    "Layout",
    "Leaf",
    "Measure",
    "Node",
    "Padding",
    "Place",
    "Rest",
    "Scalar",
    "Sequence",
    "Skip",
    "String",
    "Struct",
    "Time",
    "leaves_of",
    "measure",
    "parse_path",
    "size_of",
]


@dataclass(frozen=True, slots=True)
class Leaf:
    """Where one column of a fixed-size Layout lies inside a message.

    type   Scalar type, or ``time`` / ``duration``; ``char``: NUL-padded text of ``shape[-1]`` bytes
    runs   byte offsets from the start of the payload; several for a leaf inside an array of structs
    items  scalars side by side in each run
    shape  array axes of one message, outermost first: their product is ``len(runs) * items``
    """

    path: tuple[str, ...]
    type: str
    runs: tuple[int, ...]
    items: int = 1
    shape: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Bytes of one run."""
        return self.items * scalar_width(self.type)


def scalar_width(kind: str) -> int:
    """Bytes of one scalar of a Leaf type."""
    return 8 if kind in ("time", "duration") else SCALARS[kind][1]


class Place(NamedTuple):
    """Where a node lies in a message: bytes from the start, and (count, step) of each array around it."""

    path: tuple[str, ...] = ()
    offset: int = 0
    axes: tuple[tuple[int, int], ...] = ()

    def leaf(self, kind: str, items: int | None = None) -> Leaf:
        """The Leaf of one scalar here, or of an array of *items* scalars."""
        shape = tuple(count for count, _ in self.axes)
        if items is not None:
            shape = (*shape, items)
        items, axes = 1 if items is None else items, list(self.axes)
        # Neighbouring runs are one: fewer, longer copies for the kernels.
        while axes and axes[-1][1] == items * scalar_width(kind):
            items *= axes.pop()[0]
        runs = [self.offset]
        for count, step in axes:
            runs = [at + i * step for at in runs for i in range(count)]
        return Leaf(self.path, kind, tuple(runs), items, shape)


def leaves_of(node: Node, place: Place, sizes: dict[int, Measure]) -> Iterator[Leaf]:
    """The Leaves of *node* at *place*, in file order; raises DefinitionError where the data decides."""
    match node:
        case Scalar(type=t):
            yield place.leaf("int8" if t == "char" else t)
        case Time(signed=signed):
            yield place.leaf("duration" if signed else "time")
        case FixedArray(item=Scalar(type=t), count=n):
            yield place.leaf(t, n)
        case FixedArray(item=item, count=n):
            axis = (n, measure(item, sizes).size or 0)
            yield from leaves_of(item, place._replace(axes=(*place.axes, axis)), sizes)
        case Struct(fields=fields):
            at = place.offset
            for f in fields:
                if not isinstance(f.node, Padding):
                    yield from leaves_of(f.node, Place((*place.path, f.name), at, place.axes), sizes)
                at += measure(f.node, sizes).size or 0
        case _:
            raise DefinitionError(f"{'.'.join(place.path)} has no fixed size")


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


@dataclass(frozen=True, repr=False)
class Layout:
    """The layout of a message; *root* is a Struct, or a Sequence of Structs: many records in one message.

    Raises DefinitionError for a tree of more than MAX_LEAVES nodes or MAX_DEPTH levels, so that whoever holds
    a Layout may walk it freely.
    """

    root: Struct | Sequence
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.measure.nodes > MAX_LEAVES:
            raise DefinitionError(f"{self.name or 'layout'} has more than {MAX_LEAVES} leaves")

    def __repr__(self) -> str:
        # Parts may be shared many times over, so that all of them written out would be far too long.
        size = "any size" if self.size is None else f"{self.size} bytes"
        return f"<logreel.Layout {self.name!r}: {len(list(self.record.visible()))} fields, {size}>"

    @cached_property
    def measure(self) -> Measure:
        """Size and extent of a whole message."""
        return measure(self.root)

    @property
    def size(self) -> int | None:
        """Bytes of a message, or None where the data decides."""
        return self.measure.size

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The columns of a fixed-size Layout, in file order.

        Raises DefinitionError for a Layout of no fixed size or of more than MAX_LEAVES runs of bytes.
        """
        if self.measure.runs > MAX_LEAVES:
            raise DefinitionError(f"{self.name or 'layout'} has more than {MAX_LEAVES} leaves")
        if self.size is None:
            raise DefinitionError(f"{self.name or 'layout'} has no fixed size")
        return tuple(leaves_of(self.root, Place(), {}))

    @property
    def record(self) -> Struct:
        """The Struct that one row of a table shows."""
        if isinstance(self.root, Struct):
            return self.root
        item = self.root.item
        if not isinstance(item, Struct):
            raise DefinitionError(f"{self.name or 'layout'}: the records of a message must be structs")
        return item

    def paths(self) -> list[str]:
        """The dotted path of every leaf, in file order; arrays of structs show no index (``esc.esc_rpm``)."""
        from logreel.model.paths import paths

        return paths(self.record)

    def find(self, path: str) -> Leaf:
        """The Leaf at *path*: ``lat``, ``pose.position.x``, ``q[2]``, ``esc[0].esc_rpm``, ``esc.esc_rpm``.

        An array without an index means its whole axis. Works for any leaf whose place no data decides, in a
        Layout of variable size too. Raises TopicError (a KeyError) for an unknown path, UsageError for a path
        that names a whole struct, DefinitionError where the data decides the place or the size.
        """
        from logreel.model.paths import find

        return find(self, path)

    def project(self, fields: Iterable[str]) -> Layout:
        """The same bytes with only *fields* visible: paths of leaves or of whole structs, indices ignored."""
        from logreel.model.paths import project

        return project(self, fields)

    def decoder(self) -> Callable[[memoryview], dict[str, Any]]:
        """A function that decodes one message into a dict; see ``logreel.model.decode.decoder``."""
        from logreel.model.decode import decoder

        return decoder(self)
