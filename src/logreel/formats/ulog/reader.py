"""Read the records of a ULog from front to back into a block table, and step over damage.

The reader is incremental: ``feed`` reads what the file has more than before and leaves open what only the rest of the
file can decide; ``finish`` reads the rest. A log that is opened is finished at once, one that is followed never.

The compiled walker collects data records and stops at records that must be parsed before the next one. It returns
every record that it cannot accept to this module, which decides by evidence: reading goes on at the next place where
several consistent records follow each other, and the bytes up to there are reported.
"""

from __future__ import annotations

from collections.abc import Callable

from logreel.errors import DefinitionError, Problem, UnsupportedError
from logreel.formats.ulog import records
from logreel.formats.ulog.clock import BACKWARDS_US
from logreel.formats.ulog.definitions import Definitions, Stamp, parse_format
from logreel.formats.ulog.found import Found, Topic
from logreel.formats.ulog.framing import Framing
from logreel.formats.ulog.records import DATA_HEAD, FILE_HEADER, HEAD, MAGIC, SPEC, BadRecord
from logreel.formats.ulog.time_jumps import first_jump
from logreel.index.block_builder import BAD, CUT, END, PARSE, BlockBuilder
from logreel.index.block_table import Blocks
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.log.growing import ENOUGH, UndecidedError

#: Further segments are kept together in the last one.
MAX_SEGMENTS = 16
#: Number of records that are searched for the first format after the header of a second file.
MAX_BEFORE_FORMATS = 4096


def read(source: Source) -> Found:
    """Read the whole file, again from each place where the times show that another log begins.

    Raises UnsupportedError for unknown incompatible flags.
    """
    splits: list[int] = []
    found = Reader(source).finish()
    while (
        len(splits) < MAX_SEGMENTS and (jump := first_jump(source, found)) is not None and jump not in splits
    ):
        splits.append(jump)
        found = Reader(source, tuple(splits)).finish()
    return found


class Reader:
    """Reads the records of one file from front to back.

    pos     position after the last record that was read
    splits  file positions of records at which another log is known to begin
    """

    def __init__(self, source: Source, splits: tuple[int, ...] = ()) -> None:
        self._splits = splits
        self._is_final = False
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

    def feed(self, source: Source) -> bool:
        """Read the complete records that *source*, which begins with the bytes so far, has after ``pos``.

        Returns False, with ``pos`` before them, if bytes follow that only later ones can explain.
        """
        self.source, self._view = source, source.view
        self._framing.extend(source)
        self._blocks.extend(source.data)
        try:
            self._read()
        except UndecidedError:
            return False
        return True

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
        header, view = self._framing.header, self._view
        size, kind = header(pos)
        while True:
            try:
                self._handlers[kind](pos, bytes(view[pos + HEAD : pos + HEAD + size]))
            except BadRecord as error:
                return self._recover(pos, end, BAD, str(error))
            self.parsed.append(pos)
            self._blocks.last = pos
            pos += HEAD + size
            if pos + HEAD > end:
                return pos
            size, kind = header(pos)
            if not records.is_parsed(size, kind, end - pos - HEAD):
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
        if key[2] is None or key[1] != b"char":
            return
        # A text states its length twice. If the two differ, the next records must confirm the size of the record, and
        # must not confirm the length stated in the key.
        stated, there = int(key[2]), len(payload) - key.end()
        after, chain = pos + HEAD + len(payload), self._framing.chain
        if stated != there and (
            (stated < there and chain(after - there + stated, self.source.size))
            or (after < self.source.size and not chain(after, self.source.size))
        ):
            raise BadRecord(f"{there} bytes of text where {stated} are stated")

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
        found = framing.search(before + 1, pos - 1, end)
        if found >= 0:
            self._drop(before)
            pos = before
        else:
            found = framing.search(pos + 1, end, end)
        stop = found if found >= 0 else end
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
        if found < 0 and why == CUT and not reason:
            framing.report_cut(pos, end)
        else:
            framing.report_lost(pos, stop, reason)
        if found >= 0 and self._goes_back(found, end):
            self._new_segment(found, "the times of its topics go back")
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
            size, kind = self._framing.header(pos)
            channel = self._ids.get(self._framing.message_id(pos))
            if kind == ord("D") and channel is not None and channel not in steps:
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

    def _stamp_at(self, payload: int, stamp: Stamp) -> int:
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
            size, kind = self._framing.header(pos)
            kinds.append(kind)
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
