"""One numeric field of a channel as a column that is read piece by piece, for drawing logs of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import UsageError
from logreel.index.block_table import TIME_MIN
from logreel.index.gather import Want, gather_rows
from logreel.io.arrays import F64, I64
from logreel.layout.nodes import Sequence as Records
from logreel.log.columns import ChannelRows, own_paths, stored_time
from logreel.log.log import Channel
from logreel.meaning.curves import curve_reader, extrema_between, pixel_edges, sample_numbers, why_no_curve

#: Channels with more messages than this are searched by bisection.
FEW = 1 << 20


def row_at(ch: Channel, time: int) -> int | None:
    """Return the row of the latest message of *ch* with a time <= *time* (ns); None if there is none.

    A large channel is searched by bisection, which needs times in order: otherwise it may return another row with
    such a time.
    """
    index, number, n = ch.log.index, ch.number, len(ch)
    if n <= FEW or index.has_times(number):
        times = index.times(number)
        if np.all(times[1:] >= times[:-1]):
            row = int(times.searchsorted(time, side="right")) - 1
            return row if row >= 0 else None
        earlier = np.flatnonzero(times <= time)
        return int(earlier[np.argmax(times[earlier])]) if len(earlier) else None
    # All rows before lo are not later than the time, the one at hi and those behind it are.
    lo, hi = 0, n
    while lo < hi:
        step = np.unique(np.linspace(lo, hi - 1, 64).astype(np.int64))
        later = np.flatnonzero(index.times_at(number, step) > time)
        k = int(later[0]) if len(later) else len(step)
        lo, hi = (int(step[k - 1]) + 1 if k else lo), (int(step[k]) if k < len(step) else hi)
    return lo - 1 if lo else None


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
        self._reader = curve_reader(ch, own_paths(ch, field))
        self.unit = (self._reader.projection.units or [""])[-1]
        self._numbers(self._reader.read(slice(0, 0)))

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
        read = self._direct(rows) if self.is_direct else self._reader.read(rows)
        return read.time, self._numbers(read)

    def _direct(self, rows: slice | I64) -> ChannelRows:
        """Return the same as the reader, which would read the times of all messages."""
        ch, index = self.channel, self.channel.log.index
        got = gather_rows(index, Want(ch.number, self._reader.projection.part.leaves, stored_time(ch)), rows)
        times = got.time
        if times is None:
            numbers = np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
            times = index.times_at(ch.number, numbers)
        return self._reader.from_columns(got, times)

    def _numbers(self, rows: ChannelRows) -> F64:
        """Return the values of the one curve in *rows*; raises UsageError if there are several or none."""
        column = rows.columns[0]
        numbers = [values for _, _, values in sample_numbers(self.field, self.unit, column)]
        if len(numbers) != 1:
            raise UsageError(why_no_curve(self.channel, self.field, column), path=self.channel.log.name)
        return numbers[0]

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


class SortedColumn(Protocol):
    """Rows of one field in order of time: int64 ns, and float64 with NaN for no value.

    unit  as stated by the schema, or empty
    """

    unit: str

    def __len__(self) -> int: ...

    def search(self, times: I64) -> I64:
        """Return int64[k]: for each time the number of rows that are earlier."""
        ...

    def read(self, rows: I64) -> tuple[I64, F64]:
        """Return times and values of ascending *rows*."""
        ...

    def extrema(self, first: int, last: int, edges: I64) -> tuple[I64, F64]:
        """Return times and values of first, least, greatest and last row in each interval between *edges*.

        first, last  half-open range of the rows that are meant, all of them between the outer edges
        """
        ...


class MemoryColumn:
    """A column that is whole in memory: *times* in order, and *values*."""

    def __init__(self, times: I64, values: F64, unit: str) -> None:
        self.times, self.values, self.unit = times, values, unit

    def __len__(self) -> int:
        return len(self.times)

    def search(self, times: I64) -> I64:
        """See SortedColumn."""
        return self.times.searchsorted(times)

    def read(self, rows: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        return self.times[rows], self.values[rows]

    def extrema(self, first: int, last: int, edges: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        times, values = self.times[first:last], self.values[first:last]
        rows = extrema_between(times, values, edges)
        return times[rows], values[rows]


class SampledColumn:
    """A column of which evenly spread rows stand for all, until something better is there; *field* is direct."""

    def __init__(self, field: FieldColumn) -> None:
        self._field, self.unit = field, field.unit

    def __len__(self) -> int:
        return self._field.messages

    def search(self, times: I64) -> I64:
        """See SortedColumn."""
        ch = self._field.channel
        rows = [-1 if (row := row_at(ch, max(t, TIME_MIN + 1) - 1)) is None else row for t in times.tolist()]
        return np.array(rows, np.int64) + 1

    def read(self, rows: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        return self._field.read(rows)

    def extrema(self, first: int, last: int, edges: I64) -> tuple[I64, F64]:
        """Return times and values of up to two rows for each interval."""
        return self.read(np.unique(np.linspace(first, last - 1, 2 * len(edges)).astype(np.int64)))


@dataclass(frozen=True, slots=True)
class ValueStatistics:
    """What the values of an interval are; None without any.

    count    number of finite values
    missing  number of rows without one
    rms      root of the mean of the squares
    """

    count: int
    missing: int
    min: float | None = None
    mean: float | None = None
    max: float | None = None
    rms: float | None = None


class Window:
    """The rows of a column with lo <= time < hi (ns); None: no bound.

    first, last  half-open range of rows
    """

    def __init__(self, column: SortedColumn, lo: int | None, hi: int | None) -> None:
        self.column = column
        bounds = column.search(
            np.array([0 if lo is None else lo, 0 if hi is None else hi], np.int64)
        ).tolist()
        self.first = 0 if lo is None else bounds[0]
        self.last = max(self.first, len(column) if hi is None else bounds[1])
        self._lo, self._hi = lo, hi

    def __len__(self) -> int:
        return self.last - self.first

    def points(self, pixels: int, most: int) -> tuple[I64, F64]:
        """Return times and values of all rows if there are at most *most*, else extrema of each of *pixels* intervals.

        One row before and one after the window are included, so that a line reaches its edges.
        """
        column, first, last = self.column, self.first, self.last
        if len(self) <= most:
            return column.read(np.arange(max(0, first - 1), min(len(column), last + 1)))
        edge_times = column.read(np.array([first, last - 1], np.int64))[0].tolist()
        start = edge_times[0] if self._lo is None else self._lo
        stop = edge_times[1] + 1 if self._hi is None else self._hi
        parts = [
            column.read(np.array([first - 1] if first else [], np.int64)),
            column.extrema(first, last, pixel_edges(start, stop, pixels)),
            column.read(np.array([last] if last < len(column) else [], np.int64)),
        ]
        return np.concatenate([t for t, _ in parts]), np.concatenate([v for _, v in parts])

    def statistics(self, check: Check = _no_check) -> ValueStatistics:
        """Return what all values of the window are, read piece by piece."""
        count, missing, total, squares, least, most = 0, 0, 0.0, 0.0, np.inf, -np.inf
        for lo in range(self.first, self.last, PIECE):
            check()
            values = self.column.read(np.arange(lo, min(self.last, lo + PIECE)))[1]
            known = values[np.isfinite(values)]
            count, missing = count + len(known), missing + len(values) - len(known)
            if len(known):
                total, squares = total + float(known.sum()), squares + float(known @ known)
                least, most = min(least, float(known.min())), max(most, float(known.max()))
        if not count:
            return ValueStatistics(0, missing)
        return ValueStatistics(count, missing, least, total / count, most, (squares / count) ** 0.5)

    def rows(self, most: int) -> I64:
        """Return the rows of the window; if there are more than *most*, that many of them, evenly spread."""
        if len(self) <= most:
            return np.arange(self.first, self.last)
        return np.linspace(self.first, self.last - 1, most).astype(np.int64)
