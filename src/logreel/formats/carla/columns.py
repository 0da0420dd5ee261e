"""Channels of one recording as NumPy arrays; each channel is read once, when it is first used."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.log.tables import DENSE, as_numpy, table

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log

Array = NDArray[Any]
XYZ = ("x", "y", "z")
#: Greatest number of seconds that fits into 64-bit nanoseconds.
MAX_SECONDS = 9e9
ROLL_PITCH_YAW = ("roll", "pitch", "yaw")


def metres(centimetres: Array) -> Array:
    """Return lengths in metres, float64."""
    # Signalling NaNs raise a floating-point warning.
    with np.errstate(invalid="ignore"):
        values: Array = centimetres.astype(np.float64) / 100.0
    return values


def _paths(table: pa.Table) -> Iterator[tuple[str, Any]]:
    """Yield path and Arrow column of every field; structs are split into their members."""
    import pyarrow as pa

    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_struct(column.type):
            inner = pa.table(column.flatten(), names=[field.name for field in column.type])
            yield from ((f"{name}.{path}", member) for path, member in _paths(inner))
        else:
            yield name, column


def _as_numpy(column: pa.ChunkedArray[Any]) -> Array:
    import pyarrow as pa

    array = column.combine_chunks()
    if pa.types.is_boolean(array.type):
        flags: Array = as_numpy(array.cast(pa.uint8())).view(bool)
        return flags
    if pa.types.is_nested(array.type) or pa.types.is_string(array.type):
        values = np.empty(len(array), object)
        values[:] = array.to_pylist()
        return values
    return as_numpy(array)


class RecordingColumns:
    """Fields of the channels of *log*, one row per record; empty if the recording has no such channel.

    Records of damaged packets that cannot be decoded are skipped.

    any_axes  False: raise UsageError for a log that was converted to other axes and units
    """

    def __init__(self, log: Log, any_axes: bool = False) -> None:
        if not (any_axes or log.has_other_axes):
            raise UsageError("this needs the log as recorded, not in the axes of ROS", path=log.name)
        self.log = log
        self._topics: dict[str, dict[str, Any]] = {}
        self._kept: dict[tuple[str, str], Array] = {}
        self._order: dict[tuple[str, str], tuple[Array, I64]] = {}
        self._frame_rows: dict[str, I64] = {}

    def __call__(self, topic: str, path: str) -> Array:
        """Return a field of all records of a topic; text and lists as objects."""
        if (topic, path) not in self._kept:
            column = self._columns(topic).get(path)
            self._kept[topic, path] = np.zeros(0) if column is None else _as_numpy(column)
        return self._kept[topic, path]

    def _columns(self, topic: str) -> dict[str, Any]:
        """Return all Arrow columns of a topic by path; they are decoded in one pass."""
        if topic not in self._topics:
            ch = self.log.channels.get(topic)
            self._topics[topic] = {} if ch is None else dict(_paths(table(ch, None, None, None, DENSE)))
        return self._topics[topic]

    def vector(self, topic: str, field: str, rows: Any = slice(None), names: tuple[str, ...] = XYZ) -> Array:
        """Return a vector field of the records at *rows*: [n, 3]."""
        return np.stack([self(topic, f"{field}.{name}")[rows] for name in names], axis=-1)

    def rows(self, topic: str, actor: int, field: str = "id") -> I64:
        """Return the rows of the records about one actor, in file order: int64[n]."""
        if (topic, field) not in self._order:
            ids = self(topic, field)
            order = np.argsort(ids, kind="stable")
            self._order[topic, field] = ids[order], order
        ids, order = self._order[topic, field]
        if not len(ids) or not ids[0] <= actor <= ids[-1]:
            return order[:0]
        # Another dtype would make searchsorted copy all ids at each call.
        wanted = ids.dtype.type(actor)
        return order[ids.searchsorted(wanted) : ids.searchsorted(wanted, side="right")]

    @cached_property
    def frame_ids(self) -> Array:
        """uint64[f]: numbers of the frames, in file order."""
        return self._of_frames("frame", 0).astype(np.uint64, copy=False)

    @cached_property
    def elapsed(self) -> Array:
        """float64[f]: seconds since the start."""
        return self._of_frames("elapsed", 0.0)

    @cached_property
    def duration(self) -> Array:
        """float64[f]: seconds; -1 for the last frame."""
        return self._of_frames("duration", -1.0)

    def _of_frames(self, path: str, alone: float) -> Array:
        """Return a field of all frames; if all frames are lost, of one frame that begins at time 0."""
        values = self("frames", path)
        return values if len(values) else np.array([alone])

    def times(self, frame_row: I64) -> I64:
        """Return the times of frames given by row, ns: int64[n]."""
        seconds = np.clip(np.nan_to_num(self.elapsed[frame_row]), -MAX_SECONDS, MAX_SECONDS)
        times: I64 = np.rint(seconds * 1e9).astype(np.int64)
        return times

    def frame_rows(self, topic: str) -> I64:
        """Return the row of the frame of each record: int64[n], never descending, whatever the frame numbers are."""
        if topic not in self._frame_rows:
            ids, first = self._ids
            rank = np.searchsorted(ids, self(topic, "frame"))
            frame_row = first[np.minimum(rank, len(ids) - 1)]
            self._frame_rows[topic] = np.maximum.accumulate(frame_row).astype(np.int64)
        return self._frame_rows[topic]

    def frame_row_of(self, frame: int) -> int:
        """Return the row of the frame with a number, or -1 if there is none."""
        ids, first = self._ids
        if not ids[0] <= frame <= ids[-1]:
            return -1
        rank = int(np.searchsorted(ids, np.uint64(frame)))
        return int(first[rank]) if ids[rank] == frame else -1

    @cached_property
    def _ids(self) -> tuple[Array, I64]:
        """Numbers of the frames in ascending order, and the first row with each."""
        ids, first = np.unique(self.frame_ids, return_index=True)
        return ids, first
