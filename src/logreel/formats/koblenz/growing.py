"""Read a Koblenz log while it is written: go on from the last complete message."""

from __future__ import annotations

from logreel.formats.koblenz.found import Found
from logreel.formats.koblenz.reader import Reader, disagreeing
from logreel.formats.koblenz.records import is_end, read_head
from logreel.formats.koblenz.scan_builder import build
from logreel.formats.koblenz.variant import ENOUGH, Variant, detect_variant
from logreel.index.block_builder import END
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Bytes behind damage with which it can be judged as in a complete file.
ENOUGH_BYTES = 1 << 20
#: A message that needs more bytes than this is one whose size is damaged.
LONGEST = 64 << 20


class UndecidedError(Exception):
    """What the bytes at the end mean depends on bytes that are not there yet."""


class GrowingReader(Reader):
    """Reads the messages of a growing file.

    position  end of the last complete message
    """

    def __init__(self, source: Source, variant: Variant) -> None:
        super().__init__(source, variant, set())
        self.position = variant.first

    def extend(self, source: Source) -> bool:
        """Read the messages that *source* has after ``position``; return whether all bytes could be judged."""
        self._source = self._framing.source = source
        self._blocks.extend(source.data)
        framing, size = self._framing, source.size
        while self.position < size and self._end is None:
            why, pos = self._blocks.walk(self.position, size, framing.tags, framing.keys)
            self.position = pos
            if why == END:
                break
            if is_end(source, pos):
                if size - pos >= 4:
                    self._end = pos
                break
            head = read_head(source, pos)
            if head is None:
                break
            if head.is_plausible(self._size_reading) and head.end(self._size_reading) > size:
                if size - pos > LONGEST:
                    return False
                break
            try:
                self.position = self._decide(pos)
            except UndecidedError:
                return False
        return True

    def _recover(self, pos: int) -> int:
        if self._source.size - pos < ENOUGH_BYTES:
            raise UndecidedError
        return super()._recover(pos)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        kinds = list(self._framing.kinds)
        blocks, _, _ = self._blocks.snapshot(len(kinds))
        known = len(self._problems)
        if self._end is not None:
            self._end_of_log(self._end)
        elif self.position < self._source.size:
            self._report_lost(self.position, self._source.size)
        problems = list(self._problems)
        del self._problems[known:]
        return Found(self._framing, kinds, blocks, self._end, problems)


class KoblenzGrowing:
    """The Growing of one Koblenz log."""

    def __init__(self) -> None:
        self._variant: Variant | None = None
        self._reader: GrowingReader | None = None
        self._checked = 0
        self._is_damaged = False

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._is_damaged:
            return None
        if self._reader is None:
            self._variant = detect_variant(source)
            self._reader = GrowingReader(source, self._variant)
        reader, variant = self._reader, self._variant
        is_decided = reader.extend(source)
        found = reader.found()
        if int(found.blocks.counts.sum()) < ENOUGH:
            # How the file is to be read follows from its first messages.
            self._reader = None
            return None
        if not is_decided or variant is None:
            return None
        if next(disagreeing(found, self._checked), None) is not None:
            # A size that is damaged although a message seems to follow: judged with several passes over the file.
            self._is_damaged, self._reader = True, None
            return None
        self._checked = reader.position
        return build(source, variant, found)
