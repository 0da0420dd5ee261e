"""Tables of several logs as one table, whose first column says of which log a row is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

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
        from logreel.outputs.tables.rows import plain_rows

        batch = pa.RecordBatch.from_arrays([values], names=["x"])
        return pa.array(
            [None if row["x"] is None else str(row["x"]) for row in plain_rows(batch)], common_type
        )
