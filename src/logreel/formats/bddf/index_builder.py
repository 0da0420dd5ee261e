"""Collect data blocks by channel: only their offsets, 4 bytes each; everything else is read from the file later."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import Blocks
from logreel.index.channel_index import ChannelRules, ComputedValues
from logreel.io.arrays import I64
from logreel.io.source import FILE, Buffer
from logreel.kernels import bddf, block_table

#: Why the walk stopped: end of file, a block that holds no data, an invalid block, a truncated one, a full buffer.
END, OTHER, BAD, CUT, FULL = range(5)
#: Data blocks in one block of the block table: the buffers for so many stay in the second-level cache.
TABLE_BLOCK = 1 << 14
#: A series with a greater number is damage: series are numbered from 0.
MAX_SERIES = 1 << 16
#: Instead of a channel number: series that are not declared, and those whose blocks are valid but not collected.
UNDECLARED, SKIPPED = -1, -2
_NO_SIZES = np.zeros(0, np.uint32)


def _times(data: Buffer, start: I64) -> I64:
    out = np.empty(len(start), np.int64)
    bddf.block_times(data, np.ascontiguousarray(start), out)
    return out


def locate_payloads(data: Buffer, start: I64) -> tuple[I64, I64]:
    """Return offsets and sizes of the payloads of the data blocks at *start*: int64[n] each."""
    payload, size = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
    bddf.payload_ranges(data, np.ascontiguousarray(start), payload, size)
    return payload, size


#: Rules of every series: time, payload offset and size are read from the data block.
SERIES_RULES = ChannelRules(
    ComputedValues(_times),
    ComputedValues(lambda data, start: locate_payloads(data, start)[1]),
    payload=locate_payloads,
)


def time_span(data: Buffer, table: Blocks) -> tuple[int | None, int | None]:
    """Return the least and the greatest time of all data blocks of *table*, ns; None if it has no blocks."""
    least, greatest = list[int](), list[int]()
    for base, lo, hi in zip(table.base, table.start[:, 0], table.start[:, -1], strict=True):
        if hi > lo:
            times = _times(data, base + table.entry[lo:hi].astype(np.int64))
            least.append(int(times.min()))
            greatest.append(int(times.max()))
    return min(least, default=None), max(greatest, default=None)


class IndexBuilder:
    """Follows data blocks with the compiled walk and keeps their offsets.

    known  int32[k]  channel by series number; UNDECLARED or SKIPPED
    """

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self.known = np.full(1, UNDECLARED, np.int32)
        self._count = np.zeros(1, np.int64)
        #: Position, blocks in the buffer, base of their offsets (-1: none), number and bytes of skipped blocks.
        self._state = np.array([0, 0, -1, 0, 0], np.int64)
        self._record = np.empty(TABLE_BLOCK, np.uint64)
        self._bases: list[int] = []
        self._starts: list[I64] = []
        self._entry = np.empty(0, np.uint32)
        self._used = 0

    @property
    def skipped(self) -> tuple[int, int]:
        """Number and bytes of the skipped blocks."""
        return int(self._state[3]), int(self._state[4])

    def declare(self, series: int, channel: int) -> None:
        """Collect the blocks of *series* for *channel* from now on."""
        if series >= len(self.known):
            more = max(series + 1, 2 * len(self.known)) - len(self.known)
            self.known = np.concatenate([self.known, np.full(more, UNDECLARED, np.int32)])
        self.known[series] = channel
        if channel >= len(self._count):
            more = max(channel + 1, 2 * len(self._count)) - len(self._count)
            self._count = np.concatenate([self._count, np.zeros(more, np.int64)])

    def skip(self, series: int) -> None:
        """Accept blocks of *series*, which is not declared, but do not collect them."""
        self.declare(series, SKIPPED)

    def forget(self) -> None:
        """Forget all declarations: another file begins."""
        self.known[:] = UNDECLARED

    def walk(self, pos: int, end: int) -> tuple[int, int]:
        """Collect blocks from *pos* on; return why the walk stopped (END, OTHER, BAD or CUT) and where."""
        while True:
            self._state[0] = pos
            why = bddf.walk(self._data, self._state, end, self.known, self._record, self._count)
            pos = int(self._state[0])
            if why != FULL:
                return why, pos
            self._close()

    def _close(self) -> None:
        """Move the collected blocks into a block of the table."""
        n = int(self._state[1])
        if n:
            start, self._used = self._grouped(n, self._count)
            self._starts.append(start)
            self._bases.append(int(self._state[2]))
        self._state[1:3] = 0, -1
        if len(self._count) > len(self._record):
            # Keeps the table of starts smaller than its entries, however many channels there are.
            self._record = np.empty(2 * len(self._count), np.uint64)

    def _grouped(self, n: int, count: I64) -> tuple[I64, int]:
        """Write the entries of the *n* collected blocks behind the others; return starts by channel, and their end.

        count  number of blocks of each channel; set to 0
        """
        if self._used + n > len(self._entry):
            self._grow(n)
        start = np.full(len(count) + 1, self._used, np.int64)
        only = int(count.argmax())
        if int(count[only]) == n:
            # All of one channel, which is frequent: already in order. The low half of each is its offset.
            self._entry[self._used : self._used + n] = self._record.view("<u4")[: 2 * n : 2]
            start[only + 1 :] = self._used + n
            count[only] = 0
            return start, self._used + n
        where = start, self._entry, self._used
        return start, block_table.group_records(self._record, n, count, *where, _NO_SIZES, _NO_SIZES)

    def _grow(self, n: int) -> None:
        # A generous estimate: pages that are never touched cost nothing, but copying a full table does.
        guess = int((self._used + n) * 1.2 * len(self._data) / max(int(self._state[0]), 1)) + 4096
        grown = np.empty(max(min(guess, len(self._data) // 14 + 1), self._used + n), np.uint32)
        grown[: self._used] = self._entry[: self._used]
        self._entry = grown

    def finish(self) -> Blocks:
        """Return the block table of everything collected; its entries are offsets of data blocks."""
        self._close()
        return self._blocks(self._starts, self._bases, self._entry[: self._used])

    def extend(self, data: Buffer) -> None:
        """Go on with *data*, which begins with the bytes so far."""
        self._data = data

    def snapshot(self) -> Blocks:
        """Return the same table as ``finish``, in arrays of its own, and keep collecting."""
        n = int(self._state[1])
        if not n:
            return self._blocks(self._starts, self._bases, self._entry[: self._used].copy())
        # The block that is open, as if it were closed; closing it later overwrites its entries.
        start, used = self._grouped(n, self._count.copy())
        starts, bases = [*self._starts, start], [*self._bases, int(self._state[2])]
        return self._blocks(starts, bases, self._entry[:used].copy())

    def _blocks(self, starts: list[I64], bases: list[int], entry: NDArray[np.uint32]) -> Blocks:
        start = np.empty((len(starts), len(self._count) + 1), np.int64)
        for row, starts_of_block in zip(start, starts, strict=True):
            row[: len(starts_of_block)] = starts_of_block
            row[len(starts_of_block) :] = starts_of_block[-1]
        return Blocks(np.array(bases, np.int64), np.full(len(bases), FILE, np.int32), start, entry)
