"""Build the block table of a log while walking its records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import Blocks
from logreel.io.arrays import I64
from logreel.io.chunks import FILE
from logreel.kernels import block_table, framed

#: Bytes of a block: small enough that a block stays in the second-level cache while columns are filled from it.
BLOCK = 512 << 10
#: Blocks with fewer records than this grow: where records are large, there is little to keep in a cache.
SPARSE, MAX_BLOCK = 256, 16 << 20

END, PARSE, BAD, CUT = framed.END, framed.STOPPED, framed.BAD, framed.CUT


class BlockBuilder:
    """Collector of the records of one buffer, block by block, with the compiled walker.

    spec        framed.SPEC[1], see kernels/framed.py
    least       minimum bytes of a data record, and of any record
    keep_sizes  whether to collect sizes
    sizes       uint32[n], after ``finish``: the size field of each data record in the order of the table, if kept
    """

    def __init__(
        self,
        data: NDArray[np.uint8],
        spec: NDArray[np.void],
        least: tuple[int, int],
        keep_sizes: bool = False,
    ) -> None:
        self._data, self._least = data, least
        self.follow(spec)
        self._block = BLOCK
        self._channels = 0
        self._state = np.array([0, -1, 0, 0, -1], np.int64)
        self._base: list[int] = []
        self._start = np.zeros((64, 2), np.int64)
        self._count = np.zeros(1, np.int64)
        self._entry, self.sizes = np.empty(0, np.uint32), np.empty(0, np.uint32)
        self._sized = keep_sizes
        self._used = 0
        self._first = 0
        self._notes: list[I64] = []
        self._scratch()

    def _scratch(self) -> None:
        n, self._scratch_block = self._block // self._least[0] + 2, self._block
        self._record, self._length = np.empty(n, np.uint64), np.empty(n * self._sized, np.uint32)
        self._note = np.empty(self._block // self._least[1] + 2, np.int64)

    @property
    def last(self) -> int:
        """Start of the last record collected, -1 before the first."""
        return int(self._state[4])

    @last.setter
    def last(self, pos: int) -> None:
        self._state[4] = pos

    def declare(self, channels: int) -> None:
        """Make room for channel numbers below *channels*; rows of the table double, so this may be called often."""
        if channels < self._start.shape[1]:
            return
        wide = max(channels + 1, 2 * self._start.shape[1])
        grown = np.empty((len(self._start), wide), np.int64)
        grown[:, : self._start.shape[1]] = self._start
        grown[:, self._start.shape[1] :] = self._start[:, -1:]
        self._start = grown
        self._count = np.concatenate([self._count, np.zeros(wide - 1 - len(self._count), np.int64)])
        # Keeps the table below a 128th of the data however many channels there are.
        self._block = max(BLOCK, 1024 * wide)

    def follow(self, spec: NDArray[np.void]) -> None:
        """Read the following headers by another *spec*, of the same framing with other keys."""
        self._spec, self._payload_at = spec, int(spec["payload_at"][0])

    def walk(self, pos: int, end: int, tags: NDArray[np.void], keys: NDArray[np.void]) -> tuple[int, int]:
        """Collect from *pos* until the caller must decide; return (END, PARSE, BAD or CUT, position)."""
        state = self._state
        # A caller that reads a record again, because its size was wrong, may go back to before the block, where its
        # relative starts would be negative. A full block is closed only after the record that confirms its last one.
        if not 0 <= int(state[1]) <= pos:
            self._close(pos)
        while True:
            state[0] = pos
            why = framed.walk(
                self._data,
                state,
                end,
                self._block,
                self._spec,
                tags,
                keys,
                self._record,
                self._count,
                self._note,
                self._length,
            )
            pos = int(state[0])
            if why != framed.FULL:
                return why, pos
            self._close(pos)

    def _close(self, pos: int) -> None:
        """Close the block and begin the next one at *pos*."""
        n, m = int(self._state[2]), int(self._state[3])
        if n:
            row = len(self._base)
            if row == len(self._start):
                self._start = np.concatenate([self._start, np.empty_like(self._start)])
            if self._used + n > len(self._entry):
                self._grow(n, pos)
            where = self._start[row], self._entry, self._used
            self._used = block_table.group_records(
                self._record, n, self._count, *where, self._length, self.sizes
            )
            self._base.append(int(self._state[1]))
        if m:
            self._notes.append(self._note[:m].copy())
        self._state[1:4] = pos, 0, 0
        if 0 < n < SPARSE and self._block < MAX_BLOCK:
            self._block *= 2
        if self._scratch_block != self._block:
            self._scratch()

    def _grow(self, n: int, pos: int) -> None:
        # Guess from the density of data records so far, definitions before the first one aside. Pages of a generous
        # guess that are never touched cost nothing; copying a full table does.
        if not self._base:
            self._first = int(self._state[1]) + (int(self._record[0]) & 0xFFFFFFFF)
        seen = max(pos - self._first, 1)
        guess = int((self._used + n) * 1.2 * (len(self._data) - self._first) / seen) + 4096
        room = max(min(guess, len(self._data) // self._least[0] + 1), self._used + n)
        self._entry = _grown(self._entry, self._used, room)
        if self._sized:
            self.sizes = _grown(self.sizes, self._used, room)

    def add(self, pos: int, channel: int, size: int = 0) -> None:
        """Collect the data record at *pos*, after the last one, which the walk refuses; *size*: its correct size."""
        base, n = int(self._state[1]), int(self._state[2])
        if not 0 <= base <= pos < base + self._block or n == len(self._record):
            self._close(pos)
            base, n = pos, 0
        self._record[n] = channel << 32 | pos + self._payload_at - base
        if self._sized:
            self._length[n] = size
        self._count[channel] += 1
        self._state[2], self._state[4] = n + 1, pos

    def note(self, pos: int) -> None:
        """Collect the other record at *pos*, after the last one, which the walk would refuse."""
        if not 0 <= int(self._state[1]) <= pos or int(self._state[3]) == len(self._note):
            self._close(pos)
        self._note[int(self._state[3])] = pos
        self._state[3], self._state[4] = int(self._state[3]) + 1, pos

    def drop_last(self) -> None:
        """Remove the last record collected, whose size proved to be wrong."""
        base, n, m = (int(x) for x in self._state[1:4])
        if m and self._note[m - 1] == self.last:
            self._state[3] -= 1
        elif n and base + (int(self._record[n - 1]) & 0xFFFFFFFF) - self._payload_at == self.last:
            self._state[2] -= 1
            self._count[int(self._record[n - 1]) >> 32] -= 1

    def has_rows(self, channel: int) -> bool:
        """Return whether *channel* has any record so far."""
        rows = self._start[: len(self._base)]
        return bool(self._count[channel]) or bool((rows[:, channel + 1] > rows[:, channel]).any())

    def last_payloads(self, channel: int, wanted: int) -> list[int]:
        """Return offsets of the last *wanted* payloads of *channel* so far, latest first; fewer if there are fewer."""
        base, n = int(self._state[1]), int(self._state[2])
        found: list[int] = []
        if self._count[channel]:
            here = np.flatnonzero(self._record[:n] >> np.uint64(32) == channel)
            found = [base + (int(r) & 0xFFFFFFFF) for r in self._record[here[: -wanted - 1 : -1]]]
        for row in range(len(self._base) - 1, -1, -1):
            if len(found) == wanted:
                break
            lo, hi = self._start[row, channel : channel + 2].tolist()
            latest = self._entry[max(lo, hi - wanted + len(found)) : hi].tolist()
            found += [self._base[row] + e for e in reversed(latest)]
        return found

    def extend(self, data: NDArray[np.uint8]) -> None:
        """Go on with *data*, which begins with the bytes so far."""
        self._data = data

    def snapshot(self, channels: int) -> tuple[Blocks, I64, NDArray[np.uint32]]:
        """Return the block table, the offsets of other records and ``sizes``, as ``finish`` does, and keep collecting.

        The arrays are copies: 4 bytes per message, which is little in comparison with reading the messages.
        """
        rows, n, m = len(self._base), int(self._state[2]), int(self._state[3])
        base, used = list(self._base), self._used
        if n:
            # The open block as if it were closed; closing it later overwrites its row and its entries.
            if rows == len(self._start):
                self._start = np.concatenate([self._start, np.empty_like(self._start)])
            if used + n > len(self._entry):
                self._grow(n, max(int(self._state[0]), 1))
            where = self._start[rows], self._entry, used
            used = block_table.group_records(
                self._record, n, self._count.copy(), *where, self._length, self.sizes
            )
            base.append(int(self._state[1]))
        table = Blocks(
            np.array(base, np.int64),
            np.full(len(base), FILE, np.int32),
            np.array(self._start[: len(base), : channels + 1]),
            self._entry[:used].copy(),
        )
        notes = np.concatenate([np.zeros(0, np.int64), *self._notes, self._note[:m]])
        return table, notes, self.sizes[:used].copy()

    def finish(self, channels: int) -> tuple[Blocks, I64]:
        """Return the block table of *channels* channels, and int64[k] offsets of all other records."""
        self._close(int(self._state[0]))
        rows = len(self._base)
        self.sizes = self.sizes[: self._used]
        table = Blocks(
            np.array(self._base, np.int64),
            np.full(rows, FILE, np.int32),
            np.ascontiguousarray(self._start[:rows, : channels + 1]),
            self._entry[: self._used],
        )
        return table, np.concatenate(self._notes) if self._notes else np.zeros(0, np.int64)


def _grown(array: NDArray[np.uint32], used: int, room: int) -> NDArray[np.uint32]:
    grown = np.empty(room, np.uint32)
    grown[:used] = array[:used]
    return grown
