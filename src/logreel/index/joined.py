"""One index of the messages of several files: ``JoinedIndex``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.index.block_table import SelectedMessages
from logreel.index.channel_index import (
    ChannelIndex,
    ChannelRules,
    IndexAccess,
    MemberRows,
    Rule,
    SyntheticMessages,
)
from logreel.index.gather import Rows
from logreel.index.merge import FIRST_BATCH, in_order
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import JoinedChunks


@dataclass(frozen=True, slots=True)
class Member:
    """A channel of one part that belongs to a joined channel.

    part     number of the part
    channel  number of the channel in the part
    values   new values of its side columns, by name; side columns without an entry keep theirs
    """

    part: int
    channel: int
    values: Mapping[str, I64] = field(default_factory=dict)


class JoinedIndex(MessageIndex):
    """The messages of several indexes, which are addressed where they are: nothing is copied or built again.

    parts    the indexes
    members  for each joined channel its channels in the parts, by part
    shifts   ns to add to the times of each part
    by_time  False: the rows of a channel, and messages in file order, are those of one part after the other;
             True: parts overlap in time, so both are ordered by time, ties by part

    Rows of one part after the other are called stored rows here.
    """

    def __init__(
        self,
        parts: Sequence[MessageIndex],
        members: Sequence[Sequence[Member]],
        shifts: Sequence[int],
        by_time: bool,
    ) -> None:
        self.parts, self._members, self._shifts, self.by_time = list(parts), list(members), shifts, by_time
        self._chunks = JoinedChunks([part.chunks for part in parts])
        self._orders: dict[int, I64 | None] = {}
        super().__init__(
            self._chunks,
            _Counts(self),  # type: ignore[arg-type]
            [self._rules(number) for number in range(len(members))],
            sizes_are_cheap=all(part.sizes_are_cheap for part in parts),
        )

    def _rules(self, number: int) -> ChannelRules:
        rules = [self.parts[m.part].rules[m.channel] for m in self._members[number]]
        names = dict.fromkeys(name for rule in rules for name in rule.side_columns)
        synthetic: int | Callable[[], int] | None = None
        if all(rule.is_synthetic for rule in rules):
            synthetic = partial(self._count_members, number)
        return ChannelRules(
            lambda index: index.times(number),
            _JoinedSizes(self),
            synthetic,
            side_columns={name: _JoinedSideColumn(self, name) for name in names},
        )

    def with_parts(self, parts: Sequence[MessageIndex], numbers: Sequence[Mapping[int, int]]) -> JoinedIndex:
        """Return the index of other messages of the same channels.

        parts    an index for each of the parts
        numbers  for each part the numbers of its channels there, by their numbers here; others are left out
        """
        members = [
            [
                Member(m.part, numbers[m.part][m.channel], m.values)
                for m in members
                if m.channel in numbers[m.part]
            ]
            for members in self._members
        ]
        return JoinedIndex(parts, members, self._shifts, self.by_time)

    def _count_members(self, channel: int) -> int:
        return sum(self.parts[m.part].count(m.channel) for m in self._members[channel])

    def _starts_of_members(self, channel: int) -> list[int]:
        """Return the stored row at which each member begins, and the number of all rows."""
        counts = (self.parts[m.part].count(m.channel) for m in self._members[channel])
        return [0, *itertools.accumulate(counts)]

    # ------------------------------------------------------------------------------------------------ members

    def sources(self, channel: int) -> Sequence[tuple[ChannelIndex, int, int]]:
        """See ``ChannelIndex.sources``; the rows are stored rows."""
        sources = []
        for m, first in zip(self._members[channel], self._starts_of_members(channel), strict=False):
            sources += [
                (index, number, first + begin)
                for index, number, begin in self.parts[m.part].sources(m.channel)
            ]
        return sources

    def order(self, channel: int) -> I64 | None:
        """Return int64[n]: the stored row of each row; None where both are the same."""
        if not self.by_time:
            return None
        if channel not in self._orders:
            times = self._stored_times(channel)
            ascends = bool((times[1:] >= times[:-1]).all())
            self._orders[channel] = None if ascends else np.argsort(times, kind="stable")
        return self._orders[channel]

    def members(self, channel: int, rows: Rows) -> Sequence[MemberRows]:
        """See ``ChannelIndex.members``; parts without any of the messages are left out."""
        starts, order = self._starts_of_members(channel), self.order(channel)
        if isinstance(rows, slice):
            rows = slice(*rows.indices(starts[-1])[:2])
        members = []
        for number, (_member, lo, hi) in enumerate(
            zip(self._members[channel], starts, starts[1:], strict=False)
        ):
            if order is None:
                rows_of_part, at = _rows_within(rows, lo, hi)
            else:
                stored = order[rows]
                positions = np.flatnonzero((stored >= lo) & (stored < hi))
                rows_of_part = stored[positions] - lo
                if len(rows_of_part) > 1 and not bool((rows_of_part[1:] > rows_of_part[:-1]).all()):
                    by_row = np.argsort(rows_of_part)
                    rows_of_part, positions = rows_of_part[by_row], positions[by_row]
                at = positions
            if (
                rows_of_part.stop - rows_of_part.start
                if isinstance(rows_of_part, slice)
                else len(rows_of_part)
            ) > 0:
                members.append(self._member_rows(channel, number, rows_of_part, at))
        return members

    def in_turn(self, channel: int, rows: Rows) -> Iterator[MemberRows]:
        """See ``ChannelIndex.in_turn``."""
        order = self.order(channel)
        if order is None:
            yield from self.members(channel, rows)
            return
        starts, stored = np.array(self._starts_of_members(channel), np.int64), order[rows]
        member = starts.searchsorted(stored, side="right") - 1
        # Members without messages begin where the next one does.
        cut = np.flatnonzero((np.diff(member) != 0) | (np.diff(stored) < 0)) + 1
        for a, b in itertools.pairwise([0, *cut.tolist(), len(stored)] if len(stored) else [0]):
            number = int(member[a])
            yield self._member_rows(channel, number, stored[a:b] - starts[number], slice(a, b))

    def _member_rows(self, channel: int, number: int, rows: Rows, at: Rows) -> MemberRows:
        m = self._members[channel][number]
        return MemberRows(m.part, self.parts[m.part], m.channel, rows, at, self._shifts[m.part], number)

    def joined_chunks(self, part: int, chunk: NDArray[np.int32]) -> NDArray[np.int32]:
        """See ``ChannelIndex.joined_chunks``."""
        return self._chunks.number(part, chunk)

    def shift_of(self, part: int) -> int:
        """Return the ns to add to the times of a part."""
        return self._shifts[part]

    def joined(
        self, channel: int, get: Callable[[MessageIndex, Member], NDArray[Any]], dtype: Any = np.int64
    ) -> NDArray[Any]:
        """Return a number for each message of a channel; *get* returns those of one member."""
        values = [get(self.parts[m.part], m) for m in self._members[channel]]
        stored = values[0] if len(values) == 1 else np.concatenate(values)
        order = self.order(channel)
        return (stored if order is None else stored[order]).astype(dtype, copy=False)

    def _stored_times(self, channel: int) -> I64:
        return np.concatenate(
            [
                self.parts[m.part].times(m.channel) + self._shifts[m.part]
                if self._shifts[m.part]
                else self.parts[m.part].times(m.channel)
                for m in self._members[channel]
            ]
        )

    # ---------------------------------------------------------------------------------------- of one channel

    def count(self, channel: int) -> int:
        """Return the number of messages of a channel."""
        return self._count_members(channel)

    def times(self, channel: int) -> I64:
        """Return int64[n]: time of each message with the shift of its part, ns; read only."""
        if channel not in self._times:
            times, order = self._stored_times(channel), self.order(channel)
            self.cache_times(channel, times if order is None else times[order])
        return self._times[channel]

    def times_at(self, channel: int, rows: I64) -> I64:
        """See ``ChannelIndex.times_at``."""
        if channel in self._times or self.by_time:
            return self.times(channel)[rows]
        out = np.empty(len(rows), np.int64)
        for m in self.members(channel, rows):
            out[m.at] = m.index.times_at(m.channel, np.asarray(m.rows)) + m.shift
        return out

    def offsets(self, channel: int) -> I64:
        """Return int64[n]: payload start of each message in its chunk, which is one of its part."""
        return self.joined(channel, lambda index, m: index.offsets(m.channel))

    def starts(self, channel: int) -> I64:
        """Return int64[n]: start of each message in its chunk, as the block table of its part has it."""
        return self.joined(channel, lambda index, m: index.starts(m.channel))

    def sizes(self, channel: int) -> I64:
        """Return int64[n]: payload bytes of each message; 0 for missing messages."""
        return self.joined(channel, lambda index, m: index.sizes(m.channel))

    def chunk_of(self, channel: int) -> NDArray[np.int32]:
        """Return int32[n]: the chunk of each message."""
        return self.joined(
            channel, lambda index, m: self.joined_chunks(m.part, index.chunk_of(m.channel)), np.int32
        )

    def bytes_of(self, channel: int) -> int:
        """Return the payload bytes of all messages of a channel."""
        return sum(self.parts[m.part].bytes_of(m.channel) for m in self._members[channel])

    def synthetic(self, channel: int) -> SyntheticMessages | None:
        """Return the messages that readers built for *channel*; None for a channel in files."""
        if not self.rules[channel].is_synthetic:
            return None
        offset, size = self.offsets(channel), self.sizes(channel)
        return SyntheticMessages(offset, size, self.times(channel))

    # ------------------------------------------------------------------------------------------ all channels

    def message_at(self, channel: int, row: int) -> tuple[int, int, int, int] | None:
        """Return None: the messages of a joined channel are in several indexes."""
        return None

    def select_rows(self, rows: Mapping[int, Rows], reverse: bool = False) -> Iterator[SelectedMessages]:
        """See ``MessageIndex.select_rows``: one part after the other, or by time with *by_time*."""
        if self.by_time:
            yield from in_order(self, rows, True, reverse, FIRST_BATCH)
            return
        each: list[dict[int, Rows]] = [{} for _ in self.parts]
        owner: list[dict[int, int]] = [{} for _ in self.parts]
        for number, channel_rows in rows.items():
            for m in self.members(number, channel_rows):
                each[m.part][m.channel], owner[m.part][m.channel] = m.rows, number
        for part in sorted(range(len(self.parts)), reverse=reverse):
            rows_of_part, names = each[part], owner[part]
            if not rows_of_part:
                continue
            joined = np.zeros(max(rows_of_part) + 1, np.int32)
            joined[list(names)] = list(names.values())
            for got in self.parts[part].select_rows(rows_of_part, reverse):
                yield SelectedMessages(
                    got.time + self._shifts[part],
                    joined[got.channel],
                    self.joined_chunks(part, got.chunk),
                    got.offset,
                    got.size,
                )


class _Counts:
    """In place of a block table, which a joined index does not have: only the counts of its channels."""

    def __init__(self, index: JoinedIndex) -> None:
        self._index = index

    def count(self, channel: int) -> int:
        return self._index.count(channel)

    @property
    def counts(self) -> I64:
        """int64[c]: number of messages of each channel; reads the channels of parts that are read one by one."""
        for part in self._index.parts:
            _ = part.table.counts
        return self._index.counts


class _JoinedSizes(Rule):
    """Sizes by the rules of the members."""

    def __init__(self, index: JoinedIndex) -> None:
        self._index = index

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return the sizes of all messages of a channel, or of those at *rows*."""
        sizes = self._index.sizes(channel)
        return sizes if rows is None else sizes[rows]

    def guarantees_size(self, index: IndexAccess, channel: int, size: int) -> bool:
        """Return whether the rules of all members do."""
        return all(
            source.rules[number].size.guarantees_size(source, number, size)
            for source, number, _ in self._index.sources(channel)
        )


class _JoinedSideColumn(Rule):
    """A side column of the members; publish times get the shift of their part."""

    def __init__(self, index: JoinedIndex, name: str) -> None:
        self._index, self._name = index, name

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return the numbers of all messages of a channel, or of those at *rows*."""
        values: I64 = self._index.joined(channel, self._of_member)
        return values if rows is None else values[rows]

    def _of_member(self, part: MessageIndex, member: Member) -> I64:
        values = part.side_column(member.channel, self._name)
        is_time = self._name == "publish_time"
        if values is None:
            # As in a merge: the publish time is the time, and numbers are 0.
            values = part.times(member.channel) if is_time else np.zeros(part.count(member.channel), np.int64)
        if self._name in member.values:
            values = member.values[self._name][values]
        return values + self._index.shift_of(member.part) if is_time else values


def _rows_within(rows: Rows, lo: int, hi: int) -> tuple[Rows, Rows]:
    """Return those of *rows* that are in [lo, hi), less *lo*, and their positions among *rows*."""
    if isinstance(rows, slice):
        first = max(rows.start, lo)
        last = max(first, min(rows.stop, hi))
        return slice(first - lo, last - lo), slice(first - rows.start, last - rows.start)
    a, b = rows.searchsorted([lo, hi]).tolist()
    return rows[a:b] - lo, slice(a, b)
