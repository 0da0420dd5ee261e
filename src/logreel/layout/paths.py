"""Field paths: listing them, finding the leaf of one, and projecting a Layout to some of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

from logreel.errors import DefinitionError, NotFoundError, UsageError
from logreel.layout.nodes import (
    HIDDEN,
    MAX_LEAVES,
    SCALARS,
    Field,
    FixedArray,
    Measure,
    Node,
    Padding,
    Scalar,
    Sequence,
    Skip,
    Struct,
    Time,
    measure,
)

#: Number of names listed in the text of an error.
MAX_NAMED = 100


@dataclass(frozen=True, slots=True)
class Leaf:
    """Position of one column of a fixed-size Layout in a message.

    type   Scalar type, or ``time`` / ``duration``; ``char``: NUL-padded text of ``shape[-1]`` bytes
    runs   byte offsets from the start of the payload; several for a leaf inside an array of structs
    items  adjacent scalars in each run
    shape  array axes of one message, outermost first: their product is ``len(runs) * items``
    """

    path: tuple[str, ...]
    type: str
    runs: tuple[int, ...]
    items: int = 1
    shape: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Size of one run in bytes."""
        return self.items * scalar_width(self.type)


def scalar_width(kind: str) -> int:
    """Return the bytes of one scalar of a Leaf type."""
    return 8 if kind in ("time", "duration") else SCALARS[kind][1]


class Place(NamedTuple):
    """Position of a node in a message: bytes from the start, and (count, step) of each array around it."""

    path: tuple[str, ...] = ()
    offset: int = 0
    axes: tuple[tuple[int, int], ...] = ()

    def leaf(self, kind: str, items: int | None = None) -> Leaf:
        """Return the Leaf of one scalar at this place, or of an array of *items* scalars."""
        shape = tuple(count for count, _ in self.axes)
        if items is not None:
            shape = (*shape, items)
        items, axes = 1 if items is None else items, list(self.axes)
        # Adjacent runs are merged: fewer, longer copies for the kernels.
        while axes and axes[-1][1] == items * scalar_width(kind):
            items *= axes.pop()[0]
        runs = [self.offset]
        for count, step in axes:
            runs = [at + i * step for at in runs for i in range(count)]
        return Leaf(self.path, kind, tuple(runs), items, shape)


def leaves_of(node: Node, place: Place, sizes: dict[int, Measure]) -> Iterator[Leaf]:
    """Yield the Leaves of *node* at *place*, in file order; raise DefinitionError for variable sizes."""
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
    """Return the steps of a path: ``("esc", 0, "esc_rpm")`` for ``esc[0].esc_rpm``.

    Raises ValueError for anything except names, dots and indices.
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


def record_of(root: Struct | Sequence, name: str = "") -> Struct:
    """Return the Struct of one row of a table; *name* of the layout is for the error.

    Raises DefinitionError where a message is a sequence of other nodes than Structs.
    """
    record = root if isinstance(root, Struct) else root.item
    if not isinstance(record, Struct):
        raise DefinitionError(f"{name or 'layout'}: the records of a message must be structs")
    return record


def paths(struct: Struct) -> list[str]:
    """Return the dotted path of every leaf below *struct*, in file order."""
    return [".".join(path) for path in _below(struct, ())]


def _below(node: Node, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    node = _innermost(node)
    if isinstance(node, Struct):
        for f in node.visible():
            yield from _below(f.node, (*path, f.name))
    else:
        yield path


def _innermost(node: Node) -> Node:
    while isinstance(node, FixedArray | Sequence):
        node = node.item
    return node


def steps_of(record: Struct, path: str) -> tuple[str | int, ...]:
    """Return the steps of *path* below *record*; raise NotFoundError (a KeyError) with the nearest paths."""
    try:
        steps = parse_path(path)
    except ValueError:
        _unknown(record, path)
    node: Node = record
    for i, step in enumerate(steps):
        if isinstance(step, str):
            node = _member(_innermost(node), step) or _unknown(record, path)
        elif isinstance(node, FixedArray | Sequence):
            if isinstance(node, FixedArray) and step >= node.count:
                there = [path_text((*steps[:i], k)) for k in range(min(node.count, MAX_NAMED))]
                raise NotFoundError("field", path, there)
            node = node.item
        else:
            _unknown(record, path)
    return steps


def _member(node: Node, name: str) -> Node | None:
    if not isinstance(node, Struct):
        return None
    return next((f.node for f in node.visible() if f.name == name), None)


def _unknown(record: Struct, path: str) -> NoReturn:
    raise NotFoundError("field", path, paths(record))


def path_text(steps: Iterable[str | int]) -> str:
    """Return the path of *steps*: ``esc[0].rpm`` for ``("esc", 0, "rpm")``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def find(root: Struct | Sequence, path: str) -> Leaf:
    """Return the Leaf at *path*; see ``Layout.find``."""
    steps = steps_of(record_of(root), path)
    sizes: dict[int, Measure] = {}
    node: Node = root
    place = Place()
    for step in steps:
        if isinstance(step, int) and isinstance(node, FixedArray):
            place = place._replace(offset=place.offset + step * _fixed(node.item, path, sizes))
            node = node.item
        else:
            node, place = _into_axes(node, place, path, sizes)
            node, place = _into_member(node, place, str(step), path, sizes)
    return _single_leaf(node, place, path, sizes)


def _fixed(node: Node, path: str, sizes: dict[int, Measure]) -> int:
    size = measure(node, sizes).size
    if size is None:
        raise DefinitionError(f"where {path} lies differs from message to message")
    return size


def _into_axes(node: Node, place: Place, path: str, sizes: dict[int, Measure]) -> tuple[Node, Place]:
    while isinstance(node, FixedArray):
        axis = (node.count, _fixed(node.item, path, sizes))
        node, place = node.item, place._replace(axes=(*place.axes, axis))
    return node, place


def _into_member(
    node: Node, place: Place, name: str, path: str, sizes: dict[int, Measure]
) -> tuple[Node, Place]:
    if not isinstance(node, Struct):
        raise DefinitionError(f"where {path} lies differs from message to message")
    at = place.offset
    for f in node.fields:
        if f.name == name and not isinstance(f.node, HIDDEN):
            return f.node, Place((*place.path, name), at, place.axes)
        at += _fixed(f.node, path, sizes)
    raise DefinitionError(f"{path} is hidden")


def _single_leaf(node: Node, place: Place, path: str, sizes: dict[int, Measure]) -> Leaf:
    inner = _innermost(node)
    if isinstance(inner, Struct):
        below = [".".join((path, *names)) for names in _below(inner, ())]
        raise UsageError(
            f"{path} is a group of fields; name one of: {', '.join(below[:MAX_NAMED]) or '(it is empty)'}"
        )
    _fixed(node, path, sizes)
    if not isinstance(inner, Scalar | Time):
        raise DefinitionError(f"{path} has no fixed size")
    runs = 1
    for count, _ in place.axes:
        runs *= count
    if runs * measure(node, sizes).runs > MAX_LEAVES:
        raise DefinitionError(f"{path} has more than {MAX_LEAVES} runs of bytes in a message")
    return next(leaves_of(node, place, sizes))


Wanted = dict[str, "Wanted | None"]


def project(root: Struct | Sequence, fields: Iterable[str]) -> Struct | Sequence:
    """Return the same tree with only *fields* visible; see ``Layout.project``."""
    wanted: Wanted = {}
    record = record_of(root)
    for path in fields:
        names = [step for step in steps_of(record, path) if isinstance(step, str)]
        _add_path(wanted, names)
    narrow = _narrow_struct(record, wanted, {})
    return replace(root, item=narrow) if isinstance(root, Sequence) else narrow


def _add_path(wanted: Wanted, names: list[str]) -> None:
    for name in names[:-1]:
        below = wanted.setdefault(name, {})
        if below is None:
            return
        wanted = below
    wanted[names[-1]] = None


def _narrow_struct(struct: Struct, wanted: Wanted, sizes: dict[int, Measure]) -> Struct:
    return Struct(tuple(_narrow_field(f, wanted, sizes) for f in struct.fields))


def _narrow_field(f: Field, wanted: Wanted, sizes: dict[int, Measure]) -> Field:
    if f.name in wanted and not isinstance(f.node, HIDDEN):
        below = wanted[f.name]
        return f if below is None else Field(f.name, _narrow(f.node, below, sizes), f.unit)
    if isinstance(f.node, HIDDEN):
        return f
    size = measure(f.node, sizes).size
    return Field("", Skip(f.node) if size is None else Padding(size))


def _narrow(node: Node, wanted: Wanted, sizes: dict[int, Measure]) -> Node:
    match node:
        case Struct():
            return _narrow_struct(node, wanted, sizes)
        case FixedArray(item=item, count=n):
            return FixedArray(_narrow(item, wanted, sizes), n)
        case Sequence(item=item):
            return replace(node, item=_narrow(item, wanted, sizes))
        case _:
            return node
