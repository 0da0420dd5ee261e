"""Read rows of channels: what all readers of rows share, and fields as NumPy columns and arrays, without pyarrow."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError, NotFoundError, Problem
from logreel.index.channel_index import FieldAt
from logreel.index.gather import Gathered, PayloadRange, Want, gather, gather_rows, payload_ranges
from logreel.io.arrays import I64
from logreel.layout.layout import Leaves
from logreel.layout.nodes import Sequence as Records
from logreel.log.padding import is_padded, skipping, too_long
from logreel.log.scan import spread, until_next

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from logreel.layout.arrow import Decoded, SelectedFields
    from logreel.layout.layout import Layout
    from logreel.layout.numpy_columns import Column, NumpyFields
    from logreel.layout.program import Program
    from logreel.log.read_ahead import TableChannel

Rows = slice | I64


@dataclass(frozen=True, slots=True)
class RowOptions:
    """Options for the rows of a table.

    explode      True: one row per record, where a message holds many; False: one row per message, with lists
    utc          True: wall-clock times; False: the clock of the log
    interpolate  spread the times of the records of a message evenly up to the next message
    clock        False: the times are not needed, and are zeros
    gaps         True: a row of nulls for each message that cannot be decoded; False: such messages are left out
    """

    explode: bool = True
    utc: bool = False
    interpolate: bool = False
    clock: bool = True
    gaps: bool = True


PLAIN = RowOptions()
#: Without times.
UNTIMED = RowOptions(clock=False)
#: Without rows for messages that cannot be decoded.
DENSE = RowOptions(gaps=False)
#: The first column of every table.
TIME = "time"
#: Empty tables of at most so many nodes come from their schema, for which Arrow reserves memory for each of them.
EMPTY_NODES = 1000
#: A batch holds at most this many times the messages of the previous one.
GROWTH = 64


def stored_time(ch: TableChannel) -> FieldAt | None:
    """Return the field of messages of *ch* that holds their times; None if times are stored elsewhere or computed."""
    if ch.members:
        time_fields = [stored_time(member) for member in ch.members]
        return time_fields[0] if time_fields.count(time_fields[0]) == len(time_fields) else None
    return ch.log.index.rules[ch.number].time_field


def row_count(rows: Rows, n: int) -> int:
    """Return how many of *n* messages *rows* are."""
    return len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)


def own_paths(ch: TableChannel, fields: str | Iterable[str] | None) -> list[str] | None:
    """Return the paths of the Layout for *fields* as users name them, without repeats; None: all.

    ``time`` means the time of the messages, the first column of every table, and no field; see ``time_label``.
    """
    if fields is None:
        return None
    label, paths = ch.time_label, []
    for name in (fields,) if isinstance(fields, str) else _listed(fields):
        if label is not None and (name == label or name.startswith((f"{label}.", f"{label}["))):
            paths.append(TIME + name[len(label) :])
        elif name != TIME or label is not None:
            paths.append(name)
    return list(dict.fromkeys(paths))


def time_label(layout: Layout) -> str | None:
    """Return the column name of a field that is itself named ``time``: ``time_2``, or the next free number.

    None without such a field.
    """
    names = {f.name for f in layout.record.visible()}
    return next(n for i in itertools.count(2) if (n := f"{TIME}_{i}") not in names) if TIME in names else None


def _listed(names: Iterable[str]) -> list[str]:
    # One column of a small log does not need what selects channels.
    from logreel.log.topic_match import listed

    return listed(names)


def field_values(ch: TableChannel, path: str, rows: Rows | None = None) -> NDArray[Any]:
    """Return one field of all messages of *ch*, or of *rows* of them, see ``Channel.__getitem__``."""
    return numpy_columns(ch, [path], rows)[path]


def numpy_columns(
    ch: TableChannel, paths: Iterable[str] | None, rows: Rows | None = None
) -> dict[str, NDArray[Any]]:
    """Return fields of all messages of *ch*, or of *rows* of them, by path; all are read in one pass.

    paths  None: the times and all fields
    """
    rows = slice(0, len(ch)) if rows is None else rows
    label = ch.time_label
    if paths is None:
        if ch.is_uniform and label is None:
            # Most channels: names and columns are those of the Layout.
            leaves = ch.layout.leaves
            arrays, times = _gathered(ch, leaves, rows, True)
            first = {TIME: _record_times(ch, rows) if times is None else times}
            return first | dict(zip(leaves.paths, arrays, strict=True))
        paths = [TIME, *(label if label and path == TIME else path for path in ch.layout.paths())]
    names = list(dict.fromkeys(paths))
    fields = [name for name in names if name != TIME]
    own = fields if label is None else [(own_paths(ch, name) or [name])[0] for name in fields]
    arrays, times = _arrays(ch, own, rows, TIME in names)
    columns = dict(zip(fields, arrays, strict=True))
    if TIME in names:
        columns[TIME] = _record_times(ch, rows) if times is None else times
    return {name: columns[name] for name in names}


def _arrays(
    ch: TableChannel, paths: list[str], rows: Rows, wants_time: bool
) -> tuple[list[NDArray[Any]], I64 | None]:
    """Return one array per path of the Layout, and the times of the rows if these came with them.

    paths  without repeats
    """
    if not paths:
        return [], None
    if not ch.is_uniform:
        read = ColumnReader(ch, paths, PLAIN if wants_time or ch.members else UNTIMED).read(rows)
        return [column.numpy() for column in read.columns], read.time if wants_time else None
    every = ch.layout.leaves
    # Looking for a path in the tree takes longer than reading a small column.
    leaves = Leaves([every.by_path.get(path) or ch.layout.find(path) for path in paths])
    return _gathered(ch, every if leaves == every else leaves, rows, wants_time)


def _gathered(
    ch: TableChannel, leaves: Leaves, rows: Rows, wants_time: bool
) -> tuple[list[NDArray[Any]], I64 | None]:
    """Return the arrays of *leaves* of a uniform channel, and times as ``_arrays`` does."""
    from logreel.layout.numpy_columns import numpy_arrays

    want, index = Want(ch.number, leaves), ch.log.index
    is_all = isinstance(rows, slice) and rows == slice(0, len(ch))
    if is_all and index.rules[ch.number].synthetic is None:
        time = stored_time(ch) if wants_time and leaves is ch.layout.leaves and not ch.members else None
        if time is not None:
            # All fields of channel after channel are gathered together.
            got = ch.log.gather(Want(ch.number, leaves, time))
        else:
            (got,) = gather(index, [want])
    else:
        got = gather_rows(index, want, rows)
    return numpy_arrays(leaves, got.columns, row_count(rows, len(ch))), got.time if wants_time else None


def _record_times(ch: TableChannel, rows: Rows) -> I64:
    """Return int64[n]: time of each row in ns; a row is a record if messages contain many."""
    try:
        has_records = isinstance(ch.layout.root, Records)
    except DefinitionError:
        has_records = False
    if not has_records:
        return ch.log.index.times_of(ch.number, rows)
    # The number of records in each message is only known by decoding a field.
    return ColumnReader(ch, ch.layout.paths()[:1]).read(rows).time


def column_rows(
    ch: TableChannel, fields: list[str] | None, start: int | None = None, end: int | None = None
) -> ChannelRows:
    """Return fields of the messages of *ch* with start <= time < end (ns); those that do not decode are left out."""
    return ColumnReader(ch, fields, DENSE).read(ch.log.index.rows_between(ch.number, start, end))


def column_batches(
    ch: TableChannel,
    rows: int,
    fields: list[str] | None,
    start: int | None,
    end: int | None,
    size: int | None = None,
) -> Iterator[ChannelRows]:
    """Yield the same in batches of at most *rows* messages, and of about *size* bytes."""
    picked = ch.log.index.rows_between(ch.number, start, end)
    return ColumnReader(ch, fields, DENSE).batches(picked, rows, size)


#: Rows of a channel: a table, or Columns with their times.
T = TypeVar("T")


class RowReader(Generic[T]):
    """Reads rows of one channel; projection and programs are computed once for all reads.

    What the rows become is a matter of subclasses: ``TableReader`` and ``ColumnReader``.

    ch          the channel
    projection  the fields that become columns
    shape       options for the rows
    gaps        int64[n] ns from each message to the next one, which may be in another file; None: as the times are
    keep        whether the log may keep times, and columns of other channels, for later reads

    Raises NotFoundError for an unknown field, DefinitionError if the definition of the channel cannot be used.
    """

    def __init__(
        self,
        ch: TableChannel,
        fields: Sequence[str] | None = None,
        shape: RowOptions = PLAIN,
        gaps: I64 | None = None,
        keep: bool = True,
    ) -> None:
        self.ch, self.shape, self._fields, self._given_gaps = ch, shape, fields, gaps
        self._keep = keep
        self.projection = self._projection(ch.layout, fields)

    def _projection(self, layout: Layout, fields: Sequence[str] | None) -> SelectedFields:
        """Return the fields of the channel that become columns."""
        raise NotImplementedError

    def _rows(self, times: I64, columns: Sequence[Any]) -> T:
        """Return columns with the times of their rows, int64[n] ns."""
        raise NotImplementedError

    def _empty(self) -> T:
        """Return no rows."""
        raise NotImplementedError

    def _concat(self, parts: Sequence[T]) -> T:
        """Return parts of the rows, one after another."""
        raise NotImplementedError

    def join(self, parts: Sequence[T | None]) -> T:
        """Return the rows of members, made with times of their own clocks, as one; None: nothing is in a member."""
        raise NotImplementedError

    def read(self, rows: Rows) -> T:
        """Return the messages with these row numbers of the channel."""
        ch = self.ch
        if not row_count(rows, len(ch)) and ch.layout.measure.nodes <= EMPTY_NODES:
            return self._empty()
        if ch.members:
            return self._read_members(rows)
        if not ch.is_uniform:
            return self._read_variable(rows)
        index = ch.log.index
        is_all = isinstance(rows, slice) and rows.indices(len(ch)) == (0, len(ch), 1)
        if not self._keep:
            got = gather_rows(index, self.want(), rows)
        elif is_all and stored_time(ch) is not None:
            got = ch.log.gather(self.want())
        else:
            got = gather_rows(index, Want(ch.number, self.projection.part.leaves), rows)
        return self.from_columns(got, self._times_of(rows) if got.time is None else got.time)

    def _read_members(self, rows: Rows) -> T:
        """Return messages of a channel that is joined from several files."""
        parts: list[T | None] = [None] * len(self.ch.members)
        for m in self.ch.log.index.members(self.ch.number, rows) or ():
            parts[m.number] = self._readers_of_members[m.number].read(m.rows)
        return self.join(parts)

    @cached_property
    def _readers_of_members(self) -> list[Self]:
        shape, readers = replace(self.shape, utc=False), []
        for member, gaps in zip(self.ch.members, self._gaps_of_members(), strict=True):
            try:
                readers.append(type(self)(member, self._fields, shape, gaps, self._keep))
            except NotFoundError:
                # Definitions of the member lack some of the fields.
                own = [path for path in self._fields or () if member.layout.has(path)]
                readers.append(type(self)(member, own, shape, gaps, self._keep))
        return readers

    def _gaps_of_members(self) -> list[I64 | None]:
        """Return the ns to the next message of the channel for the messages of each member; None if not needed."""
        ch = self.ch
        gaps_of_members: list[I64 | None] = [None] * len(ch.members)
        if self.shape.interpolate:
            for m in ch.log.index.members(ch.number, slice(0, len(ch))) or ():
                gaps = np.zeros(len(ch.members[m.number]), np.int64)
                gaps[m.rows] = self._gaps[m.at]
                gaps_of_members[m.number] = gaps
        return gaps_of_members

    @cached_property
    def _gaps(self) -> I64:
        """int64[n]: ns from each message of the channel to the next one."""
        return until_next(self._times()) if self._given_gaps is None else self._given_gaps

    @cached_property
    def is_gathered(self) -> bool:
        """Whether all columns of the channel, with its times, are at fixed places of its messages, in all its files."""
        ch = self.ch
        if not ch.is_uniform or stored_time(ch) is None:
            return False
        return all(member.layout is ch.layout or member.layout == ch.layout for member in ch.members)

    def moved(self, times: I64) -> I64:
        """Return gathered times of all messages in the clock of the channel."""
        ch = self.ch
        if not any(ch.shifts):
            return times
        by = np.repeat(np.array(ch.shifts, np.int64), [len(member) for member in ch.members])
        order = ch.log.index.order(ch.number)
        moved: I64 = times + (by if order is None else by[order])
        return moved

    def want(self) -> Want:
        """Return the request for all messages of a uniform channel, with their times if these are in the messages."""
        time = stored_time(self.ch) if self.shape.clock else None
        return Want(self.ch.number, self.projection.part.leaves, time)

    def from_columns(self, got: Gathered, times: I64) -> T:
        """Return gathered columns of a uniform channel as rows; *times*: int64[n] ns."""
        from logreel.layout.arrow import assemble_fixed

        return self._rows(times, assemble_fixed(self.projection, got.columns, len(times)))

    def from_range(self, piece: PayloadRange, numbers: I64) -> T:
        """Decode a range of messages; *numbers*: int64[n] row numbers of these messages in the channel."""
        got = self._decode(piece, numbers)
        self._note_problems(got, piece, numbers)
        if self.shape.gaps:
            got = with_gaps(got, len(numbers), self.projection.take)
        if self.shape.interpolate and got.records is not None:
            times = self._times()
            which = numbers if got.kept is None else numbers[got.kept]
            here = spread(times[which], self._gaps[which], got.records)
        else:
            here = got.times(self._times_of(numbers))
        return self._rows(here, got.arrays)

    def _read_variable(self, rows: Rows) -> T:
        if (everything := self._read_all(rows)) is not None:
            return everything
        ch = self.ch
        done, parts = 0, []
        for piece in payload_ranges(ch.log.index, ch.number, rows):
            numbers = _row_numbers(rows, len(ch), done, len(piece.offset))
            parts.append(self.from_range(piece, numbers))
            done += len(piece.offset)
        if not parts:
            none = np.zeros(0, np.int64)
            parts.append(self.from_range(PayloadRange(np.zeros(0, np.uint8), none, none), none))
        return self._concat(parts)

    def _read_all(self, rows: Rows) -> T | None:
        """Return all messages if the PayloadDecoder has ``decode_all``, else None."""
        from logreel.layout.arrow import select_decoded

        ch, shape = self.ch, self.shape
        decode_all = getattr(ch.decoder, "decode_all", None)
        is_all = isinstance(rows, slice) and rows == slice(0, len(ch))
        if decode_all is None or shape.interpolate or not is_all:
            return None
        decoded = decode_all(ch.log.index, ch.number, self.projection.part, shape.explode)
        if decoded is None:
            return None
        got = select_decoded(self.projection, decoded[0], shape.explode)
        return self._rows(got.times(decoded[1]), got.arrays)

    def _decode(self, piece: PayloadRange, numbers: I64) -> Decoded:
        from logreel.layout.arrow import decode_variable, select_decoded

        ch, explode = self.ch, self.shape.explode
        if ch.decoder is None:
            ends = piece.offset + piece.size
            return decode_variable(self.projection, piece.data, piece.offset, ends, explode)
        got = ch.decoder.decode_batch(ch.log.index, self.projection.part, piece, numbers)
        return select_decoded(self.projection, got, explode)

    def _times(self) -> I64:
        """Return int64[n]: time of every message of the channel in ns; zeros where times are not needed."""
        ch = self.ch
        return ch.log.index.times(ch.number) if self.shape.clock else np.zeros(len(ch), np.int64)

    def _times_of(self, rows: Rows) -> I64:
        """Return int64[n]: the same of the messages at *rows*."""
        index = self.ch.log.index
        if self.shape.clock and index.reads_in_ranges:
            return index.times_of(self.ch.number, rows)
        if self.shape.clock and not self._keep:
            n = len(self.ch)
            return index.times_at(
                self.ch.number, np.arange(*rows.indices(n)) if isinstance(rows, slice) else rows
            )
        times = self._times()
        return times[rows] if isinstance(rows, slice) else _times_at(times, rows)

    def _note_problems(self, got: Decoded, piece: PayloadRange, numbers: I64) -> None:
        """Note the messages of a range that do not fit the definition; padding after them is allowed."""
        ch = self.ch
        if got.bad:
            row, why = got.bad[0]
            text = f"{ch.topic}: {len(got.bad)} messages cannot be decoded; the first is number {numbers[row]}: {why}"
            ch.log.note(Problem("payload", 0, 0, True, text, len(got.bad)))
        left = got.leftover
        if len(left) and is_padded(ch.metadata):
            left = too_long(self._skipping, piece, left)
        if len(left):
            first, count = int(numbers[left[0]]), len(left)
            text = (
                f"{ch.topic}: {count} messages are longer than their definition; the first is number {first}"
            )
            ch.log.note(Problem("leftover", 0, 0, False, text))

    @cached_property
    def _skipping(self) -> Program:
        return skipping(self.ch.layout)

    def _known_bytes(self) -> float:
        """Return the bytes of the columns of all messages where they are known before decoding, else infinity."""
        if not self.ch.is_uniform:
            return inf
        return len(self.ch) * sum(len(leaf.runs) * leaf.width for leaf in self.projection.part.leaves)


@dataclass(frozen=True, slots=True)
class ChannelRows:
    """Rows of one channel: *time*, int64[n] ns, and one Column per field."""

    time: I64
    columns: Sequence[Column]

    def __len__(self) -> int:
        return len(self.time)


class ColumnReader(RowReader[ChannelRows]):
    """Reads rows of one channel as Columns, without pyarrow; times are those of the clock of the log."""

    projection: NumpyFields

    def _projection(self, layout: Layout, fields: Sequence[str] | None) -> NumpyFields:
        from logreel.layout.numpy_columns import NumpyFields

        return NumpyFields(layout, fields)

    @property
    def names(self) -> list[str]:
        """The names of the columns, as users know them."""
        label = self.ch.time_label
        return [label if label and name == TIME else name for name in self.projection.names]

    def _rows(self, times: I64, columns: Sequence[Column]) -> ChannelRows:
        return ChannelRows(times, columns)

    def _empty(self) -> ChannelRows:
        columns = self.projection.empty()
        if not self.shape.explode and isinstance(self.ch.layout.root, Records):
            columns = [self.projection.lists(np.zeros(1, np.int32), column) for column in columns]
        return ChannelRows(np.zeros(0, np.int64), columns)

    def _concat(self, parts: Sequence[ChannelRows]) -> ChannelRows:
        from logreel.layout.numpy_columns import concatenated

        if len(parts) == 1:
            return parts[0]
        columns = [concatenated(same) for same in zip(*(part.columns for part in parts), strict=True)]
        return ChannelRows(np.concatenate([part.time for part in parts]), columns)

    def join(self, parts: Sequence[ChannelRows | None]) -> ChannelRows:
        """See RowReader; values that the definitions of a member do not have are missing."""
        empty = self._empty()
        together = []
        for part, shift, reader in zip(parts, self.ch.shifts, self._readers_of_members, strict=True):
            if part is None or not len(part):
                continue
            own = dict(zip(reader.projection.names, part.columns, strict=True))
            columns = [
                column if column is not None and column.is_like(like) else like.nothing(len(part))
                for name, like in zip(self.projection.names, empty.columns, strict=True)
                for column in (own.get(name),)
            ]
            together.append(ChannelRows(part.time + shift, columns))
        if not together:
            return empty
        joined = self._concat(together)
        if len(together) == 1 or self.ch.log.index.order(self.ch.number) is None:
            return joined
        order = np.argsort(joined.time, kind="stable")
        return ChannelRows(joined.time[order], [column.take(order) for column in joined.columns])

    def batches(self, picked: Rows, rows: int, size: int | None = None) -> Iterator[ChannelRows]:
        """Yield the messages *picked* in batches of at most *rows* messages, and of about *size* bytes if given."""
        lo, stop = (picked.start, picked.stop) if isinstance(picked, slice) else (0, len(picked))
        count = rows if size is None else 1
        while lo < stop:
            hi = min(lo + count, stop)
            read = self.read(slice(lo, hi) if isinstance(picked, slice) else picked[lo:hi])
            if size is not None:
                # See TableReader.
                width = max(1, sum(column.nbytes for column in read.columns))
                count = max(1, min(rows, count * size // width, count * GROWTH))
            yield read
            lo = hi


def _arrow_take(array: Any, rows: I64, absent: NDArray[np.bool_]) -> Any:
    from logreel.layout.arrow_arrays import row_numbers

    return array.take(row_numbers(rows, absent))


def with_gaps(
    got: Decoded, n: int, take: Callable[[Any, I64, NDArray[np.bool_]], Any] = _arrow_take
) -> Decoded:
    """Return *got*, decoded from *n* messages, with a row of nulls for each message that did not decode.

    take  returns the values of a column at some rows, none where its last argument is True
    """
    if not got.bad:
        return got
    bad = np.array([row for row, _ in got.bad], np.int64)
    kept = np.arange(n, dtype=np.int64) if got.kept is None else got.kept
    records = np.ones(len(kept), np.int64) if got.records is None else got.records
    messages = np.concatenate([kept, bad])
    order = np.argsort(messages, kind="stable")
    counts = np.concatenate([records, np.ones(len(bad), np.int64)])[order]
    first = np.concatenate([np.cumsum(records) - records, np.full(len(bad), -1)])[order]
    at = (
        np.repeat(first, counts)
        + np.arange(int(counts.sum()))
        - np.repeat(np.cumsum(counts) - counts, counts)
    )
    absent = np.repeat(first < 0, counts)
    return replace(
        got,
        arrays=[take(array, at, absent) for array in got.arrays],
        kept=messages[order],
        records=None if got.records is None else counts,
    )


def _times_at(times: I64, numbers: I64) -> I64:
    """Return ``times[numbers]``, as a view where the numbers are consecutive."""
    n = len(numbers)
    if n and int(numbers[-1]) - int(numbers[0]) == n - 1:
        return times[int(numbers[0]) : int(numbers[0]) + n]
    return times[numbers]


def _row_numbers(rows: Rows, n: int, done: int, count: int) -> I64:
    """Return int64[count]: row numbers of the messages of a range that follows the first *done* of *rows*."""
    if isinstance(rows, slice):
        first = rows.indices(n)[0] + done
        return np.arange(first, first + count, dtype=np.int64)
    return rows[done : done + count]
