"""Tables as JSON: an object per row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from logreel.layout.arrow_arrays import fixed_list_type, item_type
from logreel.log.tables import distinct
from logreel.ops.json_values import to_json_values

if TYPE_CHECKING:
    import pyarrow as pa


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a line of JSON per row; see ``plain_rows`` for values."""
    for line in _lines(batches):
        out.write(line + b"\n")


def write_list(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a JSON list with a line per row; see ``plain_rows`` for values."""
    between = b"["
    for line in _lines(batches):
        out.write(between + line)
        between = b",\n "
    out.write(b"[]\n" if between == b"[" else b"]\n")


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for row in plain_rows(batch):
            yield json.dumps(row, allow_nan=False).encode("ascii")


def plain_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows of *batch* as values for JSON: timestamps and durations as integer ns, bytes as base64."""
    import pyarrow as pa

    names = distinct(batch.schema.names)
    columns = [
        column.cast(mapped(column.type, _in_ns)).cast(mapped(column.type, _as_number))
        for column in batch.columns
    ]
    for row in pa.RecordBatch.from_arrays(columns, names=names).to_pylist():
        yield {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    # DuckDB returns sums of integers as Decimal.
    return int(value) if isinstance(value, Decimal) else to_json_values(value)


def mapped(data_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return *data_type* with *change* applied to every type in it that is no struct or list."""
    import pyarrow as pa

    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(mapped(field.type, change)) for field in data_type])
    if pa.types.is_fixed_size_list(data_type):
        return fixed_list_type(
            data_type.value_field.with_type(mapped(item_type(data_type), change)), data_type.list_size
        )
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(mapped(item_type(data_type), change)))
    return change(data_type)


def _in_ns(data_type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(data_type):
        return pa.timestamp("ns", data_type.tz)
    return pa.duration("ns") if pa.types.is_duration(data_type) else data_type


def _as_number(data_type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_decimal(data_type) and data_type.scale:
        return pa.float64()
    return pa.int64() if pa.types.is_timestamp(data_type) or pa.types.is_duration(data_type) else data_type
