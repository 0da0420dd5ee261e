"""Columns of fixed-size messages: exact counts, one arena, then one pass over the blocks.

An arena is one allocation that all columns of a call are views of: large enough that the system backs it with huge
pages, which costs a fraction of the page faults that separate columns would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import Blocks
from logreel.index.channel_index import ChannelIndex
from logreel.index.ranges import PayloadRange, payload_ranges
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.io.parallel import run, shares
from logreel.kernels import block_table
from logreel.layout.paths import Leaf

Bytes1 = NDArray[np.uint8]
#: Rows of the table ``fields`` of kernels.block_table.
Fields = list[tuple[int, int, int, int, int]]

#: Below this many blocks a second thread costs more than it saves.
BLOCKS_PER_THREAD = 16


@dataclass(frozen=True, slots=True)
class Want:
    """Leaves of one channel, and whether its times too (only where the index has them as a FieldAt)."""

    channel: int
    leaves: tuple[Leaf, ...]
    time: FieldAt | None = None


@dataclass(frozen=True, slots=True)
class Gathered:
    """Filled columns of one Want.

    time     int64[n] ns, or None where not wanted
    columns  per leaf uint8[n * len(leaf.runs) * leaf.width]
    """

    time: I64 | None
    columns: list[Bytes1]


def _place(wants: Sequence[Want], counts: Sequence[int]) -> list[Gathered]:
    """One arena for everything wanted, cut into 64-byte aligned columns."""
    sizes = [
        n * w
        for want, n in zip(wants, counts, strict=True)
        for w in ([8] if want.time else []) + [len(leaf.runs) * leaf.width for leaf in want.leaves]
    ]
    starts = np.concatenate([[0], np.cumsum([(s + 63) // 64 * 64 for s in sizes], dtype=np.int64)])
    arena = np.empty(int(starts[-1]) + 64, np.uint8)
    lead = -arena.ctypes.data % 64
    cut = iter([arena[lead + a : lead + a + s] for a, s in zip(starts.tolist(), sizes, strict=False)])
    return [
        Gathered(next(cut).view(np.int64) if want.time else None, [next(cut) for _ in want.leaves])
        for want in wants
    ]


def _fields(want: Want, out: Gathered) -> Fields:
    rows = []
    if want.time and out.time is not None:
        rows.append((want.time.offset, want.time.width, out.time.ctypes.data, 8, want.time.mul))
    for leaf, column in zip(want.leaves, out.columns, strict=True):
        width, at = leaf.width, column.ctypes.data
        step = width * len(leaf.runs)
        rows += [(run, width, at + i * width, step, 0) for i, run in enumerate(leaf.runs)]
    return rows


def gather(index: ChannelIndex, wants: Sequence[Want], threads: int | None = None) -> list[Gathered]:
    """Columns of all messages of several channels that lie in the file, in file order.

    threads  None: as many as there are processors, for data large enough to share
    """
    counts = [index.count(want.channel) for want in wants]
    out = _place(wants, counts)
    live = [i for i, n in enumerate(counts) if n and (wants[i].leaves or wants[i].time)]
    if not live:
        return out
    fields = [_fields(wants[i], out[i]) for i in live]
    table = np.array([row for rows in fields for row in rows], np.int64)
    split = np.concatenate([[0], np.cumsum([len(rows) for rows in fields])]).astype(np.int64)
    channels = np.array([wants[i].channel for i in live], np.int64)

    blocks = index.blocks
    per_block = blocks.start[:, channels + 1] - blocks.start[:, channels]
    first_row = np.concatenate([np.zeros((1, len(live)), np.int64), np.cumsum(per_block, axis=0)])
    wanted = sum(counts[i] * _row_bytes(wants[i]) for i in live)
    warm = wanted * 2 > (int(blocks.base[-1]) if len(blocks.base) else 0)

    def part(_: int, share: slice) -> None:
        lo, hi = share.start, share.stop
        edges = np.flatnonzero(np.diff(blocks.chunk[lo:hi])) + lo + 1
        for a, b in zip([lo, *edges], [*edges, hi], strict=True):
            buf = index.chunks[int(blocks.chunk[a])]
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
                warm,
            )

    run(part, shares(len(blocks.base), BLOCKS_PER_THREAD, threads))
    return out


def _row_bytes(want: Want) -> int:
    """Bytes of each message that a Want touches."""
    return sum(len(leaf.runs) * leaf.width for leaf in want.leaves) + (want.time.width if want.time else 0)


def gather_rows(index: ChannelIndex, want: Want, rows: slice | I64) -> Gathered:
    """Columns of chosen messages of one channel, made or in the file.

    rows  a slice or int64[k] row numbers of the channel in file order
    """
    n = index.count(want.channel)
    (out,) = _place([want], [len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)])
    fields = _fields(want, out)
    done = 0
    for piece in payload_ranges(index, want.channel, rows):
        _gather_piece(fields, piece, done)
        done += len(piece.offset)
    return out


def gather_piece(want: Want, piece: PayloadRange) -> Gathered:
    """Columns of the messages of one piece."""
    (out,) = _place([want], [len(piece.offset)])
    _gather_piece(_fields(want, out), piece, 0)
    return out


def _gather_piece(fields: Fields, piece: PayloadRange, done: int) -> None:
    if fields and len(piece.offset):
        table = np.array(fields, np.int64)
        table[:, 2] += table[:, 3] * done
        block_table.gather_at(piece.data, np.ascontiguousarray(piece.offset), table)


def gather_times(channels: Iterable[tuple[ChannelIndex, int]]) -> None:
    """Have times that lie in the messages read, of several channels together; the index keeps them."""
    together: dict[int, tuple[ChannelIndex, list[Want]]] = {}
    for index, channel in channels:
        field = index.rules[channel].time_field
        if field is not None and not index.has_times(channel) and isinstance(index.table, Blocks):
            together.setdefault(id(index), (index, []))[1].append(Want(channel, (), field))
    for index, wants in together.values():
        for want, found in zip(wants, gather(index, wants), strict=True):
            if found.time is not None:
                index.cache_times(want.channel, found.time)
