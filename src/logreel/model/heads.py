"""Records of many messages at once: each payload behind the head of its channel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.kernels import compose as kernel

I64 = NDArray[np.int64]
Bytes1 = NDArray[np.uint8]

#: How times are written, see kernels/compose.py; positive numbers are ns per unit of a float64.
SECONDS_AND_NANOSECONDS, NANOSECONDS_TWICE = 0, -2
#: As u64 microseconds in the payload, whose place counts from the head's; where the payload is long enough.
MICROSECONDS_INSIDE = -1000
NOWHERE = -1


def joined(data: Bytes1, start: I64, size: I64) -> Bytes1:
    """uint8[sum of size]: the stretches data[start[i]:start[i] + size[i]], one after another."""
    out = np.empty(int(size.sum()), np.uint8)
    put_at(out, np.cumsum(size) - size, data, start, size)
    return out


def put_at(out: Bytes1, place: I64, data: Bytes1, start: I64, size: I64) -> None:
    """Copy the stretches data[start[i]:start[i] + size[i]] to place[i] in *out*."""
    nothing = np.zeros(len(start), np.int64)
    shape, stamp = np.array([[0, 0, NOWHERE, 0, 0]], np.int64), np.array([[NOWHERE, 0]], np.int64)
    head, channel = np.zeros(1, np.uint8), nothing.astype(np.int32)
    start, size, place = (np.ascontiguousarray(a, np.int64) for a in (start, size, place))
    kernel.compose(data, channel, nothing, start, size, head, shape, stamp, place, out)


@dataclass(slots=True)
class Heads:
    """What stands before the payloads of each channel.

    Heads are added in the order of channel numbers; ``compose`` makes records of messages.
    """

    _bytes: bytearray = field(default_factory=bytearray)
    _rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    _known: I64 = field(default_factory=lambda: np.zeros((0, 7), np.int64))

    def add(
        self,
        head: bytes,
        size_at: int = NOWHERE,
        size_width: int = 4,
        size_add: int = 0,
        time_at: int = NOWHERE,
        time_kind: int = SECONDS_AND_NANOSECONDS,
    ) -> None:
        """The head of the next channel: where in it the size of the payload stands, plus *size_add*, and the time."""
        self._rows.append((len(self._bytes), len(head), size_at, size_width, size_add, time_at, time_kind))
        self._bytes += head

    @property
    def _table(self) -> I64:
        """int64[k, 7]: what the kernel has to know of each head; made anew where there are more heads."""
        if len(self._known) != len(self._rows):
            self._known = np.array(self._rows, np.int64).reshape(-1, 7)
        return self._known

    def places(self, channel: NDArray[np.int32], size: I64) -> I64:
        """int64[n + 1]: where each record begins when they lie one after another, and the end."""
        place = np.zeros(len(channel) + 1, np.int64)
        np.cumsum(self._table[:, 1][channel] + size, out=place[1:])
        return place

    def compose(
        self, channel: NDArray[np.int32], time: I64, data: Bytes1, start: I64, size: I64, place: I64
    ) -> Bytes1:
        """The records of messages one after another; *place* is what ``places`` gave."""
        out = np.empty(int(place[-1]), np.uint8)
        kernel.compose(
            data,
            np.ascontiguousarray(channel, np.int32),
            np.ascontiguousarray(time, np.int64),
            np.ascontiguousarray(start, np.int64),
            np.ascontiguousarray(size, np.int64),
            np.frombuffer(self._bytes, np.uint8),
            np.ascontiguousarray(self._table[:, :5]),
            np.ascontiguousarray(self._table[:, 5:]),
            place,
            out,
        )
        return out
