"""Bags of version 1.2: definitions and messages one after another, sometimes an index that is not needed.

Walking the headers costs less than reading the index would, which names the same records and is missing in every
bag of a crashed recorder; so it is not used.
"""

from __future__ import annotations

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.connections import Connection
from logreel.formats.rosbag.found import Found
from logreel.formats.rosbag.reader import Stretch, after_padding, read_stretch
from logreel.formats.rosbag.records import BadRecord, Record, read_record
from logreel.formats.rosbag.v1_index import Index
from logreel.io.chunks import FILE
from logreel.io.source import Source

#: Version line of 16 bytes.
FIRST_RECORD = 16


#: Fields of records whose meaning is known; others are what a writer said besides.
_KNOWN = {b"op", b"topic", b"type", b"md5", b"md5sum", b"def", b"sec", b"nsec"}


def read(source: Source) -> tuple[list[Found], list[Connection], list[Problem], Index]:
    """The messages, the connections, the problems and the index of a bag of version 1.2."""
    problems: list[Problem] = []
    index = Index()
    by_topic: dict[str, Record] = {}
    texts: dict[tuple[str, str], str] = {}

    def on_record(record: Record, inside: Source) -> None:
        if record.op == records.OP_INDEX:
            index.records.append(record)
        if record.op == records.OP_DEFINITION:
            index.definitions.setdefault(record.text(b"topic"), record.pos)
            by_topic.setdefault(record.text(b"topic"), record)
            definition = record.text(b"def")
            if definition:
                texts.setdefault((record.text(b"type"), record.text(b"md5")), definition)

    stretch = Stretch(source, FILE, _after_header(source, problems, index), source.size)
    parts, _ = read_stretch(stretch, on_record, problems)
    connections = []
    for key, record in _first_of_each(source, parts).items():
        kind, md5, topic = record.text(b"type"), record.text(b"md5"), record.text(b"topic")
        declared = by_topic[topic].fields if topic in by_topic else {}
        said = {k: v for k, v in (*declared.items(), *record.fields.items()) if k not in _KNOWN and v}
        header = tuple((k.decode("utf-8", "replace"), v.decode("utf-8", "replace")) for k, v in said.items())
        caller, latching = dict(header).get("callerid", ""), dict(header).get("latching") == "1"
        # A topic without a definition of its own shares that of its type: some writers defined each type once.
        definition = texts.get((kind, md5)) or next((t for (k, m), t in texts.items() if md5 in (m, "*")), "")
        connections.append(Connection(key, topic, kind, md5, definition, caller, latching, header))
    missing = index.cut(source)
    problems += [missing] if missing is not None else []
    return parts, connections, problems, index


def _after_header(source: Source, problems: list[Problem], index: Index) -> int:
    """Where the records begin, after the file header of indexed bags."""
    try:
        head = read_record(source, FIRST_RECORD, source.size)
    except BadRecord:
        return FIRST_RECORD
    if head.op == records.OP_FILE and b"index_pos" in head.fields:
        index.stated = int.from_bytes(head.fields[b"index_pos"], "little")
    return after_padding(source, head, problems) if head.op == records.OP_FILE else FIRST_RECORD


def _first_of_each(source: Source, parts: list[Found]) -> dict[int, Record]:
    """The record of the first message of each key."""
    import numpy as np

    found: dict[int, Record] = {}
    for part in parts:
        keys, first = np.unique(part.key, return_index=True)
        for key, i in sorted(zip(keys.tolist(), first.tolist(), strict=True), key=lambda x: x[1]):
            if key not in found:
                record = _record_before(source, part.base + int(part.entry[i]))
                if record is not None:
                    found[key] = record
    return found


def _record_before(source: Source, data: int) -> Record | None:
    """The record whose data begins at *data*."""
    for at in range(data - 9, max(FIRST_RECORD - 1, data - 4096), -1):
        if int.from_bytes(source.read(at, 4), "little") == data - 8 - at:
            try:
                record = read_record(source, at, source.size)
            except BadRecord:
                continue
            if record.data == data:
                return record
    return None
