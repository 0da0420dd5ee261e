"""Messages of one channel piece by piece: for each piece the bytes they lie in and their places there.

A piece is as much as can be decoded in one go: all that lies in the file itself, or some megabytes of unpacked chunks
put together. Only the blocks that the wanted rows lie in are touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.model.chunks import FILE, MADE, Buffer
from logreel.model.index import GONE, I64, Aligned, MessageIndex, Word, words

Rows = slice | I64

#: Unpacked chunks are decoded together until they make this many bytes.
PIECE_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive messages of a channel.

    data    uint8[b]  the bytes that they lie in
    offset  int64[n]  payload start of each
    size    int64[n]  payload bytes of each
    """

    data: Buffer
    offset: I64
    size: I64


@dataclass(frozen=True, slots=True)
class Loaded:
    """Blocks whose bytes are at hand.

    numbers  their numbers, ascending
    data     uint8[b]  the bytes that they lie in
    bases    int64[k]  where each begins in them
    """

    numbers: list[int]
    data: Buffer
    bases: I64

    def piece(self, index: MessageIndex, channel: int, entries: list[I64] | None = None) -> Piece:
        """Messages of a channel in these blocks.

        entries  for each block the numbers of the entries wanted; None: all
        """
        if entries is None:
            spans = index.blocks.start[self.numbers, channel : channel + 2].tolist()
            entries = [np.arange(lo, hi) for lo, hi in spans]
        entry, lengths = np.concatenate(entries), [len(e) for e in entries]
        offset = np.repeat(self.bases, lengths) + index.blocks.entry[entry]
        rule = index.tracks[channel].size
        size = words(self.data, offset, rule) if isinstance(rule, Word) else _sizes(rule, entry)
        # Without bytes it cannot be decoded, which is noted there.
        size[size == GONE] = 0
        return Piece(self.data, offset, size)


def load(index: MessageIndex, numbers: list[int], threads: int | None = None) -> Loaded:
    """The bytes of some blocks, unpacked by so many threads (None: as many as there are processors)."""
    chunks = [int(index.blocks.chunk[i]) for i in numbers]
    bases = index.blocks.base[numbers]
    distinct = list(dict.fromkeys(chunks))
    if len(distinct) == 1:
        data = index.chunks[distinct[0]]
    else:
        with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
            parts = list(pool.map(index.chunks.__getitem__, distinct))
        starts = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
        place = dict(zip(distinct, starts.tolist(), strict=False))
        data, bases = np.concatenate(parts), bases + np.array([place[c] for c in chunks], np.int64)
    index.resolve(np.array(numbers, np.int64))
    return Loaded(numbers, data, bases)


def batches(index: MessageIndex, numbers: Iterable[int]) -> Iterator[list[int]]:
    """Blocks *numbers* put together as they are to be loaded: as much of the file as there is, or some megabytes."""
    batch: list[int] = []
    total = 0
    for number in numbers:
        chunk = int(index.blocks.chunk[number])
        before = int(index.blocks.chunk[batch[0]]) if batch else chunk
        if batch and ((before == FILE) != (chunk == FILE) or total >= PIECE_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(number)
        total += 0 if chunk == FILE else index.chunks.size_of(chunk)
    if batch:
        yield batch


def pieces(index: MessageIndex, channel: int, rows: Rows) -> Iterator[Piece]:
    """The messages at *rows* of a channel (a slice, or ascending row numbers), in order."""
    made = index.made(channel)
    if made is not None:
        yield Piece(index.chunks[MADE], made.offset[rows], made.size[rows])
        return
    wanted = dict(_by_block(index, channel, rows))
    for batch in batches(index, wanted):
        yield load(index, batch).piece(index, channel, [wanted[number] for number in batch])


def places(index: MessageIndex, channel: int, rows: Rows) -> tuple[NDArray[np.int32], I64, I64]:
    """Chunk, payload start in it and payload size (or GONE) of the messages at *rows* of a channel (ascending)."""
    made = index.made(channel)
    if made is not None:
        offset = made.offset[rows]
        return np.full(len(offset), MADE, np.int32), offset, made.size[rows]
    found = [(row, entries) for row, entries in _by_block(index, channel, rows)]
    if not found:
        return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers = np.array([row for row, _ in found], np.int64)
    index.resolve(numbers)
    entry = np.concatenate([e for _, e in found])
    lengths = [len(e) for _, e in found]
    chunk = np.repeat(index.blocks.chunk[numbers], lengths)
    offset = index.blocks.entry[entry] + np.repeat(index.blocks.base[numbers], lengths)
    rule = index.tracks[channel].size
    if isinstance(rule, Word):
        # Only formats without chunks keep the size beside the message.
        return chunk, offset, words(index.chunks[FILE], offset, rule)
    return chunk, offset, _sizes(rule, entry)


def _sizes(rule: Aligned | int, entry: I64) -> I64:
    if isinstance(rule, Aligned):
        return rule.values[entry].astype(np.int64)
    return np.full(len(entry), rule, np.int64)


def _by_block(index: MessageIndex, channel: int, rows: Rows) -> Iterator[tuple[int, I64]]:
    """Block by block: its number, and the numbers of the entries wanted."""
    start = index.blocks.start
    count = start[:, channel + 1] - start[:, channel]
    ends = np.cumsum(count)
    if isinstance(rows, slice):
        lo, hi, _ = rows.indices(int(ends[-1]) if len(ends) else 0)
        first, last = ends.searchsorted(lo, side="right"), ends.searchsorted(hi, side="left")
        for i in range(int(first), min(int(last) + 1, len(ends))):
            before = int(ends[i] - count[i])
            a, b = max(lo - before, 0), min(hi - before, int(count[i]))
            if b > a:
                yield i, np.arange(int(start[i, channel]) + a, int(start[i, channel]) + b)
        return
    block = ends.searchsorted(rows, side="right")
    for i in np.unique(block).tolist():
        yield i, rows[block == i] - (ends[i] - count[i]) + start[i, channel]
