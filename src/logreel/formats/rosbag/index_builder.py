"""Messages found chunk by chunk become the block table of the index."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding, Problem
from logreel.formats.rosbag.connections import CONNECTION, Channels
from logreel.formats.rosbag.found import Claims, Found, Indexed
from logreel.index.block_table import Blocks
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, StoredValues
from logreel.io.arrays import I64
from logreel.io.chunks import FILE, Buffer, Chunks
from logreel.io.parallel import run, shares
from logreel.kernels import rosbag

#: Fewer connections in chunks than this are not worth a thread.
RUNS_PER_THREAD = 64


def concatenated(count: I64) -> I64:
    """int64[k+1]: where each of k stretches of *count* begins when they lie one after another, and the end."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])


def ascending(entry: NDArray[np.uint32], start: I64) -> NDArray[np.bool_]:
    """bool[k]: whether each entry[start[i]:start[i + 1]] ascends."""
    falls = np.flatnonzero(entry[1:] <= entry[:-1]) + 1
    inside = falls[~np.isin(falls, start)] if len(falls) else falls
    found = np.ones(len(start) - 1, bool)
    found[np.searchsorted(start, inside, side="right") - 1] = False
    return found


def _order(channel: NDArray[Any], entry: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Rows by channel, those of a channel by place; None where they are in this order."""
    rising = entry[1:] > entry[:-1]
    if ((channel[1:] > channel[:-1]) | ((channel[1:] == channel[:-1]) & rising)).all():
        return None
    return np.argsort(channel, kind="stable") if rising.all() else np.lexsort((entry, channel))


class IndexBuilder:
    """All messages of a bag by block and channel; ``index`` makes the MessageIndex.

    conn   uint32[n]  connection of each message of the block table
    time   int64[n]   ns
    size   uint32[n]  bytes
    pos    int64[b]   where the chunk of each block begins in the file, to report problems at
    end    int64[b]   where its data ends, in the file or in the unpacked chunk
    by_index  True if entries and sizes are to be looked up when needed: the index tells where records are, not data
    span   int64[b, 2]  first and last time of each block as the bag states them, -1 where it does not; or none
    turn   int64[n]   which of its channel's connections each message came by; or none where channels have one
    """

    def __init__(
        self,
        blocks: Blocks,
        conn: NDArray[np.uint32],
        time: I64,
        size: NDArray[np.uint32],
        pos: I64,
        end: I64,
        problems: list[Problem],
        by_index: bool = False,
        span: I64 | None = None,
        turn: NDArray[np.uint32] | None = None,
    ) -> None:
        self._turn = turn
        self._blocks, self._conn, self._time, self._size = blocks, conn, time, size
        self._pos, self._end, self._problems = pos, end, problems
        self._pending = np.full(len(pos), by_index)
        self._span = span
        self._lock = Lock()

    @classmethod
    def of_parts(cls, parts: list[Found], known_as: Channels, problems: list[Problem]) -> IndexBuilder:
        """Of messages that were found by reading; *known_as* tells the channel of a key."""
        number, channels = known_as.number, len(known_as)
        n = sum(len(p.key) for p in parts)
        times, sizes, entries = np.empty(n, np.int64), np.empty(n, np.uint32), np.empty(n, np.uint32)
        start = np.zeros((len(parts), channels + 1), np.int64)
        used = 0
        turns = np.empty(n if known_as.are_several else 0, np.uint32)
        known = np.array(sorted(number), np.int64)
        turn_of = np.array([known_as.turn[k] for k in known.tolist()], np.uint32)
        target = np.array([number[k] for k in known.tolist()], np.int64)
        for row, p in enumerate(parts):
            at = np.searchsorted(known, p.key)
            at[at == len(known)] = 0
            fits = known[at] == p.key if len(known) else np.zeros(len(p.key), bool)
            channel = np.where(fits, target[at] if len(known) else 0, channels)
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
        none, turn = np.zeros(0, np.uint32), turns[:used] if known_as.are_several else None
        return cls(blocks, none, times[:used], sizes[:used], pos, end, problems, turn=turn)

    @classmethod
    def of_index(cls, found: Indexed, known_as: Channels, problems: list[Problem]) -> IndexBuilder:
        """Of messages that the index names; *known_as* tells the channel of a connection."""
        number, channels = known_as.number, len(known_as)
        row, conn, count = found.run.T
        channel = np.array([number[c] for c in conn.tolist()], np.int64)
        chunks = len(found.pos)
        counts = np.zeros((chunks, channels), np.int64)
        np.add.at(counts, (row, channel), count)
        start = np.zeros((chunks, channels + 1), np.int64)
        start[:, 1:] = np.cumsum(counts, axis=1)
        start += concatenated(counts.sum(axis=1))[:-1, None]
        time, entry, key = found.time, found.entry, np.repeat(conn.astype(np.uint32), count)
        order = np.lexsort((channel, row))
        if (order[1:] < order[:-1]).any():
            first = concatenated(count)[order]
            rows = np.repeat(first - concatenated(count[order])[:-1], count[order]) + np.arange(len(time))
            time, entry, key = time[rows], entry[rows], key[rows]
        # Several connections of one channel lie one after another so far, not as they are in the file.
        edges = start.ravel()
        for k in np.flatnonzero(~ascending(entry, np.append(edges, len(entry)))).tolist():
            span = slice(int(edges[k]), int(edges[k + 1]))
            by_place = np.argsort(entry[span], kind="stable")
            time[span], entry[span], key[span] = (a[span][by_place] for a in (time, entry, key))
        base = found.data if found.plain else np.zeros(chunks, np.int64)
        chunk = np.full(chunks, FILE, np.int32) if found.plain else np.arange(chunks, dtype=np.int32)
        blocks, size = Blocks(base, chunk, start, entry), np.zeros(len(time), np.uint32)
        turn = None
        if known_as.are_several:
            known = np.array(sorted(number), np.uint32)
            turn = np.array([known_as.turn[k] for k in known.tolist()], np.uint32)[known.searchsorted(key)]
        return cls(blocks, key, time, size, found.pos, base + found.size, problems, True, found.span, turn)

    def bounds(self) -> tuple[int | None, int | None]:
        """The earliest and the latest time, None for a bag without messages."""
        if not len(self._time):
            return None, None
        return int(self._time.min()), int(self._time.max())

    def index(self, chunks: Chunks, cheap: bool) -> MessageIndex:
        """The MessageIndex over *chunks*; *cheap*: unpacking all of them takes no time that people notice."""
        self._chunks = chunks
        side_columns = {} if self._turn is None else {CONNECTION: StoredValues(self._turn)}
        rule_set = ChannelRules(StoredValues(self._time), StoredValues(self._size), side_columns=side_columns)
        rules = [rule_set] * (self._blocks.start.shape[1] - 1)
        return MessageIndex(chunks, self._blocks, rules, None, self._resolve, cheap)

    def verify(self) -> Iterator[Finding]:
        """What looking into chunks tells that nobody read: packed ones that are damaged, an index that does not fit."""
        known = len(self._problems)
        for row in np.flatnonzero(self._pending).tolist():
            self._resolve(np.array([row]))
        yield from map(Finding.of, self._problems[known:])
        if self._span is not None:
            yield from self._misdated(self._span)

    def _misdated(self, span: I64) -> Iterator[Finding]:
        """Chunks whose messages have other times than the summary states, *span*."""
        first, last = self._blocks.start[:, 0], self._blocks.start[:, -1]
        rows = np.flatnonzero((last > first) & (span >= 0).all(axis=1))
        if not len(rows):
            return
        # Stretches lie one after another; empty ones between them take nothing.
        ends = [np.minimum.reduceat(self._time, first[rows]), np.maximum.reduceat(self._time, first[rows])]
        wrong = rows[(np.column_stack(ends) != span[rows]).any(axis=1)]
        if len(wrong):
            text = f"the summary states other times for {len(wrong)} of {len(rows)} chunks than their messages have"
            yield Finding("index", "warn", int(self._pos[wrong[0]]), 0, text, None, None, len(wrong))

    def _resolve(self, rows: I64) -> None:
        """Look up where the data of the messages of some blocks lies; several threads may ask at once."""
        with self._lock:
            rows = rows[self._pending[rows]]
            for chunk in np.unique(self._blocks.chunk[rows]).tolist():
                self._locate(self._chunks[chunk], rows[self._blocks.chunk[rows] == chunk])
            self._pending[rows] = False

    def _locate(self, data: Buffer, rows: I64) -> None:
        """Look up where the data of the messages of blocks in *data* lies."""
        b = self._blocks
        end = np.minimum(self._end[rows], len(data))
        runs = np.empty((len(rows), b.start.shape[1] - 1, 4), np.int64)
        runs[:, :, 0], runs[:, :, 1] = b.start[rows, :-1], b.start[rows, 1:]
        runs[:, :, 2], runs[:, :, 3] = b.base[rows, None], end[:, None]
        flat = runs.reshape(-1, 4)
        good = np.zeros(len(flat), np.int64)

        def locate(_: int, part: slice) -> None:
            rosbag.locate_messages(data, flat[part], self._conn, b.entry, self._time, self._size, good[part])

        run(locate, shares(len(flat), RUNS_PER_THREAD))
        wrong = good.reshape(len(rows), -1).sum(axis=1) < b.start[rows, -1] - b.start[rows, 0]
        for i, row in enumerate(rows.tolist()):
            where = data, int(b.base[row]), int(end[i]), int(self._pos[row])
            told = self._told(slice(int(b.start[row, 0]), int(b.start[row, -1])), bool(wrong[i]), where)
            self._problems += [told] if told else []

    def _told(self, span: slice, wrong: bool, where: tuple[Buffer, int, int, int]) -> Problem | None:
        """What to report of a chunk, whose messages stand at *span*; where the index is *wrong* it is put right."""
        from logreel.formats.rosbag.omitted import omitted
        from logreel.formats.rosbag.repair import repair

        if not wrong:
            return omitted(self._size[span], *where)
        claims = Claims(self._blocks.entry[span], self._size[span], self._conn[span], self._time[span])
        return repair(claims, *where)


def build_index(messages: list[Found] | Indexed, known_as: Channels, problems: list[Problem]) -> IndexBuilder:
    """All *messages*; *known_as* tells the channel of a key or connection."""
    if isinstance(messages, Indexed):
        return IndexBuilder.of_index(messages, known_as, problems)
    return IndexBuilder.of_parts(messages, known_as, problems)
