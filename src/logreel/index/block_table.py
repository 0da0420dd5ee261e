"""Block tables: where the messages of each channel begin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import UsageError
from logreel.io.arrays import I64, U32, distinct
from logreel.io.source import FILE
from logreel.kernels import block_table, framed
from logreel.kernels import block_table as kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        numbers = distinct(block)
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
        rows: I64 = by_channel[np.argsort(cls._blocks_of(offset)[by_channel], kind="stable")]
        return rows

    @staticmethod
    def _blocks_of(offset: I64) -> I64:
        """Return int64[n]: the block of each message; relative positions have 32 bits."""
        return (offset - (offset[0] if len(offset) else 0)) >> 31

    def live(self) -> list[int]:
        """Return the channels that have messages."""
        channels: list[int] = np.flatnonzero((self.start[:, 1:] > self.start[:, :-1]).any(axis=0)).tolist()
        return channels

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

    def latest_before(self, channel: int, among: Sequence[int]) -> I64:
        """Return int64[n]: where the last message of the channels *among* starts before each of a channel.

        -1 where none does. Of messages in the file itself, not in chunks.
        """
        out = np.empty(self.count(channel), np.int64)
        channels = np.array(among, np.int64)
        done = framed.latest_before(self.base, self.start, self.entry, channels, channel, out)
        # The table may lie in a mapped file that another process has overwritten.
        if done != len(out):
            raise IndexError("the runs of the block table do not lie in its entries")
        return out

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
        return self.only(np.flatnonzero(keep))

    def only(self, kept: I64) -> Blocks:
        """Return the table with only the messages at *kept*, int64[k], ascending indexes in *entry*."""
        before = np.zeros(len(self.entry) + 1, np.int64)
        before[kept + 1] = 1
        np.cumsum(before, out=before)
        return Blocks(self.base, self.chunk, before[self.start], self.entry[kept])

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


ONLY_NS = (
    "the index takes int ns of the log's clock; Log.messages and Channel.to_arrow take times of all kinds"
)


def whole_ns(value: Any, accepted: str = ONLY_NS) -> int:
    """Return *value*, a Python or NumPy int, as ns.

    Raises UsageError for other types, with *accepted* in its text, and for numbers of more than 64 bits.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return checked_ns(int(value), repr(value))
    raise refused_time(value, accepted)


def refused_time(value: object, accepted: str) -> UsageError:
    what = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    said = repr(value)
    shown = said if len(said) <= 60 else f"{said[:60]}…"
    return UsageError(f"{shown} ({what}) is not accepted as a time: {accepted}")


def checked_ns(ns: int, text: str) -> int:
    if not -(1 << 63) <= ns < 1 << 63:
        raise UsageError(f"the time {text!r} is beyond what 64 bits of nanoseconds can hold")
    return ns


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
        positions: list[int] = []
        if self._count[channel]:
            here = np.flatnonzero(self._record[:n] >> np.uint64(32) == channel)
            positions = [base + (int(r) & 0xFFFFFFFF) for r in self._record[here[: -wanted - 1 : -1]]]
        for row in range(len(self._base) - 1, -1, -1):
            if len(positions) == wanted:
                break
            lo, hi = self._start[row, channel : channel + 2].tolist()
            latest = self._entry[max(lo, hi - wanted + len(positions)) : hi].tolist()
            positions += [self._base[row] + e for e in reversed(latest)]
        return positions

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
