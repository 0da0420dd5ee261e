"""Payloads of many messages, referenced where they are in buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import records as kernel
from logreel.layout.layout import Layout

#: Header of no bytes.
_NO_HEADER = np.array([(0, 0, -1, 0, 0, -1, 0)], kernel.HEADER)
#: The payload of a message given by a user.
Payload = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Payloads:
    """Payloads of messages: that of message i is data[start[i]:start[i] + size[i]].

    side_columns  int64[n, k]  numbers that the format stores outside payloads, or None
    others        further buffers
    which         int32[n]  buffer of each payload: 0 is *data*, 1 … are *others*; None: *data* for all
    """

    data: Buffer
    start: I64
    size: I64
    side_columns: I64 | None = None
    others: Sequence[Buffer] = ()
    which: NDArray[np.int32] | None = None

    @property
    def are_inside(self) -> bool:
        """Whether each payload is inside its buffer, and all buffers are uint8[b]."""
        lengths = {len(self.start), len(self.size), len(self.start if self.which is None else self.which)}
        if len(lengths) > 1 or any(
            buffer.ndim != 1 or buffer.dtype != np.uint8 for buffer in (self.data, *self.others)
        ):
            return False
        rooms = np.array([len(buffer) for buffer in (self.data, *self.others)], np.int64)
        start, size = (np.ascontiguousarray(column, np.int64) for column in (self.start, self.size))
        return kernel.payloads_inside(rooms, self._which, start, size)

    @property
    def _which(self) -> NDArray[np.int32]:
        """``which`` for the kernel, int32[n]; empty for None."""
        return np.zeros(0, np.int32) if self.which is None else np.ascontiguousarray(self.which, np.int32)

    def rows(self, which: slice | I64) -> Payloads:
        """Return the payloads at these rows."""
        return replace(
            self,
            start=self.start[which],
            size=self.size[which],
            side_columns=None if self.side_columns is None else self.side_columns[which],
            which=None if self.which is None else self.which[which],
        )

    @property
    def buffers(self) -> list[Buffer]:
        """All buffers, contiguous, in the order that ``which`` counts them."""
        return [np.ascontiguousarray(buffer) for buffer in (self.data, *self.others)]

    def in_one(self) -> Payloads:
        """Return the payloads in one buffer."""
        if self.which is None:
            return self
        data = self.joined()
        return Payloads(data, np.cumsum(self.size) - self.size, self.size, self.side_columns)

    def joined(self) -> Buffer:
        """Return uint8[sum of size]: the payloads one after another."""
        out = np.empty(int(self.size.sum()), np.uint8)
        self.put_at(out, np.cumsum(self.size) - self.size)
        return out

    def put_at(self, out: Buffer, place: I64) -> None:
        """Copy payload i to place[i] of *out*."""
        n = len(self.start)
        self.compose(
            np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(0, np.uint8), _NO_HEADER, place, out
        )

    def compose(
        self,
        channel: NDArray[np.int32],
        time: I64,
        heads: Buffer,
        headers: NDArray[np.void],
        place: I64,
        out: Buffer,
    ) -> None:
        """Write record i, a head and the payload, to place[i] of *out*; see kernels/records.py."""
        kernel.write_records(
            self.buffers,
            self._which,
            np.ascontiguousarray(channel, np.int32),
            np.ascontiguousarray(time, np.int64),
            np.ascontiguousarray(self.start, np.int64),
            np.ascontiguousarray(self.size, np.int64),
            heads,
            headers,
            np.ascontiguousarray(place, np.int64),
            out,
        )


def joined(data: Buffer, start: I64, size: I64) -> Buffer:
    """Return uint8[sum of size]: the ranges data[start[i]:start[i] + size[i]], one after another."""
    return Payloads(data, start, size).joined()


def chained(parts: Sequence[Payloads]) -> Payloads:
    """Return the payloads of all *parts*, one part after another, without copying and without side columns."""
    buffers, which = list[Buffer](), list[NDArray[np.int32]]()
    for payloads in parts:
        inside = np.zeros(len(payloads.start), np.int32) if payloads.which is None else payloads.which
        which.append(inside + np.int32(len(buffers)))
        buffers += [payloads.data, *payloads.others]
    start, size = (
        np.concatenate([getattr(payloads, name) for payloads in parts]) for name in ("start", "size")
    )
    return Payloads(buffers[0], start, size, others=buffers[1:], which=np.concatenate(which))


def tallied(channel: NDArray[np.int32], channels: int) -> I64:
    """Return int64[channels]: the number of messages of each channel; raises IndexError for other channels."""
    counts = np.zeros(channels, np.int64)
    kernel.count_channels(np.ascontiguousarray(channel, np.int32), counts)
    return counts


def serialize_rows(
    layout: Layout, payload: Callable[[dict[str, Any]], bytes], data: NDArray[np.uint8], first: I64, size: I64
) -> Payloads:
    """Return a payload for each message of *size* bytes at *first* in *data*, which is encoded by *layout*.

    payload  returns the payload of a message, from a dict of its fields
    """
    decode, view = layout.decoder(), memoryview(data.data)
    ends = (first + size).tolist()
    encoded = [payload(decode(view[at:end])) for at, end in zip(first.tolist(), ends, strict=True)]
    sizes = np.array([len(message) for message in encoded], np.int64)
    return Payloads(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(sizes) - sizes, sizes)
