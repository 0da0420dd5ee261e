"""Daft: tasks of a plan as a DataSource."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pyarrow as pa

from logreel.errors import MissingDependencyError
from logreel.fleet.plan_table import ArrowCondition, PlanTable
from logreel.fleet.plans import Plan, Task
from logreel.fleet.topic_schema import TIME_NS

try:
    import daft
    from daft.io.source import DataSource, DataSourceTask
except ImportError as error:
    raise MissingDependencyError("daft", "daft") from error


def datasource(plan: Plan) -> LogDataSource:
    """Return a plan as a source of Daft; ``datasource(plan).read()`` is a ``daft.DataFrame``.

    A row per message, with the columns of ``PlanTable``: ``time``, ``time_ns``, ``log``, the fields of all topics, and
    ``topic``. Only the columns that a query needs are decoded, and only messages whose log, topic and times can meet
    its conditions. Opens each log once to know the columns.

    Raises UsageError for a plan of which no log can be decoded.
    """
    return LogDataSource(PlanTable(plan))


class LogDataSource(DataSource):  # type: ignore[misc]
    """A plan as a source of Daft; from ``datasource``."""

    def __init__(self, table: PlanTable) -> None:
        self._table = table

    @property
    def name(self) -> str:
        """Return the name that plans of Daft show."""
        return "logreel"

    @property
    def schema(self) -> daft.Schema:
        """Return the columns."""
        return _schema(self._table.schema)

    async def get_tasks(self, pushdowns: Any) -> AsyncIterator[DataSourceTask]:
        """Yield a task per task of the plan that can have rows."""
        names = self._table.schema.names
        if pushdowns.columns is not None:
            wanted = {*pushdowns.columns, *pushdowns.filter_required_column_names()}
            # Without a column there is no number of rows.
            names = [name for name in names if name in wanted] or [TIME_NS]
        condition = None
        if pushdowns.filters is not None:
            try:
                expression = pushdowns.filters.to_arrow_expr()
                condition = ArrowCondition(expression, self._table.schema, exact=False)
            except (NotImplementedError, ValueError, TypeError, AttributeError, pa.ArrowException):
                # An expression that Arrow does not know leaves all messages to Daft.
                condition = None
        table = self._table.without_tasks()
        for task in self._table.plan:
            if any(condition is None or condition.may_hold(task.path, topic) for topic in task.topics):
                yield _Task(table, task, names, condition)


class _Task(DataSourceTask):  # type: ignore[misc]
    """A task of a plan, sent to where Daft reads it. Daft applies conditions itself."""

    def __init__(
        self, table: PlanTable, task: Task, names: list[str], condition: ArrowCondition | None
    ) -> None:
        self._table, self._task, self._names, self._condition = table, task, names, condition

    @property
    def schema(self) -> daft.Schema:
        """Return the columns."""
        return _schema(pa.schema([self._table.schema.field(name) for name in self._names]))

    async def read(self) -> AsyncIterator[Any]:
        """Yield record batches of Daft."""
        tables = self._table.read(self._task, self._names, self._condition)
        # Reading in a thread leaves the loop to other tasks.
        while (table := await asyncio.to_thread(next, tables, None)) is not None:
            yield daft.recordbatch.RecordBatch.from_arrow_table(table)


def _schema(schema: pa.Schema) -> daft.Schema:
    return daft.Schema.from_pyarrow_schema(schema)
