"""Messages of several channels in one order, a piece at a time.

What is held at once are the times of the channels wanted and the places of one piece, never a list of all messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.model.chunks import MADE
from logreel.model.index import GONE, I64, TIME_MAX, TIME_MIN, MessageIndex, Selection
from logreel.model.pieces import Rows, places

#: About so many messages make a piece; the first one is small, for those who want only a few.
PIECE = 1 << 16
FIRST_PIECE = 1 << 8


@dataclass(slots=True)
class _Channel:
    """One channel by time: sorted times, and the rows in that order (None: rows are in order already)."""

    number: int
    times: I64
    rows: I64 | None

    @classmethod
    def of(cls, index: MessageIndex, number: int) -> _Channel:
        times = index.times(number)
        if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
            return cls(number, times, None)
        rows = np.argsort(times, kind="stable")
        return cls(number, times[rows], rows)

    def between(self, start: int, end: int) -> slice:
        lo, hi = self.times.searchsorted([start, end]).tolist()
        return slice(lo, hi)

    def pick(self, index: MessageIndex, span: slice) -> Selection:
        """The messages at *span* of the time order."""
        if self.rows is None:
            return _select(index, self.number, span, self.times[span])
        rows = self.rows[span]
        # Places are looked up in file order, as they lie.
        order = np.argsort(rows)
        return _select(index, self.number, rows[order], self.times[span][order])


def _select(index: MessageIndex, number: int, rows: Rows, times: I64) -> Selection:
    chunk, offset, size = places(index, number, rows)
    found = Selection(times, np.full(len(times), number, np.int32), chunk, offset, size)
    there = size != GONE
    return found if there.all() else _rows(found, there)


def _rows(found: Selection, keep: NDArray[np.bool_]) -> Selection:
    return Selection(*(getattr(found, name)[keep] for name, _ in Selection.KINDS))


def _merged(parts: list[Selection], by_time: bool, reverse: bool) -> Selection:
    time, channel, chunk, offset, size = (
        np.concatenate([getattr(p, name) for p in parts]) for name, _ in Selection.KINDS
    )
    # Records that the reader made come before those of the file: definitions before what they define.
    place = np.where(chunk == MADE, np.int64(TIME_MIN), chunk)
    at = np.lexsort((offset, place, time) if by_time else (offset, place))
    if reverse:
        at = at[::-1]
    return Selection(time[at], channel[at], chunk[at], offset[at], size[at])


def by_time(
    index: MessageIndex, numbers: Iterable[int], start: int | None, end: int | None, reverse: bool
) -> Iterator[Selection]:
    """Messages with start <= time < end by time, ties in file order, in pieces; *reverse*: backwards."""
    channels = [_Channel.of(index, n) for n in sorted(set(numbers))]
    lo, hi = TIME_MIN if start is None else start, TIME_MAX if end is None else end
    channels = [c for c in channels if c.between(lo, hi).start < c.between(lo, hi).stop]
    width, wanted = 10**6, FIRST_PIECE
    while channels:
        edge = _edge(channels, lo, hi, reverse)
        if edge is None:
            return
        width = _fit(channels, edge, width, wanted, lo, hi, reverse)
        a, b = (max(edge + 1 - width, lo), edge + 1) if reverse else (edge, min(edge + width, hi))
        parts = [c.pick(index, c.between(a, b)) for c in channels]
        yield _merged(parts, True, reverse)
        lo, hi = (lo, a) if reverse else (b, hi)
        wanted = PIECE


def _edge(channels: list[_Channel], lo: int, hi: int, reverse: bool) -> int | None:
    """The first time in [lo, hi), or the last one where we go backwards."""
    spans = [(c, c.between(lo, hi)) for c in channels]
    if reverse:
        return max((int(c.times[s.stop - 1]) for c, s in spans if s.stop > s.start), default=None)
    return min((int(c.times[s.start]) for c, s in spans if s.stop > s.start), default=None)


def _fit(
    channels: list[_Channel], edge: int, width: int, wanted: int, lo: int, hi: int, reverse: bool
) -> int:
    """A width of time from *edge* on that holds about *wanted* messages, found from the last one used."""

    def count(w: int) -> int:
        a, b = (max(edge + 1 - w, lo), edge + 1) if reverse else (edge, min(edge + w, hi))
        return sum(s.stop - s.start for s in (c.between(a, b) for c in channels))

    while width > 1 and count(width) > 2 * wanted:
        width = max(width // 4, 1)
    while width < hi - lo and count(width) < wanted // 2:
        width *= 4
    return width


def by_file(
    index: MessageIndex, numbers: Iterable[int], start: int | None, end: int | None, reverse: bool
) -> Iterator[Selection]:
    """Messages with start <= time < end in file order, in pieces; what the reader made comes first."""
    return by_rows(index, {n: index.rows_between(n, start, end) for n in numbers}, reverse)


def by_rows(index: MessageIndex, rows: Mapping[int, Rows], reverse: bool = False) -> Iterator[Selection]:
    """Messages at *rows* of each channel in file order, in pieces; what the reader made comes first."""
    chosen = sorted(rows)
    made = [n for n in chosen if index.tracks[n].made is not None]
    inside = [n for n in chosen if index.tracks[n].made is None]
    counts = np.zeros((len(index.table.base), len(inside)), np.int64)
    for i, (begin, end) in enumerate(index.table.run(n) for n in inside):
        counts[:, i] = end - begin
    ends = np.concatenate([np.zeros((1, len(inside)), np.int64), np.cumsum(counts, axis=0)])
    for k, n in enumerate(inside):
        ends[:, k] = count_before(rows[n], ends[:, k])
    total = ends.sum(axis=1)
    # Blocks before the first message and behind the last one need no look.
    last = int(total.searchsorted(total[-1]))
    cuts = [max(0, int(total.searchsorted(0, side="right")) - 1)]
    while cuts[-1] < last:
        cuts.append(max(cuts[-1] + 1, int(total.searchsorted(int(total[cuts[-1]]) + PIECE)) - 1))
    stretches = [
        [
            (n, part_of(rows[n], int(a), int(b)))
            for n, a, b in zip(inside, ends[lo], ends[hi], strict=True)
            if b > a
        ]
        for lo, hi in itertools.pairwise(cuts)
    ]
    stretches.insert(0, [(n, rows[n]) for n in made])
    for stretch in reversed(stretches) if reverse else stretches:
        if stretch:
            parts = [_select(index, n, some, index.times(n)[some]) for n, some in stretch]
            yield _merged(parts, False, reverse)


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
