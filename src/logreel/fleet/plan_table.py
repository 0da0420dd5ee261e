"""The messages of a plan as one table, for engines that want columns which are the same in all tasks."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.fleet.catalogue_row import FAILED
from logreel.fleet.plans import Plan, Task
from logreel.fleet.task_reader import RowChoice, TaskReader
from logreel.fleet.topic_schema import HEAD, LOG, TIME, TIME_NS, TopicSchema, part_of_schema, union
from logreel.ops.query.polars import conjuncts
from logreel.ops.query.topic_table import filter_rows, matching_rows, possible_parts, referenced_columns

if TYPE_CHECKING:
    from logreel.io.arrays import I64
    from logreel.log.columns import Rows


#: Name of the column with the topic of each row.
TOPIC = "topic"


class RowCondition(RowChoice, Protocol):
    """What an engine asks of rows, as far as it can be decided before messages are read."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns that the condition uses, which are decoded also where they are not wanted."""

    def may_hold(self, log: str, topic: str) -> bool:
        """Return whether the condition can be true for messages of a topic of a log."""

    def apply(self, table: pa.Table) -> pa.Table:
        """Return the rows for which the condition is true, or *table* if the engine does that itself."""


class PlanTable:
    """The messages of a plan as one table; plain data that can be pickled.

    Columns: ``time`` (UTC or null), ``time_ns``, ``log``, the fields of all topics, ``topic``. Where versions of a
    topic differ, columns are as in a dataset. Opens each log once to know them.

    Raises UsageError for a plan of which no log can be decoded.
    """

    def __init__(self, plan: Plan) -> None:
        schemas = plan.schemas()
        if not schemas:
            raise UsageError("no log of the plan has messages that can be decoded")
        self.plan = plan
        self._columns = union(schemas.values())
        plain = [field.remove_metadata() for field in self._columns.schema]
        self.schema = pa.schema([*plain, pa.field(TOPIC, pa.string())])

    def without_tasks(self) -> PlanTable:
        """Return the table without its tasks, to be sent to another process with one of them."""
        table = copy.copy(self)
        table.plan = replace(self.plan, tasks=())
        return table

    def __repr__(self) -> str:
        return f"<logreel.fleet.PlanTable: {len(self.plan)} tasks, {len(self.schema.names)} columns>"

    def read(
        self,
        task: Task,
        columns: Sequence[str] | None = None,
        condition: pc.Expression | RowCondition | None = None,
    ) -> Iterator[pa.Table]:
        """Yield the messages of a task of the plan as tables of bounded size, in file order, topic by topic.

        columns    names of columns, in the order in which the tables have them; None: all. Others are not decoded
        condition  an expression of ``pyarrow.compute``; only rows for which it is true are yielded, and only messages
                   whose log, topic and times can meet it are read

        Raises OSError and LogError for a log that cannot be read any more, or has changed since the plan was made.
        Logs that the plan could not read have no rows.
        """
        names = self.schema.names if columns is None else list(columns)
        if isinstance(condition, pc.Expression):
            condition = ArrowCondition(condition, self.schema)
        topics = task.topics
        if condition is not None:
            topics = tuple(topic for topic in topics if condition.may_hold(task.path, topic))
        if not topics:
            return
        decoded = {*names, *(() if condition is None else condition.columns)}
        schemas = {topic: TopicSchema(topic, self._columns.schema) for topic in topics}
        # A column is needed to count the rows.
        needed = [name for name in self._columns.schema.names if name in decoded] or [TIME_NS]
        reader = TaskReader(replace(task, topics=topics), needed, False, schemas, condition)
        for batch in reader:
            table = self._table(batch)
            if condition is not None:
                table = condition.apply(table)
            if table.num_rows:
                yield table.select(names)
        if reader.error is not None:
            raise reader.error
        if reader.row.status == FAILED and not task.error:
            # A table that is silently short would be worse.
            raise LogError(reader.row.error, path=task.path)

    def _table(self, batch: pa.RecordBatch) -> pa.Table:
        """Return a batch as a table with the column of the topic."""
        topic = batch.schema.metadata[b"topic"].decode("utf-8", "replace")
        arrays: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        arrays[TOPIC] = pa.repeat(pa.scalar(topic, pa.string()), batch.num_rows)
        schema = part_of_schema(self.schema, arrays)
        return pa.Table.from_arrays([arrays[name] for name in schema.names], schema=schema)

    def to_arrow_reader(
        self, columns: Sequence[str] | None = None, condition: pc.Expression | None = None
    ) -> pa.RecordBatchReader:
        """Return all messages as a ``pyarrow.RecordBatchReader``, which reads task after task; see ``read``."""
        names = self.schema.names if columns is None else list(columns)
        chosen = None if condition is None else ArrowCondition(condition, self.schema)
        batches = (
            batch
            for task in self.plan
            for table in self.read(task, names, chosen)
            for batch in table.to_batches()
        )
        return pa.RecordBatchReader.from_batches(
            pa.schema([self.schema.field(name) for name in names]), batches
        )


class ArrowCondition:
    """A condition as an expression of ``pyarrow.compute``.

    exact  False: the engine applies the condition itself
    """

    def __init__(self, expression: pc.Expression, schema: pa.Schema, *, exact: bool = True) -> None:
        self._expression, self._exact = expression, exact
        self.columns: Sequence[str] = referenced_columns(expression, schema, ())
        # Of thousands of columns, only those that decide something.
        known = {*self.columns, LOG, TOPIC, TIME, TIME_NS}
        self._schema = pa.schema([field for field in schema if field.name in known])

    def may_hold(self, log: str, topic: str) -> bool:
        """Return whether the condition can be true for messages of a topic of a log."""
        return bool(possible_parts(self._expression, self._schema, [_constants(log, topic)]))

    def rows(self, log: str, topic: str, times: I64, shift: int | None, rows: Rows) -> Rows:
        """Return the messages of *rows* whose times can meet the condition; see ``RowChoice``."""
        if TIME_NS not in self.columns and TIME not in self.columns:
            return rows
        same = _constants(log, topic)

        def known(low: int, high: int) -> pc.Expression:
            ns, utc = pc.field(TIME_NS), pc.field(TIME)
            fits = same & (ns >= low) & (ns <= high)
            if shift is None:
                return fits & utc.is_null()
            if not -(1 << 63) <= low + shift <= high + shift < 1 << 63:
                return fits
            time_type = HEAD[0].type
            return (
                fits
                & (utc >= pa.scalar(low + shift, time_type))
                & (utc <= pa.scalar(high + shift, time_type))
            )

        return matching_rows(self._expression, self._schema, times, known, rows)

    def apply(self, table: pa.Table) -> pa.Table:
        """Return the rows for which the condition is true."""
        return filter_rows(table, self._expression) if self._exact else table


def _constants(log: str, topic: str) -> pc.Expression:
    """Return what holds for all messages of a topic of a log."""
    path, name = (text.encode("utf-8", "replace").decode() for text in (log, topic))
    return (pc.field(LOG) == path) & (pc.field(TOPIC) == name)


def scan_polars(plan: Plan) -> Any:
    """Return a ``polars.LazyFrame`` of the messages of many logs, which decodes only what a query needs.

    It has the columns of ``PlanTable``: ``time`` (UTC or null), ``time_ns``, ``log``, the fields of all topics, and
    ``topic``, in order of the tasks. Only the columns that the query needs are decoded, only messages whose ``log``,
    ``topic``, ``time`` and ``time_ns`` meet its conditions, and no more rows than the query takes from the beginning;
    logs without such messages are not opened again. Opens each log once to know the columns.

    Raises UsageError for a plan of which no log can be decoded, MissingDependencyError without polars. Collecting
    raises what polars makes of OSError and LogError for a log that has changed since the plan was made.
    """
    try:
        import polars as pl
        from polars.io.plugins import register_io_source
    except ImportError as error:
        raise MissingDependencyError("polars", "polars") from error

    table = PlanTable(plan)

    def source(columns: list[str] | None, predicate: Any, count: int | None, _: int | None) -> Iterator[Any]:
        # polars limits the rows before it applies the predicate.
        condition = None if predicate is None or count is not None else _PolarsCondition(predicate)
        names = table.schema.names if columns is None else columns
        needed = set(names) | (set() if predicate is None else set(predicate.meta.root_names()))
        left = count
        for task in plan:
            for part in table.read(task, [n for n in table.schema.names if n in needed], condition):
                # polars cannot take over slices of arrays with lists of fixed size.
                frame: Any = pl.from_arrow(part)
                frame = frame if left is None else frame.head(left)
                rows = frame.height
                yield (frame if predicate is None else frame.filter(predicate)).select(names)
                if left is not None:
                    left -= rows
                    if left == 0:
                        return

    return register_io_source(source, schema=pl.DataFrame(table.schema.empty_table()).schema)


class _PolarsCondition:
    """A predicate of polars, of which those parts count that logs, topics and times decide."""

    columns = ()

    def __init__(self, predicate: Any) -> None:
        parts = [(part, set(part.meta.root_names())) for part in conjuncts(predicate)]
        self._constant = [part for part, names in parts if names and names <= {"log", "topic"}]
        self._timed = [
            part
            for part, names in parts
            if names & {"time", "time_ns"} and names <= {"log", "topic", "time", "time_ns"}
        ]

    def may_hold(self, log: str, topic: str) -> bool:
        """Return whether the condition can be true for messages of a topic of a log."""
        return not self._constant or bool(_mask(self._constant, _frame(log, topic)).any())

    def rows(self, log: str, topic: str, times: I64, shift: int | None, rows: Rows) -> Rows:
        """Return the messages of *rows* whose times meet the condition; see ``RowChoice``."""
        if not self._timed:
            return rows
        import numpy as np

        from logreel.fleet.topic_schema import utc_times
        from logreel.ops.query.record_batches import as_slice

        numbers = np.arange(len(times), dtype=np.int64)[rows]
        picked = times[rows]
        frame = _frame(log, topic, time=utc_times(picked, shift), time_ns=picked)
        return as_slice(numbers[np.flatnonzero(_mask(self._timed, frame).to_numpy())])

    def apply(self, table: Any) -> Any:
        """Return the table: the predicate is applied to frames."""
        return table


def _frame(log: str, topic: str, **columns: Any) -> Any:
    import polars as pl

    path, name = (text.encode("utf-8", "replace").decode() for text in (log, topic))
    if not columns:
        return pl.DataFrame({"log": [path], "topic": [name]})
    made = {key: pl.from_arrow(value) if key == "time" else value for key, value in columns.items()}
    return pl.DataFrame(made).with_columns(log=pl.lit(path), topic=pl.lit(name))


def _mask(parts: list[Any], frame: Any) -> Any:
    import polars as pl

    return frame.select(pl.all_horizontal(parts).fill_null(False)).to_series()
