"""Where every message lies.

The index of the messages in the file is a block table: the data is cut into blocks, and per block and channel there
is a run of payload starts as u32 relative to the block. So a message costs four bytes, the counts come for free, and
columns can be filled block by block while the block is in the cache. Times and sizes stay in the file until asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import TIME_MAX, TIME_MIN, Blocks, Separate, unrolled
from logreel.index.nanoseconds import whole_ns
from logreel.index.rules import ChannelRules, ComputedValues, SyntheticMessages
from logreel.io.arrays import I64
from logreel.io.chunks import SYNTHETIC, Buffer, Chunks


class ChannelIndex:
    """Answers where the messages of a log lie: ``time``, ``channel``, ``chunk``, ``offset``, ``size``.

    make     called once, when a made channel is first touched: the SYNTHETIC chunk and one SyntheticMessages per
    made channel
    resolve  called with block numbers before places or sizes in them are used, where the format puts that off
    sizes_are_cheap  False where asking for sizes means reading or unpacking a large log
    """

    def __init__(
        self,
        chunks: Chunks,
        table: Blocks | Separate,
        rules: list[ChannelRules],
        make: Callable[[], tuple[Buffer, dict[int, SyntheticMessages]]] | None = None,
        resolve: Callable[[I64], None] | None = None,
        sizes_are_cheap: bool = True,
    ) -> None:
        self.chunks, self.table, self.rules = chunks, table, rules
        self._make, self._resolve = make, resolve
        self.sizes_are_cheap = sizes_are_cheap
        self._times: dict[int, I64] = {}
        self._sorted: dict[int, bool] = {}
        #: Rows that are there, of channels of which some are not.
        self._only: Mapping[int, slice | I64] = {}

    def only(self, rows: Mapping[int, slice | I64]) -> Self:
        """The same index whose intervals have no other messages than *rows* of each channel; counts stay."""
        found = copy(self)
        found.__dict__.pop("_all", None)
        found._only = rows
        return found

    @property
    def blocks(self) -> Blocks:
        """The block table of a log that is indexed as a whole."""
        if not isinstance(self.table, Blocks):
            raise TypeError("the channels of this log are indexed one by one")
        return self.table

    def count(self, channel: int) -> int:
        """Messages of one channel."""
        synthetic = self.rules[channel].synthetic
        if synthetic is not None:
            return synthetic() if callable(synthetic) else synthetic
        return self.table.count(channel)

    @cached_property
    def counts(self) -> I64:
        """int64[c]: messages of each channel."""
        return np.array([self.count(c) for c in range(len(self.rules))], np.int64)

    @cached_property
    def _synthetic(self) -> dict[int, SyntheticMessages]:
        if self._make is None:
            return {}
        self.chunks.synthetic, synthetic = self._make()
        return synthetic

    def synthetic(self, channel: int) -> SyntheticMessages | None:
        """The messages that the reader made for *channel*; None for a channel that lies in the file."""
        return self._synthetic[channel] if self.rules[channel].synthetic is not None else None

    @property
    def puts_off(self) -> bool:
        """Whether blocks have to be resolved before they are read."""
        return self._resolve is not None

    def resolve(self, rows: I64) -> None:
        """Make sure that places and sizes in these blocks are known."""
        if self._resolve is not None:
            self._resolve(rows)

    def resolve_channel(self, channel: int) -> None:
        """Resolve all blocks with messages of a channel."""
        if self._resolve is not None:
            first, last = self.table.run(channel)
            self._resolve(np.flatnonzero(last > first))

    def entry_values(self, channel: int, values: NDArray[Any]) -> I64:
        """Return int64[n]: the numbers of a channel in *values*, which has one per entry of the block table."""
        return unrolled(values, *self.table.run(channel))

    def runs(self, channel: int) -> Iterator[tuple[int, int, NDArray[np.uint32]]]:
        """Block by block: the chunk it lies in, its place there, and where each message begins behind that."""
        b = self.table
        first, last = b.run(channel)
        rows = np.flatnonzero(last > first)
        self.resolve(rows)
        entry = b.entries(channel)
        for i in rows.tolist():
            yield int(b.chunk[i]), int(b.base[i]), entry[first[i] : last[i]]

    def starts_by_block(self, channel: int) -> Iterator[tuple[int, I64]]:
        """Yield the messages of each block: its chunk, int64[n] starts of messages there."""
        for chunk, base, entry in self.runs(channel):
            yield chunk, np.add(entry, base, dtype=np.int64)

    def starts(self, channel: int) -> I64:
        """Return int64[n]: the start of each message in its chunk, as the block table has it."""
        b = self.table
        first, last = b.run(channel)
        self.resolve(np.flatnonzero(last > first))
        return unrolled(b.entries(channel), first, last, b.base)

    def offsets(self, channel: int) -> I64:
        """int64[n]: payload start of each message inside its chunk."""
        if (synthetic := self.synthetic(channel)) is not None:
            return synthetic.offset
        payload = self.rules[channel].payload
        if payload is None:
            return self.starts(channel)
        return ComputedValues(lambda data, start: payload(data, start)[0]).values(self, channel)

    def chunk_of(self, channel: int) -> NDArray[np.int32]:
        """int32[n]: the chunk that each message lies in."""
        if self.rules[channel].synthetic is not None:
            return np.full(self.count(channel), SYNTHETIC, np.int32)
        first, last = self.table.run(channel)
        return np.repeat(self.table.chunk, last - first)

    def locate(self, channel: int, rows: I64) -> tuple[NDArray[np.int32], I64, I64]:
        """Return the chunk, the start there and the entry of the block table of messages at *rows* of a channel.

        The channel is one in the file; blocks are not resolved.
        """
        table = self.table
        first, last = table.run(channel)
        ends = np.cumsum(last - first)
        block = ends.searchsorted(rows, side="right")
        entry: I64 = np.subtract(last[block] + rows, ends[block])
        return table.chunk[block], table.base[block] + table.entries(channel)[entry], entry

    def payloads_by_chunk(self, channel: int) -> Iterator[tuple[int, I64]]:
        """Yield consecutive messages in one chunk: its number, int64[n] payload starts."""
        if not self.count(channel):
            return
        offset, chunk = self.offsets(channel), self.chunk_of(channel)
        cuts = (np.flatnonzero(np.diff(chunk)) + 1).tolist()
        for lo, hi in zip([0, *cuts], [*cuts, len(offset)], strict=True):
            yield int(chunk[lo]), offset[lo:hi]

    def times(self, channel: int) -> I64:
        """int64[n]: time of each message in ns, in file order; gathered when first asked, then kept."""
        if channel not in self._times:
            synthetic = self.synthetic(channel)
            times = self.rules[channel].time.values(self, channel) if synthetic is None else synthetic.time
            self.keep_times(channel, times)
        return self._times[channel]

    def has_times(self, channel: int) -> bool:
        """Whether the times of a channel were read already."""
        return channel in self._times

    def keep_times(self, channel: int, times: I64) -> None:
        """Keep times that were gathered together with others."""
        times.flags.writeable = False
        self._times[channel] = times

    def side_column(self, channel: int, name: str) -> I64 | None:
        """Return int64[n]: numbers stored outside of payloads, see ``ChannelRules``; None if the channel has none."""
        rule = self.rules[channel].side_columns.get(name)
        return None if rule is None else rule.values(self, channel)

    def sizes(self, channel: int) -> I64:
        """Return int64[n]: payload bytes of each message; 0 for missing messages."""
        if (synthetic := self.synthetic(channel)) is not None:
            return synthetic.size
        return self.rules[channel].size.sizes(self, channel)

    def bytes_of(self, channel: int) -> int:
        """Return the payload bytes of all messages of a channel."""
        rules = self.rules[channel]
        total = None if rules.is_synthetic else rules.size.total(self.count(channel))
        return int(self.sizes(channel).sum()) if total is None else total

    def __repr__(self) -> str:
        return f"<logreel.MessageIndex of {len(self.rules)} channels>"

    def times_at(self, channel: int, rows: I64) -> I64:
        """Return int64[n]: times of messages at *rows*, ns; of all only where the others are needed for these."""
        rules = self.rules[channel]
        if rules.is_synthetic or rules.time.needs_all or channel in self._times:
            return self.times(channel)[rows]
        return rules.time.values(self, channel, rows)

    def edges(self, channel: int) -> tuple[int | None, int | None]:
        """Return the times of the first and the last message in file order; None for an empty channel."""
        n = self.count(channel)
        if not n:
            return None, None
        first, last = self.times_at(channel, np.array([0, n - 1], np.int64)).tolist()
        return first, last

    def _is_sorted(self, channel: int) -> bool:
        """Whether the times of a channel never go back."""
        if channel not in self._sorted:
            t = self.times(channel)
            self._sorted[channel] = bool((t[1:] >= t[:-1]).all())
        return self._sorted[channel]

    def rows_between(self, channel: int, start: int | None, end: int | None) -> slice | I64:
        """Rows of *channel* with start <= time < end: a slice where they are consecutive, else row numbers."""
        found = self._between(channel, start, end)
        return common_rows(found, self._only[channel]) if channel in self._only else found

    def _between(self, channel: int, start: int | None, end: int | None) -> slice | I64:
        n = self.count(channel)
        if start is None and end is None:
            return slice(0, n)
        first = TIME_MIN if start is None else whole_ns(start)
        last = TIME_MAX if end is None else whole_ns(end)
        t = self.times(channel)
        if self._is_sorted(channel):
            lo, hi = t.searchsorted([first, last]).tolist()
            return slice(lo, max(lo, hi))
        keep = np.flatnonzero((t >= first) & (t < last))
        if len(keep) == 0:
            return slice(0, 0)
        if keep[-1] - keep[0] + 1 == len(keep):
            return slice(int(keep[0]), int(keep[-1]) + 1)
        return keep

    def __len__(self) -> int:
        return int(self.counts.sum())


def common_rows(a: slice | I64, b: slice | I64) -> slice | I64:
    """The rows that are in both, each a slice without a step or ascending row numbers."""
    if isinstance(a, slice):
        if not isinstance(b, slice):
            return _within(b, a)
        first, stop = max(a.start, b.start), min(a.stop, b.stop)
        return slice(first, max(first, stop))
    return _within(a, b) if isinstance(b, slice) else np.intersect1d(a, b, assume_unique=True)


def _within(rows: I64, span: slice) -> I64:
    found: I64 = rows[(rows >= span.start) & (rows < span.stop)]
    return found
