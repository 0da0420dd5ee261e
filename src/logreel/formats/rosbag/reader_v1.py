"""Reading of bags of version 1.2: definitions and messages, sometimes an index.

The index is not used: reading all headers takes less time than reading the index, which names the same records and is
missing if the recorder crashed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import Finding, Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.definitions import Connection
from logreel.formats.rosbag.found import ChunkMessages
from logreel.formats.rosbag.reader import Reader, Region, after_padding, read_region, wrong_header
from logreel.formats.rosbag.records import BadRecord, Record, read_record
from logreel.io.arrays import I64
from logreel.io.source import FILE, Source

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
