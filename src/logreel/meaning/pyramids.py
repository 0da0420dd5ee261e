"""Pyramids of a field: extrema of any window of a large log without reading the window.

A pyramid has the least and the greatest value of each group of 16 rows with their places, of 16 such groups, and so on
(``kernels.pyramid``), and the time of every sixteenth row. What is exact to the row is read from the log itself, which
takes some thousand rows for a picture; channels that cannot be read so, because their messages must be walked or
unpacked, or are not in order of time, have their times and values in the pyramid.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.io.arrays import F64, I64, keep_freed_memory
from logreel.io.platform import Mapped, map_file, map_shared, pool, replace, write_at
from logreel.io.source import MapGuard
from logreel.io.trusted_file import open_trusted
from logreel.kernels import pyramid as kernel
from logreel.kernels.pyramid import FACTOR
from logreel.meaning.columns import FieldColumn, MemoryColumn, SortedColumn
from logreel.registry.index_cache import cache_folder, make_cache, prune

MAGIC = b"LOGREELP"
SUFFIX = ".logreel-pyramid"
_ALIGN, _HEAD = 64, 4096
#: Rows of a file that is believed; more would be no log of this world.
_MOST_ROWS = 1 << 48


@dataclass(frozen=True)
class PyramidShape:
    """Sizes of the arrays of a pyramid.

    rows    number of rows
    stored  whether times and values of all rows are in the file; else only the time of every sixteenth
    """

    rows: int
    stored: bool

    @cached_property
    def begin(self) -> I64:
        """int64[k + 1]: where the groups of each level begin, the finest first; the last is their number."""
        ends, groups = [0], self.rows
        while groups > (0 if len(ends) == 1 else FACTOR):
            groups = -(-groups // FACTOR)
            ends.append(ends[-1] + groups)
        return np.array(ends, np.int64)

    @cached_property
    def arrays(self) -> dict[str, tuple[int, int, str]]:
        """Offset in the file, length and type of each array."""
        groups = int(self.begin[-1])
        times = self.rows if self.stored else -(-self.rows // FACTOR)
        lengths = {
            "time": (times, "<i8"),
            "value": (self.rows if self.stored else 0, "<f8"),
            "least": (groups, "<f8"),
            "most": (groups, "<f8"),
            "least_at": (groups, "|u1"),
            "most_at": (groups, "|u1"),
        }
        offsets, at = {}, _HEAD
        for name, (length, dtype) in lengths.items():
            offsets[name] = (at, length, dtype)
            at += -(-length * np.dtype(dtype).itemsize // _ALIGN) * _ALIGN
        offsets["end"] = (at, 0, "|u1")
        return offsets

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.arrays["end"][0]


@dataclass(frozen=True, slots=True)
class Levels:
    """Extrema of the groups of all levels of a pyramid; arrays as in PyramidFile and PyramidShape."""

    begin: I64
    least: F64
    most: F64
    least_at: NDArray[np.uint8]
    most_at: NDArray[np.uint8]

    @classmethod
    def of(cls, values: F64) -> Levels:
        """Return the levels above *values*, float64[n], in memory: 1.2 bytes a value."""
        begin = PyramidShape(len(values), False).begin
        groups = int(begin[-1])
        levels = cls(
            begin, np.empty(groups), np.empty(groups), np.empty(groups, np.uint8), np.empty(groups, np.uint8)
        )
        low = high = np.ascontiguousarray(values)
        for lo, hi in pairwise(begin.tolist()):
            least, most = levels.least[lo:hi], levels.most[lo:hi]
            kernel.fold(low, high, least, most, levels.least_at[lo:hi], levels.most_at[lo:hi])
            low, high = least, most
        return levels

    def extreme_rows(self, column: SortedColumn, first: int, last: int, edges: I64) -> I64:
        """Return the rows of first, least, greatest and last value in each interval; see ``SortedColumn.extrema``.

        column  the column that this is the pyramid of
        """
        rows = len(column)
        bounds = np.clip(column.search(edges), first, last)
        bounds[0], bounds[-1] = first, last
        bounds = np.unique(np.maximum.accumulate(bounds))
        group = np.unique(bounds // FACTOR)
        group = group[group * FACTOR < rows]
        _, raw = groups_of(column, group)
        places = np.empty((len(bounds) - 1, 2), np.int64)
        kernel.extrema(
            bounds, group, raw, self.begin, self.least, self.most, self.least_at, self.most_at, rows, places
        )
        return np.unique(np.concatenate([bounds[:-1], bounds[1:] - 1, places[places >= 0]]))


def groups_of(column: SortedColumn, numbers: I64) -> tuple[I64, F64]:
    """Return int64[g, 16], float64[g, 16]: times and values of groups; the latest time and NaN behind the end."""
    n = len(column)
    rows = (numbers[:, None] * FACTOR + np.arange(FACTOR)).ravel()
    inside = rows < n
    times = np.full(len(rows), np.iinfo(np.int64).max)
    values = np.full(len(rows), np.nan)
    times[inside], values[inside] = column.read(rows[inside])
    return times.reshape(-1, FACTOR), values.reshape(-1, FACTOR)


class FoldedColumn(MemoryColumn):
    """A column in memory with a pyramid, built when extrema are first asked for: a window costs what it shows."""

    @cached_property
    def _levels(self) -> Levels:
        return Levels.of(self.values)

    def extrema(self, first: int, last: int, edges: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        return self.read(self._levels.extreme_rows(self, first, last, edges))


class PyramidFile:
    """A mapped file of a pyramid.

    time      int64[n or ceil(n / 16)] ns, in order
    value     float64[n], or empty
    least, most  float64[m] of the groups of all levels
    least_at, most_at  uint8[m]: which item of the group that is
    """

    def __init__(self, data: Mapped, shape: PyramidShape, place: str, file: BinaryIO | None = None) -> None:
        self.shape, self._file = shape, file
        # Writing the rest of it is no change of a file that is being made.
        mapped = np.frombuffer(data, np.uint8)
        self._data = data
        self._guard = MapGuard(mapped, data, place, None, True) if isinstance(data, mmap.mmap) else None

        def array(name: str) -> NDArray[Any]:
            at, length, dtype = shape.arrays[name]
            # A part of the watched array, which is watched as long as one of its parts is used.
            return mapped[at : at + length * np.dtype(dtype).itemsize].view(dtype)

        self.time: I64 = array("time")
        self.value: F64 = array("value")
        self.least: F64 = array("least")
        self.most: F64 = array("most")
        self.least_at: NDArray[np.uint8] = array("least_at")
        self.most_at: NDArray[np.uint8] = array("most_at")

    def check(self) -> None:
        """Raise FileChangedError if the file was truncated since it was mapped; its arrays then have zeros."""
        if self._guard is not None:
            self._guard.check()

    @property
    def is_whole(self) -> bool:
        """Whether the file has all bytes that it had when it was mapped."""
        return self._guard is None or self._guard.error() is None

    def store(self, name: str, at: int, values: NDArray[Any]) -> None:
        """Write *values* into the array *name* from item *at* on; only for files that ``new_file`` made.

        Writing costs less than the page faults of stores into the mapping, and a full disk is an error in place of a
        signal. The arrays show what is written. Raises OSError.
        """
        begin, length, dtype = self.shape.arrays[name]
        data = np.ascontiguousarray(values, dtype)
        if self._file is None or not 0 <= at <= at + len(data) <= length:
            raise ValueError(f"{len(data)} items at {at} do not fit into {name}")
        write_at(self._file.fileno(), data.view(np.uint8).data, begin + at * data.itemsize, self._data)

    @classmethod
    def load(cls, place: str, key: str) -> PyramidFile | None:
        """Return the file at *place* if it is a whole one with this key, else None."""
        try:
            file = open_trusted(Path(place))
            if file is None:
                return None
            with file:
                head = file.read(_HEAD)
                length = int.from_bytes(head[8:16], "little")
                if head[:8] != MAGIC or length > _HEAD - 16:
                    return None
                stated = json.loads(head[16 : 16 + length])
                if stated["key"] != key or stated["version"] != __version__:
                    return None
                rows, stored = stated["rows"], stated["stored"]
                if type(rows) is not int or not 0 < rows < _MOST_ROWS or type(stored) is not bool:
                    return None
                shape = PyramidShape(rows, stored)
                if os.fstat(file.fileno()).st_size != shape.size:
                    return None
                with contextlib.suppress(OSError):
                    # The least recently used files are removed first.
                    os.utime(place)
                return cls(map_file(file.fileno())[0], shape, place)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


@contextmanager
def new_file(place: str | None, key: str, shape: PyramidShape) -> Iterator[PyramidFile]:
    """Yield a file to fill, which gets its name at the end of the block, and none if that raises.

    place  None, or a folder that cannot be written to: a file without a name
    """
    file, name = _opened(place)
    try:
        with file:
            head = json.dumps(
                {"version": __version__, "key": key, "rows": shape.rows, "stored": shape.stored}
            )
            text = head.encode()
            file.write(MAGIC + len(text).to_bytes(8, "little") + text)
            file.truncate(shape.size)
            file.flush()
            data = map_shared(file.fileno(), shape.size)
            yield PyramidFile(data, shape, name or "a temporary file", file)
        if name is not None and place is not None:
            replace(name, place)
            prune(Path(place).parent, SUFFIX)
    except BaseException:
        if name is not None:
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise


def _opened(place: str | None) -> tuple[BinaryIO, str | None]:
    if place is not None:
        name = f"{place}.{os.getpid()}-{threading.get_ident()}"
        with contextlib.suppress(OSError):
            make_cache(Path(place).parent)
            return open(name, "w+b"), name
    return tempfile.TemporaryFile(), None


def key_of(*texts: str) -> str:
    """Return the key for a log (its size, time and digest), a topic and a field, however long these are."""
    return sha256(json.dumps(texts).encode()).hexdigest()


def place_of(key: str) -> str | None:
    """Return the path in the cache folder for the pyramid with this key; None without such a folder."""
    folder = cache_folder()
    return None if folder is None else os.fspath(folder / f"{key[:40]}{SUFFIX}")


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
        earlier = self._search(times)
        self._file.check()
        return earlier

    def _search(self, times: I64) -> I64:
        file = self._file
        if self.is_stored:
            return file.time.searchsorted(times)
        # The group whose first row is earlier, while that of the next one is not.
        group = np.maximum(file.time.searchsorted(times) - 1, 0)
        known, where = np.unique(group, return_inverse=True)
        at, _ = groups_of(self, known)
        earlier: I64 = group * FACTOR + (at[where] < times[:, None]).sum(axis=1)
        return earlier

    def read(self, rows: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        if self.is_stored:
            times, values = self._file.time[rows], self._file.value[rows]
            self._file.check()
            return times, values
        return self._field.read(rows)

    def extrema(self, first: int, last: int, edges: I64) -> tuple[I64, F64]:
        """See SortedColumn."""
        file = self._file
        levels = Levels(file.shape.begin, file.least, file.most, file.least_at, file.most_at)
        rows = levels.extreme_rows(self, first, last, edges)
        file.check()
        return self.read(rows)


def _direct(
    column: FieldColumn, key: str, progress: Progress, guard: Guard, place: str | None
) -> PyramidFile:
    """Build the pyramid of a column whose rows stay in the log; raises _NotInOrder."""
    n = column.messages
    with new_file(place, key, PyramidShape(n, False)) as file, pool(1, "logreel-fold") as folder:
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
            folding = folder.submit(_fold_piece, file, lo, times, values)
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
        with new_file(place, key, PyramidShape(n, True)) as file:
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
    for name, groups_of_level in (
        ("least", least),
        ("most", most),
        ("least_at", least_at),
        ("most_at", most_at),
    ):
        file.store(name, at, groups_of_level)
