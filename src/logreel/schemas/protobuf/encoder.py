"""Encoding of protobuf messages: single fields, and tables as many messages of the type of their Layout.

Fields are encoded in plain Python, for the few messages that formats themselves consist of. Columns are encoded many
at once; see kernels/protobuf.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.kernels import protobuf as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import Column, column_of
from logreel.schemas.protobuf.types import ProtoField, ProtoMessage

_MASK = (1 << 64) - 1


def varint(value: int) -> bytes:
    """Return a varint; negative numbers as 64 bits."""
    value &= _MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Return a varint field; empty for 0."""
    return varint(field << 3) + varint(value) if value else b""


def part(field: int, value: bytes | str) -> bytes:
    """Return a length-delimited field of bytes, text or a message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def text(field: int, value: str) -> bytes:
    """Return a text field; empty for an empty text."""
    return part(field, value) if value else b""


def packed(field: int, values: Iterable[int]) -> bytes:
    """Return a field of packed varints; empty without values."""
    run = b"".join(map(varint, values))
    return part(field, run) if run else b""


def mapping(field: int, values: Mapping[str, str | int]) -> bytes:
    """Return a field for each entry of a map, in the given order."""
    entries = (
        part(1, key) + (varint(16) + varint(value) if isinstance(value, int) else part(2, value))
        for key, value in values.items()
    )
    return b"".join(part(field, entry) for entry in entries)


VARINT, FIXED, SPAN, PACKED = (
    kernel.COLUMN_VARINT,
    kernel.COLUMN_FIXED,
    kernel.COLUMN_SPAN,
    kernel.COLUMN_PACKED,
)
MESSAGE, MESSAGES, SPANS, TIME = (
    kernel.COLUMN_MESSAGE,
    kernel.COLUMN_MESSAGES,
    kernel.COLUMN_SPANS,
    kernel.COLUMN_TIME,
)
#: dtypes of kinds of a fixed width.
_FIXED = {"double": "<f8", "float": "<f4", "fixed32": "<u4"}
#: Bytes of the longest varint.
_LONGEST = 10


@dataclass(frozen=True, slots=True)
class Many:
    """Column with any number of items in each row: row i has items offsets[i] to offsets[i + 1].

    Of a message field that is not repeated, a row has one item or none.

    offsets  int64[n + 1]
    items    column of the items; for text uint8 of all bytes
    """

    offsets: I64
    items: Any


#: By name of the field: an array of numbers (of times in ns, int64), Many, or Values for a message.
Values = Mapping[str, Any]


def encode(message: ProtoMessage, values: Values, n: int) -> tuple[NDArray[np.uint8], I64]:
    """Return *n* messages one after another, and int64[n + 1] offsets of the messages and the end.

    values  columns by field name; unknown names are ignored; missing columns and zeros are not written

    Raises TypeError for an array that does not fit its field.
    """
    plan = _Plan()
    plan.fields(message, values, n)
    out = np.empty(plan.room, np.uint8)
    start = np.zeros(n + 1, np.int64)
    ops = np.array(plan.ops, np.int64).reshape(-1, 6)
    kernel.write_columns(ops, plan.columns, start, out)
    return out[int(start[0]) :], start - start[0]


def texts(values: list[str]) -> Many:
    """Return texts as a column."""
    raw = [value.encode("utf-8", "replace") for value in values]
    offsets = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(one) for one in raw], out=offsets[1:])
    return Many(offsets, np.frombuffer(b"".join(raw), np.uint8))


def same(text: str, n: int) -> Many:
    """Return a column with the same text *n* times."""
    raw = text.encode("utf-8", "replace")
    return Many(np.arange(n + 1, dtype=np.int64) * len(raw), np.frombuffer(raw * n, np.uint8))


@dataclass(slots=True)
class _Plan:
    """Ops and columns of messages, and the most bytes that they take."""

    ops: list[list[int]] = field(default_factory=list)
    columns: list[NDArray[Any]] = field(default_factory=list)
    room: int = 0

    def fields(self, message: ProtoMessage, values: Values, n: int) -> None:
        for f in message.fields:
            value = values.get(f.name)
            if value is not None:
                # A message that not every row has is written like a list of none or one.
                several = f.repeated or (isinstance(value, Many) and isinstance(f.kind, ProtoMessage))
                (self.many if several else self.one)(f, value, n)

    def column(self, array: NDArray[Any]) -> int:
        self.columns.append(np.ascontiguousarray(array))
        return len(self.columns) - 1

    def offsets(self, many: Many, n: int) -> int:
        if many.offsets.dtype != np.int64 or len(many.offsets) != n + 1:
            raise TypeError(f"{len(many.offsets)} offsets of {many.offsets.dtype} for {n} rows")
        return self.column(many.offsets)

    def op(self, code: int, wire: int, f: ProtoField, rows: int, size: int, **more: int) -> None:
        """Add an op that writes *rows* times a tag and at most *size* bytes, including a length."""
        tag = f.number << 3 | wire
        names = ("column", "more", "body", "other")
        self.ops.append([code, tag, *(more.get(name, 0) for name in names)])
        self.room += rows * (len(varint(tag)) + size)

    def one(self, f: ProtoField, value: Any, n: int) -> None:
        if isinstance(f.kind, ProtoMessage):
            before = len(self.ops)
            self.fields(f.kind, value, n)
            self.op(MESSAGE, 2, f, n, _LONGEST, body=len(self.ops) - before)
        elif f.kind in ("time", "duration"):
            self.moment(f.kind == "duration", value, n)
            self.op(MESSAGE, 2, f, n, _LONGEST, body=1)
        elif f.kind in ("string", "bytes"):
            self.span(f, value, n, 1)
        elif isinstance(f.kind, str) and f.kind in _FIXED:
            array = _rows(value, _FIXED[f.kind], n)
            wire = 1 if array.itemsize == 8 else 5
            self.op(FIXED, wire, f, n, array.itemsize, column=self.column(array), more=array.itemsize)
        else:
            array = _rows(value, None, n)
            self.op(VARINT, 0, f, n, _LONGEST, column=self.column(array), more=_width(f, array))

    def many(self, f: ProtoField, value: Many, n: int) -> None:
        count = int(value.offsets[-1])
        items = count - int(value.offsets[0])
        if isinstance(f.kind, ProtoMessage):
            before = len(self.ops)
            self.fields(f.kind, value.items, count)
            body = len(self.ops) - before
            self.op(MESSAGES, 2, f, items, _LONGEST, body=body, other=self.offsets(value, n))
        elif f.kind in ("time", "duration"):
            self.moment(f.kind == "duration", value.items, count)
            self.op(MESSAGES, 2, f, items, _LONGEST, body=1, other=self.offsets(value, n))
        elif f.kind in ("string", "bytes"):
            inner: Many = value.items
            more = {"other": self.offsets(value, n), "more": self.offsets(inner, count)}
            self.op(SPANS, 2, f, items, _LONGEST, column=self.column(inner.items), **more)
            self.room += int(inner.offsets[-1]) - int(inner.offsets[0])
        elif isinstance(f.kind, str) and f.kind in _FIXED:
            array = _rows(value.items, _FIXED[f.kind], count)
            self.span(f, Many(value.offsets, array), n, array.itemsize)
        else:
            array = _rows(value.items, None, count)
            more = {"more": _width(f, array), "other": self.offsets(value, n)}
            self.op(PACKED, 2, f, n, _LONGEST, column=self.column(array), **more)
            self.room += _LONGEST * items

    def span(self, f: ProtoField, value: Many, n: int, width: int) -> None:
        more = {"more": width, "other": self.offsets(value, n)}
        self.op(SPAN, 2, f, n, _LONGEST, column=self.column(value.items), **more)
        self.room += (int(value.offsets[-1]) - int(value.offsets[0])) * width

    def moment(self, one_sign: bool, value: Any, n: int) -> None:
        column = self.column(_rows(value, "<i8", n))
        self.ops.append([TIME, 0, column, int(one_sign), 0, 0])
        self.room += n * 2 * (1 + _LONGEST)


def _rows(value: Any, dtype: str | None, n: int) -> NDArray[Any]:
    array = np.asarray(value)
    array = array.astype(dtype or array.dtype.newbyteorder("<"), copy=False)
    # The array may be longer than its used part.
    if array.ndim != 1 or len(array) < n:
        raise TypeError(f"an array of shape {array.shape} for {n} rows")
    return array


def _width(f: ProtoField, array: NDArray[Any]) -> int:
    """Return the width of integers for the kernel, negative if they are signed."""
    if array.dtype.kind not in "iub":
        raise TypeError(f"{f.name} takes whole numbers, not {array.dtype}")
    named = f.kind if isinstance(f.kind, str) else "int32"
    signed = array.dtype.kind == "i" and not named.startswith("u")
    return -array.itemsize if signed else array.itemsize


_SCALARS = {
    "bool": "bool",
    "char": "int32",
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint32",
    "uint16": "uint32",
    "uint32": "uint32",
    "uint64": "uint64",
    "float32": "float",
    "float64": "double",
}
#: Fixed arrays of more uint8 become bytes, shorter ones numbers.
OPAQUE = 64
#: Field of a message with many records, and field of a row of an array of arrays.
RECORDS, ROW = "records", "values"


def descriptor_from_layout(layout: Layout, name: str) -> ProtoMessage:
    """Return a message type of this full name with a field for each visible field of *layout*."""
    if isinstance(layout.root, Counted):
        record = _message(layout.record, f"{name}.Record")
        return ProtoMessage(name, (ProtoField(RECORDS, 1, record, True),))
    return _message(layout.record, name)


def type_name(*parts: str) -> str:
    """Return the full name of these parts, made valid."""
    return ".".join(identifier(part) for part in parts)


def identifier(text: str) -> str:
    """Return *text* as a valid name of a field or a type."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if re.match("[A-Za-z_]", name) else f"_{name}"


def _message(struct: Struct, name: str) -> ProtoMessage:
    members = list(struct.visible())
    names = _names(f.name for f in members)
    used, fields = set(names), []
    for number, (label, f) in enumerate(zip(names, members, strict=True), 1):
        inner = "".join(part.capitalize() for part in label.split("_")) or "Value"
        while inner in used:
            inner += "_"
        kind, repeated = _kind(f.node, f"{name}.{inner}")
        if isinstance(kind, ProtoMessage):
            used.add(inner)
        fields.append(ProtoField(label, number, kind, repeated))
    return ProtoMessage(name, tuple(fields))


def _names(names: Iterable[str]) -> list[str]:
    """Return valid field names that differ from each other."""
    found: list[str] = []
    for name in map(identifier, names):
        n, label = 1, name
        while label in found:
            n, label = n + 1, f"{name}_{n + 1}"
        found.append(label)
    return found


def _kind(node: Node, name: str) -> tuple[str | ProtoMessage, bool]:
    """Return the field kind of *node*, and whether it is repeated; *name*: of a new type, if one is needed."""
    match node:
        case Scalar(type=t):
            return _SCALARS[t], False
        case Time(signed=signed):
            return "duration" if signed else "time", False
        case FixedArray(item=Scalar(type="char")) | String() | Rest(text=True):
            return "string", False
        case FixedArray(item=Scalar(type="uint8"), count=n) if n > OPAQUE:
            return "bytes", False
        case Bytes() | Rest() | Counted(item=Scalar(type="char" | "uint8")):
            return "bytes", False
        case FixedArray(item=item) | Counted(item=item):
            kind, repeated = _kind(item, name)
            if not repeated:
                return kind, True
            # Protobuf has no arrays of arrays: each row is a message.
            return ProtoMessage(name, (ProtoField(ROW, 1, _kind(item, f"{name}.Row")[0], True),)), True
        case Struct():
            return _message(node, name), False
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def values(layout: Layout, message: ProtoMessage, columns: Sequence[Any]) -> Values:
    """Return columns of *layout* as columns of *message*; what is missing becomes zero or empty.

    message  ``descriptor_from_layout(layout, name)``
    columns  as ``Column.settled`` returns them, or of an Arrow table
    """
    members = list(layout.record.visible())
    columns = [c if isinstance(c, Column) else column_of(layout.root, c).settled() for c in columns]
    if not isinstance(layout.root, Counted):
        return _members(members, message, columns)
    inner = message.fields[0].kind
    if not columns or not isinstance(inner, ProtoMessage):
        return {}
    records = _members(members, inner, [column.item for column in columns])
    return {RECORDS: Many(columns[0].ends.astype(np.int64), records)}


def _members(members: Sequence[Any], message: ProtoMessage, columns: Sequence[Column]) -> Values:
    return {
        made.name: _value(f.node, column, made.kind)
        for f, made, column in zip(members, message.fields, columns, strict=True)
    }


def _value(node: Node, column: Column, kind: Any) -> Any:
    match node:
        case Scalar(type="bool"):
            return column.values.view(np.uint8)
        case Scalar() | Time():
            return column.values
        case FixedArray(item=Scalar(type="char")) | String() | Bytes() | Rest():
            return _bytes(column)
        case Counted(item=Scalar(type="char" | "uint8")):
            return _bytes(column)
        case FixedArray(item=item, count=n):
            offsets = np.arange(len(column) + 1, dtype=np.int64) * n
            if kind == "bytes" and isinstance(item, Scalar):
                return Many(offsets, column.item.values)
            return _many(offsets, item, column.item, kind)
        case Counted(item=item):
            return _many(column.ends.astype(np.int64), item, column.item, kind)
        case Struct():
            return _members(list(node.visible()), kind, column.children)
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def _many(offsets: Any, item: Node, flat: Column, kind: Any) -> Many:
    nested = isinstance(kind, ProtoMessage) and not isinstance(item, Struct)
    found = _value(item, flat, kind.fields[0].kind if nested else kind)
    return Many(offsets, {ROW: found} if nested else found)


def _bytes(column: Column) -> Many:
    return Many(column.ends.astype(np.int64), column.values)
