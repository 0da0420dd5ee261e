"""IndexAccess of messages by channel: ``ChannelIndex``.

Messages in the file are indexed by a block table: the data is divided into blocks, and each block has, for each
channel, a run of message starts as uint32 relative to the block. So a message takes four bytes, counts need no loop,
and columns are gathered block by block while the block is in the cache. Times and sizes stay in the file until they
are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import UsageError
from logreel.index.block_table import MISSING_SIZE, Blocks, Separate, unrolled
from logreel.io.arrays import I64, distinct
from logreel.io.source import FILE, SYNTHETIC, Buffer, Chunks
from logreel.kernels import block_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from logreel.kernels import merge

#: Selects from numbers stored per entry of the block table those of the messages asked for.
Pick = Callable[[np.ndarray[Any, Any]], I64]


class IndexAccess(Protocol):
    """The part of ``ChannelIndex`` that rules use."""

    chunks: Chunks
    table: Blocks | Separate

    def count(self, channel: int) -> int: ...
    def resolve_channel(self, channel: int) -> None: ...
    def entry_values(self, channel: int, values: NDArray[Any]) -> I64: ...
    def payloads_by_chunk(self, channel: int) -> Iterator[tuple[int, I64]]: ...
    def starts_by_block(self, channel: int) -> Iterator[tuple[int, I64]]: ...
    def locate(self, channel: int, rows: I64) -> tuple[NDArray[np.int32], I64, I64]: ...
    def chunk_of(self, channel: int) -> NDArray[np.int32]: ...


class Rule:
    """A number for each message of a channel.

    reads_messages  whether messages must be read for the numbers
    needs_all       whether the numbers of a few messages cost as much as those of all
    by_block        whether those of some blocks cost much less than those of all: see LoadedValues
    """

    reads_messages: ClassVar[bool] = False
    needs_all: ClassVar[bool] = False
    by_block: ClassVar[bool] = False

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return int64[n]: the numbers of messages at *rows* of a channel in file order, or of all for None."""
        raise NotImplementedError

    def values_at(self, data: Buffer, start: I64, pick: Pick) -> I64:
        """Return int64[n]: the numbers of messages that begin at *start* in *data*; *pick* selects stored numbers."""
        raise NotImplementedError

    def value_at(self, data: Buffer, start: int, entry: int) -> int:
        """Return the number of one message, with its entry in the block table; see ``values_at``."""
        numbers = self.values_at(
            data, np.array([start], np.int64), lambda stored: stored[entry : entry + 1].astype(np.int64)
        )
        return int(numbers[0])

    def sizes(self, index: IndexAccess, channel: int) -> I64:
        """Return int64[n]: the numbers of all messages of a channel as payload sizes; 0 for missing messages."""
        return self.values(index, channel)

    def total(self, count: int) -> int | None:
        """Return the sum over *count* messages if it is known without a number for each, else None."""
        return None

    def guarantees_size(self, index: IndexAccess, channel: int, size: int) -> bool:
        """Return whether all payloads are in the file and can be decoded by a Layout of *size* bytes unchecked."""
        return False

    def add_to_kernel(self, rules: merge.SizeRules, data: Buffer) -> bool:
        """Add the rule, for messages in *data*, to those of the kernel; return False if it cannot evaluate it."""
        return False

    @property
    def kernel_field(self) -> FieldAt | None:
        """The rule as ``kernels.block_table`` gathers it together with columns; None if it cannot."""
        return None


@dataclass(frozen=True, slots=True)
class FieldAt(Rule):
    """An unsigned integer at a fixed distance from the payload of every message: value × mul + add.

    Numbers beyond int64 become its maximum.
    """

    reads_messages: ClassVar[bool] = True

    offset: int
    width: int
    mul: int = 1
    add: int = 0

    def read(self, data: Buffer, offset: I64) -> I64:
        """Return int64[n]: the numbers for payloads that start at *offset* in *data*."""
        out = np.empty(len(offset), np.int64)
        if len(offset):
            field = np.array([(self.offset, self.width, 0, 8, self.mul)], block_table.FIELD)
            block_table.gather_at(data, np.ascontiguousarray(offset, np.int64), field, out.view(np.uint8))
        if self.add:
            out += self.add
        return out

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Read the field in all messages, or in those at *rows*."""
        if rows is not None:
            return _read_located(self.read, index, channel, rows)
        parts = [self.read(index.chunks[chunk], at) for chunk, at in index.payloads_by_chunk(channel)]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def values_at(self, data: Buffer, start: I64, pick: Pick) -> I64:
        """Read the field in messages that begin at *start*."""
        return self.read(data, start)

    def value_at(self, data: Buffer, start: int, entry: int) -> int:
        """Read the field in the message that begins at *start*."""
        at = start + self.offset
        if self.width > 4 or self.mul >= 1 << 31 or not 0 <= at <= len(data) - self.width:
            return super(FieldAt, self).value_at(data, start, entry)  # noqa: UP008 - slots
        return int.from_bytes(data[at : at + self.width].tobytes(), "little") * self.mul + self.add

    def guarantees_size(self, index: IndexAccess, channel: int, size: int) -> bool:
        """Return True: where sizes are fields, readers compare them with Layouts of fixed size."""
        return True

    def add_to_kernel(self, rules: merge.SizeRules, data: Buffer) -> bool:
        """Add a field of up to 4 bytes."""
        if self.width > 4 or not 0 < self.mul < 1 << 31:
            return False
        rules.add_field(data, self.offset, self.width, self.mul, self.add)
        return True

    @property
    def kernel_field(self) -> FieldAt | None:
        """The field itself; None if something is added to it."""
        return None if self.add else self


class HeaderField(FieldAt):
    """A field before the payload, outside of it; 0 for messages that are not in the data."""

    __slots__ = ()

    def read(self, data: Buffer, offset: I64) -> I64:
        """Return int64[n]: the numbers for payloads that start at *offset* in *data*, 0 if outside."""
        inside = (offset >= -self.offset) & (offset <= len(data))
        out = np.zeros(len(offset), np.int64)
        out[inside] = FieldAt.read(self, data, offset[inside])
        return out


@dataclass(frozen=True, slots=True, eq=False)
class StoredValues(Rule):
    """Numbers that the reader keeps, one for each entry of the block table, in its order.

    That is not the order of the file: entries are sorted by block, in a block by channel, and there by their place in
    the file (``Blocks.entry``). An index refuses another number of them, but cannot notice another order.
    ``MessageIndex.of`` takes numbers in file order.
    """

    stored: NDArray[Any]

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Take the numbers of a channel."""
        if rows is None:
            return index.entry_values(channel, self.stored)
        return self.stored[index.locate(channel, rows)[2]].astype(np.int64)

    def values_at(self, data: Buffer, start: I64, pick: Pick) -> I64:
        """Take the numbers that *pick* selects."""
        return pick(self.stored)

    def value_at(self, data: Buffer, start: int, entry: int) -> int:
        """Take the number of the entry."""
        return int(self.stored[entry])

    def sizes(self, index: IndexAccess, channel: int) -> I64:
        """Take the numbers of a channel when its blocks are resolved; 0 for missing messages."""
        index.resolve_channel(channel)
        sizes = self.values(index, channel)
        sizes[sizes == MISSING_SIZE] = 0
        return sizes

    def guarantees_size(self, index: IndexAccess, channel: int, size: int) -> bool:
        """Compare all sizes."""
        is_in_file = bool((index.chunk_of(channel) == FILE).all())
        return is_in_file and bool((self.sizes(index, channel) == size).all())

    def add_to_kernel(self, rules: merge.SizeRules, data: Buffer) -> bool:
        """Add unsigned numbers or int64."""
        if self.stored.dtype.kind != "u" and self.stored.dtype != np.int64:
            return False
        add_stored(rules, self.stored)
        return True


@dataclass(frozen=True, slots=True, eq=False)
class ComputedValues(Rule):
    """Numbers that the reader computes when asked: *get* returns int64[n] for messages that begin at int64[n] in data.

    Messages begin where the block table says: at their payloads, unless ``ChannelRules.payload`` is given.
    """

    reads_messages: ClassVar[bool] = True

    get: Callable[[Buffer, I64], I64]

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Compute the numbers of all messages, or of those at *rows*."""
        if rows is not None:
            return _read_located(self.get, index, channel, rows)
        # Block by block, so that intermediate arrays stay in the cache.
        out, n = np.empty(index.count(channel), np.int64), 0
        for chunk, start in index.starts_by_block(channel):
            out[n : n + len(start)] = self.get(index.chunks[chunk], start)
            n += len(start)
        return out

    def values_at(self, data: Buffer, start: I64, pick: Pick) -> I64:
        """Compute the numbers of messages that begin at *start*."""
        return self.get(data, start)


@dataclass(frozen=True, slots=True)
class ConstantValues(Rule):
    """The same number for all messages."""

    value: int

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Repeat the number."""
        return np.full(index.count(channel) if rows is None else len(rows), self.value, np.int64)

    def values_at(self, data: Buffer, start: I64, pick: Pick) -> I64:
        """Repeat the number."""
        return np.full(len(start), self.value, np.int64)

    def value_at(self, data: Buffer, start: int, entry: int) -> int:
        """Return the number."""
        return self.value

    def total(self, count: int) -> int | None:
        """Return the product."""
        return self.value * count

    def guarantees_size(self, index: IndexAccess, channel: int, size: int) -> bool:
        """Return True: readers compare the size with Layouts of fixed size."""
        return True

    def add_to_kernel(self, rules: merge.SizeRules, data: Buffer) -> bool:
        """Add the number."""
        rules.add_constant(self.value)
        return True


@dataclass(frozen=True, slots=True, eq=False)
class FunctionValues(Rule):
    """Numbers of all messages of a channel together: *get* returns int64[n] for the index. For times only."""

    needs_all: ClassVar[bool] = True

    get: Callable[[Any], I64]

    @classmethod
    def of(cls, values: I64) -> Self:
        """Return the rule of numbers that are known."""
        return cls(lambda _: values)

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Call the function."""
        return self.get(index) if rows is None else self.get(index)[rows]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedValues(Rule):
    """Times that are stored once the reader loaded their block: of a remote log only those that are needed.

    stored  [n], one for each entry of the block table
    load    loads the blocks int64[k]
    span    int64[b, 2]  first and last time of each block, ns, as the log states them
    """

    by_block: ClassVar[bool] = True

    stored: NDArray[Any]
    load: Callable[[I64], None]
    span: I64

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Load the blocks of the messages at *rows*, or of all; return their numbers."""
        first, last = index.table.run(channel)
        if rows is None:
            self.load(np.flatnonzero(last > first))
            return index.entry_values(channel, self.stored)
        self.load(distinct(np.cumsum(last - first).searchsorted(rows, side="right")))
        return self.stored[index.locate(channel, rows)[2]].astype(np.int64)

    def values_at(self, data: Buffer, start: I64, pick: Pick) -> I64:
        """Take the numbers that *pick* selects, of blocks that are resolved."""
        return pick(self.stored)

    def rows_between(self, index: IndexAccess, channel: int, start: int, end: int) -> I64:
        """Return int64[k]: the messages with start <= time < end; loads only blocks that say that they have some."""
        first, last = index.table.run(channel)
        wanted = (self.span[:, 0] < end) & (self.span[:, 1] >= start)
        ends = np.cumsum(last - first)
        parts = [np.arange(ends[b] - (last - first)[b], ends[b]) for b in np.flatnonzero(wanted).tolist()]
        rows = np.concatenate([np.zeros(0, np.int64), *parts])
        times = self.values(index, channel, rows)
        selected: I64 = rows[(times >= start) & (times < end)]
        return selected


def add_stored(rules: merge.SizeRules, values: NDArray[Any]) -> None:
    """Add numbers that are stored one after another to the rules of the kernel."""
    values = np.ascontiguousarray(values)
    rules.add_stored(values.view(np.uint8), values.itemsize)


def _read_located(read: Callable[[Buffer, I64], I64], index: IndexAccess, channel: int, rows: I64) -> I64:
    chunk, start, _ = index.locate(channel, rows)
    out = np.empty(len(start), np.int64)
    for number in dict.fromkeys(chunk.tolist()):
        in_chunk = chunk == number
        out[in_chunk] = read(index.chunks[number], start[in_chunk])
    return out


@dataclass(frozen=True, slots=True)
class SyntheticMessages:
    """Messages of a channel that the reader built: offsets and sizes in the SYNTHETIC chunk, times in ns.

    place  ascending: offset in the file of what each was built from, so that it is ordered there among the other
           messages, none of which are in chunks; or None
    """

    offset: I64
    size: I64
    time: I64
    place: I64 | None = None


@dataclass(init=False, eq=False, slots=True)
class ChannelRules:
    """Rules of one channel.

    time          ns; a function that returns int64[n] for the index becomes FunctionValues
    size          bytes of payloads; an int becomes ConstantValues
    synthetic     number of messages if the reader builds them, or a function that returns it; else None
    payload       returns int64[n] payload starts and int64[n] sizes of messages that begin at int64[n] in data, where
                  the block table has the start of something before the payload
    side_columns  numbers that the format stores outside of payloads, by name: ``publish_time`` in ns, ``sequence``,
                  ``connection`` (its index in ``headers`` of the channel's metadata)
    """

    time: Rule
    size: Rule
    synthetic: int | Callable[[], int] | None
    payload: Callable[[Buffer, I64], tuple[I64, I64]] | None
    side_columns: Mapping[str, Rule]

    def __init__(
        self,
        time: Rule | Callable[[Any], I64],
        size: Rule | int,
        synthetic: int | Callable[[], int] | None = None,
        payload: Callable[[Buffer, I64], tuple[I64, I64]] | None = None,
        side_columns: Mapping[str, Rule] | None = None,
    ) -> None:
        self.time = time if isinstance(time, Rule) else FunctionValues(time)
        self.size = size if isinstance(size, Rule) else ConstantValues(size)
        self.synthetic, self.payload = synthetic, payload
        self.side_columns = {
            name: HeaderField(rule.offset, rule.width, rule.mul, rule.add)
            if isinstance(rule, FieldAt)
            else rule
            for name, rule in (side_columns or {}).items()
        }

    @property
    def is_synthetic(self) -> bool:
        """Whether the reader builds the messages of the channel."""
        return self.synthetic is not None

    @property
    def time_field(self) -> FieldAt | None:
        """The field of messages in the file that holds the time as the gather kernels take it; None if none does."""
        return None if self.is_synthetic else self.time.kernel_field

    def measure(self, data: Buffer, start: I64, pick: Pick) -> tuple[I64, I64]:
        """Return payload starts and sizes (or MISSING_SIZE) of messages that begin at *start* in *data*.

        pick  selects stored numbers of these messages
        """
        if self.payload is not None:
            return self.payload(data, start)
        return start, self.size.values_at(data, start, pick)


#: Messages of a channel whose times are read at once where they are not kept.
TIMES_AT_ONCE = 1 << 18

Build = Callable[[], tuple[Buffer, dict[int, SyntheticMessages]]]
Resolve = Callable[[I64], None]


@dataclass(frozen=True, slots=True)
class MemberRows:
    """Messages of a joined channel that are in one of the indexes that a ``JoinedIndex`` joins.

    part      number of the index
    index     the index
    channel   number of the channel there
    rows      rows there, ascending
    at        their positions among the messages that were asked for: a slice, or int64[n]
    shift     ns to add to their times
    number    number of the member among those of the joined channel
    """

    part: int
    index: ChannelIndex
    channel: int
    rows: slice | I64
    at: slice | I64
    shift: int
    number: int


def _check_stored(table: Blocks, rules: Sequence[ChannelRules]) -> None:
    """Raise UsageError if rules keep another number of values than the block table has entries."""
    for channel, one in enumerate(rules):
        if one.is_synthetic:
            continue
        every = ("times", one.time), ("sizes", one.size), *one.side_columns.items()
        for what, rule in every:
            if isinstance(rule, StoredValues) and len(rule.stored) != len(table.entry):
                raise UsageError(
                    f"the rules of channel {channel} keep {len(rule.stored)} {what}, one for each of the "
                    f"{len(table.entry)} messages of all channels is due"
                )


class ChannelIndex:
    """Places, sizes and times of the messages of each channel, in file order.

    build    called once, when a synthetic channel is first used: the SYNTHETIC chunk, and SyntheticMessages for each
             synthetic channel
    resolve  called with int64[k] block numbers before starts or sizes in them are used, if the format determines
             these late
    sizes_are_cheap  False if sizes require reading or decompressing a large log
    """

    def __init__(
        self,
        chunks: Chunks,
        table: Blocks | Separate,
        rules: list[ChannelRules],
        build: Build | None = None,
        resolve: Resolve | None = None,
        sizes_are_cheap: bool = True,
    ) -> None:
        if isinstance(table, Blocks):
            _check_stored(table, rules)
        self.chunks, self.table, self.rules = chunks, table, rules
        self._build, self._resolve = build, resolve
        self.sizes_are_cheap = sizes_are_cheap
        self._times: dict[int, I64] = {}

    def members(self, channel: int, rows: slice | I64) -> Sequence[MemberRows] | None:
        """Return the messages at ascending *rows* of a joined channel, by the part that they are in.

        None for the index of one file, which is not joined from others.
        """
        return None

    def sources(self, channel: int) -> Sequence[tuple[ChannelIndex, int, int]]:
        """Return where all messages of a channel are: indexes, channel numbers there, and rows before them here.

        This is the index itself, unless it is joined from others.
        """
        return [(self, channel, 0)]

    def order(self, channel: int) -> I64 | None:
        """Return int64[n]: for each row of a joined channel its number if one source followed the other.

        None where that is the order of the rows.
        """
        return None

    def in_turn(self, channel: int, rows: slice | I64) -> Iterator[MemberRows]:
        """Yield the messages at *rows* of a joined channel in their order, as far as they are in one part."""
        raise TypeError("this index is not joined from others")

    def joined_chunks(self, part: int, chunk: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return int32[n]: the numbers in ``chunks`` of chunks of one part of a joined index."""
        raise TypeError("this index is not joined from others")

    @property
    def blocks(self) -> Blocks:
        """The block table; raises TypeError for a log whose channels are indexed one by one."""
        if not isinstance(self.table, Blocks):
            raise TypeError("the channels of this log are indexed one by one")
        return self.table

    def count(self, channel: int) -> int:
        """Return the number of messages of a channel."""
        synthetic = self.rules[channel].synthetic
        if synthetic is not None:
            return synthetic() if callable(synthetic) else synthetic
        return self.table.count(channel)

    @cached_property
    def counts(self) -> I64:
        """int64[c]: number of messages of each channel."""
        return np.array([self.count(c) for c in range(len(self.rules))], np.int64)

    @cached_property
    def _synthetic(self) -> dict[int, SyntheticMessages]:
        if self._build is None:
            return {}
        try:
            self.chunks.synthetic, synthetic = self._build()
        finally:
            # An error may come from a file that was truncated.
            self.chunks.check()
        return synthetic

    def synthetic(self, channel: int) -> SyntheticMessages | None:
        """Return the messages that the reader built for *channel*; None for a channel in the file."""
        return self._synthetic[channel] if self.rules[channel].is_synthetic else None

    def fetch(self, rows: I64, most: int) -> int:
        """Fetch the blocks *rows* of a remote log together, the first ones up to *most* bytes; return their number."""
        numbers = rows if self.chunks.by_block else self.table.chunk[rows]
        return self.chunks.fetch(numbers.tolist(), most)

    @property
    def resolves_lazily(self) -> bool:
        """Whether blocks must be resolved before their entries are used."""
        return self._resolve is not None

    def resolve(self, rows: I64) -> None:
        """Determine starts and sizes in the blocks *rows*, int64[k] block numbers."""
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

    def runs_by_block(self, channel: int) -> Iterator[tuple[int, int, NDArray[np.uint32]]]:
        """Yield each block with messages: its chunk, its start there, and uint32[n] starts relative to that."""
        b = self.table
        first, last = b.run(channel)
        rows = np.flatnonzero(last > first)
        self.resolve(rows)
        entry = b.entries(channel)
        for i in rows.tolist():
            yield int(b.chunk[i]), int(b.base[i]), entry[first[i] : last[i]]

    def starts_by_block(self, channel: int) -> Iterator[tuple[int, I64]]:
        """Yield the messages of each block: its chunk, int64[n] starts of messages there."""
        for chunk, base, entry in self.runs_by_block(channel):
            yield chunk, np.add(entry, base, dtype=np.int64)

    def starts(self, channel: int) -> I64:
        """Return int64[n]: the start of each message in its chunk, as the block table has it."""
        b = self.table
        first, last = b.run(channel)
        if self._resolve is not None:
            self.resolve(np.flatnonzero(last > first))
        return unrolled(b.entries(channel), first, last, b.base)

    def offsets(self, channel: int) -> I64:
        """Return int64[n]: payload start of each message in its chunk."""
        if (synthetic := self.synthetic(channel)) is not None:
            return synthetic.offset
        payload = self.rules[channel].payload
        if payload is None:
            return self.starts(channel)
        return ComputedValues(lambda data, start: payload(data, start)[0]).values(self, channel)

    def chunk_of(self, channel: int) -> NDArray[np.int32]:
        """Return int32[n]: the chunk of each message."""
        if self.rules[channel].is_synthetic:
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
        """Return int64[n]: time of each message, ns; gathered at first use, then cached, read only."""
        if channel not in self._times:
            synthetic = self.synthetic(channel)
            times = self.rules[channel].time.values(self, channel) if synthetic is None else synthetic.time
            self.cache_times(channel, self._checked(times))
        return self._times[channel]

    def has_times(self, channel: int) -> bool:
        """Return whether the times of a channel are cached."""
        return channel in self._times

    def cache_times(self, channel: int, times: I64) -> None:
        """Cache the times of a channel, gathered together with others."""
        times.flags.writeable = False
        self._times[channel] = times

    def side_column(self, channel: int, name: str) -> I64 | None:
        """Return int64[n]: numbers stored outside of payloads, see ``ChannelRules``; None if the channel has none."""
        rule = self.rules[channel].side_columns.get(name)
        return None if rule is None else self._checked(rule.values(self, channel))

    def sizes(self, channel: int) -> I64:
        """Return int64[n]: payload bytes of each message; 0 for missing messages."""
        if (synthetic := self.synthetic(channel)) is not None:
            return synthetic.size
        return self._checked(self.rules[channel].size.sizes(self, channel))

    def bytes_of(self, channel: int) -> int:
        """Return the payload bytes of all messages of a channel."""
        rules = self.rules[channel]
        total = None if rules.is_synthetic else rules.size.total(self.count(channel))
        return int(self.sizes(channel).sum()) if total is None else total

    def times_at(self, channel: int, rows: I64) -> I64:
        """Return int64[n]: times of messages at *rows*, ns; of all only where the others are needed for these."""
        if self._needs_all_times(channel):
            return self.times(channel)[rows]
        return self._checked(self.rules[channel].time.values(self, channel, rows))

    def times_of(self, channel: int, rows: slice | I64) -> I64:
        """Return int64[k]: times of messages at *rows*, ns, as ``times(channel)[rows]``.

        Of a remote log that is read in ranges, only the index of the chunks with these messages is fetched.
        """
        if not self._is_by_block(channel):
            return self.times(channel)[rows]
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(self.count(channel)), dtype=np.int64)
        return self.times_at(channel, rows)

    def times_in_pieces(self, channel: int) -> Iterator[I64]:
        """Yield int64[k]: the times of all messages, ns, TIMES_AT_ONCE at most; they are not kept for later calls.

        Times that cannot be computed for some messages alone are those of ``times``.
        """
        count = self.count(channel)
        kept = self.times(channel) if self._needs_all_times(channel) else None
        for first in range(0, count, TIMES_AT_ONCE):
            rows = slice(first, min(first + TIMES_AT_ONCE, count))
            yield self.times_at(channel, np.arange(rows.start, rows.stop)) if kept is None else kept[rows]

    def _needs_all_times(self, channel: int) -> bool:
        """Return whether the times of some messages are taken from those of all."""
        rules = self.rules[channel]
        return rules.is_synthetic or rules.time.needs_all or channel in self._times

    def forget_times(self, channel: int) -> None:
        """Free the times of a channel; they are gathered again at the next use."""
        self._times.pop(channel, None)
        for index, number, _ in self.sources(channel):
            if index is not self:
                index.forget_times(number)

    def block_spans(self, channel: int) -> tuple[I64, I64, I64] | None:
        """Return where the blocks of a channel lie in time, for a remote log of which only ranges are fetched.

        Returns int64[b] first row and int64[b] row behind the last one of each block with messages, and int64[b, 2] the
        first and last time in it, ns, as the log states them; None for any other log.
        """
        time = self.rules[channel].time
        if not self._is_by_block(channel) or not isinstance(time, LoadedValues):
            return None
        first, last = self.table.run(channel)
        filled, stop = last > first, np.cumsum(last - first)
        return (stop - last + first)[filled], stop[filled], time.span[filled]

    @property
    def reads_in_ranges(self) -> bool:
        """Whether the log is a remote one of which only ranges are fetched."""
        return self.chunks.in_ranges

    def _is_by_block(self, channel: int) -> bool:
        """Return whether the times of some messages of a channel should be read without those of all."""
        rules = self.rules[channel]
        return rules.time.by_block and not rules.is_synthetic and channel not in self._times

    def _checked(self, values: I64) -> I64:
        """Return *values*; raises FileChangedError if pages that they came from may be lost."""
        self.chunks.check_pages()
        return values

    def first_and_last_times(self, channel: int) -> tuple[int | None, int | None]:
        """Return the times of the first and the last message in file order; None for an empty channel."""
        n = self.count(channel)
        if not n:
            return None, None
        first, last = self.times_at(channel, np.array([0, n - 1], np.int64)).tolist()
        return first, last
