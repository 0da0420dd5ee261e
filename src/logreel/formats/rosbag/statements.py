"""Comparison of what the chunks of a bag of version 2.0 say with its summary, for ``check``."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.errors import Finding, Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.channels import Connection
from logreel.formats.rosbag.chunks import Chunk, unpack
from logreel.formats.rosbag.found import FoundFile, add_connection
from logreel.formats.rosbag.reader import Region, read_region
from logreel.formats.rosbag.records import BadRecord, Record, read_record
from logreel.formats.rosbag.summary import ENTRY
from logreel.io.source import Source

#: Bytes of an index entry that C Turtle stated instead of ENTRY, on machines of 32 and of 64 bits.
_CTURTLE = (20, 24)


def chunk_statements(source: Source, bag: FoundFile) -> Iterator[Finding]:
    """Yield Findings of chunks that were not read on opening: damage, other connections, wrong index records."""
    if bag.index is None:
        # All records were read, and what is wrong was reported.
        return
    for number, chunk in enumerate(bag.chunks):
        yield from _content(source, number, chunk, bag)
        yield from _index_records(source, chunk)


def _content(source: Source, number: int, chunk: Chunk, bag: FoundFile) -> Iterator[Finding]:
    """Yield Findings of the records inside of a chunk that are no messages."""
    inside = Source(unpack(source, chunk).data, source.name)
    problems: list[Problem] = []
    found, others = FoundFile(), dict[int, int]()

    def on_record(record: Record, data: Source) -> None:
        if record.op == records.OP_CONNECTION:
            add_connection(data, record, found)
        else:
            others[record.op] = others.get(record.op, 0) + 1

    read_region(Region(inside, number, 0, inside.size, where=chunk.pos), on_record, problems)
    # What is wrong with messages is reported where they are found.
    yield from (Finding("chunk", "warn", one.offset, 0, one.text) for one in problems)
    for op, count in others.items():
        text = f"a chunk holds {count} records of op {op}, which do not belong there"
        yield Finding("chunk", "warn", chunk.pos, 0, text, count=count)
    for key, one in found.connections.items():
        known = bag.connections.get(key)
        if known is None or _facts(known) != _facts(one):
            text = f"a chunk describes connection {key} of {one.topic!r} otherwise than the summary"
            yield Finding("connection", "warn", chunk.pos, 0, text, known.topic if known else None)


def _facts(one: Connection) -> tuple[str, str, str, str]:
    return one.topic, one.type, one.md5, one.definition


def _index_records(source: Source, chunk: Chunk) -> Iterator[Finding]:
    """Yield Findings of the index records after a chunk that state another version or size than they have."""
    at = chunk.data + chunk.stored
    while at < source.size:
        try:
            record = read_record(source, at, source.size)
            if record.op != records.OP_INDEX:
                return
            count, version = record.u32(b"count"), record.u32(b"ver")
        except BadRecord:
            return
        if version != 1:
            text = f"an index record states the version {version}, there is only 1"
            yield Finding("index", "warn", at, 0, text)
        # The sizes that C Turtle stated are a known fault of its recorder.
        if record.size not in [count * one for one in (ENTRY, *_CTURTLE)]:
            text = (
                f"an index record states {record.size} bytes for {count} entries, which take {count * ENTRY}"
            )
            yield Finding("index", "warn", at, 0, text)
        at = record.data + count * ENTRY
