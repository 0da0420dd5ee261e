"""Read bags of versions 0 to 1.2, which have no chunks.

    Version 0    topic, two lines (type and checksum in either order) or none, then records
    Version 1.0  the number of topics, three such lines for each, then records that begin with the topic
    Version 1.1  every record begins with topic, checksum and type
    Version 1.2  definitions and messages, each with a header of fields; sometimes an index

In the first three (2008 and 2009), headers are lines of text, and a record ends with u32 seconds, u32 nanoseconds,
u32 length and that many bytes. The index of version 1.2 is not used: reading all headers takes less time than reading
the index, which names the same records and is missing if the recorder crashed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import Finding, Problem, UnsupportedError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.definitions import Connection
from logreel.formats.rosbag.reader import (
    MAX_SPAN,
    ChunkMessages,
    Reader,
    Region,
    after_padding,
    read_region,
    wrong_header,
)
from logreel.formats.rosbag.records import MAX_LINE, MULTILOG, BadRecord, Record, read_record
from logreel.io.arrays import I64
from logreel.io.source import FILE, Source

_TAIL = struct.Struct("<III")
_MD5 = re.compile(r"[0-9a-f]{32}\Z|\*\Z")
_TYPE = re.compile(r"[A-Za-z]\w*/[A-Za-z]\w*\Z|\*\Z")
_TOPIC = re.compile(r"[!-~][ -~]*\Z")
#: So many consecutive records prove that a file without a magic line is a bag of version 0.
PROOF = 16
#: Types that were moved to another package before the first release.
RENAMED = {"rostools/Time": "roslib/Time", "rostools/Log": "roslib/Log", "rostools/Header": "roslib/Header"}


@dataclass(slots=True)
class FoundText:
    """Messages, connections and problems of a bag of version 0, 1.0 or 1.1.

    topics  version 1.0: key of each topic that was declared
    stated  version 1.0: the number of topics as the file states it, its offset and its bytes; None in other versions
    """

    source: Source
    problems: list[Problem] = field(default_factory=list)
    connections: dict[tuple[str, str, str], Connection] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    stated: tuple[str, int, int] | None = None
    key: list[int] = field(default_factory=list)
    time: list[int] = field(default_factory=list)
    data: list[int] = field(default_factory=list)
    size: list[int] = field(default_factory=list)

    def declare(self, topic: str, type_name: str, md5: str) -> int:
        """Return the key of a topic; a topic met for the first time becomes a connection."""
        identity = topic, RENAMED.get(type_name, type_name), md5
        if identity not in self.connections:
            self.connections[identity] = Connection(len(self.connections), *identity)
        return self.connections[identity].key

    def message(self, key: int, pos: int) -> int:
        """Add the message whose u32 seconds are at *pos*; return the offset of the next record."""
        time, data, size = _message(self.source, pos)
        self.key.append(key)
        self.time.append(time)
        self.data.append(data)
        self.size.append(size)
        return data + size

    def take_parts(self) -> list[ChunkMessages]:
        """Return the messages so far as ``parts`` does, and forget them."""
        parts = self.parts()
        for numbers in (self.key, self.time, self.data, self.size):
            numbers.clear()
        return parts

    def parts(self) -> list[ChunkMessages]:
        """Return the messages as arrays, divided where offsets relative to their base would not fit 32 bits."""
        data, size = np.array(self.data, np.int64), np.array(self.size, np.int64)
        key, time = np.array(self.key, np.int64), np.array(self.time, np.int64)
        parts, lo = [], 0
        while lo < len(data):
            base = int(data[lo])
            at = slice(lo, int(np.searchsorted(data, base + MAX_SPAN)))
            entry = (data[at] - base).astype(np.uint32)
            parts.append(
                ChunkMessages(
                    FILE, base, base, self.source.size, key[at], time[at], entry, size[at].astype(np.uint32)
                )
            )
            lo = at.stop
        return parts


def _line(source: Source, pos: int) -> tuple[str, int]:
    """Return the line of text at *pos* and the offset of the next line; raise BadRecord."""
    part_bytes = source.read(pos, MAX_LINE + 1)
    end = part_bytes.find(b"\n")
    if end < 0:
        raise BadRecord("a line of text is missing", cut=pos + len(part_bytes) >= source.size)
    return part_bytes[:end].decode("latin-1").rstrip(), pos + end + 1


def _message(source: Source, pos: int) -> tuple[int, int, int]:
    """Return time in ns, offset and size of the data of the message whose u32 seconds are at *pos*; raise BadRecord."""
    if pos + 12 > source.size:
        raise BadRecord("the head of a message is cut", cut=True)
    sec, nsec, size = _TAIL.unpack_from(source.view, pos)
    if nsec >= 10**9:
        raise BadRecord(f"{nsec} nanoseconds")
    if size > source.size - pos - 12:
        raise BadRecord(f"a message of {size} bytes where {source.size - pos - 12} are left", cut=True)
    # The first recorders wrote the start minus the time of day, which can be negative.
    seconds = sec - (1 << 32) if sec > 0x7FFFFFFF and sec > 0xF0000000 else sec
    return seconds * 10**9 + nsec, pos + 12, size


def _sorted_lines(first: str, second: str) -> tuple[str, str]:
    """Return type and checksum of two lines in either order; raise BadRecord."""
    for type_name, md5 in ((second, first), (first, second)):
        if _TYPE.match(type_name) and _MD5.match(md5):
            return type_name, md5
    raise BadRecord("no type and checksum")


# ------------------------------------------------------------------------------------------------- version 0


def header_of_version_0(source: Source) -> tuple[str, str, str, int] | None:
    """Return topic, type, checksum and offset of the first record; None if the file is no bag of version 0."""
    try:
        topic, after = _line(source, 0)
    except BadRecord:
        return None
    if not _TOPIC.match(topic):
        return None
    try:
        first, pos = _line(source, after)
        second, pos = _line(source, pos)
        type_name, md5 = _sorted_lines(first, second)
        # A type and a checksum that are not "*" are proof enough.
        if "*" not in (type_name, md5) or _is_followed_by_messages(source, pos):
            return topic, type_name, md5, pos
    except BadRecord:
        pass
    # The very first recorders wrote the topic alone.
    is_bag = after < source.size and _is_followed_by_messages(source, after)
    return (topic, "*", "*", after) if is_bag else None


def _is_followed_by_messages(source: Source, pos: int) -> bool:
    """Return whether messages follow each other from *pos* on: PROOF of them, or all up to the end of the file."""
    for n in range(PROOF):
        if pos == source.size:
            return n > 0
        try:
            _, data, size = _message(source, pos)
        except BadRecord as error:
            return error.cut and n > 2
        pos = data + size
    return True


def _begin_0(bag: FoundText) -> int:
    head = header_of_version_0(bag.source)
    if head is None:
        bag.problems.append(Problem("header", 0, bag.source.size, True, "this is no bag of version 0"))
        return bag.source.size
    bag.declare(*head[:3])
    return head[3]


def _read_0(bag: FoundText, pos: int) -> int:
    return bag.message(0, pos)


def _end_0(bag: FoundText, pos: int, error: BadRecord) -> int:
    _report_rest(bag, pos, error)
    return bag.source.size


def _report_rest(bag: FoundText, pos: int, error: BadRecord) -> None:
    """Report that no message was found from *pos* to the end of the file."""
    code = "truncated" if error.cut else "garbage"
    size = bag.source.size - pos
    bag.problems.append(
        Problem(code, pos, size, True, f"the last {size} bytes are no whole message: {error}")
    )


# ---------------------------------------------------------------------------------------------- version 1.0


def _begin_1_0(bag: FoundText) -> int:
    _, pos = _line(bag.source, 0) if not bag.source.head.startswith(MULTILOG) else ("", len(MULTILOG))
    # The number of topics is not needed for reading: a name met for the first time declares a topic.
    quantity, after = _line(bag.source, pos)
    bag.stated = quantity, pos, after - pos - 1
    return after


def _read_1_0(bag: FoundText, pos: int) -> int:
    topic, after = _line(bag.source, pos)
    if topic not in bag.topics:
        return _declare_1_0(bag, topic, after)
    return bag.message(bag.topics[topic], after)


def _declare_1_0(bag: FoundText, topic: str, pos: int) -> int:
    """Declare *topic* by the two lines at *pos*; return the offset after them."""
    first, pos = _line(bag.source, pos)
    second, pos = _line(bag.source, pos)
    bag.topics[topic] = bag.declare(topic, *_sorted_lines(first, second))
    return pos


def _skip_damage_1_0(bag: FoundText, pos: int, error: BadRecord) -> int:
    """Report the damage at *pos*; return the offset of the next message of a known topic."""
    names = sorted((re.escape(t.encode("latin-1")) for t in bag.topics), key=len, reverse=True)
    pattern = re.compile(rb"(?:" + rb"|".join(names) + rb")\n") if names else None
    return _skip_damage(bag, pos, pattern, error)


# ---------------------------------------------------------------------------------------------- version 1.1

_HEAD_1_1 = re.compile(rb"([!-~][ -~]{0,255})\n([0-9a-f]{32}|\*)\n([A-Za-z]\w*/[A-Za-z]\w*|\*)[ ]*\n")


def _begin_1_1(bag: FoundText) -> int:
    return _line(bag.source, 0)[1]


def _read_1_1(bag: FoundText, pos: int) -> int:
    part_bytes = bag.source.read(pos, 3 * MAX_LINE + 1)
    m = _HEAD_1_1.match(part_bytes[: 3 * MAX_LINE])
    if m is None:
        raise BadRecord("no topic, checksum and type", cut=_is_cut_head(part_bytes))
    topic, md5, type_name = (text.decode("latin-1").rstrip() for text in m.groups())
    return bag.message(bag.declare(topic, type_name, md5), pos + m.end())


def _skip_damage_1_1(bag: FoundText, pos: int, error: BadRecord) -> int:
    return _skip_damage(bag, pos, _HEAD_1_1, error)


def _is_cut_head(head: bytes) -> bool:
    return len(head) <= 3 * MAX_LINE and head.count(b"\n") < 3


def _is_message(source: Source, pos: int) -> bool:
    """Return whether a whole message is at *pos*."""
    try:
        _message(source, pos)
    except BadRecord:
        return False
    return True


def _skip_damage(bag: FoundText, pos: int, head: re.Pattern[bytes] | None, error: BadRecord) -> int:
    """Report the bytes at *pos* that are no message; return the offset of the next text that fits *head*.

    Without such a text, or without *head*, this is the end of the file.
    """
    source, next_message = bag.source, bag.source.size
    # The search begins with few bytes: the next message is usually near, and there may be thousands of damaged places.
    lo, step = pos + 1, 1 << 12
    while head is not None and lo < source.size and next_message == source.size:
        for m in head.finditer(source.read(lo, step + 3 * MAX_LINE)):
            if m.start() < step and _is_message(source, lo + m.end()):
                next_message = lo + m.start()
                break
        lo += step
        step = min(4 * step, 1 << 20)
    if next_message == source.size:
        _report_rest(bag, pos, error)
    else:
        text = f"{next_message - pos} bytes that are no message ({error})"
        bag.problems.append(Problem("garbage", pos, next_message - pos, True, text))
    return next_message


# ------------------------------------------------------------------------------------------------ all versions


class TextVersion(NamedTuple):
    """How bags of one version are read; *read* and *begin* raise BadRecord.

    begin  returns the offset of the first record
    read   reads the record at an offset; returns the offset of the next one
    skip   reports damage at an offset; returns the offset of the next record
    """

    begin: Callable[[FoundText], int]
    read: Callable[[FoundText, int], int]
    skip: Callable[[FoundText, int, BadRecord], int]


TEXT_VERSIONS = {
    "0": TextVersion(_begin_0, _read_0, _end_0),
    "1.0": TextVersion(_begin_1_0, _read_1_0, _skip_damage_1_0),
    "1.1": TextVersion(_begin_1_1, _read_1_1, _skip_damage_1_1),
}


class TextReader(Reader):
    """Reads a bag of version 0, 1.0 or 1.1."""

    def __init__(self, source: Source, version: str) -> None:
        super().__init__(source)
        self.bag, self._version = FoundText(source), TEXT_VERSIONS[version]
        self.pos, self.problems = 0, self.bag.problems
        #: Whether the header was read.
        self._has_begun = False

    def feed(self, source: Source) -> bool:
        """See ``Reader``. Raises UnsupportedError if the file ends inside its header."""
        self.bag.source = source
        if not self._has_begun:
            try:
                self._begin()
            except BadRecord as error:
                raise UnsupportedError("the file ends inside its header", path=source.name) from error
        return super().feed(source)

    def finish(self) -> None:
        """See ``Reader``."""
        try:
            self._begin()
        except BadRecord as error:
            _report_rest(self.bag, 0, error)
            return
        super().finish()
        _compare_quantity(self.bag)

    def _begin(self) -> None:
        if not self._has_begun:
            self.pos = self._version.begin(self.bag)
            self._has_begun = True

    def _after(self, pos: int) -> int:
        return self._version.read(self.bag, pos)

    def _skip(self, pos: int, error: BadRecord) -> int:
        return self._version.skip(self.bag, pos, error)

    def take_parts(self) -> list[ChunkMessages]:
        """See ``Reader``."""
        return self.bag.take_parts()

    def connections(self) -> Iterable[Connection]:
        """See ``Reader``."""
        return self.bag.connections.values()


def read_text(source: Source, version: str) -> FoundText:
    """Return the content of a bag of version 0, 1.0 or 1.1."""
    reader = TextReader(source, version)
    reader.finish()
    return reader.bag


def _compare_quantity(bag: FoundText) -> None:
    """Report a number of topics that is not that of the topics in the file."""
    if bag.stated is None:
        return
    quantity, pos, size = bag.stated
    if not quantity.isdecimal() or int(quantity) != len(bag.topics):
        text = f"the header states {quantity[:20]!r} topics, the file has {len(bag.topics)}"
        bag.problems.append(Problem("header", pos, size, False, text))


_ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("pos", "<u8")])


@dataclass(slots=True)
class BagIndex:
    """The index of a bag: its offset as stated, and the index records that were found.

    stated       offset of the index according to the file header; 0: never completed; None: there is no file header
    records      one for each topic
    definitions  the first definition record of each topic
    """

    stated: int | None = None
    records: list[Record] = field(default_factory=list)
    definitions: dict[str, Record] = field(default_factory=dict)

    def add_definition(self, record: Record) -> None:
        """Add a definition record; the first one of a topic counts."""
        self.definitions.setdefault(record.text(b"topic"), record)

    def cut(self, source: Source) -> Problem | None:
        """Return the problem of a file that ends with a whole record before its stated index; None otherwise."""
        if self.records or not self.stated or self.stated < source.size:
            return None
        missing = self.stated - source.size
        if not missing and not self.definitions:
            # The index of a bag without topics has no records.
            return None
        more = f", {missing} bytes before it are missing, too" if missing else ""
        text = f"the file ends before the index that its header states at {self.stated}{more}"
        return Problem("truncated", source.size, 0, missing > 0, text)

    def findings(
        self, source: Source, parts: list[ChunkMessages], connections: Sequence[Connection]
    ) -> Iterator[Finding]:
        """Yield Findings: ``definition`` for definitions, ``index`` for header and index that messages contradict."""
        types = {
            connection.topic: {other.type for other in connections if other.topic == connection.topic}
            for connection in connections
        }
        yield from self._wrong_definitions(connections)
        topics = {connection.key: connection.topic for connection in connections}
        if not self.stated and not self.records:
            return
        first = min((record.pos for record in self.records), default=None)
        if self.stated is not None and first is not None and self.stated != first:
            text = f"the header states the index at {self.stated}, it begins at {first}"
            yield _finding(first, text)
        elif first is None and self.stated and self.stated < source.size:
            yield _finding(self.stated, "the header states an index where none is")
        due = _by_topic(parts, topics)
        indexed = set[str]()
        for record in self.records:
            topic = record.text(b"topic")
            indexed.add(topic)
            for text in self._wrong(source, record, topic, *due.get(topic, (_NONE, _NONE))):
                yield _finding(record.pos, text, topic)
            if (type_name := record.text(b"type")) not in types.get(topic, {type_name}):
                yield _finding(record.pos, f"the index states the type {type_name!r}", topic)
            if any(record.fields.get(b"ver", b"")):
                version = int.from_bytes(record.fields[b"ver"], "little")
                yield _finding(record.pos, f"the index states the version {version}, there is only 0", topic)
        for topic in due.keys() - indexed if self.records else ():
            yield _finding(first or 0, "the index leaves out the topic", topic)

    def _wrong_definitions(self, connections: Sequence[Connection]) -> Iterator[Finding]:
        for connection in connections:
            record = self.definitions.get(connection.topic)
            if record is None or "*" in (connection.md5, record.text(b"md5")):
                continue
            said = record.text(b"type"), record.text(b"md5")
            if said != (connection.type, connection.md5):
                text = f"the definition is of {said[0]} with md5 {said[1]}"
                text += f", messages are of {connection.type} with {connection.md5}"
                yield Finding("definition", "warn", record.pos, 0, text, connection.topic)

    def _wrong(self, source: Source, record: Record, topic: str, start: I64, time: I64) -> Iterator[str]:
        count = int.from_bytes(record.fields.get(b"count", b""), "little")
        entries = source.data[record.data : record.data + record.size // 16 * 16].view(_ENTRY)
        if count != len(entries) or record.size % 16:
            yield f"the index states {count} entries, it has {record.size} bytes for {len(entries)}"
        if len(entries) != len(start):
            yield f"the index has {len(entries)} entries for {len(start)} messages"
            return
        times = entries["sec"].astype(np.int64) * 10**9 + entries["nsec"]
        if not np.array_equal(np.sort(times), np.sort(time)):
            yield "the index states other times than the messages have"
        # Readers of the time looked up the definition at the first entry.
        place = entries["pos"].astype(np.int64)
        wrong = ~np.isin(_data_of(source, place), start)
        if len(place) and topic in self.definitions and int(place[0]) == self.definitions[topic].pos:
            wrong[0] = False
        if wrong.any():
            at = int(place[wrong][0])
            yield f"{int(wrong.sum())} of {len(place)} entries of the index lead to no message; the first to {at}"


_NONE = np.zeros(0, np.int64)


def _finding(offset: int, text: str, topic: str | None = None) -> Finding:
    return Finding("index", "warn", offset, 0, text, topic)


def _by_topic(parts: list[ChunkMessages], topics: Mapping[int, str]) -> dict[str, tuple[I64, I64]]:
    """By topic, int64[n] each: where the data of its messages begins, and their times in ns."""
    by_topic: dict[str, tuple[I64, I64]] = {}
    if not parts:
        return by_topic
    key = np.concatenate([part.key for part in parts])
    start = np.concatenate([part.entry.astype(np.int64) + part.base for part in parts])
    time = np.concatenate([part.time for part in parts])
    for number in np.unique(key).tolist():
        of_topic, topic = key == number, topics.get(number, "")
        before = by_topic.get(topic, (_NONE, _NONE))
        by_topic[topic] = np.append(before[0], start[of_topic]), np.append(before[1], time[of_topic])
    return by_topic


def _data_of(source: Source, place: I64) -> I64:
    """int64[n]: where the data of the record at each place begins; -1 for no place in the file."""
    inside = (place >= 0) & (place <= source.size - 4)
    at = np.where(inside, place, 0)[:, None] + np.arange(4)
    size = source.data[at].astype(np.int64) @ (1 << np.arange(0, 32, 8)) if source.size >= 4 else at[:, 0]
    return np.where(inside, place + 8 + size, -1)


#: Offset of the first record, after the version line.
FIRST_RECORD = 16
#: Fields of definition and message records that are not part of the publisher's header.
_KNOWN = {b"op", b"topic", b"type", b"md5", b"md5sum", b"def", b"sec", b"nsec"}


class ReaderV1(Reader):
    """Reads a bag of version 1.2."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.problems: list[Problem] = []
        self.parts: list[ChunkMessages] = []
        self.index, self._declared = BagIndex(), Declared()
        self.pos = after_header(source, self.problems, self.index)

    def finish(self) -> None:
        """See ``Reader``."""
        super().finish()
        missing = self.index.cut(self._source)
        self.problems += [missing] if missing is not None else []

    def _after(self, pos: int) -> int:
        end = self._source.size
        region = Region(self._source, FILE, pos, end, grows=not self._is_final)
        parts, stop = read_region(region, self._on_record, self.problems)
        self._declared.add_messages(self._source, parts)
        self.parts += parts
        if stop == pos:
            record = read_record(self._source, stop, end)
            raise BadRecord("it does not fit", record.end > end)
        return stop

    def _on_record(self, record: Record, inside: Source) -> None:
        if record.op == records.OP_INDEX:
            self.index.records.append(record)
        if record.op == records.OP_DEFINITION:
            self.index.add_definition(record)
            self._declared.add_definition(record)

    def take_parts(self) -> list[ChunkMessages]:
        """See ``Reader``."""
        parts, self.parts = self.parts, []
        return parts

    def connections(self) -> list[Connection]:
        """See ``Reader``."""
        return self._declared.connections()


def read(source: Source) -> ReaderV1:
    """Return the reader of a bag of version 1.2 when it has read all."""
    reader = ReaderV1(source)
    reader.finish()
    return reader


class Declared:
    """The definitions and first messages of a bag, from which its connections follow."""

    def __init__(self) -> None:
        self._by_topic: dict[str, Record] = {}
        self._texts: dict[tuple[str, str], str] = {}
        #: Record of the first message of each key.
        self._first: dict[int, Record] = {}

    def add_definition(self, record: Record) -> None:
        """Add a definition record; the first one of a topic counts."""
        self._by_topic.setdefault(record.text(b"topic"), record)
        definition = record.text(b"def")
        if definition:
            self._texts.setdefault((record.text(b"type"), record.text(b"md5")), definition)

    def add_messages(self, source: Source, parts: list[ChunkMessages]) -> None:
        """Add the messages of parts, which follow those so far."""
        for part in parts:
            keys, first = np.unique(part.key, return_index=True)
            for key, i in sorted(zip(keys.tolist(), first.tolist(), strict=True), key=lambda x: x[1]):
                if key not in self._first:
                    record = _record_before(source, part.base + int(part.entry[i]))
                    if record is not None:
                        self._first[key] = record

    def connections(self) -> list[Connection]:
        """Return the connection of each key, in the order of their first messages."""
        connections, texts = [], self._texts
        for key, record in self._first.items():
            type_name, md5, topic = record.text(b"type"), record.text(b"md5"), record.text(b"topic")
            declared = self._by_topic[topic].fields if topic in self._by_topic else {}
            others = {k: v for k, v in (*declared.items(), *record.fields.items()) if k not in _KNOWN and v}
            header = tuple(
                (k.decode("utf-8", "replace"), v.decode("utf-8", "replace")) for k, v in others.items()
            )
            caller, latching = dict(header).get("callerid", ""), dict(header).get("latching") == "1"
            # Some writers wrote one definition for each type, not for each topic.
            definition = texts.get((type_name, md5)) or next(
                (t for (k, m), t in texts.items() if md5 in (m, "*")), ""
            )
            connections.append(Connection(key, topic, type_name, md5, definition, caller, latching, header))
        return connections


def after_header(source: Source, problems: list[Problem], index: BagIndex) -> int:
    """Return the offset of the first record after the file header, which only indexed bags have."""
    try:
        head = read_record(source, FIRST_RECORD, source.size)
    except BadRecord:
        return FIRST_RECORD
    if b"index_pos" in head.fields:
        index.stated = int.from_bytes(head.fields[b"index_pos"], "little")
        problems += wrong_header(head)
        return after_padding(source, head, problems)
    return after_padding(source, head, problems) if head.op == records.OP_FILE else FIRST_RECORD


def _record_before(source: Source, data: int) -> Record | None:
    """Return the record whose data begins at *data*, None if it cannot be found."""
    for at in range(data - 9, max(FIRST_RECORD - 1, data - 4096), -1):
        if int.from_bytes(source.read(at, 4), "little") == data - 8 - at:
            try:
                record = read_record(source, at, source.size)
            except BadRecord:
                continue
            if record.data == data:
                return record
    return None
