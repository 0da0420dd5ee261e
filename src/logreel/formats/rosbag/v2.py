"""Bags of version 2.0: chunks with an index, found by the index where it is sound, else by reading everything.

The development versions of April 2010 (1.3, and 2.0 with topic_count) are read too: there messages name their topic,
and definition records stand where connections are today. Their index is not used.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from logreel.errors import Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import COMPRESSIONS, Chunk, problem_of, unpack
from logreel.formats.rosbag.collect import Found
from logreel.formats.rosbag.connections import Connection
from logreel.formats.rosbag.encryption import Cipher, cipher_of, in_the_clear
from logreel.formats.rosbag.linear import (
    ALL_NAMES,
    TOPIC,
    OnRecord,
    Stretch,
    after_padding,
    read_stretch,
    refuse_nested,
    step_over,
)
from logreel.formats.rosbag.omitted import probe
from logreel.formats.rosbag.records import (
    BadRecord,
    Record,
    find_record,
    parse_fields,
    read_record,
    topic_key,
)
from logreel.model.chunks import FILE
from logreel.model.source import Source

#: One entry of an index record: u32 seconds, u32 nanoseconds, u32 place in the unpacked chunk.
ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])
#: How much slower than reading a chunk unpacking it is, about.
_COST = {"lz4": 4, "bz2": 100}
#: Looking at this many plain bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 30
#: Type and checksum where they cannot be read; recorders wrote it where they did not know.
UNKNOWN = "*"


@dataclass(slots=True)
class Bag:
    """What was found: messages per chunk, connections by number, chunks in file order.

    is_early  True for the development versions
    cipher    what decrypts it, None if it is not encrypted
    """

    parts: list[Found] = field(default_factory=list)
    connections: dict[int, Connection] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    indexed: bool = False
    chunk_count: int = 0
    compressions: set[str] = field(default_factory=set)
    costly: int = 0
    is_early: bool = False
    cipher: Cipher | None = None

    def count(self, chunk: Chunk) -> None:
        """Take note of a chunk for the summary."""
        self.chunk_count += 1
        self.compressions.add(chunk.compression)
        self.costly += chunk.size * _COST.get(chunk.compression, 1)

    @property
    def named(self) -> int:
        """What tells the connection of a message that has no number."""
        return TOPIC if self.is_early else ALL_NAMES

    @property
    def is_cheap(self) -> bool:
        """True if looking at every message takes no time that people notice."""
        return self.costly < CHEAP_BYTES


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
        _indexed(source, head, bag)
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


# ---------------------------------------------------------------------------------------------------- by index


def _indexed(source: Source, head: Record, bag: Bag) -> None:
    """Follow the index; raises BadRecord where it is missing or contradicts the file."""
    if bag.is_early:
        raise BadRecord("it is of a development version")
    at = head.u32(b"index_pos")
    if at == 0:
        raise BadRecord("the recorder did not write one")
    if not head.end <= at <= source.size:
        raise BadRecord(f"it is said to be at {at}")
    infos: list[tuple[int, dict[int, int]]] = []
    start = at
    while at < source.size:
        record, inside, after = _summary_record(source, at, bag)
        if after > source.size:
            raise BadRecord("it is cut")
        if record.op == records.OP_CONNECTION:
            _connection(inside, record, bag)
        elif record.op == records.OP_CHUNK_INFO:
            pairs = np.frombuffer(source.read(record.data, record.size // 8 * 8), "<u4").reshape(-1, 2)
            infos.append((record.u32(b"chunk_pos"), dict(pairs.tolist())))
        at = after
    said = head.u32(b"conn_count"), head.u32(b"chunk_count")
    if (len(bag.connections), len(infos)) != said:
        raise BadRecord(
            f"{said[0]} connections and {said[1]} chunks are stated, {len(infos)} chunks are described"
        )
    if not all(conn in bag.connections for _, counts in infos for conn in counts):
        raise BadRecord("it does not describe all connections")
    expected = head.end
    for pos, counts in sorted(infos, key=lambda info: info[0]):
        if pos < expected:
            raise BadRecord(f"chunks overlap at {pos}")
        _between(source, expected, pos, bag)
        expected = _indexed_chunk(source, pos, counts, bag)
    _between(source, expected, start, bag)
    probe(source, bag.parts, bag.chunks)
    bag.indexed = True


def _summary_record(source: Source, pos: int, bag: Bag) -> tuple[Record, Source, int]:
    """The record at *pos* of the summary, the bytes that it lies in, and where the next one begins."""
    try:
        record = read_record(source, pos, source.size)
    except BadRecord:
        if bag.cipher is None:
            raise
        inside, after = in_the_clear(source, pos, bag.cipher)
        return read_record(inside, 0, inside.size), inside, after
    return record, source, record.end


def _between(source: Source, pos: int, end: int, bag: Bag) -> None:
    """Look at what stands between two chunks, or between the last one and the summary."""
    if end > source.size:
        raise BadRecord(f"there is no chunk at {end}")
    if pos >= end:
        return
    if find_record(source, pos - 1, end) < end:
        raise BadRecord(f"it does not name what stands at {pos}")
    step_over(source, pos, end, bag.problems, False)


def _indexed_chunk(source: Source, pos: int, counts: dict[int, int], bag: Bag) -> int:
    """Take in the index records that follow the chunk at *pos*; gives where they end."""
    chunk = _chunk(read_record(source, pos, source.size), bag)
    at = chunk.data + chunk.stored
    if chunk.stored and not any(counts.values()):
        raise BadRecord(f"it names no message of the chunk at {pos}")
    if at > source.size:
        raise BadRecord(f"the chunk at {pos} is cut")
    if chunk.is_plain and chunk.size != chunk.stored:
        raise BadRecord(f"the chunk at {pos} states two sizes")
    keys, times, offsets = [], [], []
    left = {conn: n for conn, n in counts.items() if n}
    while left:
        record = read_record(source, at, source.size)
        if record.op != records.OP_INDEX:
            raise BadRecord(f"the index of the chunk at {pos} is incomplete")
        conn, n = record.u32(b"conn"), record.u32(b"count")
        if left.pop(conn, 0) != n:
            raise BadRecord(f"the index of the chunk at {pos} does not fit the summary")
        # Recorders of 2010 stated a longer size than they wrote: only the count is right.
        entries = np.frombuffer(source.read(record.data, n * ENTRY.itemsize), ENTRY)
        if len(entries) != n or (n and int(entries["offset"].max()) >= max(chunk.size, 1)):
            raise BadRecord(f"the index of the chunk at {pos} points outside of it")
        # Writers sort the entries by time; what comes first in the file is first for us.
        if (entries["offset"][1:] <= entries["offset"][:-1]).any():
            entries = entries[np.argsort(entries["offset"], kind="stable")]
            if (entries["offset"][1:] == entries["offset"][:-1]).any():
                raise BadRecord(f"the index of the chunk at {pos} names a message twice")
        keys.append(np.full(n, conn, np.int64))
        times.append(entries["sec"].astype(np.int64) * 10**9 + entries["nsec"])
        offsets.append(entries["offset"])
        at = record.data + n * ENTRY.itemsize
    if keys:
        key, time, entry = (np.concatenate(p) for p in (keys, times, offsets))
        bag.count(chunk)
        bag.parts.append(Found(len(bag.chunks), pos, 0, chunk.size, key, time, entry, None))
        bag.chunks.append(chunk)
    return at


def _chunk(record: Record, bag: Bag) -> Chunk:
    compression = record.text(b"compression")
    if record.op != records.OP_CHUNK or compression not in COMPRESSIONS:
        raise BadRecord(f"there is no chunk at {record.pos}, or one of compression {compression[:20]!r}")
    # Chunks are encrypted when they are finished.
    cipher = bag.cipher if record.size else None
    return Chunk(record.pos, record.data, record.size, compression, record.u32(b"size"), cipher)


def _connection(source: Source, record: Record, bag: Bag, salvage: bool = False) -> None:
    """Take in a connection record; a whole one met before is not replaced.

    Raises BadRecord if it is not whole; with *salvage* only if it does not tell the topic.
    """
    try:
        fields = parse_fields(source.read(record.data, record.size))
    except BadRecord:
        if not salvage:
            raise
        fields = {}
    whole = b"type" in fields and b"md5sum" in fields
    if b"topic" not in record.fields or not (whole or salvage):
        raise BadRecord("a connection without topic, type or checksum")
    number = record.u32(b"conn")
    known = bag.connections.get(number)
    if known is not None and not (whole and known.type == UNKNOWN):
        return

    def text(name: bytes) -> str:
        return fields.get(name, b"").decode("utf-8", "replace")

    bag.connections[number] = Connection(
        number,
        record.text(b"topic"),
        text(b"type") if whole else UNKNOWN,
        text(b"md5sum") if whole else UNKNOWN,
        text(b"message_definition"),
        text(b"callerid"),
        text(b"latching") == "1",
    )


def _definition(record: Record, bag: Bag) -> None:
    """Take in a definition record of a development version, which messages refer to by their topic."""
    topic, md5 = record.text(b"topic"), record.text(b"md5") or record.text(b"md5sum")
    key = topic_key(record.fields.get(b"topic", b""))
    bag.connections.setdefault(key, Connection(key, topic, record.text(b"type"), md5, record.text(b"def")))


# --------------------------------------------------------------------------------------------------- by reading

_FOREIGN = (1 << 64) - 1 - (1 << records.OP_MESSAGE) - (1 << records.OP_CONNECTION)


def _linear(source: Source, pos: int, end: int, bag: Bag) -> None:
    """Read all records from *pos* on, stepping over damage."""

    def on_record(record: Record, inside: Source) -> None:
        if record.op == records.OP_CONNECTION:
            _connection(inside, record, bag, salvage=True)
        elif record.op == records.OP_DEFINITION and bag.is_early:
            _definition(record, bag)

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
        _connection(inside, read_record(inside, 0, inside.size), bag)
    except BadRecord:
        return 0
    return after


def _after_index(source: Source, record: Record, end: int) -> int:
    """Where the record after an index record begins; raises BadRecord if the index record is cut."""
    # The stated size can be too large by a known fault; the count is right, unless it is damaged.
    by_count = record.data + record.u32(b"count") * ENTRY.itemsize
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
    chunk = _chunk(record, bag)
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
