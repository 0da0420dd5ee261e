"""Typed NumPy arrays from raw column bytes, and nested columns of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from collections.abc import Sequence as Seq
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.kernels import block_table
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_SIZE,
    SCALARS,
    Bytes,
    Field,
    FixedArray,
    Leaf,
    Node,
    Rest,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
    steps_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from logreel.layout.program import Program

Buffer = np.ndarray[tuple[Any, ...], np.dtype[np.uint8]]
#: Of columns, in the order of the tree of nodes: a number or char array has its bytes, a counted sequence its offsets
#: and then the buffers of its items, text and opaque bytes their offsets and then bytes.
Buffers = Iterator[np.ndarray[Any, Any]]


#: Types whose bytes are the values.
_VIEWS = {name: np.dtype(code) for name, (code, *_) in SCALARS.items() if name not in ("bool", "char")}


def numpy_column(leaf: Leaf, buffer: Buffer, rows: int) -> NDArray[Any]:
    """Return the values of one leaf with shape ``(rows, *leaf.shape)``.

    buffer  uint8[rows * len(leaf.runs) * leaf.width], as the gather kernel fills it; the result is a view of
            it where the bytes are the values already

    Times and durations are int64 ns; a char array is ``S`` bytes, cut at its first NUL, without the last
    axis of the shape. Raises ValueError if *buffer* has another size.
    """
    if len(buffer) != rows * len(leaf.runs) * leaf.width:
        raise ValueError(f"{'.'.join(leaf.path)}: {len(buffer)} bytes do not hold {rows} rows")
    if leaf.type == "char":
        return padded_text(buffer, prod((rows, *leaf.shape[:-1])), leaf.shape[-1]).reshape(
            (rows, *leaf.shape[:-1])
        )
    return typed(leaf.type, buffer).reshape((rows, *leaf.shape))


def numpy_arrays(leaves: Iterable[Leaf], columns: Iterable[Buffer], rows: int) -> list[NDArray[Any]]:
    """Return the values of leaves as ``numpy_column`` does; each of *columns* has exactly the bytes of *rows* rows."""
    arrays: list[NDArray[Any]] = []
    for leaf, column in zip(leaves, columns, strict=True):
        if (dtype := _VIEWS.get(leaf.type)) is None:
            arrays.append(numpy_column(leaf, column, rows))
        else:
            values = column.view(dtype)
            arrays.append(values.reshape((rows, *leaf.shape)) if leaf.shape else values)
    return arrays


def typed(kind: str, buffer: Buffer) -> NDArray[Any]:
    """Return a flat array of the values of scalars of one type (or ``time``, ``duration``) from their bytes."""
    if kind in ("time", "duration"):
        words = buffer.view("<u4" if kind == "time" else "<i4").reshape(-1, 2)
        # In place: one temporary array less for columns of millions of rows.
        ns: NDArray[np.int64] = words[:, 0].astype(np.int64)
        ns *= 1_000_000_000
        ns += words[:, 1]
        return ns
    values: NDArray[Any] = buffer != 0 if kind == "bool" else buffer.view(SCALARS[kind][0])
    return values


def text_lengths(chars: Buffer) -> NDArray[np.int64]:
    """Return the number of characters before the first NUL of each row of a uint8[n, width] array."""
    lengths = np.empty(len(chars), np.int64)
    block_table.text_lengths(np.ascontiguousarray(chars), lengths)
    return lengths


def padded_text(buffer: Buffer, count: int, width: int) -> NDArray[np.bytes_]:
    """Return *count* NUL-padded texts of *width* bytes as an ``S`` array; bytes after a NUL are dropped."""
    if width == 0:
        return np.zeros(count, "S1")
    chars = buffer.reshape(count, width)
    keep = np.arange(width) < text_lengths(chars)[:, None]
    return np.where(keep, chars, np.uint8(0)).view(f"S{width}").reshape(count)


#: Types of a Column besides those of scalars.
TEXT, BYTES, LIST, ARRAY, STRUCT = "text", "bytes", "list", "array", "struct"
#: Types of a Column of times: since the epoch, and of spans.
TIME, DURATION = "time", "duration"
#: U+FFFD in UTF-8.
REPLACED = "\ufffd".encode()
#: Arrays of more structs than this are not columns of their own.
MAX_STRUCTS = 64
_NO_ROW = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one field in NumPy arrays that have the form of Arrow's, so that a table takes them without a copy.

    type      ``bool`` … ``float64``, ``time`` or ``duration`` for scalars; ``text``, ``bytes``, ``list`` (of any
              length), ``array`` (of one length) or ``struct``
    length    number of values
    data      values of scalars, times as int64 ns; uint8 of all text or bytes
    offsets   int32[length + 1]: where each text, bytes or list begins, and the end
    children  the items of all lists or arrays, or one Column for each member of a struct
    size      items of each array
    names     of the members of a struct, and their *units*
    valid     bool[length], False where there is no value; None: there are all
    """

    type: str
    length: int
    data: NDArray[Any] | None = None
    offsets: NDArray[Any] | None = None
    children: tuple[Column, ...] = ()
    size: int = 0
    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    valid: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return self.length

    @property
    def item(self) -> Column:
        """The items of all lists or arrays."""
        return self.children[0]

    @property
    def values(self) -> NDArray[Any]:
        """The values of scalars, and the bytes of text."""
        return cast("NDArray[Any]", self.data)

    @property
    def ends(self) -> NDArray[Any]:
        """The offsets of text, bytes and lists."""
        return cast("NDArray[Any]", self.offsets)

    @property
    def is_time(self) -> bool:
        """Whether the values are times or spans of time."""
        return self.type in (TIME, DURATION)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        own = [part.nbytes for part in (self.data, self.offsets, self.valid) if part is not None]
        return sum(own) + sum(child.nbytes for child in self.children)

    def is_like(self, other: Column) -> bool:
        """Return whether the values have the type of those of *other*, with the same members."""
        return (self.type, self.size, self.names) == (other.type, other.size, other.names) and all(
            map(Column.is_like, self.children, other.children)
        )

    def select(self, steps: Seq[str | int]) -> Column:
        """Return the part at *steps*; a name goes through lists, an index takes one item of each.

        An item beyond the end of a shorter list is missing. Raises UsageError for an index into text or bytes.
        """
        if not steps:
            return self
        step, rest = steps[0], steps[1:]
        if isinstance(step, int):
            return self._item_at(step).select(rest)
        if self.type == STRUCT:
            return self.member(step).select(rest)
        return replace(self, children=(self.item.select(steps),))

    def member(self, name: str) -> Column:
        """Return a member of a struct; where there is no struct, it has no value."""
        child = self.children[self.names.index(name)]
        return child if self.valid is None else child.masked(self.valid)

    def masked(self, valid: NDArray[np.bool_]) -> Column:
        """Return the same without the values where *valid* is False."""
        return replace(self, valid=valid if self.valid is None else valid & self.valid)

    def _item_at(self, index: int) -> Column:
        if self.type == ARRAY:
            item = self.item.take(np.arange(self.length, dtype=np.int64) * self.size + index)
            return item if self.valid is None else item.masked(self.valid)
        if self.type != LIST:
            raise UsageError(f"there are no items to take by index in {self.type}")
        at = self.ends[:-1].astype(np.int64) + index
        beyond = at >= self.ends[1:]
        return self.item.take(at, beyond if self.valid is None else beyond | ~self.valid)

    def take(self, rows: I64, absent: NDArray[np.bool_] | None = None) -> Column:
        """Return the values at *rows*; none where *absent* is True."""
        if absent is not None:
            rows = np.where(absent, 0, rows)
            if not self.length and len(rows):
                return self.nothing(len(rows))
        valid = None if self.valid is None else self.valid[rows]
        if absent is not None and absent.any():
            valid = ~absent if valid is None else valid & ~absent
        n = len(rows)
        if self.type == STRUCT:
            return replace(
                self, length=n, children=tuple(child.take(rows) for child in self.children), valid=valid
            )
        if self.type == ARRAY:
            at = (rows[:, None] * self.size + np.arange(self.size)).reshape(-1)
            return replace(self, length=n, children=(self.item.take(at),), valid=valid)
        if self.offsets is None:
            return replace(self, length=n, data=self.values[rows], valid=valid)
        first = self.ends[rows].astype(np.int64)
        lengths = self.ends[rows + 1] - first if len(rows) else _NO_ROW
        if absent is not None:
            lengths = np.where(absent, 0, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        if offsets[-1] > MAX_SIZE:
            raise UsageError("more than 2 GiB of items in one array: read fewer rows at a time")
        at = np.repeat(first - offsets[:-1], lengths) + np.arange(offsets[-1])
        offsets = offsets.astype(np.int32)
        if self.type == LIST:
            return replace(self, length=n, offsets=offsets, children=(self.item.take(at),), valid=valid)
        return replace(self, length=n, offsets=offsets, data=self.values[at], valid=valid)

    def slice(self, first: int, last: int) -> Column:
        """Return the values from *first* up to *last*, without a copy."""
        valid = None if self.valid is None else self.valid[first:last]
        if self.type == STRUCT:
            children = tuple(child.slice(first, last) for child in self.children)
            return replace(self, length=last - first, children=children, valid=valid)
        if self.type == ARRAY:
            items = self.item.slice(first * self.size, last * self.size)
            return replace(self, length=last - first, children=(items,), valid=valid)
        if self.offsets is not None:
            return replace(self, length=last - first, offsets=self.offsets[first : last + 1], valid=valid)
        return replace(self, length=last - first, data=self.values[first:last], valid=valid)

    def at(self, row: int) -> Any:
        """Return one value: a number, str, dict or None; uint8[n] of bytes, the Column of the items of a list."""
        if self.type in (LIST, BYTES):
            first, last = self.ends[row : row + 2].tolist()
            return self.item.slice(first, last) if self.type == LIST else self.values[first:last]
        if self.type == ARRAY:
            return self.item.slice(row * self.size, (row + 1) * self.size)
        return self.slice(row, row + 1).to_pylist()[0]

    def nothing(self, n: int) -> Column:
        """Return a Column of the same type without any of its *n* values."""
        valid, offsets = np.zeros(n, bool), np.zeros(n + 1, np.int32)
        if self.type == STRUCT:
            return replace(self, length=n, children=tuple(c.nothing(n) for c in self.children), valid=valid)
        if self.type == ARRAY:
            return replace(self, length=n, children=(self.item.nothing(n * self.size),), valid=valid)
        if self.type == LIST:
            return replace(self, length=n, offsets=offsets, children=(self.item.nothing(0),), valid=valid)
        if self.offsets is not None:
            return replace(self, length=n, offsets=offsets, data=self.values[:0], valid=valid)
        return replace(self, length=n, data=np.zeros(n, self.values.dtype), valid=valid)

    def numpy(self) -> NDArray[Any]:
        """Return the values as users see them: numbers, times as int64 ns, bool; arrays of one length as more axes.

        Missing numbers are NaN in floats and masked in other types. Text, bytes, lists and structs are objects: str,
        bytes, arrays and dicts, None where there is no value.
        """
        shape: list[int] = []
        column = self
        while column.type == ARRAY:
            shape.append(column.size)
            item = column.item
            column = item if column.valid is None else item.masked(np.repeat(column.valid, column.size))
        values = column.flat_numpy()
        return values.reshape(-1, *shape) if shape else values

    def flat_numpy(self) -> NDArray[Any]:
        """Return the same of a Column without arrays of one length."""
        if self.data is None or self.offsets is not None:
            return self._objects()
        absent = None if self.valid is None or self.valid.all() else ~self.valid
        if absent is None:
            return self.data
        if self.data.dtype.kind == "f":
            return np.where(absent, self.data.dtype.type(np.nan), self.data)
        return np.ma.MaskedArray(np.where(absent, self.data.dtype.type(0), self.data), mask=absent)

    def list_items(self) -> NDArray[Any]:
        """Return the values as they are in an array of a list: missing integers make floats, times are dates."""
        if self.data is None or self.offsets is not None:
            return self._objects()
        values = self.data
        absent = None if self.valid is None or self.valid.all() else ~self.valid
        if self.is_time:
            values = values if absent is None else np.where(absent, np.iinfo(np.int64).min, values)
            return values.view("M8[ns]" if self.type == TIME else "m8[ns]")
        if absent is None:
            return values
        if values.dtype == bool:
            flags = values.astype(object)
            flags[absent] = None
            return flags
        numbers: NDArray[Any] = values if values.dtype.kind == "f" else values.astype(np.float64)
        return np.where(absent, numbers.dtype.type(np.nan), numbers)

    def _objects(self) -> NDArray[Any]:
        out = np.empty(self.length, object)
        out[:] = None
        for i, value in enumerate(self.plain(arrays=True)):
            out[i] = value
        return out

    @property
    def has_structs(self) -> bool:
        """Whether arrays of at most MAX_STRUCTS items hold structs with members; these are columns of their own."""
        if self.type == ARRAY and self.size <= MAX_STRUCTS:
            return self.item.has_structs or (self.item.type == STRUCT and bool(self.item.names))
        return False

    def settled(self, any_text: bool = False) -> Column:
        """Return the same with zeros, empty text and empty lists in place of what is missing, and only valid UTF-8.

        Text that is not UTF-8 has U+FFFD in place of what is not, unless *any_text* is to stay. Offsets begin at 0.
        """
        column = self
        if self.valid is not None:
            column = replace(self.take(np.arange(self.length), ~self.valid), valid=None)
            if column.offsets is None and column.data is not None:
                kept = np.where(self.valid, column.data, column.data.dtype.type(0))
                return replace(column, data=kept)
        elif self.offsets is not None and self.ends[0]:
            column = self.take(np.arange(self.length))
        if column.type == STRUCT:
            valid = self.valid
            children = [c if valid is None else c.masked(valid) for c in column.children]
            return replace(column, children=tuple(child.settled(any_text) for child in children))
        if column.children:
            items = column.all_items()
            if column.type == ARRAY and self.valid is not None:
                items = items.masked(np.repeat(self.valid, column.size))
            return replace(column, children=(items.settled(any_text),))
        return column if any_text or column.type != TEXT or column.is_utf8() else column.replaced()

    def is_utf8(self) -> bool:
        """Return whether all text is UTF-8."""
        text = self.values[: int(self.ends[-1])]
        characters = text.tobytes()
        if characters.isascii():
            return True
        # A character that is cut in two by the end of a text is none.
        begins = self.ends[:-1]
        if ((text[begins[begins < len(text)]] & 0xC0) == 0x80).any():
            return False
        try:
            characters.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    def replaced(self) -> Column:
        """Return text with U+FFFD in place of what is not UTF-8."""
        offsets, data = replaced_text(self.ends, self.values)
        return replace(self, data=data, offsets=offsets)

    def has_replaced_text(self) -> bool:
        """Return whether text of a settled Column has U+FFFD, which ``settled`` puts in place of what is not UTF-8."""
        if self.type == TEXT:
            return REPLACED in self.values[: int(self.ends[-1])].tobytes()
        return any(child.has_replaced_text() for child in self.children)

    def present(self) -> Column:
        """Return the values that are there."""
        return self if self.valid is None else replace(self.take(np.flatnonzero(self.valid)), valid=None)

    def all_items(self) -> Column:
        """Return the items of all lists or arrays, one after another."""
        if self.offsets is None or (self.ends[0] == 0 and self.ends[-1] == self.item.length):
            return self.item
        return self.item.slice(int(self.ends[0]), int(self.ends[-1]))

    def numbers(self) -> NDArray[np.float64] | None:
        """Return the values of numbers, flags and times (in s) as float64, NaN where there is none; None for others."""
        if self.data is None or self.offsets is not None:
            return None
        # Values of damaged messages may be signalling NaN.
        with np.errstate(invalid="ignore"):
            values: NDArray[np.float64] = self.data.astype(np.float64, copy=self.valid is not None)
        if self.valid is not None:
            values[~self.valid] = np.nan
        return values / 1e9 if self.is_time else values

    def to_pylist(self) -> list[Any]:
        """Return plain Python values: numbers, str, bytes, lists and dicts, times as int; None where there is none."""
        return self.plain(arrays=False)

    def plain(self, arrays: bool) -> list[Any]:
        """Return the same; *arrays*: lists as NumPy arrays, as they are in an array of objects."""
        values: list[Any]
        if self.type == STRUCT:
            names = self.names
            members = [child.plain(arrays) for child in self.children]
            rows = zip(*members, strict=True) if members else iter([()] * self.length)
            values = [dict(zip(names, row, strict=True)) for row in rows]
        elif self.type in (LIST, ARRAY):
            items = self.item.list_items() if arrays else self.item.plain(False)
            ends = np.arange(self.length + 1) * self.size if self.type == ARRAY else self.ends
            values = [items[a:b] for a, b in itertools.pairwise(ends.tolist())]
        elif self.type in (TEXT, BYTES):
            values = _texts(self.ends, self.values, self.type == TEXT)
        else:
            values = self.values.tolist()
        if self.valid is None or self.valid.all():
            return values
        return [
            value if is_valid else None for value, is_valid in zip(values, self.valid.tolist(), strict=True)
        ]

    def flat(self) -> tuple[NDArray[Any], I64]:
        """Return the innermost items of lists (of lists …), and int64[k]: the row of each; times are datetime64.

        Missing numbers are NaN, also those of integers, missing times NaT.
        """
        column, rows = self, np.arange(self.length, dtype=np.int64)
        while column.type in (LIST, ARRAY):
            if column.type == ARRAY:
                rows = np.repeat(rows, column.size)
                column = column.item
                continue
            ends = column.ends
            rows = np.repeat(rows, np.diff(ends))
            at, column = slice(int(ends[0]), int(ends[-1])), column.item
            if at != slice(0, column.length):
                column = column.take(np.arange(at.start, at.stop, dtype=np.int64))
        return column.items(), rows

    def items(self) -> NDArray[Any]:
        """Return the values of a Column without lists: as in an array of a list, but spans of time as int64 ns."""
        values = self.list_items()
        return values.view(np.int64) if self.type == DURATION and self.valid is None else values


def _texts(offsets: NDArray[Any], data: Buffer, is_text: bool) -> list[Any]:
    cuts = (offsets - offsets[0]).tolist()
    content = data[int(offsets[0]) : int(offsets[-1])].tobytes()
    if not is_text:
        return [content[a:b] for a, b in itertools.pairwise(cuts)]
    if content.isascii():
        text = content.decode("ascii")
        return [text[a:b] for a, b in itertools.pairwise(cuts)]
    return [content[a:b].decode("utf-8", "replace") for a, b in itertools.pairwise(cuts)]


def cut_text(chars: Buffer) -> tuple[NDArray[np.int32], Buffer]:
    """Return offsets and bytes of NUL-padded rows, each cut at its first NUL."""
    lengths = text_lengths(chars)
    offsets = _offsets_of(lengths)
    text = np.empty(int(offsets[-1]), np.uint8)
    block_table.join_rows(np.ascontiguousarray(chars), lengths, text)
    return offsets, text


def replaced_text(offsets: NDArray[Any], data: Buffer) -> tuple[NDArray[np.int32], Buffer]:
    """Return offsets and bytes of text with U+FFFD in place of what is not UTF-8."""
    first, end = int(offsets[0]), int(offsets[-1])
    lengths = np.diff(offsets).astype(np.int64)
    # Only texts with bytes beyond ASCII are decoded.
    filled = np.flatnonzero(lengths)
    high = np.bitwise_or.reduceat(data[:end], offsets[filled]) if len(filled) else data[:0]
    rows, content = filled[high >= 0x80], data.tobytes()
    parts, done = list[bytes](), first
    for row, start, stop in zip(
        rows.tolist(), offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True
    ):
        text = content[start:stop].decode("utf-8", "replace").encode()
        parts += content[done:start], text
        lengths[row], done = len(text), stop
    parts.append(content[done:end])
    return _offsets_of(lengths), np.frombuffer(b"".join(parts), np.uint8)


def _offsets_of(lengths: I64) -> NDArray[np.int32]:
    """Return int32[n + 1] offsets of texts of these lengths; raises UsageError for more than 2 GiB."""
    ends = np.cumsum(lengths)
    if len(ends) and ends[-1] > MAX_SIZE:
        raise UsageError("more than 2 GiB of text in one array: read fewer rows at a time")
    return np.concatenate([[0], ends]).astype(np.int32)


#: Names of types for people, where they differ: those of Arrow, except for numbers.
TYPE_NAMES = {
    "char": "int8", TIME: "timestamp[ns]", DURATION: "duration[ns]", TEXT: "string", BYTES: "binary",
}  # fmt: skip
_ARROW_NAMES = {**TYPE_NAMES, "float32": "float", "float64": "double"}


def type_name(column: Column) -> str:
    """Return the type of the values of *column* as Arrow writes it."""
    if column.type == STRUCT:
        members = zip(column.names, map(type_name, column.children), strict=True)
        return f"struct<{', '.join(f'{name}: {text}' for name, text in members)}>"
    if column.type in (LIST, ARRAY):
        item = f"list<item: {type_name(column.item)}>"
        return item if column.type == LIST else f"fixed_size_{item}[{column.size}]"
    return _ARROW_NAMES.get(column.type, column.type)


def type_of(node: Node) -> str:
    """Return the type of a Column of *node*."""
    match node:
        case Scalar(type=name):
            return name
        case Time(signed=signed):
            return DURATION if signed else TIME
        case FixedArray(item=Scalar(type="char")) | String() | Rest(text=True):
            return TEXT
        case Sequence(item=Scalar(type="char" | "uint8")) | Bytes() | Rest():
            return BYTES
        case FixedArray():
            return ARRAY
        case Sequence():
            return LIST
        case Struct():
            return STRUCT
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def build(node: Node, buffers: Buffers, length: int) -> Column:
    """Return the next *length* values of *node* from column buffers, without a copy."""
    name = type_of(node)
    match node:
        case Struct():
            return struct([(f, build(f.node, buffers, length)) for f in node.visible()], length)
        case FixedArray(item=item, count=count) if name == ARRAY:
            return Column(name, length, children=(build(item, buffers, length * count),), size=count)
        case FixedArray(count=count):
            offsets, data = cut_text(next(buffers).reshape(length, count))
            return Column(name, length, data, offsets)
        case Sequence(item=item) if name == LIST:
            offsets = next(buffers)
            return Column(name, length, offsets=offsets, children=(build(item, buffers, int(offsets[-1])),))
        case Scalar() | Time():
            return scalars(name, next(buffers))
        case _:
            offsets = next(buffers)
            return Column(name, length, next(buffers), offsets)


def scalars(name: str, buffer: Buffer) -> Column:
    """Return numbers, flags or times from their bytes."""
    values = typed(name, buffer)
    return Column(name, len(values), values)


def struct(members: Seq[tuple[Field, Column]], length: int) -> Column:
    """Return structs of *length* values from their members."""
    names, units = tuple(f.name for f, _ in members), tuple(f.unit for f, _ in members)
    return Column(STRUCT, length, children=tuple(column for _, column in members), names=names, units=units)


def list_column(offsets: NDArray[Any], items: Column) -> Column:
    """Return lists of *items*, cut at *offsets*."""
    return Column(LIST, len(offsets) - 1, offsets=offsets, children=(items,))


def concatenated(columns: Seq[Column]) -> Column:
    """Return the values of columns of one type, one after another."""
    if len(columns) == 1:
        return columns[0]
    first = columns[0]
    n = sum(map(len, columns))
    valid = None
    if any(column.valid is not None for column in columns):
        valid = np.concatenate([np.ones(len(c), bool) if c.valid is None else c.valid for c in columns])
    if first.offsets is None:
        data = None if first.data is None else np.concatenate([column.values for column in columns])
        children = tuple(
            concatenated(members) for members in zip(*(c.children for c in columns), strict=True)
        )
        return replace(first, length=n, data=data, children=children, valid=valid)
    columns = [column if not column.ends[0] else column.take(np.arange(len(column))) for column in columns]
    before = np.cumsum([0, *(int(column.ends[-1]) for column in columns)])
    if before[-1] > MAX_SIZE:
        raise UsageError("more than 2 GiB of items in one array: read fewer rows at a time")
    offsets = [column.ends[1:] + shift for column, shift in zip(columns, before.tolist(), strict=False)]
    ends = np.concatenate([[0], *offsets]).astype(np.int32)
    if first.type == LIST:
        return replace(
            first, length=n, offsets=ends, children=(concatenated([c.item for c in columns]),), valid=valid
        )
    return replace(
        first, length=n, offsets=ends, data=np.concatenate([c.values for c in columns]), valid=valid
    )


def from_values(node: Node, values: Seq[Any]) -> Column:
    """Return plain Python values, as ``msg.decode()`` returns them, as a Column of *node*; None is no value."""
    name, n = type_of(node), len(values)
    present = np.array([value is not None for value in values], bool)
    valid = None if present.all() else present
    match node:
        case Struct():
            members = [
                (f, from_values(f.node, [None if v is None else v.get(f.name) for v in values]))
                for f in node.visible()
            ]
            return replace(struct(members, n), valid=valid)
        case FixedArray(item=item, count=count) if name == ARRAY:
            flat = [x for v in values for x in ([None] * count if v is None else v)]
            if len(flat) != n * count:
                raise ValueError(f"arrays have {count} items")
            return Column(name, n, children=(from_values(item, flat),), size=count, valid=valid)
        case Scalar() | Time():
            dtype = np.dtype(np.int64 if isinstance(node, Time) else SCALARS[name][0])
            filled = values if valid is None else [0 if v is None else v for v in values]
            return Column(name, n, np.array(filled, dtype), valid=valid)
    items: list[Any] = [b"" if v is None else v.encode() if isinstance(v, str) else v for v in values]
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in items], dtype=np.int64)])
    if offsets[-1] > MAX_SIZE:
        raise UsageError("more than 2 GiB of items in one array: read fewer rows at a time")
    offsets = offsets.astype(np.int32)
    if isinstance(node, Sequence) and name == LIST:
        children = (from_values(node.item, list(itertools.chain.from_iterable(items))),)
        return Column(name, n, offsets=offsets, children=children, valid=valid)
    return Column(name, n, np.frombuffer(b"".join(items), np.uint8), offsets, valid=valid)


@dataclass(frozen=True, slots=True)
class PlainValues:
    """Values of *node* as plain Python values, None for no value; what is asked for decides what they become."""

    node: Node
    values: Seq[Any]


def unit_at(record: Struct, steps: Seq[str | int]) -> str:
    """Return the unit of the last member that *steps* below *record* name."""
    node: Node = record
    unit = ""
    for name in steps:
        while isinstance(node, FixedArray | Sequence):
            node = node.item
        if isinstance(name, str) and isinstance(node, Struct):
            member = next(f for f in node.visible() if f.name == name)
            node, unit = member.node, member.unit
    return unit


def column_from(array: Any) -> Column:
    """Return an Arrow array, or a ChunkedArray, as a Column; raises UsageError for types that messages do not have."""
    import pyarrow as pa

    from logreel.layout.arrow_arrays import values_of

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    arrow_type, n = array.type, len(array)
    valid = None if not array.null_count else _flags(array.is_valid())
    if pa.types.is_struct(arrow_type):
        members = tuple(column_from(array.field(i)) for i in range(arrow_type.num_fields))
        names = tuple(field.name for field in arrow_type)
        units = tuple((field.metadata or {}).get(b"unit", b"").decode() for field in arrow_type)
        return Column(STRUCT, n, children=members, names=names, units=units, valid=valid)
    if pa.types.is_fixed_size_list(arrow_type):
        items = array.values.slice(array.offset * arrow_type.list_size, n * arrow_type.list_size)
        return Column(ARRAY, n, children=(column_from(items),), size=arrow_type.list_size, valid=valid)
    if pa.types.is_list(arrow_type):
        return Column(
            LIST, n, offsets=np.asarray(array.offsets), children=(column_from(array.values),), valid=valid
        )
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        _, offsets, data = array.buffers()
        cuts = values_of(offsets, np.int32, n + 1, array.offset * 4) if n else np.zeros(1, np.int32)
        return Column(
            TEXT if pa.types.is_string(arrow_type) else BYTES, n, values_of(data, np.uint8), cuts, valid=valid
        )
    if pa.types.is_boolean(arrow_type):
        return Column("bool", n, _flags(array), valid=valid)
    if pa.types.is_temporal(arrow_type):
        times = array.cast(
            pa.timestamp("ns") if pa.types.is_timestamp(arrow_type) else pa.duration("ns"), safe=False
        )
        numbers = values_of(times.buffers()[1], np.int64, n, times.offset * 8)
        return Column(TIME if pa.types.is_timestamp(arrow_type) else DURATION, n, numbers, valid=valid)
    name = {"float": "float32", "double": "float64"}.get(str(arrow_type), str(arrow_type))
    if name not in SCALARS:
        raise UsageError(f"columns of messages have no values of type {arrow_type}")
    dtype = np.dtype(arrow_type.to_pandas_dtype())
    numbers = values_of(array.buffers()[1], dtype, n, array.offset * dtype.itemsize)
    return Column(name, n, numbers, valid=valid)


def _flags(array: Any) -> NDArray[np.bool_]:
    from logreel.layout.arrow_arrays import values_of

    numbers = (array.fill_null(False) if array.null_count else array).cast("uint8")
    return values_of(numbers.buffers()[1], np.uint8, len(array), numbers.offset).view(np.bool_)


def column_of(node: Node, values: Any) -> Column:
    """Return a Column, PlainValues, or an Arrow array (of a PayloadDecoder that makes them) of *node* as a Column."""
    if isinstance(values, Column):
        return values
    if isinstance(values, PlainValues):
        return from_values(node, values.values)
    return column_from(values)


class FieldsOfLayout:
    """Fields of a Layout that are read, whatever they become.

    layout  the whole Layout
    fields  field paths in the order of the columns; None: every visible top-level member
    part    *layout* with only these fields visible: what kernels and PayloadDecoders read

    Raises NotFoundError (a KeyError) for an unknown path.
    """

    def __init__(self, layout: Layout, fields: Iterable[str] | None = None) -> None:
        self.layout = layout
        self.fields = None if fields is None else tuple(fields)
        self.part = layout if self.fields is None else layout.project(self.fields)

    @property
    def program(self) -> Program:
        """The Program that walks one message and copies these fields."""
        return self.part.program

    @cached_property
    def _steps(self) -> list[tuple[str | int, ...]]:
        return [steps_of(self.part.record, path) for path in self.fields or ()]


class NumpyFields(FieldsOfLayout):
    """The fields of a Layout that are read, and the Columns that they become; see ``SelectedFields``."""

    @property
    def names(self) -> Seq[str]:
        """The names of the columns."""
        return [f.name for f in self.part.record.visible()] if self.fields is None else self.fields

    @property
    def units(self) -> list[str]:
        """The units of the columns, as the Layout states them."""
        if self.fields is None:
            return [f.unit for f in self.part.record.visible()]
        return [unit_at(self.part.record, steps) for steps in self._steps]

    def build(self, buffers: Buffers, rows: int) -> list[Column]:
        """See SelectedFields."""
        return [build(f.node, buffers, rows) for f in self.part.record.visible()]

    def select(self, columns: Seq[Any]) -> list[Column]:
        """See SelectedFields."""
        members = list(self.part.record.visible())
        top = [column_of(f.node, column) for f, column in zip(members, columns, strict=True)]
        if self.fields is None:
            return top
        by_name = dict(zip((f.name for f in members), top, strict=True))
        return [by_name[str(first)].select(rest) for first, *rest in self._steps]

    def lists(self, offsets: NDArray[Any], column: Column) -> Column:
        """See SelectedFields."""
        return list_column(offsets, column)

    def take(self, column: Column, rows: I64, absent: NDArray[np.bool_]) -> Column:
        """See SelectedFields."""
        return column.take(rows, absent)

    def joined(self, parts: Seq[Column]) -> Column:
        """See SelectedFields."""
        return concatenated(parts)

    def empty(self) -> list[Column]:
        """Return the columns without rows."""
        return self.select([from_values(f.node, []) for f in self.part.record.visible()])
