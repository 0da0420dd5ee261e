"""Rules that say where the times, sizes and side columns of messages are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import MISSING_SIZE, Blocks, Separate
from logreel.io.arrays import I64
from logreel.io.chunks import FILE, Buffer, Chunks
from logreel.kernels import block_table, merge

#: Selects from numbers stored per entry of the block table those of the messages asked for.
Pick = Callable[[NDArray[Any]], I64]


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
        there = (offset >= -self.offset) & (offset <= len(data))
        out = np.zeros(len(offset), np.int64)
        out[there] = FieldAt.read(self, data, offset[there])
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
        self.load(np.unique(np.cumsum(last - first).searchsorted(rows, side="right")))
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
        found: I64 = rows[(times >= start) & (times < end)]
        return found


def add_stored(rules: merge.SizeRules, values: NDArray[Any]) -> None:
    """Add numbers that are stored one after another to the rules of the kernel."""
    values = np.ascontiguousarray(values)
    rules.add_stored(values.view(np.uint8), values.itemsize)


def _read_located(read: Callable[[Buffer, I64], I64], index: IndexAccess, channel: int, rows: I64) -> I64:
    chunk, start, _ = index.locate(channel, rows)
    out = np.empty(len(start), np.int64)
    for one in dict.fromkeys(chunk.tolist()):
        mine = chunk == one
        out[mine] = read(index.chunks[one], start[mine])
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
