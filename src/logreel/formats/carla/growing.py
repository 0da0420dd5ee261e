"""Read a recording while it is written: go on from the last complete packet."""

from __future__ import annotations

from logreel.errors import UnsupportedError
from logreel.formats.carla.found import Found
from logreel.formats.carla.reader import KINDS, Reader
from logreel.formats.carla.records import read_header, read_packet, vectors_are_wide
from logreel.formats.carla.scan_builder import ScanBuilder
from logreel.index import block_builder
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Bytes behind damage with which it can be judged as in a complete file; also bytes after which it is clear whether
#: vectors are float64.
ENOUGH = 1 << 20
#: A packet that needs more bytes than this is one whose size is damaged.
LONGEST = 64 << 20


class UndecidedError(Exception):
    """What the bytes at the end mean depends on bytes that are not there yet."""


class GrowingReader(Reader):
    """Reads the packets of a growing recording.

    position  end of the last complete packet
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.begin = self.position = self._pos
        self.wide = self._wide

    def extend(self, source: Source) -> bool:
        """Read the packets that *source* has after ``position``; return whether all bytes could be judged."""
        self._source, self._end = source, source.size
        self._framing.extend(source)
        self._blocks.extend(source.data)
        try:
            while self.position < self._end:
                why, pos = self._blocks.walk(self.position, self._end, self._framing.tags, self._framing.keys)
                self.position = pos
                if why == block_builder.END:
                    break
                packet = read_packet(source, pos)
                if packet is None or packet.next > self._end:
                    return self._end - pos <= LONGEST
                after = self._infer_kind(packet)
                self.position = self._judged(pos) if after is None else after
        except UndecidedError:
            return False
        return True

    def _judged(self, pos: int) -> int:
        if self._end - pos < ENOUGH:
            raise UndecidedError
        return self._refused(pos)

    @property
    def has_losses(self) -> bool:
        """Whether bytes were lost."""
        return any(problem.lost for problem in self._problems)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        blocks, ends, sizes = self._blocks.snapshot(KINDS)
        known = len(self._problems)
        if self.position < self._end:
            self._skip(self.position, self._end)
        problems = list(self._problems)
        del self._problems[known:]
        topics = self._topics_of([kind for kind, count in enumerate(blocks.counts.tolist()) if count], blocks)
        return Found(
            self._header, self._wide, topics, blocks, ends, sizes, dict(self._resized), problems, True
        )


class CarlaGrowing:
    """The Growing of one recording."""

    def __init__(self) -> None:
        self._reader: GrowingReader | None = None
        self._is_damaged = self._is_clear = False

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._is_damaged:
            return None
        if read_header(source) is None:
            raise UnsupportedError("the file ends inside its header", path=source.name)
        reader = self._reader
        if reader is None or not (self._is_clear or vectors_are_wide(source, reader.begin) == reader.wide):
            reader = self._reader = GrowingReader(source)
        self._is_clear = source.size > ENOUGH
        if not reader.extend(source):
            return None
        if reader.has_losses:
            # It may be a file that was written in text mode, which is judged as a whole.
            self._is_damaged, self._reader = True, None
            return None
        return ScanBuilder(source, reader.found()).scan()
