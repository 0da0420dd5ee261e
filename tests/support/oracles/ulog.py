"""Plain ULog reader, the reference for the fast reader: one message, one field, one byte at a time.

It shares no code with the package. Where the format leaves a choice, a comment on the line states the choice.
Damage: a message that cannot be accepted is skipped byte by byte up to the first offset where a run of
acceptable ones begins (`_Reader.locks`).
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass, field
from typing import Any

from support.builders.ulog_records import Formats, Topic, parse_format, parse_key, value_of

MAGIC = b"ULog\x01\x12\x35"
SYNC = bytes.fromhex("2f731320250cbb12")
#: Message letters, and the least or exact payload bytes of each.
LETTERS = "BFIMPQARDLCSO"
SMALLEST = dict(zip(LETTERS, (40, 5, 1, 2, 1, 2, 4, 2, 2, 9, 11, 8, 2), strict=True))
EXACT = {"R", "S", "O"}
CHAIN = 6
BACK_US = 2_000_000


@dataclass
class Record:
    """A row: file offset of the bytes after the msg_id, these bytes, full time in µs; *values*: path -> value."""

    offset: int
    payload: bytes
    time: int
    topic: Topic

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        return self.topic.decode(self.payload)


@dataclass
class Segment:
    """Rows of one log in the file: topic -> records in file order; *offset*: begin of the segment."""

    offset: int
    records: dict[str, list[Record]] = field(default_factory=dict)

    @property
    def topics(self) -> dict[str, list[dict[str, Any]]]:
        return {topic: [r.values for r in rows] for topic, rows in self.records.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows of each topic."""
        return {topic: len(rows) for topic, rows in self.records.items()}


@dataclass
class OracleLog:
    """Content of a log.

    infos           name -> value (`ulog_records.value_of`); the last one wins
    info_multiple   name -> entries -> parts; `char` and `uint8_t` parts are bytes
    changes         (time of the newest row before, name, value), as `dropouts` are (time, milliseconds)
    defaults        0: system, 1: airframe
    texts           (level 0 to 7, tag or None, time, text)
    types           message letter -> messages read
    lost            half-open byte ranges, in file order
    """

    version: int = 0
    start_us: int = 0
    compat: int = 0
    incompat: int = 0
    appended: list[int] = field(default_factory=list)
    infos: dict[str, Any] = field(default_factory=dict)
    info_multiple: dict[str, list[list[Any]]] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    changes: list[tuple[int, str, Any]] = field(default_factory=list)
    defaults: dict[int, dict[str, Any]] = field(default_factory=lambda: {0: {}, 1: {}})
    formats: dict[str, str] = field(default_factory=dict)
    subscriptions: list[tuple[int, str, int]] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    texts: list[tuple[int, int | None, int, str]] = field(default_factory=list)
    dropouts: list[tuple[int, int]] = field(default_factory=list)
    types: dict[str, int] = field(default_factory=dict)
    lost: list[tuple[int, int]] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of the first segment: the log itself, without other logs after it."""
        return self.segments[0].topics

    @property
    def counts(self) -> dict[str, int]:
        """The same of rows alone."""
        return self.segments[0].counts


def read(data: bytes, *, orphans: bool = False) -> OracleLog:
    """Read a ULog.

    *orphans*: step over records of an id that is not subscribed, and over subscriptions without a format, as
    over messages of unknown types. Otherwise each of them is damage, so that one bad bit in the format or
    subscription of a frequent topic breaks every run of six and costs the other topics too.

    Raises ValueError for other files, and for unknown incompatible flags.
    """
    if len(data) < 16 or data[:7] != MAGIC:
        raise ValueError("not a ULog")
    return _Reader(data, orphans).run()


@dataclass
class _State:
    """Definitions so far that decide whether the next message is acceptable."""

    formats: Formats
    topics: dict[int, Topic]

    def define(self, letter: str, payload: bytes) -> None:
        if letter == "F":
            parsed = parse_format(payload)
            if parsed:
                self.formats[parsed[0]] = parsed[1]
        elif letter == "A":
            multi_id, msg_id = struct.unpack_from("<BH", payload)
            self.topics[msg_id] = Topic(payload[3:].decode("utf-8", "replace"), multi_id, self.formats)


class _Reader:
    """One pass over the file; `step` reads one message or skips one damaged place."""

    def __init__(self, data: bytes, orphans: bool) -> None:
        self.data, self.orphans = data, orphans
        self.state = _State({}, {})
        self.log = OracleLog(version=data[7], start_us=struct.unpack_from("<Q", data, 8)[0])
        self.log.segments.append(Segment(16))
        self.defining = True
        self.bound, self.parts = len(data), list[int]()
        self.latest = self.now = self.log.start_us  # largest time of a row; of anything that has a full time
        self.last: dict[int, int] = {}  # msg_id -> full time of its last row
        self.released: set[int] = set()
        self.resynced_at = 0
        self.rows_then: dict[str, int] = {}  # topic -> rows it had in this segment at the last resync
        self.unseen: set[str] = set()  # of these, the topics that had no row since

    # ------------------------------------------------------------------ what may be accepted

    def head(self, at: int) -> tuple[int, str]:
        """Return payload size and letter at *at*; 0 and NUL, which is no message, if less than a header is left."""
        if at + 3 > self.bound:
            return 0, "\0"
        return self.data[at] | self.data[at + 1] << 8, chr(self.data[at + 2])

    def sized(self, size: int, letter: str) -> bool:
        """Return whether *letter* is known and *size* is in its limits."""
        least = SMALLEST.get(letter)
        return least is not None and (size == least if letter in EXACT else size >= least)

    def accepts(self, at: int, state: _State, head: tuple[int, str]) -> bool:
        size, letter = head
        if not self.sized(size, letter) or at + 3 + size > self.bound:
            return False
        payload = self.data[at + 3 : at + 3 + size]
        if letter == "D":
            topic = state.topics.get(struct.unpack_from("<H", payload)[0])
            return topic is not None and topic.smallest <= size - 2 <= topic.size
        if letter == "S":
            return payload == SYNC
        if letter in "LC":
            return payload[0] in b"01234567"
        if letter in "IMPQ":
            key = parse_key(payload, 1 if letter in "MQ" else 0)
            return key is not None and (letter in "IM" or key[:2] in (("int32_t", False), ("float", False)))
        if letter == "A":
            try:
                Topic(payload[3:].decode("utf-8", "replace"), payload[0], state.formats)
            except LookupError:  # no such format, or one that cannot be worked out, or has no time
                return False
        return True

    def skippable(self, at: int, state: _State) -> bool:
        """Return whether a complete message of an unknown type (a letter) is at *at*, or an orphan."""
        size, letter = self.head(at)
        if at + 3 + size > self.bound:
            return False
        if self.orphans and letter in "AD" and self.sized(size, letter):
            return letter == "A" or struct.unpack_from("<H", self.data, at + 3)[0] not in state.topics
        return letter not in SMALLEST and letter.isascii() and letter.isalpha()

    def cut(self, at: int, state: _State) -> bool:
        """Return whether a plausible header is at *at*, whose message ends after the end of the part."""
        size, letter = self.head(at)
        if not self.sized(size, letter) or at + 3 + size <= self.bound:
            return False
        if letter == "D" and at + 5 <= self.bound:
            topic = state.topics.get(struct.unpack_from("<H", self.data, at + 3)[0])
            return topic is not None and topic.smallest <= size - 2 <= topic.size
        return True

    def locks(self, at: int, first: bool = True) -> bool:
        """Return whether a run begins at *at*: six acceptable messages, fewer up to the end of the part, or two
        and then one that is cut by it. Messages of unknown types may be between them, but do not count;
        *first*: the first message must not be one of them.
        """
        if first and not self.accepts(at, self.state, self.head(at)):
            # Nearly all offsets in damage: no state is copied for them.
            return False
        state = _State(dict(self.state.formats), dict(self.state.topics))
        count = 0
        while count < CHAIN:
            if at == self.bound:
                return count > 0 or not first
            size, letter = self.head(at)
            if self.accepts(at, state, (size, letter)):
                state.define(letter, self.data[at + 3 : at + 3 + size])
                count += 1
            elif not self.skippable(at, state) or (first and not count):
                return count >= 2 and self.cut(at, state)
            at += 3 + size
        return True

    # ------------------------------------------------------------------ reading

    def run(self) -> OracleLog:
        at = 16
        while True:
            at = self.step(at) if at < self.bound else self.bound
            if at >= self.bound:
                if self.bound == len(self.data):
                    return self.log
                at, self.bound = self.bound, self.parts.pop(0) if self.parts else len(self.data)

    def step(self, at: int) -> int:
        """Read the message at *at*, or skip damage; return the offset of the next message."""
        size, letter = head = self.head(at)
        if self.accepts(at, self.state, head):
            if letter in "ALC" and self.defining:
                self.end_definitions(at)
            if at + 3 + size <= self.bound:
                self.log.types[letter] = self.log.types.get(letter, 0) + 1
                self.apply(letter, at, self.data[at + 3 : at + 3 + size])
                return at + 3 + size
        elif self.skippable(at, self.state) and self.locks(at + 3 + size, first=False):
            if letter in SMALLEST:
                self.log.lost.append((at, at + 3 + size))
            self.log.types[letter] = self.log.types.get(letter, 0) + 1
            return at + 3 + size
        to = at + 1
        while to < self.bound and not self.locks(to):
            to += 1
        self.log.lost.append((at, to))
        self.resynced_at = to
        self.rows_then = {topic: len(rows) for topic, rows in self.log.segments[-1].records.items()}
        self.unseen = set(self.rows_then)
        return to

    def end_definitions(self, at: int) -> None:
        """Set the appended parts: those with offsets after the definitions."""
        self.defining = False
        previous = at
        for offset in self.log.appended if self.log.incompat & 1 else ():
            if previous < offset <= len(self.data):
                self.parts.append(offset)
                previous = offset
        self.bound = self.parts.pop(0) if self.parts else self.bound

    def apply(self, letter: str, at: int, payload: bytes) -> None:
        log = self.log
        if letter == "B" and at == 16:  # elsewhere it would be too late to act on it
            log.compat, log.incompat, *offsets = struct.unpack_from("<QQ3Q", payload)
            log.appended = [offset for offset in offsets if offset]
            if log.incompat & ~1:
                raise ValueError(f"unknown incompatible flags {log.incompat:#x}")
        elif letter == "F":
            self.state.define(letter, payload)
            parsed = parse_format(payload)
            if parsed:
                log.formats[parsed[0]] = payload.decode("utf-8", "replace").partition(":")[2]
        elif letter in "IMPQ":
            self.keyed(letter, payload)
        elif letter == "A":
            self.subscribe(payload, at)
        elif letter == "R":
            self.released.add(struct.unpack("<H", payload)[0])
        elif letter == "D":
            self.row(payload, at)
        elif letter in "LC":
            tag = struct.unpack_from("<H", payload, 1)[0] if letter == "C" else None
            skip = 3 if letter == "C" else 1
            (time,) = struct.unpack_from("<Q", payload, skip)
            self.now = max(self.now, time)
            log.texts.append((payload[0] - 0x30, tag, time, payload[skip + 8 :].decode("utf-8", "replace")))
        elif letter == "O":
            (ms,) = struct.unpack("<H", payload)
            self.now += 1000 * ms
            log.dropouts.append((self.latest, ms))

    def keyed(self, letter: str, payload: bytes) -> None:
        log = self.log
        key = parse_key(payload, 1 if letter in "MQ" else 0)
        assert key is not None
        name, value = key[2], value_of(*key)
        if letter == "I":
            log.infos[name] = value
        elif letter == "M":
            # Bytes, not text: the writer cuts long texts without regard to letters of several bytes.
            value = key[3] if key[0] == "char" else value
            entries = log.info_multiple.setdefault(name, [])
            if payload[0] and entries:
                entries[-1].append(value)
            else:
                entries.append([value])
        elif letter == "Q":
            for bit in (0, 1):
                if payload[0] >> bit & 1:
                    log.defaults[bit][name] = value
        elif self.defining:
            log.parameters[name] = value
        else:
            log.changes.append((self.latest, name, value))

    def subscribe(self, payload: bytes, at: int) -> None:
        multi_id, msg_id = struct.unpack_from("<BH", payload)
        old = self.state.topics.get(msg_id)
        name = payload[3:].decode("utf-8", "replace")
        live = msg_id not in self.released
        self.released.discard(msg_id)
        if old is not None and (old.name, old.multi_id) == (name, multi_id):
            return
        if old is not None and live:
            self.log.segments.append(Segment(at))
            self.unseen = set()
        self.last.pop(msg_id, None)
        self.state.define("A", payload)
        self.log.subscriptions.append((msg_id, name, multi_id))

    def row(self, payload: bytes, at: int) -> None:
        (msg_id,) = struct.unpack_from("<H", payload)
        topic, content = self.state.topics[msg_id], payload[2:]
        time = self.full_time(msg_id, topic, topic.clock(content))
        self.last[msg_id], self.now, self.latest = time, max(self.now, time), max(self.latest, time)
        segment = self.log.segments[-1]
        if topic.key in self.unseen:
            self.unseen.discard(topic.key)
            if segment.records[topic.key][-1].time - time > BACK_US:
                segment = self.split(segment)
        segment.records.setdefault(topic.key, []).append(Record(at + 5, content, time, topic))

    def split(self, old: Segment) -> Segment:
        """Begin a new segment at the last resync, with the rows read since then."""
        new = Segment(self.resynced_at)
        for topic, rows in list(old.records.items()):
            then = self.rows_then.get(topic, 0)
            if rows[then:]:
                new.records[topic] = rows[then:]
            old.records[topic] = rows[:then]
            if not then:
                del old.records[topic]
        self.log.segments.append(new)
        self.unseen = set()
        return new

    def full_time(self, msg_id: int, topic: Topic, raw: int) -> int:
        """Return a timestamp of any width in us: the first time not before the topic's last one that fits,
        and then as many whole periods as bring it nearest to what the rest of the stream says.
        """
        if topic.bits == 64:
            return raw
        period = (1 << topic.bits) * topic.unit
        last = self.last.get(msg_id, self.log.start_us)
        time = last + (raw * topic.unit - last) % period
        while self.now - time > period // 2:
            time += period
        return time
