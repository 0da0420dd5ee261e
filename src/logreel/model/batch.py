"""Messages given one by one are collected, and taken in many at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.model.appender import Appender
from logreel.model.writer import Payload, Sink

I64 = NDArray[np.int64]
#: Bytes of messages that are collected, and what each counts besides its payload.
BATCH_BYTES = 1 << 18
EACH = 64


class BatchSink(Sink):
    """A Sink that makes records of many messages at a time, in ``append``; its ``settle`` begins with ``drain``."""

    #: Times that the format can express, in ns, and the largest payload.
    earliest, latest, largest = -(1 << 63), (1 << 63) - 1, (1 << 31) - 1

    def __init__(self, out: Appender) -> None:
        super().__init__(out)
        self._rows: list[tuple[int, int, bytes]] = []
        self._held = 0

    def append(
        self, channel: NDArray[np.int32], time: I64, data: NDArray[np.uint8], start: I64, size: I64
    ) -> None:
        """Append messages that can be written, as ``messages`` gets them."""
        raise NotImplementedError

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Take in one message; it is written with others."""
        if type(data) is not bytes:
            data = bytes(data)
        size = len(data)
        if not self.earliest <= time <= self.latest or size > self.largest:
            self._refuse(time, size)
        self._rows.append((channel, time, data))
        self._held += size + EACH
        if self._held >= BATCH_BYTES:
            self.drain()

    def messages(
        self, channel: NDArray[np.int32], time: I64, data: NDArray[np.uint8], start: I64, size: I64
    ) -> None:
        """Append many, or none of them where one cannot be written."""
        if not len(time):
            return
        for moment in (int(time.min()), int(time.max())):
            if not self.earliest <= moment <= self.latest or int(size.max()) > self.largest:
                self._refuse(moment, int(size.max()))
        self.drain()
        self.append(channel, time, data, start, size)

    def drain(self) -> None:
        """Append what was collected."""
        if not self._rows:
            return
        channels, times, payloads = zip(*self._rows, strict=True)
        self._rows, self._held = [], 0
        size = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self.append(
            np.array(channels, np.int32),
            np.array(times, np.int64),
            np.frombuffer(b"".join(payloads), np.uint8),
            np.cumsum(size) - size,
            size,
        )

    def _refuse(self, time: int, size: int) -> None:
        if size > self.largest:
            raise UsageError(f"a message of {size} bytes; {self.title} holds at most {self.largest}")
        raise UsageError(f"time {time} ns; {self.title} holds {self.earliest} to {self.latest}")
