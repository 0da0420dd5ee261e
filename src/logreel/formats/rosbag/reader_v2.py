"""Reading of bags of version 2.0: by the index if it is consistent, else record by record.

The development versions of April 2010 (1.3, and 2.0 with topic_count) are read too: their messages name their topic,
and they have definition records instead of connections. Their index is not used.
"""

from __future__ import annotations

from dataclasses import replace

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk, problem_of, unpack
from logreel.formats.rosbag.encryption import cipher_of, decrypted_record
from logreel.formats.rosbag.found import FoundFile, add_connection, add_definition, chunk_of
from logreel.formats.rosbag.reader import (
    OnRecord,
    Region,
    after_padding,
    read_region,
    refuse_nested,
    skip_damage,
    wrong_header,
)
from logreel.formats.rosbag.records import (
    BadRecord,
    Record,
    read_record,
)
from logreel.formats.rosbag.summary import ENTRY, read_index
from logreel.io.chunks import FILE
from logreel.io.source import Source


def read(source: Source) -> FoundFile:
    """Return the content of a bag of version 2.0; raise UnsupportedError if it cannot be decrypted."""
    first, end = source.head.find(b"\n") + 1, source.size
    try:
        head = read_record(source, first, end)
    except BadRecord as error:
        text = f"the bag header cannot be read: {error}"
        bag = FoundFile(problems=[Problem("header", min(first, end), 0, False, text)])
        _read_all(source, skip_damage(source, first, end, bag.problems, error.cut), end, bag)
        return _in_file_offsets(bag)
    bag = FoundFile(
        problems=wrong_header(head), is_early=b"topic_count" in head.fields, cipher=cipher_of(source, head)
    )
    try:
        read_index(source, head, bag)
    except BadRecord as error:
        problem = Problem("index", head.pos, 0, False, f"the index is not used: {error}")
        bag = FoundFile(problems=[*wrong_header(head), problem], is_early=bag.is_early, cipher=bag.cipher)
        _read_all(source, after_padding(source, head, bag.problems), end, bag)
    return _in_file_offsets(bag)


def _in_file_offsets(bag: FoundFile) -> FoundFile:
    """Return *bag*; if no chunk is compressed or encrypted, its messages get offsets in the file."""
    if all(chunk.is_plain for chunk in bag.chunks):
        for part in bag.parts:
            at = bag.chunks[part.chunk].data
            part.chunk, part.base, part.end = FILE, part.base + at, part.end + at
    return bag


# --------------------------------------------------------------------------------------------------- by reading

FOREIGN_OPS = (1 << 64) - 1 - (1 << records.OP_MESSAGE) - (1 << records.OP_CONNECTION)


def declarations(bag: FoundFile) -> OnRecord:
    """Return a function that adds the connections and definitions among records to *bag*."""

    def on_record(record: Record, inside: Source) -> None:
        if record.op == records.OP_CONNECTION:
            add_connection(inside, record, bag, salvage=True)
        elif record.op == records.OP_DEFINITION and bag.is_early:
            add_definition(record, bag)

    return on_record


def _read_all(source: Source, pos: int, end: int, bag: FoundFile) -> None:
    """Read all records from *pos* on, skipping damaged bytes."""

    on_record = declarations(bag)
    while pos < end:
        try:
            record = read_record(source, pos, end)
            if record.op == records.OP_CHUNK:
                pos = read_chunk(source, record, end, bag, on_record)
            elif record.op == records.OP_INDEX and b"count" in record.fields:
                pos = after_index(source, record, end)
            elif record.op in (records.OP_MESSAGE, records.OP_CONNECTION):
                pos = _read_unchunked(source, pos, end, bag, on_record)
            elif record.end > end:
                raise BadRecord("its data is cut", cut=True)
            else:
                refuse_nested(source, record)
                on_record(record, source)
                pos = record.end
        except BadRecord as error:
            after = _encrypted_connection(source, pos, bag)
            pos = after or skip_damage(source, pos, end, bag.problems, error.cut, why=str(error))


def _encrypted_connection(source: Source, pos: int, bag: FoundFile) -> int:
    """Add the encrypted connection at *pos* to *bag*; return the offset of the next record, 0 if there is none."""
    if bag.cipher is None:
        return 0
    try:
        inside, after = decrypted_record(source, pos, bag.cipher)
        add_connection(inside, read_record(inside, 0, inside.size), bag)
    except BadRecord:
        return 0
    return after


def after_index(source: Source, record: Record, end: int) -> int:
    """Return the offset of the record after an index record; raise BadRecord if the index record is cut."""
    # C Turtle stated a data size that is too large; the count is right, unless it is damaged.
    by_count = record.data + record.u32(b"count") * ENTRY
    for after in (by_count, record.end):
        if after == end or begins(source, after, end):
            return after
    if by_count > end:
        raise BadRecord("its data is cut", cut=True)
    return by_count


def begins(source: Source, pos: int, end: int) -> bool:
    """Return whether the header of a record is at *pos*."""
    try:
        read_record(source, pos, end)
    except BadRecord:
        return False
    return True


def _read_unchunked(source: Source, pos: int, end: int, bag: FoundFile, on_record: OnRecord) -> int:
    """Read uncompressed records, in a chunk or not, as one chunk; return the offset of their end."""
    found, stop = read_region(
        Region(source, len(bag.chunks), pos, end, FOREIGN_OPS, named=bag.named), on_record, bag.problems
    )
    for part in found:
        part.base, part.end = part.base - pos, part.end - pos
    bag.parts += found
    bag.chunks.append(Chunk(pos, pos, stop - pos, "none", stop - pos))
    return stop


def read_chunk(source: Source, record: Record, end: int, bag: FoundFile, on_record: OnRecord) -> int:
    """Read a compressed or encrypted chunk; return the offset of the next record."""
    chunk = chunk_of(record, bag)
    if chunk.stored == 0:
        text = "a chunk that the recorder did not finish"
        bag.problems.append(Problem("unfinished", chunk.pos, 0, False, text))
    bag.count(chunk)
    if chunk.is_plain:
        # Its records are read like records outside of chunks; the stated size may be wrong.
        return chunk.data
    stored = min(chunk.stored or end, end - chunk.data)
    there = replace(chunk, stored=stored)
    unpacked = unpack(source, there)
    problem = problem_of(there, unpacked)
    if problem is not None:
        bag.problems.append(problem)
    inside = Source(unpacked.data, source.name)
    region = Region(inside, len(bag.chunks), 0, inside.size, where=chunk.pos, named=bag.named)
    bag.chunks.append(there)
    found, _ = read_region(region, on_record, bag.problems)
    bag.parts += found
    return chunk.data + unpacked.used
