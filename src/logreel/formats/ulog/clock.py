"""Times of a ULog: robust bounds, unwrapped short timestamps, and times for records that carry none."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from logreel.dataclass import NamedTuple, dataclass, field
from logreel.errors import Problem
from logreel.formats.ulog.definitions import Definitions, TimestampField
from logreel.formats.ulog.records import DATA_HEAD
from logreel.index.block_table import TIME_MAX, Blocks
from logreel.index.channel_index import FieldAt
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64, distinct
from logreel.io.source import Chunks, Source
from logreel.kernels import block_table as kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NS_PER_US = 1000
#: Least number of blocks that a thread looks through.
SHARE = 16
#: Bytes before a position in which the latest time is looked for at first: some hundred messages.
WINDOW = 64 << 10
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

    Reads the messages of WINDOW bytes before each position; where these tell no time, those of its block and of the
    block before it, and no others. Times after the end of the log are absurd and do not count.

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
        from logreel.io.arrays import run_many

        out = np.full(len(positions), self._start, np.int64)
        order = np.argsort(positions, kind="stable")
        places = positions[order]
        blocks = np.searchsorted(self._blocks.base, places, side="right") - 1
        asked = distinct(blocks[blocks >= 0])
        # Records at the start of a block look back into the one before it.
        numbers = distinct(np.concatenate([asked, asked[asked > 0] - 1])).tolist()
        cuts = np.searchsorted(blocks, [numbers, [b + 1 for b in numbers]]).T.tolist()
        latest = {b: np.zeros(hi - lo + 1, np.int64) for b, (lo, hi) in zip(numbers, cuts, strict=True)}
        wanted = {b: places[lo:hi] for b, (lo, hi) in zip(numbers, cuts, strict=True)}
        run_many([self._latest(b, wanted[b], latest[b], WINDOW) for b in numbers], SHARE)
        unknown = [b for b in numbers if not latest[b].all()]
        run_many([self._latest(b, wanted[b], latest[b], TIME_MAX) for b in unknown], SHARE)
        for b, (lo, hi) in zip(numbers, cuts, strict=True):
            top = max(self._start, int(latest[b - 1][-1]) if b - 1 in latest else 0)
            out[order[lo:hi]] = np.maximum(latest[b][:-1], top)
        return out

    def _latest(self, block: int, places: I64, out: I64, window: int) -> Callable[[], object]:
        """Return what fills *out*, int64[n + 1] ns: the latest time before each of *places* in a block, and its end."""
        table = self._blocks
        start, base = table.start[block], int(table.base[block])
        behind = base + int(table.entry[start[0] : start[-1]].max(initial=0)) + 1
        data = self._chunks[int(table.chunk[block])]
        asked = np.append(places, max(behind, int(places[-1])) if len(places) else behind)
        return partial(
            kernel.latest_times, data, base, start, table.entry, self._words, self._end, window, asked, out
        )


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


@dataclass(slots=True)
class Topic:
    """One subscribed topic instance of one segment; several message ids may feed it.

    stamp  where its timestamp lies; None if the format has no usable one
    raw    True if the format is missing or unusable: messages have any size and are kept as bytes
    """

    name: str
    instance: int
    segment: int
    definitions: Definitions
    stamp: TimestampField | None
    raw: bool

    @property
    def channel_name(self) -> str:
        """The topic name, with the instance in brackets unless it is 0, and ``@2`` … for later segments."""
        suffix = f"[{self.instance}]" if self.instance else ""
        return self.name + suffix + (f"@{self.segment}" if self.segment > 1 else "")

    @property
    def has_full_stamp(self) -> bool:
        """Whether messages have a timestamp of 64 bits."""
        return self.stamp is not None and self.stamp.width == 8


@dataclass(frozen=True)
class Found:
    """Everything that reading found in one file, or in one of its segments.

    begin            file position of the first record after the flags
    topics           by column of *blocks*
    parsed           file positions of the records that carry definitions or keys
    notes            int64[n]: file positions of all other records that are no data
    segments         file position where each segment starts
    segment_us       start time in the file header that holds for each segment, µs
    own_definitions  whether each segment has definitions of its own
    appended         file positions where appended parts begin
    is_segment       True: one segment of a file that has several
    is_growing       True: a file that is still written
    """

    version: int
    begin: int
    topics: list[Topic]
    blocks: Blocks
    parsed: list[int]
    notes: I64
    segments: list[int]
    segment_us: list[int]
    own_definitions: list[bool]
    appended: list[int]
    problems: list[Problem] = field(default_factory=list)
    is_segment: bool = False
    is_growing: bool = False

    def segment_of(self, offset: int) -> int:
        """Return the number of the segment, from 1, that contains a file position."""
        return bisect.bisect_right(self.segments, offset)

    def suffix(self, offset: int) -> str:
        """Return the suffix of names in the segment that contains a file position; empty in the first one."""
        return f"@{self.segment_of(offset)}" if self.segment_of(offset) > 1 else ""

    @cached_property
    def topic_counts(self) -> list[int]:
        """Number of messages of each topic."""
        counts: list[int] = self.blocks.counts.tolist()
        return counts

    @cached_property
    def channel_topics(self) -> list[int]:
        """Numbers of the topics that become channels: those of later segments only if they have messages."""
        return [
            i
            for i, (t, n) in enumerate(zip(self.topics, self.topic_counts, strict=True))
            if n or t.segment == 1
        ]

    @cached_property
    def channels(self) -> list[Topic]:
        """The topic of each channel that is not synthetic, by channel number."""
        return [self.topics[i] for i in self.channel_topics]

    @cached_property
    def main_segment(self) -> int:
        """Number of the first segment with messages, 1 if no segment has any."""
        return next((t.segment for t, n in zip(self.topics, self.topic_counts, strict=True) if n), 1)


_BACK = BACKWARDS_US * NS_PER_US
#: All of fewer topics could have absurd stamps.
LEAST_TOPICS = 3
#: Number of topics that are looked at: those with most messages.
TOPICS = 12
#: Of this many consecutive messages, all but one must be from before.
MESSAGES = 8
_NEVER = np.iinfo(np.int64).min


def first_jump(source: Source, content: Found) -> int | None:
    """Return the file position of the first record of an older log, or None.

    On a card that was not erased, the rest of an older log can follow the end of a log, and begin at a record by
    chance. No byte is invalid then, but the times of nearly all topics go back.

    Compares the first and the last stamp of each block for the topics with most messages; only blocks where most of
    these went back are read message by message. Zero stamps count as none.
    """
    counts = content.topic_counts
    for segment in range(1, len(content.segments) + 1):
        topics = enumerate(content.topics)
        timed = [c for c, t in topics if t.segment == segment and t.has_full_stamp]
        timed = sorted(timed, key=lambda c: -counts[c])[:TOPICS]
        jump = _first_jump(source, content, timed) if len(timed) >= LEAST_TOPICS else None
        if jump is not None:
            return jump
    return None


def _first_jump(source: Source, content: Found, timed: list[int]) -> int | None:
    if not len(content.blocks.base):
        return None
    first, last = (_edges(source, content, timed, which) for which in (0, -1))
    before = np.full_like(last, _NEVER)
    before[1:] = np.maximum.accumulate(np.maximum(first, last), axis=0)[:-1]
    earlier = np.maximum(before, first)
    both = (last != _NEVER) & (earlier != _NEVER)
    back = both & (last < earlier - _BACK)
    suspects = np.flatnonzero((both.sum(axis=1) >= LEAST_TOPICS) & (2 * back.sum(axis=1) > both.sum(axis=1)))
    if not len(suspects):
        return None
    block = int(suspects[0])
    # The jump may be in the block before, after the last stamp of most of its topics.
    for b in range(max(block - 1, 0), block + 1):
        jump = _jump_in_block(source, content, timed, b, before[b])
        if jump is not None:
            return jump
    return None


def _edges(source: Source, content: Found, timed: list[int], which: int) -> I64:
    """Return int64[blocks, topics]: first (0) or last (-1) stamp of each topic in each block; _NEVER if it has none."""
    start, blocks = content.blocks.start, content.blocks
    begin, end = start[:, timed], start[:, np.array(timed) + 1]
    stamps = np.array([s.offset for c in timed if (s := content.topics[c].stamp) is not None], np.int64)
    row, k = np.nonzero(end > begin)
    entry = begin[row, k] if which == 0 else end[row, k] - 1
    edges = np.full(begin.shape, _NEVER, np.int64)
    # All stamps are uint64 microseconds; only their offsets differ.
    at = blocks.base[row] + blocks.entry[entry] + stamps[k]
    edges[row, k] = FieldAt(0, 8, NS_PER_US).read(source.data, at)
    edges[edges == 0] = _NEVER
    return edges


def _jump_in_block(source: Source, content: Found, timed: list[int], block: int, before: I64) -> int | None:
    """Return the position of the record in *block* after which nearly all messages go back in time, or None."""
    start, base = content.blocks.start, int(content.blocks.base[block])
    parts = []
    for k, c in enumerate(timed):
        entry = content.blocks.entry[start[block, c] : start[block, c + 1]]
        stamp = content.topics[c].stamp
        if len(entry) and stamp is not None:
            at = entry.astype(np.int64) + base
            time = field_of(stamp).read(source.data, at)
            top = np.maximum.accumulate(np.concatenate([before[k : k + 1], time]))[:-1]
            known = (top != _NEVER) & (time != 0)
            parts.append((at[known], (time < top - _BACK)[known]))
    if not parts:
        return None
    at = np.concatenate([p[0] for p in parts])
    order = np.argsort(at)
    back: NDArray[np.int64] = np.concatenate([p[1] for p in parts])[order].astype(np.int64)
    total = np.concatenate([[0], np.cumsum(back)])
    run = min(MESSAGES, len(back))
    enough = back[: len(back) - run + 1].astype(bool) & (total[run:] - total[:-run] >= run - 1)
    return int(at[order][np.argmax(enough)]) - DATA_HEAD if enough.any() else None
