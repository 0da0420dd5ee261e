"""Read the records of a ULog from front to back into a block table, and step over damage.

The reader is incremental: ``feed`` reads what the file has more than before and leaves open what only the rest of the
file can decide; ``finish`` reads the rest. A log that is opened is finished at once, one that is followed never.

The compiled walker collects data records and stops at records that must be parsed before the next one. It returns
every record that it cannot accept to this module, which decides by evidence: reading goes on at the next place where
several consistent records follow each other, and the bytes up to there are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import DefinitionError, Problem, UnsupportedError
from logreel.formats.ulog import records
from logreel.formats.ulog.clock import BACKWARDS_US, Found, Topic, first_jump
from logreel.formats.ulog.definitions import Definitions, TimestampField, parse_format
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD, MAGIC, RECORD, SPEC, BadRecord
from logreel.index.block_table import BAD, CUT, END, PARSE, BlockBuilder, Blocks
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import framed
from logreel.log.scan import ENOUGH, IncrementalReader, UndecidedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        size, letter = RECORD.unpack_from(self.view, pos)
        return size, letter

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
            hit = self.source.read(lo, min(PIECE + len(what) - 1, end - lo)).find(what)
            if hit >= 0:
                return lo + hit
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
            size, letter = self.header(at)
            if letter == ord("D"):
                number = self.message_id(at)
                self._room(number)
                before.append((number, self.keys[number].copy()))
                self.declare(number, framed.TOLERATED, 0, 0)
            else:
                kinds.setdefault(letter, self.evidence[letter].copy())
                records.allow(self.evidence, letter)
            if at + HEAD + size == end or self.chain(behind, end):
                self._tolerates_ids |= bool(before)
                self._allow_letters(pos, kinds)
                if first == ord("D") or self.kinds["action"][first] == framed.TOLERATE:
                    return pos
                first_and_count = self._odd.setdefault((first, self._level(pos, first)), [pos, 0])
                first_and_count[1] += 1
                return behind
            at = self._next_refused(at + HEAD + size, end)
            if at < 0 or not self._is_doubtful(at, end, has_rows):
                break
        for number, row in reversed(before):
            self.keys[number] = row
        for letter, row in kinds.items():
            self.evidence[letter] = row
        return -1

    def _allow_letters(self, pos: int, kinds: Iterable[int]) -> None:
        """Let the walker step over unknown kinds that are letters; other bytes are too frequent in damaged data."""
        for letter in kinds:
            if records.is_unknown(letter) and records.is_letter(letter):
                records.allow(self.kinds, letter)
                text = f"records of unknown kind {records.name_of(letter)}: skipped by size"
                self.problem("unknown", pos, 0, False, text)

    def _level(self, pos: int, letter: int) -> int:
        """Return the level byte of a logged string; -1 for other kinds."""
        return int(self.view[pos + HEAD]) if letter in b"LC" else -1

    def _is_doubtful(self, pos: int, end: int, has_rows: Callable[[int], bool]) -> bool:
        size, letter = self.header(pos)
        if letter == ord("D"):
            return size >= 2 and pos + DATA_HEAD <= end and not has_rows(self.message_id(pos))
        # Zeros are no record; a record with id and size of a message is a message whose kind was damaged.
        return (
            self._is_odd(pos, end)
            and (size > 0 or letter > 0)
            and not self._fits(pos, size)
            and not self._holds_messages(pos + 1, pos + HEAD + size)
        )

    def _is_odd(self, pos: int, end: int) -> bool:
        """Return whether a whole record at *pos* has an unknown kind, or a known kind with tolerable content."""
        size, letter = self.header(pos)
        if pos + HEAD + size > end:
            return False
        return records.is_unknown(letter) or records.is_odd(
            letter, size, int(self.view[pos + HEAD]) if size else 0
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
                size, letter = self.header(at)
                messages += letter == ord("D") and self._fits(at, size)
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
            size, letter = self.header(pos)
            number = self.message_id(pos)
            undeclared = number >= len(self.keys) or self.keys["channel"][number] == framed.UNDECLARED
            action, least, greatest, low, high = self.evidence[letter].item()
            if (
                action == 0
                or (letter == ord("D") and undeclared)
                or not least <= size <= greatest
                or (letter != ord("D") and size and not low <= int(self.view[pos + HEAD]) <= high)
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
        for (letter, level), (at, count) in self._odd.items():
            what, name = f"{count} record{'s' * (count > 1)}", records.name_of(letter)
            if level >= 0:
                text = f"{what} of text with level 0x{level:02x}, which is none of '0' to '7': kept"
                self.problem("level", at, 0, False, text)
            elif letter == ord("S"):
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
            size, letter = self.header(pos)
            text = f"{where} inside a record: {chr(letter)!r} needs {HEAD + size} bytes, {left} are there"
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


#: Further segments are kept together in the last one.
MAX_SEGMENTS = 16
#: Number of records that are searched for the first format after the header of a second file.
MAX_BEFORE_FORMATS = 4096


def read(source: Source) -> Found:
    """Read the whole file, again from each place where the times show that another log begins.

    Raises UnsupportedError for unknown incompatible flags.
    """
    splits: list[int] = []
    content = Reader(source).finish()
    while (
        len(splits) < MAX_SEGMENTS
        and (jump := first_jump(source, content)) is not None
        and jump not in splits
    ):
        splits.append(jump)
        content = Reader(source, tuple(splits)).finish()
    return content


class Reader(IncrementalReader):
    """Reads the records of one file from front to back.

    pos     position after the last record that was read
    splits  file positions of records at which another log is known to begin
    """

    def __init__(self, source: Source, splits: tuple[int, ...] = ()) -> None:
        self._splits = splits
        self.source = source
        self.topics: list[Topic] = []
        self.parsed: list[int] = []
        self.segments = [0]
        self.segment_us = [int.from_bytes(source.read(8, 8), "little")]
        self.own_definitions = [True]
        self._has_too_many = False
        self._framing = Framing(source)
        self._view = source.view
        self._problem = self._framing.problem
        self._definitions = Definitions()
        self._ids: dict[int, int] = {}
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._blocks = BlockBuilder(source.data, SPEC, (DATA_HEAD, HEAD))
        self._part_start = 0
        self._handlers: dict[int, Callable[[int, bytes], None]] = {
            ord("A"): self._subscription,
            ord("F"): self._format,
            ord("B"): self._late_flags,
            ord("I"): lambda at, p: self._key(at, p, 0),
            ord("P"): lambda at, p: self._key(at, p, 0, True),
            ord("M"): lambda at, p: self._key(at, p, 1),
            ord("Q"): lambda at, p: self._key(at, p, 1, True),
        }
        self._begin, self._appended = self._flags()
        self.pos = self._begin

    def _extend(self, source: Source) -> None:
        self.source, self._view = source, source.view
        self._framing.extend(source)
        self._blocks.extend(source.data)

    def finish(self) -> Found:
        """Read the rest as the end of the file, and return everything that was found."""
        self.source.map_ahead()
        self._is_final = True
        self._read()
        self._framing.report_odd()
        blocks, notes = self._blocks.finish(len(self.topics))
        return self._found(blocks, self._framing.report_undeclared(notes), self._framing.problems)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        framing = self._framing
        known = len(framing.problems)
        blocks, notes, _ = self._blocks.snapshot(len(self.topics))
        if self.pos < self.source.size:
            framing.report_cut(self.pos, self.source.size)
        framing.report_odd()
        notes = framing.report_undeclared(notes)
        problems = list(framing.problems)
        del framing.problems[known:]
        return self._found(blocks, notes, problems)

    def _found(self, blocks: Blocks, notes: I64, problems: list[Problem]) -> Found:
        return Found(
            version=int(self._view[7]),
            begin=self._begin,
            topics=list(self.topics),
            blocks=blocks,
            parsed=list(self.parsed),
            notes=notes,
            segments=list(self.segments),
            segment_us=list(self.segment_us),
            own_definitions=list(self.own_definitions),
            appended=list(self._appended),
            problems=problems,
            is_growing=not self._is_final,
        )

    def _read(self) -> None:
        """Read the parts of the file one after another, from ``pos`` on."""
        for end in sorted({*self._appended, *self._splits, self.source.size}):
            if end <= self.pos:
                continue
            if self.pos in (self._begin, *self._appended, *self._splits):
                self._part_start = self.pos
            self._part(end)
            if end in self._splits:
                self._new_segment(end, "the times of its topics go back")

    # ------------------------------------------------------------------------------------- flags and parts

    def _flags(self) -> tuple[int, list[int]]:
        """Return where the records begin, and the valid offsets of appended parts."""
        head = self.source.read(FILE_HEADER, HEAD + 40)
        size = int.from_bytes(head[:2], "little")
        after = FILE_HEADER + HEAD + size
        if (
            len(head) < HEAD + 40
            or head[2:3] != b"B"
            or size < 40
            or (size > 40 and not self._leads_on(after))
        ):
            return FILE_HEADER, []
        _, incompatible, offsets = records.parse_flags(head[HEAD:])
        if incompatible[0] & ~1 or any(incompatible[1:]):
            raise UnsupportedError(
                f"the log requires a feature that is not known (incompatible flags {incompatible.hex(' ')})",
                path=self.source.name,
                offset=FILE_HEADER + HEAD + 8,
            )
        sound: list[int] = []
        least = self._end_of_definitions(after) if any(offsets) else 0
        for i, offset in enumerate(offsets):
            if offset and max(least, sound[-1] if sound else 0) < offset <= self.source.size:
                sound.append(offset)
            elif offset:
                text = f"appended offset {offset} does not point into the data of this file; not used"
                self._problem("offset", FILE_HEADER + HEAD + 16 + 8 * i, 8, False, text)
        return after, sound

    def _leads_on(self, pos: int) -> bool:
        """Return whether the records from *pos* on are sound, or cut off."""
        size = self.source.size
        return pos <= size and (pos + 2 * HEAD > size or self._framing.chain(pos, size))

    def _end_of_definitions(self, pos: int) -> int:
        while pos + HEAD <= self.source.size and self._view[pos + 2] in b"FIMPQ":
            pos += HEAD + self._framing.header(pos)[0]
        return pos

    def _part(self, end: int) -> None:
        """Read up to *end*; no record may reach over it. A record that the file cuts stays unread until ``finish``."""
        while True:
            why, self.pos = self._blocks.walk(self.pos, end, self._framing.kinds, self._framing.keys)
            if why == END or (why == CUT and not self._is_final and end == self.source.size):
                return
            self.pos = self._parse(self.pos, end) if why == PARSE else self._recover(self.pos, end, why)

    def _parse(self, pos: int, end: int) -> int:
        """Parse the record at *pos* and the next ones of parsed kinds; return the position after them."""
        header, view, first = self._framing.header, self._view, pos
        size, letter = header(pos)
        while True:
            try:
                self._handlers[letter](pos, bytes(view[pos + HEAD : pos + HEAD + size]))
            except BadRecord as error:
                # Later ones are looked at by themselves, as they are where the file had ended before them.
                return pos if pos > first else self._recover(pos, end, BAD, str(error))
            self.parsed.append(pos)
            self._blocks.last = pos
            pos += HEAD + size
            if pos + HEAD > end:
                return pos
            size, letter = header(pos)
            if not records.is_parsed(size, letter, end - pos - HEAD):
                return pos

    # -------------------------------------------------------------------------------- records with meaning

    def _format(self, pos: int, payload: bytes) -> None:
        text = parse_format(payload)
        if not self._definitions.add(text):
            self._problem(
                "definition", pos, 0, False, f"format {text.name} is defined again, differently; ignored"
            )

    def _late_flags(self, pos: int, payload: bytes) -> None:
        if pos == self.segments[-1] + FILE_HEADER:
            # The first record of a second file: its offsets are positions in that file and cannot be followed.
            _, incompatible, offsets = records.parse_flags(payload)
            if any(offsets) or incompatible[0] & ~1 or any(incompatible[1:]):
                text = f"flags of a second log are not followed (incompatible flags {incompatible.hex(' ')})"
                self._problem("flags", pos, 0, False, text)
            return
        self._problem("flags", pos, 0, False, "a flag bits record that is not the first record: ignored")

    def _key(self, pos: int, payload: bytes, at: int, number: bool = False) -> None:
        key = records.match_key(payload, at, number)
        if key.length is None or key.type != "char":
            return
        # A text states its length twice. If the two differ, the next records must confirm the size of the record, and
        # must not confirm the length stated in the key.
        stated, existing = key.length, len(payload) - key.end
        after, chain = pos + HEAD + len(payload), self._framing.chain
        if stated != existing and (
            (stated < existing and chain(after - existing + stated, self.source.size))
            or (after < self.source.size and not chain(after, self.source.size))
        ):
            raise BadRecord(f"{existing} bytes of text where {stated} are stated")

    def _subscription(self, pos: int, payload: bytes) -> None:
        instance, number, name = records.parse_subscription(payload)
        known = self._ids.get(number)
        if known is not None:
            topic = self.topics[known]
            if (topic.name, topic.instance) == (name, instance):
                return
            if not self._blocks.has_rows(known):
                text = f"message id {number} is given to {name} although {topic.name} has it; ignored"
                self._problem("definition", pos, 0, False, text)
                return
            self._new_segment(pos, f"message id {number} changes from {topic.name} to {name}")
        self._assign(number, self._channel(pos, name, instance))

    def _channel(self, pos: int, name: str, instance: int) -> int:
        """Return the channel number of a topic instance in the current segment."""
        key = (name, instance, len(self.segments))
        if key not in self._numbers:
            stamp, raw = None, False
            try:
                stamp = self._definitions.extent(name).stamp
            except DefinitionError as error:
                raw = True
                self._problem(
                    "definition", pos, 0, False, f"{error.text}; messages of {name} are kept as raw bytes"
                )
            self._numbers[key] = len(self.topics)
            self.topics.append(Topic(name, instance, len(self.segments), self._definitions, stamp, raw))
            self._blocks.declare(len(self.topics))
        return self._numbers[key]

    def _assign(self, number: int, channel: int) -> None:
        """Assign data records with id *number* to *channel* from now on."""
        self._ids[number] = channel
        topic = self.topics[channel]
        least, greatest = 0, 65533
        if not topic.raw:
            extent = topic.definitions.extent(topic.name)
            least, greatest = extent.least, extent.size
        self._framing.declare(number, channel, 2 + least, 2 + greatest)

    # ---------------------------------------------------------------------------------------------- damage

    def _recover(self, pos: int, end: int, why: int, reason: str = "") -> int:
        """Decide about the record at *pos*, which cannot be accepted; return where reading goes on, at most *end*."""
        if not self._is_final and end == self.source.size and end - pos < ENOUGH:
            self.pos = pos
            raise UndecidedError
        framing = self._framing
        if why == BAD and not reason and (behind := framing.tolerate(pos, end, self._has_rows)) >= 0:
            if behind > pos:
                self._blocks.note(pos)
            return behind
        if why == BAD and (behind := framing.damaged_kind(pos, end)) >= 0:
            framing.report_lost(pos, behind, f"kind {framing.header(pos)[1]:#04x} where a message was")
            return behind
        # The damage may be in the size of the record before: sound records inside it prove that. Formats and
        # subscriptions are text from start to end, which proves their size.
        before = self._blocks.last if self._blocks.last >= self._part_start else pos
        if before < pos and self._view[before + 2] in b"FAB":
            before = pos
        hit = framing.search(before + 1, pos - 1, end)
        if hit >= 0:
            self._drop(before)
            pos = before
        else:
            hit = framing.search(pos + 1, end, end)
        stop = hit if hit >= 0 else end
        if (
            before < pos
            and not framing.data[before + HEAD : stop].any()
            and self._view[before + 2] == ord("D")
        ):
            # A message of zeros only, followed by zeros, is part of the zero fill.
            self._drop(before)
            pos = before
        glued = framing.find(MAGIC, pos, stop)
        if glued >= 0 and self._is_second_file(glued + FILE_HEADER, end):
            return self._second_file(pos, glued)
        if hit < 0 and why == CUT and not reason:
            framing.report_cut(pos, end)
        else:
            framing.report_lost(pos, stop, reason)
        if hit >= 0 and self._goes_back(hit, end):
            self._new_segment(hit, "the times of its topics go back")
        self._blocks.last = self._part_start - 1
        return stop

    def _drop(self, pos: int) -> None:
        """Drop the last record, at *pos*: the bytes after it proved that its size was wrong."""
        if self.parsed and self.parsed[-1] == pos:
            self.parsed.pop()
        else:
            self._blocks.drop_last()

    def _has_rows(self, number: int) -> bool:
        channel = self._ids.get(number)
        return channel is not None and self._blocks.has_rows(channel)

    def _goes_back(self, pos: int, end: int) -> bool:
        """Return whether the topics from *pos* on continue with times well before those read so far."""
        steps: dict[int, int] = {}
        for _ in range(64):
            if len(steps) == 8 or pos + DATA_HEAD > end:
                break
            size, letter = self._framing.header(pos)
            channel = self._ids.get(self._framing.message_id(pos))
            if letter == ord("D") and channel is not None and channel not in steps:
                # The last message before the damage may be torn and have a wrong time: check the one before it, too.
                before = self._blocks.last_payloads(channel, 2)
                stamp = self.topics[channel].stamp
                if stamp is not None and stamp.width == 8 and before:
                    new = self._stamp_at(pos + DATA_HEAD, stamp)
                    if new:
                        steps[channel] = new - min(self._stamp_at(at, stamp) for at in before)
            pos += HEAD + size
        # More than half of the topics must agree.
        return bool(steps) and sorted(steps.values())[len(steps) // 2] < -BACKWARDS_US

    def _stamp_at(self, payload: int, stamp: TimestampField) -> int:
        return int.from_bytes(self.source.read(payload + stamp.offset, stamp.width), "little")

    # -------------------------------------------------------------------------------------------- segments

    def _new_segment(self, pos: int, reason: str) -> None:
        """Begin a new segment at *pos*: another log, whose messages get separate channels."""
        if len(self.segments) >= MAX_SEGMENTS:
            self._note_too_many(pos, reason)
            return
        self.segments.append(pos)
        self.segment_us.append(self.segment_us[-1])
        self.own_definitions.append(False)
        text = f"another log begins here: {reason}; its channels carry the suffix @{len(self.segments)}"
        self._problem("segment", pos, 0, False, text)
        for number, old in list(self._ids.items()):
            self._assign(number, self._channel(pos, self.topics[old].name, self.topics[old].instance))

    def _note_too_many(self, pos: int, reason: str) -> None:
        """Add a problem, once, for logs that do not become segments of their own."""
        if not self._has_too_many:
            self._has_too_many = True
            text = f"another log begins here: {reason}; as the file has more than {MAX_SEGMENTS}, it and further ones "
            self._problem("segment", pos, 0, False, text + "are kept in the same channels as the one before")

    def _is_second_file(self, pos: int, end: int) -> bool:
        """Return whether definitions begin at *pos*, as after a file header."""
        start, kinds = pos - FILE_HEADER, bytearray()
        # Loggers may write dozens of information records before the first format.
        while pos + HEAD <= end and self._view[pos + 2] in b"BFIMPQ" and len(kinds) < MAX_BEFORE_FORMATS:
            size, letter = self._framing.header(pos)
            kinds.append(letter)
            pos += HEAD + size
            if ord("F") in kinds and len(kinds) >= 3:
                if pos <= end and len(self.segments) >= MAX_SEGMENTS:
                    self._note_too_many(start, "a second file header")
                return pos <= end and len(self.segments) < MAX_SEGMENTS
        return False

    def _second_file(self, pos: int, start: int) -> int:
        """Begin a segment with its own definitions at the file header at *start*; return its end."""
        if start > pos:
            self._framing.report_lost(pos, start, "")
        self._ids.clear()
        self._framing.forget_ids()
        self._new_segment(start, "a second file header")
        self._definitions, self.own_definitions[-1] = Definitions(), True
        self.segment_us[-1] = int.from_bytes(self.source.read(start + 8, 8), "little")
        self._blocks.last = self._part_start - 1
        return start + FILE_HEADER
