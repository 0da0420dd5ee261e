"""The index of a remote file: it says where all blocks are, and each block is verified when it is fetched.

The index is used only if the blocks that it names leave no byte of the file over: a block without messages ends where
the next one begins, and the payloads of a series have the total size that the index states.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.bddf.descriptors import Series
from logreel.formats.bddf.found import Found
from logreel.formats.bddf.index_builder import locate_payloads
from logreel.formats.bddf.index_reader import BadIndex, Index, VerifiedIndex
from logreel.formats.bddf.records import MAGIC
from logreel.index.block_table import MISSING_SIZE, Blocks, unrolled
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, ComputedValues, StoredValues
from logreel.io.arrays import I64
from logreel.io.chunks import FILE, Buffer, Chunks
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.schemas.protobuf.wire import BadWire

#: Bytes of data blocks that are fetched and verified together; a block of half of them or more is fetched alone.
UNIT = 128 << 10
#: Most entries of the block table (channels × its blocks); for more, UNIT is doubled.
MOST_ENTRIES = 1 << 23
#: Bytes of a declaration that are fetched; most have less.
_DECLARATION = 4096
#: The part of the file between the first index of a series and the file index is fetched at once if it is smaller.
_TOGETHER = 1 << 20


@dataclass(frozen=True, slots=True)
class NamedBlocks:
    """All data blocks that the index names, in file order: four int64[n].

    start   offset
    length  bytes up to the next block of any kind
    series  series number
    time    ns
    """

    start: I64
    length: I64
    series: I64
    time: I64


@dataclass(frozen=True, slots=True, eq=False)
class StatedSizes(ComputedValues):
    """Sizes of the payloads of a series, of which the index states the sum."""

    sum: int = 0

    def total(self, count: int) -> int | None:
        """Return the sum that the index states."""
        return self.sum


def read_in_ranges(source: Source, index: Index) -> Found | None:
    """Return the content of a remote file by its index, without its data blocks.

    None if data blocks are needed for it. Raises BadIndex if the index does not account for the whole file.
    """
    try:
        _fetch(source, index)
        verified = VerifiedIndex(source, index)
        found = _named_blocks(index, verified.series)
    except BadWire as error:
        raise BadIndex(str(error)) from None
    if found is None:
        return None
    blocks, totals = found
    ranged = RangedBlocks(source, index, blocks, totals)
    edges = (int(blocks.time.min()), int(blocks.time.max())) if len(blocks.time) else (None, None)
    return Found(
        verified.file,
        verified.series,
        ranged.table,
        lambda: edges,
        ranged.problems,
        index.ending,
        indexed=True,
        ranged=ranged.index(),
    )


def _fetch(source: Source, index: Index) -> None:
    """Fetch the indexes of all series and their declarations, each kind together. Raises BadIndex."""
    places, last = np.array(index.places, np.int64), index.ending.index
    if not len(places):
        return
    first = int(places.min())
    if first < len(MAGIC) or int(places.max()) >= last:
        raise BadIndex("the indexes of series are said to be elsewhere")
    if last - first <= max(_TOGETHER, source.size // 4):
        source.span(first, last)
    else:
        source.fetch(places, places + 64)
        ends = np.array([index.series_index(pos)[1] for pos in index.places], np.int64)
        order = np.argsort(places, kind="stable")
        if (ends[order][:-1] > places[order][1:]).any():
            raise BadIndex("the indexes of series overlap")
        source.fetch(places, ends)
    declared = np.array([index.declared_at(number) for number in range(len(places))], np.int64)
    if int(declared.min()) < len(MAGIC) or int(declared.max()) >= last:
        raise BadIndex("series are said to be declared elsewhere")
    source.fetch(declared, declared + _DECLARATION)


def _named_blocks(index: Index, series: list[Series]) -> tuple[NamedBlocks, list[int]] | None:
    """Return all data blocks, and the bytes of the payloads of each series.

    None if only the blocks can tell. Raises BadIndex, BadWire.
    """
    stated = [index.blocks(number) for number in range(len(series))]
    others = {len(MAGIC): index.descriptor(len(MAGIC))[2]}
    for number, pos in enumerate(index.places):
        others[pos] = index.series_index(pos)[1]
        declared = index.declared_at(number)
        others[declared] = index.descriptor(declared)[2]
    if len(others) != 1 + 2 * len(series):
        raise BadIndex("it names a block twice")
    offset = np.concatenate([np.zeros(0, np.int64), *(one[0] for one in stated)])
    every = np.concatenate([offset, np.array(list(others), np.int64)])
    order = np.argsort(every, kind="stable")
    following = np.append(every[order][1:], index.ending.index)
    if (following <= every[order]).any():
        raise BadIndex("blocks that it names overlap")
    length = np.empty(len(every), np.int64)
    length[order] = following - every[order]
    if (every[len(offset) :] + length[len(offset) :] != np.array(list(others.values()), np.int64)).any():
        raise BadIndex("there are blocks that it does not name")
    cuts = np.cumsum([0, *(len(one[0]) for one in stated)]).tolist()
    for number, (_, time, total) in enumerate(stated):
        heads = _heads(index, number, series[number], time)
        payload = None if heads is None else length[cuts[number] : cuts[number + 1]] - heads
        if payload is None or (payload < 0).any() or int(payload.sum()) != total:
            # Another writer's way to write, or blocks that the index does not name.
            return None
    numbers = np.repeat(np.arange(len(series), dtype=np.int64), np.diff(cuts))
    time = np.concatenate([np.zeros(0, np.int64), *(one[1] for one in stated)])
    data = np.argsort(offset, kind="stable")
    blocks = NamedBlocks(offset[data], length[: len(offset)][data], numbers[data], time[data])
    return blocks, [total for _, _, total in stated]


def _heads(index: Index, number: int, series: Series, time: I64) -> I64 | None:
    """Return int64[n]: bytes of each data block of a series before its payload, as writers write them, else None."""
    n, names = len(time), len(series.names)
    numbers = np.zeros((n, names), np.int64)
    if names:
        found = [some for _, some in index.additional(number)]
        if len(found) != n or any(len(some) != names for some in found):
            return None
        numbers = np.array(found, np.uint64).view(np.int64).reshape(n, names)
    size, key = np.empty(n, np.int64), np.array([[series.index, names]], np.int64)
    bddf.descriptor_sizes(np.zeros(n, np.int32), time, np.zeros(n, np.int64), key, numbers, size)
    return size + 12


class RangedBlocks:
    """Data blocks of a remote file, which are fetched and verified when their messages are needed.

    Blocks that are not what the index says are not shown, and reported as problems.

    totals  bytes of the payloads of each series
    """

    def __init__(self, source: Source, index: Index, blocks: NamedBlocks, totals: list[int]) -> None:
        self._source, self._index, self._totals = source, index, totals
        self.problems: list[Problem] = []
        self._lock = RLock()
        group = _groups(blocks, source.size, len(totals))
        rows = int(group[-1]) + 1 if len(group) else 0
        first = np.flatnonzero(np.diff(group, prepend=-1))
        base = blocks.start[first]
        self._end = (blocks.start + blocks.length)[np.append(first[1:] - 1, len(group) - 1)[:rows]]
        counts = np.bincount(group * len(totals) + blocks.series, minlength=rows * len(totals))
        start = np.zeros((rows, len(totals) + 1), np.int64)
        start[:, 1:] = np.cumsum(counts.reshape(rows, len(totals)), axis=1)
        start += first[:, None]
        order = np.lexsort((blocks.series, group))
        entry = (blocks.start - base[group])[order].astype(np.uint32)
        self._time, self._length = blocks.time[order], blocks.length[order]
        self.table = Blocks(base, np.full(rows, FILE, np.int32), start, entry)
        self._pending = np.ones(rows, bool)
        #: Offsets of blocks that are not what the index says, and the series that were reported for them.
        self._wrong, self._reported = np.zeros(0, np.int64), set[int]()

    def index(self) -> MessageIndex:
        """Return the MessageIndex."""
        base, end, payloads = self.table.base, self._end, self._payloads
        chunks = Chunks(
            self._source, places=lambda row: int(base[row]), ends=lambda row: int(end[row]), by_block=True
        )
        times = StoredValues(self._time)
        rules = [
            ChannelRules(times, StatedSizes(self._sizes, total), payload=payloads) for total in self._totals
        ]
        return MessageIndex(chunks, self.table, rules, None, self._resolve)

    def _payloads(self, data: Buffer, start: I64) -> tuple[I64, I64]:
        """Return offsets and sizes of the payloads of verified blocks: int64[n] each; MISSING_SIZE for wrong ones."""
        offset, size = locate_payloads(data, start)
        if len(self._wrong):
            wrong = np.isin(start, self._wrong)
            offset[wrong], size[wrong] = 0, MISSING_SIZE
        return offset, size

    def _sizes(self, data: Buffer, start: I64) -> I64:
        _, size = self._payloads(data, start)
        size[size == MISSING_SIZE] = 0
        return size

    def _resolve(self, rows: I64) -> None:
        """Fetch and verify the data blocks in some blocks of the table, if not done before; thread-safe."""
        with self._lock:
            rows = rows[self._pending[rows]]
            if not len(rows):
                return
            if len(rows) == 1:
                self._source.span(int(self.table.base[rows[0]]), int(self._end[rows[0]]))
            else:
                self._source.fetch(self.table.base[rows], self._end[rows])
            data = self._source.span(0, 0)
            for number in range(len(self._totals)):
                self._verify(data, number, rows)
            self._pending[rows] = False

    def _verify(self, data: Buffer, number: int, rows: I64) -> None:
        """Compare the data blocks of one series with the index."""
        first, last = (edge[rows] for edge in self.table.run(number))
        place = unrolled(self.table.entry, first, last, self.table.base[rows])
        if not len(place):
            return
        time, length = unrolled(self._time, first, last), unrolled(self._length, first, last)
        payload, size = locate_payloads(data, place)
        wrong: NDArray[np.bool_] = payload + size - place != length
        at, end = 0, self._index.ending.index
        while at < len(place):
            at += bddf.verify_blocks(data, end, number, place[at:], time[at:])[0]
            if at < len(place):
                wrong[at] = True
                at += 1
        if not wrong.any():
            return
        self._wrong = np.union1d(self._wrong, place[wrong])
        if number not in self._reported:
            self._reported.add(number)
            text = f"blocks of series {number} are not what the index says: they are not shown"
            self.problems.append(Problem("index", int(place[wrong][0]), 0, True, text))


def _groups(blocks: NamedBlocks, size: int, channels: int) -> I64:
    """Return int64[n], ascending: the block of the table that each data block belongs to."""
    unit = UNIT
    while True:
        large = blocks.length >= unit // 2
        cut = np.diff(blocks.start // unit, prepend=-1) != 0
        cut |= large
        cut[1:] |= large[:-1]
        group: I64 = np.cumsum(cut) - 1
        if not len(group) or (int(group[-1]) + 1) * (channels + 1) <= MOST_ENTRIES or unit > size:
            return group
        unit *= 2
