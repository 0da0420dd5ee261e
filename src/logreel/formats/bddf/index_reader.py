"""Open a file by its own index, as far as the blocks named by the index agree with it.

Every block used has been verified: it is complete, belongs to the series that the index states, and has the stated
time. A file of up to EAGER_BYTES is verified when it is opened, and the index is used only if it accounts for every
byte: then the result is the same as that of reading the whole file. In larger files the index of a series is read when
the series is first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import RLock

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import Problem
from logreel.formats.bddf import records
from logreel.formats.bddf.reader import MAX_SERIES, SERIES_RULES, Found, Reader, locate_payloads
from logreel.formats.bddf.records import (
    DESCRIPTOR,
    END_BYTES,
    INDEX_AT,
    MAGIC,
    EndBlock,
    FileDescriptor,
    FileIndex,
    SeriesDeclaration,
    read_descriptor,
    read_end_block,
    read_header,
)
from logreel.index.block_table import MISSING_SIZE, Blocks, Separate, unrolled
from logreel.index.channel_index import ChannelRules, ComputedValues, StoredValues
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Buffer, Chunks, Source
from logreel.kernels import bddf
from logreel.schemas.protobuf.wire import BadWire, items, packed, varint

#: Larger files are not verified when they are opened.
EAGER_BYTES = 64 << 20
#: Bytes at the end of a remote file that are fetched first; they often contain the whole index.
TAIL_BYTES = 64 << 10


class BadIndex(ValueError):
    """The index is missing or contradicts the file; *missing*: the file has no index."""

    def __init__(self, text: str, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class FooterIndex:
    """The index of a file. Raises BadIndex if the file has no valid one."""

    def __init__(self, source: Source) -> None:
        self.source = source
        if source.in_ranges:
            source.span(source.size - TAIL_BYTES, source.size)
        ending = read_end_block(source, source.size - END_BYTES)
        if ending is None:
            raise BadIndex("the file has no end block", missing=True)
        if ending.index == 0:
            raise BadIndex("the writer did not make one", missing=True)
        self.ending: EndBlock = ending
        if not len(MAGIC) <= ending.index < ending.pos:
            raise BadIndex(f"it is said to be at {ending.index}")
        descriptor_kind, content, after = self.descriptor(ending.index)
        # A file without series has an empty descriptor there.
        if after != ending.pos or descriptor_kind not in (records.FILE_INDEX, 0):
            raise BadIndex(f"there is none at {ending.index}")
        try:
            self.file = FileIndex.parse(content)
        except BadWire as error:
            raise BadIndex(str(error)) from None
        n = len(self.file.offsets)
        if not n == len(self.file.identifiers) == len(self.file.hashes) or n > MAX_SERIES:
            raise BadIndex("its lists are of different lengths")

    def descriptor(self, pos: int) -> tuple[int, bytes, int]:
        """Return the message in the descriptor block at *pos* and the end of the block. Raises BadIndex."""
        head = read_header(self.source, pos, self.ending.pos)
        try:
            return *read_descriptor(self.source, pos, self.ending.pos), head.next if head else 0
        except BadWire as error:
            raise BadIndex(f"the block at {pos}: {error}") from None

    def declared_at(self, number: int) -> int:
        """Return where the index says that a series is declared. Raises BadIndex."""
        body, end = self.series_index(self.file.offsets[number])
        start, at = self.source.read(body, min(end - body, 32)), 0
        values = {1: 0, 2: 0}
        while at < len(start):
            tag, at = varint(start, at)
            if tag not in (8, 16):
                break
            values[tag >> 3], at = varint(start, at)
        index, declared = values[1], values[2]
        if index != number:
            raise BadIndex(f"the index of series {number} is that of series {index}")
        return declared

    def declaration(self, number: int) -> tuple[SeriesDeclaration, int]:
        """Return the declaration of a series, and the bytes of its block and of the series' index. Raises BadIndex."""
        pos, declared = self.file.offsets[number], self.declared_at(number)
        _, end = self.series_index(pos)
        descriptor_kind, content, after = self.descriptor(declared)
        if descriptor_kind != records.SERIES:
            raise BadIndex(f"series {number} is not declared at {declared}")
        series = SeriesDeclaration.parse(content)
        if (series.index, series.identifier) != (number, self.file.identifiers[number]):
            raise BadIndex(f"another series than {number} is declared at {declared}")
        return series, end - pos + after - declared

    def blocks(self, number: int) -> tuple[I64, I64, int]:
        """Return offsets and times of the blocks of a series, and the bytes of all payloads, as the index states.

        Raises BadIndex.
        """
        body, end = self.series_index(self.file.offsets[number])
        none = np.empty(0, np.int64)
        data = self.source.span(body, end)
        n, _, _, _ = bddf.read_index_entries(data, body, end, none, none)
        if n < 0:
            raise BadIndex(f"the index of series {number} cannot be read")
        time, offset = np.empty(n, np.int64), np.empty(n, np.int64)
        _, _, _, total = bddf.read_index_entries(data, body, end, time, offset)
        if n and (offset[0] < len(MAGIC) or not (offset[1:] > offset[:-1]).all()):
            raise BadIndex(f"the blocks of series {number} do not follow each other")
        return offset, time, total

    @property
    def places(self) -> tuple[int, ...]:
        """Offset of the index of each series."""
        return self.file.offsets

    def additional(self, number: int) -> Iterator[tuple[int, list[int]]]:
        """Yield offset and additional indexes of each block of a series, as stated. Raises BadIndex, BadWire."""
        body, end = self.series_index(self.file.offsets[number])
        for item in items(self.source.read(body, end - body)):
            if item.number == 3:
                offset, numbers = 0, list[int]()
                for part in items(item.bytes):
                    if part.number == 2:
                        offset = part.integer
                    elif part.number == 3:
                        numbers += packed(part)
                yield offset, numbers

    def series_index(self, pos: int) -> tuple[int, int]:
        """Return start and end of the content of the series index block at *pos*, which may be too large to copy."""
        head = read_header(self.source, pos, self.ending.pos)
        if head is None or head.kind != DESCRIPTOR or head.next > self.ending.pos:
            raise BadIndex(f"there is no index of a series at {pos}")
        start = self.source.read(head.body, 16)
        try:
            tag, at = varint(start, 0)
            size, at = varint(start, at)
        except BadWire:
            raise BadIndex(f"there is no index of a series at {pos}") from None
        if tag != records.SERIES_INDEX << 3 | 2 or size != head.size - at:
            raise BadIndex(f"there is no index of a series at {pos}")
        return head.body + at, head.next

    def all_offsets(self) -> I64:
        """Return the offsets of all data blocks that the index names, ascending; unreadable parts are skipped."""
        per_series = []
        for number in range(len(self.file.offsets)):
            try:
                per_series.append(self.blocks(number)[0])
            except (BadIndex, BadWire):
                continue
        offsets: I64 = np.unique(np.concatenate(per_series)) if per_series else np.zeros(0, np.int64)
        return offsets[(offsets >= len(MAGIC)) & (offsets < self.source.size)]


class VerifiedIndex:
    """Declarations of all series, and the blocks of each series, verified when they are loaded.

    Raises BadIndex if a declaration is not where the index states.
    """

    def __init__(self, source: Source, index: FooterIndex) -> None:
        descriptor_kind, content, self._used = index.descriptor(len(MAGIC))
        if descriptor_kind != records.FILE:
            raise BadIndex("the file does not begin with its descriptor")
        self._source, self._index = source, index
        self.file = FileDescriptor.parse(content)
        self.series: list[SeriesDeclaration] = []
        for number in range(len(index.file.offsets)):
            series, size = index.declaration(number)
            self.series.append(series)
            self._used += size
        self._times: dict[int, tuple[int, int]] = {}
        self._left = len(self.series)

    def load(self, number: int) -> I64:
        """Return the offsets of the blocks of a series. Raises BadIndex if other blocks are there."""
        offset, time, stated = self._index.blocks(number)
        good, payloads, total = bddf.verify_blocks(
            self._source.data, self._index.ending.index, number, offset, time
        )
        if good < len(offset):
            raise BadIndex(f"block {good} of series {number} is not at {offset[good]} as it says")
        if payloads != stated:
            raise BadIndex(f"series {number} has {payloads} bytes, not {stated}")
        if len(time):
            self._times[number] = int(time.min()), int(time.max())
        self._used += total
        self._left -= 1
        return offset

    @property
    def unnamed(self) -> int:
        """Bytes before the index that it does not account for; 0 until all series are loaded."""
        return 0 if self._left else self._index.ending.index - self._used

    def times(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest time of the blocks of all series loaded so far, ns."""
        edges = self._times.values()
        return min((a for a, _ in edges), default=None), max((b for _, b in edges), default=None)


def read_by_index(source: Source, index: FooterIndex) -> Found:
    """Return the content of a file by its index. Raises BadIndex if the two disagree."""
    try:
        verified = VerifiedIndex(source, index)
        if source.size > EAGER_BYTES:
            lazy = LazyIndex(source, index, verified)
            return Found(
                verified.file,
                verified.series,
                lazy.table,
                lazy.times,
                lazy.problems,
                index.ending,
                indexed=True,
            )
        table = Separate(verified.load, len(verified.series), source.size)
        table.counts  # noqa: B018 - loads all series
    except BadWire as error:
        raise BadIndex(str(error)) from None
    if verified.unnamed:
        # Blocks that the index does not name would be lost silently.
        raise BadIndex(f"{verified.unnamed} bytes of the file are not what it describes")
    return Found(verified.file, verified.series, table, verified.times, [], index.ending, indexed=True)


class LazyIndex:
    """Block table of a large file, whose series are verified when they are first used.

    If the index of a series is wrong, the file is read from the front. This, and blocks that the index does not name,
    is recorded as a problem when it is noticed.
    """

    def __init__(self, source: Source, index: FooterIndex, verified: VerifiedIndex) -> None:
        self._source, self._index, self._verified = source, index, verified
        self.problems: list[Problem] = []
        self.table = Separate(self._load, len(verified.series), source.size)
        #: The result of reading the file from the front, once that was necessary.
        self._scanned: Found | None = None

    def _load(self, number: int) -> I64:
        try:
            offset = self._verified.load(number)
        except (BadIndex, BadWire) as error:
            self.problems.append(unused_index(self._source, f"{error}"))
            return self._scan(self._verified.series[number])
        if self._verified.unnamed:
            size = self._verified.unnamed
            text = f"{size} bytes of the file are not what its index describes: blocks are missing from it"
            self.problems.append(Problem("index", len(MAGIC), max(size, 0), True, text))
        return offset

    def _scan(self, series: SeriesDeclaration) -> I64:
        """Return the offsets of the blocks of a series by reading the file from the front."""
        if self._scanned is None:
            self._scanned = Reader(self._source, self._index.all_offsets()).finish()
            self.problems += self._scanned.problems
        content = self._scanned
        if series not in content.series:
            return np.zeros(0, np.int64)
        everything = MessageIndex(Chunks(self._source), content.table, [SERIES_RULES] * len(content.series))
        return everything.starts(content.series.index(series))

    def times(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest time of all blocks, ns; loads all series."""
        _ = self.table.counts
        spans = [self._verified.times(), *([self._scanned.times()] if self._scanned else [])]
        first = min((a for a, _ in spans if a is not None), default=None)
        return first, max((b for _, b in spans if b is not None), default=None)


def unused_index(source: Source, why: str) -> Problem:
    """Return the Problem that the index of the file is not used."""
    return Problem("index", source.size - INDEX_AT, 0, False, f"the index is not used: {why}")


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


def read_in_ranges(source: Source, index: FooterIndex) -> Found | None:
    """Return the content of a remote file by its index, without its data blocks.

    None if data blocks are needed for it. Raises BadIndex if the index does not account for the whole file.
    """
    try:
        _fetch(source, index)
        verified = VerifiedIndex(source, index)
        named = _named_blocks(index, verified.series)
    except BadWire as error:
        raise BadIndex(str(error)) from None
    if named is None:
        return None
    blocks, totals = named
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


def _fetch(source: Source, index: FooterIndex) -> None:
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


def _named_blocks(
    index: FooterIndex, series: list[SeriesDeclaration]
) -> tuple[NamedBlocks, list[int]] | None:
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
    offset = np.concatenate([np.zeros(0, np.int64), *(columns[0] for columns in stated)])
    every = np.concatenate([offset, np.array(list(others), np.int64)])
    order = np.argsort(every, kind="stable")
    following = np.append(every[order][1:], index.ending.index)
    if (following <= every[order]).any():
        raise BadIndex("blocks that it names overlap")
    length = np.empty(len(every), np.int64)
    length[order] = following - every[order]
    if (every[len(offset) :] + length[len(offset) :] != np.array(list(others.values()), np.int64)).any():
        raise BadIndex("there are blocks that it does not name")
    cuts = np.cumsum([0, *(len(columns[0]) for columns in stated)]).tolist()
    for number, (_, time, total) in enumerate(stated):
        heads = _heads(index, number, series[number], time)
        payload = None if heads is None else length[cuts[number] : cuts[number + 1]] - heads
        if payload is None or (payload < 0).any() or int(payload.sum()) != total:
            # Another writer's way to write, or blocks that the index does not name.
            return None
    numbers = np.repeat(np.arange(len(series), dtype=np.int64), np.diff(cuts))
    time = np.concatenate([np.zeros(0, np.int64), *(columns[1] for columns in stated)])
    data = np.argsort(offset, kind="stable")
    blocks = NamedBlocks(offset[data], length[: len(offset)][data], numbers[data], time[data])
    return blocks, [total for _, _, total in stated]


def _heads(index: FooterIndex, number: int, series: SeriesDeclaration, time: I64) -> I64 | None:
    """Return int64[n]: bytes of each data block of a series before its payload, as writers write them, else None."""
    n, names = len(time), len(series.names)
    numbers = np.zeros((n, names), np.int64)
    if names:
        values = [numbers_of_block for _, numbers_of_block in index.additional(number)]
        if len(values) != n or any(len(numbers_of_block) != names for numbers_of_block in values):
            return None
        numbers = np.array(values, np.uint64).view(np.int64).reshape(n, names)
    size, key = np.empty(n, np.int64), np.array([[series.index, names]], np.int64)
    bddf.descriptor_sizes(np.zeros(n, np.int32), time, np.zeros(n, np.int64), key, numbers, size)
    return size + 12


class RangedBlocks:
    """Data blocks of a remote file, which are fetched and verified when their messages are needed.

    Blocks that are not what the index says are not shown, and reported as problems.

    totals  bytes of the payloads of each series
    """

    def __init__(self, source: Source, index: FooterIndex, blocks: NamedBlocks, totals: list[int]) -> None:
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
