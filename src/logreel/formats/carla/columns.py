"""The channels of one recording as plain arrays, each read once, when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from logreel.model.log import Log

Array = NDArray[Any]
I64 = NDArray[np.int64]
XYZ = ("x", "y", "z")
#: Seconds that nanoseconds of 64 bits can hold.
MOST = 9e9
TURN = ("roll", "pitch", "yaw")


class Columns:
    """Fields of the channels of *log*, one row per record; empty where the recording has no such channel."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self._kept: dict[tuple[str, str], Array] = {}
        self._order: dict[tuple[str, str], tuple[Array, I64]] = {}

    def __call__(self, topic: str, path: str) -> Array:
        """One field of all records."""
        if (topic, path) not in self._kept:
            there = topic in self.log.channels
            self._kept[topic, path] = self.log[topic][path] if there else np.zeros(0)
        return self._kept[topic, path]

    def vector(self, topic: str, field: str, rows: Any = slice(None), names: tuple[str, ...] = XYZ) -> Array:
        """[n, 3]: a vector of the records at *rows*."""
        return np.stack([self(topic, f"{field}.{name}")[rows] for name in names], axis=-1)

    def rows(self, topic: str, actor: int, field: str = "id") -> I64:
        """The records about one actor, in file order."""
        if (topic, field) not in self._order:
            ids = self(topic, field)
            order = np.argsort(ids, kind="stable")
            self._order[topic, field] = ids[order], order
        ids, order = self._order[topic, field]
        if not len(ids) or not ids[0] <= actor <= ids[-1]:
            return order[:0]
        # Of the same type: else all ids would be copied into another one at each call.
        wanted = ids.dtype.type(actor)
        return order[ids.searchsorted(wanted) : ids.searchsorted(wanted, side="right")]

    @cached_property
    def _frames(self) -> tuple[Array, I64]:
        """Ids of the frames in ascending order, and the row in which each first stands."""
        ids, first = np.unique(self("frames", "frame"), return_index=True)
        return ids, first

    @property
    def frame_ids(self) -> Array:
        """uint64[f]: ids of the frames, ascending."""
        return self._frames[0]

    @cached_property
    def elapsed(self) -> Array:
        """float64[f]: seconds since the start."""
        return self("frames", "elapsed")[self._frames[1]]

    @cached_property
    def duration(self) -> Array:
        """float64[f]: seconds; -1 for the last frame."""
        return self("frames", "duration")[self._frames[1]]

    def times(self, place: I64) -> I64:
        """int64[n]: ns of the frames with these numbers."""
        seconds = np.clip(np.nan_to_num(self.elapsed[place]), -MOST, MOST)
        found: I64 = np.rint(seconds * 1e9).astype(np.int64)
        return found

    def place(self, topic: str) -> I64:
        """int64[n]: number of the frame of each record, counted from 0."""
        found = np.searchsorted(self.frame_ids, self(topic, "frame")).astype(np.int64)
        return np.minimum(found, max(len(self.frame_ids) - 1, 0))
