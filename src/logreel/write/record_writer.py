"""FormatWriters of records in batches, with a declaration of each channel before its first message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.source import Buffer
from logreel.kernels import records as kernel
from logreel.write.format_writer import FormatWriter
from logreel.write.payloads import Payload, Payloads
from logreel.write.schema_maker import SchemaMaker

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


class RecordWriter(FormatWriter):
    """Writes batches of records; each channel is declared before its first message.

    A format may have several headers per channel: each of them is a channel here.
    """

    def __init__(self, out: Appender, schemas: SchemaMaker | None = None) -> None:
        super().__init__(out, schemas)
        self._headers = RecordHeaders()
        #: Whether each channel is yet to be declared.
        self._fresh = GrowingArray(np.bool_)

    def declare(self, number: int) -> None:
        """Write what comes before the first message of a channel."""

    def batch_limit(self) -> int:
        """Return the bytes after which a batch ends, with the message that exceeds them."""
        raise NotImplementedError

    def write_records(
        self, channel: NDArray[np.int32], time: I64, place: I64, made: Buffer, side_columns: I64 | None
    ) -> None:
        """Write records; *place*, int64[n], is the start of each in *made*, *side_columns* as in Payloads."""
        raise NotImplementedError

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message."""
        if not self.earliest <= time <= self.latest:
            self._refuse(time)
        super().message(channel, time, data)

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages, batch by batch; none of them if one cannot be written."""
        if not len(channel):
            return
        for moment in (int(time.min()), int(time.max())):
            if not self.earliest <= moment <= self.latest:
                self._refuse(moment)
        largest = int(payloads.size.max())
        if largest > self.largest:
            raise UsageError(f"a message of {largest} bytes; {self.title} holds at most {self.largest}")
        self._append(channel, time, payloads)

    def _refuse(self, time: int) -> None:
        raise UsageError(f"time {time} ns; {self.title} holds {self.earliest} to {self.latest}")

    def _append(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        place = self._headers.places(channel, payloads.size)
        # First messages of the channels that are yet to be declared, from last to first.
        unknown = np.flatnonzero(self._fresh.rows.take(channel))
        due = unknown[np.unique(channel[unknown], return_index=True)[1]] if len(unknown) else unknown
        first = np.sort(due)[::-1].tolist()
        lo = 0
        while lo < len(channel):
            hi = int(np.searchsorted(place, place[lo] + self.batch_limit(), side="right"))
            hi = min(max(hi, lo + 1), len(channel))
            if first and first[-1] == lo:
                first.pop()
                self._fresh.rows[channel[lo]] = False
                self.declare(int(channel[lo]))
                continue
            hi = min(hi, first[-1]) if first else hi
            at, places, part = slice(lo, hi), place[lo : hi + 1] - place[lo], payloads.rows(slice(lo, hi))
            made = self._headers.compose(channel[at], time[at], part, places)
            self.write_records(channel[at], time[at], places[:-1], made, part.side_columns)
            lo = hi
