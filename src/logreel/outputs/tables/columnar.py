"""Tables by columns: Parquet (zstd, row groups of bounded size, one column per member of a struct), and Arrow IPC."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import IO, TYPE_CHECKING, Any, cast

from logreel.layout.arrow_arrays import (
    as_fixed_list,
    as_list,
    as_struct,
    empty_table,
    fixed_list_type,
    item_type,
    metadata_of,
)
from logreel.log.tables import distinct, flattened

if TYPE_CHECKING:
    import io

    import pyarrow as pa

#: Maximum rows and approximate maximum bytes (before compression) of a row group.
GROUP_ROWS, GROUP_BYTES = 1 << 19, 32 << 20


def write_parquet(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table with flat columns: ``pose.position.x``."""
    write_nested(out, flattened(empty_table(schema)).schema, map(flattened, batches))


def write_nested(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table with structs. Read with pyarrow, it has the types of *schema*."""
    with closing(NestedTable(out, schema)) as table:
        for batch in batches:
            table.write(batch)


class NestedTable:
    """A table with structs, written batch by batch in row groups; complete, and readable, when it is closed."""

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._storable = _without_empty_structs(schema)
        names = distinct(schema.names)
        schema = self._storable or schema
        # Whether batches are written as they come.
        self._is_plain = self._storable is None and names == schema.names
        if names != schema.names:
            fields = [f.with_name(n) for f, n in zip(schema, names, strict=True)]
            schema = pa.schema(fields, metadata=metadata_of(schema))
        self._schema = schema
        # Sensor values rarely repeat, so dictionaries are only for text.
        text = pa.string()
        texts: Any = [f.name for f in schema if f.type == text]
        self._writer = pq.ParquetWriter(out, self._schema, compression="zstd", use_dictionary=texts or False)
        self._group: list[pa.RecordBatch] = []
        self._rows = 0
        #: Rows that are not written yet, bytes before compression.
        self.waiting = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; they are written when there are enough for a row group."""
        self._group.append(batch)
        self._rows, self.waiting = self._rows + batch.num_rows, self.waiting + batch.nbytes
        if self._rows >= GROUP_ROWS or self.waiting >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait as a row group."""
        import pyarrow as pa

        if self._group:
            rows = self._group
            if not self._is_plain:
                rows = [
                    pa.RecordBatch.from_arrays(self._columns(batch), schema=self._schema) for batch in rows
                ]
            self._writer.write_table(pa.Table.from_batches(rows, self._schema), row_group_size=GROUP_ROWS)
        self._group, self._rows, self.waiting = [], 0, 0

    def _columns(self, batch: pa.RecordBatch) -> list[pa.Array[Any]]:
        if self._storable is None:
            return batch.columns
        return [_as_type(a, f.type) for a, f in zip(batch.columns, self._storable, strict=True)]

    def close(self) -> None:
        """Complete the table."""
        try:
            self.flush()
        finally:
            self._writer.close()


class ParquetTable(NestedTable):
    """A table with flat columns, written batch by batch."""

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        super().__init__(out, flattened(empty_table(schema)).schema)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; see ``NestedTable.write``."""
        super().write(flattened(batch))


def _without_empty_structs(schema: pa.Schema) -> pa.Schema | None:
    """Return *schema* with nulls instead of empty structs, which Parquet cannot store; None if it has none."""
    if not any(column_type.num_fields for column_type in schema.types):
        return None
    types = [_without_empty(f.type) for f in schema]
    if types == schema.types:
        return None
    import pyarrow as pa

    return pa.schema(
        [f.with_type(t) for f, t in zip(schema, types, strict=True)], metadata=metadata_of(schema)
    )


def _without_empty(data_type: pa.DataType) -> pa.DataType:
    """Return *data_type* with ``null`` instead of empty structs."""
    import pyarrow as pa

    if pa.types.is_struct(data_type):
        members = [data_type.field(i) for i in range(data_type.num_fields)]
        return pa.struct([f.with_type(_without_empty(f.type)) for f in members]) if members else pa.null()
    if pa.types.is_fixed_size_list(data_type):
        return fixed_list_type(_without_empty(item_type(data_type)), data_type.list_size)
    if pa.types.is_list(data_type):
        return pa.list_(_without_empty(item_type(data_type)))
    return data_type


def _as_type(array: pa.Array[Any], data_type: pa.DataType) -> pa.Array[Any]:
    """Return *array* as *data_type*, which is ``_without_empty`` of its type."""
    import pyarrow as pa

    if array.type == data_type:
        return array
    if pa.types.is_null(data_type):
        return pa.nulls(len(array))
    if pa.types.is_struct(data_type):
        members = zip(
            as_struct(array).flatten(), (data_type.field(i) for i in range(data_type.num_fields)), strict=True
        )
        return pa.StructArray.from_arrays([_as_type(a, f.type) for a, f in members], fields=list(data_type))
    if pa.types.is_fixed_size_list(data_type):
        items = _as_type(as_fixed_list(array).flatten(), item_type(data_type))
        return pa.FixedSizeListArray.from_arrays(items, data_type.list_size)
    import pyarrow.compute as pc

    lists = as_list(array)
    first, last = (lists.offsets[0].as_py(), lists.offsets[-1].as_py()) if len(array) else (0, 0)
    items = _as_type(lists.values.slice(first, last - first), item_type(data_type))
    return pa.ListArray.from_arrays(pc.subtract(lists.offsets, lists.offsets[0]), items)


#: Approximate bytes of a batch that is joined from small ones.
BATCH_BYTES = 16 << 20


def write_arrow(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table, uncompressed so that readers can memory-map it."""
    import pyarrow as pa

    with pa.ipc.new_file(cast("io.IOBase", out), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


class ArrowTable:
    """A table written batch by batch; small batches are joined before they are written."""

    def __init__(self, out: IO[bytes], schema: pa.Schema) -> None:
        import pyarrow as pa

        self._schema = schema
        self._writer = pa.ipc.new_file(cast("io.IOBase", out), schema)
        self._batches: list[pa.RecordBatch] = []
        #: Rows that are not written yet, approximate bytes.
        self.waiting = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows; they are written with ``flush``, or when there are many."""
        self._batches.append(batch)
        self.waiting += batch.nbytes
        if self.waiting >= BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait."""
        import pyarrow as pa

        if self._batches:
            joined = pa.Table.from_batches(self._batches, self._schema).combine_chunks()
            for batch in joined.to_batches():
                self._writer.write_batch(batch)
        self._batches, self.waiting = [], 0

    def close(self) -> None:
        """Complete the table."""
        self.flush()
        self._writer.close()
