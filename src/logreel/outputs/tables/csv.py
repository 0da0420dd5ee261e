"""Tables as CSV, one column per number: ``q[0]``, ``esc[0].rpm``."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from logreel.log.tables import distinct
from logreel.ops.json_values import FORMULA, NUMBER, safe_text
from logreel.ops.query.record_batches import flatten
from logreel.outputs.registry import Job

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel
    from logreel.log.topic_fields import FieldsByTopic


#: Name of the column with the names of the logs.
LOG = "log"


def together(
    tables: Sequence[tuple[str, pa.Schema, Iterable[pa.RecordBatch]]],
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return schema and batches of one table with the rows of *tables*, each with the name of its log.

    The columns are those of all tables; a log that lacks one has nulls there. Columns of different types get one that
    holds all values, text if there is no other.
    """
    import pyarrow as pa

    types: dict[str, pa.DataType] = {}
    for _, schema, _ in tables:
        for field in schema:
            types[field.name] = _common(types.get(field.name, field.type), field.type)
    name = LOG
    while name in types:
        name += "_"
    joined = pa.schema([(name, pa.string()), *types.items()])

    def rows() -> Iterator[pa.RecordBatch]:
        for log, _, batches in tables:
            for batch in batches:
                count = batch.num_rows
                columns: list[pa.Array[Any]] = [pa.repeat(pa.scalar(log), count)]
                for column, common_type in types.items():
                    at = batch.schema.get_field_index(column)
                    values = (
                        pa.array([None] * count, common_type)
                        if at < 0
                        else _as(batch.column(at), common_type)
                    )
                    columns.append(values)
                yield pa.RecordBatch.from_arrays(columns, schema=joined)

    return joined, rows()


def _common(first: pa.DataType, second: pa.DataType) -> pa.DataType:
    """Return a type that holds the values of both."""
    import pyarrow as pa

    if first.equals(second):
        return first
    try:
        schemas = [pa.schema([("x", side)]) for side in (first, second)]
        common: pa.DataType = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        return common
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.string()


def _as(values: pa.Array[Any], common_type: pa.DataType) -> pa.Array[Any]:
    import pyarrow as pa

    if values.type.equals(common_type):
        return values
    try:
        return values.cast(common_type)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        from logreel.outputs.tables.ndjson import plain_rows

        batch = pa.RecordBatch.from_arrays([values], names=["x"])
        return pa.array(
            [None if row["x"] is None else str(row["x"]) for row in plain_rows(batch)], common_type
        )


def write(out: IO[bytes] | io.RawIOBase, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write the table of a channel; every value can be read back exactly.

    The first column is ``time_ns``, integer ns, or for UTC times ``time``, in ISO 8601. Arrays of variable length are
    JSON text, bytes are base64; text is quoted, missing values are empty and not quoted.
    """
    _write(out, schema, batches, flat)


def write_safe(out: IO[bytes] | io.RawIOBase, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write as ``write`` does, with ``'`` in front of text that a spreadsheet would run; see ``guarded``."""
    _write(out, schema, batches, SafeTable.flattened)


def write_safe_result(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write as ``write_result`` does, with ``'`` in front of text that a spreadsheet would run; see ``guarded``."""
    _write(out, schema, batches, lambda batch: guarded(plainly_flat(batch)))


def write_result(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write any table as ``write`` does, with unchanged column names."""
    _write(out, schema, batches, plainly_flat)


def write_together(
    out: IO[bytes] | io.RawIOBase,
    tables: Iterable[tuple[str, pa.Schema, Iterable[pa.RecordBatch]]],
    safe: bool = False,
) -> None:
    """Write the tables of several logs as one, as ``write`` and ``write_safe`` do, with a first column ``log``.

    tables  name, schema and rows of each log; nothing is written without any
    """
    flattened: Callable[[pa.RecordBatch], pa.RecordBatch] = SafeTable.flattened if safe else flat
    flats = [(name, _head(schema, flattened), map(flattened, batches)) for name, schema, batches in tables]
    if flats:
        schema, rows = together(flats)
        _write(out, schema, rows, guarded if safe else lambda batch: batch)


def _write(
    out: IO[bytes] | io.RawIOBase,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    flattened: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> None:
    write_rows(out, _write_head(out, schema, flattened), map(flattened, batches))


def _write_head(
    out: IO[bytes] | io.RawIOBase,
    schema: pa.Schema,
    flattened: Callable[[pa.RecordBatch], pa.RecordBatch],
) -> pa.Schema:
    """Write the line with the names of the columns; return the schema of flat batches."""
    head = _head(schema, flattened)
    row = io.StringIO()
    csv.writer(row, lineterminator="\n").writerow(head.names)
    out.write(row.getvalue().encode("utf-8", "backslashreplace"))
    return head


def _head(schema: pa.Schema, flattened: Callable[[pa.RecordBatch], pa.RecordBatch]) -> pa.Schema:
    """Return the schema of flat batches."""
    import pyarrow as pa

    empty = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
    return flattened(empty).schema


class Table:
    """A table written batch by batch, with the same bytes as by ``write``."""

    #: Rows that are not written yet, approximate bytes.
    waiting = 0

    @staticmethod
    def flattened(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the flat columns of *batch*."""
        return flat(batch)

    def __init__(self, out: IO[bytes] | io.RawIOBase, schema: pa.Schema) -> None:
        from pyarrow import csv as arrow_csv

        self._writer = arrow_csv.CSVWriter(
            cast("IO[bytes]", out),
            _write_head(out, schema, self.flattened),
            write_options=arrow_csv.WriteOptions(include_header=False),
        )

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write_batch(self.flattened(batch))

    def flush(self) -> None:
        """Do nothing: rows are written at once."""

    def close(self) -> None:
        """Complete the table."""
        self._writer.close()


class SafeTable(Table):
    """A table written batch by batch, with the same bytes as by ``write_safe``."""

    @staticmethod
    def flattened(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the flat columns of *batch*, with guarded text."""
        return guarded(flat(batch))


def write_rows(out: IO[bytes] | io.RawIOBase, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write flat batches without a header line."""
    from pyarrow import csv as arrow_csv

    # The header is written separately, because Arrow's writer refuses names with quotes.
    with arrow_csv.CSVWriter(
        cast("IO[bytes]", out), schema, write_options=arrow_csv.WriteOptions(include_header=False)
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)


def guarded(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a flat *batch* with ``safe_text`` in place of each text and name."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def column(values: Any) -> Any:
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            return values
        # These run in RE2, in linear time.
        risky = pc.match_substring_regex(values, FORMULA)
        if not pc.any(risky).as_py():
            return values
        risky = pc.and_not(risky, pc.match_substring_regex(values, NUMBER))
        mark, empty = pa.scalar("'", values.type), pa.scalar("", values.type)
        return pc.if_else(risky, pc.binary_join_element_wise(mark, values, empty), values)

    names = [safe_text(name) for name in batch.schema.names]
    return pa.RecordBatch.from_arrays([column(array) for array in batch.columns], names=names)


def flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* with flat columns of types for CSV, and the first column named ``time`` or ``time_ns``."""
    import pyarrow as pa

    rows = plainly_flat(batch)
    clock = batch.schema.types[0]
    wall = isinstance(clock, pa.TimestampType) and clock.tz is not None
    first = rows.column(0) if wall else rows.column(0).cast(pa.int64())
    names = ["time" if wall else "time_ns", *rows.schema.names[1:]]
    return pa.RecordBatch.from_arrays([first, *rows.columns[1:]], names=distinct(names))


def plainly_flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return *batch* with flat columns of types for CSV; durations become integer ns."""
    import pyarrow as pa

    names, arrays = flatten(batch)
    plain = [a.cast(pa.int64()) if pa.types.is_duration(a.type) else a for a in arrays]
    return pa.RecordBatch.from_arrays(plain, names=names)


def limited(
    ch: Channel,
    start: int | None,
    end: int | None,
    utc: bool,
    count: int | None,
    interpolate: bool = False,
    fields: FieldsByTopic | None = None,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return schema and batches of the first *count* rows of *ch* with start <= time < end (ns).

    fields  field paths by topic; None: all fields
    """
    schema, batches, _ = Job(
        ch.log, [ch], start, end, utc, interpolate=interpolate, fields=fields or {}
    ).table(ch)

    def first() -> Iterator[pa.RecordBatch]:
        left = count
        for batch in batches:
            if left is not None:
                batch = batch.slice(0, left)
                left -= batch.num_rows
            yield batch
            if left == 0:
                return

    return schema, first()
