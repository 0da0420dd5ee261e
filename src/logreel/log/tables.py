"""Read channels as Arrow tables and NumPy arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import DefinitionError, NotFoundError, Problem, UsageError, library
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.index.channel_index import FieldAt
from logreel.index.gather import Gathered, PayloadRange, Want, gather, gather_rows, payload_ranges
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import as_fixed_list, buffer_of, row_numbers, text_metadata, values_of
from logreel.layout.nodes import Sequence as Records
from logreel.layout.numpy_columns import MAX_STRUCTS
from logreel.log.padding import is_padded, skipping, too_long
from logreel.log.scan import spread, until_next
from logreel.log.topic_match import listed

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.layout.arrow import Decoded, SelectedFields
    from logreel.layout.layout import Layout
    from logreel.layout.numpy_columns import Column, NumpyFields
    from logreel.layout.program import Program
    from logreel.layout.projection import Projection
    from logreel.log.read_ahead import LogContext, TableChannel

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

#: An array of more values than this is not split into a column per value.
MAX_COLUMNS = 1024

#: Empty tables of at most so many nodes come from their schema, for which Arrow reserves memory for each of them.
EMPTY_NODES = 1000

#: A batch holds at most this many times the messages of the previous one.
GROWTH = 64

#: Limits of one batch of an Arrow stream: messages, and approximate bytes.
STREAM_ROWS, STREAM_BYTES = 1 << 16, 8 << 20

#: Metadata of the column ``time``: the meaning of the time of a record if messages contain many records.
OF_MESSAGE = b"of the message that the record is in, which is that of its first record"
SPREAD = b"spread evenly from the message that the record is in to the next one; only the first record's is recorded"


def stored_time(ch: TableChannel) -> FieldAt | None:
    """Return the field of messages of *ch* that holds their times; None if times are stored elsewhere or computed."""
    if ch.members:
        time_fields = [stored_time(member) for member in ch.members]
        return time_fields[0] if time_fields.count(time_fields[0]) == len(time_fields) else None
    return ch.log.index.rules[ch.number].time_field


def _length(rows: Rows, n: int) -> int:
    return len(range(*rows.indices(n))) if isinstance(rows, slice) else len(rows)


def own_paths(ch: TableChannel, fields: str | Iterable[str] | None) -> list[str] | None:
    """Return the paths of the Layout for *fields* as users name them, without repeats; None: all.

    ``time`` means the time of the messages, the first column of every table, and no field; see ``time_label``.
    """
    if fields is None:
        return None
    label, paths = ch.time_label, []
    for name in listed(fields):
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


def field_values(ch: TableChannel, path: str, rows: Rows | None = None) -> NDArray[Any]:
    """Return one field of all messages of *ch*, or of *rows* of them, see ``Channel.__getitem__``."""
    return numpy_columns(ch, [path], rows)[path]


def numpy_columns(
    ch: TableChannel, paths: Iterable[str], rows: Rows | None = None
) -> dict[str, NDArray[Any]]:
    """Return fields of all messages of *ch*, or of *rows* of them, by path; all are read in one pass."""
    rows = slice(0, len(ch)) if rows is None else rows
    names = list(dict.fromkeys(paths))
    fields = [name for name in names if name != TIME]
    arrays, times = _arrays(ch, [(own_paths(ch, name) or [name])[0] for name in fields], rows, TIME in names)
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
    from logreel.layout.numpy_columns import numpy_column

    # Looking for each path in the tree would take longer than reading them.
    known = {".".join(leaf.path): leaf for leaf in ch.layout.leaves} if len(paths) > 1 else {}
    leaves = tuple(known[path] if path in known else ch.layout.find(path) for path in paths)
    want, index = Want(ch.number, leaves), ch.log.index
    is_all = isinstance(rows, slice) and rows == slice(0, len(ch))
    if is_all and index.rules[ch.number].synthetic is None:
        time = stored_time(ch) if wants_time and leaves == ch.layout.leaves and not ch.members else None
        if time is not None:
            # All fields of channel after channel are gathered together.
            got = ch.log.gather(Want(ch.number, leaves, time))
        else:
            (got,) = gather(index, [want])
    else:
        got = gather_rows(index, want, rows)
    n = _length(rows, len(ch))
    arrays = [numpy_column(leaf, column, n) for leaf, column in zip(leaves, got.columns, strict=True)]
    return arrays, got.time if wants_time else None


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


def column_values(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> NDArray[Any]:
    """Return the values of a column; arrays of fixed size become further axes.

    Nulls are NaN in floats and None in objects; other types become a masked array of the same type.
    """
    import pyarrow as pa

    shape: list[int] = []
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = _items(
            as_fixed_list(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
        )
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [_masked(chunk) for chunk in chunks]
    together = np.ma.concatenate if any(isinstance(p, np.ma.MaskedArray) for p in parts) else np.concatenate
    values: NDArray[Any] = parts[0] if len(parts) == 1 else together(parts) if parts else np.zeros(0)
    return values.reshape(-1, *shape) if shape else values


def _items(array: pa.FixedSizeListArray[Any, Any]) -> pa.Array[Any]:
    """Return the items of all lists, concatenated; a null list gives null items."""

    if not array.null_count:
        return array.flatten()
    size = array.type.list_size
    at = np.arange(len(array) * size, dtype=np.int64) + array.offset * size
    absent = np.repeat(as_numpy(array.is_null()), size)
    return array.values.take(row_numbers(at, absent))


def _masked(array: pa.Array[Any]) -> NDArray[Any]:
    """Return the values of *array*; as a masked array where it has nulls and its type has no NaN."""
    import pyarrow as pa

    arrow_type = array.type
    if not array.null_count or not (
        pa.types.is_integer(arrow_type) or pa.types.is_boolean(arrow_type) or pa.types.is_temporal(arrow_type)
    ):
        return as_numpy(array)
    plain = array.cast(pa.int64()) if pa.types.is_temporal(arrow_type) else array
    absent = as_numpy(array.is_null())
    filled = as_numpy(plain.fill_null(False if pa.types.is_boolean(arrow_type) else 0))
    return np.ma.MaskedArray(filled, mask=absent)


def as_numpy(array: pa.Array[Any]) -> NDArray[Any]:
    """Return the values of *array*: numbers, and times as int64 ns, as views of its memory; flags as bool.

    Numbers with nulls become floats with NaN. Everything else is what ``Array.to_numpy`` returns, which imports
    pandas if installed, and that takes longer than reading most fields.
    """
    import pyarrow as pa

    arrow_type = array.type
    if pa.types.is_boolean(arrow_type) and array.null_count == 0:
        return as_numpy(array.cast(pa.uint8())).view(np.bool_)
    if pa.types.is_integer(arrow_type) or pa.types.is_float32(arrow_type) or pa.types.is_float64(arrow_type):
        if array.null_count:
            wide = array if pa.types.is_floating(arrow_type) else array.cast(pa.float64(), safe=False)
            array = wide.fill_null(pa.scalar(float("nan"), wide.type))
        number = np.dtype(array.type.to_pandas_dtype())
    elif array.null_count == 0 and pa.types.is_float16(arrow_type):
        number = np.dtype(np.float16)
    elif array.null_count == 0 and pa.types.is_temporal(arrow_type):
        number = np.dtype(np.int64)
    else:
        other: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return other
    data = array.buffers()[1]
    if data is None:
        return np.zeros(0, number)
    return values_of(data, number, len(array), array.offset * number.itemsize)


def times_of(rows: pa.Table | pa.RecordBatch) -> I64:
    """Return int64[n]: the column ``time`` of a table or batch in ns."""
    column = rows.column("time")
    parts = [as_numpy(part) for part in getattr(column, "chunks", [column])]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def table(
    ch: TableChannel, fields: list[str] | None, start: int | None, end: int | None, shape: RowOptions
) -> pa.Table:
    """Return the messages of *ch* with start <= time < end (ns) as a table, see ``Channel.to_arrow``."""
    return TableReader(ch, fields, shape).read(ch.log.index.rows_between(ch.number, start, end))


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


def empty_table(ch: TableChannel, shape: RowOptions = PLAIN, fields: list[str] | None = None) -> pa.Table:
    """Return the table of *ch* without rows, for its schema."""
    return TableReader(ch, fields, shape).read(slice(0, 0))


def batches(
    ch: TableChannel,
    rows: int,
    fields: list[str] | None,
    start: int | None,
    end: int | None,
    shape: RowOptions,
    size: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the table of *ch* in batches, see ``Channel.batches`` and ``TableReader.batches``."""
    picked = ch.log.index.rows_between(ch.number, start, end)
    return TableReader(ch, fields, shape).batches(picked, rows, size)


def arrow_stream(ch: TableChannel, requested_schema: object | None) -> object:
    """Return the table of *ch* as an Arrow stream (a PyCapsule), decoded while it is read."""
    import pyarrow as pa

    record_batches = batches(ch, STREAM_ROWS, None, None, None, PLAIN, STREAM_BYTES)
    reader = pa.RecordBatchReader.from_batches(empty_table(ch).schema, record_batches)
    capsule: object = reader.__arrow_c_stream__(requested_schema)  # type: ignore[no-untyped-call]
    return capsule


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
        if not _length(rows, len(ch)) and ch.layout.measure.nodes <= EMPTY_NODES:
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
                own = [path for path in self._fields or () if _has_path(member.layout, path)]
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


class TableReader(RowReader["pa.Table"]):
    """Reads rows of one channel as tables."""

    projection: Projection

    def _projection(self, layout: Layout, fields: Sequence[str] | None) -> Projection:
        library("pyarrow")
        from logreel.layout.projection import Projection

        return Projection(layout, fields)

    def _rows(self, times: I64, columns: Sequence[Any]) -> pa.Table:
        """Return the columns with their names and metadata, after the column ``time``."""
        import pyarrow as pa

        first = time_column(self.ch, times, self.shape.utc)
        return pa.Table.from_arrays([first, *columns], schema=self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        import pyarrow as pa

        ch, shape = self.ch, self.shape
        columns = [
            f.with_name(ch.time_label) if f.name == TIME and ch.time_label else f
            for f in self.projection.arrow_fields(shape.explode)
        ]
        meaning = None
        if ch.decoder is not None and shape.explode and isinstance(ch.layout.root, Records):
            meaning = {b"meaning": SPREAD if shape.interpolate else OF_MESSAGE}
        texts = {"topic": ch.topic, "type": ch.schema.name, "epoch": ch.log.epoch, "source": ch.log.name}
        time = pa.field(TIME, time_type(ch.log, shape.utc), metadata=meaning)
        return pa.schema([time, *columns], metadata=text_metadata(texts))

    def _empty(self) -> pa.Table:
        import pyarrow as pa

        # Not Schema.empty_table, which imports pandas where that is installed.
        nothing = [pa.chunked_array([pa.nulls(0, field.type)]) for field in list(self._schema)[1:]]
        return self._rows(np.zeros(0, np.int64), nothing)

    def _concat(self, parts: Sequence[pa.Table]) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables(parts)

    def join(self, parts: Sequence[pa.Table | None]) -> pa.Table:
        """See RowReader."""
        import pyarrow as pa

        ch, tables = self.ch, []
        for got, shift in zip(parts, ch.shifts, strict=True):
            if got is None or not len(got):
                continue
            times = got.column(0)
            if shift or self.shape.utc:
                moved = [as_numpy(chunk) + shift for chunk in times.chunks]
                times = pa.chunked_array([time_column(ch, some, self.shape.utc) for some in moved])
            tables.append(pa.Table.from_arrays([times, *self._columns_of(got)], schema=self._schema))
        if not tables:
            empty = self._readers_of_members[0].read(slice(0, 0))
            return self._rows(np.zeros(0, np.int64), self._columns_of(empty))
        if len(tables) == 1 or ch.log.index.order(ch.number) is None:
            return pa.concat_tables(tables)
        together = pa.concat_tables(tables)
        stored = np.concatenate([as_numpy(chunk) for chunk in together.column(0).chunks])
        return together.take(np.argsort(stored, kind="stable"))

    def _columns_of(self, got: pa.Table) -> list[pa.ChunkedArray[Any]]:
        """Return the columns of the table of a member; nulls for those that its definitions do not have."""
        import pyarrow as pa

        if got.schema.types[1:] == self._schema.types[1:]:
            return list(got.columns[1:])
        own = {name: n for n, name in enumerate(got.column_names) if n}
        columns = []
        for field in list(self._schema)[1:]:
            n = own.get(field.name)
            if n is None or got.schema.types[n] != field.type:
                columns.append(pa.chunked_array([pa.nulls(len(got), field.type)]))
            else:
                columns.append(got.column(n))
        return columns

    def batches(self, picked: Rows, rows: int, size: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the messages *picked* as a table in batches of at most *rows* messages.

        size  bytes of a batch: the first holds one message, the next ones grow or shrink to about that size; None:
              any size
        """
        ch = self.ch
        lo = picked.start if isinstance(picked, slice) else 0
        stop, count = lo + _length(picked, len(ch)), rows if size is None else 1
        if size is not None and stop - lo == len(ch) <= rows and self._known_bytes() <= size:
            count = len(ch)
        while lo < stop:
            # Slices of row numbers end with the array; a slice of the channel must be limited.
            hi = min(lo + count, picked.stop) if isinstance(picked, slice) else lo + count
            table = self.read(slice(lo, hi) if isinstance(picked, slice) else picked[lo:hi])
            if size is not None:
                # Batches grow gradually: callers that need only the first rows do not wait for thousands.
                count = max(1, min(rows, count * size // max(1, table.nbytes), count * GROWTH))
            yield from table.combine_chunks().to_batches()
            lo = hi


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
        return ChannelRows(np.zeros(0, np.int64), self.projection.empty())

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


def _has_path(layout: Layout, path: str) -> bool:
    try:
        layout.project([path])
    except NotFoundError:
        return False
    return True


def _arrow_take(array: Any, rows: I64, absent: NDArray[np.bool_]) -> Any:
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


def time_type(log: LogContext, utc: bool = False) -> pa.DataType:
    """Return the Arrow type of the column ``time`` of the tables of *log*, see ``Channel.to_arrow``."""
    import pyarrow as pa

    if utc:
        return pa.timestamp("ns", tz="UTC")
    return pa.timestamp("ns") if log.epoch == "unix" else pa.duration("ns")


def time_column(ch: TableChannel, times: I64, utc: bool = False) -> pa.Array[Any]:
    """Return times of messages of *ch* (ns of its clock) as the column ``time``, see ``Channel.to_arrow``."""
    import pyarrow as pa

    if utc:
        offset = ch.log.utc_offset
        if offset is None:
            raise UsageError("the log does not tell how its clock relates to UTC", path=ch.log.name)
        # Absurd stamps are clipped instead of overflowing.
        times = np.clip(times, TIME_MIN - min(offset, 0), TIME_MAX - max(offset, 0)) + offset
    data = buffer_of(np.ascontiguousarray(times))
    return pa.Array.from_buffers(time_type(ch.log, utc), len(times), [None, data])


def flattened(rows: Any, values: int = 0) -> Any:
    """Return a table or batch whose struct members are columns: ``pose.position.x``, ``esc[0].rpm``.

    values  arrays of fixed size with at most this many values are columns, too: ``q[0]``

    Other lists stay lists, except arrays of fixed size with up to MAX_STRUCTS structs.
    """
    import pyarrow as pa

    if not any(_is_several(field.type, values) for field in rows.schema):
        return rows
    flat = [
        column_of_field
        for field, column in zip(rows.schema, rows.columns, strict=True)
        for column_of_field in _flat(field, column, values)
    ]
    names = distinct([field.name for field, _ in flat])
    fields = [field.with_name(name) for (field, _), name in zip(flat, names, strict=True)]
    return type(rows).from_arrays(
        [column for _, column in flat], schema=pa.schema(fields, metadata=rows.schema.metadata)
    )


def width_of(arrow_type: pa.DataType) -> int:
    """Return the number of columns that a value of *arrow_type* has if structs and arrays of fixed size are split."""
    import pyarrow as pa

    if pa.types.is_struct(arrow_type):
        return sum(width_of(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    if pa.types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * width_of(arrow_type.value_type)
    return 1


def _is_several(kind: pa.DataType, values: int) -> bool:
    """Return whether flattening replaces a column of this type by several; *values* as of ``flattened``."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        # An array without items would leave no column.
        return 0 < width_of(kind) <= values or (
            kind.list_size <= MAX_STRUCTS and _is_several(kind.value_type, values)
        )
    # A struct without members would leave no column.
    return bool(pa.types.is_struct(kind)) and kind.num_fields > 0


def _flat(field: pa.Field[Any], column: Any, values: int) -> Iterator[tuple[pa.Field[Any], Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = field.type
    if not _is_several(kind, values):
        yield field, column
    elif pa.types.is_struct(kind):
        # Nulls of the struct become nulls of its members.
        for i, child in enumerate(column.flatten()):
            inner = kind.field(i)
            yield from _flat(inner.with_name(f"{field.name}.{inner.name}").with_nullable(True), child, values)
    else:
        for i in range(kind.list_size):
            item = pa.field(f"{field.name}[{i}]", kind.value_type, metadata=field.metadata)
            yield from _flat(item, pc.list_element(column, i), values)


def distinct(names: list[str]) -> list[str]:
    """Return *names*, made unique by numbers: ``time`` twice becomes ``time``, ``time_2``."""
    taken, found = set(names), set()
    out = []
    for name in names:
        label, n = name, 1
        while label in found or (n > 1 and label in taken):
            n += 1
            label = f"{name}_{n}"
        found.add(label)
        out.append(label)
    return out
