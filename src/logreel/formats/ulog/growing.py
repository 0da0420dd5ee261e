"""Read a ULog while it is written: go on from the last complete record."""

from __future__ import annotations

from dataclasses import replace

from logreel.errors import UnsupportedError
from logreel.formats.ulog.found import Found
from logreel.formats.ulog.reader import Reader
from logreel.formats.ulog.records import FILE_HEADER, HEAD
from logreel.formats.ulog.scan_builder import scan
from logreel.formats.ulog.time_jumps import first_jump
from logreel.index.block_builder import CUT, END, PARSE
from logreel.io.source import Source
from logreel.log.scan import Scan

#: Bytes behind damage with which it can be judged as in a complete file: many of the longest records.
ENOUGH = 1 << 20
#: Bytes of the flag bits record that every writer writes.
_FLAGS = HEAD + 40


class UndecidedError(Exception):
    """What the bytes at the end mean depends on bytes that are not there yet."""


class GrowingReader(Reader):
    """Reads the records of a growing file.

    end  position after the last complete record
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.end, self._appended = self._flags()
        self._first = self.end
        self.blocks_checked = 0

    def extend(self, source: Source) -> bool:
        """Read the records that *source* has after ``end``; return whether all of them could be judged."""
        self.source, self._view = source, source.view
        self._framing.extend(source)
        self._blocks.extend(source.data)
        for part_end in sorted({*self._appended, source.size}):
            if part_end > self.end and not self._read_to(part_end):
                return False
        return True

    def _read_to(self, end: int) -> bool:
        if self.end in (self._first, *self._appended):
            self._part_start = self.end
        try:
            while True:
                why, self.end = self._blocks.walk(self.end, end, self._framing.kinds, self._framing.keys)
                if why == END or (why == CUT and end == self.source.size):
                    return True
                self.end = self._parse(self.end, end) if why == PARSE else self._recover(self.end, end, why)
        except UndecidedError:
            return False

    def _recover(self, pos: int, end: int, why: int, reason: str = "") -> int:
        if end == self.source.size and end - pos < ENOUGH:
            self.end = pos
            raise UndecidedError
        return super()._recover(pos, end, why, reason)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        framing = self._framing
        known = len(framing.problems)
        blocks, notes, _ = self._blocks.snapshot(len(self.topics))
        if self.end < self.source.size:
            framing.report_cut(self.end, self.source.size)
        framing.report_odd()
        notes = framing.report_undeclared(notes)
        problems = list(framing.problems)
        del framing.problems[known:]
        return Found(
            version=int(self._view[7]),
            begin=self._first,
            topics=list(self.topics),
            blocks=blocks,
            parsed=list(self.parsed),
            notes=notes,
            segments=list(self.segments),
            segment_us=list(self.segment_us),
            own_definitions=list(self.own_definitions),
            appended=list(self._appended),
            problems=problems,
            is_growing=True,
        )


class UlogGrowing:
    """The Growing of one ULog."""

    def __init__(self) -> None:
        self._reader: GrowingReader | None = None
        self._flags = b""

    def extend(self, source: Source) -> Scan | None:
        """See ``Growing``."""
        flags = source.read(FILE_HEADER, _FLAGS)
        has_flags, size = flags[2:3] == b"B", int.from_bytes(flags[:2], "little")
        if len(flags) < HEAD or (has_flags and source.size < FILE_HEADER + HEAD + size):
            raise UnsupportedError("the file ends inside its header", path=source.name)
        # Appending writes the position of the appended data into the flags.
        if self._reader is None or (has_flags and flags != self._flags):
            self._reader, self._flags = GrowingReader(source), flags
        reader = self._reader
        if not reader.extend(source):
            return None
        found = reader.found()
        if len(found.blocks.base) > reader.blocks_checked + 1:
            reader.blocks_checked = len(found.blocks.base)
            if first_jump(source, found) is not None:
                # Another log begins there: rare, and only in files that are not written at the moment.
                self._reader = None
                return None
        return replace(scan(source, found), saved=None)
