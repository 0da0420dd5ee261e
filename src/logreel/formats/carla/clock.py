"""Frames: when each one was, and which packets are in it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.formats.carla.definitions import layout
from logreel.index.gather import Want, gather
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.layout.nodes import Field, Scalar

FRAMES = layout("frames", wide=False)
#: The column of every other channel that tells the frame.
FRAME = Field("frame", Scalar("uint64"))
#: Seconds that nanoseconds of 64 bits can hold.
_MOST = 9e9


class Frames:
    """The frames of one recording, which its packets lie in by place.

    channel  of the FrameStarts in *index*
    """

    def __init__(self, index: MessageIndex, channel: int | None) -> None:
        self._index, self._channel = index, channel
        self._rows: dict[int, I64] = {}

    @cached_property
    def _columns(self) -> list[NDArray[np.uint8]]:
        """Bytes of number, duration and elapsed of each frame."""
        if self._channel is None:
            return [np.zeros(0, np.uint8)] * 3
        return gather(self._index, [Want(self._channel, FRAMES.leaves)])[0].columns

    @cached_property
    def start(self) -> I64:
        """int64[f]: where the payload of each FrameStart begins."""
        return self._index.offsets(self._channel) if self._channel is not None else np.zeros(0, np.int64)

    @cached_property
    def number(self) -> NDArray[np.uint64]:
        """uint64[f]: the recorder's number of each frame."""
        return self._columns[0].view(np.uint64)

    @cached_property
    def duration(self) -> NDArray[np.float64]:
        """float64[f]: seconds from this frame to the next one; -1 where the recording ends."""
        return self._columns[1].view(np.float64)

    @cached_property
    def elapsed(self) -> NDArray[np.float64]:
        """float64[f]: seconds since the recording began."""
        return self._columns[2].view(np.float64)

    @cached_property
    def time(self) -> I64:
        """int64[f]: the same in ns; where that is no number, 0."""
        seconds = np.nan_to_num(self.elapsed, nan=0.0, posinf=_MOST, neginf=-_MOST)
        return np.rint(np.clip(seconds, -_MOST, _MOST) * 1e9).astype(np.int64)

    def span(self) -> tuple[int | None, int | None]:
        """ns of the first and of the last frame, the earlier one first.

        Only frames count that agree with a neighbour: one's elapsed time and duration make the next one's elapsed time.
        """
        if not len(self.time):
            return None, None
        with np.errstate(all="ignore"):
            joined = self.elapsed[:-1] + self.duration[:-1] == self.elapsed[1:]
        agrees = np.append(joined, False) | np.append(False, joined)
        times = self.time[agrees] if agrees.any() else self.time
        first, last = int(times[0]), int(times[-1])
        return min(first, last), max(first, last)

    def rows(self, channel: int) -> I64:
        """int64[n]: the frame that each message of a channel lies in, by its place in these arrays; -1 before any."""
        if channel not in self._rows:
            at, start = self._index.offsets(channel), self.start
            one_each = len(at) == len(start) and (at >= start).all() and (at[:-1] < start[1:]).all()
            found = np.arange(len(at)) if one_each else start.searchsorted(at, side="right") - 1
            self._rows[channel] = found.astype(np.int64)
        return self._rows[channel]

    def times(self, channel: int, rows: I64 | slice = slice(None)) -> I64:
        """int64[n]: ns of these messages of a channel; before any frame, that of the first."""
        frame = self.rows(channel)[rows]
        return self.time[np.maximum(frame, 0)] if len(self.time) else np.zeros(len(frame), np.int64)

    def numbers(self, channel: int, rows: I64) -> list[NDArray[Any]]:
        """One array, uint64[n]: the number of the frame of these messages, 0 before any."""
        frame = self.rows(channel)[rows]
        if (frame >= 0).all():
            return [self.number[frame]]
        number = np.zeros(len(rows), np.uint64)
        number[frame >= 0] = self.number[frame[frame >= 0]]
        return [number]
