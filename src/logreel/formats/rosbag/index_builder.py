"""Building of the index (block table, times, sizes) from messages found by reading, or named by the bag's index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import Finding, Problem
from logreel.formats.rosbag.chunks import Chunk, unpack
from logreel.formats.rosbag.definitions import CONNECTION, Channels
from logreel.formats.rosbag.reader import (
    ChunkMessages,
    IndexClaims,
    IndexedMessages,
    Region,
    ignore_record,
    read_region,
)
from logreel.formats.rosbag.records import BadRecord
from logreel.index.block_table import MISSING_SIZE, Blocks
from logreel.index.channel_index import ChannelRules, StoredValues
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, run, shares
from logreel.io.source import FILE, Buffer, Chunks, Source
from logreel.kernels import rosbag

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Least bytes of a message record without its data: two lengths and the fields conn, op and time.
SMALLEST = 46
#: Chunks larger than this (no recorder writes them by default) and bz2 chunks (slow) are not read on opening.
PROBED_BYTES = 4 << 20


def check_outer_chunks(source: Source, chunks: list[Chunk], named: I64) -> None:
    """Read the first and the last chunk; raise BadRecord if they have more messages than their index names.

    named  int64[k]  messages of each chunk in the index
    """
    for k in np.flatnonzero(named == 0).tolist():
        if chunks[k].stored:
            raise BadRecord(f"it names no message of the chunk at {chunks[k].pos}")
    for k in {0, len(chunks) - 1} if chunks else ():
        chunk = chunks[k]
        if max(chunk.size, chunk.stored) > PROBED_BYTES or chunk.compression == "bz2":
            continue
        data = unpack(source, chunk).data
        more = _count(data, 0, len(data)) - int(named[k])
        if more > 0:
            raise BadRecord(f"it leaves out {more} messages of the chunk at {chunk.pos}")


def omission_problem(size: NDArray[np.uint32], data: Buffer, base: int, end: int, pos: int) -> Problem | None:
    """Return the problem of a chunk whose index leaves out messages, None if it names all of them.

    size             uint32[n]  bytes of each message that the index names, all of which were found
    data, base, end  the bytes that contain the chunk, and the interval of the chunk in them
    pos              file offset of the chunk
    """
    room = end - base - SMALLEST * len(size) - int(size.sum(dtype=np.int64))
    # The chunk is read only if there is room for another message.
    more = _count(data, base, end) - len(size) if not 0 <= room < SMALLEST else 0
    if more <= 0:
        return None
    text = f"the index of a chunk leaves out {more} messages that are in it: they are not shown"
    return Problem("index", pos, 0, True, text)


def repair(claims: IndexClaims, data: Buffer, base: int, end: int, pos: int) -> Problem:
    """Fill in the places of a chunk's messages by reading the chunk, whose index is wrong; return the problem.

    data, base, end  the bytes that contain the chunk, and the interval of the chunk in them
    pos              file offset of the chunk

    A claim is matched with a message of its connection and time; each message matches one claim at most. Claims
    without a message get MISSING_SIZE.
    """
    unmatched: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    total = 0
    for part in _read(data, base, end):
        total += len(part.key)
        starts = (part.entry.astype("i8") + (part.base - base)).tolist()
        rows = zip(part.key.tolist(), part.time.tolist(), starts, part.size.tolist(), strict=True)
        for key, time, start, size in rows:
            unmatched[key, time].append((start, size))
    for places in unmatched.values():
        places.reverse()
    matched = 0
    for i, claim in enumerate(zip(claims.conn.tolist(), claims.time.tolist(), strict=True)):
        place = unmatched[claim].pop() if unmatched.get(claim) else None
        matched += place is not None
        claims.entry[i], claims.size[i] = place or (0, MISSING_SIZE)
    missing, more = len(claims.conn) - matched, total - matched
    text = "the index of a chunk does not fit its messages: they were read instead"
    text += f"; {missing} that it names are not there" if missing else ""
    text += f"; {more} that it does not name are left out" if more else ""
    return Problem("index", pos, 0, bool(missing or more), text)


def read_messages(data: Buffer) -> ChunkMessages:
    """Return all messages in the bytes of a chunk."""
    parts = _read(data, 0, len(data))
    none = np.zeros(0, np.int64)
    key, time, entry, size = (
        np.concatenate([none, *(getattr(part, name) for part in parts)])
        for name in ("key", "time", "entry", "size")
    )
    entry += np.repeat(np.array([part.base for part in parts], np.int64), [len(part.key) for part in parts])
    return ChunkMessages(FILE, 0, 0, len(data), key, time, entry.astype(np.uint32), size.astype(np.uint32))


def _count(data: Buffer, base: int, end: int) -> int:
    return sum(len(part.key) for part in _read(data, base, end))


def _read(data: Buffer, base: int, end: int) -> list[ChunkMessages]:
    return read_region(Region(Source(data, ""), FILE, base, end), ignore_record, [])[0]


#: Least number of runs (connections in chunks) that a thread locates.
RUNS_PER_THREAD = 64


def run_starts(count: I64) -> I64:
    """Return int64[k+1], the start of each of k consecutive runs of *count* elements, and the end of the last one."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])


def ascending_runs(entry: NDArray[np.uint32], start: I64) -> NDArray[np.bool_]:
    """Return bool[k], whether each run entry[start[i]:start[i + 1]] ascends strictly."""
    falls = np.flatnonzero(entry[1:] <= entry[:-1]) + 1
    inside = falls[start[start.searchsorted(falls)] != falls]
    ascends = np.ones(len(start) - 1, bool)
    ascends[np.searchsorted(start, inside, side="right") - 1] = False
    return ascends


def _order(channel: NDArray[Any], entry: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Return the order of rows by channel, in a channel by offset; None if they are in this order."""
    rising = entry[1:] > entry[:-1]
    if ((channel[1:] > channel[:-1]) | ((channel[1:] == channel[:-1]) & rising)).all():
        return None
    return np.argsort(channel, kind="stable") if rising.all() else np.lexsort((entry, channel))


def by_channel(
    messages: IndexedMessages, known: Channels
) -> tuple[I64, I64, NDArray[np.uint32], NDArray[np.uint32]]:
    """Return messages ordered by chunk and channel, those of a channel in a chunk by their place.

    Returns int64[k, channels + 1], the start of each channel in the others: int64[n] times in ns, uint32[n] offsets of
    records in the chunks, uint32[n] connections.
    """
    number, _channels = known.number, len(known)
    row, conn, count = messages.run.T
    channel = np.array([number[c] for c in conn.tolist()], np.int64)
    rows = len(messages.pos)
    start = starts_of(messages.run, rows, known)
    time, entry, key = messages.time, messages.entry, np.repeat(conn.astype(np.uint32), count)
    order = np.lexsort((channel, row))
    if (order[1:] < order[:-1]).any():
        first = run_starts(count)[order]
        at = np.repeat(first - run_starts(count[order])[:-1], count[order]) + np.arange(len(time))
        time, entry, key = time[at], entry[at], key[at]
    # So far the connections of a channel are one after another, not in the order of the file.
    edges = start.ravel()
    for k in np.flatnonzero(~ascending_runs(entry, np.append(edges, len(entry)))).tolist():
        span = slice(int(edges[k]), int(edges[k + 1]))
        by_place = np.argsort(entry[span], kind="stable")
        time[span], entry[span], key[span] = (a[span][by_place] for a in (time, entry, key))
    return start, time, entry, key


def starts_of(run: I64, rows: int, known: Channels) -> I64:
    """Return int64[rows, channels + 1], the start of each channel of each chunk among all messages.

    run  int64[m, 3]  chunk number, connection and number of messages
    """
    row, conn, count = run.T
    channel = np.array([known.number[c] for c in conn.tolist()], np.int64)
    counts = np.zeros((rows, len(known)), np.int64)
    np.add.at(counts, (row, channel), count)
    start = np.zeros((rows, len(known) + 1), np.int64)
    start[:, 1:] = np.cumsum(counts, axis=1)
    start += run_starts(counts.sum(axis=1))[:-1, None]
    return start


def turns_of(conn: NDArray[np.uint32], known: Channels) -> NDArray[np.uint32] | None:
    """Return uint32[n]: the number of each connection in its channel; None if every channel has one connection."""
    if not known.are_several:
        return None
    keys = np.array(sorted(known.number), np.uint32)
    turn = np.array([known.turn[k] for k in keys.tolist()], np.uint32)
    return turn[keys.searchsorted(conn)]


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """What is known of each of the n messages of a block table.

    conn  uint32[n]  connection
    time  int64[n]   ns
    size  uint32[n]  bytes
    turn  uint32[n]  number of its connection in its channel; None if every channel has one connection
    """

    conn: NDArray[np.uint32]
    time: I64
    size: NDArray[np.uint32]
    turn: NDArray[np.uint32] | None = None


@dataclass(frozen=True, slots=True)
class ChunkColumns:
    """What is known of the chunk of each of the b blocks of a block table.

    pos   int64[b]     file offset, for the offsets of problems
    end   int64[b]     offset of the end of its data, in the file or in the decompressed chunk
    span  int64[b, 2]  first and last time as the bag states them, -1 if not stated; or None
    """

    pos: I64
    end: I64
    span: I64 | None = None


class IndexBuilder:
    """All messages of a bag by block and channel; ``index`` returns the MessageIndex.

    by_index  True: entries are offsets of records as the bag's index has them, and sizes are unknown; offsets and
              sizes of payloads are read from the records when needed
    """

    def __init__(
        self,
        blocks: Blocks,
        messages: MessageColumns,
        of_chunks: ChunkColumns,
        chunks: Chunks,
        problems: list[Problem],
        by_index: bool = False,
    ) -> None:
        self._blocks, self._chunks, self._problems = blocks, chunks, problems
        self._conn, self._time, self._size, self._turn = (
            messages.conn,
            messages.time,
            messages.size,
            messages.turn,
        )
        self._pos, self._end, self._span = of_chunks.pos, of_chunks.end, of_chunks.span
        self._pending = np.full(len(self._pos), by_index)
        self._lock = Lock()

    @classmethod
    def from_messages(
        cls, parts: list[ChunkMessages], known: Channels, chunks: Chunks, problems: list[Problem]
    ) -> IndexBuilder:
        """Build the table of messages that were found by reading; messages of unknown connections are reported."""
        number, channels = known.number, len(known)
        n = sum(len(p.key) for p in parts)
        times, sizes, entries = np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n, np.uint32)
        start = np.zeros((len(parts), channels + 1), np.int64)
        used = 0
        turns = np.empty(n if known.are_several else 0, np.uint32)
        keys = np.array(sorted(number), np.int64)
        turn_of = np.array([known.turn[k] for k in keys.tolist()], np.uint32)
        target = np.array([number[k] for k in keys.tolist()], np.int64)
        for row, p in enumerate(parts):
            at = np.searchsorted(keys, p.key)
            at[at == len(keys)] = 0
            fits = keys[at] == p.key if len(keys) else np.zeros(len(p.key), bool)
            channel = np.where(fits, target[at] if len(keys) else 0, channels)
            here = int(fits.sum())
            sorting = _order(channel.astype(np.uint16 if channels < 65535 else np.int64), p.entry)
            order = slice(0, here) if sorting is None else sorting[:here]
            if here < len(p.key):
                text = f"{len(p.key) - here} messages of connections that nothing describes"
                problems.append(Problem("undeclared", p.pos, 0, True, text))
            start[row, 0] = used
            start[row, 1:] = used + np.cumsum(np.bincount(channel[order], minlength=channels))
            span = slice(used, used + here)
            entries[span], times[span], sizes[span] = p.entry[order], p.time[order], p.size[order]
            if len(turns):
                turns[span] = turn_of[at[order]]
            used = span.stop
        base, pos, end = (np.array([getattr(p, k) for p in parts], np.int64) for k in ("base", "pos", "end"))
        chunk = np.array([p.chunk for p in parts], np.int32)
        blocks = Blocks(base, chunk, start, entries[:used])
        none, turn = np.zeros(0, np.uint32), turns[:used] if known.are_several else None
        messages = MessageColumns(none, times[:used], sizes[:used], turn)
        return cls(blocks, messages, ChunkColumns(pos, end), chunks, problems)

    @classmethod
    def from_index(
        cls, messages: IndexedMessages, known: Channels, chunks: Chunks, problems: list[Problem]
    ) -> IndexBuilder:
        """Build the table of messages that the index names."""
        start, time, entry, key = by_channel(messages, known)
        rows = len(messages.pos)
        base = messages.data if messages.plain else np.zeros(rows, np.int64)
        chunk = np.full(rows, FILE, np.int32) if messages.plain else np.arange(rows, dtype=np.int32)
        blocks, size = Blocks(base, chunk, start, entry), np.zeros(len(time), np.uint32)
        columns = MessageColumns(key, time, size, turns_of(key, known))
        of_chunks = ChunkColumns(messages.pos, base + messages.size, messages.span)
        return cls(blocks, columns, of_chunks, chunks, problems, by_index=True)

    def bounds(self) -> tuple[int | None, int | None]:
        """Return the earliest and the latest time in ns, None and None for a bag without messages."""
        if not len(self._time):
            return None, None
        return int(self._time.min()), int(self._time.max())

    def index(self, cheap: bool) -> MessageIndex:
        """Return the MessageIndex; *cheap*: decompressing all chunks takes a fraction of a second."""
        side_columns = {} if self._turn is None else {CONNECTION: StoredValues(self._turn)}
        rule_set = ChannelRules(StoredValues(self._time), StoredValues(self._size), side_columns=side_columns)
        rules = [rule_set] * (self._blocks.start.shape[1] - 1)
        return MessageIndex(self._chunks, self._blocks, rules, None, self._resolve, cheap)

    def verify(self) -> Iterator[Finding]:
        """Yield Findings of chunks that were not read before: damage, an index that does not fit, wrong times."""
        known = len(self._problems)
        for row in np.flatnonzero(self._pending).tolist():
            self._resolve(np.array([row]))
        yield from map(Finding.of, self._problems[known:])
        if self._span is not None:
            yield from self._verify_times(self._span)

    def _verify_times(self, span: I64) -> Iterator[Finding]:
        """Yield a Finding if messages of chunks have other times than the summary states in *span*."""
        first, last = self._blocks.start[:, 0], self._blocks.start[:, -1]
        rows = np.flatnonzero((last > first) & (span >= 0).all(axis=1))
        if not len(rows):
            return
        # Rows without messages, which are left out here, are empty intervals.
        begins = first[rows].astype(np.intp)
        ends = [np.minimum.reduceat(self._time, begins), np.maximum.reduceat(self._time, begins)]
        wrong = rows[(np.column_stack(ends) != span[rows]).any(axis=1)]
        if len(wrong):
            text = f"the summary states other times for {len(wrong)} of {len(rows)} chunks than their messages have"
            yield Finding("index", "warn", int(self._pos[wrong[0]]), 0, text, None, None, len(wrong))

    def _resolve(self, rows: I64) -> None:
        """Read offset and size of the payloads of some blocks, if not done before; thread-safe."""
        with self._lock:
            rows = rows[self._pending[rows]]
            if not len(rows):
                return
            chunk = self._blocks.chunk[rows]
            order = np.argsort(chunk, kind="stable")
            numbers, first = np.unique(chunk[order], return_index=True)
            for number, part in zip(numbers.tolist(), np.split(rows[order], first[1:]), strict=True):
                self._locate(self._chunks[number], part)
            self._pending[rows] = False

    def _locate(self, data: Buffer, rows: I64) -> None:
        """Read offset and size of the payloads of blocks whose chunk is *data*."""
        b = self._blocks
        end = np.minimum(self._end[rows], len(data))
        runs = np.empty((len(rows), b.start.shape[1] - 1, 4), np.int64)
        runs[:, :, 0], runs[:, :, 1] = b.start[rows, :-1], b.start[rows, 1:]
        runs[:, :, 2], runs[:, :, 3] = b.base[rows, None], end[:, None]
        flat = runs.reshape(-1, 4)
        good = np.zeros(len(flat), np.int64)
        out = self._conn, b.entry, self._time, self._size
        run(
            [
                partial(rosbag.locate_messages, data, flat[part], *out, good[part])
                for part in shares(len(flat), RUNS_PER_THREAD)
            ]
        )
        wrong = good.reshape(len(rows), -1).sum(axis=1) < b.start[rows, -1] - b.start[rows, 0]
        for i, row in enumerate(rows.tolist()):
            where = data, int(b.base[row]), int(end[i]), int(self._pos[row])
            span = slice(int(b.start[row, 0]), int(b.start[row, -1]))
            problem = self._check_chunk(span, bool(wrong[i]), where)
            self._problems += [problem] if problem else []

    def _check_chunk(self, span: slice, wrong: bool, where: tuple[Buffer, int, int, int]) -> Problem | None:
        """Return the problem of a chunk's index, None without one; a *wrong* index is repaired.

        span   rows of the chunk's messages
        wrong  True if some message is not where the index says
        """
        if not wrong:
            return omission_problem(self._size[span], *where)
        claims = IndexClaims(self._blocks.entry[span], self._size[span], self._conn[span], self._time[span])
        return repair(claims, *where)


def build_index(
    messages: list[ChunkMessages] | IndexedMessages,
    known: Channels,
    chunks: Chunks,
    problems: list[Problem],
) -> IndexBuilder:
    """Return the IndexBuilder of messages found by reading or named by the index; *known*: channels by connection."""
    if isinstance(messages, IndexedMessages):
        return IndexBuilder.from_index(messages, known, chunks, problems)
    return IndexBuilder.from_messages(messages, known, chunks, problems)
