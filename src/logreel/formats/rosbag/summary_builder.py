"""The index of a remote bag: the summary gives the numbers of messages, each chunk its places and times when needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from logreel.errors import Problem
from logreel.formats.rosbag.channels import CONNECTION, Channels
from logreel.formats.rosbag.chunks import Chunk, problem_of, unpack
from logreel.formats.rosbag.found import FoundFile, Summary, chunk_of
from logreel.formats.rosbag.index_builder import IndexBuilder, by_channel, starts_of, turns_of
from logreel.formats.rosbag.index_check import read_messages
from logreel.formats.rosbag.reader import skip_damage
from logreel.formats.rosbag.records import BadRecord, find_record, read_record
from logreel.formats.rosbag.summary import chunk_indexes, entries
from logreel.index.block_table import MISSING_SIZE, Blocks
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, LoadedValues, StoredValues
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer, ChunkCache, Chunks
from logreel.io.source import Source

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
        found = unpack(self.source, chunk)
        problem = problem_of(chunk, found)
        if problem and problem not in self.bag.problems:
            self.bag.problems.append(problem)
        return found.data

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

    def __init__(self, found: RemoteChunks, known: Channels, chunks: Chunks) -> None:
        summary = found.summary
        rows = len(summary.pos)
        start = starts_of(summary.pairs, rows, known)
        n = int(summary.pairs[:, 2].sum())
        # Pages of these arrays take no memory before they are written.
        time, entry = np.zeros(n, np.int64), np.zeros(n, np.uint32)
        conn, size = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
        blocks = Blocks(np.zeros(rows, np.int64), np.arange(rows, dtype=np.int32), start, entry)
        end = np.zeros(rows, np.int64)
        turn = np.zeros(n, np.uint32) if known.are_several else None
        super().__init__(
            blocks, conn, time, size, summary.pos, end, chunks, found.bag.problems, True, summary.span, turn
        )
        self._found, self._known = found, known
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
        some = np.array(readable, np.int64)
        source.fetch(np.array(begin, np.int64), summary.end[some])
        try:
            self._read_together(some)
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
        mine = pairs[number[pairs[:, 0]] >= 0].copy()
        mine[:, 0] = number[mine[:, 0]]
        chunk, runs = chunk_indexes(source, self._found.bag, pos, mine)
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
        there, met = read_messages(self._chunks[row]), 0
        channel = np.array([self._known.number.get(key, -1) for key in there.key.tolist()], np.int64)
        for number in range(len(self._known)):
            room = slice(int(starts[number]), int(starts[number + 1]))
            mine = np.flatnonzero(channel == number)[: room.stop - room.start]
            mine = mine[np.argsort(there.entry[mine], kind="stable")]
            here = slice(room.start, room.start + len(mine))
            self._time[here], self._blocks.entry[here] = there.time[mine], there.entry[mine]
            self._size[here], self._conn[here] = there.size[mine], there.key[mine]
            met += len(mine)
        self._name_connections(span)
        missing, more = span.stop - span.start - met, len(there.key) - met
        text = f"the index of a chunk is not used ({why}): its messages were read instead"
        text += f"; {missing} that it names are not there" if missing else ""
        text += f"; {more} that it does not name are left out" if more else ""
        problem = Problem("index", int(self._pos[row]), 0, bool(missing or more), text)
        self._found.bag.problems.append(problem)
