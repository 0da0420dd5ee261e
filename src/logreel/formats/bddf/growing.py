"""Read a BDDF file while it is written: go on from the last complete block."""

from __future__ import annotations

from functools import partial

from logreel.errors import Problem, UnsupportedError
from logreel.formats.bddf.descriptors import FileDescriptor
from logreel.formats.bddf.found import Found
from logreel.formats.bddf.index_builder import BAD, CUT, END, OTHER, time_span
from logreel.formats.bddf.reader import Reader
from logreel.formats.bddf.records import MAGIC, read_header
from logreel.formats.bddf.scan_builder import ScanBuilder, scan
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Bytes behind damage with which it is judged as in a complete file.
ENOUGH = 1 << 20
#: Bytes of an incomplete block after which its stated size is not believed any more.
PENDING = 1 << 28


class UndecidedError(Exception):
    """What the bytes at the end mean depends on bytes that are not there yet."""


class _NotYetError(Exception):
    """The block at the end is not complete."""


class GrowingReader(Reader):
    """Reads the blocks of a growing file.

    pos  offset after the last complete block
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.pos = len(MAGIC)

    def extend(self, source: Source) -> bool:
        """Read the complete blocks after ``pos``; return whether all bytes could be judged."""
        self.source, self._end = source, source.size
        self._builder.extend(source.data)
        try:
            while self.pos < self._end:
                if self._ending is not None:
                    # Another file follows, or something else after the end of the log: rare.
                    return False
                why, self.pos = self._builder.walk(self.pos, self._end)
                if why == END:
                    break
                if why == OTHER:
                    self.pos = self._non_data_block(self.pos)
                elif why == BAD:
                    self._check_enough(self.pos)
                    self.pos = self._bad_block(self.pos)
                elif why == CUT:
                    self.pos = self._cut_block(self.pos)
        except UndecidedError:
            return False
        except _NotYetError:
            return self._end - self.pos < PENDING
        return True

    def _non_data_block(self, pos: int) -> int:
        head = read_header(self.source, pos, self._end)
        if head is None or head.next > self._end:
            raise _NotYetError
        return super()._non_data_block(pos)

    def _is_followed(self, pos: int, *evidence: object) -> bool:
        self._check_enough(pos)
        return super()._is_followed(pos, *evidence)  # type: ignore[arg-type]

    def _check_enough(self, pos: int) -> None:
        if self._end - pos < ENOUGH:
            raise UndecidedError

    def _cut_block(self, pos: int) -> int:
        raise _NotYetError

    def _resync(self, pos: int, reason: str, cut: bool = False) -> int:
        self._check_enough(pos)
        return super()._resync(pos, reason, cut)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        known, left = len(self._problems), self._end - self.pos
        if left > 0:
            text = f"the last {left} bytes are a block that is not complete yet"
            self._problem("truncated", self.pos, left, True, text)
        self._add_final_problems()
        problems = list[Problem](self._problems)
        del self._problems[known:]
        table = self._builder.snapshot()
        times = partial(time_span, self.source.data, table)
        is_whole = self._ending is not None
        return Found(
            self._file or FileDescriptor(), list(self._series), table, times, problems, self._ending, is_whole
        )


class BddfGrowing:
    """The Growing of one BDDF file."""

    def __init__(self) -> None:
        self._reader: GrowingReader | None = None

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        if self._reader is None:
            if source.size < len(MAGIC):
                raise UnsupportedError("the file ends inside its header", path=source.name)
            self._reader = GrowingReader(source)
        if not self._reader.extend(source):
            return None
        found = ScanBuilder(source, self._reader.found()).scan()
        found.reread = lambda: scan(source)
        return found
