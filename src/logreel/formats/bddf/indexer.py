"""How the index of a file is made: of what lies in the file, or of what was sent away, while it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from logreel.errors import LogError
from logreel.formats.bddf import messages
from logreel.formats.bddf.blocks import DESCRIPTOR, MAGIC, read_header
from logreel.formats.bddf.collect import BAD, IN_BLOCKS, OTHER, Collector
from logreel.formats.bddf.encode import file_index
from logreel.formats.bddf.messages import FileIndex, Series
from logreel.formats.bddf.survey import Unclear, note_of, notes
from logreel.kernels import wirewrite
from logreel.model.chunks import Buffer, Chunks
from logreel.model.index import I64, MessageIndex
from logreel.model.sink import Payload
from logreel.model.source import Source
from logreel.schemas.protobuf.build import number, varint
from logreel.schemas.protobuf.wire import BYTES

#: Blocks of which the index is made at once.
STEP = 1 << 16
_NOTHING = np.zeros(0, np.uint8)
Pieces = Iterator[bytes | memoryview]


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

    def pieces(self, at: int) -> Pieces:
        """The bytes of the index, which begins at *at*, in pieces; the last one is the whole file index."""
        return _index(at, ((*declared, *self._entries(n)) for n, declared in enumerate(self._series)))

    def _entries(self, channel: int) -> tuple[int, int, Pieces]:
        start = self._index.starts(channel)
        parts = [start[lo : lo + STEP] for lo in range(0, len(start), STEP)]
        found = [wirewrite.entries(self._data, some, _NOTHING) for some in parts]
        made = (_made(self._data, some, n).data for some, (n, _) in zip(parts, found, strict=True))
        return sum(n for n, _ in found), sum(p for _, p in found), made


class Follower:
    """Makes the same index of a file that cannot be read again: *follow* gets its bytes as they are written."""

    def __init__(self) -> None:
        self._series: list[tuple[Series, int]] = []
        self._entries: list[list[bytes]] = []
        self._payloads: list[int] = []
        #: What belongs to a block that has not come as a whole, and where in the file that begins.
        self._rest, self._at = b"", 0

    def follow(self, piece: Payload) -> None:
        """Take the next bytes of the file."""
        source = Source(b"".join((self._rest, piece)), "what was written")
        pos = min(source.size, max(0, len(MAGIC) - self._at))
        collector = Collector(source.data)
        for n, (series, _) in enumerate(self._series):
            collector.declare(series.index, n)
        while True:
            why, pos = collector.walk(pos, source.size)
            if why == BAD:
                raise LogError(f"no sound block at {self._at + pos}", path=source.name)
            head = read_header(source, pos, source.size) if why == OTHER else None
            if head is None or head.next > source.size:
                break
            found = note_of(source, head).series
            if found is not None:
                collector.declare(found.index, len(self._series))
                self._series.append((found, self._at + pos))
                self._entries.append([])
                self._payloads.append(0)
            pos = head.next
        table = collector.finish()
        index = MessageIndex(Chunks(source), table, [IN_BLOCKS] * len(self._series))
        for channel in table.live():
            start = index.starts(channel)
            size, payloads = wirewrite.entries(source.data, start, _NOTHING, self._at)
            self._entries[channel].append(_made(source.data, start, size, self._at).tobytes())
            self._payloads[channel] += payloads
        self._rest, self._at = source.read(pos, source.size), self._at + pos

    def pieces(self, at: int) -> Pieces:
        """As those of an Indexer."""
        found = zip(self._series, self._payloads, self._entries, strict=True)
        return _index(at, ((*one, sum(map(len, made)), payloads, made) for one, payloads, made in found))


def _made(data: Buffer, start: I64, size: int, base: int = 0) -> Buffer:
    out = np.empty(size, np.uint8)
    wirewrite.entries(data, start, out, base)
    return out


def _index(at: int, parts: Iterable[tuple[Series, int, int, int, Iterable[bytes | memoryview]]]) -> Pieces:
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
