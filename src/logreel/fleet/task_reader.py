"""Reads one task: batches of bounded size, and the row of the catalogue."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from logreel.errors import LogError
from logreel.fleet.catalogue_row import FAILED, CatalogueRow, row_of_log
from logreel.fleet.source_files import LogPart, error_text, fingerprint, open_part
from logreel.fleet.topic_schema import (
    LOG,
    TIME,
    TIME_NS,
    TIMESTAMPS,
    TopicSchema,
    own_columns,
    part_of_schema,
    reader_of,
    source_of,
    stored_array,
    utc_times,
)
from logreel.io.arrays import I64
from logreel.layout.arrow_from_buffers import text_array
from logreel.log.columns import RowOptions, Rows
from logreel.log.log import Channel, Log
from logreel.log.tables import TableReader, as_numpy, flattened
from logreel.log.times import utc_shift

#: Most messages of a batch, and its approximate bytes.
ROWS, BYTES = 1 << 16, 16 << 20


class RowChoice(Protocol):
    """Which messages are wanted, as far as their times decide it."""

    def rows(self, log: str, topic: str, times: I64, shift: int | None, rows: Rows) -> Rows:
        """Return the messages of *rows* that can be wanted.

        log, topic  path of the log, name of the channel
        times   int64[n] of all messages of the channel, ns of the log's clock, in any order
        shift   ns from the log's clock to UTC; None: unknown
        """


class TaskReader(Iterator[pa.RecordBatch]):
    """The messages of a task as batches of bounded size; the schema of each has the metadata ``topic`` and ``log``.

    Columns: ``time`` (timestamp[ns], UTC; null where the log does not tell), ``time_ns`` (int64, the log's clock),
    ``log`` (key in a dataset, else path), then the fields, flat. Rows are in file order.

    columns    names of columns to decode; None: all
    schemas    columns of topics that batches get; None: those of the log
    choice  messages that it leaves out are not read
    timestamps  unit of the columns that are timestamps; see ``own_columns``
    row      CatalogueRow, complete when the iterator has ended
    error    OSError or MemoryError that ended the reading: perhaps a passing fault; else None

    Iterating raises nothing for what is wrong with a log.
    """

    def __init__(
        self,
        task: LogPart,
        columns: Sequence[str] | None = None,
        facts: bool = True,
        schemas: Mapping[str, TopicSchema] | None = None,
        choice: RowChoice | None = None,
        timestamps: str = "ns",
    ) -> None:
        self.row = CatalogueRow(path=task.path, log=task.log)
        if task.fingerprint is not None:
            mark = task.fingerprint
            self.row.size, self.row.mtime_ns, self.row.fingerprint = mark.size, mark.mtime_ns, mark.digest
        self.error: OSError | MemoryError | None = None
        self._task, self._facts = task, facts
        self._columns = None if columns is None else frozenset(columns)
        self._schemas = schemas or {}
        self._choice, self._timestamps = choice, timestamps
        self._batches = self._read()

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __iter__(self) -> TaskReader:
        return self

    def _read(self) -> Iterator[pa.RecordBatch]:
        task, row = self._task, self.row
        if task.error:
            row.status, row.error = FAILED, task.error
            return
        try:
            if task.fingerprint is not None and fingerprint(task.path) != task.fingerprint:
                row.status, row.error = FAILED, "the file has changed since the plan was made"
                return
            with open_part(task.path, task.definitions, task.types) as log:
                for topic in task.topics:
                    yield from self._topic(log, topic)
                    log.index.forget_times(log.channels[topic].number)
                row_of_log(row, log, self._facts)
        except (OSError, MemoryError) as error:
            self.error = error
            row.status, row.error = FAILED, error_text(error)
        except (LogError, pa.ArrowException) as error:
            row.status, row.error = FAILED, error_text(error)

    def _topic(self, log: Log, topic: str) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one channel; a definition that cannot be used is noted, and nothing is yielded."""
        task = self._task
        ch = log.channels[topic]
        try:
            reader = reader_of(ch, task.fields)
            places, own = own_columns(reader, self._timestamps)
        except LogError as error:
            self.row.undecodable[topic] = error.text
            return
        schema = self._schemas.get(topic) or TopicSchema.of(topic, own, self._timestamps)
        about = {b"topic": topic.encode("utf-8", "surrogatepass"), b"log": os.fsencode(task.path)}
        schema_of_rows = self._projected(schema.schema).with_metadata(about)
        if self._columns is not None:
            reader, places, own = _narrowed(ch, reader, places, own, schema, schema_of_rows.names)
        rows = self._rows(log, ch)
        for batch in reader.batches(rows, ROWS, BYTES):
            flat = flattened(batch)
            values = {
                field.name: stored_array(flat.column(n), field.type)
                for n, field in zip(places, own, strict=True)
            }
            by_name = schema.arrays(values, flat.num_rows, schema_of_rows.names) | self._head(
                log, flat.column(0)
            )
            self.row.rows[topic] = self.row.rows.get(topic, 0) + flat.num_rows
            yield pa.RecordBatch.from_arrays(
                [by_name[name] for name in schema_of_rows.names], schema=schema_of_rows
            )
        self.row.rows.setdefault(topic, 0)

    def _rows(self, log: Log, ch: Channel) -> Rows:
        """Return the messages of the window, without those that are left out."""
        task = self._task
        rows = log.index.rows_between(ch.number, task.start, task.end, keep=False)
        if self._choice is None:
            return rows
        return self._choice.rows(task.path, ch.topic, ch.times, utc_shift(log), rows)

    def _projected(self, schema: pa.Schema) -> pa.Schema:
        if self._columns is None:
            return schema
        return part_of_schema(schema, self._columns)

    def _head(self, log: Log, time: pa.Array[Any]) -> dict[str, pa.Array[Any]]:
        """Return the columns of HEAD by name."""
        ns = time.cast(pa.int64())
        utc = utc_times(as_numpy(ns), utc_shift(log), TIMESTAMPS[self._timestamps])
        name = (self._task.log or self._task.path).encode("utf-8", "replace")
        # A scalar of an array: to convert a text of Python, pyarrow imports pandas where that is installed.
        names = text_array(np.array([0, len(name)], np.int32), np.frombuffer(name, np.uint8))
        return {TIME: utc, TIME_NS: ns, LOG: pa.repeat(names[0], len(ns))}


def _narrowed(
    ch: Channel,
    reader: TableReader,
    places: list[int],
    own: list[pa.Field[Any]],
    schema: TopicSchema,
    columns: Sequence[str],
) -> tuple[TableReader, list[int], list[pa.Field[Any]]]:
    """Return a reader that decodes only the fields of *columns*, with its places and columns as of ``own_columns``.

    The whole reader remains where names of columns are not those of fields, which happens if they clash with others.
    """
    wanted = {source_of(schema.schema.field(name)) for name in columns}
    paths = [field.name for field in own if field.name in wanted]
    try:
        narrow = TableReader(ch, paths, RowOptions(), keep=False)
        own_places = own_columns(narrow)
    except LogError:
        return reader, places, own
    if [field.name for field in own_places[1]] != paths:
        return reader, places, own
    return narrow, *own_places
