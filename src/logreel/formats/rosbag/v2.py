"""Bags of version 2.0: chunks with an index, found by the index where it is sound, else by reading everything.

The development versions of April 2010 (1.3, and 2.0 with topic_count) are read too: there messages name their topic,
and definition records stand where connections are today. Their index is not used.
"""

from __future__ import annotations

from dataclasses import replace

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.bag import Bag, chunk_of, take_connection, take_definition
from logreel.formats.rosbag.chunks import Chunk, problem_of, unpack
from logreel.formats.rosbag.encryption import cipher_of, in_the_clear
from logreel.formats.rosbag.reader import (
    OnRecord,
    Stretch,
    after_padding,
    read_stretch,
    refuse_nested,
    step_over,
)
from logreel.formats.rosbag.records import (
    BadRecord,
    Record,
    read_record,
)
from logreel.formats.rosbag.summary import ENTRY, read_index
from logreel.io.chunks import FILE
from logreel.io.source import Source


def read(source: Source) -> Bag:
    """Everything in a bag of version 2.0. Raises UnsupportedError for one that cannot be decrypted."""
    first, end = source.head.find(b"\n") + 1, source.size
    try:
        head = read_record(source, first, end)
    except BadRecord as error:
        text = f"the bag header cannot be read: {error}"
        bag = Bag(problems=[Problem("header", min(first, end), 0, False, text)])
        _linear(source, step_over(source, first, end, bag.problems, error.cut), end, bag)
        return _flat(bag)
    bag = Bag(is_early=b"topic_count" in head.fields, cipher=cipher_of(source, head))
    try:
        read_index(source, head, bag)
    except BadRecord as error:
        told = Problem("index", head.pos, 0, False, f"the index is not used: {error}")
        bag = Bag(problems=[told], is_early=bag.is_early, cipher=bag.cipher)
        _linear(source, after_padding(source, head, bag.problems), end, bag)
    return _flat(bag)


def _flat(bag: Bag) -> Bag:
    """The same; where no chunk is packed all messages lie in the file as it is."""
    if all(chunk.is_plain for chunk in bag.chunks):
        for part in bag.parts:
            at = bag.chunks[part.chunk].data
            part.chunk, part.base, part.end = FILE, part.base + at, part.end + at
    return bag


# --------------------------------------------------------------------------------------------------- by reading

_FOREIGN = (1 << 64) - 1 - (1 << records.OP_MESSAGE) - (1 << records.OP_CONNECTION)


def _linear(source: Source, pos: int, end: int, bag: Bag) -> None:
    """Read all records from *pos* on, stepping over damage."""

    def on_record(record: Record, inside: Source) -> None:
        if record.op == records.OP_CONNECTION:
            take_connection(inside, record, bag, salvage=True)
        elif record.op == records.OP_DEFINITION and bag.is_early:
            take_definition(record, bag)

    while pos < end:
        try:
            record = read_record(source, pos, end)
            if record.op == records.OP_CHUNK:
                pos = _linear_chunk(source, record, end, bag, on_record)
            elif record.op == records.OP_INDEX and b"count" in record.fields:
                pos = _after_index(source, record, end)
            elif record.op in (records.OP_MESSAGE, records.OP_CONNECTION):
                pos = _loose(source, pos, end, bag, on_record)
            elif record.end > end:
                raise BadRecord("its data is cut", cut=True)
            else:
                refuse_nested(source, record)
                on_record(record, source)
                pos = record.end
        except BadRecord as error:
            after = _encrypted_connection(source, pos, bag)
            pos = after or step_over(source, pos, end, bag.problems, error.cut, why=str(error))


def _encrypted_connection(source: Source, pos: int, bag: Bag) -> int:
    """Take in the encrypted connection at *pos*, if there is one; gives where the next record begins, else 0."""
    if bag.cipher is None:
        return 0
    try:
        inside, after = in_the_clear(source, pos, bag.cipher)
        take_connection(inside, read_record(inside, 0, inside.size), bag)
    except BadRecord:
        return 0
    return after


def _after_index(source: Source, record: Record, end: int) -> int:
    """Where the record after an index record begins; raises BadRecord if the index record is cut."""
    # The stated size can be too large by a known fault; the count is right, unless it is damaged.
    by_count = record.data + record.u32(b"count") * ENTRY
    for after in (by_count, record.end):
        if after == end or _begins(source, after, end):
            return after
    if by_count > end:
        raise BadRecord("its data is cut", cut=True)
    return by_count


def _begins(source: Source, pos: int, end: int) -> bool:
    """True if the header of a record stands at *pos*."""
    try:
        read_record(source, pos, end)
    except BadRecord:
        return False
    return True


def _loose(source: Source, pos: int, end: int, bag: Bag, on_record: OnRecord) -> int:
    """Take in records that lie in the file as they are, in a chunk or not; gives where they end."""
    found, stop = read_stretch(
        Stretch(source, len(bag.chunks), pos, end, _FOREIGN, named=bag.named), on_record, bag.problems
    )
    for part in found:
        part.base, part.end = part.base - pos, part.end - pos
    bag.parts += found
    bag.chunks.append(Chunk(pos, pos, stop - pos, "none", stop - pos))
    return stop


def _linear_chunk(source: Source, record: Record, end: int, bag: Bag, on_record: OnRecord) -> int:
    chunk = chunk_of(record, bag)
    if chunk.stored == 0:
        text = "a chunk that the recorder did not finish"
        bag.problems.append(Problem("unfinished", chunk.pos, 0, False, text))
    bag.count(chunk)
    if chunk.is_plain:
        # Its records follow as if they were the file's own, whatever size is stated.
        return chunk.data
    stored = min(chunk.stored or end, end - chunk.data)
    there = replace(chunk, stored=stored)
    unpacked = unpack(source, there)
    problem = problem_of(there, unpacked)
    if problem is not None:
        bag.problems.append(problem)
    inside = Source(unpacked.data, source.name)
    stretch = Stretch(inside, len(bag.chunks), 0, inside.size, where=chunk.pos, named=bag.named)
    bag.chunks.append(there)
    found, _ = read_stretch(stretch, on_record, bag.problems)
    bag.parts += found
    return chunk.data + unpacked.used
