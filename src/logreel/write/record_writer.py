"""FormatWriters of records in batches, with a declaration of each channel before its first message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.chunks import Buffer
from logreel.write.format_writer import FormatWriter
from logreel.write.payloads import Payload, Payloads
from logreel.write.record_headers import RecordHeaders
from logreel.write.schema_maker import SchemaMaker


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
            at, places, some = slice(lo, hi), place[lo : hi + 1] - place[lo], payloads.rows(slice(lo, hi))
            made = self._headers.compose(channel[at], time[at], some, places)
            self.write_records(channel[at], time[at], places[:-1], made, some.side_columns)
            lo = hi
