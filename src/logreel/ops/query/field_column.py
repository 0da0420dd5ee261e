"""One numeric field of a channel as a column that is read piece by piece, for drawing logs of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import UsageError
from logreel.index.gather import Want, gather_rows
from logreel.io.arrays import I64
from logreel.layout.nodes import Sequence as Records
from logreel.log.log import Channel
from logreel.log.tables import TableReader, as_numpy, flattened, own_paths, stored_time
from logreel.ops.query.curves import F64, one_column, sample_numbers, why_no_curve

if TYPE_CHECKING:
    import pyarrow as pa

#: Messages that are read at once; a multiple of the groups of a pyramid.
PIECE = 1 << 18
#: The same in bytes of payloads, for channels with large messages.
PIECE_BYTES = 16 << 20
#: Called between pieces; raises to end the work.
Check = Callable[[], None]


def _no_check() -> None:
    """Go on."""


class FieldColumn:
    """A numeric field of a channel, or one item of an array: ``lat``, ``q[2]``, ``pose.position.x``.

    unit  as stated by the schema, or empty

    Raises NotFoundError for an unknown field, UsageError for one that is no number, DefinitionError if the definition
    of the channel cannot be used.
    """

    def __init__(self, ch: Channel, field: str) -> None:
        self.channel, self.field = ch, field
        self._reader = TableReader(ch, own_paths(ch, field))
        empty = self._reader.read(slice(0, 0))
        self.unit = ""
        for one in list(empty.schema)[1:]:
            self.unit = (one.metadata or {}).get(b"unit", b"").decode()
        self._numbers(empty)

    @cached_property
    def is_direct(self) -> bool:
        """Whether each message is one row at a known place, so that reading few rows is cheap."""
        ch = self.channel
        return ch.is_uniform and not ch.members and not isinstance(ch.layout.root, Records)

    @property
    def messages(self) -> int:
        """Number of messages of the channel."""
        return len(self.channel)

    def rows_estimate(self) -> int:
        """Return the number of rows, estimated from the first message where messages hold many records."""
        n = self.messages
        if not n or not isinstance(self.channel.layout.root, Records):
            return n
        return n * max(1, len(self.read(slice(0, 1))[0]))

    def read(self, rows: slice | I64) -> tuple[I64, F64]:
        """Return times (int64[n] ns) and values (float64[n], NaN for none) of messages, in file order.

        rows  a slice, or ascending row numbers of messages; a message of many records gives as many rows
        """
        table = self._direct(rows) if self.is_direct else self._reader.read(rows)
        parts = [as_numpy(chunk) for chunk in table.column(0).chunks]
        times = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])
        return times.view(np.int64), self._numbers(table)

    def _direct(self, rows: slice | I64) -> pa.Table:
        """Return the same as the reader, which would read the times of all messages."""
        ch, index = self.channel, self.channel.log.index
        got = gather_rows(index, Want(ch.number, self._reader.projection.part.leaves, stored_time(ch)), rows)
        times = got.time
        if times is None:
            numbers = np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
            times = index.times_at(ch.number, numbers)
        return self._reader.from_columns(got, times)

    def _numbers(self, table: pa.Table) -> F64:
        """Return the values of the one curve in *table*; raises UsageError if there are several or none."""
        flat = flattened(one_column(table.schema.field(1), table.column(1)))
        found = [
            values
            for one, column in zip(flat.schema, flat.columns, strict=True)
            for _, values in sample_numbers(one.name, column.combine_chunks())
        ]
        if len(found) != 1:
            kind = table.schema.field(1).type
            raise UsageError(why_no_curve(self.channel, self.field, kind), path=self.channel.log.name)
        return found[0]

    def pieces(self, check: Check = _no_check) -> Iterator[tuple[I64, F64]]:
        """Yield times and values of all messages in file order, some thousand messages at a time."""
        n, step = self.messages, self.step
        for lo in range(0, n, step):
            check()
            yield self.read(slice(lo, min(n, lo + step)))

    @cached_property
    def step(self) -> int:
        """Number of messages that are read at once."""
        size = self.channel.layout.size
        if size is None:
            size = self.channel.bytes // max(1, self.messages) if self._knows_sizes else PIECE_BYTES // 256
        if self.is_direct:
            # Only the field is read of each message.
            return PIECE
        return max(1, min(PIECE, PIECE_BYTES // max(1, size)))

    @property
    def _knows_sizes(self) -> bool:
        return self.channel.log.index.sizes_are_cheap

    def whole(self, check: Check = _no_check) -> tuple[I64, F64]:
        """Return times in order, and values, of all rows."""
        parts = list(self.pieces(check))
        if not parts:
            return np.zeros(0, np.int64), np.zeros(0)
        times = np.concatenate([t for t, _ in parts])
        values = np.concatenate([v for _, v in parts])
        if np.all(times[1:] >= times[:-1]):
            return times, values
        order = np.argsort(times, kind="stable")
        return times[order], values[order]
