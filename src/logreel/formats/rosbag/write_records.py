"""What writers of all versions share: records, and messages made into stretches of them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UsageError
from logreel.formats.rosbag.write_topics import Declared, declare
from logreel.model.appender import Appender
from logreel.model.heads import Heads
from logreel.model.layout import Layout
from logreel.model.schema import Schema
from logreel.model.sink import Payload, Sink

I64 = NDArray[np.int64]
U32, U64 = struct.Struct("<I"), struct.Struct("<Q")
#: Header and data of the file header together, so that it can be completed in place.
FILE_HEADER = 4096


def fields(named: Mapping[str, bytes]) -> bytes:
    """A list of header fields, in the order of their names as the C++ recorder had them."""
    parts = [name.encode() + b"=" + value for name, value in sorted(named.items())]
    return b"".join(U32.pack(len(part)) + part for part in parts)


def begun(op: int, named: Mapping[str, bytes], size: int) -> bytes:
    """A record up to its data, of which there are *size* bytes."""
    head = fields({"op": bytes((op,)), **named})
    return b"".join((U32.pack(len(head)), head, U32.pack(size)))


def record(op: int, named: Mapping[str, bytes], data: bytes = b"") -> bytes:
    """A whole record."""
    return begun(op, named, len(data)) + data


def padded(op: int, named: Mapping[str, bytes]) -> bytes:
    """A file header, filled up with blanks."""
    return record(op, named, b" " * (FILE_HEADER + 8 - len(begun(op, named, 0))))


class BagSink(Sink):
    """Messages come in stretches; each channel is declared before its first message."""

    title = "a bag"
    earliest, latest, largest = 0, (10**9 << 32) - 1, (1 << 31) - 1

    def __init__(self, out: Appender) -> None:
        super().__init__(out)
        self._heads = Heads()
        self._channels: list[Declared] = []
        self._fresh = np.zeros(0, bool)

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel.

        metadata  as channels of bags have it: ``topic``, ``md5sum`` (worked out where it is not given), ``headers``
                  or else ``callerids`` and ``latching``
        """
        declared = declare(topic, schema, metadata)
        self.add(declared)
        self._channels.append(declared)
        self._fresh = np.append(self._fresh, True)

    def layout(self, number: int) -> Layout:
        """The Layout of the channel's definition."""
        found = self._channels[number].layout
        if found is None:
            raise DefinitionError("the channel has no definition: its messages are bytes")
        return found

    def add(self, declared: Declared) -> None:
        """Make the head of a channel's messages."""
        raise NotImplementedError

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
