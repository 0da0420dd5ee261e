"""Which bytes are records: what the walker accepts, what may pass without being understood, where to go on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from logreel.errors import Problem
from logreel.formats.ulog import records
from logreel.formats.ulog.records import DATA_HEAD, HEAD, RECORD, SPEC
from logreel.kernels import frames
from logreel.model.index import I64
from logreel.model.source import Source

#: So many consistent records in a row are evidence enough to go on reading after damage.
CHAIN = 6
#: At so many doubtful ids or kinds on one spot the spot is damage, not a lost subscription.
MAX_DOUBTFUL = 8
#: Lost bytes are looked through in pieces of this size.
PIECE = 1 << 20

_UNDECLARED, _TOLERATED = -1, -2


class Framing:
    """The tables that the compiled walker judges by, and the problems found so far.

    kinds  int64[256, 5], keys  int64[k, 4]: see kernels/frames.py
    """

    def __init__(self, source: Source) -> None:
        self.source, self.data, self.view = source, source.data, source.view
        self.problems: list[Problem] = []
        self.kinds = records.kinds_table()
        self.keys = np.full((1, 4), _UNDECLARED, np.int64)
        self._tolerates_ids = False

    def header(self, pos: int) -> tuple[int, int]:
        """Size and kind of the record at *pos*."""
        size, kind = RECORD.unpack_from(self.view, pos)
        return size, kind

    def message_id(self, pos: int) -> int:
        """The id of the data record at *pos*."""
        return int(self.view[pos + 3]) | int(self.view[pos + 4]) << 8

    def problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        """Record a Problem."""
        self.problems.append(Problem(code, offset, size, lost, text))

    # ------------------------------------------------------------------------------------------------ keys

    def declare(self, number: int, channel: int, least: int, greatest: int) -> None:
        """Data records with id *number* belong to *channel* and have one of these sizes."""
        self._room(number)
        self.keys[number] = channel, least, greatest, 0

    def forget_ids(self) -> None:
        """No id is declared any more."""
        self.keys[:] = _UNDECLARED

    def _room(self, number: int) -> None:
        if number >= len(self.keys):
            grown = np.full((max(number + 1, 2 * len(self.keys)), 4), _UNDECLARED, np.int64)
            grown[: len(self.keys)] = self.keys
            self.keys = grown

    # -------------------------------------------------------------------------------------------- evidence

    def chain(self, pos: int, end: int) -> bool:
        """True if a convincing chain of records starts at *pos*."""
        return 0 <= pos < end and self.search(pos, pos, end) == pos

    def search(self, pos: int, last: int, end: int) -> int:
        """The first position from *pos* to *last* where a convincing chain of records starts, or -1."""
        return frames.resync(self.data, pos, end, CHAIN, SPEC, self.kinds, self.keys, last)

    def find(self, what: bytes, pos: int, end: int) -> int:
        """The first position from *pos* on where *what* lies, not reaching over *end*, or -1."""
        # Piece by piece: a copy of all that was lost might not fit into memory.
        for lo in range(pos, end, PIECE):
            found = self.source.read(lo, min(PIECE + len(what) - 1, end - lo)).find(what)
            if found >= 0:
                return lo + found
        return -1

    def tolerate(self, pos: int, end: int, has_rows: Callable[[int], bool]) -> bool:
        """Let records pass from now on that are well framed but not understood, if the ones between are sound.

        Such are messages of ids whose subscription was lost, and kinds of a later format version. An id for which
        *has_rows* is true is no such case: there the record is damaged.
        """
        if not self._is_doubtful(pos, end, has_rows):
            return False
        # Only what is changed is kept: copies of the tables would cost more than the records.
        before: list[tuple[int, I64]] = []
        kinds: list[int] = []
        at = pos
        for _ in range(MAX_DOUBTFUL):
            size, kind = self.header(at)
            if kind == ord("D"):
                number = self.message_id(at)
                self._room(number)
                before.append((number, self.keys[number].copy()))
                self.declare(number, _TOLERATED, 0, 0)
            else:
                kinds.append(kind)
                records.allow_unknown(self.kinds, kind)
            if at + HEAD + size == end or self.chain(pos, end):
                self._tolerates_ids |= bool(before)
                for k in kinds:
                    self.problem(
                        "unknown", pos, 0, False, f"records of unknown kind {chr(k)!r}: skipped by size"
                    )
                return True
            at = self._next_refused(at + HEAD + size, end)
            if at < 0 or not self._is_doubtful(at, end, has_rows):
                break
        for number, row in reversed(before):
            self.keys[number] = row
        self.kinds[kinds] = 0
        return False

    def _is_doubtful(self, pos: int, end: int, has_rows: Callable[[int], bool]) -> bool:
        size, kind = self.header(pos)
        if kind == ord("D"):
            return size >= 2 and pos + DATA_HEAD <= end and not has_rows(self.message_id(pos))
        return records.is_unknown(kind)

    def _next_refused(self, pos: int, end: int) -> int:
        """The next record from *pos* on that is refused for its kind or id, or -1 if there is none soon."""
        for _ in range(CHAIN):
            if pos + DATA_HEAD > end:
                return -1
            size, kind = self.header(pos)
            number = self.message_id(pos)
            undeclared = number >= len(self.keys) or self.keys[number, 0] == _UNDECLARED
            if self.kinds[kind, 0] == 0 or (kind == ord("D") and undeclared):
                return pos
            pos += HEAD + size
        return -1

    # ---------------------------------------------------------------------------------------------- losses

    def report_undeclared(self, notes: I64) -> I64:
        """Report the data records among the *notes*, whose ids nothing declares; gives the other notes."""
        if not self._tolerates_ids:
            return notes
        is_data = self.data[notes + 2] == ord("D")
        at = notes[is_data]
        number = self.data[at + 3] | self.data[at + 4].astype(np.int64) << 8
        size = (self.data[at] | self.data[at + 1].astype(np.int64) << 8) + HEAD
        ids, first, counts = np.unique(number, return_index=True, return_counts=True)
        sums = np.bincount(number, size)[ids].astype(np.int64)
        for n, start, count, lost in zip(*(a.tolist() for a in (ids, at[first], counts, sums)), strict=True):
            text = f"{count} messages with id {n}, which no usable subscription declares"
            self.problem("undeclared", start, lost, True, text)
        others: I64 = notes[~is_data]
        return others

    def report_cut(self, pos: int, end: int) -> None:
        """Report that the data ends inside the record at *pos*."""
        left = end - pos
        where = "the file ends" if end == self.source.size else "the part before appended data ends"
        text = f"{where} inside the header of a record"
        if left >= HEAD:
            size, kind = self.header(pos)
            text = f"{where} inside a record: {chr(kind)!r} needs {HEAD + size} bytes, {left} are there"
        self.problem("truncated", pos, left, True, text)

    def report_lost(self, pos: int, stop: int, reason: str) -> None:
        """Report the bytes from *pos* to *stop* as lost."""
        size = stop - pos
        # Zeros often begin behind a header that was written before them.
        if not self.data[pos + HEAD if size > HEAD else pos : stop].any():
            self.problem("zeros", pos, size, True, f"{size} bytes of zeros where records should be")
        else:
            why = f" ({reason})" if reason else ""
            self.problem("garbage", pos, size, True, f"{size} bytes that are no sound record{why}")
