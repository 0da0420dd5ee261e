"""How the index of a file is made of what goes by, where the file cannot be read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from logreel.errors import LogError
from logreel.formats.bddf.found import note_of
from logreel.formats.bddf.index_builder import BAD, IN_BLOCKS, OTHER, IndexBuilder
from logreel.formats.bddf.indexer import NOTHING, Pieces, index_of, made_of
from logreel.formats.bddf.messages import Series
from logreel.formats.bddf.records import MAGIC, read_header
from logreel.index.message_index import MessageIndex
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.write.payloads import Payload

#: Bytes of entries that are kept; where there are more, the file goes by once more for each so many.
KEPT = 16 << 20
#: Gives all bytes of the file up to a place once more: ``Appender.again``.
Again = Callable[[Callable[[bytes], None], int], None]


class _Entries:
    """Makes the entries of all blocks: *follow* gets the bytes of the file, however they are cut."""

    def __init__(self) -> None:
        self.series: list[tuple[Series, int]] = []
        #: What belongs to a block that has not come as a whole, and where in the file that begins.
        self._rest, self._at = b"", 0

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Take entries of a channel, and the bytes of the payloads they stand for."""
        raise NotImplementedError

    def follow(self, piece: Payload) -> None:
        """Take the next bytes of the file."""
        source = Source(b"".join((self._rest, piece)), "what was written")
        pos = min(source.size, max(0, len(MAGIC) - self._at))
        collector = IndexBuilder(source.data)
        for n, (series, _) in enumerate(self.series):
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
                collector.declare(found.index, len(self.series))
                self.series.append((found, self._at + pos))
            pos = head.next
        table = collector.finish()
        index = MessageIndex(Chunks(source), table, [IN_BLOCKS] * len(self.series))
        for channel in table.live():
            start = index.starts(channel)
            size, payloads = bddf.write_index_entries(source.data, start, NOTHING, self._at)
            self.keep(channel, made_of(source.data, start, size, self._at).data, payloads)
        self._rest, self._at = source.read(pos, source.size), self._at + pos


class Follower(_Entries):
    """Makes the index that an Indexer makes of the file.

    again  shows all bytes once more, if they are asked for
    """

    def __init__(self, again: Again) -> None:
        super().__init__()
        self._again = again
        self._size: dict[int, int] = {}
        self._payloads: dict[int, int] = {}
        self._kept: dict[int, list[memoryview]] | None = {}

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Count entries, and keep them as long as there are few."""
        self._size[channel] = self._size.get(channel, 0) + len(entries)
        self._payloads[channel] = self._payloads.get(channel, 0) + payloads
        if sum(self._size.values()) > KEPT:
            self._kept = None
        if self._kept is not None:
            self._kept.setdefault(channel, []).append(entries)

    def pieces(self, at: int) -> Pieces:
        """As those of an Indexer."""
        sizes = [self._size.get(n, 0) for n in range(len(self.series))]
        reader = _Reader(self._windows(at, sizes) if self._kept is None else self._all())
        return index_of(
            at,
            (
                (*declared, size, self._payloads.get(n, 0), reader.take(size))
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
            yield from window.parts()


class _Window(_Entries):
    """Keeps the entries of all series, one series behind the other, from byte *lo* on, KEPT bytes of them.

    first  where those of each series begin
    """

    def __init__(self, first: Sequence[int], lo: int) -> None:
        super().__init__()
        self._next, self._lo = list(first), lo
        self._kept: dict[int, list[memoryview]] = {}

    def keep(self, channel: int, entries: memoryview, payloads: int) -> None:
        """Keep what is in the window."""
        at = self._next[channel]
        self._next[channel] += len(entries)
        mine = entries[max(0, self._lo - at) : max(0, self._lo + KEPT - at)]
        if mine:
            # A copy, since a part would keep the whole.
            self._kept.setdefault(channel, []).append(memoryview(bytes(mine)))

    def parts(self) -> Iterator[memoryview]:
        """What was kept, in order."""
        for _, entries in sorted(self._kept.items()):
            yield from entries


class _Reader:
    """Bytes of which pieces of any size are taken."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces, self._rest = pieces, memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        """The next *size* bytes, piece by piece."""
        while size:
            self._rest = self._rest or next(self._pieces, memoryview(b""))
            if not self._rest:
                raise LogError("comes out differently each time that it is written")
            yield self._rest[:size]
            self._rest, size = self._rest[size:], size - min(size, len(self._rest))
