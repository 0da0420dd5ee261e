"""Framing of ULog records: what the compiled walker accepts, and where records begin again after damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.ulog import records
from logreel.formats.ulog.records import DATA_HEAD, HEAD, RECORD, SPEC
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import framed

#: Number of consistent records in a row that are enough evidence to go on reading after damage.
CHAIN = 6
#: With this many doubtful ids or kinds in one place, the place is damage, not a lost subscription.
MAX_DOUBTFUL = 8
#: Lost bytes are searched in blocks of this many bytes.
PIECE = 1 << 20

#: With this many messages inside it, an unknown record is not a record.
MESSAGES = 3


class Framing:
    """Tables of the compiled walker, evidence for record boundaries, and the problems found so far.

    kinds     framed.TAG[256], keys  framed.KEY[k]: see kernels/framed.py
    evidence  framed.TAG[256]: as *kinds*, plus the kinds that may lie between records that prove each other
    """

    def __init__(self, source: Source) -> None:
        self.source, self.data, self.view = source, source.data, source.view
        self.problems: list[Problem] = []
        self.kinds, self.evidence = records.kinds_table(), records.kinds_table()
        self.keys = _undeclared(1)
        self._tolerates_ids = False
        #: Records accepted by their size alone, by kind and first byte: position of the first one, and their number.
        self._odd: dict[tuple[int, int], list[int]] = {}

    def extend(self, source: Source) -> None:
        """Go on with *source*, which begins with the bytes so far."""
        self.source, self.data, self.view = source, source.data, source.view

    def header(self, pos: int) -> tuple[int, int]:
        """Return size and kind of the record at *pos*."""
        size, kind = RECORD.unpack_from(self.view, pos)
        return size, kind

    def message_id(self, pos: int) -> int:
        """Return the message id of the data record at *pos*."""
        return int(self.view[pos + 3]) | int(self.view[pos + 4]) << 8

    def problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        """Add a Problem."""
        self.problems.append(Problem(code, offset, size, lost, text))

    # ------------------------------------------------------------------------------------------------ keys

    def declare(self, number: int, channel: int, least: int, greatest: int) -> None:
        """Assign data records with id *number* to *channel*, if their size is in the given range."""
        self._room(number)
        self.keys[number] = channel, least, greatest, 0

    def forget_ids(self) -> None:
        """Withdraw the declarations of all ids."""
        self.keys["channel"] = framed.UNDECLARED

    def _room(self, number: int) -> None:
        if number >= len(self.keys):
            grown = _undeclared(max(number + 1, 2 * len(self.keys)))
            grown[: len(self.keys)] = self.keys
            self.keys = grown

    # -------------------------------------------------------------------------------------------- evidence

    def chain(self, pos: int, end: int) -> bool:
        """Return whether a chain of consistent records starts at *pos*."""
        return 0 <= pos < end and self._resync(pos, pos, end) == pos

    def search(self, pos: int, last: int, end: int) -> int:
        """Return the first position from *pos* to *last* where a chain of consistent records starts, or -1."""
        while True:
            pos = self._resync(pos, last, end)
            # A record that only its neighbours prove cannot be the first one: any byte is a possible kind.
            if pos < 0 or self.evidence["action"][self.header(pos)[1]] != framed.TOLERATE:
                return pos
            pos += 1

    def _resync(self, pos: int, last: int, end: int) -> int:
        return framed.resync(self.data, pos, end, CHAIN, SPEC, self.evidence, self.keys, last)

    def find(self, what: bytes, pos: int, end: int) -> int:
        """Return the first position of *what* between *pos* and *end*, or -1."""
        # Block by block: a copy of all lost bytes might not fit into memory.
        for lo in range(pos, end, PIECE):
            found = self.source.read(lo, min(PIECE + len(what) - 1, end - lo)).find(what)
            if found >= 0:
                return lo + found
        return -1

    def tolerate(self, pos: int, end: int, has_rows: Callable[[int], bool]) -> int:
        """Return where reading goes on if sound neighbours prove the doubtful record at *pos*; -1 if it is damage.

        Doubtful are messages whose subscription was lost, kinds of a later format version, logged strings with an
        invalid level, and sync records of another size. A message is damaged, not doubtful, if *has_rows* is true for
        its id. Returns *pos* itself if the walker accepts the record and all similar ones from now on.
        """
        if not self._is_doubtful(pos, end, has_rows):
            return -1
        size, first = self.header(pos)
        behind = pos + HEAD + size
        # Keep only the changed rows: copies of the tables would cost more than the records.
        before: list[tuple[int, np.void]] = []
        kinds: dict[int, np.void] = {}
        at = pos
        for _ in range(MAX_DOUBTFUL):
            size, kind = self.header(at)
            if kind == ord("D"):
                number = self.message_id(at)
                self._room(number)
                before.append((number, self.keys[number].copy()))
                self.declare(number, framed.TOLERATED, 0, 0)
            else:
                kinds.setdefault(kind, self.evidence[kind].copy())
                records.allow(self.evidence, kind)
            if at + HEAD + size == end or self.chain(behind, end):
                self._tolerates_ids |= bool(before)
                self._allow_letters(pos, kinds)
                if first == ord("D") or self.kinds["action"][first] == framed.TOLERATE:
                    return pos
                found = self._odd.setdefault((first, self._level(pos, first)), [pos, 0])
                found[1] += 1
                return behind
            at = self._next_refused(at + HEAD + size, end)
            if at < 0 or not self._is_doubtful(at, end, has_rows):
                break
        for number, row in reversed(before):
            self.keys[number] = row
        for kind, row in kinds.items():
            self.evidence[kind] = row
        return -1

    def _allow_letters(self, pos: int, kinds: Iterable[int]) -> None:
        """Let the walker step over unknown kinds that are letters; other bytes are too frequent in damaged data."""
        for kind in kinds:
            if records.is_unknown(kind) and records.is_letter(kind):
                records.allow(self.kinds, kind)
                text = f"records of unknown kind {records.name_of(kind)}: skipped by size"
                self.problem("unknown", pos, 0, False, text)

    def _level(self, pos: int, kind: int) -> int:
        """Return the level byte of a logged string; -1 for other kinds."""
        return int(self.view[pos + HEAD]) if kind in b"LC" else -1

    def _is_doubtful(self, pos: int, end: int, has_rows: Callable[[int], bool]) -> bool:
        size, kind = self.header(pos)
        if kind == ord("D"):
            return size >= 2 and pos + DATA_HEAD <= end and not has_rows(self.message_id(pos))
        # Zeros are no record; a record with id and size of a message is a message whose kind was damaged.
        return (
            self._is_odd(pos, end)
            and (size > 0 or kind > 0)
            and not self._fits(pos, size)
            and not self._holds_messages(pos + 1, pos + HEAD + size)
        )

    def _is_odd(self, pos: int, end: int) -> bool:
        """Return whether a whole record at *pos* has an unknown kind, or a known kind with tolerable content."""
        size, kind = self.header(pos)
        if pos + HEAD + size > end:
            return False
        return records.is_unknown(kind) or records.is_odd(
            kind, size, int(self.view[pos + HEAD]) if size else 0
        )

    def damaged_kind(self, pos: int, end: int) -> int:
        """Return the end of the record at *pos* if it is a message whose kind was damaged, else -1.

        Evidence: its id and its size are those of a declared message, and sound records follow.
        """
        size, _ = self.header(pos)
        behind = pos + HEAD + size
        if not self._is_odd(pos, end) or not self._fits(pos, size):
            return -1
        return behind if behind == end or self.chain(behind, end) else -1

    def _fits(self, pos: int, size: int) -> bool:
        """Return whether id and size of a whole record at *pos* are those of a declared message."""
        number = self.message_id(pos) if size >= 2 else len(self.keys)
        if number >= len(self.keys):
            return False
        channel, least, greatest, _ = self.keys[number].item()
        return bool(channel >= 0 and least <= size <= greatest)

    def _holds_messages(self, pos: int, end: int) -> bool:
        """Return whether the bytes from *pos* to *end* contain a chain of records with at least ``MESSAGES`` messages.

        Records with keys have few constraints: long values look like a chain of such records by chance.
        """
        while (pos := self.search(pos, end - 1, end)) >= 0:
            at, messages = pos, 0
            for _ in range(CHAIN):
                if at + DATA_HEAD > end:
                    break
                size, kind = self.header(at)
                messages += kind == ord("D") and self._fits(at, size)
                at += HEAD + size
            if messages >= MESSAGES:
                return True
            pos += 1
        return False

    def _next_refused(self, pos: int, end: int) -> int:
        """Return the first of the next records that is refused for its kind, id or content, or -1."""
        for _ in range(CHAIN):
            if pos + DATA_HEAD > end:
                return -1
            size, kind = self.header(pos)
            number = self.message_id(pos)
            undeclared = number >= len(self.keys) or self.keys["channel"][number] == framed.UNDECLARED
            action, least, greatest, low, high = self.evidence[kind].item()
            if (
                action == 0
                or (kind == ord("D") and undeclared)
                or not least <= size <= greatest
                or (kind != ord("D") and size and not low <= int(self.view[pos + HEAD]) <= high)
            ):
                return pos
            pos += HEAD + size
        return -1

    # ---------------------------------------------------------------------------------------------- losses

    def report_undeclared(self, notes: I64) -> I64:
        """Report data records with undeclared ids among *notes*; return the other notes."""
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

    def report_odd(self) -> None:
        """Report the records that were accepted by their size alone."""
        for (kind, level), (at, count) in self._odd.items():
            what, name = f"{count} record{'s' * (count > 1)}", records.name_of(kind)
            if level >= 0:
                text = f"{what} of text with level 0x{level:02x}, which is none of '0' to '7': kept"
                self.problem("level", at, 0, False, text)
            elif kind == ord("S"):
                self.problem(
                    "sync", at, 0, False, f"{what} of kind 'S' that are not 8 bytes: skipped by size"
                )
            else:
                self.problem("unknown", at, 0, False, f"{what} of unknown kind {name}: skipped by size")

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
        # Zeros often follow a record header that was written before them.
        if not self.data[pos + HEAD if size > HEAD else pos : stop].any():
            self.problem("zeros", pos, size, True, f"{size} bytes of zeros where records should be")
        else:
            why = f" ({reason})" if reason else ""
            self.problem("garbage", pos, size, True, f"{size} bytes that are no sound record{why}")


def _undeclared(count: int) -> NDArray[np.void]:
    """Return framed.KEY[count] of keys that are not declared."""
    keys = np.zeros(count, framed.KEY)
    keys["channel"] = framed.UNDECLARED
    return keys
