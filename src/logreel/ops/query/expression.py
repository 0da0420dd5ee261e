"""SQL expressions over the fields of a channel, as columns.

An expression may come with an address or a layout from someone else, so it is parsed before it is executed: only
arithmetic, comparisons and known functions pass, whose time and memory grow with the number of rows; no queries inside
of it, no tables, no functions that make long values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from logreel.errors import UsageError
from logreel.layout.arrow_arrays import values_of
from logreel.log.log import Channel
from logreel.log.tables import as_numpy
from logreel.ops.query.database import connect, import_duckdb, memory_errors
from logreel.ops.query.sorted_column import MemoryColumn
from logreel.ops.query.sql import Bounds, answer


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


#: Kinds of expressions, as DuckDB names them, that may be used.
KINDS = words("BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR TYPE WINDOW")
#: Functions and operators that may be used.
FUNCTIONS = words(
    """
    + - * / // % ** ^ & | ~ << >> @ ! abs acos acosh add asin asinh atan atan2 atanh avg bit_count cbrt ceil ceiling cos
    cosh cot degrees divide epoch epoch_ms epoch_ns epoch_us even exp fdiv first_value floor fmod gcd greatest hypot
    isfinite isinf isnan lag last_value lcm lead ln log log10 log2 max mean median min mod multiply nth_value
    nullif pi pow power radians round row_number sign sin sinh sqrt stddev stddev_pop stddev_samp subtract sum tan tanh
    trunc var_pop var_samp variance xor count any_value rank dense_rank array_extract struct_extract list_extract
    """
)


def expression_column(
    ch: Channel, expression: str, rows: int, seconds: float, memory: str, check: Callable[[], None]
) -> MemoryColumn:
    """Return the value of an SQL expression for each row of a channel, as in ``SELECT expression FROM topic``.

    rows, seconds, memory  limits: rows of the channel, time, and memory (``256MB``) of the query
    check                  called while the query runs; raises to end it

    Window functions, such as ``x - lag(x) OVER (ORDER BY time_ns)``, are expressions, too. Raises UsageError for an
    invalid expression, one that is no number, one beyond the limits; MissingDependencyError without DuckDB.
    """
    check_expression(expression)
    if len(ch) > rows:
        raise UsageError(f"{ch.topic!r} has {len(ch)} messages: expressions are for channels of up to {rows}")
    name = ch.topic.replace('"', '""')
    query = f'SELECT time_ns AS "~t", CAST({_alone(expression)} AS DOUBLE) AS "~v" FROM "{name}"'
    times, values = [np.zeros(0, np.int64)], [np.zeros(0)]
    count = 0
    with answer(query, [ch.log], bounds=Bounds(seconds, memory, check)) as (_, batches):
        for batch in batches:
            count += len(batch)
            if count > rows:
                raise UsageError(f"the expression has more than {rows} rows")
            t, v = batch.columns
            if len(t):
                times.append(values_of(t.buffers()[1], np.dtype(np.int64), len(t), t.offset * 8))
                values.append(as_numpy(v).astype(np.float64, copy=False))
    every = np.concatenate(times)
    order = np.argsort(every, kind="stable")
    return MemoryColumn(every[order], np.concatenate(values)[order], "")


def _alone(expression: str) -> str:
    # On lines of its own, so that a comment at the end of the expression ends there.
    return f"(\n{expression}\n)"


def check_expression(expression: str) -> None:
    """Raise UsageError for what is not one expression of the kinds and functions that may be used."""
    parsed_expression(expression, KINDS, FUNCTIONS)


def parsed_expression(
    text: str, kinds: Collection[str], functions: Collection[str], what: str = "expression"
) -> dict[str, Any]:
    """Return one SQL expression as DuckDB parses it: a tree of dicts with ``class`` and ``type``.

    kinds, functions  classes of expressions, and names of functions, that may be used
    what              what to call it in error texts

    Raises UsageError for other text; MissingDependencyError without DuckDB.
    """
    duckdb = import_duckdb()
    with memory_errors(duckdb), connect(duckdb) as con:
        try:
            query = "SELECT json_serialize_sql(?::VARCHAR)"
            found = json.loads(con.execute(query, [f"SELECT {_alone(text)}"]).fetchall()[0][0])
        except duckdb.OutOfMemoryException:
            raise
        except (duckdb.Error, ValueError, RecursionError):
            raise UsageError(f"the {what} cannot be read") from None
    if found.get("error"):
        raise UsageError(f"the {what} cannot be read: {found.get('error_message', '')}")
    if len(found["statements"]) != 1 or not _is_plain(found["statements"][0]["node"]):
        raise UsageError(f"the {what} has to be one value for each row, not a query")
    for part in parts_of(found["statements"][0]["node"]["select_list"]):
        kind, name = part["class"], str(part.get("function_name", ""))
        if kind not in kinds:
            raise UsageError(f"the {what} must not have a {kind.lower().replace('_', ' ')}")
        if kind in ("FUNCTION", "WINDOW") and name.lower() not in functions:
            known = ", ".join(sorted(one for one in functions if one.isidentifier()))
            raise UsageError(f"the {what} must not use {name!r}; there are: {known}")
    tree: dict[str, Any] = found["statements"][0]["node"]["select_list"][0]
    return tree


def _is_plain(node: dict[str, Any]) -> bool:
    """Return whether a statement is SELECT with one value and nothing else."""
    if node.get("type") != "SELECT_NODE" or len(node["select_list"]) != 1:
        return False
    more = ("modifiers", "where_clause", "group_expressions", "group_sets", "having", "sample", "qualify")
    tables = node.get("cte_map", {}).get("map")
    return node["from_table"].get("type") == "EMPTY" and not tables and not any(node.get(key) for key in more)


def parts_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all expressions in a parsed one."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            if "class" in one:
                yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
