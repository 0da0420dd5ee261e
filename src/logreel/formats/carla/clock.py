"""Frames of a recording: their times, and the packets in each; the index of the packets takes times from them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.formats.carla.definitions import layout
from logreel.formats.carla.reader import Found
from logreel.formats.carla.records import FRAME_START
from logreel.index.channel_index import ChannelRules, FieldAt, IndexAccess, Rule, StoredValues
from logreel.index.gather import Want, gather
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Chunks, Source
from logreel.layout.nodes import Field, Scalar

FRAMES = layout("frames", wide=False)
#: Column that every other channel has: the number of its frame.
FRAME = Field("frame", Scalar("uint64"))
#: Greatest number of seconds that fits into 64-bit nanoseconds.
_MOST = 9e9


class Frames:
    """Frames of one recording; a packet belongs to the last frame that begins before it in the file.

    kinds  packet kind of each channel
    index  index of all channels; the time of a packet is that of its frame
    """

    def __init__(self, source: Source, content: Found) -> None:
        self.kinds = sorted(content.topics)
        #: Channel of the FrameStarts, if there are any.
        self._channel = self.kinds.index(FRAME_START) if FRAME_START in content.topics else None
        self._rows: dict[int, I64] = {}
        size = StoredValues(content.sizes)
        rules = [
            ChannelRules(
                FrameTimes(self, number), FRAMES.measure.least if packet_kind == FRAME_START else size
            )
            for number, packet_kind in enumerate(self.kinds)
        ]
        self.index = MessageIndex(Chunks(source), content.blocks.reshaped(self.kinds, 0), rules)

    @cached_property
    def _columns(self) -> list[NDArray[np.uint8]]:
        """Bytes of the columns number, duration and elapsed of all frames."""
        if self._channel is None:
            return [np.zeros(0, np.uint8)] * 3
        return gather(self.index, [Want(self._channel, FRAMES.leaves)])[0].columns

    @cached_property
    def start(self) -> I64:
        """int64[f]: offset of the payload of each FrameStart."""
        return self.index.offsets(self._channel) if self._channel is not None else np.zeros(0, np.int64)

    @cached_property
    def number(self) -> NDArray[np.uint64]:
        """uint64[f]: number of each frame as recorded."""
        return self._columns[0].view(np.uint64)

    @cached_property
    def duration(self) -> NDArray[np.float64]:
        """float64[f]: seconds from each frame to the next one; -1 for the last frame."""
        return self._columns[1].view(np.float64)

    @cached_property
    def elapsed(self) -> NDArray[np.float64]:
        """float64[f]: seconds since the recording began."""
        return self._columns[2].view(np.float64)

    @cached_property
    def time(self) -> I64:
        """int64[f]: ns since the recording began; 0 for NaN."""
        return _to_ns(self.elapsed)

    def span(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest of the times of the first and the last frame, ns; None without frames.

        Only frames that agree with a neighbour count: elapsed time plus duration is the elapsed time of the next frame.
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
        """Return the frame of each message of a channel as a row of these arrays, -1 before the first: int64[n]."""
        if channel not in self._rows:
            at, start = self.index.offsets(channel), self.start
            one_each = len(at) == len(start) and (at >= start).all() and (at[:-1] < start[1:]).all()
            rows = np.arange(len(at)) if one_each else start.searchsorted(at, side="right") - 1
            self._rows[channel] = rows.astype(np.int64)
        return self._rows[channel]

    def rows_at(self, channel: int, rows: I64 | slice) -> I64:
        """Return the frames of some messages of a channel like ``rows``, at the cost of these and of the frames."""
        if isinstance(rows, slice) or channel in self._rows or 4 * len(rows) > self.index.count(channel):
            return self.rows(channel)[rows]
        at = self.index.locate(channel, rows)[1]
        return self.start.searchsorted(at, side="right").astype(np.int64) - 1

    def _of_frames(self, name: str, frame: I64) -> NDArray[Any]:
        """Return ``number`` or ``elapsed`` of some frames, at the cost of these."""
        if "_columns" in self.__dict__ or 4 * len(frame) > len(self.start):
            values: NDArray[Any] = getattr(self, name)[frame]
            return values
        skip = {"number": 0, "elapsed": 16}[name]
        raw = FieldAt(skip, 8).read(self.index.chunks[FILE], self.start[frame])
        return raw.view(np.uint64 if name == "number" else np.float64)

    def times(self, channel: int, rows: I64 | slice = slice(None)) -> I64:
        """Return the times of some messages of a channel, ns: int64[n]; before the first frame its time counts."""
        frame = self.rows_at(channel, rows)
        if not len(self.start):
            return np.zeros(len(frame), np.int64)
        return _to_ns(self._of_frames("elapsed", np.maximum(frame, 0)))

    def numbers(self, channel: int, rows: I64) -> list[NDArray[Any]]:
        """Return one array, the frame numbers of some messages of a channel: uint64[n]; 0 before the first frame."""
        frame = self.rows_at(channel, rows)
        number = np.zeros(len(rows), np.uint64)
        number[frame >= 0] = self._of_frames("number", frame[frame >= 0])
        return [number]


class FrameTimes(Rule):
    """The times of the packets of one channel: those of their frames."""

    reads_messages = True

    def __init__(self, frames: Frames, channel: int) -> None:
        self._frames, self._channel = frames, channel

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return the times of all messages, or of those at *rows*."""
        return self._frames.times(self._channel, slice(None) if rows is None else rows)


def _to_ns(elapsed: NDArray[np.float64]) -> I64:
    seconds = np.nan_to_num(elapsed, nan=0.0, posinf=_MOST, neginf=-_MOST)
    return np.rint(np.clip(seconds, -_MOST, _MOST) * 1e9).astype(np.int64)
