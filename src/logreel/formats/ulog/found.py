"""What reading a ULog found: topics, the block table of their messages, and where all other records lie."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from functools import cached_property

from logreel.errors import Problem
from logreel.formats.ulog.definitions import Definitions, Stamp
from logreel.index.block_table import Blocks
from logreel.io.arrays import I64


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
    stamp: Stamp | None
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
