"""Open a file by its own index, as far as the blocks that it names agree with it.

The index is believed only where it accounts for every byte of the file: then it names all blocks, each once, and what
it gives is what reading the whole file would give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.formats.bddf import messages
from logreel.formats.bddf.blocks import END_BYTES, MAGIC, Ending, read_descriptor, read_ending, read_header
from logreel.formats.bddf.collect import MAX_SERIES, Collector
from logreel.formats.bddf.messages import BadWire, FileDescriptor, FileIndex, Series
from logreel.formats.bddf.scan import Found
from logreel.kernels import wireindex
from logreel.model.index import I64
from logreel.model.source import Source
from logreel.schemas.protobuf.wire import varint


class BadIndex(ValueError):
    """The index is missing or contradicts the file; *missing*: there is none."""

    def __init__(self, text: str, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class SeriesIndex:
    """What the index says of one series: its declaration, its blocks in file order, bytes of all payloads.

    time   int64[n]  ns
    place  int64[n]  where each block begins
    """

    series: Series
    time: I64
    place: I64
    total: int
    bytes: int


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

    def series(self, number: int) -> SeriesIndex:
        """What the index says of one series; its blocks are not looked at. Raises BadIndex."""
        pos = self.file.offsets[number]
        body, end = self._series_index(pos)
        none = np.empty(0, np.int64)
        n, _, _, _ = wireindex.entries(self.source.data, body, end, none, none)
        if n < 0:
            raise BadIndex(f"the index of series {number} cannot be read")
        time, place = np.empty(n, np.int64), np.empty(n, np.int64)
        _, key, declared, total = wireindex.entries(self.source.data, body, end, time, place)
        if key != number:
            raise BadIndex(f"the index of series {number} is that of series {key}")
        kind, content, after = self._descriptor(declared)
        if kind != messages.SERIES:
            raise BadIndex(f"series {number} is not declared at {declared}")
        series = Series.parse(content)
        if (series.index, series.identifier) != (number, self.file.identifiers[number]):
            raise BadIndex(f"another series than {number} is declared at {declared}")
        if n and (place[0] < len(MAGIC) or not (np.diff(place) > 0).all()):
            raise BadIndex(f"the blocks of series {number} do not follow each other")
        return SeriesIndex(series, time, place, total, end - pos + after - declared)

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
                found.append(self.series(number).place)
            except (BadIndex, BadWire):
                continue
        places: I64 = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        return places[(places >= len(MAGIC)) & (places < self.source.size)]


def read(source: Source, index: Index) -> Found:
    """Everything in a file by its index. Raises BadIndex where the two disagree."""
    try:
        return _read(source, index)
    except BadWire as error:
        raise BadIndex(str(error)) from None


def _read(source: Source, index: Index) -> Found:
    kind, content, used = index._descriptor(len(MAGIC))
    if kind != messages.FILE:
        raise BadIndex("the file does not begin with its descriptor")
    file = FileDescriptor.parse(content)
    collector = Collector(source.data)
    series, parts = [], []
    for number in range(len(index.file.offsets)):
        one = index.series(number)
        collector.declare(number, number)
        series.append(one.series)
        payload, size, head = _look(source, number, one, index.ending.index)
        used += one.bytes + int(size.sum()) + int(head.sum(dtype=np.int64)) + 12 * len(size)
        parts.append((np.full(len(size), number, np.uint32), payload, size, one.time, head))
    # Blocks that the index does not name would be lost in silence.
    if used != index.ending.index:
        raise BadIndex(f"it tells of {used} bytes where {index.ending.index} are")
    if parts:
        key, payload, size, time, head = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(payload, kind="stable")
        collector.add(key[order], payload[order], size[order], time[order], head[order])
    return Found(file, series, collector.finish(), [], index.ending, indexed=True)


def _look(source: Source, number: int, one: SeriesIndex, end: int) -> tuple[I64, I64, NDArray[np.uint32]]:
    """Payload starts, payload sizes and descriptor sizes of the blocks that the index names, all verified."""
    n = len(one.place)
    payload, size, head = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.uint32)
    good = wireindex.locate(source.data, end, number, one.place, one.time, payload, size, head)
    if good < n:
        raise BadIndex(f"block {good} of series {number} is not at {one.place[good]} as it says")
    if int(size.sum()) != one.total:
        raise BadIndex(f"series {number} has {int(size.sum())} bytes, not {one.total}")
    return payload, size, head
