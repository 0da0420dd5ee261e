"""Columns in order of time, from which windows are drawn: whole in memory, or by a pyramid."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from logreel.index.block_table import TIME_MIN
from logreel.io.arrays import I64
from logreel.ops.query.curves import F64, extrema_between, pixel_edges
from logreel.ops.query.field_column import FieldColumn
from logreel.ops.query.rows_at import row_at


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

    def rows(self, most: int) -> I64:
        """Return the rows of the window; if there are more than *most*, that many of them, evenly spread."""
        if len(self) <= most:
            return np.arange(self.first, self.last)
        return np.linspace(self.first, self.last - 1, most).astype(np.int64)
