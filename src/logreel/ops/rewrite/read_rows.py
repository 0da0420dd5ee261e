"""Chosen messages of a channel as columns with one row per message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.io.arrays import I64
from logreel.log.log import Channel
from logreel.log.tables import Shape, TableReader

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.ops.rewrite.fit import Array, Arrays

#: One row per message; messages that cannot be decoded are left out, or become a row of nulls.
WHOLE, _GAPS = Shape(explode=False, gaps=False), Shape(explode=False)


def read_rows(channel: Channel, rows: I64) -> tuple[Arrays, I64]:
    """Return columns of messages at *rows*, one row per message, and int64[k]: which of them could be decoded."""
    found = _read(channel, rows, WHOLE)
    kept = np.arange(len(rows), dtype=np.int64)
    if len(found) != len(rows):
        gaps = _read(channel, rows, _GAPS)
        good = np.zeros(len(rows), bool)
        for column in gaps.columns[1:]:
            good |= np.asarray(column.is_valid())
        kept = np.flatnonzero(good)
        if len(kept) != len(found):
            kept = np.flatnonzero([len(_read(channel, rows[i : i + 1], WHOLE)) for i in range(len(rows))])
    return [_one(column) for column in found.columns[1:]], kept


def _read(channel: Channel, rows: I64, shape: Shape) -> pa.Table:
    n = len(rows)
    if n and int(rows[-1]) - int(rows[0]) == n - 1 and (np.diff(rows) == 1).all():
        return TableReader(channel, None, shape).read(slice(int(rows[0]), int(rows[0]) + n))
    return TableReader(channel, None, shape).read(rows)


def _one(column: pa.ChunkedArray[Any]) -> Array:
    import pyarrow as pa

    found = column.chunks[0] if column.num_chunks == 1 else column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
