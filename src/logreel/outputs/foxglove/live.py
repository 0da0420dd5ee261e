"""Translated messages of a channel for a replay, forwards or backwards."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from logreel.errors import DefinitionError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.outputs.foxglove.encoders import Encoded, Encoder

#: Source messages and bytes that are translated at once.
MESSAGES, BYTES = 256, 1 << 20


class TranslatedMessages:
    """The messages of an Encoder, of which one window is kept in memory.

    shift  ns that the replay adds to the times of the log
    """

    def __init__(self, encoder: Encoder, shift: int) -> None:
        self.encoder, self._shift = encoder, shift
        ch = encoder.source
        many = max(1, min(MESSAGES, BYTES * len(ch) // max(1, ch.bytes)))
        span = (ch.end or 0) - (ch.start or 0)
        #: Length of a window in ns.
        self._length = max(1, span * many // max(1, len(ch)))
        self._start = self._end = 0
        self._times: list[int] = []
        self._found: Encoded | None = None
        #: Reason why the messages cannot be translated; empty if they can.
        self.failed = ""
        #: Time of the last call of ``new_at``, and the messages of that time that were returned.
        self._at, self._returned = 0, 0

    def new_at(self, time: int) -> list[bytes]:
        """Return the payloads of the messages at *time* that earlier calls for this time did not return.

        For logs that grow: nothing is kept in memory, as further messages of the same time may come.
        """
        if time != self._at:
            self._at, self._returned = time, 0
        found = [] if self.failed else self._of_moment(time - self._shift)
        new = found[self._returned :]
        self._returned = len(found)
        return new

    def _of_moment(self, time: int) -> list[bytes]:
        try:
            found = self.encoder.encode(time, time + 1)
        except DefinitionError as error:
            self.failed = error.text
            return []
        return [
            found.data[found.start[row] : found.start[row + 1]].tobytes() for row in range(len(found.time))
        ]

    def between(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield time and payload of messages with start <= time < end (ns of the replay), by time."""
        start, end = start - self._shift, end - self._shift
        source = self.encoder.source
        start, end = max(start, source.start or 0), min(end, (source.end or 0) + 1)
        while start < end and not self.failed:
            if not self._start <= start < self._end:
                self._load(start)
            yield from self._within(start, min(end, self._end))
            start = self._end

    def _load(self, start: int) -> None:
        # Windows are on a grid, so that they are the same forwards and backwards.
        number = start // self._length
        self._start, self._end = number * self._length, (number + 1) * self._length
        try:
            self._found = self.encoder.encode(max(self._start, TIME_MIN), min(self._end, TIME_MAX))
        except DefinitionError as error:
            self.failed = error.text
            return
        order = self._found.time.argsort(kind="stable")
        self._order, self._times = order.tolist(), self._found.time[order].tolist()

    def _within(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        found = self._found
        if found is None:
            return
        for i in range(bisect_left(self._times, start), bisect_left(self._times, end)):
            row = self._order[i]
            data = found.data[found.start[row] : found.start[row + 1]].tobytes()
            yield self._times[i] + self._shift, data
