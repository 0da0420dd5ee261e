"""Pyramids of a field: extrema of any window of a large log without reading the window.

A pyramid has the least and the greatest value of each group of 16 rows with their places, of 16 such groups, and so on
(``kernels.pyramid``), and the time of every sixteenth row. What is exact to the row is read from the log itself, which
takes some thousand rows for a picture; channels that cannot be read so, because their messages must be walked or
unpacked, or are not in order of time, have their times and values in the pyramid.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from logreel.io.arrays import I64, keep_freed_memory
from logreel.kernels import pyramid as kernel
from logreel.ops.query.curves import F64
from logreel.ops.query.field_column import FieldColumn
from logreel.ops.query.pyramid_file import PyramidFile, Shape, new_file

FACTOR = kernel.FACTOR
#: Rows that are folded at once.
STEP = 1 << 18
#: Enters a block in which rows are read, such as one that locks the log.
Guard = Callable[[], AbstractContextManager[object]]
#: Called between pieces with the part that is done, 0 … 1; raises to end the work.
Progress = Callable[[float], None]


class _NotInOrder(Exception):
    """Times decrease."""


@dataclass(frozen=True, slots=True)
class Pyramid:
    """The arrays of a pyramid; see PyramidFile."""

    file: PyramidFile

    @classmethod
    def build(
        cls,
        column: FieldColumn,
        key: str,
        progress: Progress,
        guard: Guard = nullcontext,
        place: str | None = None,
    ) -> Pyramid:
        """Return the pyramid of *column*, built in one pass over it in pieces.

        key    of log, channel and field, see ``key_of``: what the file must say to be used again
        place  path of the file; None: a file without a name, which ends with this process
        """
        keep_freed_memory()
        if column.is_direct:
            try:
                return cls(_direct(column, key, progress, guard, place))
            except _NotInOrder:
                pass
        return cls(_stored(column, key, progress, guard, place))

    @classmethod
    def load(cls, column: FieldColumn, key: str, place: str) -> Pyramid | None:
        """Return the pyramid in a file that *build* wrote for the same key; None if there is none."""
        file = PyramidFile.load(place, key)
        if file is None or (
            not file.shape.stored and (not column.is_direct or file.shape.rows != column.messages)
        ):
            return None
        return cls(file)

    def column(self, field: FieldColumn) -> PyramidColumn:
        """Return the column of *field* with this pyramid."""
        return PyramidColumn(self.file, field)


class PyramidColumn:
    """A SortedColumn that is not in memory; see there."""

    def __init__(self, file: PyramidFile, field: FieldColumn) -> None:
        self._file, self._field = file, field
        self.unit = field.unit

    @property
    def is_whole(self) -> bool:
        """Whether the file of the pyramid was not truncated."""
        return self._file.is_whole

    @property
    def is_stored(self) -> bool:
        """Whether all rows are in the file of the pyramid, so that the log is not read."""
        return self._file.shape.stored

    def __len__(self) -> int:
        return self._file.shape.rows

    def search(self, times: I64) -> I64:
        """See SortedColumn; raises FileChangedError if the file of the pyramid was truncated."""
        found = self._search(times)
        self._file.check()
        return found

    def _search(self, times: I64) -> I64:
        file = self._file
        if self.is_stored:
            return file.time.searchsorted(times)
        # The group whose first row is earlier, while that of the next one is not.
        group = np.maximum(file.time.searchsorted(times) - 1, 0)
        known, where = np.unique(group, return_inverse=True)
        at, _ = self._groups(known)
        earlier: I64 = group * FACTOR + (at[where] < times[:, None]).sum(axis=1)
        return earlier

    def read(self, rows: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        if self.is_stored:
            times, values = self._file.time[rows], self._file.value[rows]
            self._file.check()
            return times, values
        return self._field.read(rows)

    def _groups(self, numbers: I64) -> tuple[I64, F64]:
        """Return int64[g, 16], float64[g, 16]: times and values of groups; the latest time and NaN behind the end."""
        n = len(self)
        rows = (numbers[:, None] * FACTOR + np.arange(FACTOR)).ravel()
        inside = rows < n
        times = np.full(len(rows), np.iinfo(np.int64).max)
        values = np.full(len(rows), np.nan)
        times[inside], values[inside] = self.read(rows[inside])
        return times.reshape(-1, FACTOR), values.reshape(-1, FACTOR)

    def extrema(self, first: int, last: int, edges: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        bounds = np.clip(self.search(edges), first, last)
        bounds[0], bounds[-1] = first, last
        bounds = np.unique(np.maximum.accumulate(bounds))
        group = np.unique(bounds // FACTOR)
        group = group[group * FACTOR < len(self)]
        _, raw = self._groups(group)
        found = np.empty((len(bounds) - 1, 2), np.int64)
        file = self._file
        kernel.extrema(
            bounds, group, raw, file.shape.begin, file.least, file.most, file.least_at, file.most_at, len(self), found
        )  # fmt: skip
        file.check()
        rows = np.unique(np.concatenate([bounds[:-1], bounds[1:] - 1, found[found >= 0]]))
        return self.read(rows)


def _direct(
    column: FieldColumn, key: str, progress: Progress, guard: Guard, place: str | None
) -> PyramidFile:
    """Build the pyramid of a column whose rows stay in the log; raises _NotInOrder."""
    n = column.messages
    with new_file(place, key, Shape(n, False)) as file, ThreadPoolExecutor(1, "logreel-fold") as pool:
        latest, folding = None, None
        for lo in range(0, n, STEP):
            progress(lo / n)
            with guard():
                times, values = column.read(slice(lo, min(n, lo + STEP)))
            if latest is not None and times[0] < latest:
                raise _NotInOrder
            latest = times[-1]
            # One piece is folded while the next one is read: both take about as long, and neither holds the GIL.
            if folding is not None:
                folding.result()
            folding = pool.submit(_fold_piece, file, lo, times, values)
        if folding is not None:
            folding.result()
        _fold_levels(file)
    return file


def _fold_piece(file: PyramidFile, lo: int, times: I64, values: F64) -> None:
    """Fold the times and values of the rows that begin at *lo*; raises _NotInOrder."""
    if (times[1:] < times[:-1]).any():
        raise _NotInOrder
    file.store("time", lo // FACTOR, times[::FACTOR])
    _fold_rows(file, lo, values)


def _stored(
    column: FieldColumn, key: str, progress: Progress, guard: Guard, place: str | None
) -> PyramidFile:
    """Build the pyramid of a column with its times and values."""
    with tempfile.TemporaryFile() as times_file, tempfile.TemporaryFile() as values_file:
        n, latest, in_order = 0, None, True
        for lo in range(0, column.messages, column.step):
            progress(lo / column.messages)
            with guard():
                times, values = column.read(slice(lo, min(column.messages, lo + column.step)))
            if len(times):
                in_order &= bool((times[1:] >= times[:-1]).all()) and (latest is None or times[0] >= latest)
                latest = times[-1]
            n += len(times)
            times_file.write(times.tobytes())
            values_file.write(values.tobytes())
        times_file.flush()
        values_file.flush()
        every_time = np.memmap(times_file, np.int64, "r", shape=n) if n else np.zeros(0, np.int64)
        every_value = np.memmap(values_file, np.float64, "r", shape=n) if n else np.zeros(0)
        order = None if in_order else np.argsort(every_time, kind="stable")
        with new_file(place, key, Shape(n, True)) as file:
            for lo in range(0, n, STEP):
                progress(1.0)
                rows = slice(lo, min(n, lo + STEP)) if order is None else order[lo : lo + STEP]
                values = every_value[rows]
                file.store("time", lo, every_time[rows])
                file.store("value", lo, values)
                _fold_rows(file, lo, values)
            _fold_levels(file)
    return file


def _fold_rows(file: PyramidFile, lo: int, values: F64) -> None:
    """Fill the groups of the finest level from the rows that begin at *lo*, a multiple of the group."""
    values = np.ascontiguousarray(values)
    _fold(file, lo // FACTOR, values, values)


def _fold_levels(file: PyramidFile) -> None:
    """Fill all levels from the finest one."""
    begin = file.shape.begin.tolist()
    for below, here in pairwise(begin[:-1]):
        _fold(file, here, file.least[below:here], file.most[below:here])


def _fold(file: PyramidFile, at: int, low: F64, high: F64) -> None:
    """Fill the groups of a level from group *at* on, from least and greatest values of the level below."""
    groups = -(-len(low) // FACTOR)
    least, most = np.empty(groups), np.empty(groups)
    least_at, most_at = np.empty(groups, np.uint8), np.empty(groups, np.uint8)
    kernel.fold(low, high, least, most, least_at, most_at)
    for name, found in (("least", least), ("most", most), ("least_at", least_at), ("most_at", most_at)):
        file.store(name, at, found)
