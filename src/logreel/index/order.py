"""Messages of several channels in one order, a piece at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from logreel.index.block_table import Selection
from logreel.index.channel_index import ChannelIndex
from logreel.index.merge import PIECE, Queue, merged
from logreel.index.ranges import Rows
from logreel.io.arrays import I64

#: The first piece by time is small, for those who want only a few messages.
FIRST_PIECE = 1 << 8


def by_time(
    index: ChannelIndex, numbers: Iterable[int], start: int | None, end: int | None, reverse: bool
) -> Iterator[Selection]:
    """Messages with start <= time < end by time, ties in file order, in pieces; *reverse*: backwards."""
    rows = {n: index.rows_between(n, start, end) for n in numbers}
    return _selected(index, rows, True, reverse, FIRST_PIECE)


def by_file(
    index: ChannelIndex, numbers: Iterable[int], start: int | None, end: int | None, reverse: bool
) -> Iterator[Selection]:
    """Messages with start <= time < end in file order, in pieces; what the reader made comes first."""
    return by_rows(index, {n: index.rows_between(n, start, end) for n in numbers}, reverse)


def by_rows(index: ChannelIndex, rows: Mapping[int, Rows], reverse: bool = False) -> Iterator[Selection]:
    """Messages at *rows* of each channel in file order, in pieces; what the reader made comes first."""
    return _selected(index, rows, False, reverse, PIECE)


def _selected(
    index: ChannelIndex, rows: Mapping[int, Rows], by_time: bool, reverse: bool, first: int
) -> Iterator[Selection]:
    # Records that the reader made come before those of the file: definitions before what they define.
    queues = [Queue(index, n, rows[n], rank=-(index.rules[n].synthetic is not None)) for n in sorted(rows)]
    channel = np.array(sorted(rows), np.int32)
    for piece in merged(queues, by_time, reverse, first):
        yield Selection(piece.time, channel[piece.queue], piece.chunk, piece.offset, piece.size)


def count_before(rows: Rows, numbers: I64) -> I64:
    """How many of *rows* lie before each of these row numbers."""
    found: I64 = (
        np.clip(numbers, rows.start, max(rows.start, rows.stop)) - rows.start
        if isinstance(rows, slice)
        else rows.searchsorted(numbers)
    )
    return found


def part_of(rows: Rows, first: int, last: int) -> Rows:
    """The rows from the *first* one on, up to the *last*, which is not included."""
    return slice(rows.start + first, rows.start + last) if isinstance(rows, slice) else rows[first:last]
