"""Read channels as Arrow tables and NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import UsageError, library
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import (
    as_fixed_list,
    buffer_of,
    item_numbers,
    row_numbers,
    text_metadata,
    values_of,
)
from logreel.layout.nodes import Sequence as Records
from logreel.layout.numpy_columns import MAX_STRUCTS
from logreel.log.columns import GROWTH, PLAIN, TIME, RowOptions, RowReader, Rows, row_count

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from logreel.layout.layout import Layout
    from logreel.layout.projection import Projection
    from logreel.log.read_ahead import LogContext, TableChannel


#: An array of more values than this is not split into a column per value.
MAX_COLUMNS = 1024
#: Limits of one batch of an Arrow stream: messages, and approximate bytes.
STREAM_ROWS, STREAM_BYTES = 1 << 16, 8 << 20
#: Metadata of the column ``time``: the meaning of the time of a record if messages contain many records.
OF_MESSAGE = b"of the message that the record is in, which is that of its first record"
SPREAD = b"spread evenly from the message that the record is in to the next one; only the first record's is recorded"


def column_values(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> NDArray[Any]:
    """Return the values of a column; arrays of fixed size become further axes.

    Nulls are NaN in floats and None in objects; other types become a masked array of the same type.
    """
    import pyarrow as pa

    shape: list[int] = []
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = _items(
            as_fixed_list(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_masked(chunk) for chunk in chunks]
    together = np.ma.concatenate if any(isinstance(p, np.ma.MaskedArray) for p in parts) else np.concatenate
    values: NDArray[Any] = parts[0] if len(parts) == 1 else together(parts) if parts else np.zeros(0)
    return values.reshape(-1, *shape) if shape else values


def _items(array: pa.FixedSizeListArray[Any, Any]) -> pa.Array[Any]:
    """Return the items of all lists, concatenated; a null list gives null items."""

    if not array.null_count:
        return array.flatten()
    size = array.type.list_size
    at = np.arange(len(array) * size, dtype=np.int64) + array.offset * size
    absent = np.repeat(as_numpy(array.is_null()), size)
    return array.values.take(row_numbers(at, absent))


def _masked(array: pa.Array[Any]) -> NDArray[Any]:
    """Return the values of *array*; as a masked array where it has nulls and its type has no NaN."""
    import pyarrow as pa

    arrow_type = array.type
    if not array.null_count or not (
        pa.types.is_integer(arrow_type) or pa.types.is_boolean(arrow_type) or pa.types.is_temporal(arrow_type)
    ):
        return as_numpy(array)
    plain = array.cast(pa.int64()) if pa.types.is_temporal(arrow_type) else array
    absent = as_numpy(array.is_null())
    filled = as_numpy(plain.fill_null(False if pa.types.is_boolean(arrow_type) else 0))
    return np.ma.MaskedArray(filled, mask=absent)


def as_numpy(array: pa.Array[Any]) -> NDArray[Any]:
    """Return the values of *array*: numbers, and times as int64 ns, as views of its memory; flags as bool.

    Numbers with nulls become floats with NaN. Everything else is what ``Array.to_numpy`` returns, which imports
    pandas if installed, and that takes longer than reading most fields.
    """
    import pyarrow as pa

    arrow_type = array.type
    if pa.types.is_boolean(arrow_type) and array.null_count == 0:
        return as_numpy(array.cast(pa.uint8())).view(np.bool_)
    if pa.types.is_integer(arrow_type) or pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type):
        if array.null_count:
            wide = array if pa.types.is_floating(arrow_type) else array.cast(pa.float64(), safe=False)
            array = wide.fill_null(pa.scalar(float("nan"), wide.type))
        number = np.dtype(array.type.to_pandas_dtype())
    elif array.null_count == 0 and pa.types.is_float16(arrow_type):
        number = np.dtype(np.float16)
    elif array.null_count == 0 and pa.types.is_temporal(arrow_type):
        number = np.dtype(np.int64)
    else:
        other: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return other
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, number)
    return values_of(data, number, len(array), array.offset * number.itemsize)


def times_of(rows: pa.Table | pa.RecordBatch) -> I64:
    """Return int64[n]: the column ``time`` of a table or batch in ns."""
    column = rows.column("time")
    parts = [as_numpy(part) for part in getattr(column, "chunks", [column])]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def table(
    ch: TableChannel, fields: list[str] | None, start: int | None, end: int | None, shape: RowOptions
) -> pa.Table:
    """Return the messages of *ch* with start <= time < end (ns) as a table, see ``Channel.to_arrow``."""
    return TableReader(ch, fields, shape).read(ch.log.index.rows_between(ch.number, start, end))


def empty_table(ch: TableChannel, shape: RowOptions = PLAIN, fields: list[str] | None = None) -> pa.Table:
    """Return the table of *ch* without rows, for its schema."""
    return TableReader(ch, fields, shape).read(slice(0, 0))


def batches(
    ch: TableChannel,
    rows: int,
    fields: list[str] | None,
    start: int | None,
    end: int | None,
    shape: RowOptions,
    size: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the table of *ch* in batches, see ``Channel.batches`` and ``TableReader.batches``."""
    picked = ch.log.index.rows_between(ch.number, start, end)
    return TableReader(ch, fields, shape).batches(picked, rows, size)


def arrow_stream(ch: TableChannel, requested_schema: object | None) -> object:
    """Return the table of *ch* as an Arrow stream (a PyCapsule), decoded while it is read."""
    import pyarrow as pa

    record_batches = batches(ch, STREAM_ROWS, None, None, None, PLAIN, STREAM_BYTES)
    reader = pa.RecordBatchReader.from_batches(empty_table(ch).schema, record_batches)
    capsule: object = reader.__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
    return capsule


class TableReader(RowReader["pa.Table"]):
    """Reads rows of one channel as tables."""

    projection: Projection

    def _projection(self, layout: Layout, fields: Sequence[str] | None) -> Projection:
        library("pyarrow")
        from logreel.layout.projection import Projection

        return Projection(layout, fields)

    def _rows(self, times: I64, columns: Sequence[Any]) -> pa.Table:
        """Return the columns with their names and metadata, after the column ``time``."""
        import pyarrow as pa

        first = time_column(self.ch, times, self.shape.utc)
        return pa.Table.from_arrays([first, *columns], schema=self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        ch, shape = self.ch, self.shape
        columns = [
            f.with_name(ch.time_label) if f.name == TIME and ch.time_label else f
            for f in self.projection.arrow_fields(shape.explode)
        ]
        meaning = None
        if ch.decoder is not None and shape.explode and isinstance(ch.layout.root, Records):
            meaning = {b"meaning": SPREAD if shape.interpolate else OF_MESSAGE}
        texts = {"topic": ch.topic, "type": ch.schema.name, "epoch": ch.log.epoch, "source": ch.log.name}
        time = pa.field(TIME, time_type(ch.log, shape.utc), metadata=meaning)
        return pa.schema([time, *columns], metadata=text_metadata(texts))

    def _empty(self) -> pa.Table:
        import pyarrow as pa

        # Not Schema.empty_table, which imports pandas where that is installed.
        nothing = [pa.chunked_array([pa.nulls(0, field.type)]) for field in list(self._schema)[1:]]
        return self._rows(np.zeros(0, np.int64), nothing)

    def _concat(self, parts: Sequence[pa.Table]) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(parts)

    def join(self, parts: Sequence[pa.Table | None]) -> pa.Table:
        """See RowReader."""
        import pyarrow as pa

        ch, tables = self.ch, []
        for got, shift in zip(parts, ch.shifts, strict=True):
            if got is None or not len(got):
                continue
            times = got.column(0)
            if shift or self.shape.utc:
                moved = [as_numpy(chunk) + shift for chunk in times.chunks]
                times = pa.chunked_array([time_column(ch, some, self.shape.utc) for some in moved])
            tables.append(pa.Table.from_arrays([times, *self._columns_of(got)], schema=self._schema))
        if not tables:
            empty = self._readers_of_members[0].read(slice(0, 0))
            return self._rows(np.zeros(0, np.int64), self._columns_of(empty))
        if len(tables) == 1 or ch.log.index.order(ch.number) is None:
            return pa.concat_tables(tables)
        together = pa.concat_tables(tables)
        stored = np.concatenate([as_numpy(chunk) for chunk in together.column(0).chunks])
        return together.take(np.argsort(stored, kind="stable"))

    def _columns_of(self, got: pa.Table) -> list[pa.ChunkedArray[Any]]:
        """Return the columns of the table of a member; nulls for those that its definitions do not have."""
        import pyarrow as pa

        if got.schema.types[1:] == self._schema.types[1:]:
            return list(got.columns[1:])
        own = {name: n for n, name in enumerate(got.column_names) if n}
        columns = []
        for field in list(self._schema)[1:]:
            n = own.get(field.name)
            if n is None or got.schema.types[n] != field.type:
                columns.append(pa.chunked_array([pa.nulls(len(got), field.type)]))
            else:
                columns.append(got.column(n))
        return columns

    def batches(self, picked: Rows, rows: int, size: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the messages *picked* as a table in batches of at most *rows* messages.

        size  bytes of a batch: the first holds one message, the next ones grow or shrink to about that size; None:
              any size
        """
        ch = self.ch
        lo = picked.start if isinstance(picked, slice) else 0
        stop, count = lo + row_count(picked, len(ch)), rows if size is None else 1
        if size is not None and stop - lo == len(ch) <= rows and self._known_bytes() <= size:
            count = len(ch)
        while lo < stop:
            # Slices of row numbers end with the array; a slice of the channel must be limited.
            hi = min(lo + count, picked.stop) if isinstance(picked, slice) else lo + count
            table = self.read(slice(lo, hi) if isinstance(picked, slice) else picked[lo:hi])
            if size is not None:
                # Batches grow gradually: callers that need only the first rows do not wait for thousands.
                count = max(1, min(rows, count * size // max(1, table.nbytes), count * GROWTH))
            yield from table.combine_chunks().to_batches()
            lo = hi


def time_type(log: LogContext, utc: bool = False) -> pa.DataType:
    """Return the Arrow type of the column ``time`` of the tables of *log*, see ``Channel.to_arrow``."""
    import pyarrow as pa

    if utc:
        return pa.timestamp("ns", tz="UTC")
    return pa.timestamp("ns") if log.epoch == "unix" else pa.duration("ns")


def time_column(ch: TableChannel, times: I64, utc: bool = False) -> pa.Array[Any]:
    """Return times of messages of *ch* (ns of its clock) as the column ``time``, see ``Channel.to_arrow``."""
    import pyarrow as pa

    if utc:
        offset = ch.log.utc_offset
        if offset is None:
            raise UsageError("the log does not tell how its clock relates to UTC", path=ch.log.name)
        # Absurd stamps are clipped instead of overflowing.
        times = np.clip(times, TIME_MIN - min(offset, 0), TIME_MAX - max(offset, 0)) + offset
    data = buffer_of(np.ascontiguousarray(times))
    return pa.Array.from_buffers(time_type(ch.log, utc), len(times), [None, data])


def flattened(rows: Any, values: int = 0) -> Any:
    """Return a table or batch whose struct members are columns: ``pose.position.x``, ``esc[0].rpm``.

    values  arrays of fixed size with at most this many values are columns, too: ``q[0]``

    Other lists stay lists, except arrays of fixed size with up to MAX_STRUCTS structs.
    """
    import pyarrow as pa

    # Most types have no others inside of them.
    if not any(
        column_type.num_fields and _is_several(column_type, values) for column_type in rows.schema.types
    ):
        return rows
    flat = [
        column_of_field
        for field, column in zip(rows.schema, rows.columns, strict=True)
        for column_of_field in _flat(field, column, values)
    ]
    names = distinct([field.name for field, _ in flat])
    fields = [field.with_name(name) for (field, _), name in zip(flat, names, strict=True)]
    return type(rows).from_arrays(
        [column for _, column in flat], schema=pa.schema(fields, metadata=rows.schema.metadata)
    )


def width_of(arrow_type: pa.DataType) -> int:
    """Return the number of columns that a value of *arrow_type* has if structs and arrays of fixed size are split."""
    import pyarrow as pa

    if pa.types.is_struct(arrow_type):
        return sum(width_of(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    if pa.types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * width_of(arrow_type.value_type)
    return 1


def _is_several(kind: pa.DataType, values: int) -> bool:
    """Return whether flattening replaces a column of this type by several; *values* as of ``flattened``."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        # An array without items would leave no column.
        return 0 < width_of(kind) <= values or (
            kind.list_size <= MAX_STRUCTS and _is_several(kind.value_type, values)
        )
    # A struct without members would leave no column.
    return bool(pa.types.is_struct(kind)) and kind.num_fields > 0


def _flat(field: pa.Field[Any], column: Any, values: int) -> Iterator[tuple[pa.Field[Any], Any]]:
    import pyarrow as pa

    kind = field.type
    if not _is_several(kind, values):
        yield field, column
    elif pa.types.is_struct(kind):
        # Nulls of the struct become nulls of its members.
        for i, child in enumerate(column.flatten()):
            inner = kind.field(i)
            yield from _flat(inner.with_name(f"{field.name}.{inner.name}").with_nullable(True), child, values)
    else:
        import pyarrow.compute as pc

        for i, index in enumerate(item_numbers(kind.list_size)):
            item = pa.field(f"{field.name}[{i}]", kind.value_type, metadata=field.metadata)
            yield from _flat(item, pc.list_element(column, index), values)


def distinct(names: list[str]) -> list[str]:
    """Return *names*, made unique by numbers: ``time`` twice becomes ``time``, ``time_2``."""
    taken, found = set(names), set()
    out = []
    for name in names:
        label, n = name, 1
        while label in found or (n > 1 and label in taken):
            n += 1
            label = f"{name}_{n}"
        found.add(label)
        out.append(label)
    return out
