"""SQL expressions over the fields of a channel, as columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from logreel.errors import UsageError
from logreel.layout.arrow_arrays import values_of
from logreel.log.log import Channel
from logreel.ops.query.sorted_column import MemoryColumn
from logreel.ops.query.sql import Bounds, answer


def expression_column(
    ch: Channel, expression: str, rows: int, seconds: float, memory: str, check: Callable[[], None]
) -> MemoryColumn:
    """Return the value of an SQL expression for each row of a channel, as in ``SELECT expression FROM topic``.

    rows, seconds, memory  limits: rows of the channel, time, and memory (``256MB``) of the query
    check                  called while the query runs; raises to end it

    Window functions, such as ``x - lag(x) OVER (ORDER BY time_ns)``, are expressions, too. Raises UsageError for an
    invalid expression, one that is no number, one beyond the limits.
    """
    if len(ch) > rows:
        raise UsageError(f"{ch.topic!r} has {len(ch)} messages: expressions are for channels of up to {rows}")
    name = ch.topic.replace('"', '""')
    # On lines of its own, so that a comment at the end of the expression ends there.
    query = f'SELECT time_ns AS "~t", CAST((\n{expression}\n) AS DOUBLE) AS "~v" FROM "{name}"'
    parts = []
    count = 0
    bounds = Bounds(seconds, memory, check)
    with answer(query, [ch.log], bounds=bounds) as (schema, batches):
        if schema.names != ["~t", "~v"]:
            raise UsageError("an expression is one value for each row")
        for batch in batches:
            count += len(batch)
            if count > rows:
                raise UsageError(f"the expression has more than {rows} rows")
            t, v = batch.columns
            if t.null_count or str(t.type) != "int64":
                raise UsageError("an expression is one value for each row")
            times = values_of(t.buffers()[1], np.dtype(np.int64), len(t), t.offset * 8) if len(t) else None
            values = v.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
            parts.append((np.zeros(0, np.int64) if times is None else times, values))
    times = np.concatenate([np.zeros(0, np.int64), *(t for t, _ in parts)])
    values = np.concatenate([np.zeros(0), *(v for _, v in parts)])
    order = np.argsort(times, kind="stable")
    return MemoryColumn(times[order], values[order], "")
