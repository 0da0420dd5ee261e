"""Encoding of payloads by a Layout: many rows at once from columns, or one message from a mapping."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import replace
from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.layout.decode import CODES
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_SIZE,
    SCALARS,
    Align,
    Bytes,
    Expect,
    FixedArray,
    Node,
    Padding,
    Rest,
    Scalar,
    Sequence,
    Skip,
    String,
    Struct,
    Time,
)
from logreel.layout.numpy_columns import (
    ARRAY,
    BYTES,
    DURATION,
    LIST,
    STRUCT,
    TEXT,
    TIME,
    Column,
    column_from,
    type_of,
)
from logreel.layout.program import Column as ProgramColumn
from logreel.layout.program import compile_layout

if TYPE_CHECKING:
    import pyarrow as pa

#: Offsets of columns that only count hidden items.
_NOTHING = np.zeros(1, np.int32)
_WHY = {-1: "an array is longer than its count can say", -2: "it would be larger than 2 GiB"}


def encode_table(
    layout: Layout, table: pa.Table, records: I64 | None = None
) -> tuple[NDArray[np.uint8], I64]:
    """Return consecutive payloads of messages, and int64[n + 1] with the start of each and the end.

    table    one column per visible member of *layout*, by name; other columns are ignored
    records  int64[n]: number of rows of each message, for Layouts with many records in one message

    Raises UsageError where a column is missing, or contains values that do not fit the Layout.
    """
    return encode_columns(layout, columns_of(layout, table), table.num_rows, records)


def columns_of(layout: Layout, table: pa.Table) -> dict[str, Column]:
    """Return the columns of *table* that are visible members of *layout*, with the types of these, by name.

    Raises UsageError for values that the type cannot hold, and for missing ones.
    """
    import pyarrow as pa

    from logreel.layout.arrow_from_buffers import arrow_type

    columns = dict[str, Column]()
    for f in layout.record.visible():
        if f.name not in table.column_names:
            continue
        column = table.column(f.name).combine_chunks()
        array = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        try:
            array = array.cast(arrow_type(f.node))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise UsageError(f"column {f.name!r} cannot become {arrow_type(f.node)}: {error}") from None
        columns[f.name] = column_from(array)
        _check_present(columns[f.name], f.name)
    return columns


def encode_columns(
    layout: Layout, columns: Mapping[str, Column], rows: int, records: I64 | None = None
) -> tuple[NDArray[np.uint8], I64]:
    """Return the same as ``encode_table`` of columns by name, of *rows* values each."""
    from logreel.kernels import layout_encode as kernel

    has_records = isinstance(layout.root, Sequence)
    if has_records and records is None:
        records = np.ones(rows, np.int64)
    buffers: list[NDArray[Any]] = []
    if has_records and records is not None:
        buffers.append(np.concatenate([[0], np.cumsum(records)]).astype(np.int32))
        rows = len(records)
    for f in layout.record.visible():
        if f.name not in columns:
            raise UsageError(f"there is no column {f.name!r}; the message has {_names(layout)}")
        buffers += buffers_of(f.node, columns[f.name], f.name)
    program = compile_layout(layout)
    data, offsets = _by_column(program.columns, iter(buffers))
    size = np.empty(rows, np.int64)
    done, why = kernel.encoded_sizes(program.ops, offsets, size, MAX_SIZE)
    if why:
        raise UsageError(f"message {done} cannot be written: {_WHY[why]}")
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    out = np.empty(int(start[-1]), np.uint8)
    kernel.encode(program.ops, program.copies, data, offsets, start[:-1], out)
    return out, start


def _names(layout: Layout) -> str:
    return ", ".join(f.name for f in layout.record.visible())


def _by_column(
    columns: tuple[ProgramColumn, ...], buffers: Iterator[NDArray[Any]]
) -> tuple[list[NDArray[Any]], list[NDArray[np.int32]]]:
    """Return the bytes and the offsets of each column; ``_NOTHING`` where it has none."""
    data, offsets = list[NDArray[Any]](), list[NDArray[np.int32]]()
    for column in columns:
        offsets.append(
            np.ascontiguousarray(next(buffers, _NOTHING), np.int32) if column.counted else _NOTHING
        )
        has_bytes = bool(column.width or not column.counted)
        data.append(np.ascontiguousarray(next(buffers, _NOTHING)) if has_bytes else _NOTHING)
    return data, offsets


def encode_message(layout: Layout, fields: Mapping[str, Any]) -> bytes:
    """Return the payload of one message from a mapping like ``msg.decode()``; missing members are zero or empty.

    Raises UsageError for a member that the Layout does not have, and for a value that does not fit.
    """
    out = bytearray()
    has_records = isinstance(layout.root, Sequence)
    if has_records:
        check_only_records(fields)
    _put(layout.root, fields.get("records", []) if has_records else fields, "", out)
    return bytes(out)


def check_only_records(fields: Mapping[str, Any]) -> None:
    """Raise UsageError for fields other than ``records`` of a message that contains many records."""
    others = [name for name in fields if name != "records"]
    if others:
        names = ", ".join(repr(name) for name in others)
        raise UsageError(
            f"there is no field {names:.200} next to 'records', which lists what the message holds"
        )


def _put(node: Node, value: Any, name: str, out: bytearray) -> None:
    try:
        _put_checked(node, value, name, out)
    except (struct.error, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise UsageError(f"{name or 'message'}: {value!r:.60} does not fit: {error}") from None


def _unknown(others: list[Any], known: set[str], name: str) -> str:
    """Return a sentence about unknown fields of the struct *name*, with the nearest known ones."""
    from difflib import get_close_matches

    unknown = ", ".join(repr(f"{name}.{other}".lstrip(".")) for other in others)
    near = [one for other in others for one in get_close_matches(str(other), known, n=3, cutoff=0.5)]
    suggestions = ", ".join(dict.fromkeys(near)) or ", ".join(sorted(known)[:3]) + " …" * (len(known) > 3)
    return f"there is no field {unknown:.200}" + (
        f"; {'nearest' if near else 'there are'}: {suggestions}" if known else ""
    )


def _put_checked(node: Node, value: Any, name: str, out: bytearray) -> None:
    match node:
        case Struct():
            values = value if isinstance(value, Mapping) else dict(value or {})
            known = {f.name for f in node.visible()}
            if not values.keys() <= known:
                raise UsageError(_unknown([one for one in values if one not in known], known, name))
            for f in node.fields:
                _put(f.node, values.get(f.name), f"{name}.{f.name}".lstrip("."), out)
        case Scalar(type=t):
            out += struct.pack("<" + CODES[t], 0 if value is None else value)
        case Time(signed=signed):
            out += struct.pack("<iI" if signed else "<II", *divmod(int(value or 0), 10**9))
        case Padding(size=n):
            out += bytes(n)
        case Skip(node=inner):
            _put(inner, None, name, out)
        case FixedArray(item=Scalar(type="char"), count=n):
            text = _raw(value)
            if len(text) > n:
                raise ValueError(f"a text of {len(text)} bytes where {n} fit")
            out += text.ljust(n, b"\0")
        case FixedArray(item=Scalar(type=t), count=n) if value is None:
            out += bytes(n * SCALARS[t][1])
        case FixedArray(item=item, count=n):
            items = [None] * n if value is None else list(value)
            if len(items) != n:
                raise ValueError(f"{len(items)} items where {n} are needed")
            for one in items:
                _put(item, one, name, out)
        case Align(grid=grid):
            out += bytes(grid.gap(len(out)))
        case Expect(data=data):
            out += data
        case String(width=w, grid=grid, tail=tail):
            raw = _raw(value) + bytes(tail)
            out += bytes(grid.gap(len(out)) if grid else 0) + len(raw).to_bytes(w, "little") + raw
        case Bytes(width=w) | Sequence(item=Scalar(type="char" | "uint8"), width=w):
            raw = bytes(value) if isinstance(value, list) else _raw(value)
            out += len(raw).to_bytes(w, "little") + raw
        case Rest():
            out += _raw(value)
        case Sequence(item=item, width=w, grid=grid):
            items = [] if value is None else list(value)
            out += len(items).to_bytes(w, "little")
            out += bytes(grid.gap(len(out)) if grid and items else 0)
            for one in items:
                _put(item, one, name, out)


def _raw(value: Any) -> bytes:
    if value is None:
        return b""
    # bytes(5) would be five zeros.
    return value.encode() if isinstance(value, str) else bytes(memoryview(value))


def times_of(table: pa.Table) -> I64:
    """Return int64[n]: column ``time`` in ns; raise UsageError if it is missing or has another type."""
    import pyarrow as pa

    if "time" not in table.column_names:
        raise UsageError("the table has no column 'time'")
    column = table.column("time")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ns", column.type.tz))
    elif pa.types.is_duration(column.type):
        column = column.cast(pa.duration("ns"))
    elif not pa.types.is_integer(column.type):
        raise UsageError(
            f"column 'time' is {column.type}; expected an integer of ns, a timestamp or a duration"
        )
    if column.null_count:
        raise UsageError(f"column 'time': {column.null_count} values are missing")
    times: I64 = np.asarray(column.cast(pa.int64()).combine_chunks(), np.int64)
    return times


Buffer = NDArray[Any]


def buffers_of(node: Node, column: Column, name: str) -> Iterator[Buffer]:
    """Yield the buffers of *column* as ``numpy_columns.build`` takes them for *node*; numbers of other types are cast.

    name  of the field, for errors

    Raises UsageError for missing values, and for values that do not fit the bytes of *node*.
    """
    _check_present(column, name)
    wanted = type_of(node)
    match node:
        case Scalar():
            yield _number(wanted, column, name).view(np.uint8)
        case Time(signed=signed):
            yield _time_words(_number(wanted, column, name), signed, name)
        case FixedArray(item=Scalar(type="char"), count=n):
            yield _padded(_checked(column, (TEXT, BYTES), node, name), n, name)
        case FixedArray(item=item, count=n):
            if column.type == LIST and (np.diff(column.ends) == n).all():
                column = Column(ARRAY, len(column), children=(column.all_items(),), size=n)
            if _checked(column, (ARRAY,), node, name).size != n:
                raise _misfit(column, node, name)
            yield from buffers_of(item, column.item, name)
        case Struct():
            names = tuple(f.name for f in node.visible())
            if _checked(column, (STRUCT,), node, name).names != names:
                raise _misfit(column, node, name)
            for f, child in zip(node.visible(), column.children, strict=True):
                yield from buffers_of(f.node, child, f"{name}.{f.name}" if name else f.name)
        case String() | Bytes() | Rest() | Sequence(item=Scalar(type="char" | "uint8")):
            ends = _checked(column, (TEXT, BYTES), node, name).ends
            if wanted == TEXT and column.type == BYTES and not replace(column, type=TEXT).is_utf8():
                raise _misfit(column, node, name)
            yield ends
            yield column.values[int(ends[0]) : int(ends[-1])]
        case Sequence(item=item):
            if column.type == ARRAY:
                ends = np.arange(len(column) + 1, dtype=np.int32) * column.size
                column = Column(LIST, len(column), offsets=ends, children=column.children)
            yield _checked(column, (LIST,), node, name).ends
            yield from buffers_of(item, column.all_items(), name)
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def _check_present(column: Column, name: str) -> None:
    absent = 0 if column.valid is None else int(np.count_nonzero(~column.valid))
    if absent:
        raise UsageError(f"{name}: {absent} values are missing; a message has every field")


def _misfit(column: Column, node: Node, name: str) -> UsageError:
    wanted = type_of(node)
    text = f"column {name!r} cannot become {wanted}"
    return UsageError(text if column.type == wanted else f"{text}: it has values of type {column.type}")


def _checked(column: Column, types: tuple[str, ...], node: Node, name: str) -> Column:
    """Return *column*; raise UsageError if it has none of these types."""
    if column.type not in types:
        raise _misfit(column, node, name)
    return column


#: Whole numbers up to which floats hold all of them.
_EXACT = {"float32": 1 << 24, "float64": 1 << 53}


def _number(wanted: str, column: Column, name: str) -> NDArray[Any]:
    """Return numbers, flags or times as type *wanted*, without a copy where that is theirs already.

    Raises UsageError for numbers that the type cannot hold.
    """
    stored = column.type
    if column.data is None or column.offsets is not None:
        raise UsageError(f"column {name!r} cannot become {wanted}: it has values of type {stored}")
    values = np.ascontiguousarray(column.data)
    is_moment = wanted in (TIME, DURATION)
    if stored == wanted or (stored == "int64" and is_moment) or (column.is_time and wanted == "int64"):
        return values
    if is_moment or column.is_time:
        raise UsageError(f"column {name!r} cannot become {wanted}: it has values of type {stored}")
    dtype = np.dtype(SCALARS[wanted][0])
    if wanted == "bool" or stored == "bool":
        # Flags have one byte.
        flags: NDArray[Any] = (values != 0).astype(dtype)
        return flags
    if dtype.kind == "f" and values.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            return values.astype(dtype)
    if len(values):
        low, high = values.min().item(), values.max().item()
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        least, most = (limits.min, limits.max) if limits else (-_EXACT[wanted], _EXACT[wanted])
        # Comparisons with NaN are False.
        if not (least <= low and high <= most) or (limits and not (values == np.trunc(values)).all()):
            raise UsageError(f"column {name!r} cannot become {wanted}: {low} to {high} do not fit")
    return values.astype(dtype)


def _time_words(ns: NDArray[np.int64], signed: bool, name: str) -> NDArray[np.uint8]:
    seconds, rest = np.divmod(ns, 10**9)
    limits = np.iinfo(np.int32 if signed else np.uint32)
    if len(ns) and not limits.min <= int(seconds.min()) <= int(seconds.max()) <= limits.max:
        raise UsageError(f"{name}: times outside of what {limits.bits} bits of seconds can hold")
    return np.stack([seconds, rest], axis=1).astype("<i4" if signed else "<u4").view(np.uint8).ravel()


def _padded(column: Column, width: int, name: str) -> NDArray[np.uint8]:
    """Return texts as rows of *width* bytes, padded with NUL."""
    out = np.zeros((len(column), width), np.uint8)
    length = np.diff(column.ends)
    if len(length) and int(length.max()) > width:
        raise UsageError(f"{name}: a text of {int(length.max())} bytes where {width} fit")
    out[np.arange(width) < length[:, None]] = column.values[int(column.ends[0]) : int(column.ends[-1])]
    return out.ravel()
