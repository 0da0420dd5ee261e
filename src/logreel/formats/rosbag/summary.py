"""Reading of the index of a bag of version 2.0: the summary at its end and the index records after each chunk.

The index is used if it is complete and consistent; else all records are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from logreel.dataclass import replace
from logreel.errors import Finding, Problem
from logreel.formats.rosbag import records
from logreel.formats.rosbag.chunks import Chunk, decrypted_record, problem_of, unpack
from logreel.formats.rosbag.definitions import CONNECTION, Channels, Connection
from logreel.formats.rosbag.index_builder import (
    ChunkColumns,
    IndexBuilder,
    MessageColumns,
    ascending_runs,
    by_channel,
    check_outer_chunks,
    read_messages,
    run_starts,
    starts_of,
    turns_of,
)
from logreel.formats.rosbag.reader import (
    FoundFile,
    IndexedMessages,
    Region,
    Summary,
    add_connection,
    chunk_of,
    read_region,
    skip_damage,
)
from logreel.formats.rosbag.records import BadRecord, Record, find_record, read_record
from logreel.index.block_table import MISSING_SIZE, Blocks
from logreel.index.channel_index import ChannelRules, LoadedValues, StoredValues
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Buffer, ChunkCache, Chunks, Source
from logreel.kernels import rosbag

#: Bytes of an entry of an index record.
ENTRY = 12


def read_index(source: Source, head: Record, bag: FoundFile) -> None:
    """Add all messages to *bag* by the index; raise BadRecord if it is missing or contradicts the file."""
    if bag.is_early:
        raise BadRecord("it is of a development version")
    at = head.u32(b"index_pos")
    if at == 0:
        raise BadRecord("the recorder did not write one")
    if not head.end <= at <= source.size:
        raise BadRecord(f"it is said to be at {at}")
    source.span(at, source.size)
    pos, pairs, span = _summary(source, at, bag)
    stated = head.u32(b"conn_count"), head.u32(b"chunk_count")
    if (len(bag.connections), len(pos)) != stated:
        raise BadRecord(
            f"{stated[0]} connections and {stated[1]} chunks are stated, {len(pos)} chunks are described"
        )
    if source.in_ranges and bag.cipher is None:
        # The records after each chunk are read when its messages are needed.
        bag.summary = _summary_of(source, head.end, at, bag, pos, pairs, span)
        return
    if source.in_ranges:
        # Of an encrypted bag, all of it.
        _ = source.data
    bag.index = replace(_read_chunk_indexes(source, head.end, at, bag, pos, pairs), span=span)


def _summary(source: Source, at: int, bag: FoundFile) -> tuple[I64, I64, I64]:
    """Read connections and chunk infos up to the end of the file.

    Returns int64[k] offsets of the chunks, in file order; int64[m, 3] chunk number, connection and number of messages
    where there are any, ordered by chunk and connection; int64[k, 2] first and last time of the chunks in ns.
    """
    places: list[int] = []
    spans: list[tuple[int, int]] = []
    parts: list[I64] = []
    while at < source.size:
        record, inside, after = _record(source, at, bag)
        if after > source.size:
            raise BadRecord("it is cut")
        if record.op == records.OP_CONNECTION:
            add_connection(inside, record, bag)
        elif record.op == records.OP_CHUNK_INFO:
            counts = np.frombuffer(source.read(record.data, record.size // 8 * 8), "<u4").reshape(-1, 2)
            rows = np.full((len(counts), 3), len(places), np.int64)
            rows[:, 1:] = counts
            parts.append(rows)
            bag.problems += _wrong_info(record, len(counts))
            places.append(min(record.u32(b"chunk_pos"), source.size))
            spans.append((record.time(b"start_time"), record.time(b"end_time")))
        at = after
    pos = np.array(places, np.int64)
    order = np.argsort(pos, kind="stable")
    pairs = np.concatenate([np.zeros((0, 3), np.int64), *parts])
    pairs = pairs[pairs[:, 2] > 0]
    pairs[:, 0] = np.argsort(order)[pairs[:, 0]]
    return pos[order], _sorted(pairs, bag), np.array(spans, np.int64).reshape(-1, 2)[order]


def _wrong_info(record: Record, entries: int) -> list[Problem]:
    """Return the problems of what a chunk info states of itself: its version, and its number of *entries*."""
    wrong = []
    if (version := record.u32(b"ver")) != 1:
        wrong.append(f"the version {version}, there is only 1")
    if (count := record.u32(b"count")) != entries:
        wrong.append(f"{count} connections, it has {entries}")
    return [Problem("index", record.pos, 0, False, f"a chunk info states {text}") for text in wrong]


def _record(source: Source, pos: int, bag: FoundFile) -> tuple[Record, Source, int]:
    """Return the summary's record at *pos*, the bytes that contain it (decrypted), and the offset of the next one."""
    try:
        record = read_record(source, pos, source.size)
    except BadRecord:
        if bag.cipher is None:
            raise
        inside, after = decrypted_record(source, pos, bag.cipher)
        return read_record(inside, 0, inside.size), inside, after
    return record, source, record.end


def _sorted(runs: I64, bag: FoundFile) -> I64:
    """Return rows of chunk, connection, … ordered by chunk, in a chunk by the order of *bag.connections*."""
    numbers = np.array(list(bag.connections), np.int64)
    by_number = np.argsort(numbers)
    at = np.searchsorted(numbers, runs[:, 1], sorter=by_number.astype(np.intp))
    if (at == len(numbers)).any() or (numbers[by_number[at]] != runs[:, 1]).any():
        raise BadRecord("it does not describe all connections")
    return runs[np.lexsort((by_number[at], runs[:, 0]))]


def _read_chunk_indexes(
    source: Source, first: int, summary: int, bag: FoundFile, pos: I64, pairs: I64
) -> IndexedMessages:
    """Read the index records after each chunk, and compare them with the summary.

    first    offset of the first record after the file header
    summary  offset of the summary
    pos      int64[k]     offsets of the chunks
    pairs    int64[m, 3]  chunk number, connection and number of messages according to the summary
    """
    chunk, runs = chunk_indexes(source, bag, pos, pairs)
    chunks = [
        Chunk(at, data, stored, rosbag.COMPRESSIONS[packing], size, bag.cipher)
        for at, (data, stored, packing, size, _) in zip(pos.tolist(), chunk.tolist(), strict=True)
    ]
    for entry in chunks:
        if entry.is_plain and entry.size != entry.stored:
            raise BadRecord(f"the chunk at {entry.pos} states two sizes")
        bag.count(entry)
    _check_gaps(source, np.append(first, chunk[:, 4]), np.append(pos, summary), bag)
    check_outer_chunks(source, chunks, np.bincount(pairs[:, 0], pairs[:, 2], len(pos)).astype(np.int64))
    bag.chunks = chunks
    return entries(source, pos, chunk, runs, all(entry.is_plain for entry in chunks))


def chunk_indexes(source: Source, bag: FoundFile, pos: I64, pairs: I64) -> tuple[I64, I64]:
    """Read the headers of the chunks at *pos* and of their index records.

    pairs  int64[m, 3]  number in *pos*, connection and number of messages according to the summary

    Returns int64[k, 5]: offset of the data, stored bytes, compression, decompressed bytes, offset behind the index
    records; and int64[m, 4]: *pairs* with the offsets of the entries. Raises BadRecord for a difference.
    """
    counts = np.bincount(pairs[:, 0], minlength=len(pos)).astype(np.int64)
    chunk, runs_found = np.zeros((len(pos), 5), np.int64), np.zeros((len(pairs), 3), np.int64)
    # Of a remote bag, the caller has fetched these bytes.
    why, k = rosbag.read_chunk_headers(source.span(0, 0), pos, counts, chunk, runs_found)
    if why != rosbag.OK:
        raise BadRecord(
            {
                rosbag.NO_CHUNK: f"there is no chunk of a known compression at {pos[k]}",
                rosbag.CUT: f"the chunk at {pos[k]} is cut",
            }.get(why, f"the index of the chunk at {pos[k]} is incomplete")
        )
    runs = _sorted(np.column_stack([np.repeat(np.arange(len(pos)), counts), runs_found]), bag)
    if not np.array_equal(runs[:, :3], pairs):
        row = int(np.flatnonzero((runs[:, :3] != pairs).any(axis=1))[0])
        raise BadRecord(f"the index of the chunk at {pos[pairs[row, 0]]} does not fit the summary")
    return chunk, runs


def _summary_of(
    source: Source, first: int, at: int, bag: FoundFile, pos: I64, pairs: I64, span: I64
) -> Summary:
    """Return the summary of a remote bag after a look at its first chunk; raise BadRecord if it is impossible.

    first  offset of the first record after the file header
    at     offset of the summary
    """
    end = np.append(pos[1:], at)
    if len(pos) and (pos[0] < first or (pos >= end).any()):
        raise BadRecord("its chunks are not where they can be")
    if not len(pos) and first < at:
        raise BadRecord("it names no chunk")
    if len(pos):
        _check_gaps(source, np.array([first]), pos[:1], bag)
        bag.count(chunk_of(read_record(source, int(pos[0]), source.size), bag))
        bag.chunk_count = len(pos)
    empty = np.flatnonzero(np.bincount(pairs[:, 0], pairs[:, 2], len(pos)) == 0)
    if len(empty):
        raise BadRecord(f"it names no message of the chunk at {pos[empty[0]]}")
    return Summary(pos, end, pairs, span)


def _check_gaps(source: Source, pos: I64, end: I64, bag: FoundFile) -> None:
    """Report bytes that are no records in the gaps *pos* … *end* around the chunks.

    Raises BadRecord if chunks overlap or a gap contains a record.
    """
    if (pos > end).any():
        raise BadRecord(f"chunks overlap at {end[pos > end][0]}")
    for a, b in zip(pos[pos < end].tolist(), end[pos < end].tolist(), strict=True):
        if find_record(source, a - 1, b) < b:
            raise BadRecord(f"it does not name what stands at {a}")
        skip_damage(source, a, b, bag.problems, False)


def entries(source: Source, pos: I64, chunk: I64, runs: I64, plain: bool) -> IndexedMessages:
    """Read the entries of the index records: time and offset of each message; raise BadRecord for impossible ones.

    chunk, runs  what ``chunk_indexes`` returned
    """
    count = runs[:, 2]
    n = int(count.sum())
    time, entry = np.empty(n, np.int64), np.empty(n, np.uint32)
    outside = rosbag.read_index_entries(
        source.span(0, 0), np.column_stack([count, runs[:, 3], chunk[runs[:, 0], 3]]), time, entry
    )
    if outside < len(runs):
        raise BadRecord(f"the index of the chunk at {pos[runs[outside, 0]]} points outside of it")
    start = run_starts(count)
    # Writers sort the entries by time; messages of a channel are ordered by their place in the file.
    for k in np.flatnonzero(~ascending_runs(entry, start)).tolist():
        span = slice(int(start[k]), int(start[k + 1]))
        order = np.argsort(entry[span], kind="stable")
        entry[span], time[span] = entry[span][order], time[span][order]
        if (entry[span][1:] == entry[span][:-1]).any():
            raise BadRecord(f"the index of the chunk at {pos[runs[k, 0]]} names a message twice")
    # Kernels need contiguous arrays.
    data, size = chunk[:, 0].copy(), chunk[:, 3].copy()
    return IndexedMessages(pos, data, size, plain, runs[:, :3], time, entry)


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
    content, others = FoundFile(), dict[int, int]()

    def on_record(record: Record, data: Source) -> None:
        if record.op == records.OP_CONNECTION:
            add_connection(data, record, content)
        else:
            others[record.op] = others.get(record.op, 0) + 1

    read_region(Region(inside, number, 0, inside.size, where=chunk.pos), on_record, problems)
    # What is wrong with messages is reported where they are found.
    yield from (Finding("chunk", "warn", problem.offset, 0, problem.text) for problem in problems)
    for op, count in others.items():
        text = f"a chunk holds {count} records of op {op}, which do not belong there"
        yield Finding("chunk", "warn", chunk.pos, 0, text, count=count)
    for key, connection in content.connections.items():
        known = bag.connections.get(key)
        if known is None or _facts(known) != _facts(connection):
            text = f"a chunk describes connection {key} of {connection.topic!r} otherwise than the summary"
            yield Finding("connection", "warn", chunk.pos, 0, text, known.topic if known else None)


def _facts(connection: Connection) -> tuple[str, str, str, str]:
    return connection.topic, connection.type, connection.md5, connection.definition


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
        if record.size not in [count * entry_size for entry_size in (ENTRY, *_CTURTLE)]:
            text = (
                f"an index record states {record.size} bytes for {count} entries, which take {count * ENTRY}"
            )
            yield Finding("index", "warn", at, 0, text)
        at = record.data + count * ENTRY


#: Bytes of a chunk's header that are fetched; it takes about 60.
HEADER_ROOM = 512


class RemoteChunks:
    """The chunks of a remote bag, whose headers are read when they are needed."""

    def __init__(self, source: Source, bag: FoundFile, summary: Summary) -> None:
        self.source, self.bag, self.summary = source, bag, summary
        self._known: dict[int, Chunk] = {}

    def chunk(self, number: int) -> Chunk:
        """Return a chunk; raise BadRecord if there is none."""
        if number not in self._known:
            pos, end = int(self.summary.pos[number]), int(self.summary.end[number])
            chunk = chunk_of(read_record(self.source, pos, end), self.bag)
            if chunk.stored > end - chunk.data:
                raise BadRecord(f"the chunk at {pos} is longer than the summary says")
            if chunk.is_plain and chunk.size != chunk.stored:
                raise BadRecord(f"the chunk at {pos} states two sizes")
            self._known[number] = chunk
        return self._known[number]

    def known_sizes(self) -> list[int]:
        """Return the decompressed bytes of the first chunk as a sample of all; empty if it cannot be read."""
        try:
            return [self.chunk(0).size] if len(self.summary.pos) else []
        except BadRecord:
            return []

    def unpack(self, number: int) -> Buffer:
        """Return the decompressed bytes of a chunk; damage is added to the problems of the bag."""
        try:
            chunk = self.chunk(number)
        except BadRecord:
            return np.zeros(0, np.uint8)
        unpacked = unpack(self.source, chunk)
        problem = problem_of(chunk, unpacked)
        if problem and problem not in self.bag.problems:
            self.bag.problems.append(problem)
        return unpacked.data

    def as_chunks(self) -> Chunks:
        """Return the buffers of the bag."""
        pos, end = self.summary.pos, self.summary.end
        limits = self.source.limits
        packed = np.minimum(end - pos, limits.chunk_bytes).tolist()
        return Chunks(
            self.source,
            ChunkCache(self.unpack, packed, False, limits),
            packed.__getitem__,
            lambda n: int(pos[n]),
            lambda n: int(end[n]),
        )


class SummaryBuilder(IndexBuilder):
    """The IndexBuilder of a remote bag; index records of chunks are read when their messages or times are needed."""

    def __init__(self, remote: RemoteChunks, known: Channels, chunks: Chunks) -> None:
        summary = remote.summary
        rows = len(summary.pos)
        start = starts_of(summary.pairs, rows, known)
        n = int(summary.pairs[:, 2].sum())
        # Pages of these arrays take no memory before they are written.
        time, entry = np.zeros(n, np.int64), np.zeros(n, np.uint32)
        conn, size = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        blocks = Blocks(np.zeros(rows, np.int64), np.arange(rows, dtype=np.int32), start, entry)
        end = np.zeros(rows, np.int64)
        turn = np.zeros(n, np.uint32) if known.are_several else None
        messages = MessageColumns(conn, time, size, turn)
        of_chunks = ChunkColumns(summary.pos, end, summary.span)
        super().__init__(blocks, messages, of_chunks, chunks, remote.bag.problems, by_index=True)
        self._found, self._known = remote, known
        self._to_load = np.ones(rows, bool)

    def bounds(self) -> tuple[int | None, int | None]:
        """Return the earliest and the latest time in ns as the summary states them."""
        span = self._found.summary.span
        if not len(span):
            return None, None
        if (span < 0).any():
            self._load(np.arange(len(span)))
            return super().bounds()
        return int(span[:, 0].min()), int(span[:, 1].max())

    def index(self, cheap: bool) -> MessageIndex:
        """Return the MessageIndex; sizes are never cheap, since the chunks have to be fetched for them."""
        span = self._found.summary.span.copy()
        # Times that are not stated are within any interval.
        unstated = (span < 0).any(axis=1)
        span[unstated] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        time = LoadedValues(self._time, self._load, span)
        turns: dict[str, Any] = (
            {} if self._turn is None else {CONNECTION: LoadedValues(self._turn, self._load, span)}
        )
        rules = [ChannelRules(time, StoredValues(self._size), side_columns=turns)] * len(self._known)
        return MessageIndex(self._chunks, self._blocks, rules, None, self._resolve, False)

    # ---------------------------------------------------------------------------------------------- loading

    def _load(self, rows: I64) -> None:
        """Read the index records of some chunks, if not done before; thread-safe."""
        with self._lock:
            self._read(rows)

    def _resolve(self, rows: I64) -> None:
        """Read also offsets and sizes of the payloads from the chunks, if not done before; thread-safe."""
        with self._lock:
            rows = rows[self._pending[rows]]
            if not len(rows):
                return
            # Chunks and their index records are next to each other.
            self._chunks.fetch(rows.tolist())
            self._read(rows)
            for row in rows[self._pending[rows]].tolist():
                self._pending[row] = False
                self._locate(self._chunks[row], np.array([row]))

    def _read(self, rows: I64) -> None:
        rows = rows[self._to_load[rows]]
        if not len(rows):
            return
        self._to_load[rows] = False
        source, summary = self._found.source, self._found.summary
        source.fetch(summary.pos[rows], np.minimum(summary.pos[rows] + HEADER_ROOM, summary.end[rows]))
        begin, readable = list[int](), list[int]()
        for row in rows.tolist():
            try:
                chunk = self._found.chunk(row)
            except BadRecord as error:
                self._replace(row, str(error))
                continue
            self._end[row] = chunk.size
            begin.append(chunk.data + chunk.stored)
            readable.append(row)
        rows_to_read = np.array(readable, np.int64)
        source.fetch(np.array(begin, np.int64), summary.end[rows_to_read])
        try:
            self._read_together(rows_to_read)
        except BadRecord:
            for row in readable:
                try:
                    self._read_together(np.array([row]))
                except BadRecord as error:
                    self._replace(row, str(error))

    def _read_together(self, rows: I64) -> None:
        """Fill in what the index records of some chunks say; raise BadRecord if those of any are wrong."""
        source, summary = self._found.source, self._found.summary
        pos, pairs = summary.pos[rows], summary.pairs
        number = np.full(len(summary.pos), -1, np.int64)
        number[rows] = np.arange(len(rows))
        wanted_pairs = pairs[number[pairs[:, 0]] >= 0].copy()
        wanted_pairs[:, 0] = number[wanted_pairs[:, 0]]
        chunk, runs = chunk_indexes(source, self._found.bag, pos, wanted_pairs)
        if (chunk[:, 4] > summary.end[rows]).any():
            raise BadRecord("an index reaches into the next chunk")
        start, time, entry, conn = by_channel(entries(source, pos, chunk, runs, False), self._known)
        for at, row in enumerate(rows.tolist()):
            span, here = self._messages(row), slice(int(start[at, 0]), int(start[at, -1]))
            self._time[span], self._blocks.entry[span], self._conn[span] = time[here], entry[here], conn[here]
            self._name_connections(span)
            self._check_gap(int(chunk[at, 4]), int(summary.end[row]))

    def _messages(self, row: int) -> slice:
        start = self._blocks.start
        return slice(int(start[row, 0]), int(start[row, -1]))

    def _name_connections(self, span: slice) -> None:
        if self._turn is not None:
            turns = turns_of(self._conn[span], self._known)
            self._turn[span] = 0 if turns is None else turns

    def _check_gap(self, start: int, end: int) -> None:
        """Report bytes between the index records of a chunk and the next chunk."""
        if start >= end:
            return
        source, problems = self._found.source, self._found.bag.problems
        if find_record(source, start - 1, end) < end:
            text = "records that the index does not name are between chunks: they are not shown"
            problems.append(Problem("index", start, end - start, True, text))
        else:
            skip_damage(source, start, end, problems, False)

    def _replace(self, row: int, why: str) -> None:
        """Fill in the messages of a chunk by reading it, because its index records are wrong."""
        self._pending[row] = False
        span, starts = self._messages(row), self._blocks.start[row]
        self._size[span], self._time[span] = MISSING_SIZE, max(0, int(self._found.summary.span[row, 0]))
        self._blocks.entry[span], self._conn[span] = 0, min(self._known.number)
        messages, met = read_messages(self._chunks[row]), 0
        channel = np.array([self._known.number.get(key, -1) for key in messages.key.tolist()], np.int64)
        for number in range(len(self._known)):
            room = slice(int(starts[number]), int(starts[number + 1]))
            of_channel = np.flatnonzero(channel == number)[: room.stop - room.start]
            of_channel = of_channel[np.argsort(messages.entry[of_channel], kind="stable")]
            here = slice(room.start, room.start + len(of_channel))
            self._time[here], self._blocks.entry[here] = messages.time[of_channel], messages.entry[of_channel]
            self._size[here], self._conn[here] = messages.size[of_channel], messages.key[of_channel]
            met += len(of_channel)
        self._name_connections(span)
        missing, more = span.stop - span.start - met, len(messages.key) - met
        text = f"the index of a chunk is not used ({why}): its messages were read instead"
        text += f"; {missing} that it names are not there" if missing else ""
        text += f"; {more} that it does not name are left out" if more else ""
        problem = Problem("index", int(self._pos[row]), 0, bool(missing or more), text)
        self._found.bag.problems.append(problem)
