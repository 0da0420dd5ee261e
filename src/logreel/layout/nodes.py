"""The nodes of a Layout: a small tree of immutable parts that describes little-endian bytes in their order.

Schemas may share parts, so a tree can be exponentially larger than its distinct nodes: never hash, compare or
walk one before ``measure`` (or the constructor of Layout) has accepted its size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

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


def measure(node: Node, memo: dict[int, Measure] | None = None, level: int = 0) -> Measure:
    """Return the Measure of *node*.

    Takes time by distinct nodes, not by the size of the tree, which shared parts can make exponentially larger.
    Raises DefinitionError for nodes that cannot be decoded, or are too large or too deep to walk.
    """
    memo = {} if memo is None else memo
    # The key is the identity: hashing a frozen dataclass walks the whole tree below it.
    found = memo.get(id(node))
    if level + (found.height if found else 1) > MAX_DEPTH:
        raise DefinitionError(f"types are nested more than {MAX_DEPTH} deep")
    if found is None:
        found = memo[id(node)] = _measure(node, memo, level + 1)
        if not 0 <= found.least <= MAX_SIZE:
            raise DefinitionError(f"{type(node).__name__} of {found.least} bytes")
    return found


def _measure(node: Node, memo: dict[int, Measure], level: int) -> Measure:
    match node:
        case Scalar(type=t):
            return Measure(SCALARS[t][1], SCALARS[t][1])
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
            one = measure(inner, memo, level)
            return one._replace(nodes=one.nodes + 1, height=one.height + 1)
        case Sequence(item=item, width=w, grid=grid):
            _check_step(grid)
            one = _measure_item(item, memo, level)
            return Measure(None, _checked_width(w), one.nodes + 1, one.runs, one.height + 1)
        case FixedArray(item=item, count=n):
            one = _measure_item(item, memo, level)
            size = None if one.size is None else one.size * n
            runs = 1 if isinstance(item, Scalar) else max(1, one.runs * n)
            # The size of a message does not limit the number of such items.
            nodes = one.nodes * (n if one.size == 0 else 1) + 1
            return Measure(size, one.least * n, nodes, runs, one.height + 1)
        case Struct(fields=fields):
            parts = [measure(f.node, memo, level) for f in fields]
            sizes = [part.size for part in parts if part.size is not None]
            return Measure(
                sum(sizes) if len(sizes) == len(parts) else None,
                sum(part.least for part in parts),
                1 + sum(part.nodes for part in parts),
                max(1, sum(part.runs for part in parts)),
                1 + max((part.height for part in parts), default=0),
                any(part.rest for part in parts),
            )


def _checked_width(width: int) -> int:
    if width not in (1, 2, 4):
        raise DefinitionError(f"a length of {width} bytes; expected 1, 2 or 4")
    return width


def _check_step(grid: Grid | None) -> None:
    if grid is not None and (grid.step not in (1, 2, 4, 8) or not 0 <= grid.origin < 1 << 16):
        raise DefinitionError(f"a grid of {grid.step} bytes from byte {grid.origin}; expected 1, 2, 4 or 8")


def _measure_item(item: Node, memo: dict[int, Measure], level: int) -> Measure:
    one = measure(item, memo, level)
    if one.rest or isinstance(item, HIDDEN):
        raise DefinitionError(f"an array of {type(item).__name__} items")
    # Items without bytes are limited by a number per message (kernels.layout.SPARE), all others by their bytes.
    if one.least == 0 and one.size != 0:
        raise DefinitionError("an array of items that may take no bytes")
    return one


def size_of(node: Node) -> int | None:
    """Return the size of *node* in bytes, or None if it depends on the data."""
    return measure(node).size
