"""Write the index at the end of a file: from the finished data blocks, or while the blocks are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from logreel.errors import FileChangedError, LogError
from logreel.formats.bddf import descriptors
from logreel.formats.bddf.descriptors import FileIndex, Series
from logreel.formats.bddf.encode_blocks import file_index
from logreel.formats.bddf.index_builder import BAD, OTHER, SERIES_RULES, IndexBuilder
from logreel.formats.bddf.non_data_blocks import UnexpectedBlock, non_data_blocks, parse_non_data_block
from logreel.formats.bddf.records import DESCRIPTOR, MAGIC, read_header
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer, Chunks
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.schemas.protobuf.build import number, varint
from logreel.schemas.protobuf.wire import BYTES
from logreel.write.payloads import Payload

#: Data blocks whose entries are encoded in one call.
BATCH = 1 << 16
#: Bytes of entries kept in memory; if there are more, the file is read again once per this many bytes.
KEPT = 16 << 20
_NO_OUTPUT = np.zeros(0, np.uint8)
Pieces = Iterator[bytes | memoryview]
#: Series, offset of its declaration, bytes of its entries, bytes of its payloads, and the entries.
SeriesEntries = tuple[Series, int, int, int, Iterable[bytes | memoryview]]
#: Passes all bytes of the file before an offset to a function once more: ``Appender.again``.
Again = Callable[[Callable[[bytes], None], int], None]


class IndexFromFile:
    """Index of a readable file that ends after its last data block."""

    def __init__(self, source: Source) -> None:
        self._data = source.data
        self._series: list[tuple[Series, int]] = []
        builder = IndexBuilder(source.data)
        try:
            for block in non_data_blocks(source, builder):
                if block.series is not None:
                    builder.declare(block.series.index, len(self._series))
                    self._series.append((block.series, block.header.pos))
        except UnexpectedBlock as error:
            raise LogError(f"was changed by another program: {error}", path=source.name) from None
        table = builder.finish()
        self._index = MessageIndex(Chunks(source), table, [SERIES_RULES] * len(self._series))

    def pieces(self, at: int) -> Pieces:
        """Yield the bytes of the index, which begins at offset *at*; the last piece is the file index block."""
        return index_blocks(at, ((*declared, *self._entries(n)) for n, declared in enumerate(self._series)))

    def _entries(self, channel: int) -> tuple[int, int, Pieces]:
        """Return bytes of the entries, bytes of the payloads, and the entries of a channel."""
        start = self._index.starts(channel)
        batches = [start[lo : lo + BATCH] for lo in range(0, len(start), BATCH)]
        sizes = [bddf.write_index_entries(self._data, batch, _NO_OUTPUT) for batch in batches]
        encoded = (
            encode_entries(self._data, batch, n).data for batch, (n, _) in zip(batches, sizes, strict=True)
        )
        return sum(n for n, _ in sizes), sum(p for _, p in sizes), encoded


class _EntryBuilder:
    """Encodes the entries of all data blocks; *follow* gets the bytes of the file in pieces of any size."""

    def __init__(self) -> None:
        self.series: list[tuple[Series, int]] = []
        #: Bytes of a block that is not complete yet, and their offset in the file.
        self._rest, self._at = b"", 0

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Take entries of a channel, and the size of their payloads in bytes."""
        raise NotImplementedError

    def follow(self, piece: Payload) -> None:
        """Take the next bytes of the file."""
        source = Source(b"".join((self._rest, piece)), "what was written")
        pos = min(source.size, max(0, len(MAGIC) - self._at))
        builder = IndexBuilder(source.data)
        for n, (series, _) in enumerate(self.series):
            builder.declare(series.index, n)
        while True:
            why, pos = builder.walk(pos, source.size)
            if why == BAD:
                raise LogError(f"no sound block at {self._at + pos}", path=source.name)
            head = read_header(source, pos, source.size) if why == OTHER else None
            if head is None or head.next > source.size:
                break
            declared = parse_non_data_block(source, head).series
            if declared is not None:
                builder.declare(declared.index, len(self.series))
                self.series.append((declared, self._at + pos))
            pos = head.next
        table = builder.finish()
        index = MessageIndex(Chunks(source), table, [SERIES_RULES] * len(self.series))
        for channel in table.live():
            start = index.starts(channel)
            size, payloads = bddf.write_index_entries(source.data, start, _NO_OUTPUT, self._at)
            self.keep(channel, encode_entries(source.data, start, size, self._at).data, payloads)
        self._rest, self._at = source.read(pos, source.size), self._at + pos


class IndexFromStream(_EntryBuilder):
    """Index of a file that cannot be read again: the same bytes as those of IndexFromFile.

    again  passes all bytes once more, if more than KEPT bytes of entries are needed
    """

    def __init__(self, again: Again) -> None:
        super().__init__()
        self._again = again
        self._size: dict[int, int] = {}
        self._payloads: dict[int, int] = {}
        #: Entries by channel; None: there are more than KEPT bytes of them.
        self._kept: dict[int, list[memoryview]] | None = {}

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Count entries, and keep them while they fit into KEPT bytes."""
        self._size[channel] = self._size.get(channel, 0) + len(entries)
        self._payloads[channel] = self._payloads.get(channel, 0) + payloads
        if sum(self._size.values()) > KEPT:
            self._kept = None
        if self._kept is not None:
            self._kept.setdefault(channel, []).append(entries)

    def pieces(self, at: int) -> Pieces:
        """Yield the bytes of the index, see ``IndexFromFile.pieces``."""
        sizes = [self._size.get(n, 0) for n in range(len(self.series))]
        entries = _PieceReader(self._windows(at, sizes) if self._kept is None else self._all())
        return index_blocks(
            at,
            (
                (*declared, size, self._payloads.get(n, 0), entries.take(size))
                for n, (declared, size) in enumerate(zip(self.series, sizes, strict=True))
            ),
        )

    def _all(self) -> Iterator[memoryview]:
        for _, entries in sorted((self._kept or {}).items()):
            yield from entries

    def _windows(self, end: int, sizes: Sequence[int]) -> Iterator[memoryview]:
        first = list(accumulate(sizes, initial=0))
        for lo in range(0, first[-1], KEPT):
            window = _Window(first, lo)
            self._again(window.follow, end)
            yield from window.pieces()


class _Window(_EntryBuilder):
    """KEPT bytes from byte *lo* on of the entries of all series, concatenated series by series.

    first  offset of the entries of each series in this concatenation
    """

    def __init__(self, first: Sequence[int], lo: int) -> None:
        super().__init__()
        self._next, self._lo = list(first), lo
        self._kept: dict[int, list[memoryview]] = {}

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Keep the part of the entries that lies in the window."""
        at = self._next[channel]
        self._next[channel] += len(entries)
        inside = entries[max(0, self._lo - at) : max(0, self._lo + KEPT - at)]
        if inside:
            # A copy: a view would keep all entries alive.
            self._kept.setdefault(channel, []).append(memoryview(bytes(inside)))

    def pieces(self) -> Iterator[memoryview]:
        """Yield the entries kept, in order."""
        for _, entries in sorted(self._kept.items()):
            yield from entries


class _PieceReader:
    """Reads any number of bytes from a sequence of pieces."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        """Yield the next *size* bytes, piece by piece."""
        while size:
            self._rest = self._rest or next(self._pieces, memoryview(b""))
            if not self._rest:
                raise LogError("comes out differently each time that it is written")
            yield self._rest[:size]
            self._rest, size = self._rest[size:], size - min(size, len(self._rest))


def encode_entries(data: Buffer, start: I64, size: int, base: int = 0) -> Buffer:
    """Return the index entries, *size* bytes, of the blocks at *start* in *data*, which has file offset *base*."""
    out = np.empty(size, np.uint8)
    written, _ = bddf.write_index_entries(data, start, out, base)
    if size and written != size:
        text = "blocks changed while they were indexed"
        raise FileChangedError(text, hint="try again when nothing else writes the file")
    return out


def index_blocks(at: int, all_series: Iterable[SeriesEntries]) -> Pieces:
    """Yield the series index blocks of all series, the first at offset *at*, then the file index block."""
    names, offsets, hashes = [], [], []
    for series, declared, size, payloads, entries in all_series:
        names.append(series.identifier)
        offsets.append(at)
        hashes.append(series.hash)
        first, last = number(1, series.index) + number(2, declared), number(4, payloads)
        content = len(first) + size + len(last)
        # The entries are never in memory as a whole: headers are written around them.
        head = varint(descriptors.SERIES_INDEX << 3 | BYTES) + varint(content)
        yield (len(head) + content | DESCRIPTOR << 56).to_bytes(8, "little") + head + first
        yield from entries
        yield last
        at += 8 + len(head) + content
    yield file_index(FileIndex(tuple(names), tuple(offsets), tuple(hashes)))
