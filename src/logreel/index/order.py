"""Messages of several channels of one log in one order, batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import Selection
from logreel.index.channel_index import ChannelIndex
from logreel.index.merge import BATCH, Queue, merged
from logreel.index.ranges import Rows
from logreel.io.arrays import I64

#: Messages of a first batch for callers that may want only a few.
FIRST_BATCH = 1 << 8
#: Messages whose index entries become Python objects at once; these take much more memory than arrays.
LIST_LENGTH = 8192


def in_order(
    index: ChannelIndex, rows: Mapping[int, Rows], by_time: bool, reverse: bool, first: int = BATCH
) -> Iterator[Selection]:
    """Yield the messages at *rows* of each channel in one order; *first*: the size of the first batch.

    In file order, synthetic messages of no known place come first; in the order of time, ties are in file order.
    """
    # Synthetic messages come before those of the file: definitions before what they define.
    queues = [Queue(index, n, rows[n], rank=-index.rules[n].is_synthetic) for n in sorted(rows)]
    channel = np.array(sorted(rows), np.int32)
    for batch in merged(queues, by_time, reverse, first):
        yield Selection(batch.time, channel[batch.queue], batch.chunk, batch.offset, batch.size)


def in_file_order(index: ChannelIndex, rows: Mapping[int, Rows]) -> Iterator[Selection]:
    """Yield the messages at *rows* of each channel in file order, synthetic messages first."""
    return in_order(index, rows, False, False)


def count_before(rows: Rows, numbers: I64) -> I64:
    """Return int64[n]: how many of *rows* are less than each of the row *numbers*."""
    found: I64 = (
        np.clip(numbers, rows.start, max(rows.start, rows.stop)) - rows.start
        if isinstance(rows, slice)
        else rows.searchsorted(numbers)
    )
    return found


def part_of(rows: Rows, first: int, last: int) -> Rows:
    """Return rows[first:last], also of a slice."""
    return slice(rows.start + first, rows.start + last) if isinstance(rows, slice) else rows[first:last]


def ranges_in_one_chunk(chunk: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """Yield start and end of consecutive rows in one chunk, at most LIST_LENGTH of them."""
    if len(chunk) == 1:
        return iter(((0, 1),))
    edges = np.flatnonzero(np.diff(chunk)) + 1
    cuts = np.union1d(edges, np.arange(0, len(chunk), LIST_LENGTH))
    return itertools.pairwise([*cuts.tolist(), len(chunk)])
