"""Open a file by its own index, as far as the blocks that it names agree with it.

Every block that is used has been looked at: it is whole, of the series that the index says, and of that time. Files up
to EAGER_BYTES are looked at as a whole when they are opened, and the index is used only where it accounts for every
byte: then it names all blocks, each once, and gives what reading the whole file would give. Of larger files the part of
a series is read when the series is touched.
"""

from __future__ import annotations

import numpy as np

from logreel.errors import Problem
from logreel.formats.bddf import messages
from logreel.formats.bddf.index_builder import IN_BLOCKS, MAX_SERIES
from logreel.formats.bddf.messages import FileDescriptor, FileIndex, Series
from logreel.formats.bddf.reader import Found, Scanner
from logreel.formats.bddf.records import (
    END_BYTES,
    INDEX_AT,
    MAGIC,
    Ending,
    read_descriptor,
    read_ending,
    read_header,
)
from logreel.index.block_table import Separate
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.schemas.protobuf.wire import BadWire, varint

#: Larger files are not looked at as a whole when they are opened.
EAGER_BYTES = 64 << 20


class BadIndex(ValueError):
    """The index is missing or contradicts the file; *missing*: there is none."""

    def __init__(self, text: str, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


class Index:
    """The index of a file; ``series`` reads that of one series. Raises BadIndex where there is none."""

    def __init__(self, source: Source) -> None:
        self.source = source
        ending = read_ending(source, source.size - END_BYTES)
        if ending is None:
            raise BadIndex("the file has no end block", missing=True)
        if ending.index == 0:
            raise BadIndex("the writer did not make one", missing=True)
        self.ending: Ending = ending
        if not len(MAGIC) <= ending.index < ending.pos:
            raise BadIndex(f"it is said to be at {ending.index}")
        kind, content, after = self._descriptor(ending.index)
        # A file without series has an empty descriptor there.
        if after != ending.pos or kind not in (messages.FILE_INDEX, 0):
            raise BadIndex(f"there is none at {ending.index}")
        try:
            self.file = FileIndex.parse(content)
        except BadWire as error:
            raise BadIndex(str(error)) from None
        n = len(self.file.offsets)
        if not n == len(self.file.identifiers) == len(self.file.hashes) or n > MAX_SERIES:
            raise BadIndex("its lists are of different lengths")

    def _descriptor(self, pos: int) -> tuple[int, bytes, int]:
        head = read_header(self.source, pos, self.ending.pos)
        try:
            return *read_descriptor(self.source, pos, self.ending.pos), head.next if head else 0
        except BadWire as error:
            raise BadIndex(f"the block at {pos}: {error}") from None

    def declaration(self, number: int) -> tuple[Series, int]:
        """What declares a series, and the bytes of that block and of its index; no block is read. Raises BadIndex."""
        pos = self.file.offsets[number]
        body, end = self._series_index(pos)
        start, at = self.source.read(body, min(end - body, 32)), 0
        told = {1: 0, 2: 0}
        while at < len(start):
            tag, at = varint(start, at)
            if tag not in (8, 16):
                break
            told[tag >> 3], at = varint(start, at)
        if told[1] != number:
            raise BadIndex(f"the index of series {number} is that of series {told[1]}")
        kind, content, after = self._descriptor(told[2])
        if kind != messages.SERIES:
            raise BadIndex(f"series {number} is not declared at {told[2]}")
        series = Series.parse(content)
        if (series.index, series.identifier) != (number, self.file.identifiers[number]):
            raise BadIndex(f"another series than {number} is declared at {told[2]}")
        return series, end - pos + after - told[2]

    def blocks(self, number: int) -> tuple[I64, I64, int]:
        """Where the blocks of a series are said to begin, their times, and bytes of all payloads. Raises BadIndex."""
        body, end = self._series_index(self.file.offsets[number])
        none = np.empty(0, np.int64)
        n, _, _, _ = bddf.read_index_entries(self.source.data, body, end, none, none)
        if n < 0:
            raise BadIndex(f"the index of series {number} cannot be read")
        time, place = np.empty(n, np.int64), np.empty(n, np.int64)
        _, _, _, total = bddf.read_index_entries(self.source.data, body, end, time, place)
        if n and (place[0] < len(MAGIC) or not (place[1:] > place[:-1]).all()):
            raise BadIndex(f"the blocks of series {number} do not follow each other")
        return place, time, total

    def _series_index(self, pos: int) -> tuple[int, int]:
        """Where the content of the descriptor block at *pos* begins and ends, which can be too large to copy."""
        head = read_header(self.source, pos, self.ending.pos)
        if head is None or head.kind != 1 or head.next > self.ending.pos:
            raise BadIndex(f"there is no index of a series at {pos}")
        start = self.source.read(head.body, 16)
        try:
            tag, at = varint(start, 0)
            size, at = varint(start, at)
        except BadWire:
            raise BadIndex(f"there is no index of a series at {pos}") from None
        if tag != messages.SERIES_INDEX << 3 | 2 or size != head.size - at:
            raise BadIndex(f"there is no index of a series at {pos}")
        return head.body + at, head.next

    def places(self) -> I64:
        """Where all data blocks begin that the index names, ascending; those of unreadable parts left out."""
        found = []
        for number in range(len(self.file.offsets)):
            try:
                found.append(self.blocks(number)[0])
            except (BadIndex, BadWire):
                continue
        places: I64 = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        return places[(places >= len(MAGIC)) & (places < self.source.size)]


class OnDemand:
    """The blocks of each series, read from the index when first asked for and compared with the file."""

    def __init__(self, source: Source, index: Index) -> None:
        kind, content, self._used = index._descriptor(len(MAGIC))
        if kind != messages.FILE:
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
        """Where the blocks of a series begin. Raises BadIndex where the file has others there."""
        place, time, told = self._index.blocks(number)
        good, payloads, total = bddf.verify_blocks(
            self._source.data, self._index.ending.index, number, place, time
        )
        if good < len(place):
            raise BadIndex(f"block {good} of series {number} is not at {place[good]} as it says")
        if payloads != told:
            raise BadIndex(f"series {number} has {payloads} bytes, not {told}")
        if len(time):
            self._times[number] = int(time.min()), int(time.max())
        self._used += total
        self._left -= 1
        return place

    @property
    def unnamed(self) -> int:
        """Bytes before the index that nothing in it accounts for, once all series are read; else 0."""
        return 0 if self._left else self._index.ending.index - self._used

    def times(self) -> tuple[int | None, int | None]:
        """The least and the greatest time of the blocks of all series read so far, ns."""
        edges = self._times.values()
        return min((a for a, _ in edges), default=None), max((b for _, b in edges), default=None)


def read(source: Source, index: Index) -> Found:
    """What is in a file, by its index. Raises BadIndex where the two disagree."""
    try:
        parts = OnDemand(source, index)
        if source.size > EAGER_BYTES:
            later = Later(source, index, parts)
            return Found(
                parts.file, parts.series, later.table, later.times, later.problems, index.ending, indexed=True
            )
        table = Separate(parts.load, len(parts.series), source.size)
        table.counts  # noqa: B018 - reads all of them
    except BadWire as error:
        raise BadIndex(str(error)) from None
    if parts.unnamed:
        # Blocks that the index does not name would be lost in silence.
        raise BadIndex(f"{parts.unnamed} bytes of the file are not what it tells of")
    return Found(parts.file, parts.series, table, parts.times, [], index.ending, indexed=True)


class Later:
    """The same with nothing looked at so far.

    A series whose part of the index is wrong is found by reading the file; that, and blocks that the index does not
    name, become problems when they show.
    """

    def __init__(self, source: Source, index: Index, parts: OnDemand) -> None:
        self._source, self._index, self._parts = source, index, parts
        self.problems: list[Problem] = []
        self.table = Separate(self._load, len(parts.series), source.size)
        self._scanned: Found | None = None

    def _load(self, number: int) -> I64:
        try:
            place = self._parts.load(number)
        except (BadIndex, BadWire) as error:
            self.problems.append(unused(self._source, f"{error}"))
            return self._scan(self._parts.series[number])
        if self._parts.unnamed:
            size = self._parts.unnamed
            text = f"{size} bytes of the file are not what its index tells of: blocks are missing from it"
            self.problems.append(Problem("index", len(MAGIC), max(size, 0), True, text))
        return place

    def _scan(self, series: Series) -> I64:
        """Where the blocks of a series begin, by reading the file."""
        if self._scanned is None:
            self._scanned = Scanner(self._source, self._index.places()).run()
            self.problems += self._scanned.problems
        found = self._scanned
        if series not in found.series:
            return np.zeros(0, np.int64)
        everything = MessageIndex(Chunks(self._source), found.table, [IN_BLOCKS] * len(found.series))
        return everything.starts(found.series.index(series))

    def times(self) -> tuple[int | None, int | None]:
        """The least and the greatest time of all blocks, ns; reads the whole index."""
        _ = self.table.counts
        some = [self._parts.times(), *([self._scanned.times()] if self._scanned else [])]
        first = min((a for a, _ in some if a is not None), default=None)
        return first, max((b for _, b in some if b is not None), default=None)


def unused(source: Source, why: str) -> Problem:
    """Tells why the index is not used."""
    return Problem("index", source.size - INDEX_AT, 0, False, f"the index is not used: {why}")
