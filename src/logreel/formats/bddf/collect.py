"""Data blocks become the block table of the index, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.kernels import wire
from logreel.model.chunks import FILE
from logreel.model.index import I64, Blocks

END, OTHER, BAD, CUT, FULL = range(5)
#: Data blocks of one piece: what is collected of them stays in the second-level cache.
PIECE = 1 << 13
#: A series with a greater number is damage: they are counted from 0.
MAX_SERIES = 1 << 16

U32 = NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Collected:
    """All data blocks by piece of the file and by channel; arrays have one value per entry of *blocks*.

    size  int64[n]   bytes of the payload
    time  int64[n]   ns
    head  uint32[n]  bytes of the descriptor, which ends where the payload begins
    """

    blocks: Blocks
    size: I64
    time: I64
    head: U32


class Collector:
    """Follows data blocks with the compiled walker and keeps where they lie.

    known    uint8[k]  by number of a series: 0 not declared, 1 collect, 2 pass over
    channel  int32[k]  by number of a series
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data
        self.known, self.channel = np.zeros(1, np.uint8), np.zeros(1, np.int32)
        self._channels = 0
        self.state = np.array([0, 0, -1, 0, 0], np.int64)
        self._scratch(PIECE)
        self._bases: list[int] = []
        self._starts: list[I64] = []
        self._out: list[Any] = [np.empty(0, kind) for kind in (np.uint32, np.int64, np.int64, np.uint32)]
        self._used = 0

    def _scratch(self, n: int) -> None:
        self.key, self.entry, self.head = (np.empty(n, np.uint32) for _ in range(3))
        self.size, self.time = np.empty(n, np.int64), np.empty(n, np.int64)

    def declare(self, series: int, channel: int) -> None:
        """Collect the blocks of *series* for *channel* from now on."""
        if series >= len(self.known):
            more = max(series + 1, 2 * len(self.known)) - len(self.known)
            self.known = np.concatenate([self.known, np.zeros(more, np.uint8)])
            self.channel = np.concatenate([self.channel, np.zeros(more, np.int32)])
        elif self.known[series] == 1 and self.channel[series] != channel:
            self.close()
        self.known[series], self.channel[series] = 1, channel
        self._channels = max(self._channels, channel + 1)

    def pass_over(self, series: int) -> None:
        """Do not collect blocks of *series*, which nothing declares, but accept them."""
        self.declare(series, 0)
        self.known[series] = 2

    def forget(self) -> None:
        """No series is declared any more: another file begins."""
        self.close()
        self.known[:] = 0

    def walk(self, pos: int, end: int) -> tuple[int, int]:
        """Collect from *pos* until something needs a decision: (END, OTHER, BAD or CUT, position)."""
        while True:
            self.state[0] = pos
            why = wire.walk(
                self._data, self.state, end, self.known, self.key, self.entry, self.size, self.time, self.head
            )
            pos = int(self.state[0])
            if why != FULL:
                return why, pos
            self.close()

    def add(self, key: U32, payload: I64, size: I64, time: I64, head: U32) -> None:
        """Take in blocks in file order that are known already."""
        lo = 0
        while lo < len(payload):
            hi = min(lo + len(self.key), int(np.searchsorted(payload, int(payload[lo]) + (1 << 32))))
            n = hi - lo
            self.key[:n] = key[lo:hi]
            self.entry[:n] = payload[lo:hi] - payload[lo]
            self.size[:n], self.time[:n], self.head[:n] = size[lo:hi], time[lo:hi], head[lo:hi]
            self.state[1:3] = n, payload[lo]
            self.close()
            lo = hi

    def close(self) -> None:
        """End the piece."""
        n = int(self.state[1])
        if n:
            if self._used + n > len(self._out[0]):
                self._grow(n)
            start = np.empty(self._channels + 1, np.int64)
            entry, size, time, head = self._out
            self._used = wire.group(
                n,
                self.channel,
                self.key,
                self.entry,
                self.size,
                self.time,
                self.head,
                start,
                entry,
                size,
                time,
                head,
                self._used,
            )
            self._starts.append(start)
            self._bases.append(int(self.state[2]))
        self.state[1:3] = 0, -1
        if self._channels > len(self.key):
            # Keeps the table of starts below what it points to, however many channels there are.
            self._scratch(2 * self._channels)

    def _grow(self, n: int) -> None:
        # Pages of a generous guess that are never touched cost nothing; copying a full table does.
        here = max(int(self.state[0]), 1)
        guess = int((self._used + n) * 1.2 * len(self._data) / here) + 4096
        for i, old in enumerate(self._out):
            self._out[i] = np.empty(max(min(guess, len(self._data) // 14 + 1), self._used + n), old.dtype)
            self._out[i][: self._used] = old[: self._used]

    def finish(self) -> Collected:
        """Everything collected."""
        self.close()
        start = np.empty((len(self._starts), self._channels + 1), np.int64)
        for row, some in zip(start, self._starts, strict=True):
            row[: len(some)] = some
            row[len(some) :] = some[-1]
        entry, size, time, head = (out[: self._used] for out in self._out)
        base = np.array(self._bases, np.int64)
        return Collected(Blocks(base, np.full(len(base), FILE, np.int32), start, entry), size, time, head)
