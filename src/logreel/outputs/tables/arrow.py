"""Channels as Arrow IPC files, which can be mapped and used as they are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write one channel, uncompressed so that readers can map it."""
    import pyarrow as pa

    with pa.ipc.new_file(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
