"""The index of all messages of a log: those of several channels in one order, and by intervals of time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.index.block_table import (
    MISSING_SIZE,
    TIME_MAX,
    TIME_MIN,
    Blocks,
    SelectedMessages,
    Separate,
    whole_ns,
)
from logreel.index.channel_index import (
    Build,
    ChannelIndex,
    ChannelRules,
    FunctionValues,
    LoadedValues,
    Resolve,
    StoredValues,
    SyntheticMessages,
)
from logreel.io.arrays import I64
from logreel.io.source import FILE, SYNTHETIC, Buffer, Chunks, Source, slices

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from logreel.index.gather import Rows


def _length(rows: Callable[[], I64]) -> int:
    return len(rows())


def _compact(rows: I64) -> Rows:
    """Return ascending row numbers, as a slice if they are consecutive."""
    if len(rows) == 0:
        return slice(0, 0)
    if rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _whole_numbers(name: str, values: ArrayLike, n: int) -> I64:
    """Return int64[n] of an argument; raises UsageError for another number of values, or others."""
    numbers = np.asarray(values)
    if numbers.ndim != 1 or len(numbers) != n:
        shape = "x".join(map(str, numbers.shape)) or "one"
        raise UsageError(
            f"{name} has {shape} values where there are {n} offsets: one for each message is due"
        )
    if numbers.dtype.kind not in "iu" and n:
        raise UsageError(f"{name} has values of type {numbers.dtype}: whole numbers are due, times in ns")
    if numbers.dtype == np.uint64 and n and int(numbers.max()) > TIME_MAX:
        raise UsageError(f"{name} has {int(numbers.max())}: at most {TIME_MAX} is possible")
    return numbers.astype(np.int64)


class _Entries:
    """Where messages of one channel are, prepared for single ones.

    ends      per block, the row behind its last message
    shift     per block, the number to add to a row to get its index in *entries*
    resolved  numbers of blocks whose entries may be used
    """

    def __init__(self, table: Blocks | Separate, channel: int) -> None:
        first, last = table.run(channel)
        ends = np.cumsum(last - first)
        self.table, self.entries = table, table.entries(channel)
        self.ends, self.shift, self.base, self.chunk = (
            np.ascontiguousarray(numbers).data for numbers in (ends, last - ends, table.base, table.chunk)
        )
        self.resolved: set[int] = set()


class MessageIndex(ChannelIndex):
    """Messages of all channels by time or in file order; see ``ChannelIndex`` for the parameters."""

    def __init__(
        self,
        chunks: Chunks,
        table: Blocks | Separate,
        rules: list[ChannelRules],
        build: Build | None = None,
        resolve: Resolve | None = None,
        sizes_are_cheap: bool = True,
    ) -> None:
        super().__init__(chunks, table, rules, build, resolve, sizes_are_cheap)
        self._sorted: dict[int, bool] = {}
        #: Rows that intervals are restricted to, by channel.
        self._restricted: Mapping[int, Rows] = {}

    @classmethod
    def of(
        cls,
        source: Source,
        channel: ArrayLike,
        offset: ArrayLike,
        size: ArrayLike,
        time: ArrayLike,
        *,
        channels: int | None = None,
        publish_time: ArrayLike | None = None,
        sequence: ArrayLike | None = None,
    ) -> Self:
        """Return the index of messages that are given in file order, all as arrays of n whole numbers.

        source        the file that contains the payloads
        channel       numbers of the channels, from 0 on
        offset, size  where payloads begin, ascending, and their bytes; one size if all payloads have the same
        time          ns
        channels      number of channels; None: up to the greatest number in *channel*
        publish_time  ns, if the log states when messages were published; *sequence*: if it numbers them

        Raises UsageError for arrays of other lengths, kinds and values, and LogError for payloads outside of *source*.
        """
        n = np.size(offset)
        sizes = np.broadcast_to(np.asarray(size), n) if np.ndim(size) == 0 else size
        more = {"publish_time": publish_time, "sequence": sequence}
        number, start, length, times = (
            _whole_numbers(name, values, n)
            for name, values in (("channel", channel), ("offset", offset), ("size", sizes), ("time", time))
        )
        least = int(number.max()) + 1 if n else 0
        channels = least if channels is None else channels
        if n and (int(number.min()) < 0 or least > channels):
            wrong = np.flatnonzero((number < 0) | (number >= channels))[0]
            text = f"message {wrong} is of channel {number[wrong]}"
            raise UsageError(f"{text}: channels have the numbers from 0 to {channels - 1}")
        falls = np.flatnonzero(start[1:] < start[:-1])
        if len(falls):
            row = int(falls[0]) + 1
            text = f"message {row} is at byte {start[row]}, after one at byte {start[row - 1]}"
            raise UsageError(f"{text}: messages are given in the order of the file")
        # Not by a sum, which could overflow.
        outside = (start < 0) | (length < 0) | (start > source.size) | (length > source.size - start)
        outside |= length >= MISSING_SIZE
        if outside.any():
            row = int(np.argmax(outside))
            text = f"message {row} is said to have {length[row]} bytes at byte {start[row]}"
            raise LogError(f"{text} of a file of {source.size} bytes", path=source.name)
        order = Blocks.order(start, number)
        side_columns = {
            name: StoredValues(_whole_numbers(name, values, n)[order])
            for name, values in more.items()
            if values is not None
        }
        kept = length.astype(np.uint32)[order]
        rules = ChannelRules(StoredValues(times[order]), StoredValues(kept), side_columns=side_columns)
        return cls(Chunks(source), Blocks.of(start, number, channels), [rules] * channels)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def __repr__(self) -> str:
        return f"<logreel.MessageIndex of {len(self.rules)} channels>"

    # ----------------------------------------------------------------------------------------- intervals

    def restricted_to(self, rows: Mapping[int, Rows]) -> Self:
        """Return this index with the intervals of some channels restricted to *rows*; counts stay the same."""
        return self._changed({"_restricted": rows})

    def _changed(self, members: Mapping[str, Any], stale: Iterable[str] = ()) -> Self:
        """Return this index with other *members*; *stale*: names of cached members that follow from them."""
        from copy import copy

        index = copy(self)
        for name in ("_all", "_entries", *stale):
            index.__dict__.pop(name, None)
        index.__dict__.update(members)
        return index

    def with_synthetic_rows(self, rows: Mapping[int, Callable[[], I64]]) -> Self:
        """Return this index with only some messages of synthetic channels.

        rows  functions that return the rows that stay, by channel number; called when they are needed
        """
        from copy import copy

        rules = [*self.rules]
        kept = {number: cache(function) for number, function in rows.items()}
        for number, function in kept.items():
            rules[number] = copy(self.rules[number])
            rules[number].synthetic = partial(_length, function)

        def build() -> tuple[Buffer, dict[int, SyntheticMessages]]:
            messages = dict(self._synthetic)
            for number, function in kept.items():
                before, stay = messages[number], function()
                place = None if before.place is None else before.place[stay]
                messages[number] = SyntheticMessages(
                    before.offset[stay], before.size[stay], before.time[stay], place
                )
            return self.chunks.synthetic, messages

        members = {"_build": build, "_times": {}, "_sorted": {}, "rules": rules}
        return self._changed(members, ("_synthetic", "counts"))

    def with_times(self, times: Mapping[int, I64]) -> Self:
        """Return this index with other times of some channels: int64[n] ns in file order, by channel number."""
        from copy import copy

        rules = [*self.rules]
        for number, values in times.items():
            rules[number] = copy(self.rules[number])
            rules[number].time = FunctionValues.of(values)
        return self._changed({"_times": {}, "_sorted": {}, "rules": rules})

    def rows_between(self, channel: int, start: int | None, end: int | None, keep: bool = True) -> Rows:
        """Return rows of *channel* with start <= time < end: a slice if they are consecutive, else int64[k].

        keep  False: the times of the channel are read in pieces and not kept, so that memory is bounded
        """
        rows = self._between(channel, start, end, keep)
        if channel not in self._restricted:
            return rows
        from logreel.index.gather import intersect_rows

        return intersect_rows(rows, self._restricted[channel])

    def _between(self, channel: int, start: int | None, end: int | None, keep: bool) -> Rows:
        n = self.count(channel)
        if start is None and end is None:
            return slice(0, n)
        first = TIME_MIN if start is None else whole_ns(start)
        last = TIME_MAX if end is None else whole_ns(end)
        time = self.rules[channel].time
        if self._is_by_block(channel) and isinstance(time, LoadedValues):
            return _compact(time.rows_between(self, channel, first, last))
        if not keep and not self.has_times(channel):
            return self._between_in_pieces(channel, first, last)
        t = self.times(channel)
        if self._is_sorted(channel):
            lo, hi = t.searchsorted([first, last]).tolist()
            return slice(lo, max(lo, hi))
        return _compact(np.flatnonzero((t >= first) & (t < last)))

    def _between_in_pieces(self, channel: int, first: int, last: int) -> Rows:
        at, ranges = 0, list[slice | I64]()
        for times in self.times_in_pieces(channel):
            rows = _compact(np.flatnonzero((times >= first) & (times < last)))
            shifted = slice(rows.start + at, rows.stop + at) if isinstance(rows, slice) else rows + at
            at += len(times)
            before = ranges[-1] if ranges else None
            if isinstance(shifted, slice) and isinstance(before, slice) and before.stop == shifted.start:
                ranges[-1] = slice(before.start, shifted.stop)
            elif not isinstance(shifted, slice) or shifted.start < shifted.stop:
                ranges.append(shifted)
        if len(ranges) == 1:
            return ranges[0]
        each = [
            np.arange(shifted.start, shifted.stop) if isinstance(shifted, slice) else shifted
            for shifted in ranges
        ]
        return _compact(np.concatenate(each)) if each else slice(0, 0)

    def _is_sorted(self, channel: int) -> bool:
        """Return whether the times of a channel never decrease."""
        if channel not in self._sorted:
            t = self.times(channel)
            self._sorted[channel] = bool((t[1:] >= t[:-1]).all())
        return self._sorted[channel]

    # --------------------------------------------------------------------------------------------- order

    def select(
        self,
        channels: Iterable[int] | None = None,
        start: int | None = None,
        end: int | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> SelectedMessages:
        """Return messages with start <= time < end in one order.

        channels  numbers; None: all
        order     ``time``, ties in file order, or ``file``
        """
        parts = list(self.select_batches(channels, start, end, order, reverse))
        columns: list[Any] = [
            np.concatenate([getattr(p, name) for p in parts]) if parts else np.zeros(0, dtype)
            for name, dtype in SelectedMessages.KINDS
        ]
        return SelectedMessages(*columns)

    def select_batches(
        self,
        channels: Iterable[int] | None = None,
        start: int | None = None,
        end: int | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> Iterator[SelectedMessages]:
        """Yield the same in batches of some ten thousand messages, so that they are never all in memory."""
        for bound in (start, end):
            _ = bound is None or whole_ns(bound)
        if order not in ("time", "file"):
            raise UsageError(f"order is 'time' or 'file', not {order!r}")
        numbers = range(len(self.rules)) if channels is None else channels
        rows = {n: self.rows_between(n, start, end) for n in numbers}
        from logreel.index.merge import FIRST_BATCH, in_order

        if order == "time":
            # The first batch is small, for callers that want only a few messages.
            return in_order(self, rows, True, reverse, FIRST_BATCH)
        return self.select_rows(rows, reverse)

    def select_rows(self, rows: Mapping[int, Rows], reverse: bool = False) -> Iterator[SelectedMessages]:
        """Yield the messages at *rows* of each channel in file order."""
        # Not imported for logs whose messages nobody reads.
        from logreel.index.merge import in_order

        return in_order(self, rows, False, reverse)

    def message_at(self, channel: int, row: int) -> tuple[int, int, int, int] | None:
        """Return time, chunk, payload start and payload size of one message, without the merge of ``select_rows``.

        None where only ``select_rows`` can tell, and if there is no such message.
        """
        known = self._entries.get(channel)
        if known is None or known.table is not self.table:
            if row >= self.count(channel) or self.reads_in_ranges:
                return None
            if (synthetic := self.synthetic(channel)) is not None:
                return (
                    int(synthetic.time[row]),
                    SYNTHETIC,
                    int(synthetic.offset[row]),
                    int(synthetic.size[row]),
                )
            known = self._entries[channel] = _Entries(self.table, channel)
        block = bisect_right(known.ends, row)
        if block not in known.resolved:
            if block == len(known.ends):
                return None
            self.resolve(np.array([block], np.int64))
            known.resolved.add(block)
        at = known.shift[block] + row
        start = known.base[block] + int(known.entries[at])
        # Only formats without chunks store sizes in the data.
        rules, data = self.rules[channel], self.chunks[FILE]
        if rules.payload is None:
            offset, size = start, rules.size.value_at(data, start, at)
        else:
            offset, size = (int(numbers[0]) for numbers in rules.payload(data, np.array([start], np.int64)))
        if size == MISSING_SIZE:
            return None
        return self._time_at(channel, row), known.chunk[block], offset, size

    def _time_at(self, channel: int, row: int) -> int:
        times = self._times.get(channel)
        if times is None:
            from logreel.index.gather import gather_times

            # Those of all messages, as other ways to read gather them.
            gather_times([(self, channel)])
            times = self.times_of(channel, slice(row, row + 1))
            return int(times[0])
        return int(times[row])

    @cached_property
    def _entries(self) -> dict[int, _Entries]:
        return {}

    @cached_property
    def _all(self) -> SelectedMessages:
        return self.select(order="file")

    @property
    def time(self) -> I64:
        """int64[n]: times of all messages in file order, ns."""
        return self._all.time

    @property
    def channel(self) -> NDArray[np.int32]:
        """int32[n]: channel numbers of all messages in file order."""
        return self._all.channel

    @property
    def chunk(self) -> NDArray[np.int32]:
        """int32[n]: chunks of all messages in file order."""
        return self._all.chunk

    @property
    def offset(self) -> I64:
        """int64[n]: payload starts in their chunks, of all messages in file order."""
        return self._all.offset

    @property
    def size(self) -> I64:
        """int64[n]: payload bytes of all messages in file order."""
        return self._all.size


C = TypeVar("C")
#: Messages whose views exist at once: with more, the garbage collector looks through all of them.
VIEWS = 512


def rows_of(
    index: MessageIndex, channels: Mapping[int, C], selections: Iterable[SelectedMessages]
) -> Iterator[tuple[int, C, memoryview, int]]:
    """Yield time, channel, payload and offset of the messages of *selections*; *channels*: by number.

    Raises FileChangedError before and after a batch of messages whose bytes the file does not have any more.
    """
    from logreel.index.merge import ranges_in_one_chunk

    views: dict[int, memoryview] = {}
    chunks = index.chunks
    for picked in selections:
        offset, end = picked.offset, picked.offset + picked.size
        for lo, hi in ranges_in_one_chunk(picked.chunk):
            chunk = int(picked.chunk[lo])
            if chunk not in views:
                # Each view may keep an unpacked chunk in memory.
                views = {chunk: chunks.view(chunk), **dict(list(views.items())[:3])}
            for first in range(lo, hi, VIEWS):
                batch = slice(first, min(first + VIEWS, hi))
                places = offset[batch].tolist()
                rows = zip(
                    picked.time[batch].tolist(),
                    [channels[number] for number in picked.channel[batch].tolist()],
                    slices(views[chunk], places, end[batch].tolist()),
                    places,
                    strict=True,
                )
                chunks.check_pages()
                yield from rows
    chunks.check()


def message_at(
    index: MessageIndex, number: int, channel: C, row: int
) -> tuple[int, C, memoryview, int] | None:
    """Return what ``rows_of`` yields for one message of the channel *number*; None where only that can tell."""
    try:
        place = index.message_at(number, row)
        if place is None:
            return None
        time, chunk, offset, size = place
        data = index.chunks.view(chunk)[offset : offset + size]
    finally:
        # An error may come from a file that was truncated.
        index.chunks.check()
    return time, channel, data, offset
