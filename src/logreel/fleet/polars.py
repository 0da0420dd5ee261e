"""A plan as a polars LazyFrame, which decodes only what a query needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logreel.errors import MissingDependencyError
from logreel.ops.query.polars import conjuncts

if TYPE_CHECKING:
    from logreel.fleet.plans import Plan
    from logreel.io.arrays import I64
    from logreel.log.tables import Rows


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
    from logreel.fleet.plan_table import PlanTable

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
