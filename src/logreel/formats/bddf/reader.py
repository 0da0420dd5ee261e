"""Read a file from the front: follow the records, judge what is not data, step over damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.bddf import messages, records
from logreel.formats.bddf.index_builder import (
    BAD,
    CUT,
    END,
    MAX_SERIES,
    OTHER,
    PASSED,
    UNDECLARED,
    IndexBuilder,
    extent,
)
from logreel.formats.bddf.messages import FileDescriptor, Series
from logreel.formats.bddf.records import DESCRIPTOR, END_BYTES, MAGIC, Ending, read_descriptor, read_header
from logreel.index.block_table import Blocks, Separate
from logreel.io.source import Source
from logreel.kernels import bddf
from logreel.schemas.protobuf.wire import BadWire

#: So many sound blocks in a row are evidence enough to go on reading after damage.
CHAIN = 3


@dataclass(slots=True)
class Found:
    """What a file holds.

    series   of each channel
    table    where the data blocks begin, by channel
    times    gives the least and the greatest time of them, ns
    ending   the last block of the file, or None
    indexed  True where the file's own index was used
    """

    file: FileDescriptor
    series: list[Series]
    table: Blocks | Separate
    times: Callable[[], tuple[int | None, int | None]]
    problems: list[Problem] = field(default_factory=list)
    ending: Ending | None = None
    indexed: bool = False


class Scanner:
    """Reads one file; ``run`` gives what it found.

    hints  int64[n], ascending: places of data blocks that an index names, to go on at after damage
    """

    def __init__(self, source: Source, hints: NDArray[np.int64] | None = None) -> None:
        self.source, self._end = source, source.size
        self._hints = np.zeros(0, np.int64) if hints is None else hints
        self._collector = IndexBuilder(source.data)
        self._file: FileDescriptor | None = None
        self._series: list[Series] = []
        self._channel: dict[str, int] = {}
        self._ending: Ending | None = None
        self._problems: list[Problem] = []
        self._undeclared = -1

    def run(self) -> Found:
        """Read the whole file."""
        pos = len(MAGIC)
        while pos < self._end:
            why, pos = self._collector.walk(pos, self._end)
            if why == END:
                break
            if why == OTHER:
                pos = self._other(pos)
            elif why == BAD:
                pos = self._bad(pos)
            elif why == CUT:
                pos = self._cut(pos)
        table = self._collector.finish()
        self._report()
        file = self._file or FileDescriptor()
        times = partial(extent, self.source.data, table)
        return Found(file, self._series, table, times, self._problems, self._ending)

    def _problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        self._problems.append(Problem(code, offset, size, lost, text))

    def _report(self) -> None:
        """Tell of what is only known at the end."""
        passed, size = self._collector.passed
        if passed:
            text = f"{passed} blocks of series that nothing declares"
            self._problem("undeclared", self._undeclared, size, True, text)
        if self._file is None:
            self._problem("header", len(MAGIC), 0, False, "the file descriptor is missing or unreadable")
        if self._ending is None and not any(p.code in ("truncated", "zeros") for p in self._problems):
            text = "the file has no end block: its writer was stopped"
            self._problem("truncated", self._end, 0, False, text)

    # --------------------------------------------------------------------------------- blocks that are not data

    def _other(self, pos: int) -> int:
        """Take in the block at *pos*, which holds no data; gives where to go on."""
        head = read_header(self.source, pos, self._end)
        if head is None:
            return self._cut(pos)
        if head.kind == records.END:
            return self._at_end(pos)
        if head.kind != DESCRIPTOR:
            if not self._leads_on(head.next, 2):
                return self._resync(pos, f"a block of unknown kind {head.kind}")
            self._problem(
                "unknown", pos, head.size + 8, False, f"a block of unknown kind {head.kind}: skipped by size"
            )
            return head.next
        if head.size > records.MAX_DESCRIPTOR:
            # The index of a long series: only who asks for the index parses it.
            return head.next
        try:
            kind, content = read_descriptor(self.source, pos, self._end)
            if kind == messages.FILE:
                self._file = self._file or FileDescriptor.parse(content)
            elif kind == messages.SERIES:
                self._declare(Series.parse(content), pos, head.size + 8)
        except BadWire as error:
            if not self._leads_on(head.next, 2):
                return self._resync(pos, str(error))
            self._problem("garbage", pos, head.size + 8, True, f"a descriptor that cannot be read: {error}")
        return head.next

    def _declare(self, series: Series, pos: int, size: int) -> None:
        if series.index >= MAX_SERIES:
            self._problem("garbage", pos, size, True, f"a series with number {series.index}")
            return
        # Files glued together may declare a series again, under the same number or another one.
        same = repr((series.identifier, series.type, series.names, series.annotations))
        if same not in self._channel:
            self._channel[same] = len(self._series)
            self._series.append(series)
        self._collector.declare(series.index, self._channel[same])

    def _at_end(self, pos: int) -> int:
        """Take in the end block at *pos*, and look at what follows it."""
        found = records.read_ending(self.source, pos)
        if found is None:
            left = self._end - pos
            if left < END_BYTES:
                self._problem(
                    "truncated", pos, left, False, f"the end block is cut: {left} of {END_BYTES} bytes"
                )
                return self._end
            return self._resync(pos, "an end block without its mark")
        self._ending = found
        pos += END_BYTES
        if pos == self._end or self._restart(pos):
            return pos + (len(MAGIC) if pos < self._end else 0)
        follows = self._find_magic(pos, self._end)
        left = follows - pos
        kind = "zeros" if not self.source.data[pos:follows].any() else "garbage"
        self._problem(kind, pos, left, False, f"{left} bytes after the end of the log")
        if follows < self._end:
            self._restart(follows)
            return follows + len(MAGIC)
        return self._end

    def _restart(self, pos: int) -> bool:
        """True where another file begins at *pos*, which is read as a further part of this one."""
        if self.source.read(pos, 4) != MAGIC:
            return False
        try:
            kind, _ = read_descriptor(self.source, pos + 4, self._end)
        except BadWire:
            return False
        if kind != messages.FILE:
            return False
        self._problem("segment", pos, 0, False, "another log begins here: the file is several glued together")
        self._collector.forget()
        self._ending = None
        return True

    def _find_magic(self, pos: int, end: int) -> int:
        """The first position from *pos* on where another file begins, or *end*."""
        step = 1 << 20
        for lo in range(pos, end, step):
            piece = self.source.read(lo, min(step + 16, end - lo))
            at = piece.find(MAGIC)
            while 0 <= at < step:
                if piece[at + 11 : at + 13] == b"\x01\x0a":
                    return lo + at
                at = piece.find(MAGIC, at + 1)
        return end

    # -------------------------------------------------------------------------------------------------- damage

    def _chain(self, pos: int, need: int, known: NDArray[np.int32] | None = None) -> bool:
        """True if sound blocks follow each other from *pos*, or it is the end."""
        known = self._collector.known if known is None else known
        if pos == self._end:
            return True
        return 0 <= pos < self._end and (
            bddf.resync(self.source.data, pos, self._end, known, need, pos, END_BYTES) == pos
            or records.read_ending(self.source, pos) is not None
        )

    def _leads_on(self, pos: int, need: int, known: NDArray[np.int32] | None = None) -> bool:
        """The same, or one sound block is the last before one that the file cuts."""
        if self._chain(pos, need, known):
            return True
        head = read_header(self.source, pos, self._end)
        if head is None or not self._chain(pos, 1, known):
            return False
        cut = read_header(self.source, head.next, self._end)
        return cut is None or (cut.kind <= records.END and cut.next > self._end)

    def _bad(self, pos: int) -> int:
        """Go on after *pos*, where there is no sound block of a declared series."""
        found = records.data_series(self.source, pos, self._end)
        if found is not None and found[0] < MAX_SERIES:
            series, after = found
            known = self._collector.known
            if series >= len(known) or known[series] == UNDECLARED:
                more = max(0, series + 1 - len(known))
                tolerant = np.concatenate([known, np.full(more, UNDECLARED, np.int32)])
                tolerant[series] = PASSED
                if self._leads_on(after, CHAIN, tolerant):
                    self._undeclared = pos if self._undeclared < 0 else self._undeclared
                    self._collector.pass_over(series)
                    return pos
        return self._resync(pos, "")

    def _cut(self, pos: int) -> int:
        """Go on after *pos*, where a block is said to be larger than what is left."""
        return self._resync(pos, "", cut=True)

    def _resync(self, pos: int, reason: str, cut: bool = False) -> int:
        """Report the bytes from *pos* up to the next sound block; gives where that is."""
        stop = self._next_sound(pos + 1)
        size = stop - pos
        restarts = stop < self._end and self.source.read(stop - 4, 4) == MAGIC and size >= 4
        if restarts:
            size -= 4
        if size and not self.source.data[pos : pos + size].any():
            self._problem("zeros", pos, size, True, f"{size} bytes of zeros where blocks should be")
        elif cut and (stop == self._end or restarts):
            self._problem("truncated", pos, size, True, f"the last {size} bytes are a cut block")
        elif size:
            why = f" ({reason})" if reason else ""
            self._problem("garbage", pos, size, True, f"{size} bytes that are no sound block{why}")
        if restarts:
            self._restart(stop - 4)
        return stop

    def _next_sound(self, pos: int) -> int:
        """The first position from *pos* on where sound blocks follow each other, or the end."""
        at = int(np.searchsorted(self._hints, pos))
        last = int(self._hints[at]) - 1 if at < len(self._hints) else self._end
        while True:
            known = self._collector.known
            found = bddf.resync(self.source.data, pos, self._end, known, CHAIN, last, END_BYTES)
            if found >= 0:
                return found
            if at >= len(self._hints):
                return self._end_block(pos)
            pos, at = int(self._hints[at]), at + 1
            if self._chain(pos, 1):
                return pos
            last = int(self._hints[at]) - 1 if at < len(self._hints) else self._end

    def _end_block(self, pos: int) -> int:
        """The end block of the file if it is where it should be, from *pos* on; else the end."""
        at = self._end - END_BYTES
        return at if at >= pos and records.read_ending(self.source, at) is not None else self._end
