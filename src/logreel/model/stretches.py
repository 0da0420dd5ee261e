"""Sinks that write messages in stretches: records one after another, each channel declared before its first message."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.model.appender import Appender
from logreel.model.blocks import I64
from logreel.model.heads import Heads
from logreel.model.sink import Payload, Sink


class StretchSink(Sink):
    """Messages come in stretches; each channel is declared before its first message.

    A format may give channels several heads: what is called a channel here is then one of these.
    """

    def __init__(self, out: Appender) -> None:
        super().__init__(out)
        self._heads = Heads()
        self._fresh = np.zeros(0, bool)

    def declare(self, number: int) -> None:
        """Write what stands before the first message of a channel."""

    def room(self) -> int:
        """Bytes after which a stretch ends, with the message that outgrows them."""
        raise NotImplementedError

    def stretch(self, channel: NDArray[np.int32], time: I64, place: I64, made: NDArray[np.uint8]) -> None:
        """Write records, *made* of messages; *place* is where each begins among them."""
        raise NotImplementedError

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message."""
        zero = np.zeros(1, np.int64)
        if not self.earliest <= time <= self.latest:
            self._refuse(time)
        self.messages(
            np.array([channel], np.int32), zero + time, np.frombuffer(data, np.uint8), zero, zero + len(data)
        )

    def messages(
        self, channel: NDArray[np.int32], time: I64, data: NDArray[np.uint8], start: I64, size: I64
    ) -> None:
        """Append messages, stretch by stretch; none of them where one cannot be written."""
        if not len(channel):
            return
        for moment in (int(time.min()), int(time.max())):
            if not self.earliest <= moment <= self.latest:
                self._refuse(moment)
        if int(size.max()) > self.largest:
            raise UsageError(
                f"a message of {int(size.max())} bytes; {self.title} holds at most {self.largest}"
            )
        self._append(channel, time, data, start, size)

    def _refuse(self, time: int) -> None:
        raise UsageError(f"time {time} ns; {self.title} holds {self.earliest} to {self.latest}")

    def _append(
        self, channel: NDArray[np.int32], time: I64, data: NDArray[np.uint8], start: I64, size: I64
    ) -> None:
        place = self._heads.places(channel, size)
        lo = 0
        while lo < len(channel):
            hi = int(np.searchsorted(place, place[lo] + self.room(), side="right"))
            hi = min(max(hi, lo + 1), len(channel))
            fresh = np.flatnonzero(self._fresh[channel[lo:hi]])
            if len(fresh):
                hi = lo + int(fresh[0])
            if hi == lo:
                self._fresh[channel[lo]] = False
                self.declare(int(channel[lo]))
                continue
            at, places = slice(lo, hi), place[lo : hi + 1] - place[lo]
            made = self._heads.compose(channel[at], time[at], data, start[at], size[at], places)
            self.stretch(channel[at], time[at], places[:-1], made)
            lo = hi
