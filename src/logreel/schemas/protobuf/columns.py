"""Encoding of columns as protobuf messages, many at once; see kernels/protobuf.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.io.arrays import I64
from logreel.kernels import protobuf as kernel
from logreel.schemas.protobuf.build import varint
from logreel.schemas.protobuf.describe import ProtoField, ProtoMessage

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
