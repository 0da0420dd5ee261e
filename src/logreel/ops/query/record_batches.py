"""Channels as record batches of bounded size; batches with nested fields as flat columns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import as_struct, item_numbers
from logreel.log.columns import RowOptions, own_paths
from logreel.log.tables import MAX_COLUMNS, batches, distinct, width_of
from logreel.ops.json_values import to_json_values

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel


#: A batch holds at most this many messages and about this many payload bytes.
ROWS, BYTES = 65536, 16 << 20
#: A batch of a few fields holds at most this many messages.
MOST = 1 << 20
#: Most payload bytes of the messages of such a batch: chunks are unpacked for all of them.
PAYLOADS = 64 << 20


def rows_per_batch(ch: Channel) -> int:
    """Return the number of messages per batch of *ch* that keeps memory bounded for large messages."""
    return max(1, min(ROWS, BYTES // max(1, ch.bytes // max(1, len(ch)))))


def most_rows(ch: Channel) -> int:
    """Return the number of messages per batch of a few fields of *ch* that keeps memory bounded."""
    return max(1, min(MOST, PAYLOADS // max(1, ch.bytes // max(1, len(ch)))))


def bounded_batches(
    ch: Channel,
    start: int | None = None,
    end: int | None = None,
    utc: bool = False,
    interpolate: bool = False,
    fields: list[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the table of *ch* in batches of bounded size: messages with start <= time < end (ns), in file order.

    utc, interpolate  as for ``Channel.to_arrow``
    fields            field paths; None: all
    """
    yield from batches(
        ch, rows_per_batch(ch), own_paths(ch, fields), start, end, RowOptions(True, utc, interpolate)
    )


def flatten(batch: pa.RecordBatch) -> tuple[list[str], list[pa.Array[Any]]]:
    """Return names and arrays of *batch* with nested fields as separate columns: ``q[0]``, ``esc[0].rpm``.

    Arrays of variable length, or with more than MAX_COLUMNS values, are one column of JSON text; bytes are base64
    text.
    """
    names: list[str] = []
    arrays: list[pa.Array[Any]] = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        for name, column in _flat(field.name, array):
            names.append(name)
            arrays.append(column)
    return distinct(names), arrays


def _flat(name: str, array: pa.Array[Any]) -> Iterator[tuple[str, pa.Array[Any]]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type = array.type
    if pa.types.is_struct(arrow_type):
        for i, child in enumerate(as_struct(array).flatten()):
            yield from _flat(f"{name}.{arrow_type.field(i).name}", child)
    elif pa.types.is_fixed_size_list(arrow_type) and width_of(arrow_type) <= MAX_COLUMNS:
        for i, number in enumerate(item_numbers(arrow_type.list_size)):
            yield from _flat(f"{name}[{i}]", pc.list_element(array, number))
    elif pa.types.is_nested(arrow_type):
        yield name, pa.array([None if v is None else json_text(v) for v in array.to_pylist()], pa.string())
    elif (
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    ):
        yield name, pa.array([to_json_values(v) for v in array.to_pylist()], pa.string())
    else:
        yield name, array


def json_text(value: Any) -> str:
    """Return *value* as one line of ASCII JSON: bytes as base64, NaN and infinities as strings."""
    return json.dumps(to_json_values(value), separators=(", ", ": "), allow_nan=False)


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge ascending half-open intervals that touch or overlap."""
    merged: list[tuple[int, int]] = []
    for lo, hi in intervals:
        if merged and lo <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], hi))
        else:
            merged.append((lo, hi))
    return merged


def as_slice(rows: I64) -> Rows:
    """Return ascending row numbers as a slice if they are consecutive, else unchanged."""
    if len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def intersect_intervals(
    a: Iterable[tuple[int | None, int | None]], b: Iterable[tuple[int | None, int | None]]
) -> list[tuple[int | None, int | None]]:
    """Return the intervals that are in both; each half-open, ascending and without overlaps, None: unbounded."""
    common: list[tuple[int | None, int | None]] = []
    ours, two = list(a), list(b)
    i = j = 0
    while i < len(ours) and j < len(two):
        (lo, hi), (first, last) = ours[i], two[j]
        start = max((t for t in (lo, first) if t is not None), default=None)
        end = min((t for t in (hi, last) if t is not None), default=None)
        if start is None or end is None or start < end:
            common.append((start, end))
        # The one that ends first has no more in common with the others.
        if last is None or (hi is not None and hi <= last):
            i += 1
        else:
            j += 1
    return common
