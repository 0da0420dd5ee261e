"""Block tables: where the messages of each channel begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64, U32
from logreel.io.chunks import FILE
from logreel.kernels import block_table as kernel

#: Size of a message that the index in the file lists but the file does not contain; it is skipped.
MISSING_SIZE = (1 << 32) - 1
TIME_MIN, TIME_MAX = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Blocks:
    """The block table.

    base   int64[b]       start of each block in its chunk
    chunk  int32[b]       chunk of each block, FILE for the file itself
    start  int64[b, c+1]  index in *entry* where the run of each channel begins
    entry  uint32[n]      message starts relative to their block: by block, in a block by channel, there in file order
    """

    base: I64
    chunk: NDArray[np.int32]
    start: I64
    entry: U32

    @classmethod
    def empty(cls, channels: int) -> Blocks:
        """Return a table without messages."""
        return cls(
            np.zeros(0, np.int64),
            np.zeros(0, np.int32),
            np.zeros((0, channels + 1), np.int64),
            np.zeros(0, np.uint32),
        )

    @classmethod
    def of(cls, offset: I64, channel: NDArray[Any], channels: int, chunk: int = FILE) -> Blocks:
        """Return a table of messages in file order: int64[n] starts, and int[n] channel numbers below *channels*."""
        block, order = cls._blocks_of(offset), cls.order(offset, channel)
        numbers = np.unique(block)
        base = np.array([offset[block == n][0] for n in numbers], np.int64)
        counts = np.array([np.bincount(channel[block == n], minlength=channels) for n in numbers], np.int64)
        counts = counts.reshape(len(numbers), channels)
        start = np.zeros((len(numbers), channels + 1), np.int64)
        start[:, 1:] = np.cumsum(counts, axis=1)
        start += np.concatenate([[0], np.cumsum(counts.sum(axis=1))[:-1]]).astype(np.int64)[
            : len(numbers), None
        ]
        entry = (offset - base[np.searchsorted(numbers, block)]).astype(np.uint32)[order]
        return cls(base, np.full(len(base), chunk, np.int32), start, entry)

    @classmethod
    def order(cls, offset: I64, channel: NDArray[Any]) -> I64:
        """Return int64[n]: the order of the entries of ``of``, as numbers of messages in file order."""
        by_channel = np.argsort(channel, kind="stable")
        found: I64 = by_channel[np.argsort(cls._blocks_of(offset)[by_channel], kind="stable")]
        return found

    @staticmethod
    def _blocks_of(offset: I64) -> I64:
        """Return int64[n]: the block of each message; relative positions have 32 bits."""
        return (offset - (offset[0] if len(offset) else 0)) >> 31

    def live(self) -> list[int]:
        """Return the channels that have messages."""
        found: list[int] = np.flatnonzero((self.start[:, 1:] > self.start[:, :-1]).any(axis=0)).tolist()
        return found

    def first(self, channel: int) -> int:
        """Return the start of the first message of a channel that has messages."""
        row = int(np.argmax(self.start[:, channel + 1] > self.start[:, channel]))
        return int(self.base[row]) + int(self.entry[self.start[row, channel]])

    def rows(self, channel: int) -> tuple[I64, I64]:
        """Return int64[n], int64[n]: the block of each message of a channel, and its index in *entry*."""
        first, count = self.start[:, channel], self.start[:, channel + 1] - self.start[:, channel]
        block = np.repeat(np.arange(len(count), dtype=np.int64), count)
        number = np.arange(len(block), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        return block, first[block] + number

    def offsets(self, channel: int) -> I64:
        """Return int64[n]: the start of each message of a channel."""
        return unrolled(self.entry, *self.run(channel), self.base)

    def split(self, channel: int, part: I64, parts: int) -> Blocks:
        """Return the table with a channel replaced by *parts* channels; part[i], int64[n], is the one of message i."""
        block, at = self.rows(channel)
        entry = self.entry.copy()
        # Of one block, and there of one part, in the order of the file.
        entry[at] = self.entry[at[np.lexsort((part, block))]]
        counts = np.bincount(block * parts + part, minlength=len(self.base) * parts)
        ends = self.start[:, channel : channel + 1] + np.cumsum(counts.reshape(-1, parts), axis=1)
        start = np.concatenate([self.start[:, : channel + 1], ends, self.start[:, channel + 2 :]], axis=1)
        return Blocks(self.base, self.chunk, start, entry)

    def without(self, removed: I64) -> Blocks:
        """Return the table without the messages at *removed*, int64[k] indexes in *entry*."""
        keep = np.ones(len(self.entry), np.bool_)
        keep[removed] = False
        before = np.concatenate([[0], np.cumsum(~keep)])
        return Blocks(self.base, self.chunk, self.start - before[self.start], self.entry[keep])

    @cached_property
    def counts(self) -> I64:
        """int64[c]: number of messages of each channel."""
        counts: I64 = (self.start[:, 1:] - self.start[:, :-1]).sum(axis=0, dtype=np.int64)
        return counts

    def count(self, channel: int) -> int:
        """Return the number of messages of a channel."""
        return int(self.counts[channel])

    def run(self, channel: int) -> tuple[I64, I64]:
        """Return int64[b], int64[b]: where the channel's run begins and ends in ``entries``, for each block."""
        return self.start[:, channel], self.start[:, channel + 1]

    def entries(self, channel: int) -> U32:
        """Return the array that the runs of a channel point into."""
        return self.entry

    def reshaped(self, keep: list[int], more: int) -> Blocks:
        """Return the table with only the channels *keep*, all others being empty, followed by *more* empty ones."""
        start = np.empty((len(self.base), len(keep) + more + 1), np.int64)
        start[:, : len(keep)] = self.start[:, keep]
        start[:, len(keep) :] = self.start[:, -1:]
        return Blocks(self.base, self.chunk, start, self.entry)


class Separate:
    """Block table of messages in the file itself whose channels are read one by one, at first use.

    load      returns int64[n], ascending: the start of each message of a channel
    channels  number of channels
    size      bytes of the file
    """

    #: Bytes of a block; a channel in use takes eight bytes per block.
    BLOCK = 4 << 20

    def __init__(self, load: Callable[[int], I64], channels: int, size: int) -> None:
        self._load, self._channels = load, channels
        self.base: I64 = np.arange(0, max(size, 1), self.BLOCK, dtype=np.int64)
        self.chunk = np.full(len(self.base), FILE, np.int32)
        self._runs: dict[int, tuple[I64, U32]] = {}

    def _channel(self, channel: int) -> tuple[I64, U32]:
        if channel not in self._runs:
            start = self._load(channel)
            cuts = np.append(start.searchsorted(self.base), len(start)).astype(np.int64)
            self._runs[channel] = cuts, (start % self.BLOCK).astype(np.uint32)
        return self._runs[channel]

    def count(self, channel: int) -> int:
        """Return the number of messages of a channel."""
        return len(self._channel(channel)[1])

    @property
    def counts(self) -> I64:
        """int64[c]: number of messages of each channel; reads all channels."""
        return np.array([self.count(c) for c in range(self._channels)], np.int64)

    def run(self, channel: int) -> tuple[I64, I64]:
        """See ``Blocks.run``."""
        cuts = self._channel(channel)[0]
        return cuts[:-1], cuts[1:]

    def entries(self, channel: int) -> U32:
        """See ``Blocks.entries``."""
        return self._channel(channel)[1]


def unrolled(values: NDArray[Any], first: I64, last: I64, base: I64 | None = None) -> I64:
    """Return int64[n]: values[first[i]:last[i]] of each block i, one after another, plus base[i] if given.

    values  a number for each entry of the block table, mostly uint32
    """
    out = np.empty(int((last - first).sum()), np.int64)
    base = np.zeros(len(first), np.int64) if base is None else base
    if values.dtype == np.uint32:
        first, last, base = (np.ascontiguousarray(a, np.int64) for a in (first, last, base))
        kernel.unroll(np.ascontiguousarray(values), first, last, base, out)
        return out
    n = 0
    for lo, hi, add in zip(first.tolist(), last.tolist(), base.tolist(), strict=True):
        np.add(values[lo:hi], add, out=out[n : n + hi - lo], casting="unsafe")
        n += hi - lo
    return out


@dataclass(frozen=True, slots=True)
class SelectedMessages:
    """Messages selected from the index: five arrays of one length, in the order asked for."""

    time: I64
    channel: NDArray[np.int32]
    chunk: NDArray[np.int32]
    offset: I64
    size: I64

    KINDS: ClassVar = (
        ("time", np.int64),
        ("channel", np.int32),
        ("chunk", np.int32),
        ("offset", np.int64),
        ("size", np.int64),
    )

    def __len__(self) -> int:
        return len(self.time)
