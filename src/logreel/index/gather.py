"""Columns of fixed-size messages, gathered in one pass over the blocks.

All columns of a call are views of one arena, a single allocation large enough for huge pages, which costs a fraction
of the page faults of separate columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import Blocks
from logreel.index.channel_index import ChannelIndex
from logreel.index.ranges import PayloadRange, payload_ranges
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64, aligned
from logreel.io.parallel import run, shares
from logreel.kernels import block_table
from logreel.layout.paths import Leaf

Bytes1 = NDArray[np.uint8]
#: A row of the kernel's table of fields: offset, width, offset in the arena, step, multiplier.
FieldRow = tuple[int, int, int, int, int]

#: Below so many blocks or messages per thread, a further thread costs more than it saves.
BLOCKS_PER_THREAD, MESSAGES_PER_THREAD = 16, 4096


@dataclass(frozen=True, slots=True)
class Want:
    """Leaves of a channel to gather, and the field of its times; None: not wanted, or no field."""

    channel: int
    leaves: tuple[Leaf, ...]
    time: FieldAt | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """Filled columns of one Want.

    time     int64[n] ns, or None if not wanted
    columns  per leaf uint8[n * len(leaf.runs) * leaf.width]
    """

    time: I64 | None
    columns: list[Bytes1]


def _allocate(
    wants: Sequence[Want], counts: Sequence[int]
) -> tuple[Bytes1, list[Gathered], list[list[FieldRow]]]:
    """Return an arena for all wants, 64-byte aligned columns in it, and rows of the kernel's table to fill them."""
    size = sum(
        -(-n * w // 64) * 64
        for want, n in zip(wants, counts, strict=True)
        for w in ([8] if want.time else []) + [len(leaf.runs) * leaf.width for leaf in want.leaves]
    )
    arena = aligned(size)
    at, out, fields = 0, list[Gathered](), list[list[FieldRow]]()
    for want, n in zip(wants, counts, strict=True):
        rows: list[FieldRow] = []
        time, columns = None, list[Bytes1]()
        if want.time:
            rows.append((want.time.offset, want.time.width, at, 8, want.time.mul))
            time = arena[at : at + 8 * n].view(np.int64)
            at += -(-8 * n // 64) * 64
        for leaf in want.leaves:
            width = leaf.width
            step = width * len(leaf.runs)
            rows += [(run, width, at + i * width, step, 0) for i, run in enumerate(leaf.runs)]
            columns.append(arena[at : at + step * n])
            at += -(-step * n // 64) * 64
        out.append(Gathered(time, columns))
        fields.append(rows)
    return arena, out, fields


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
        found = index.sources(wants[i].channel)
        for (source, channel, first), turn in zip(found, _turns(found), strict=True):
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
    fields      rows of the kernel's table for each channel
    wanted      bytes to copy
    """

    source: ChannelIndex
    channels: list[int]
    first_rows: list[int]
    fields: list[list[FieldRow]]
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
    table = np.array([row for rows in share.fields for row in rows], block_table.FIELD)
    split = np.concatenate([[0], np.cumsum([len(rows) for rows in share.fields])]).astype(np.int64)
    channels = np.array(share.channels, np.int64)

    blocks = index.blocks
    per_block = blocks.start[:, channels + 1] - blocks.start[:, channels]
    first_row = np.cumsum(np.concatenate([[share.first_rows], per_block], axis=0), axis=0, dtype=np.int64)
    warm = share.wanted * 2 > (int(blocks.base[-1]) if len(blocks.base) else 0)

    def part(_: int, some: slice) -> None:
        lo, hi = some.start, some.stop
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

    many = max(1, int(per_block.sum()))
    enough = -(-len(blocks.base) * MESSAGES_PER_THREAD // many)
    run(part, shares(len(blocks.base), max(BLOCKS_PER_THREAD, enough), threads))


def _row_bytes(want: Want) -> int:
    """Return the bytes of each message that a Want reads."""
    return sum(len(leaf.runs) * leaf.width for leaf in want.leaves) + (want.time.width if want.time else 0)


def gather_rows(index: ChannelIndex, want: Want, rows: slice | I64) -> Gathered:
    """Gather columns of some messages of one channel, synthetic or in the file.

    rows  a slice or int64[k] row numbers of the channel in file order
    """
    n = index.count(want.channel)
    n = len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)
    arena, (out,), (fields,) = _allocate([want], [n])
    table = np.array(fields, block_table.FIELD)
    done = 0
    for some in payload_ranges(index, want.channel, rows):
        block_table.gather_at(some.data, np.ascontiguousarray(some.offset), table, arena, done)
        done += len(some.offset)
    return out


def gather_range(want: Want, some: PayloadRange) -> Gathered:
    """Gather columns of the messages of one range."""
    arena, (out,), (fields,) = _allocate([want], [len(some.offset)])
    table = np.array(fields, block_table.FIELD)
    block_table.gather_at(some.data, np.ascontiguousarray(some.offset), table, arena)
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
                together.setdefault(id(source), (source, []))[1].append(Want(number, (), field))
    for index, wants in together.values():
        for want, found in zip(wants, gather(index, wants), strict=True):
            if found.time is not None:
                index.cache_times(want.channel, found.time)
