"""Tables as Parquet: zstd, row groups of bounded size, one column per member of a struct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from logreel.layout.arrow_arrays import (
    as_fixed_list,
    as_list,
    as_struct,
    fixed_list_type,
    item_type,
    metadata_of,
)
from logreel.log.tables import distinct, flattened

if TYPE_CHECKING:
    import pyarrow as pa

#: Maximum rows and approximate maximum bytes (before compression) of a row group.
GROUP_ROWS, GROUP_BYTES = 1 << 19, 32 << 20


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table with flat columns: ``pose.position.x``."""
    write_nested(out, flattened(schema.empty_table()).schema, map(flattened, batches))


def write_nested(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table with structs. Read with pyarrow, it has the types of *schema*."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    batches, schema = _without_empty_structs(batches, schema)
    names = distinct(schema.names)
    schema = pa.schema(
        [f.with_name(n) for f, n in zip(schema, names, strict=True)], metadata=metadata_of(schema)
    )
    # Sensor values rarely repeat, so dictionaries are only for text.
    texts: Any = [f.name for f in schema if pa.types.is_string(f.type)]
    with pq.ParquetWriter(out, schema, compression="zstd", use_dictionary=texts or False) as writer:
        for group in _groups(batches):
            rows = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in group]
            writer.write_table(pa.Table.from_batches(rows, schema), row_group_size=GROUP_ROWS)


def _without_empty_structs(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema
) -> tuple[Iterable[pa.RecordBatch], pa.Schema]:
    """Return batches and schema with nulls instead of empty structs, which Parquet cannot store."""
    types = [_without_empty(f.type) for f in schema]
    if types == schema.types:
        return batches, schema
    import pyarrow as pa

    made = pa.schema(
        [f.with_type(t) for f, t in zip(schema, types, strict=True)], metadata=metadata_of(schema)
    )

    def converted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_arrays(
                [_as_type(a, f.type) for a, f in zip(batch.columns, made, strict=True)], schema=made
            )

    return converted(), made


def _without_empty(kind: pa.DataType) -> pa.DataType:
    """Return *kind* with ``null`` instead of empty structs."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        members = [kind.field(i) for i in range(kind.num_fields)]
        return pa.struct([f.with_type(_without_empty(f.type)) for f in members]) if members else pa.null()
    if pa.types.is_fixed_size_list(kind):
        return fixed_list_type(_without_empty(item_type(kind)), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_without_empty(item_type(kind)))
    return kind


def _as_type(array: pa.Array[Any], kind: pa.DataType) -> pa.Array[Any]:
    """Return *array* as *kind*, which is ``_without_empty`` of its type."""
    import pyarrow as pa

    if array.type == kind:
        return array
    if pa.types.is_null(kind):
        return pa.nulls(len(array))
    if pa.types.is_struct(kind):
        members = zip(
            as_struct(array).flatten(), (kind.field(i) for i in range(kind.num_fields)), strict=True
        )
        return pa.StructArray.from_arrays([_as_type(a, f.type) for a, f in members], fields=list(kind))
    if pa.types.is_fixed_size_list(kind):
        items = _as_type(as_fixed_list(array).flatten(), item_type(kind))
        return pa.FixedSizeListArray.from_arrays(items, kind.list_size)
    import pyarrow.compute as pc

    lists = as_list(array)
    first, last = (lists.offsets[0].as_py(), lists.offsets[-1].as_py()) if len(array) else (0, 0)
    items = _as_type(lists.values.slice(first, last - first), item_type(kind))
    return pa.ListArray.from_arrays(pc.subtract(lists.offsets, lists.offsets[0]), items)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Yield lists of batches for row groups, so that both memory and the number of row groups are bounded."""
    group: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group
