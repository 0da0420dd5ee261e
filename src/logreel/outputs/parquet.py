"""Channels as Parquet: zstd, a row group per batch, nested fields kept as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from logreel.ops.pieces import distinct

if TYPE_CHECKING:
    import pyarrow as pa


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write one channel. Read with pyarrow, it has the types of ``Channel.to_arrow`` again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = distinct(schema.names)
    schema = pa.schema([f.with_name(n) for f, n in zip(schema, names, strict=True)], metadata=schema.metadata)
    # Numbers of sensors rarely repeat, so a dictionary only costs.
    texts = [f.name for f in schema if pa.types.is_string(f.type)]
    with pq.ParquetWriter(out, schema, compression="zstd", use_dictionary=texts or False) as writer:
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
