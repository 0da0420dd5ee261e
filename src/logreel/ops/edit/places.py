"""Where fields lie in payloads: byte ranges found by walking a Layout, without decoding the rest of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from logreel.errors import DefinitionError, NotFoundError, UsageError
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    Align,
    Bytes,
    Expect,
    FixedArray,
    Grid,
    Measure,
    Node,
    Rest,
    Scalar,
    Skip,
    String,
    Struct,
    measure,
    scalar_width,
    steps_of,
)
from logreel.layout.nodes import Sequence as Counted

#: One step of a path: the name of a member, the number of an item, or None for all items.
Step = str | int | None
#: Return where a node ends that begins at a byte of a message; adds the ranges of wanted fields.
Walk = Callable[[memoryview, int, "list[list[tuple[int, int]]]"], int]


class _TooShort(Exception):
    """Raised for a message that ends before its Layout does."""


@dataclass(frozen=True, slots=True)
class TargetField:
    """A field of a Layout; *steps*: its path with every array on the way, *node*: what is there."""

    steps: tuple[Step, ...]
    node: Node


@dataclass(frozen=True, slots=True)
class FieldRanges:
    """Byte ranges of one field in many messages, ascending by message.

    row    int64[k]  message of each range
    start  int64[k]  first byte, counted from the beginning of the buffer; of texts and counted arrays their length
    size   int64[k]  bytes, including the length
    """

    row: I64
    start: I64
    size: I64


def target(layout: Layout, path: str, scalars: bool = False) -> TargetField:
    """Return the field at *path*; arrays without an index mean all their items.

    scalars  True: go on to the numbers in an array, so that each is a range of its own

    Raises NotFoundError (a KeyError) for an unknown path.
    """
    node: Node = layout.root
    steps: list[Step] = []
    for step in steps_of(layout.record, path):
        while isinstance(step, str) and isinstance(node, FixedArray | Counted):
            steps.append(None)
            node = node.item
        steps.append(step)
        node = _inside(node, step, path)
    while scalars and isinstance(node, FixedArray | Counted) and not _is_opaque(node):
        steps.append(None)
        node = node.item
    return TargetField(tuple(steps), node)


def _inside(node: Node, step: str | int, path: str) -> Node:
    if isinstance(step, int):
        # The records of a message are not addressed by number.
        if not isinstance(node, FixedArray | Counted):
            raise UsageError(f"no array at {path!r}")
        return node.item
    if isinstance(node, Struct):
        for member in node.visible():
            if member.name == step:
                return member.node
    raise NotFoundError("field", path, [])


def _is_opaque(node: Node) -> bool:
    """Return whether an array is text or opaque bytes rather than numbers."""
    if isinstance(node, FixedArray):
        return node.item == Scalar("char")
    return isinstance(node, Counted) and node.item in (Scalar("char"), Scalar("uint8"))


def has_grid(node: Node, known: dict[int, bool] | None = None) -> bool:
    """Return whether bytes of *node* are aligned, so that a text of another length moves what follows it."""
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = False
        match node:
            case Align():
                has = True
            case String(grid=grid, tail=tail):
                has = grid is not None or tail > 0
            case Counted(grid=grid, item=item):
                has = grid is not None or has_grid(item, known)
            case FixedArray(item=item) | Skip(node=item):
                has = has_grid(item, known)
            case Struct(fields=fields):
                has = any(has_grid(f.node, known) for f in fields)
            case _:
                has = False
        known[id(node)] = has
    return known[id(node)]


@dataclass(slots=True)
class _Tree:
    """The wanted fields below a node: numbers of targets that are the node itself, and those of its parts."""

    here: list[int] = field(default_factory=list)
    below: dict[Step, _Tree] = field(default_factory=dict)


class Finder:
    """Finds fields in the payloads of a Layout."""

    def __init__(self, layout: Layout, targets: Sequence[TargetField]) -> None:
        self._count = len(targets)
        self._fixed = [_fixed_places(layout, target_field) for target_field in targets]
        self._least = layout.measure.least
        self._constant = list(_constant_start(layout.root))
        tree = _Tree()
        for number, target_field in enumerate(targets):
            if self._fixed[number] is None:
                at = tree
                for step in target_field.steps:
                    at = at.below.setdefault(step, _Tree())
                at.here.append(number)
        self._walk = _walk(layout.root, tree, {}) if tree.below else None

    def find(self, data: Buffer, start: I64, size: I64) -> tuple[list[FieldRanges], I64]:
        """Return the places of each target in the messages data[start:start + size], and the rows of bad messages.

        A message that ends before its Layout, or begins with other constant bytes, is bad; its fields have no places.
        """
        bad = size < self._least
        for at, expected in self._constant:
            # Fields at fixed places are not walked to, but another encoding has something else there.
            fits = np.flatnonzero(~bad)
            begins = np.asarray(data)[start[fits][:, None] + np.arange(at, at + len(expected))]
            bad[fits] = (begins != np.frombuffer(expected, np.uint8)).any(axis=1)
        by_row: list[list[list[tuple[int, int]]]] = []
        rows: list[int] = []
        if self._walk is not None:
            view = memoryview(np.ascontiguousarray(data).data)
            for row, (at, length) in enumerate(zip(start.tolist(), size.tolist(), strict=True)):
                if bad[row]:
                    continue
                out: list[list[tuple[int, int]]] = [[] for _ in range(self._count)]
                try:
                    self._walk(view[at : at + length], 0, out)
                except _TooShort:
                    bad[row] = True
                    continue
                by_row.append(out)
                rows.append(row)
        good = np.flatnonzero(~bad)
        places = [
            self._walked(number, by_row, rows, start) if fixed is None else _repeated(fixed, good, start)
            for number, fixed in enumerate(self._fixed)
        ]
        return places, np.flatnonzero(bad)

    def _walked(
        self, number: int, by_row: list[list[list[tuple[int, int]]]], rows: list[int], start: I64
    ) -> FieldRanges:
        flat = [(row, lo, hi) for row, out in zip(rows, by_row, strict=True) for lo, hi in out[number]]
        table = np.array(flat, np.int64).reshape(len(flat), 3)
        return FieldRanges(table[:, 0], start[table[:, 0]] + table[:, 1], table[:, 2] - table[:, 1])


def _constant_start(root: Node) -> Iterator[tuple[int, bytes]]:
    """Yield places and constant bytes of the members before the first of variable size."""
    at = 0
    for member in root.fields if isinstance(root, Struct) else ():
        if isinstance(member.node, Expect):
            yield at, member.node.data
        size = measure(member.node)
        if size.size is None:
            return
        at += size.size


def _fixed_places(layout: Layout, target_field: TargetField) -> tuple[tuple[int, ...], int] | None:
    """Return the offsets of a field that is at the same place in each message, and its size; else None."""
    if not isinstance(layout.root, Struct) or not isinstance(target_field.node, Scalar):
        return None
    names = [step for step in target_field.steps if step is not None]
    if len(names) != len(target_field.steps) or not all(isinstance(step, str) for step in names):
        return None
    try:
        leaf = layout.find(".".join(map(str, names)))
    except (DefinitionError, UsageError, NotFoundError):
        return None
    return (leaf.runs, scalar_width(leaf.type)) if leaf.items == 1 and len(leaf.runs) == 1 else None


def _repeated(fixed: tuple[tuple[int, ...], int], rows: I64, start: I64) -> FieldRanges:
    (offset,), size = fixed
    return FieldRanges(rows, start[rows] + offset, np.full(len(rows), size, np.int64))


def _walk(node: Node, tree: _Tree, sizes: dict[int, Measure]) -> Walk:
    """Return the Walk of *node* that adds the ranges of what *tree* wants."""
    inner = _inner_walk(node, tree, sizes) if tree.below else _skip(node, sizes)
    if not tree.here:
        return inner
    numbers, grid = tuple(tree.here), getattr(node, "grid", None) if isinstance(node, String) else None

    def walk(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
        end = inner(data, pos, out)
        begin = pos + (grid.gap(pos) if grid is not None else 0)
        for number in numbers:
            out[number].append((begin, end))
        return end

    return walk


def _inner_walk(node: Node, tree: _Tree, sizes: dict[int, Measure]) -> Walk:
    match node:
        case Struct(fields=fields):
            parts: list[Walk] = []
            for f in fields:
                wanted = tree.below.get(f.name) if f.name else None
                parts.append(_walk(f.node, wanted, sizes) if wanted else _skip(f.node, sizes))

            def walk_struct(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
                for part in parts:
                    pos = part(data, pos, out)
                return pos

            return walk_struct
        case FixedArray(item=item, count=count):
            return _walk_items(item, tree, sizes, None, count)
        case Counted(item=item, width=width, grid=grid):
            return _walk_items(item, tree, sizes, (width, grid), 0)
        case _:
            raise DefinitionError(f"no fields in {type(node).__name__}")


def _walk_items(
    item: Node, tree: _Tree, sizes: dict[int, Measure], counted: tuple[int, Grid | None] | None, fixed: int
) -> Walk:
    """Return the Walk of an array; *counted*: width of its count and alignment of its items, None: *fixed* items."""
    every = tree.below.get(None)
    alone = {step: _walk(item, below, sizes) for step, below in tree.below.items() if isinstance(step, int)}
    usual = _walk(item, every, sizes) if every is not None else _skip(item, sizes)
    least = max(1, measure(item, sizes).least)

    def walk(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
        count = fixed
        if counted is not None:
            count, pos = _length(data, pos, counted[0])
            if counted[1] is not None and count:
                pos += counted[1].gap(pos)
        if count * least > len(data) - pos and count > len(data):
            raise _TooShort
        for number in range(count):
            begin = pos
            pos = usual(data, begin, out)
            if number in alone:
                alone[number](data, begin, out)
        return pos

    return walk


def _skip(node: Node, sizes: dict[int, Measure]) -> Walk:
    """Return the Walk of a node of which nothing is wanted."""
    size = measure(node, sizes).size
    if size is not None:
        return lambda data, pos, out: _checked(data, pos + size)
    match node:
        case String(width=width, grid=grid):

            def skip_text(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
                count, pos = _length(data, pos + (grid.gap(pos) if grid is not None else 0), width)
                return _checked(data, pos + count)

            return skip_text
        case Bytes(width=width):

            def skip_bytes(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
                count, pos = _length(data, pos, width)
                return _checked(data, pos + count)

            return skip_bytes
        case Counted(item=item, width=width, grid=grid) if measure(item, sizes).size is not None:
            each = measure(item, sizes).size or 0

            def skip_counted(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
                count, pos = _length(data, pos, width)
                return _checked(
                    data, pos + (grid.gap(pos) if grid is not None and count else 0) + count * each
                )

            return skip_counted
        case Align(grid=step):
            return lambda data, pos, out: _checked(data, pos + step.gap(pos))
        case Expect(data=expected):
            return lambda data, pos, out: _checked(data, pos + len(expected))
        case Rest():
            return lambda data, pos, out: len(data)
        case Skip(node=inner):
            return _skip(inner, sizes)
        case FixedArray(item=item, count=count):
            return _walk_items(item, _Tree(), sizes, None, count)
        case Counted(item=item, width=width, grid=grid):
            return _walk_items(item, _Tree(), sizes, (width, grid), 0)
        case Struct(fields=fields):
            parts = [_skip(f.node, sizes) for f in fields]

            def skip_struct(data: memoryview, pos: int, out: list[list[tuple[int, int]]]) -> int:
                for part in parts:
                    pos = part(data, pos, out)
                return pos

            return skip_struct
        case _:
            raise DefinitionError(f"{type(node).__name__} has no size")


def _length(data: memoryview, pos: int, width: int) -> tuple[int, int]:
    """Return the count of *width* bytes at *pos*, and where it ends."""
    end = _checked(data, pos + width)
    return int.from_bytes(data[pos:end], "little"), end


def _checked(data: memoryview, end: int) -> int:
    if end > len(data):
        raise _TooShort
    return end
