"""Tables as Arrow IPC files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    import io

    import pyarrow as pa


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table, uncompressed so that readers can memory-map it."""
    import pyarrow as pa

    with pa.ipc.new_file(cast("io.IOBase", out), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
