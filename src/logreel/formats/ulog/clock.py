"""Times of a ULog: robust bounds, unwrapped short timestamps, and times for records that carry none."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from logreel.formats.ulog.definitions import TimestampField
from logreel.index.block_table import TIME_MAX, Blocks
from logreel.index.message_index import MessageIndex
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64, distinct
from logreel.io.chunks import Chunks
from logreel.io.parallel import run, shares
from logreel.kernels import block_table as kernel

NS_PER_US = 1000
#: Least number of blocks that a thread looks through.
SHARE = 16
#: Two topics end within this of each other in a sound log; a lone later stamp is not the end of the log.
SUPPORT_NS = 60 * 10**9
#: A header time at or after this is a wall clock: 2001-09-09 in microseconds since 1970.
UNIX_US = 10**15
#: Nor is a wall clock after 2096: such a number is damaged.
LATEST_US = 4 * 10**15
#: Topics whose times go back by more than this right after damage belong to another log (real jitter is below 2 s).
BACKWARDS_US = 2_000_000
#: Information, int64_t, that logreel writes into parts of a log, whose other content may no longer give UTC: ns to add.
UTC_OFFSET = "logreel_utc_offset_ns"


class TimeMark(NamedTuple):
    """A record from which the full time of short timestamps follows.

    offset  its file position
    ns      a time, or the ns by which time has moved on
    moves   True: *ns* is a duration (dropouts)
    """

    offset: int
    ns: int
    moves: bool


def field_of(stamp: TimestampField) -> FieldAt:
    """Return the timestamp of a message as a FieldAt in ns."""
    return FieldAt(stamp.offset, stamp.width, stamp.unit * NS_PER_US)


def edge_rows(count: int) -> list[int]:
    """Return the rows of a channel that ``bounds`` looks at: the first message and the last two."""
    return [0, *range(max(0, count - 2), count)]


def bounds(
    edges: Sequence[Sequence[int]], header_us: int, texts: Sequence[int] = ()
) -> tuple[int | None, int | None]:
    """Return the first and the last moment in ns, robust against single absurd stamps; None for a log without data.

    Zero stamps count as no stamp, unless all channels begin with them, and a last stamp counts only if another one lies
    near it, or all are of one channel.
    The header's start time holds unless the data contradicts it.

    edges  for each channel with messages the times of its ``edge_rows``
    texts  times of the first and the last logged string
    """
    ends = sorted(t for _, *last in edges for t in last if t)
    firsts, channels = [first for first, *_ in edges if first], len(edges)
    if texts:
        # A logged string may be the last record of a log, and like a channel it needs support.
        firsts, channels = firsts if ends else [min(texts)], channels + 1 if ends else 1
        ends = sorted([*ends, max(texts)])
    if not ends:
        known = 0 < header_us < TIME_MAX // NS_PER_US
        return (header_us * NS_PER_US, header_us * NS_PER_US) if known else (None, None)
    while channels > 1 and len(ends) > 1 and ends[-1] - ends[-2] > SUPPORT_NS:
        ends.pop()
    end = ends[-1]
    start = header_us * NS_PER_US
    if not 0 < start <= end:
        # A clock that begins at 0 and runs is known by the later stamps of its channel.
        begins_at_0 = any(first == 0 and any(last) for first, *last in edges)
        start = min([t for t in firsts if t <= end] or [0 if begins_at_0 else end])
    return start, end


class LatestTimes:
    """Times for records without one: the latest data time before a file position.

    Reads the blocks asked for, block by block, and no others. Times after the end of the log are absurd and do not
    count.

    stamps  the field with the full timestamp, in ns, by channel
    """

    def __init__(
        self,
        chunks: Chunks,
        blocks: Blocks,
        stamps: Mapping[int, FieldAt],
        start: int | None,
        end: int | None,
    ) -> None:
        self._chunks, self._blocks, self._start = chunks, blocks, start or 0
        self._end = TIME_MAX if end is None else end
        words = [(c, w.offset, w.width, w.mul) for c, w in stamps.items()]
        self._words = np.array(words, np.int64).reshape(-1, 4)

    def before(self, positions: I64) -> I64:
        """Return int64[n] ns: the largest data time before each file position, or the start of the log."""
        out = np.full(len(positions), self._start, np.int64)
        order = np.argsort(positions, kind="stable")
        places = positions[order]
        blocks = np.searchsorted(self._blocks.base, places, side="right") - 1
        asked = distinct(blocks[blocks >= 0])
        # Records at the start of a block look back into the one before it.
        numbers = distinct(np.concatenate([asked, asked[asked > 0] - 1])).tolist()
        cuts = np.searchsorted(blocks, [numbers, [b + 1 for b in numbers]]).T.tolist()

        def part(_: int, share: slice) -> list[I64]:
            return [
                self._latest(b, places[lo:hi])
                for b, (lo, hi) in zip(numbers[share], cuts[share], strict=True)
            ]

        latest = dict(zip(numbers, itertools.chain(*run(part, shares(len(numbers), SHARE))), strict=True))
        for b, (lo, hi) in zip(numbers, cuts, strict=True):
            top = max(self._start, int(latest[b - 1][-1]) if b - 1 in latest else 0)
            out[order[lo:hi]] = np.maximum(latest[b][:-1], top)
        return out

    def _latest(self, block: int, places: I64) -> I64:
        """Return int64[n + 1] ns: the largest data time of a block before each place (ascending), and in all of it."""
        table, out = self._blocks, np.empty(len(places) + 1, np.int64)
        data = self._chunks[int(table.chunk[block])]
        where = int(table.base[block]), table.start[block], table.entry
        kernel.latest_times(data, *where, self._words, self._end, np.append(places, TIME_MAX), out)
        return out


class ShortClocks:
    """Full times of the channels of one segment whose timestamps are shorter than 64 bits.

    All are worked out together when the times of the first one are asked for. Each message gets the first time with the
    stored residue that is not before its predecessor's, and as many whole periods more as bring it nearest to what the
    rest of the stream says: messages of other topics, logged strings, dropouts.

    stamps  the short timestamp of each channel
    start   ns at which the segment starts
    marks   gives the logged strings and the dropouts of the segment
    """

    def __init__(
        self,
        stamps: Mapping[int, TimestampField],
        start: int,
        latest_times: LatestTimes,
        marks: Callable[[], Sequence[TimeMark]],
    ) -> None:
        self._stamps, self._start, self._latest_times, self._marks = stamps, start, latest_times, marks
        self._times: dict[int, I64] = {}

    def times(self, channel: int, index: MessageIndex) -> I64:
        """Return int64[n] ns for the messages of *channel*, whose offsets and stamps *index* gives."""
        if not self._times:
            self._times = self._unwrap(index)
        return self._times[channel]

    def _unwrap(self, index: MessageIndex) -> dict[int, I64]:
        marks = self._marks()
        offsets = {c: index.offsets(c) for c in self._stamps}
        clocks = {c: self._latest_times.before(at).tolist() for c, at in offsets.items()}
        raws = {c: field_of(s).values(index, c).tolist() for c, s in self._stamps.items()}
        steps = [(at, c, i) for c, o in offsets.items() for i, at in enumerate(o.tolist())]
        steps += [(mark.offset, -1, k) for k, mark in enumerate(marks)]
        out = {c: np.empty(len(at), np.int64) for c, at in offsets.items()}
        last = dict.fromkeys(self._stamps, self._start)
        now = self._start
        for _, c, i in sorted(steps):
            if c < 0:
                mark = marks[i]
                now = now + mark.ns if mark.moves else max(now, mark.ns)
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
