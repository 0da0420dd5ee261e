"""Tables as Arrow IPC files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, cast

if TYPE_CHECKING:
    import io

    import pyarrow as pa

#: Approximate bytes of a batch that is joined from small ones.
BATCH_BYTES = 16 << 20


def write(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a table, uncompressed so that readers can memory-map it."""
    import pyarrow as pa

    with pa.ipc.new_file(cast("io.IOBase", out), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


class Table:
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
