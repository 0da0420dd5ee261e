"""What reading a ULog found: topics, the block table of their messages, and where all other records lie."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.ulog import clock
from logreel.formats.ulog.definitions import Definitions, TimestampField
from logreel.formats.ulog.records import DATA_HEAD
from logreel.index.block_table import Blocks
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.io.source import Source


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


_BACK = clock.BACKWARDS_US * clock.NS_PER_US
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
    edges[row, k] = FieldAt(0, 8, clock.NS_PER_US).read(source.data, at)
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
            time = clock.field_of(stamp).read(source.data, at)
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
