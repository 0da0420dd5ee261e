"""Records of many messages: each payload after the header of its channel."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.kernels import records as kernel
from logreel.write.payloads import Payloads

#: How times are written, see kernels/records.py; positive numbers are ns per unit of a float64.
SECONDS_AND_NANOSECONDS, NANOSECONDS_TWICE = 0, -2
#: As uint64 microseconds in the payload, at an offset from the start of the header, if the payload is long enough.
MICROSECONDS_INSIDE = kernel.MICROSECONDS_INSIDE
NOWHERE = -1


@dataclass(slots=True)
class RecordHeaders:
    """Headers of the records of each channel, added in the order of channel numbers; ``compose`` writes records."""

    _bytes: bytearray = field(default_factory=bytearray)
    _rows: list[tuple[int, int, int, int, int, int, int]] = field(default_factory=list)
    _known: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, kernel.HEADER))

    def add(
        self,
        head: bytes,
        size_at: int = NOWHERE,
        size_width: int = 4,
        size_add: int = 0,
        time_at: int = NOWHERE,
        time_kind: int = SECONDS_AND_NANOSECONDS,
    ) -> None:
        """Add the header of the next channel, with the offsets of the payload size (plus *size_add*) and the time."""
        self._rows.append((len(self._bytes), len(head), size_at, size_width, size_add, time_at, time_kind))
        self._bytes += head

    @property
    def _table(self) -> NDArray[np.void]:
        """Table of the kernel; rebuilt when headers were added."""
        if len(self._known) != len(self._rows):
            self._known = np.array(self._rows, kernel.HEADER)
        return self._known

    def places(self, channel: NDArray[np.int32], size: I64) -> I64:
        """Return int64[n + 1]: the start of each record when they are written one after another, and the end."""
        place = np.empty(len(channel) + 1, np.int64)
        channel, size = np.ascontiguousarray(channel, np.int32), np.ascontiguousarray(size, np.int64)
        kernel.record_offsets(channel, size, self._table, place)
        return place

    def compose(
        self,
        channel: NDArray[np.int32],
        time: I64,
        payloads: Payloads,
        place: I64,
        out: Buffer | None = None,
    ) -> Buffer:
        """Return the records of messages one after another, in *out* or new memory; *place*: as from ``places``."""
        out = np.empty(int(place[-1]), np.uint8) if out is None else out
        table = self._table
        if len(channel) < len(table):
            # The kernel checks all headers that it gets: those of other channels are left out.
            numbers, turns = np.unique(channel, return_inverse=True)
            table, channel = table[numbers], turns.astype(np.int32)
        payloads.compose(channel, time, np.frombuffer(self._bytes, np.uint8), table, place, out)
        return out
