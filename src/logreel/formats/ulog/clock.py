"""The times of a ULog: robust bounds, short timestamps unwrapped, and moments for records that carry none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from logreel.formats.ulog.definitions import Stamp
from logreel.index.block_table import TIME_MAX
from logreel.index.message_index import MessageIndex
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.kernels import block_table as kernel

NS_PER_US = 1000
#: Two topics end within this of each other in a sound log; a lone later stamp is not the end of the log.
SUPPORT_NS = 60 * 10**9
#: A header time at or after this is a wall clock: 2001-09-09 in microseconds since 1970.
UNIX_US = 10**15
#: Nor is a wall clock after 2096: such a number is damaged.
LATEST_US = 4 * 10**15
#: Information, int64_t, that logreel writes into parts of a log, whose other content may tell UTC no more: ns to add.
UTC_OFFSET = "logreel_utc_offset_ns"


def word_of(stamp: Stamp) -> FieldAt:
    """The timestamp of a message as a FieldAt in ns."""
    return FieldAt(stamp.offset, stamp.width, stamp.unit * NS_PER_US)


def bounds(
    index: MessageIndex, channels: Sequence[int], header_us: int, texts: Sequence[int] = ()
) -> tuple[int | None, int | None]:
    """First and last moment in ns, robust against single absurd stamps; None for a log without data.

    Looks at the first and the last two messages of each channel only. Zero stamps count as no stamp, and a last stamp
    counts only if another one lies near it, or all are of one channel. The header's start time holds where the data
    does not contradict it.

    texts  times of logged text, which tell where there are no messages
    """
    ends: list[int] = []
    firsts: list[int] = []
    told = 0
    for c in channels:
        n = int(index.counts[c])
        if not n:
            continue
        edge = index.times_at(c, np.array([0, max(0, n - 2), n - 1], np.int64)).tolist()
        ends += [t for t in edge[1:] if t] if n > 1 else [t for t in edge[:1] if t]
        told += 1
        if edge[0]:
            firsts.append(edge[0])
    if not ends and texts:
        told, ends, firsts = 1, [max(texts)], [min(texts)]
    if not ends:
        return (
            (header_us * NS_PER_US, header_us * NS_PER_US)
            if 0 < header_us < TIME_MAX // NS_PER_US
            else (None, None)
        )
    ends.sort()
    while told > 1 and len(ends) > 1 and ends[-1] - ends[-2] > SUPPORT_NS:
        ends.pop()
    end = ends[-1]
    start = header_us * NS_PER_US
    if not 0 < start <= end:
        sane = [t for t in firsts if t <= end] or [end]
        start = min(sane)
    return start, end


class Neighbours:
    """Moments for records without a time of their own: the latest data time before them.

    Works block by block over the records asked for, so that nothing is gathered for blocks without any. Times after
    the end of the log are absurd stamps and do not count.
    """

    def __init__(
        self, index: MessageIndex, channels: Sequence[int], start: int | None, end: int | None
    ) -> None:
        self._index, self._start = index, start or 0
        self._end = TIME_MAX if end is None else end
        fields = ((c, index.rules[c].time_field) for c in channels)
        rows = [(c, field.offset, field.width, field.mul) for c, field in fields if field is not None]
        self._words = np.array(rows, np.int64).reshape(-1, 4)

    def before(self, positions: I64) -> I64:
        """int64[n] ns: for each file position the largest data time before it, the start of the log if none."""
        out = np.full(len(positions), self._start, np.int64)
        order = np.argsort(positions, kind="stable")
        places = positions[order]
        blocks = np.searchsorted(self._index.blocks.base, places, side="right") - 1
        before, top = -2, 0
        for b in np.unique(blocks).tolist():
            if b < 0:
                continue
            # Records at the start of a block look back into the one before it.
            if b and before != b - 1:
                top = int(self._latest(b - 1, places[:0])[-1])
            lo, hi = np.searchsorted(blocks, [b, b + 1]).tolist()
            found = self._latest(b, places[lo:hi])
            out[order[lo:hi]] = np.maximum(np.maximum(self._start, found[:-1]), top)
            before, top = b, int(found[-1])
        return out

    def _latest(self, block: int, places: I64) -> I64:
        """int64[n + 1] ns: the largest data time of a block before each place (ascending), and of all; 0 if none."""
        table, out = self._index.blocks, np.empty(len(places) + 1, np.int64)
        data = self._index.chunks[int(table.chunk[block])]
        where = int(table.base[block]), table.start[block], table.entry
        kernel.latest_times(data, *where, self._words, self._end, np.append(places, TIME_MAX), out)
        return out


class ShortClocks:
    """Full times of the channels whose timestamps are shorter than 64 bits, worked out together when first asked.

    Each message gets the first time with the stored residue that is not before its predecessor's, and as many whole
    periods more as bring it nearest to what the rest of the stream says: rows of other topics, logged text, dropouts.

    marks  gives file positions, and either a time in ns or (dropouts) the ns by which the clock moves on
    """

    def __init__(
        self,
        stamps: dict[int, Stamp],
        start: int,
        neighbours: Callable[[], Neighbours],
        marks: Callable[[], list[tuple[int, int, bool]]],
    ) -> None:
        self._stamps, self._start, self._neighbours, self._marks = stamps, start, neighbours, marks
        self._times: dict[int, I64] = {}

    def of(self, channel: int) -> Callable[[MessageIndex], I64]:
        """The rule for the times of *channel*."""

        def times(index: MessageIndex) -> I64:
            if not self._times:
                self._times = self._work_out(index)
            return self._times[channel]

        return times

    def _work_out(self, index: MessageIndex) -> dict[int, I64]:
        marks = self._marks()
        offsets = {c: index.offsets(c) for c in self._stamps}
        clocks = {c: self._neighbours().before(at).tolist() for c, at in offsets.items()}
        raws = {
            c: FieldAt(s.offset, s.width, s.unit * NS_PER_US).values(index, c).tolist()
            for c, s in self._stamps.items()
        }
        steps = [(at, c, i) for c, o in offsets.items() for i, at in enumerate(o.tolist())]
        steps += [(at, -1, k) for k, (at, _, _) in enumerate(marks)]
        out = {c: np.empty(len(at), np.int64) for c, at in offsets.items()}
        last = dict.fromkeys(self._stamps, self._start)
        now = self._start
        for _, c, i in sorted(steps):
            if c < 0:
                _, value, moves = marks[i]
                now = now + value if moves else max(now, value)
                continue
            stamp = self._stamps[c]
            period = stamp.unit * NS_PER_US << (8 * stamp.width)
            now = max(now, clocks[c][i])
            time = last[c] + (raws[c][i] - last[c]) % period
            if now - time > period // 2:
                time += (now - time + period // 2 - 1) // period * period
            last[c] = time
            # A damaged stamp of another record may have led beyond what 64 bits hold.
            out[c][i] = min(time, TIME_MAX)
            now = max(now, time)
        return out
