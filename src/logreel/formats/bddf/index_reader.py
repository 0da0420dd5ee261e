"""Open a file by its own index, as far as the blocks named by the index agree with it.

Every block used has been verified: it is complete, belongs to the series that the index states, and has the stated
time. A file of up to EAGER_BYTES is verified when it is opened, and the index is used only if it accounts for every
byte: then the result is the same as that of reading the whole file. In larger files the index of a series is read when
the series is first used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import Problem
from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import FileDescriptor, FileIndex, Series
from logreel.formats.bddf.found import Found
from logreel.formats.bddf.index_builder import MAX_SERIES, SERIES_RULES
from logreel.formats.bddf.reader import Reader
from logreel.formats.bddf.records import (
    DESCRIPTOR,
    END_BYTES,
    INDEX_AT,
    MAGIC,
    EndBlock,
    read_descriptor,
    read_end_block,
    read_header,
)
from logreel.index.block_table import Separate
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import Chunks
from logreel.io.source import Source
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


class Index:
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
        kind, content, after = self.descriptor(ending.index)
        # A file without series has an empty descriptor there.
        if after != ending.pos or kind not in (descriptors.FILE_INDEX, 0):
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

    def declaration(self, number: int) -> tuple[Series, int]:
        """Return the declaration of a series, and the bytes of its block and of the series' index. Raises BadIndex."""
        pos, declared = self.file.offsets[number], self.declared_at(number)
        _, end = self.series_index(pos)
        kind, content, after = self.descriptor(declared)
        if kind != descriptors.SERIES:
            raise BadIndex(f"series {number} is not declared at {declared}")
        series = Series.parse(content)
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
        if tag != descriptors.SERIES_INDEX << 3 | 2 or size != head.size - at:
            raise BadIndex(f"there is no index of a series at {pos}")
        return head.body + at, head.next

    def all_offsets(self) -> I64:
        """Return the offsets of all data blocks that the index names, ascending; unreadable parts are skipped."""
        found = []
        for number in range(len(self.file.offsets)):
            try:
                found.append(self.blocks(number)[0])
            except (BadIndex, BadWire):
                continue
        offsets: I64 = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        return offsets[(offsets >= len(MAGIC)) & (offsets < self.source.size)]


class VerifiedIndex:
    """Declarations of all series, and the blocks of each series, verified when they are loaded.

    Raises BadIndex if a declaration is not where the index states.
    """

    def __init__(self, source: Source, index: Index) -> None:
        kind, content, self._used = index.descriptor(len(MAGIC))
        if kind != descriptors.FILE:
            raise BadIndex("the file does not begin with its descriptor")
        self._source, self._index = source, index
        self.file = FileDescriptor.parse(content)
        self.series: list[Series] = []
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


def read_by_index(source: Source, index: Index) -> Found:
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

    def __init__(self, source: Source, index: Index, verified: VerifiedIndex) -> None:
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

    def _scan(self, series: Series) -> I64:
        """Return the offsets of the blocks of a series by reading the file from the front."""
        if self._scanned is None:
            self._scanned = Reader(self._source, self._index.all_offsets()).finish()
            self.problems += self._scanned.problems
        found = self._scanned
        if series not in found.series:
            return np.zeros(0, np.int64)
        everything = MessageIndex(Chunks(self._source), found.table, [SERIES_RULES] * len(found.series))
        return everything.starts(found.series.index(series))

    def times(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest time of all blocks, ns; loads all series."""
        _ = self.table.counts
        some = [self._verified.times(), *([self._scanned.times()] if self._scanned else [])]
        first = min((a for a, _ in some if a is not None), default=None)
        return first, max((b for _, b in some if b is not None), default=None)


def unused_index(source: Source, why: str) -> Problem:
    """Return the Problem that the index of the file is not used."""
    return Problem("index", source.size - INDEX_AT, 0, False, f"the index is not used: {why}")
