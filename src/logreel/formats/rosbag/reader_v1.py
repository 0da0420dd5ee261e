"""Reading of bags of version 1.2: definitions and messages, sometimes an index.

The index is not used: reading all headers takes less time than reading the index, which names the same records and is
missing if the recorder crashed.
"""

from __future__ import annotations

import numpy as np

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.channels import Connection
from logreel.formats.rosbag.found import ChunkMessages
from logreel.formats.rosbag.reader import Reader, Region, after_padding, read_region, wrong_header
from logreel.formats.rosbag.records import BadRecord, Record, read_record
from logreel.formats.rosbag.verify_v1 import Index
from logreel.io.chunks import FILE
from logreel.io.source import Source

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
        self.index, self._declared = Index(), Declared()
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
        found, texts = [], self._texts
        for key, record in self._first.items():
            kind, md5, topic = record.text(b"type"), record.text(b"md5"), record.text(b"topic")
            declared = self._by_topic[topic].fields if topic in self._by_topic else {}
            others = {k: v for k, v in (*declared.items(), *record.fields.items()) if k not in _KNOWN and v}
            header = tuple(
                (k.decode("utf-8", "replace"), v.decode("utf-8", "replace")) for k, v in others.items()
            )
            caller, latching = dict(header).get("callerid", ""), dict(header).get("latching") == "1"
            # Some writers wrote one definition for each type, not for each topic.
            definition = texts.get((kind, md5)) or next(
                (t for (k, m), t in texts.items() if md5 in (m, "*")), ""
            )
            found.append(Connection(key, topic, kind, md5, definition, caller, latching, header))
        return found


def after_header(source: Source, problems: list[Problem], index: Index) -> int:
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
