"""What lies in a file besides data blocks, block by block, and how a sound file's index is made of what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from logreel.errors import LogError, Problem
from logreel.formats.bddf import messages
from logreel.formats.bddf.blocks import DESCRIPTOR, END, MAGIC, Header, read_descriptor, read_header
from logreel.formats.bddf.collect import IN_BLOCKS, OTHER, Collector
from logreel.formats.bddf.encode import file_index
from logreel.formats.bddf.messages import BadWire, FileIndex, Series
from logreel.kernels import wirewrite
from logreel.model.chunks import Chunks
from logreel.model.index import MessageIndex
from logreel.model.source import Source
from logreel.schemas.protobuf.build import number, varint
from logreel.schemas.protobuf.wire import BYTES

#: Blocks of which the index is made at once.
STEP = 1 << 16
_NOTHING = np.zeros(0, np.uint8)


class Unclear(ValueError):
    """The file is not what was thought."""


@dataclass(frozen=True, slots=True)
class Note:
    """A block that holds no data.

    kind    of the message in a descriptor, 0 for none; -1 in other blocks
    series  where it declares one
    """

    header: Header
    kind: int
    series: Series | None = None


def notes(source: Source, collector: Collector, lost: Sequence[Problem] = ()) -> Iterator[Note]:
    """The blocks of a file that hold no data, the end block last; *collector* gets the others.

    lost  stretches to step over. Raises Unclear at anything else that is no sound block.
    """
    ends = {p.offset: p.offset + p.size for p in lost}
    pos = len(MAGIC)
    while pos < source.size:
        why, pos = collector.walk(pos, source.size)
        if pos in ends:
            pos = ends.pop(pos)
            continue
        if pos == source.size:
            break
        head = read_header(source, pos, source.size) if why == OTHER else None
        if head is None or (head.next > source.size and head.kind != END):
            raise Unclear(f"no sound block at {pos}")
        yield _note(source, head)
        if head.kind == END:
            break
        pos = head.next
    if ends:
        raise Unclear(f"no damage at {min(ends)}")


def _note(source: Source, head: Header) -> Note:
    if head.kind != DESCRIPTOR:
        return Note(head, -1)
    start = source.read(head.body, 1)
    if start and start[0] >> 3 == messages.SERIES_INDEX:
        # It can be as large as all the rest, and nobody needs it.
        return Note(head, messages.SERIES_INDEX)
    try:
        kind, content = read_descriptor(source, head.pos, source.size)
        series = Series.parse(content) if kind == messages.SERIES else None
    except BadWire as error:
        raise Unclear(str(error)) from None
    return Note(head, kind, series)


class Indexer:
    """Makes the index of a file that ends behind its last data block."""

    def __init__(self, source: Source) -> None:
        self._data = source.data
        self._series: list[tuple[Series, int]] = []
        collector = Collector(source.data)
        try:
            for note in notes(source, collector):
                if note.series is not None:
                    collector.declare(note.series.index, len(self._series))
                    self._series.append((note.series, note.header.pos))
        except Unclear as error:
            raise LogError(f"was changed by somebody else: {error}", path=source.name) from None
        table = collector.finish()
        self._index = MessageIndex(Chunks(source), table, [IN_BLOCKS] * len(self._series))

    def pieces(self, at: int) -> Iterator[bytes | memoryview]:
        """The bytes of the index, which begins at *at*, in pieces; the last one is the whole file index."""
        places = []
        for channel, (series, declared) in enumerate(self._series):
            places.append(at)
            for piece in self._series_index(channel, series, declared):
                at += len(piece)
                yield piece
        names = tuple(series.identifier for series, _ in self._series)
        hashes = tuple(series.hash for series, _ in self._series)
        yield file_index(FileIndex(names, tuple(places), hashes))

    def _series_index(self, channel: int, series: Series, declared: int) -> Iterator[bytes | memoryview]:
        start = self._index.starts(channel)
        parts = [start[lo : lo + STEP] for lo in range(0, len(start), STEP)]
        found = [wirewrite.entries(self._data, some, _NOTHING) for some in parts]
        first, last = number(1, series.index) + number(2, declared), number(4, sum(p for _, p in found))
        size = len(first) + sum(n for n, _ in found) + len(last)
        # The content is not at hand as a whole: the block is made of pieces around it.
        head = varint(messages.SERIES_INDEX << 3 | BYTES) + varint(size)
        yield (len(head) + size | DESCRIPTOR << 56).to_bytes(8, "little") + head + first
        for some, (n, _) in zip(parts, found, strict=True):
            out = np.empty(n, np.uint8)
            wirewrite.entries(self._data, some, out)
            yield out.data
        yield last
