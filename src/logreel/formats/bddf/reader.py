"""Read a file from the front: follow its blocks, parse those that hold no data, and skip damage.

The reader is incremental: ``feed`` reads the complete blocks that the file has more than before, ``finish`` takes the
rest as the end of the file.

``IndexBuilder`` collects data blocks by channel: only their offsets, 4 bytes each; everything else is read from the
file later.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field, replace
from logreel.errors import Problem
from logreel.formats.bddf import records
from logreel.formats.bddf.records import (
    DESCRIPTOR,
    END_BYTES,
    MAGIC,
    EndBlock,
    FileDescriptor,
    SeriesDeclaration,
    StructType,
    read_descriptor,
    read_header,
)
from logreel.index.block_table import Blocks, Separate
from logreel.index.channel_index import ChannelRules, ComputedValues
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Buffer, Source
from logreel.kernels import bddf, block_table
from logreel.log.scan import ENOUGH, IncompleteError, IncrementalReader, UndecidedError
from logreel.schemas.protobuf.wire import BadWire, varint

#: Why the walk stopped: end of file, a block that holds no data, an invalid block, a truncated one, a full buffer.
END, OTHER, BAD, CUT, FULL = range(5)
#: Data blocks in one block of the block table: the buffers for so many stay in the second-level cache.
TABLE_BLOCK = 1 << 14
#: A series with a greater number is damage: series are numbered from 0.
MAX_SERIES = 1 << 16
#: Instead of a channel number: series that are not declared, and those whose blocks are valid but not collected.
UNDECLARED, SKIPPED = -1, -2
_NO_SIZES = np.zeros(0, np.uint32)


def _times(data: Buffer, start: I64) -> I64:
    out = np.empty(len(start), np.int64)
    bddf.block_times(data, np.ascontiguousarray(start), out)
    return out


def locate_payloads(data: Buffer, start: I64) -> tuple[I64, I64]:
    """Return offsets and sizes of the payloads of the data blocks at *start*: int64[n] each."""
    payload, size = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
    bddf.payload_ranges(data, np.ascontiguousarray(start), payload, size)
    return payload, size


#: Rules of every series: time, payload offset and size are read from the data block.
SERIES_RULES = ChannelRules(
    ComputedValues(_times),
    ComputedValues(lambda data, start: locate_payloads(data, start)[1]),
    payload=locate_payloads,
)


def time_span(data: Buffer, table: Blocks) -> tuple[int | None, int | None]:
    """Return the least and the greatest time of all data blocks of *table*, ns; None if it has no blocks."""
    least, greatest = list[int](), list[int]()
    for base, lo, hi in zip(table.base, table.start[:, 0], table.start[:, -1], strict=True):
        if hi > lo:
            times = _times(data, base + table.entry[lo:hi].astype(np.int64))
            least.append(int(times.min()))
            greatest.append(int(times.max()))
    return min(least, default=None), max(greatest, default=None)


class IndexBuilder:
    """Follows data blocks with the compiled walk and keeps their offsets.

    known  int32[k]  channel by series number; UNDECLARED or SKIPPED
    """

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self.known = np.full(1, UNDECLARED, np.int32)
        self._count = np.zeros(1, np.int64)
        #: Position, blocks in the buffer, base of their offsets (-1: none), number and bytes of skipped blocks.
        self._state = np.array([0, 0, -1, 0, 0], np.int64)
        self._record = np.empty(TABLE_BLOCK, np.uint64)
        self._bases: list[int] = []
        self._starts: list[I64] = []
        self._entry = np.empty(0, np.uint32)
        self._used = 0

    @property
    def skipped(self) -> tuple[int, int]:
        """Number and bytes of the skipped blocks."""
        return int(self._state[3]), int(self._state[4])

    def declare(self, series: int, channel: int) -> None:
        """Collect the blocks of *series* for *channel* from now on."""
        if series >= len(self.known):
            more = max(series + 1, 2 * len(self.known)) - len(self.known)
            self.known = np.concatenate([self.known, np.full(more, UNDECLARED, np.int32)])
        self.known[series] = channel
        if channel >= len(self._count):
            more = max(channel + 1, 2 * len(self._count)) - len(self._count)
            self._count = np.concatenate([self._count, np.zeros(more, np.int64)])

    def skip(self, series: int) -> None:
        """Accept blocks of *series*, which is not declared, but do not collect them."""
        self.declare(series, SKIPPED)

    def forget(self) -> None:
        """Forget all declarations: another file begins."""
        self.known[:] = UNDECLARED

    def walk(self, pos: int, end: int) -> tuple[int, int]:
        """Collect blocks from *pos* on; return why the walk stopped (END, OTHER, BAD or CUT) and where."""
        while True:
            self._state[0] = pos
            why = bddf.walk(self._data, self._state, end, self.known, self._record, self._count)
            pos = int(self._state[0])
            if why != FULL:
                return why, pos
            self._close()

    def _close(self) -> None:
        """Move the collected blocks into a block of the table."""
        n = int(self._state[1])
        if n:
            start, self._used = self._grouped(n, self._count)
            self._starts.append(start)
            self._bases.append(int(self._state[2]))
        self._state[1:3] = 0, -1
        if len(self._count) > len(self._record):
            # Keeps the table of starts smaller than its entries, however many channels there are.
            self._record = np.empty(2 * len(self._count), np.uint64)

    def _grouped(self, n: int, count: I64) -> tuple[I64, int]:
        """Write the entries of the *n* collected blocks behind the others; return starts by channel, and their end.

        count  number of blocks of each channel; set to 0
        """
        if self._used + n > len(self._entry):
            self._grow(n)
        start = np.full(len(count) + 1, self._used, np.int64)
        only = int(count.argmax())
        if int(count[only]) == n:
            # All of one channel, which is frequent: already in order. The low half of each is its offset.
            self._entry[self._used : self._used + n] = self._record.view("<u4")[: 2 * n : 2]
            start[only + 1 :] = self._used + n
            count[only] = 0
            return start, self._used + n
        where = start, self._entry, self._used
        return start, block_table.group_records(self._record, n, count, *where, _NO_SIZES, _NO_SIZES)

    def _grow(self, n: int) -> None:
        # A generous estimate: pages that are never touched cost nothing, but copying a full table does.
        guess = int((self._used + n) * 1.2 * len(self._data) / max(int(self._state[0]), 1)) + 4096
        grown = np.empty(max(min(guess, len(self._data) // 14 + 1), self._used + n), np.uint32)
        grown[: self._used] = self._entry[: self._used]
        self._entry = grown

    def finish(self) -> Blocks:
        """Return the block table of everything collected; its entries are offsets of data blocks."""
        self._close()
        return self._blocks(self._starts, self._bases, self._entry[: self._used])

    def extend(self, data: Buffer) -> None:
        """Go on with *data*, which begins with the bytes so far."""
        self._data = data

    def snapshot(self) -> Blocks:
        """Return the same table as ``finish``, in arrays of its own, and keep collecting."""
        n = int(self._state[1])
        if not n:
            return self._blocks(self._starts, self._bases, self._entry[: self._used].copy())
        # The block that is open, as if it were closed; closing it later overwrites its entries.
        start, used = self._grouped(n, self._count.copy())
        starts, bases = [*self._starts, start], [*self._bases, int(self._state[2])]
        return self._blocks(starts, bases, self._entry[:used].copy())

    def _blocks(self, starts: list[I64], bases: list[int], entry: NDArray[np.uint32]) -> Blocks:
        start = np.empty((len(starts), len(self._count) + 1), np.int64)
        for row, starts_of_block in zip(start, starts, strict=True):
            row[: len(starts_of_block)] = starts_of_block
            row[len(starts_of_block) :] = starts_of_block[-1]
        return Blocks(np.array(bases, np.int64), np.full(len(bases), FILE, np.int32), start, entry)


@dataclass(slots=True)
class Found:
    """The content of a file.

    series   the series of each channel, by channel number
    table    offsets of the data blocks, by channel
    times    a function that returns the least and the greatest time of the data blocks, ns
    ending   the end block of the file, or None
    indexed  True if the index of the file was used
    ranged   the index of a remote file, of which data blocks are fetched when they are needed; else None
    """

    file: FileDescriptor
    series: list[SeriesDeclaration]
    table: Blocks | Separate
    times: Callable[[], tuple[int | None, int | None]]
    problems: list[Problem] = field(default_factory=list)
    ending: EndBlock | None = None
    indexed: bool = False
    ranged: MessageIndex | None = None


#: Longest declaration that is kept for other files of the same robots, bytes.
SHORT = 1 << 12


@lru_cache(256)
def _parsed(content: bytes) -> SeriesDeclaration:
    return SeriesDeclaration.parse(content)


def _content_of(series: SeriesDeclaration) -> tuple[object, ...]:
    """Return what declarations of one series have in common, as a key."""
    kept, identifier = series.type, series.identifier
    return (
        identifier.type,
        tuple(identifier.spec.items()),
        tuple(kept.members.items()) if isinstance(kept, StructType) else kept,
        series.names,
        tuple(series.annotations.items()),
    )


#: Valid blocks in a row that are enough evidence to continue reading after damage.
CHAIN = 3
#: Blocks that are looked at for such evidence, if some of them are no evidence.
PASSED = 16
#: Bytes of a file that are searched for the beginning of another file in one step.
_WINDOW = 1 << 20
#: Bytes of an incomplete block after which its stated size is not believed any more.
PENDING = 1 << 28


class Reader(IncrementalReader):
    """Reads one file from the front.

    pos    offset after the last block that was read
    hints  int64[n], ascending: offsets of data blocks that the file's index names, to continue at after damage
    """

    def __init__(self, source: Source, hints: NDArray[np.int64] | None = None) -> None:
        self.source, self._end = source, source.size
        self.pos = len(MAGIC)
        self._hints = np.zeros(0, np.int64) if hints is None else hints
        self._builder = IndexBuilder(source.data)
        self._file: FileDescriptor | None = None
        self._series: list[SeriesDeclaration] = []
        #: Channel number by the content of the declaration.
        self._channel: dict[tuple[object, ...], int] = {}
        self._ending: EndBlock | None = None
        #: Whether the last block is the end block; other files, or anything else, may lie behind it.
        self._is_after_end = False
        self._problems: list[Problem] = []
        #: Offset of the first block of an undeclared series, or -1.
        self._undeclared = -1

    def _extend(self, source: Source) -> None:
        self.source, self._end = source, source.size
        self._builder.extend(source.data)

    def finish(self) -> Found:
        """Read the rest as the end of the file, and return everything that was found."""
        self._is_final = True
        self._read()
        table = self._builder.finish()
        self._add_final_problems()
        return self._found(table, self._problems)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        known, left = len(self._problems), self._end - self.pos
        if left > 0:
            text = f"the last {left} bytes are a block that is not complete yet"
            self._problem("truncated", self.pos, left, True, text)
        self._add_final_problems()
        problems = list(self._problems)
        del self._problems[known:]
        return replace(self._found(self._builder.snapshot(), problems), indexed=self._ending is not None)

    def _found(self, table: Blocks, problems: list[Problem]) -> Found:
        times = partial(time_span, self.source.data, table)
        file = self._file or FileDescriptor()
        return Found(file, list(self._series), table, times, problems, self._ending)

    def _read(self) -> None:
        while self.pos < self._end:
            if self._is_after_end:
                self.pos = self._after_end(self.pos)
                continue
            why, self.pos = self._builder.walk(self.pos, self._end)
            if why == END:
                break
            if why == OTHER:
                self.pos = self._non_data_block(self.pos)
            elif why == BAD:
                self.pos = self._bad_block(self.pos)
            elif why == CUT:
                self.pos = self._cut_block(self.pos)

    def _check_enough(self, pos: int) -> None:
        """Raise UndecidedError if more bytes may come, and too few are behind *pos* to decide what they mean."""
        if not self._is_final and self._end - pos < ENOUGH:
            raise UndecidedError

    def _problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        self._problems.append(Problem(code, offset, size, lost, text))

    def _add_final_problems(self) -> None:
        """Record the problems that are known only after the whole file was read."""
        count, size = self._builder.skipped
        if count:
            text = f"{count} blocks of series that nothing declares"
            self._problem("undeclared", self._undeclared, size, True, text)
        if self._file is None:
            place = min(len(MAGIC), self._end)
            self._problem("header", place, 0, False, "the file descriptor is missing or unreadable")
        if self._ending is None and not any(p.code in ("truncated", "zeros") for p in self._problems):
            text = "the file has no end block: its writer was stopped"
            self._problem("truncated", self._end, 0, False, text)

    # --------------------------------------------------------------------------------- blocks that are not data

    def _non_data_block(self, pos: int) -> int:
        """Read the block at *pos*, which holds no data; return the offset to continue at."""
        head = read_header(self.source, pos, self._end)
        if head is None or (head.next > self._end and not self._is_final):
            return self._cut_block(pos)
        if head.kind == records.END:
            return self._end_block(pos)
        if head.kind != DESCRIPTOR:
            if not self._is_followed(head.next, 2):
                return self._resync(pos, f"a block of unknown kind {head.kind}")
            self._problem(
                "unknown", pos, head.size + 8, False, f"a block of unknown kind {head.kind}: skipped by size"
            )
            return head.next
        if head.size > records.MAX_DESCRIPTOR:
            # The index of a long series is parsed only on demand.
            if self._field_number(head) not in (records.SERIES_INDEX, records.FILE_INDEX):
                text = f"a descriptor of {head.size} bytes; at most {records.MAX_DESCRIPTOR} are read"
                self._problem("garbage", pos, head.size + 8, True, text)
            return head.next
        try:
            descriptor_kind, content = read_descriptor(self.source, pos, self._end)
            if descriptor_kind == records.FILE:
                self._file = self._file or FileDescriptor.parse(content)
            elif descriptor_kind == records.SERIES:
                parse = _parsed if len(content) <= SHORT else SeriesDeclaration.parse
                self._declare(parse(content), pos, head.size + 8)
        except BadWire as error:
            if not self._is_followed(head.next, 2):
                return self._resync(pos, str(error))
            self._problem("garbage", pos, head.size + 8, True, f"a descriptor that cannot be read: {error}")
        return head.next

    def _field_number(self, head: records.Header) -> int:
        """Return the field number of the message in a descriptor block, 0 if it has none."""
        try:
            tag, _ = varint(self.source.read(head.body, 10), 0)
        except BadWire:
            return 0
        return tag >> 3

    def _declare(self, series: SeriesDeclaration, pos: int, size: int) -> None:
        if series.index >= MAX_SERIES:
            self._problem(
                "garbage",
                pos,
                size,
                True,
                f"a series with number {series.index}; the highest is {MAX_SERIES - 1}",
            )
            return
        # Concatenated files may declare a series again, with the same number or another one.
        content = _content_of(series)
        if content not in self._channel:
            self._channel[content] = len(self._series)
            self._series.append(series)
        self._builder.declare(series.index, self._channel[content])

    def _end_block(self, pos: int) -> int:
        """Read the end block at *pos*; return the offset to continue at."""
        end_block = records.read_end_block(self.source, pos)
        if end_block is None:
            left = self._end - pos
            if left < END_BYTES:
                self._problem(
                    "truncated", pos, left, False, f"the end block is cut: {left} of {END_BYTES} bytes"
                )
                return self._end
            return self._resync(pos, "an end block without its mark")
        self._ending, self._is_after_end = end_block, True
        return pos + END_BYTES

    def _after_end(self, pos: int) -> int:
        """Look at the bytes at *pos*, behind an end block; return the offset to continue at."""
        if not self._is_final:
            # Another file follows, or something else: rare.
            raise UndecidedError
        self._is_after_end = False
        if self._begin_segment(pos):
            return pos + len(MAGIC)
        follows = self._find_magic(pos, self._end)
        left = follows - pos
        code = "zeros" if not self.source.data[pos:follows].any() else "garbage"
        self._problem(code, pos, left, False, f"{left} bytes after the end of the log")
        if follows < self._end:
            self._begin_segment(follows)
            return follows + len(MAGIC)
        return self._end

    def _begin_segment(self, pos: int) -> bool:
        """Return True if another file begins at *pos*, whose blocks are then added to those of this file."""
        if self.source.read(pos, 4) != MAGIC:
            return False
        try:
            descriptor_kind, _ = read_descriptor(self.source, pos + 4, self._end)
        except BadWire:
            return False
        if descriptor_kind != records.FILE:
            return False
        self._problem("segment", pos, 0, False, "another log begins here: the file is several glued together")
        self._builder.forget()
        self._ending = None
        return True

    def _find_magic(self, pos: int, end: int) -> int:
        """Return the first offset from *pos* on where another file begins, or *end*."""
        for lo in range(pos, end, _WINDOW):
            window = self.source.read(lo, min(_WINDOW + 16, end - lo))
            at = window.find(MAGIC)
            while 0 <= at < _WINDOW:
                if window[at + 11 : at + 13] == b"\x01\x0a":
                    return lo + at
                at = window.find(MAGIC, at + 1)
        return end

    # -------------------------------------------------------------------------------------------------- damage

    def _is_chain(self, pos: int, need: int, known: NDArray[np.int32] | None = None) -> bool:
        """Return True if *need* valid blocks follow each other from *pos*, or if *pos* is the end of the file."""
        known = self._builder.known if known is None else known
        if pos == self._end:
            return True
        return 0 <= pos < self._end and (
            bddf.resync(self.source.data, pos, self._end, known, need, pos, END_BYTES) == pos
            or records.read_end_block(self.source, pos) is not None
        )

    def _is_followed(self, pos: int, need: int, known: NDArray[np.int32] | None = None) -> bool:
        """Return True for a chain at *pos*, or for valid blocks, at least one, that lead to a truncated one.

        Blocks of unknown kinds and of series that nothing declares are passed over: they are no evidence themselves.
        """
        self._check_enough(pos)
        if self._is_chain(pos, need, known):
            return True
        valid = 0
        for _ in range(PASSED):
            head = read_header(self.source, pos, self._end)
            if pos == self._end:
                return True
            if head is None or head.next > self._end:
                return valid > 0
            if self._is_chain(pos, 1, known):
                valid += 1
            elif head.kind <= records.END and records.data_series(self.source, pos, self._end) is None:
                return False
            if valid >= need:
                return True
            pos = head.next
        return False

    def _bad_block(self, pos: int) -> int:
        """Return the offset to continue at if no valid block of a declared series is at *pos*."""
        self._check_enough(pos)
        series_and_end = records.data_series(self.source, pos, self._end)
        if series_and_end is not None and series_and_end[0] < MAX_SERIES:
            series, after = series_and_end
            known = self._builder.known
            if series >= len(known) or known[series] == UNDECLARED:
                more = max(0, series + 1 - len(known))
                tolerant = np.concatenate([known, np.full(more, UNDECLARED, np.int32)])
                tolerant[series] = SKIPPED
                if self._is_followed(after, CHAIN, tolerant):
                    self._undeclared = pos if self._undeclared < 0 else self._undeclared
                    self._builder.skip(series)
                    return pos
        return self._resync(pos, "")

    def _cut_block(self, pos: int) -> int:
        """Return the offset to continue at if the block at *pos* claims more bytes than the file has left."""
        if not self._is_final:
            raise IncompleteError(PENDING)
        return self._resync(pos, "", cut=True)

    def _resync(self, pos: int, reason: str, cut: bool = False) -> int:
        """Record the bytes from *pos* to the next valid block as a problem; return its offset."""
        self._check_enough(pos)
        stop = self._next_valid(pos + 1)
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
            self._begin_segment(stop - 4)
        return stop

    def _next_valid(self, pos: int) -> int:
        """Return the first offset from *pos* on where valid blocks follow each other, or the end."""
        at = int(np.searchsorted(self._hints, pos))
        last = int(self._hints[at]) - 1 if at < len(self._hints) else self._end
        while True:
            known = self._builder.known
            hit = bddf.resync(self.source.data, pos, self._end, known, CHAIN, last, END_BYTES)
            if hit >= 0:
                return hit
            if at >= len(self._hints):
                return self._end_block_or_end(pos)
            pos, at = int(self._hints[at]), at + 1
            if self._is_chain(pos, 1):
                return pos
            last = int(self._hints[at]) - 1 if at < len(self._hints) else self._end

    def _end_block_or_end(self, pos: int) -> int:
        """Return the offset of the end block if it is after *pos* and 40 bytes before the end; else the end."""
        at = self._end - END_BYTES
        return at if at >= pos and records.read_end_block(self.source, at) is not None else self._end
