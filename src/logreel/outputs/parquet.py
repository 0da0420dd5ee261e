"""Channels as Parquet: zstd, row groups of bounded size, members of structs as columns of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING

from logreel.model.tables import distinct, flattened

if TYPE_CHECKING:
    import pyarrow as pa

#: A row group ends where it has so many rows, or about so many bytes before compression.
GROUP_ROWS, GROUP_BYTES = 1 << 19, 32 << 20


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write one channel, flat: ``pose.position.x`` is a column of its own."""
    write_nested(out, flattened(schema.empty_table()).schema, map(flattened, batches))


def write_nested(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write any table. Read with pyarrow, it has the types of *schema* again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = distinct(schema.names)
    schema = pa.schema([f.with_name(n) for f, n in zip(schema, names, strict=True)], metadata=schema.metadata)
    # Numbers of sensors rarely repeat, so a dictionary only costs.
    texts = [f.name for f in schema if pa.types.is_string(f.type)]
    with pq.ParquetWriter(out, schema, compression="zstd", use_dictionary=texts or False) as writer:
        for group in _groups(batches):
            rows = [pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in group]
            writer.write_table(pa.Table.from_batches(rows, schema), row_group_size=GROUP_ROWS)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches put together as they are to be written, so that both memory and the number of row groups are bounded."""
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
