"""Columns of fixed-size messages, gathered in one pass over the blocks.

All columns of a call are views of one arena, a single allocation large enough for huge pages, which costs a fraction
of the page faults of separate columns.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.index.block_table import MISSING_SIZE, Blocks, unrolled
from logreel.index.channel_index import ChannelIndex, FieldAt, MemberRows, Pick, StoredValues
from logreel.io.arrays import I64, aligned, distinct, run, run_many, shares
from logreel.io.platform import pool
from logreel.io.source import FILE, SYNTHETIC, Buffer
from logreel.kernels import block_table
from logreel.layout.layout import Leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

Rows = slice | I64

#: Bytes of decompressed chunks that are decoded together.
RANGE_BYTES = 8 << 20
#: Fewer bytes are unpacked without threads, whose start takes longer.
ALONE_BYTES = 1 << 20
#: Messages are copied out of their chunks if they are less than this part of them.
DENSE = 4


@dataclass(frozen=True, slots=True)
class PayloadRange:
    """Consecutive messages of a channel.

    data    uint8[b]  bytes that contain them
    offset  int64[n]  payload start of each
    size    int64[n]  payload bytes of each
    """

    data: Buffer
    offset: I64
    size: I64


@dataclass(frozen=True, slots=True)
class Loaded:
    """Blocks with their bytes.

    numbers  block numbers, ascending
    data     uint8[b]  bytes that contain them
    bases    int64[k]  start of each in *data*
    """

    numbers: list[int]
    data: Buffer
    bases: I64

    def payload_range(
        self, index: ChannelIndex, channel: int, entries: list[Rows] | None = None
    ) -> PayloadRange:
        """Return the messages of a channel in these blocks.

        entries  entries wanted of each block; None: all
        """
        if entries is None:
            first, last = index.table.run(channel)
            entries = [slice(int(first[i]), int(last[i])) for i in self.numbers]
        start, _ = _starts(index, channel, entries, self.bases)
        return _payload_range(index, channel, self.data, start, partial(_picked, entries))


def load(index: ChannelIndex, numbers: list[int], threads: int | None = None) -> Loaded:
    """Return some blocks with their bytes, decompressed by *threads* (None: as many as processors)."""
    chunks = [int(index.table.chunk[i]) for i in numbers]
    bases = index.table.base[numbers]
    needed = list(dict.fromkeys(chunks))
    index.chunks.fetch(needed)
    if len(needed) == 1:
        data = index.chunks[needed[0]]
    else:
        if sum(map(index.chunks.size_of, needed)) < ALONE_BYTES:
            parts = [index.chunks[chunk] for chunk in needed]
        else:
            with pool(threads or os.cpu_count() or 1) as unpackers:
                parts = list(unpackers.map(index.chunks.__getitem__, needed))
        starts = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
        place = dict(zip(needed, starts.tolist(), strict=False))
        data, bases = np.concatenate(parts), bases + np.array([place[c] for c in chunks], np.int64)
    index.resolve(np.array(numbers, np.int64))
    return Loaded(numbers, data, bases)


def batches(index: ChannelIndex, numbers: Iterable[int]) -> Iterator[list[int]]:
    """Yield block numbers to be loaded together: all consecutive ones in the file, or some megabytes of chunks."""
    batch: list[int] = []
    total = 0
    for number in numbers:
        chunk = int(index.table.chunk[number])
        before = int(index.table.chunk[batch[0]]) if batch else chunk
        if batch and ((before == FILE) != (chunk == FILE) or total >= RANGE_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += 0 if chunk == FILE else index.chunks.size_of(chunk)
    if batch:
        yield batch


def payload_ranges(index: ChannelIndex, channel: int, rows: Rows) -> Iterator[PayloadRange]:
    """Yield the messages at *rows* of a channel (a slice, or ascending row numbers), in order.

    Raises FileChangedError after a range whose bytes the file does not have any more.
    """
    if index.members(channel, slice(0, 0)) is not None:
        for member in index.in_turn(channel, rows):
            yield from payload_ranges(member.index, member.channel, member.rows)
        return
    synthetic = index.synthetic(channel)
    if synthetic is not None:
        yield PayloadRange(index.chunks[SYNTHETIC], synthetic.offset[rows], synthetic.size[rows])
        return
    if (index.table.chunk == FILE).all():
        yield _payload_range(index, channel, index.chunks[FILE], *_in_file(index, channel, rows))
        # What the caller made of the range is valid only if the file still has it.
        index.chunks.check()
        return
    wanted = dict(_by_block(index, channel, rows))
    for batch in batches(index, wanted):
        entries = [wanted[number] for number in batch]
        copied = _copied(index, channel, batch, entries)
        yield copied or load(index, batch).payload_range(index, channel, entries)
        index.chunks.check()


def _copied(
    index: ChannelIndex, channel: int, numbers: list[int], entries: list[Rows]
) -> PayloadRange | None:
    """Return copies of the messages of a channel in some packed blocks; None where that copies more than it saves.

    That is where their sizes are not known yet or differ, and where they are much of the chunks.
    """
    rules, table = index.rules[channel], index.table
    has_more = rules.payload is not None or rules.time_field is not None
    if has_more or not isinstance(rules.size, StoredValues) or table.chunk[numbers[0]] == FILE:
        return None
    sizes = _picked(entries, rules.size.stored)
    size, chunks = int(sizes[0]), table.chunk[numbers].tolist()
    is_sparse = size * len(sizes) * DENSE < sum(map(index.chunks.size_of, dict.fromkeys(chunks)))
    if not 0 < size < MISSING_SIZE or not is_sparse or (sizes != size).any():
        return None
    index.resolve(np.array(numbers, np.int64))
    index.chunks.fetch(list(dict.fromkeys(chunks)))
    start, lengths = _starts(index, channel, entries, table.base[numbers])
    ends = np.cumsum(lengths).tolist()
    out, field = np.empty(size * len(sizes), np.uint8), np.array([(0, size, 0, size, 0)], block_table.FIELD)

    def copy(chunk: int, lo: int, hi: int) -> None:
        block_table.gather_at(index.chunks[chunk], start[lo:hi], field, out, lo)

    run_many([partial(copy, *block) for block in zip(chunks, [0, *ends], ends, strict=False)], 2)
    return PayloadRange(out, np.arange(len(sizes), dtype=np.int64) * size, sizes)


def _in_file(index: ChannelIndex, channel: int, rows: Rows) -> tuple[I64, Pick]:
    """Return the starts of messages of a log without chunks, and what selects their stored numbers."""
    first, last = index.table.run(channel)
    ends = np.cumsum(last - first)
    if not isinstance(rows, slice):
        block = ends.searchsorted(rows, side="right")
        index.resolve(distinct(block))
        entry = rows - (ends - last)[block]
        start = index.table.entries(channel)[entry] + index.table.base[block]
        return start, partial(_picked, [entry])
    lo, hi, _ = rows.indices(int(ends[-1]) if len(ends) else 0)
    # The blocks from the one that holds the first of them to the one that holds the last.
    a, b = int(ends.searchsorted(lo, side="right")), int(ends.searchsorted(hi, side="left")) + 1
    first, last = (first[a:b].copy(), last[a:b].copy()) if lo < hi else (first[:0], last[:0])
    if len(first):
        first[0] = last[0] - (int(ends[a]) - lo)
        last[-1] -= int(ends[a + len(last) - 1]) - hi
    index.resolve(np.flatnonzero(last > first) + a)
    start = unrolled(index.table.entries(channel), first, last, index.table.base[a : a + len(first)])
    return start, partial(unrolled, first=first, last=last)


def _payload_range(index: ChannelIndex, channel: int, data: Buffer, start: I64, pick: Pick) -> PayloadRange:
    offset, size = index.rules[channel].measure(data, start, pick)
    # A message without bytes cannot be decoded; decoding reports it.
    size[size == MISSING_SIZE] = 0
    return PayloadRange(data, offset, size)


def places(index: ChannelIndex, channel: int, rows: Rows) -> tuple[NDArray[np.int32], I64, I64]:
    """Return int32[n] chunks, int64[n] payload starts and sizes (or MISSING_SIZE) of messages at *rows*, ascending."""
    members = index.members(channel, rows)
    if members is not None:
        return _places_of_members(index, members)
    synthetic = index.synthetic(channel)
    if synthetic is not None:
        offset = synthetic.offset[rows]
        return np.full(len(offset), SYNTHETIC, np.int32), offset, synthetic.size[rows]
    if (index.table.chunk == FILE).all():
        start, pick = _in_file(index, channel, rows)
        offset, size = index.rules[channel].measure(index.chunks[FILE], start, pick)
        return np.full(len(offset), FILE, np.int32), offset, size
    by_block = dict(_by_block(index, channel, rows))
    if not by_block:
        return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers, entries = np.array(list(by_block), np.int64), list(by_block.values())
    index.resolve(numbers)
    start, lengths = _starts(index, channel, entries, index.table.base[numbers])
    chunk = np.repeat(index.table.chunk[numbers], lengths)
    # Only formats without chunks store sizes outside the message or compute them.
    return chunk, *index.rules[channel].measure(index.chunks[FILE], start, partial(_picked, entries))


def _places_of_members(
    index: ChannelIndex, members: Sequence[MemberRows]
) -> tuple[NDArray[np.int32], I64, I64]:
    member_places = [(m.part, m.at, *places(m.index, m.channel, m.rows)) for m in members]
    n = sum(len(offset) for _, _, _, offset, _ in member_places)
    chunk, offset, size = np.empty(n, np.int32), np.empty(n, np.int64), np.empty(n, np.int64)
    for part, at, chunks, offsets, sizes in member_places:
        chunk[at], offset[at], size[at] = index.joined_chunks(part, chunks), offsets, sizes
    return chunk, offset, size


def _starts(index: ChannelIndex, channel: int, entries: list[Rows], bases: I64) -> tuple[I64, list[int]]:
    """Return message starts in blocks that begin at *bases*, and their number in each block."""
    offsets = [index.table.entries(channel)[entry] for entry in entries]
    lengths = [len(block_offsets) for block_offsets in offsets]
    start, n = np.empty(sum(lengths), np.int64), 0
    for block_offsets, base in zip(offsets, bases.tolist(), strict=True):
        np.add(block_offsets, base, out=start[n : n + len(block_offsets)], dtype=np.int64, casting="unsafe")
        n += len(block_offsets)
    return start, lengths


def _picked(entries: list[Rows], values: NDArray[Any]) -> I64:
    return np.concatenate([values[entry] for entry in entries]).astype(np.int64)


def _by_block(index: ChannelIndex, channel: int, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Yield each block with wanted rows: its number, and the entries wanted."""
    start, last = index.table.run(channel)
    count = last - start
    ends = np.cumsum(count)
    if isinstance(rows, slice):
        lo, hi, _ = rows.indices(int(ends[-1]) if len(ends) else 0)
        from_, to = ends.searchsorted(lo, side="right"), ends.searchsorted(hi, side="left")
        for i in range(int(from_), min(int(to) + 1, len(ends))):
            before = int(ends[i] - count[i])
            a, b = max(lo - before, 0), min(hi - before, int(count[i]))
            if b > a:
                yield i, slice(int(start[i]) + a, int(start[i]) + b)
        return
    block = ends.searchsorted(rows, side="right")
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(rows)] if len(rows) else []
    for a, b in pairwise(edges):
        i = int(block[a])
        yield i, rows[a:b] - (ends[i] - count[i]) + start[i]


def intersect_rows(a: Rows, b: Rows) -> Rows:
    """Return the rows that are in both, each a slice without a step or ascending row numbers."""
    if isinstance(a, slice):
        if not isinstance(b, slice):
            return _rows_in_slice(b, a)
        first, stop = max(a.start, b.start), min(a.stop, b.stop)
        return slice(first, max(first, stop))
    return _rows_in_slice(a, b) if isinstance(b, slice) else np.intersect1d(a, b, assume_unique=True)


def _rows_in_slice(rows: I64, span: slice) -> I64:
    inside: I64 = rows[(rows >= span.start) & (rows < span.stop)]
    return inside


Bytes1 = np.ndarray[tuple[Any, ...], np.dtype[np.uint8]]

#: Below so many blocks or messages per thread, a further thread costs more than it saves.
BLOCKS_PER_THREAD, MESSAGES_PER_THREAD = 16, 4096


@dataclass(frozen=True, slots=True)
class Want:
    """Leaves of a channel to gather, and the field of its times; None: not wanted, or no field."""

    channel: int
    leaves: Leaves
    time: FieldAt | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """Filled columns of one Want.

    time     int64[n] ns, or None if not wanted
    columns  per leaf uint8[n * len(leaf.runs) * leaf.width]
    """

    time: I64 | None
    columns: list[Bytes1]


def _allocate(wants: Sequence[Want], counts: Sequence[int]) -> tuple[Bytes1, list[Gathered], list[I64]]:
    """Return an arena for all wants, aligned columns in it, and int64[k, 5]: the kernel's table to fill them."""
    places, size = list[list[int]](), 0
    for want, n in zip(wants, counts, strict=True):
        starts, steps = list[int](), want.leaves.steps
        for step in (8, *steps) if want.time else steps:
            starts.append(size)
            size += -(-n * step // 64) * 64
        places.append(starts)
    arena, out, fields = aligned(size), list[Gathered](), list[I64]()
    for want, n, starts in zip(wants, counts, places, strict=True):
        runs, owner = want.leaves.runs
        table, time = runs.copy(), None
        if want.time:
            at, *starts = starts
            time = arena[at : at + 8 * n].view(np.int64)
        table[:, 2] += np.array(starts, np.int64)[owner]
        if want.time:
            first = (want.time.offset, want.time.width, at, 8, want.time.mul)
            table = np.concatenate([np.array([first], np.int64), table])
        columns = [arena[at : at + n * step] for at, step in zip(starts, want.leaves.steps, strict=True)]
        out.append(Gathered(time, columns))
        fields.append(table)
    return arena, out, fields


def _table(rows: I64) -> NDArray[Any]:
    """Return int64[k, 5] as the kernel's table of fields."""
    return rows.reshape(-1).view(block_table.FIELD)


def gather_bytes(data: Bytes1, offset: I64, width: int, at: int = 0) -> Bytes1:
    """Return uint8[n, width]: the bytes at offset[i] + *at* of *data*; the caller has checked the bounds."""
    out = np.empty((len(offset), width), np.uint8)
    field = np.array([(at, width, 0, width, 0)], block_table.FIELD)
    block_table.gather_at(data, np.ascontiguousarray(offset, np.int64), field, out.reshape(-1))
    return out


def gather(index: ChannelIndex, wants: Sequence[Want], threads: int | None = None) -> list[Gathered]:
    """Gather columns of all messages of several channels in the file, in file order.

    threads  None: as many as processors, if the data is large enough
    """
    counts = [index.count(want.channel) for want in wants]
    arena, out, every = _allocate(wants, counts)
    live = [i for i, n in enumerate(counts) if n and (wants[i].leaves or wants[i].time)]
    if not live:
        return out
    # One pass over the blocks of each index; a channel may come from several.
    parts: dict[tuple[int, int], _Share] = {}
    for i in live:
        sources = index.sources(wants[i].channel)
        for (source, channel, first), turn in zip(sources, _turns(sources), strict=True):
            share = parts.setdefault((id(source), turn), _Share(source, [], [], [], 0))
            share.channels.append(channel)
            share.first_rows.append(first)
            share.fields.append(every[i])
            share.wanted += source.count(channel) * _row_bytes(wants[i])
    for share in parts.values():
        _fill(share, arena, threads)
        share.source.chunks.check()
    for i in live:
        order = index.order(wants[i].channel)
        if order is not None:
            out[i] = _reordered(out[i], order)
    return out


@dataclass(slots=True)
class _Share:
    """Columns to fill from one index.

    channels    channel numbers there
    first_rows  row of each column set where those messages begin
    fields      int64[k, 5] for each channel: rows of the kernel's table
    wanted      bytes to copy
    """

    source: ChannelIndex
    channels: list[int]
    first_rows: list[int]
    fields: list[I64]
    wanted: int


def _turns(sources: Sequence[tuple[ChannelIndex, int, int]]) -> list[int]:
    """Return for each source how many of those before it are of the same index."""
    seen: Counter[int] = Counter()
    turns = []
    for source, _, _ in sources:
        turns.append(seen[id(source)])
        seen[id(source)] += 1
    return turns


def _reordered(got: Gathered, order: I64) -> Gathered:
    """Return columns with their rows in another order."""
    n = len(order)
    columns = [column.reshape(n, -1)[order].reshape(-1) if n else column for column in got.columns]
    return Gathered(None if got.time is None else got.time[order], columns)


def _fill(share: _Share, arena: Bytes1, threads: int | None) -> None:
    """Fill columns from all messages of some channels of one index, in one pass over its blocks."""
    index = share.source
    table = _table(np.concatenate(share.fields))
    split = np.cumsum([0, *map(len, share.fields)], dtype=np.int64)
    channels = np.array(share.channels, np.int64)

    blocks = index.blocks
    per_block = blocks.start[:, channels + 1] - blocks.start[:, channels]
    first_row = np.cumsum(np.concatenate([[share.first_rows], per_block], axis=0), axis=0, dtype=np.int64)
    warm = share.wanted * 2 > (int(blocks.base[-1]) if len(blocks.base) else 0)

    def part(lo: int, hi: int) -> None:
        edges = np.flatnonzero(np.diff(blocks.chunk[lo:hi])) + lo + 1
        for a, b in zip([lo, *edges], [*edges, hi], strict=True):
            buf = index.chunks[int(blocks.chunk[a])]
            if index.resolves_lazily:
                index.resolve(np.arange(a, b))
            rows = first_row[a].copy()
            block_table.gather_blocks(
                buf,
                blocks.base,
                blocks.start,
                blocks.entry,
                int(a),
                int(b),
                channels,
                rows,
                split,
                table,
                arena,
                warm,
            )

    messages = max(1, int(per_block.sum()))
    enough = -(-len(blocks.base) * MESSAGES_PER_THREAD // messages)
    parts = shares(len(blocks.base), max(BLOCKS_PER_THREAD, enough), threads)
    run([partial(part, share.start, share.stop) for share in parts])


def _row_bytes(want: Want) -> int:
    """Return the bytes of each message that a Want reads."""
    return want.leaves.row_bytes + (want.time.width if want.time else 0)


def gather_rows(index: ChannelIndex, want: Want, rows: slice | I64) -> Gathered:
    """Gather columns of some messages of one channel, synthetic or in the file.

    rows  a slice or int64[k] row numbers of the channel in file order
    """
    n = index.count(want.channel)
    n = len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)
    arena, (out,), (fields,) = _allocate([want], [n])
    table = _table(fields)
    done = 0
    for messages in payload_ranges(index, want.channel, rows):
        block_table.gather_at(messages.data, np.ascontiguousarray(messages.offset), table, arena, done)
        done += len(messages.offset)
    return out


def gather_range(want: Want, messages: PayloadRange) -> Gathered:
    """Gather columns of the messages of one range."""
    arena, (out,), (fields,) = _allocate([want], [len(messages.offset)])
    table = _table(fields)
    block_table.gather_at(messages.data, np.ascontiguousarray(messages.offset), table, arena)
    return out


def gather_times(channels: Iterable[tuple[ChannelIndex, int]]) -> None:
    """Gather times that are fields of messages, of several channels together; the index caches them."""
    together: dict[int, tuple[ChannelIndex, list[Want]]] = {}
    for index, channel in channels:
        if index.has_times(channel):
            continue
        for source, number, _ in index.sources(channel):
            field = source.rules[number].time_field
            if field is not None and not source.has_times(number) and isinstance(source.table, Blocks):
                together.setdefault(id(source), (source, []))[1].append(Want(number, Leaves(), field))
    for index, wants in together.values():
        for want, columns in zip(wants, gather(index, wants), strict=True):
            if columns.time is not None:
                index.cache_times(want.channel, columns.time)
