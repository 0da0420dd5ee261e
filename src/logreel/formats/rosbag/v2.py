"""Bags of version 2.0: chunks with an index, found by the index where it is sound, else by reading everything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from logreel.errors import Problem, UnsupportedError
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk, unpack
from logreel.formats.rosbag.collect import Found
from logreel.formats.rosbag.connections import Connection
from logreel.formats.rosbag.linear import Stretch, read_stretch, step_over
from logreel.formats.rosbag.records import BadRecord, Record, parse_fields, read_record
from logreel.model.chunks import FILE
from logreel.model.source import Source

#: Version line of 13 bytes.
FIRST_RECORD = 13
#: One entry of an index record: u32 seconds, u32 nanoseconds, u32 place in the unpacked chunk.
ENTRY = np.dtype([("sec", "<u4"), ("nsec", "<u4"), ("offset", "<u4")])
#: How much slower than reading a chunk unpacking it is, about.
_COST = {"lz4": 4, "bz2": 100}
#: Looking at this many plain bytes takes a fraction of a second.
CHEAP_BYTES = 1 << 30
_PLAIN = {"", "rosbag/NoEncryptor"}

OnRecord = Callable[[Record, Source], None]


@dataclass(slots=True)
class Bag:
    """What was found: messages per chunk, connections by number, chunks."""

    parts: list[Found] = field(default_factory=list)
    connections: dict[int, Connection] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    indexed: bool = False
    chunk_count: int = 0
    compressions: set[str] = field(default_factory=set)
    costly: int = 0

    def count(self, chunk: Chunk) -> None:
        """Take note of a chunk for the summary."""
        self.chunk_count += 1
        self.compressions.add(chunk.compression)
        self.costly += chunk.size * _COST.get(chunk.compression, 1)

    @property
    def is_cheap(self) -> bool:
        """True if looking at every message takes no time that people notice."""
        return self.costly < CHEAP_BYTES


def read(source: Source) -> Bag:
    """Everything in a bag of version 2.0. Raises UnsupportedError for an encrypted one."""
    end = source.size
    try:
        head = read_record(source, FIRST_RECORD, end)
    except BadRecord as error:
        bag = Bag(
            problems=[Problem("header", FIRST_RECORD, 0, False, f"the bag header cannot be read: {error}")]
        )
        _linear(source, records.find_record(source, FIRST_RECORD, end), end, bag)
        return bag
    encryptor = head.text(b"encryptor")
    if encryptor not in _PLAIN:
        raise UnsupportedError(f"an encrypted bag ({encryptor[:60]}); decrypt it first", path=source.name)
    bag = Bag()
    try:
        _indexed(source, head, bag)
    except BadRecord as error:
        bag = Bag(problems=[Problem("index", head.pos, 0, False, f"the index is not used: {error}")])
        _linear(source, min(head.end, end), end, bag)
    return bag


# ---------------------------------------------------------------------------------------------------- by index


def _indexed(source: Source, head: Record, bag: Bag) -> None:
    """Follow the index; raises BadRecord where it is missing or contradicts the file."""
    at = head.u32(b"index_pos")
    if at == 0:
        raise BadRecord("the recorder did not write one")
    if not head.end <= at <= source.size:
        raise BadRecord(f"it is said to be at {at}")
    infos: list[tuple[int, dict[int, int]]] = []
    while at < source.size:
        record = read_record(source, at, source.size)
        if record.end > source.size:
            raise BadRecord("it is cut")
        if record.op == records.OP_CONNECTION:
            _connection(source, record, bag)
        elif record.op == records.OP_CHUNK_INFO:
            pairs = np.frombuffer(source.read(record.data, record.size // 8 * 8), "<u4").reshape(-1, 2)
            infos.append((record.u32(b"chunk_pos"), dict(pairs.tolist())))
        at = record.end
    said = head.u32(b"conn_count"), head.u32(b"chunk_count")
    if (len(bag.connections), len(infos)) != said:
        raise BadRecord(
            f"{said[0]} connections and {said[1]} chunks are stated, {len(infos)} chunks are described"
        )
    expected = head.end
    for pos, counts in sorted(infos, key=lambda info: info[0]):
        if pos < expected:
            raise BadRecord(f"chunks overlap at {pos}")
        expected = _indexed_chunk(source, pos, counts, bag)
    bag.indexed = True


def _indexed_chunk(source: Source, pos: int, counts: dict[int, int], bag: Bag) -> int:
    """Take in the index records that follow the chunk at *pos*; gives where they end."""
    chunk = _chunk(source, read_record(source, pos, source.size))
    at = chunk.data + chunk.stored
    if at > source.size:
        raise BadRecord(f"the chunk at {pos} is cut")
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
        keys.append(np.full(n, conn, np.int64))
        times.append(entries["sec"].astype(np.int64) * 10**9 + entries["nsec"])
        offsets.append(entries["offset"])
        at = record.data + n * ENTRY.itemsize
    if keys:
        # Writers sort the entries by time; what comes first in the file is first for us.
        key, time, entry = (np.concatenate(p) for p in (keys, times, offsets))
        order = np.argsort(entry, kind="stable")
        bag.parts.append(_part(bag, chunk, key[order], time[order], entry[order].astype(np.uint32), None))
    return at


def _part(
    bag: Bag, chunk: Chunk, key: np.ndarray, time: np.ndarray, entry: np.ndarray, size: np.ndarray | None
) -> Found:
    """The messages of a chunk; one that is stored as it is counts as a stretch of the file."""
    bag.count(chunk)
    if chunk.compression == "none":
        return Found(FILE, chunk.data, chunk.data + chunk.stored, key, time, entry, size)
    bag.chunks.append(chunk)
    return Found(len(bag.chunks) - 1, 0, chunk.size, key, time, entry, size)


def _chunk(source: Source, record: Record) -> Chunk:
    if record.op != records.OP_CHUNK:
        raise BadRecord(f"there is no chunk at {record.pos}")
    return Chunk(record.pos, record.data, record.size, record.text(b"compression"), record.u32(b"size"))


def _connection(source: Source, record: Record, bag: Bag) -> None:
    """Take in a connection record; one met before is not replaced."""
    fields = parse_fields(source.read(record.data, record.size))
    number = record.u32(b"conn")

    def text(name: bytes) -> str:
        return fields.get(name, b"").decode("utf-8", "replace")

    bag.connections.setdefault(
        number,
        Connection(
            number,
            record.text(b"topic"),
            text(b"type"),
            text(b"md5sum"),
            text(b"message_definition"),
            text(b"callerid"),
            text(b"latching") == "1",
        ),
    )


# --------------------------------------------------------------------------------------------------- by reading

_FOREIGN = sum(1 << op for op in (records.OP_FILE, records.OP_INDEX, records.OP_CHUNK, records.OP_CHUNK_INFO))


def _linear(source: Source, pos: int, end: int, bag: Bag) -> None:
    """Read all records from *pos* on, stepping over damage."""

    def on_record(record: Record, inside: Source) -> None:
        if record.op == records.OP_CONNECTION:
            _connection(inside, record, bag)

    while pos < end:
        try:
            record = read_record(source, pos, end)
            if record.op == records.OP_CHUNK:
                pos = _linear_chunk(source, record, end, bag, on_record)
            elif record.op == records.OP_INDEX:
                # The stated size can be too large by a known fault; the count is right.
                pos = record.data + record.u32(b"count") * ENTRY.itemsize
            elif record.op in (records.OP_MESSAGE, records.OP_CONNECTION):
                # Of a chunk whose header was never completed, or the summary at the end.
                found, pos = read_stretch(Stretch(source, FILE, pos, end, _FOREIGN), on_record, bag.problems)
                bag.parts += found
            elif record.end > end:
                raise BadRecord("its data is cut", cut=True)
            else:
                pos = record.end
        except BadRecord as error:
            pos = step_over(source, pos, end, bag.problems, error.cut, why=str(error))


def _linear_chunk(source: Source, record: Record, end: int, bag: Bag, on_record: OnRecord) -> int:
    chunk = _chunk(source, record)
    if chunk.stored == 0 and chunk.compression == "none":
        # Never completed: its records follow as if they were the file's own.
        text = "a chunk that the recorder did not finish"
        bag.problems.append(Problem("unfinished", chunk.pos, 0, False, text))
        return chunk.data
    stored = min(chunk.stored or end, end - chunk.data)
    there = Chunk(chunk.pos, chunk.data, stored, chunk.compression, chunk.size)
    bag.count(there)
    if chunk.compression == "none":
        stretch, where = Stretch(source, FILE, chunk.data, chunk.data + stored), None
    else:
        data, wrong = unpack(source, there)
        if wrong:
            bag.problems.append(
                Problem("chunk", chunk.pos, stored, True, f"a {chunk.compression} chunk: {wrong}")
            )
        bag.chunks.append(there)
        stretch, where = Stretch(Source(data, source.name), len(bag.chunks) - 1, 0, len(data)), chunk.pos
    found, _ = read_stretch(stretch, on_record, bag.problems, where)
    bag.parts += found
    return chunk.data + stored
