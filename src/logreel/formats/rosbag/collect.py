"""Messages found chunk by chunk become the block table of the index."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.kernels import tagged
from logreel.model.chunks import FILE, Chunks
from logreel.model.index import I64, Aligned, Blocks, MessageIndex, Track

#: Blocks of files without chunks: relative positions must fit 32 bits.
MAX_SPAN = 1 << 31


@dataclass(slots=True)
class Found:
    """The messages of one chunk (or stretch of a file without chunks).

    chunk  its number, FILE if it lies in the file as it is
    pos    where it begins in the file, to report problems at
    base   what *entry* counts from
    end    where its data ends, in the file or in the unpacked chunk
    key    int64[n]    connection of each message; those of one connection are in file order
    time   int64[n]    ns
    entry  uint32[n]   start of the message's data; with *size* None of its record, to be looked up when needed
    size   uint32[n]   bytes of it
    """

    chunk: int
    pos: int
    base: int
    end: int
    key: NDArray[np.int64]
    time: I64
    entry: NDArray[np.uint32]
    size: NDArray[np.uint32] | None


@dataclass(frozen=True, slots=True)
class Claims:
    """What the index of a chunk says: start and size of the data (to be filled in), connection and time in ns."""

    entry: NDArray[np.uint32]
    size: NDArray[np.uint32]
    key: I64
    time: I64


def _order(channel: NDArray[Any], entry: NDArray[np.uint32]) -> NDArray[np.int64] | None:
    """Rows by channel, those of a channel by place; None where they are in this order."""
    rising = entry[1:] > entry[:-1]
    if ((channel[1:] > channel[:-1]) | ((channel[1:] == channel[:-1]) & rising)).all():
        return None
    return np.argsort(channel, kind="stable") if rising.all() else np.lexsort((entry, channel))


class Collected:
    """All messages of a bag by block and channel; ``index`` makes the MessageIndex."""

    def __init__(
        self, parts: list[Found], number: dict[int, int], channels: int, problems: list[Problem]
    ) -> None:
        self._problems, self._lock = problems, Lock()
        n = sum(len(p.key) for p in parts)
        self._time, self._size = np.empty(n, np.int64), np.zeros(n, np.uint32)
        self._key = np.empty(n, np.int64)
        entry = np.empty(n, np.uint32)
        start = np.zeros((len(parts), channels + 1), np.int64)
        used = 0
        known = np.array(sorted(number), np.int64)
        target = np.array([number[k] for k in known.tolist()], np.int64)
        for row, p in enumerate(parts):
            at = np.searchsorted(known, p.key)
            at[at == len(known)] = 0
            fits = known[at] == p.key if len(known) else np.zeros(len(p.key), bool)
            channel = np.where(fits, target[at] if len(known) else 0, channels)
            here = int(fits.sum())
            sorting = _order(channel.astype(np.uint16 if channels < 65535 else np.int64), p.entry)
            order = slice(0, here) if sorting is None else sorting[:here]
            counts = np.bincount(channel[order], minlength=channels)
            if here < len(p.key):
                self._undeclared(p, len(p.key) - here)
            start[row, 0] = used
            start[row, 1:] = used + np.cumsum(counts)
            span = slice(used, used + here)
            entry[span], self._time[span], self._key[span] = p.entry[order], p.time[order], p.key[order]
            if p.size is not None:
                self._size[span] = p.size[order]
            used = span.stop
        self._time, self._size, self._key = self._time[:used], self._size[:used], self._key[:used]
        base = np.array([p.base for p in parts], np.int64)
        chunk = np.array([p.chunk for p in parts], np.int32)
        self._blocks = Blocks(base, chunk, start, entry[:used])
        self._pos, self._ends = [p.pos for p in parts], [p.end for p in parts]
        self._pending = np.array([p.size is None for p in parts], bool)

    def _undeclared(self, part: Found, count: int) -> None:
        text = f"{count} messages of connections that nothing describes"
        self._problems.append(Problem("undeclared", part.pos, 0, True, text))

    def bounds(self) -> tuple[int | None, int | None]:
        """The earliest and the latest time, None for a bag without messages."""
        if not len(self._time):
            return None, None
        return int(self._time.min()), int(self._time.max())

    def index(self, chunks: Chunks, cheap: bool) -> MessageIndex:
        """The MessageIndex over *chunks*; *cheap*: unpacking all of them takes no time that people notice."""
        self._chunks = chunks
        tracks = [Track(Aligned(self._time), Aligned(self._size))] * (self._blocks.start.shape[1] - 1)
        return MessageIndex(chunks, self._blocks, tracks, None, self._resolve, cheap)

    def _resolve(self, rows: NDArray[np.int64]) -> None:
        """Look up where the data of the messages of some blocks lies; several threads may ask at once."""
        with self._lock:
            for row in rows[self._pending[rows]].tolist():
                self._locate(row)
                self._pending[row] = False

    def _locate(self, row: int) -> None:
        """Look up where the data of the messages of one block lies."""
        b = self._blocks
        base, data = int(b.base[row]), self._chunks[int(b.chunk[row])]
        end = min(self._ends[row], len(data)) if int(b.chunk[row]) == FILE else len(data)
        cuts = b.start[row].tolist()
        good = 0
        for lo, hi in itertools.pairwise(cuts):
            entry, time, size = b.entry[lo:hi], self._time[lo:hi], self._size[lo:hi]
            good += tagged.locate(data, base, end, self._key[lo:hi], entry, time, size) if hi > lo else 0
        span = slice(cuts[0], cuts[-1])
        if good == cuts[-1] - cuts[0]:
            from logreel.formats.rosbag.omitted import omitted

            problem = omitted(self._size[span], data, base, end, self._pos[row])
            self._problems += [problem] if problem else []
        else:
            from logreel.formats.rosbag.repair import repair

            claims = Claims(b.entry[span], self._size[span], self._key[span], self._time[span])
            self._problems.append(repair(claims, data, base, end, self._pos[row]))
