"""The nodes of a Layout: a small tree of immutable parts that describes little-endian bytes in their order.

Schemas may share parts, so a tree can be exponentially larger than its distinct nodes: never hash, compare or
walk one before ``measure`` (or the constructor of Layout) has accepted its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from logreel.dataclass import NamedTuple, dataclass, lazy_pattern, replace
from logreel.errors import DefinitionError, NotFoundError, UsageError

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

#: Limits of the flattened leaves and of the nesting of a Layout, far above those of real schemas.
MAX_LEAVES = 100_000
MAX_DEPTH = 64
#: Limit of the least size of a node in bytes, that of Arrow's 32-bit offsets.
MAX_SIZE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Scalar:
    """One number. ``char`` is a byte of text: alone an int8, in a FixedArray NUL-padded text."""

    type: str

    def __post_init__(self) -> None:
        if self.type not in SCALARS:
            raise DefinitionError(f"unknown scalar type {self.type!r}")


@dataclass(frozen=True, slots=True)
class Time:
    """Seconds and nanoseconds as two 32-bit words, decoded as int64 ns; *signed*: a duration."""

    signed: bool = False


class Grid(NamedTuple):
    """Positions in a message: byte *origin*, and every *step* bytes (1, 2, 4, 8) after it."""

    step: int
    origin: int = 0

    def gap(self, at: int) -> int:
        """Return the bytes from *at* to the next position of the grid."""
        return (self.origin - at) % self.step


def packed(grid: Grid | None) -> int:
    """Return a grid as the number that kernels use: step + 256 * origin, 0 for None."""
    return 0 if grid is None else grid.origin << 8 | grid.step


@dataclass(frozen=True, slots=True)
class String:
    """A length of *width* bytes (1, 2, 4), then that many bytes of text.

    grid  alignment of the length, None: unaligned
    tail  bytes at the end that are counted but hidden, such as a NUL
    """

    width: int = 4
    grid: Grid | None = None
    tail: int = 0


@dataclass(frozen=True, slots=True)
class Bytes:
    """A length of *width* bytes (1, 2, 4), then that many opaque bytes."""

    width: int = 4


@dataclass(frozen=True, slots=True)
class Rest:
    """All bytes to the end of the message; *text*: characters, else opaque bytes."""

    text: bool = False


@dataclass(frozen=True, slots=True)
class Padding:
    """*size* bytes without meaning: skipped, never shown."""

    size: int


@dataclass(frozen=True, slots=True)
class Align:
    """Bytes up to the next position of *grid*, never shown."""

    grid: Grid


@dataclass(frozen=True, slots=True)
class Expect:
    """Constant bytes (at most 8), never shown; messages with other bytes here do not decode."""

    data: bytes


@dataclass(frozen=True, slots=True)
class FixedArray:
    """*count* consecutive items, without a count in the bytes."""

    item: Node
    count: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A count of *width* bytes (1, 2, 4), then that many items.

    grid  alignment of the first item, None: directly behind the count
    """

    item: Node
    width: int = 4
    grid: Grid | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One named member of a Struct; *unit* as stated by the schema, or empty."""

    name: str
    node: Node
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Struct:
    """Members in file order; hidden members have the name ``""``."""

    fields: tuple[Field, ...]

    def visible(self) -> Iterator[Field]:
        """Yield the members with data to show."""
        return (f for f in self.fields if not isinstance(f.node, HIDDEN))


@dataclass(frozen=True, slots=True)
class Skip:
    """A hidden member of variable size: a projection puts it in place of a *node* that is not wanted."""

    node: Node


Node = (
    Scalar | Time | String | Bytes | Rest | Padding | Align | Expect | FixedArray | Sequence | Struct | Skip
)
#: Nodes without data to show.
HIDDEN = (Padding, Align, Expect, Skip)


class Measure(NamedTuple):
    """Properties of a node that do not depend on the data.

    size    bytes, or None if it depends on the data
    least   least size in bytes
    nodes   nodes of the tree with every shared part written out
    runs    runs of leaf bytes with every FixedArray written out too
    height  levels of nesting
    rest    whether the node contains a Rest
    """

    size: int | None
    least: int
    nodes: int = 1
    runs: int = 1
    height: int = 1
    rest: bool = False


_OF_SCALARS = {name: Measure(size, size) for name, (_, size, *_) in SCALARS.items()}


def measure(node: Node, memo: dict[int, Measure] | None = None, level: int = 0) -> Measure:
    """Return the Measure of *node*.

    Takes time by distinct nodes, not by the size of the tree, which shared parts can make exponentially larger.
    Raises DefinitionError for nodes that cannot be decoded, or are too large or too deep to walk.
    """
    if type(node) is Scalar and level < MAX_DEPTH:
        return _OF_SCALARS[node.type]
    memo = {} if memo is None else memo
    # The key is the identity: hashing a frozen dataclass walks the whole tree below it.
    known = memo.get(id(node))
    if level + (known.height if known else 1) > MAX_DEPTH:
        raise DefinitionError(f"types are nested more than {MAX_DEPTH} deep")
    if known is None:
        known = memo[id(node)] = _measure(node, memo, level + 1)
        if not 0 <= known.least <= MAX_SIZE:
            raise DefinitionError(f"{type(node).__name__} of {known.least} bytes")
    return known


def _measure(node: Node, memo: dict[int, Measure], level: int) -> Measure:
    match node:
        case Scalar(type=t):
            return _OF_SCALARS[t]
        case Time():
            return Measure(8, 8)
        case Padding(size=n):
            return Measure(n, n)
        case String(width=w, grid=grid):
            _check_step(grid)
            return Measure(None, _checked_width(w))
        case Bytes(width=w):
            return Measure(None, _checked_width(w))
        case Align(grid=grid):
            _check_step(grid)
            return Measure(None, 0)
        case Expect(data=data):
            if len(data) > 8:
                raise DefinitionError(f"{len(data)} bytes are expected; at most 8 can be")
            return Measure(None, len(data))
        case Rest():
            return Measure(None, 0, rest=True)
        case Skip(node=inner):
            extent = measure(inner, memo, level)
            return extent._replace(nodes=extent.nodes + 1, height=extent.height + 1)
        case Sequence(item=item, width=w, grid=grid):
            _check_step(grid)
            extent = _measure_item(item, memo, level)
            return Measure(None, _checked_width(w), extent.nodes + 1, extent.runs, extent.height + 1)
        case FixedArray(item=item, count=n):
            extent = _measure_item(item, memo, level)
            size = None if extent.size is None else extent.size * n
            runs = 1 if isinstance(item, Scalar) else max(1, extent.runs * n)
            # The size of a message does not limit the number of such items.
            nodes = extent.nodes * (n if extent.size == 0 else 1) + 1
            return Measure(size, extent.least * n, nodes, runs, extent.height + 1)
        case Struct(fields=fields):
            if not fields:
                return Measure(0, 0)
            parts = [measure(f.node, memo, level) for f in fields]
            sizes, least, counts, runs_of, heights, rest = zip(*parts, strict=True)
            known = [part for part in sizes if part is not None]
            return Measure(
                sum(known) if len(known) == len(parts) else None,
                sum(least),
                1 + sum(counts),
                max(1, sum(runs_of)),
                1 + max(heights),
                any(rest),
            )


def _checked_width(width: int) -> int:
    if width not in (1, 2, 4):
        raise DefinitionError(f"a length of {width} bytes; expected 1, 2 or 4")
    return width


def _check_step(grid: Grid | None) -> None:
    if grid is not None and (grid.step not in (1, 2, 4, 8) or not 0 <= grid.origin < 1 << 16):
        raise DefinitionError(f"a grid of {grid.step} bytes from byte {grid.origin}; expected 1, 2, 4 or 8")


def _measure_item(item: Node, memo: dict[int, Measure], level: int) -> Measure:
    item_measure = measure(item, memo, level)
    if item_measure.rest or isinstance(item, HIDDEN):
        raise DefinitionError(f"an array of {type(item).__name__} items")
    # Items without bytes are limited by a number per message (kernels.layout.SPARE), all others by their bytes.
    if item_measure.least == 0 and item_measure.size != 0:
        raise DefinitionError("an array of items that may take no bytes")
    return item_measure


def size_of(node: Node) -> int | None:
    """Return the size of *node* in bytes, or None if it depends on the data."""
    return measure(node).size


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
                if isinstance(f.node, Scalar) and not place.axes:
                    # Most fields: of these a log has thousands.
                    kind = "int8" if f.node.type == "char" else f.node.type
                    yield Leaf((*place.path, f.name), kind, (at,))
                    at += SCALARS[f.node.type][1]
                    continue
                if not isinstance(f.node, Padding):
                    yield from leaves_of(f.node, Place((*place.path, f.name), at, place.axes), sizes)
                at += measure(f.node, sizes).size or 0
        case _:
            raise DefinitionError(f"{'.'.join(place.path)} has no fixed size")


_STEP = lazy_pattern(r"([^.\[\]]+)|\[(\d+)\]")


def parse_path(path: str) -> tuple[str | int, ...]:
    """Return the steps of a path: ``("esc", 0, "esc_rpm")`` for ``esc[0].esc_rpm``.

    Raises ValueError for anything except names, dots and indices.
    """
    if path.isidentifier():
        return (path,)
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


class _Unknown(Exception):
    """No step of a path is there; the argument: names that are nearest, if they are not those of all fields."""


def steps_of(record: Struct, path: str) -> tuple[str | int, ...]:
    """Return the steps of *path* below *record*; raise NotFoundError (a KeyError) with the nearest paths."""
    try:
        return _steps(record, path)
    except _Unknown as unknown:
        names = unknown.args[0] if unknown.args else paths(record)
    raise NotFoundError("field", path, names)


def has_path(record: Struct, path: str) -> bool:
    """Return whether *path* leads to a field below *record*, without looking for the nearest ones, which takes 1 ms."""
    try:
        _steps(record, path)
    except _Unknown:
        return False
    return True


def _steps(record: Struct, path: str) -> tuple[str | int, ...]:
    try:
        steps = parse_path(path)
    except ValueError:
        raise _Unknown from None
    node: Node = record
    for i, step in enumerate(steps):
        if isinstance(step, str):
            inner = _member(_innermost(node), step)
            if inner is None:
                raise _Unknown
            node = inner
        elif isinstance(node, FixedArray | Sequence):
            if isinstance(node, FixedArray) and step >= node.count:
                raise _Unknown([path_text((*steps[:i], k)) for k in range(min(node.count, MAX_NAMED))])
            node = node.item
        else:
            raise _Unknown
    return steps


def _member(node: Node, name: str) -> Node | None:
    if not isinstance(node, Struct):
        return None
    return next((f.node for f in node.visible() if f.name == name), None)


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
