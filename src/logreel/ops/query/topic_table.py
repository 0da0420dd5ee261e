"""A topic of one or several logs as an Arrow dataset that decodes only the columns and rows requested."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
from pyarrow import acero

from logreel.errors import NotFoundError, UsageError
from logreel.index.gather import intersect_rows
from logreel.io.arrays import I64
from logreel.layout.arrow import schema_of
from logreel.layout.arrow_arrays import fixed_list_type, item_type, values_of
from logreel.layout.nodes import path_text
from logreel.log.columns import RowOptions, Rows
from logreel.log.log import Channel
from logreel.log.tables import TableReader, time_column
from logreel.ops.query.record_batches import BYTES, MOST, merge_intervals

#: Function that returns an expression that holds for all rows with times between two numbers, both included.
Known = Callable[[int, int], pc.Expression]

#: Parts that a range of rows is divided into; parts at an edge are divided again.
PARTS = 16


def referenced_columns(condition: pc.Expression, schema: pa.Schema, without: Iterable[str]) -> list[str]:
    """Return the columns of *schema* that *condition* uses and that are not in *without*."""
    empty = schema.empty_table()
    without = set(without)

    def enough(names: set[str]) -> bool:
        try:
            filter_rows(empty.select([name for name in schema.names if name in names]), condition)
        except pa.ArrowInvalid:
            return False
        return True

    others = [name for name in schema.names if name not in without]
    if enough(without):
        return []
    # Each test takes a time that grows with the columns, so halves are tested before single columns.
    everything, used, waiting = {*schema.names}, [], [others]
    if not enough(everything):
        return others
    while waiting:
        part = waiting.pop()
        if enough(everything - {*part}):
            continue
        if len(part) == 1:
            used += part
        else:
            half = len(part) // 2
            waiting += [part[half:], part[:half]]
    return used


def matching_rows(condition: pc.Expression, schema: pa.Schema, times: I64, known: Known, rows: Rows) -> Rows:
    """Return those of *rows* for which *condition* can be true: all that match, and few that do not.

    Arrow skips files of a dataset if a condition excludes their known values. Here each "file" is a range of messages,
    and is never opened.

    schema  the columns that the condition can use
    times   int64[n] of all messages, in any order
    """
    picked = times[rows]
    order = None if (picked[1:] >= picked[:-1]).all() else np.argsort(picked, kind="stable")
    ascending = picked if order is None else picked[order]
    ranges = list(_matching_ranges(condition, schema, ascending, known, 0, len(ascending)))
    if order is None and len(ranges) == 1 and isinstance(rows, slice):
        first = rows.indices(len(times))[0]
        return slice(first + ranges[0][0], first + ranges[0][1])
    each = np.concatenate([np.zeros(0, np.int64), *(np.arange(lo, hi) for lo, hi in ranges)])
    chosen = each if order is None else np.sort(order[each])
    return chosen + rows.indices(len(times))[0] if isinstance(rows, slice) else rows[chosen]


def _matching_ranges(
    condition: pc.Expression, schema: pa.Schema, times: I64, known: Known, first: int, stop: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of ascending *times* from *first* to *stop* for which *condition* can be true, in order."""
    cuts = np.unique(np.linspace(first, stop, PARTS + 1).astype(np.int64))
    low, high = times[cuts[:-1]].tolist(), times[cuts[1:] - 1].tolist()
    kept = possible_parts(condition, schema, [known(a, b) for a, b in zip(low, high, strict=True)])
    for a, b in merge_intervals([(i, i + 1) for i in kept]):
        lo, hi = int(cuts[a]), int(cuts[b])
        if stop - first <= PARTS:
            yield lo, hi
            continue
        # Only parts at an edge can match in part.
        inner, outer = int(cuts[a + 1]), int(cuts[b - 1])
        ranges = [*_matching_ranges(condition, schema, times, known, lo, inner)]
        if inner < hi:
            ranges += [(inner, outer)] if inner < outer else []
            ranges += _matching_ranges(condition, schema, times, known, outer, hi)
        yield from merge_intervals(ranges)


def possible_parts(condition: pc.Expression, schema: pa.Schema, known: list[pc.Expression]) -> list[int]:
    """Return the indices in *known* for which *condition* can be true."""
    nowhere, form = pyarrow.fs.LocalFileSystem(), ds.IpcFileFormat()
    parts = [
        form.make_fragment(str(i), filesystem=nowhere, partition_expression=expression)
        for i, expression in enumerate(known)
    ]
    all_parts = ds.FileSystemDataset(parts, schema, form)
    return sorted(int(part.path) for part in all_parts.get_fragments(filter=condition))


def filter_rows(table: pa.Table, condition: pc.Expression) -> pa.Table:
    """Return the rows of *table* for which *condition* is true, in their order.

    `pyarrow.Table.filter` does the same in threads of Arrow, for which it waits forever if they cannot be started.
    Raises pyarrow.ArrowInvalid for a condition that does not fit the columns.
    """
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    node = acero.Declaration("filter", acero.FilterNodeOptions(condition), [source])
    return node.to_table(use_threads=False)


TIME, TIME_NS, LOG, TOPIC = "time", "time_ns", "log", "topic"
#: Largest array of DuckDB; larger and empty arrays become lists.
MAX_ARRAY = 100_000


@dataclass(frozen=True)
class TablePart:
    """Messages of one channel of one log.

    log    name of the log
    rows   the messages of the interval
    paths  paths of nested fields that are columns, too
    labelled  whether there is a column ``topic``: the table has several channels of a log
    """

    ch: Channel
    log: str
    rows: Rows
    utc: bool = False
    paths: tuple[str, ...] = ()
    labelled: bool = False

    @cached_property
    def clock(self) -> pa.DataType:
        """Type of the column ``time``, without time zone: with one, DuckDB compares without nanoseconds."""
        arrow_type = time_column(self.ch, np.zeros(0, np.int64), self.utc).type
        return pa.timestamp("ns") if pa.types.is_timestamp(arrow_type) else arrow_type

    @cached_property
    def fields(self) -> dict[str, tuple[str, pa.Field[Any]]]:
        """Path and Arrow field by column name; names differ in more than case, as SQL requires."""
        layout = self.ch.layout
        every = [(path_text((field.name,)), field.name, field) for field in schema_of(layout)]
        for path in self.paths:
            with contextlib.suppress(NotFoundError):
                every += [(path, path, field) for field in schema_of(layout, [path])]
        taken = {TIME, TIME_NS, *self.labels}
        fields = {}
        for path, label, field in every:
            name, n = label, 1
            while name.casefold() in taken:
                n += 1
                name = f"{label}_{n}"
            taken.add(name.casefold())
            if (arrow_type := storable(field.type)) is not None:
                fields[name] = path, field.with_type(arrow_type)
        return fields

    @property
    def labels(self) -> dict[str, str]:
        """Columns that have one value for all messages of the channel."""
        return {TOPIC: self.ch.topic, LOG: self.log} if self.labelled else {LOG: self.log}

    def times(self, rows: I64 | None = None) -> I64:
        """Return int64[n]: times (ns) of all messages, or of those at *rows*, as in the column ``time``."""
        return self._shown(
            self.ch.times if rows is None else self.ch.log.index.times_of(self.ch.number, rows)
        )

    def _shown(self, times: I64) -> I64:
        column = time_column(self.ch, times, self.utc)
        return values_of(column.buffers()[1], np.int64, len(column)) if len(column) else times

    def spans(self) -> tuple[I64, I64, I64] | None:
        """Return ``block_spans`` of the channel, with times as in the column ``time``; None for a local log."""
        blocks = self.ch.log.index.block_spans(self.ch.number)
        if blocks is None:
            return None
        first, stop, span = blocks
        return first, stop, np.column_stack([self._shown(span[:, 0].copy()), self._shown(span[:, 1].copy())])

    def known(self, low: int, high: int) -> pc.Expression:
        """Return an expression that holds for all messages with times from *low* to *high*, both included."""
        ns, at = pc.field(TIME_NS), pc.field(TIME)
        first, last = (pa.scalar(value, self.clock) for value in (low, high))
        expression = (ns >= low) & (ns <= high) & (at >= first) & (at <= last)
        for name, text in self.labels.items():
            expression &= pc.field(name) == text
        return expression

    def batches(self, columns: list[str], rows: Rows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the messages in batches of bounded size with *columns* of *schema*; missing columns are null."""
        own = [name for name in columns if name in self.fields]
        paths = [self.fields[name][0] for name in own]
        shape = RowOptions(utc=self.utc, clock=not {TIME, TIME_NS}.isdisjoint(columns))
        for batch in TableReader(self.ch, paths, shape).batches(rows, MOST, BYTES):
            arrays = dict(zip(own, batch.columns[1:], strict=True))
            arrays[TIME], arrays[TIME_NS] = batch.column(0), batch.column(0).cast(pa.int64())
            for name, text in self.labels.items():
                if name in columns:
                    arrays[name] = pa.repeat(pa.scalar(text), batch.num_rows)
            yield pa.RecordBatch.from_arrays(
                [as_type(arrays.get(name), schema.field(name).type, batch.num_rows) for name in columns],
                schema=pa.schema([schema.field(name) for name in columns]),
            )


def as_type(array: pa.Array[Any] | None, arrow_type: pa.DataType, rows: int) -> pa.Array[Any]:
    """Return *array* as another type; nulls for None."""
    if array is None:
        # The annotations have an overload for each type, and none for any type.
        nulls: pa.Array[Any] = pa.nulls(rows, arrow_type)  # type: ignore[call-overload]
        return nulls
    return array if array.type == arrow_type else array.cast(arrow_type)


def storable(arrow_type: pa.DataType) -> pa.DataType | None:
    """Return the type for *arrow_type* that DuckDB can hold; None for one without values, as an empty struct."""
    if pa.types.is_struct(arrow_type):
        inner = [(field, storable(field.type)) for field in arrow_type]
        stored = [field.with_type(of) for field, of in inner if of is not None]
        return pa.struct(stored) if stored and len(stored) == len(inner) else None
    if pa.types.is_list(arrow_type) or pa.types.is_fixed_size_list(arrow_type):
        item = storable(item_type(arrow_type))
        if item is None:
            return None
        if pa.types.is_list(arrow_type) or not 0 < arrow_type.list_size <= MAX_ARRAY:
            return pa.list_(item)
        return fixed_list_type(item, arrow_type.list_size)
    return arrow_type


class TopicTable(ds.Dataset):
    """The channels of one topic, of one log or several, as a dataset; or several channels of each.

    Its columns are ``time``, ``time_ns`` (int64), the fields of the channels by name, for several channels ``topic``,
    and ``log``. It decodes what ``scanner`` is asked for, in batches of bounded size.

    topic   the topic, or what was written to select several
    failed  called with each exception raised while batches are read: Arrow only keeps its text
    turn    lock held while a batch is decoded: DuckDB reads several tables in parallel
    """

    def __init__(
        self, topic: str, parts: list[TablePart], failed: Callable[[Exception], None], turn: Lock
    ) -> None:
        self._topic, self._parts, self._failed, self._turn = topic, parts, failed, turn
        clocks = {part.clock for part in parts}
        if len(clocks) > 1:
            raise UsageError(f"the logs with {topic!r} have different clocks", hint="pass utc=True")
        names = dict.fromkeys(name for part in parts for name in part.fields)
        self._schema = pa.schema(
            [
                pa.field(TIME, parts[0].clock),
                pa.field(TIME_NS, pa.int64()),
                *(self._field(name) for name in names),
                *(pa.field(name, pa.string()) for name in parts[0].labels),
            ]
        )

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._schema

    def _field(self, name: str) -> pa.Field[Any]:
        """Return one column, of a type that holds the values of all logs."""
        kinds = {
            part.fields[name][1].type: f"{part.ch.topic} of {part.log}" if part.labelled else part.log
            for part in self._parts
            if name in part.fields
        }
        try:
            return pa.unify_schemas(
                [pa.schema([pa.field(name, arrow_type)]) for arrow_type in kinds],
                promote_options="permissive",
            ).field(0)
        except pa.ArrowTypeError:
            both = " and ".join(f"{arrow_type} in {where}" for arrow_type, where in kinds.items())
            what = "channels" if self._parts[0].labelled else "logs"
            raise UsageError(
                f"{name!r} of {self._topic!r} is {both}: ask for these {what} one by one"
            ) from None

    def scanner(  # type: ignore[override]
        self, columns: Iterable[str] | None = None, filter: pc.Expression | None = None, **_: Any
    ) -> Any:
        """Return a scanner, as pyarrow datasets do, of the rows for which *filter* is true, with *columns*."""
        names = self._schema.names if columns is None else list(columns)
        used = names if filter is None else [*names, *referenced_columns(filter, self._schema, names)]
        schema = pa.schema([self._schema.field(name) for name in names])
        return LazyScanner(schema, self._watched(self._batches(names, used, filter)))

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                with self._turn:
                    batch = next(batches, None)
            except Exception as error:
                self._failed(error)
                raise
            if batch is None:
                return
            yield batch

    def _batches(
        self, names: list[str], used: list[str], condition: pc.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        for part in self._parts:
            for batch in part.batches(used, self._rows(part, condition), self._schema):
                if condition is None:
                    yield batch
                else:
                    filtered = filter_rows(pa.Table.from_batches([batch]), condition).select(names)
                    yield from filtered.to_batches()

    def _rows(self, part: TablePart, condition: pc.Expression | None) -> Rows:
        known = {TIME, TIME_NS, *part.labels}
        if condition is None or not known & {*referenced_columns(condition, self._schema, ())}:
            return part.rows
        rows = part.rows
        if (spans := part.spans()) is None:
            return matching_rows(condition, self._schema, part.times(), part.known, rows)
        # Of a remote log, times are fetched only of chunks with messages for which the condition can be true.
        known_of = [part.known(int(low), int(high)) for low, high in spans[2].tolist()]
        kept = possible_parts(condition, self._schema, known_of)
        ranges = [np.arange(spans[0][k], spans[1][k]) for k in kept]
        possible = intersect_rows(np.concatenate([np.zeros(0, np.int64), *ranges]), rows)
        numbers = np.arange(possible.start, possible.stop) if isinstance(possible, slice) else possible
        times = part.times(numbers)
        return numbers[matching_rows(condition, self._schema, times, part.known, slice(0, len(numbers)))]


@dataclass(frozen=True)
class LazyScanner:
    """Replacement for Arrow's scanner, which would read many batches ahead."""

    projected_schema: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a reader that decodes each batch when it is read."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.batches)


def alias(topic: str) -> str:
    """Return the name of *topic* that SQL accepts without quotes: ``imu_data`` for ``/imu/data``."""
    name = re.sub(r"\W+", "_", topic.removeprefix("/"), flags=re.ASCII).rstrip("_")
    return f"_{name}" if name[:1].isdigit() or not name else name
