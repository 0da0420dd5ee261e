"""Messages of many channels, of one log or several, in one order, batch by batch.

Only the times of the wanted channels and one batch are in memory at once, never a list of all messages.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.index.block_table import MISSING_SIZE, SelectedMessages
from logreel.index.channel_index import ChannelIndex, Pick, add_stored
from logreel.index.gather import Rows, gather_times
from logreel.io.arrays import I64, distinct
from logreel.io.source import FETCH_BYTES, FILE
from logreel.kernels import merge as kernel

#: Messages of a batch.
BATCH = 1 << 16
#: Most blocks of a remote log that are fetched ahead.
MOST_AHEAD = 1 << 12


@dataclass(frozen=True, slots=True)
class Queue:
    """Messages of a channel to be merged.

    rows   a slice, or ascending row numbers
    shift  ns to add to times
    rank   messages of a lower rank come first among those of equal time, or among all in file order
    """

    index: ChannelIndex
    channel: int
    rows: Rows
    shift: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Merged:
    """A batch of messages in order, as arrays of one length.

    queue  int32[n]  number of the Queue
    time   int64[n]  ns, shifted
    chunk, offset, size  int32[n], int64[n], int64[n]: chunk, start and bytes of the payload
    at     int64[n]  index in the entries of the block table; of synthetic messages, the row
    """

    queue: NDArray[np.int32]
    time: I64
    chunk: NDArray[np.int32]
    offset: I64
    size: I64
    at: I64

    def rows(self, which: slice | I64 | NDArray[np.bool_]) -> Merged:
        """Return the messages at these rows."""
        return Merged(*(getattr(self, name)[which] for name in Merged.__slots__))


def merged(
    queues: Sequence[Queue], by_time: bool = True, reverse: bool = False, first: int = BATCH
) -> Iterator[Merged]:
    """Yield all messages by time, ties by rank and offset; or by rank and offset; *reverse*: in reverse order.

    first  number of messages of the first batch

    Messages of joined indexes are ordered by time only; those of equal time and rank by part.
    """
    expanded = _Expanded(queues)
    if expanded.needed:
        yield from map(expanded.restored, merged(expanded.queues, by_time, reverse, first))
        return
    merge, wanted, left = _Merge(queues, by_time, reverse), first, sum(map(_count, queues))
    # Room for no more than there is: a single message is read often.
    while left > 0:
        batch = merge.take(min(wanted, left))
        if batch is None:
            return
        left -= merge.taken
        if len(batch.time):
            yield batch
        wanted = BATCH


class _Expanded:
    """Queues of joined indexes, replaced by queues of the indexes that they join.

    needed  whether there are any
    queues  the queues that replace *given*
    """

    def __init__(self, given: Sequence[Queue]) -> None:
        split = [queue.index.members(queue.channel, queue.rows) for queue in given]
        self.needed = any(members is not None for members in split)
        self.queues: list[Queue] = []
        self._given, self._owner, self._part = given, list[int](), list[int]()
        if not self.needed:
            return
        step = 1 + max(member.part for members in split for member in members or ()) if any(split) else 1
        for n, (queue, members) in enumerate(zip(given, split, strict=True)):
            if members is None:
                self._add(n, -1, replace(queue, rank=queue.rank * step))
            for member in members or ():
                rank, shift = queue.rank * step + member.part, queue.shift + member.shift
                self._add(n, member.part, Queue(member.index, member.channel, member.rows, shift, rank))
        self._owners = np.array(self._owner, np.int32)

    def _add(self, owner: int, part: int, queue: Queue) -> None:
        self.queues.append(queue)
        self._owner.append(owner)
        self._part.append(part)

    def restored(self, batch: Merged) -> Merged:
        """Return a batch with the numbers of the given queues, and of chunks in their joined indexes."""
        chunk = batch.chunk.copy()
        for number in distinct(batch.queue).tolist():
            if self._part[number] >= 0:
                in_queue = batch.queue == number
                index = self._given[self._owner[number]].index
                chunk[in_queue] = index.joined_chunks(self._part[number], batch.chunk[in_queue])
        return replace(batch, queue=self._owners.take(batch.queue), chunk=chunk)


class _Merge:
    """Queues of the kernel, and the sizes of their messages."""

    def __init__(self, queues: Sequence[Queue], by_time: bool, reverse: bool) -> None:
        self._queues, self._by_time = queues, by_time
        #: Number of messages that were taken last, missing ones included.
        self.taken = 0
        #: uint8 per block of each index that resolves lazily: whether the block is resolved.
        self._ready = {
            id(queue.index): np.zeros(len(queue.index.table.base), np.uint8)
            for queue in queues
            if queue.index.resolves_lazily
        }
        self._is_reverse = reverse
        #: Blocks with messages of the queues, ascending, of each index that is read in ranges, unless fetched before.
        self._wanted = {key: distinct(np.concatenate(blocks)) for key, blocks in _blocks_of(queues).items()}
        gather_times([(queue.index, queue.channel) for queue in queues])
        self._merging = kernel.Queues(_tournament([_count(queue) for queue in queues]), by_time, reverse)
        for queue in queues:
            self._enter(queue)
        self._rules = _SizeRules(queues)

    def _enter(self, queue: Queue) -> None:
        """Add a queue to the kernel's."""
        index, channel, rows = queue.index, queue.channel, queue.rows
        times = index.times_of(channel, rows)
        first, numbers = 0, None
        if isinstance(rows, slice):
            first = rows.indices(index.count(channel))[0]
        else:
            numbers = np.ascontiguousarray(rows, np.int64)
        if self._by_time and len(times) > 1 and not bool((times[1:] >= times[:-1]).all()):
            order = np.argsort(times, kind="stable")
            times, numbers = times[order], order + first if numbers is None else numbers[order]
        times = np.ascontiguousarray(times, np.int64)
        waiting = times, numbers, first, queue.shift, queue.rank
        if (synthetic := index.synthetic(channel)) is not None:
            self._merging.add_starts(*waiting, np.ascontiguousarray(synthetic.offset, np.int64))
            return
        table = index.table
        begin, end = table.run(channel)
        self._merging.add(
            *waiting,
            np.ascontiguousarray(table.entries(channel), np.uint32),
            np.ascontiguousarray(begin, np.int64),
            np.cumsum(end - begin),
            np.ascontiguousarray(table.base, np.int64),
            np.ascontiguousarray(table.chunk, np.int32),
            self._ready.get(id(index)),
        )

    def take(self, wanted: int) -> Merged | None:
        """Return the next messages, about *wanted*; None at the end."""
        time, start, at = (np.empty(wanted, np.int64) for _ in range(3))
        queue, chunk = (np.empty(wanted, np.int32) for _ in range(2))
        n = 0
        while n < wanted:
            n = self._merging.merge(time, queue, chunk, start, at, n)
            if n < wanted and not self._make_ready():
                break
        if not n:
            return None
        self.taken = n
        queue, at = queue[:n], at[:n]
        offset, size = self._rules.measure(queue, start[:n], at)
        batch = Merged(queue, time[:n], chunk[:n], offset, size, at)
        present = size != MISSING_SIZE
        return batch if present.all() else batch.rows(present)

    def _fetch(self, index: ChannelIndex, block: int) -> None:
        """Fetch a block of a remote log with those that are wanted next."""
        wanted = self._wanted[id(index)]
        at = int(wanted.searchsorted(block))
        if at == len(wanted) or wanted[at] != block:
            return
        lo, hi = (max(0, at + 1 - MOST_AHEAD), at + 1) if self._is_reverse else (at, at + MOST_AHEAD)
        coming = wanted[lo:hi][::-1] if self._is_reverse else wanted[lo:hi]
        n = index.fetch(coming, FETCH_BYTES)
        lo, hi = (at + 1 - n, at + 1) if self._is_reverse else (at, at + n)
        self._wanted[id(index)] = np.delete(wanted, slice(lo, hi))

    def _make_ready(self) -> bool:
        """Resolve the blocks that queues wait for; return whether any does."""
        waiting = self._merging.waiting()
        for i, block in waiting:
            index = self._queues[i].index
            if not self._ready[id(index)][block]:
                if id(index) in self._wanted:
                    self._fetch(index, int(block))
                index.resolve(np.array([block], np.int64))
                self._ready[id(index)][block] = 1
        return bool(waiting)


def _count(queue: Queue) -> int:
    """Return the number of messages of a queue."""
    rows = queue.rows
    return len(range(*rows.indices(queue.index.count(queue.channel))) if isinstance(rows, slice) else rows)


def _tournament(counts: Sequence[int]) -> I64:
    """Return int64[2k]: the node above each of k queues, and above each of k - 1 nodes of a Huffman tree.

    The more messages a queue has, the fewer comparisons they take; the root is node 1, and above it is 0.
    """
    k = len(counts)
    up = np.zeros(2 * k, np.int64)
    heap = list(zip(counts, range(k), strict=True))
    heapq.heapify(heap)
    for node in range(k - 1, 0, -1):
        (few, first), (more, second) = heapq.heappop(heap), heapq.heappop(heap)
        up[first] = up[second] = node
        heapq.heappush(heap, (few + more, k + node))
    return up


def _blocks_of(queues: Sequence[Queue]) -> dict[int, list[I64]]:
    """Return the blocks of the messages in the queues of remote logs, by the identity of their index."""
    blocks_by_index: dict[int, list[I64]] = {}
    for queue in queues:
        index = queue.index
        if index.reads_in_ranges and not index.rules[queue.channel].is_synthetic:
            first, last = index.table.run(queue.channel)
            blocks = np.repeat(np.arange(len(first), dtype=np.int64), last - first)
            blocks_by_index.setdefault(id(index), []).append(blocks[queue.rows])
    return blocks_by_index


class _SizeRules:
    """Payload starts and sizes for queues of any logs; queues with the same rule are evaluated together."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        numbers: dict[Any, int] = {}
        self._rules = kernel.SizeRules(len(queues))
        #: One queue of each rule that the kernel cannot evaluate, and the number of the rule by queue.
        self._others = list[Queue]()
        self._number = np.full(len(queues), -1, np.int64)
        for i, queue in enumerate(queues):
            if _add_rule(self._rules, queue):
                continue
            self._rules.add_unknown()
            rules = queue.index.rules[queue.channel]
            key = id(queue.index), rules.size, id(rules.payload)
            if key not in numbers:
                numbers[key] = len(numbers)
                self._others.append(queue)
            self._number[i] = numbers[key]

    def measure(self, queue: NDArray[np.int32], start: I64, at: I64) -> tuple[I64, I64]:
        """Return payload starts and sizes (or MISSING_SIZE) of messages; *at*: as in Merged."""
        offset, size = start, np.empty(len(start), np.int64)
        if not self._rules.measure(queue, start, at, size):
            return offset, size
        number = self._number.take(queue)
        rows, offset = np.flatnonzero(number >= 0), start.copy()
        for one in distinct(number[rows]).tolist():
            in_queue = rows if len(self._others) == 1 else rows[number[rows] == one]
            other, entries = self._others[one], at[in_queue]
            # Only formats without chunks store anything outside the message or compute it.
            data, rules = other.index.chunks[FILE], other.index.rules[other.channel]
            offset[in_queue], size[in_queue] = rules.measure(data, start[in_queue], _pick_at(entries))
        return offset, size


def _add_rule(rules: kernel.SizeRules, queue: Queue) -> bool:
    """Add the rule for the sizes of a queue to those of the kernel; return False if it cannot evaluate it."""
    synthetic = queue.index.synthetic(queue.channel)
    if synthetic is not None:
        add_stored(rules, synthetic.size)
        return True
    channel_rules = queue.index.rules[queue.channel]
    return channel_rules.payload is None and channel_rules.size.add_to_kernel(rules, queue.index.chunks[FILE])


def _pick_at(entries: I64) -> Pick:
    return lambda values: values[entries].astype(np.int64)


#: Messages of a first batch for callers that may want only a few.
FIRST_BATCH = 1 << 8
#: Messages whose index entries become Python objects at once; these take much more memory than arrays.
LIST_LENGTH = 8192


def in_order(
    index: ChannelIndex, rows: Mapping[int, Rows], by_time: bool, reverse: bool, first: int = BATCH
) -> Iterator[SelectedMessages]:
    """Yield the messages at *rows* of each channel in one order; *first*: the size of the first batch.

    In file order, synthetic messages of no known place come first; in the order of time, ties are in file order.
    """
    # Synthetic messages come before those of the file: definitions before what they define.
    queues = [Queue(index, n, rows[n], rank=-index.rules[n].is_synthetic) for n in sorted(rows)]
    channel = np.array(sorted(rows), np.int32)
    for batch in merged(queues, by_time, reverse, first):
        yield SelectedMessages(batch.time, channel[batch.queue], batch.chunk, batch.offset, batch.size)


def in_file_order(index: ChannelIndex, rows: Mapping[int, Rows]) -> Iterator[SelectedMessages]:
    """Yield the messages at *rows* of each channel in file order, synthetic messages first."""
    return in_order(index, rows, False, False)


def count_before(rows: Rows, numbers: I64) -> I64:
    """Return int64[n]: how many of *rows* are less than each of the row *numbers*."""
    counts: I64 = (
        np.clip(numbers, rows.start, max(rows.start, rows.stop)) - rows.start
        if isinstance(rows, slice)
        else rows.searchsorted(numbers)
    )
    return counts


def part_of(rows: Rows, first: int, last: int) -> Rows:
    """Return rows[first:last], also of a slice."""
    return slice(rows.start + first, rows.start + last) if isinstance(rows, slice) else rows[first:last]


def ranges_in_one_chunk(chunk: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """Yield start and end of consecutive rows in one chunk, at most LIST_LENGTH of them."""
    if len(chunk) == 1:
        return iter(((0, 1),))
    edges = np.flatnonzero(np.diff(chunk)) + 1
    cuts = distinct(np.concatenate((edges, np.arange(0, len(chunk), LIST_LENGTH))))
    return itertools.pairwise([*cuts.tolist(), len(chunk)])
