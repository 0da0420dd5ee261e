"""How the index of a file is made of what lies in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from logreel.errors import LogError
from logreel.formats.bddf import messages
from logreel.formats.bddf.encode import file_index
from logreel.formats.bddf.found import Unclear, notes
from logreel.formats.bddf.index_builder import IN_BLOCKS, IndexBuilder
from logreel.formats.bddf.messages import FileIndex, Series
from logreel.formats.bddf.records import DESCRIPTOR
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer, Chunks
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.schemas.protobuf.build import number, varint
from logreel.schemas.protobuf.wire import BYTES

#: Blocks of which the index is made at once.
STEP = 1 << 16
NOTHING = np.zeros(0, np.uint8)
Pieces = Iterator[bytes | memoryview]
Part = tuple[Series, int, int, int, Iterable[bytes | memoryview]]


class Indexer:
    """Makes the index of a file that ends behind its last data block."""

    def __init__(self, source: Source) -> None:
        self._data = source.data
        self._series: list[tuple[Series, int]] = []
        collector = IndexBuilder(source.data)
        try:
            for note in notes(source, collector):
                if note.series is not None:
                    collector.declare(note.series.index, len(self._series))
                    self._series.append((note.series, note.header.pos))
        except Unclear as error:
            raise LogError(f"was changed by somebody else: {error}", path=source.name) from None
        table = collector.finish()
        self._index = MessageIndex(Chunks(source), table, [IN_BLOCKS] * len(self._series))

    def pieces(self, at: int) -> Pieces:
        """The bytes of the index, which begins at *at*, in pieces; the last one is the whole file index."""
        return index_of(at, ((*declared, *self._entries(n)) for n, declared in enumerate(self._series)))

    def _entries(self, channel: int) -> tuple[int, int, Pieces]:
        start = self._index.starts(channel)
        parts = [start[lo : lo + STEP] for lo in range(0, len(start), STEP)]
        found = [bddf.write_index_entries(self._data, some, NOTHING) for some in parts]
        made = (made_of(self._data, some, n).data for some, (n, _) in zip(parts, found, strict=True))
        return sum(n for n, _ in found), sum(p for _, p in found), made


def made_of(data: Buffer, start: I64, size: int, base: int = 0) -> Buffer:
    """The entries, *size* bytes of them, for the blocks at *start* of *data*, which begins at *base* in the file."""
    out = np.empty(size, np.uint8)
    bddf.write_index_entries(data, start, out, base)
    return out


def index_of(at: int, parts: Iterable[Part]) -> Pieces:
    """The index of all series, and behind it the file index.

    parts  of each series: itself, where it is declared, bytes of its entries and of its payloads, and the entries
    """
    names, places, hashes = [], [], []
    for series, declared, size, payloads, entries in parts:
        names.append(series.identifier)
        places.append(at)
        hashes.append(series.hash)
        first, last = number(1, series.index) + number(2, declared), number(4, payloads)
        content = len(first) + size + len(last)
        # The content is not at hand as a whole: the block is made of pieces around it.
        head = varint(messages.SERIES_INDEX << 3 | BYTES) + varint(content)
        yield (len(head) + content | DESCRIPTOR << 56).to_bytes(8, "little") + head + first
        yield from entries
        yield last
        at += 8 + len(head) + content
    yield file_index(FileIndex(tuple(names), tuple(places), tuple(hashes)))
