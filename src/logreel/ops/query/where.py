"""Conditions in SQL on the fields of messages: which messages meet them, and when they hold.

A condition is parsed before it is executed: only comparisons, arithmetic and functions of the values of one message
pass, whose time and memory grow with the number of messages; no queries, no other tables, files or windows. A value
holds until the next message of its channel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, LogError, NotFoundError, UsageError
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import as_list, row_numbers, values_of
from logreel.layout.nodes import Sequence as Records
from logreel.log.columns import RowOptions, own_paths
from logreel.log.log import Channel, Log
from logreel.log.tables import TableReader, as_numpy, column_values, time_column
from logreel.log.topic_fields import check_fields, fields_by_topic
from logreel.log.topic_match import listed
from logreel.meaning.columns import MemoryColumn
from logreel.ops.query.record_batches import BYTES, MOST, as_slice, intersect_intervals, most_rows
from logreel.ops.query.sql import (
    Asked,
    Bounds,
    Tables,
    answer,
    borrowed,
    bounded,
    connect,
    import_duckdb,
    memory_errors,
)

if TYPE_CHECKING:
    import pyarrow as pa


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


#: Kinds of expressions, as DuckDB names them, that may be used.
KINDS = words("BETWEEN CASE CAST COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR TYPE WINDOW")
#: Functions and operators that may be used.
FUNCTIONS = words(
    """
    + - * / // % ** ^ & | ~ << >> @ ! abs acos acosh add asin asinh atan atan2 atanh avg bit_count cbrt ceil ceiling cos
    cosh cot degrees divide epoch epoch_ms epoch_ns epoch_us even exp fdiv first_value floor fmod gcd greatest
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

    Window functions, such as ``x - lag(x) OVER (ORDER BY time_ns)``, are expressions, too. Fields of other channels are
    named as in conditions, ``battery_status.voltage_v``, and have their last value at or before the time of each row.
    Raises UsageError for an invalid expression, one that is no number, one beyond the limits; MissingDependencyError
    without DuckDB.
    """
    tree = parsed_expression(expression, KINDS, FUNCTIONS)
    if len(ch) > rows:
        raise UsageError(f"{ch.topic!r} has {len(ch)} messages: expressions are for channels of up to {rows}")
    others = _of_others(ch, tree)
    name = ch.topic.replace('"', '""')
    select = f'SELECT time_ns AS "~t", CAST({_alone(expression)} AS DOUBLE) AS "~v" FROM '
    query = f'{select}"{name}"'
    if others:
        return _across(ch, tree, others, Bounds(seconds, memory, check))
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


def _names_in(tree: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the names of columns in a parsed expression, in parts and in their order."""
    parts = [part for part in parts_of(tree) if _is_name(part)]
    parts.sort(key=lambda part: part.get("query_location") or 0)
    return list(dict.fromkeys(tuple(part["column_names"]) for part in parts))


def _of_others(ch: Channel, tree: dict[str, Any]) -> dict[tuple[str, ...], tuple[str, str]]:
    """Return topic and path of the names in an expression that begin with the name of another channel."""
    unknown = [name for name in _names_in(tree) if len(name) > 1 and _path(ch, name) is None]
    if not unknown:
        return {}
    tables = Tables([Asked(ch.log, ch.log.name, (None, None), ch.log.channels, False)], ())
    meant = {name: _topic_and_path(ch.log, tables, name, []) for name in unknown}
    places = {name: place for name, place in meant.items() if place is not None}
    return places if any(topic != ch.topic for topic, _ in places.values()) else {}


#: The query over a table of values, in which an expression takes the place of NULL.
_FRAME_OF_VALUES = 'SELECT CAST(NULL AS DOUBLE) FROM "~values"'


def _across(
    ch: Channel, tree: dict[str, Any], others: Mapping[tuple[str, ...], tuple[str, str]], bounds: Bounds
) -> MemoryColumn:
    """Return the value of an expression over several channels at the times of the messages of *ch*."""
    # Not imported before: most expressions are about one channel.
    import pyarrow as pa

    from logreel.ops.query.align import Alignment, ChannelSampler
    from logreel.ops.query.topic_table import as_type, storable

    log, how = ch.log, Alignment("previous", clock=ch.topic)
    at = np.sort(ch.times)
    places = {name: others.get(name) or (ch.topic, _path(ch, name, True)) for name in _names_in(tree)}
    columns: dict[str, pa.Array[Any]] = {}
    named = dict[tuple[str, ...], str]()
    for name, (topic, path) in places.items():
        bounds.check()
        named[name] = f"{topic} {path}"
        if path == TIME_NS:
            columns[named[name]] = pa.array(at)
        elif path == TIME:
            columns[named[name]] = _clock(time_column(ch, at))
        elif named[name] not in columns:
            picked = ChannelSampler(log[topic], own_paths(log[topic], [path]), how, RowOptions()).at(at)
            arrow_type = storable(picked[0].type) if len(picked) == 1 else None
            if arrow_type is None:
                raise UsageError(f"{path!r} of {topic!r} is not one value: name an item of it", path=log.name)
            columns[named[name]] = as_type(picked[0], arrow_type, len(at))
    placed = json.loads(json.dumps(tree))
    for part in (part for part in parts_of(placed) if _is_name(part)):
        part["column_names"] = [named[tuple(part["column_names"])]]
    duckdb = import_duckdb()
    with memory_errors(duckdb), connect(duckdb, bounds.memory, spill=False) as con, bounded(con, bounds):

        def value(expression: str, of: str) -> str:
            return str(con.execute(f"SELECT {expression}", [of]).fetchall()[0][0])

        con.execute("SET lock_configuration = true")
        frame = json.loads(value("json_serialize_sql(?::VARCHAR)", _FRAME_OF_VALUES))
        frame["statements"][0]["node"]["select_list"][0]["child"] = placed
        query = value("json_deserialize_sql(?::JSON)", json.dumps(frame))
        try:
            con.register("~values", pa.table(columns))
            values = con.sql(query).fetchnumpy()
        except duckdb.Error as error:
            text = " ".join(re.split(r"LINE |You might need|Candidate ", str(error))[0].split())
            raise UsageError(f"the expression cannot be computed: {text}", path=log.name) from None
    (computed,) = values.values()
    filled = np.ma.filled(np.ma.asarray(computed).astype(np.float64), np.nan)
    return MemoryColumn(at, filled, "")


def parsed_expression(
    text: str, kinds: Collection[str], functions: Collection[str], what: str = "expression"
) -> dict[str, Any]:
    """Return one SQL expression as DuckDB parses it: a tree of dicts with ``class`` and ``type``.

    kinds, functions  classes of expressions, and names of functions, that may be used
    what              what to call it in error texts

    Raises UsageError for other text; MissingDependencyError without DuckDB.
    """
    try:
        parsed = json.loads(_parsed_by_duckdb(text))
    except (ValueError, RecursionError):
        raise UsageError(f"the {what} cannot be read") from None
    if parsed.get("error"):
        raise UsageError(f"the {what} cannot be read: {parsed.get('error_message', '')}")
    if len(parsed["statements"]) != 1 or not _is_plain(parsed["statements"][0]["node"]):
        raise UsageError(f"the {what} has to be one value for each row, not a query")
    for part in parts_of(parsed["statements"][0]["node"]["select_list"]):
        node_class, name = part["class"], str(part.get("function_name", ""))
        if node_class not in kinds:
            raise UsageError(f"the {what} must not have a {node_class.lower().replace('_', ' ')}")
        if node_class in ("FUNCTION", "WINDOW") and name.lower() not in functions:
            known = ", ".join(sorted(function for function in functions if function.isidentifier()))
            raise UsageError(f"the {what} must not use {name!r}; there are: {known}")
    tree: dict[str, Any] = parsed["statements"][0]["node"]["select_list"][0]
    return tree


# Rules and limits ask for the same expressions of each log, and connecting takes longer than parsing.
@lru_cache(maxsize=64)
def _parsed_by_duckdb(text: str) -> str:
    """Return an expression as JSON that DuckDB makes of it; raises ValueError if it cannot."""
    duckdb = import_duckdb()
    with memory_errors(duckdb), borrowed(duckdb) as con:
        query = "SELECT json_serialize_sql(?::VARCHAR)"
        try:
            return str(con.execute(query, [f"SELECT {_alone(text)}"]).fetchall()[0][0])
        except duckdb.OutOfMemoryException:
            raise
        except duckdb.Error as error:
            raise ValueError(str(error)) from None


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
        node = waiting.pop()
        if isinstance(node, dict):
            if "class" in node:
                yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


Where = str | Iterable[str]

#: The time of the message, as timestamp or interval, and as integer ns.
TIME, TIME_NS = "time", "time_ns"
#: Functions whose value depends on other messages.
_OF_MANY = words(
    """
    avg count first_value lag last_value lead max mean median min nth_value row_number stddev stddev_pop stddev_samp sum
    var_pop var_samp variance any_value rank dense_rank
    """
)
_MORE = words(
    """
    ~~ !~~ ~~* !~~* || regexp_matches regexp_full_match contains starts_with prefix suffix ends_with lower upper length
    len strlen trim ltrim rtrim left right substring substr strpos instr list_contains list_has array_contains
    list_position list_value list_min list_max list_sum list_avg array_length to_seconds to_minutes to_hours to_days
    to_milliseconds to_microseconds date_part date_trunc
    """
)
_KINDS = KINDS - {"WINDOW"}
_FUNCTIONS = (FUNCTIONS - _OF_MANY) | _MORE
#: A topic such as ``/imu`` without quotes, which reads as a division.
_BARE = re.compile(r"(?:^|[\s(])(/[A-Za-z]\w*(?:/\w+)*)")
#: Name of the table of messages in queries.
_TABLE = "~messages"
#: The query, whose second ``true`` is replaced by a condition.
_FRAME = f'SELECT CAST((true AND true) AS BOOLEAN) FROM "{_TABLE}"'
#: Most topics that a note names.
NAMED = 5


@dataclass(frozen=True, slots=True)
class Matches:
    """The messages that meet conditions.

    rows   int64[k], ascending, by channel number; channels that no condition is about are missing
    notes  sentences about what was left out
    """

    rows: Mapping[int, I64]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WhereCondition:
    """One condition as it was written, and parsed; *tree*: see ``parsed_expression``."""

    text: str
    tree: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> WhereCondition:
        """Return the condition in *text*; raises UsageError for what is not one, or could do harm."""
        try:
            tree = parsed_expression(text, _KINDS, _FUNCTIONS, "condition")
        except UsageError as error:
            if 'near "/"' in error.text and _BARE.search(text):
                raise _slash_error(text) from None
            raise
        for part in parts_of(tree):
            # DuckDB 2 has arguments, and reads ``/imu`` as an operator; DuckDB 1 has children, and refuses it.
            if part.get("function_name") == "/" and len(part.get("arguments") or part["children"]) == 1:
                raise _slash_error(text)
            if part["type"] == "ARRAY_EXTRACT" and _is_zero(part["children"][1]):
                *first, name = part["children"][0].get("column_names", ["q"])
                before = "".join(f"{prefix}." for prefix in first)
                raise UsageError(
                    f"SQL counts items from 1: write {before}{name}[1], "
                    f'or with a path in quotes {before}"{name}[0]"'
                )
        return cls(text, tree)

    @cached_property
    def names(self) -> list[tuple[str, ...]]:
        """The names of columns in the condition, in parts, such as ``("battery_status", "voltage_v")``."""
        return _names_in(self.tree)


def _slash_error(text: str) -> UsageError:
    match = _BARE.search(text)
    return UsageError(f'write topics with a slash in double quotes: "{match[1] if match else "/topic"}"')


@dataclass(frozen=True, slots=True)
class Applied:
    """A condition on one channel; *columns*: field path, ``time`` or ``time_ns``, by name in the condition."""

    condition: WhereCondition
    ch: Channel
    columns: Mapping[tuple[str, ...], str]


def parse_where(where: Where) -> list[WhereCondition]:
    """Return one or several conditions; raises UsageError for a text that is not one."""
    return [WhereCondition.parse(text) for text in listed(where)]


def matching(
    log: Log, where: Where, channels: Iterable[Channel], start: int | None = None, end: int | None = None
) -> Matches:
    """Return the messages of *channels* with start <= time < end (ns) that meet conditions.

    A condition that names a channel (``battery_status.voltage_v < 14``) is about its messages; another one about those
    of each channel that has all its fields. Channels that no condition is about have no matches; of several conditions
    about a channel, all have to be true. NULL is not true. A message with many records meets a condition if one of its
    records does.

    Raises UsageError, TopicError and NotFoundError for a condition that cannot be read or applied.
    """
    chosen = list(channels)
    by_number: dict[int, list[Applied]] = {}
    for condition in parse_where(where):
        for applied in apply(log, condition, chosen):
            by_number.setdefault(applied.ch.number, []).append(applied)
    rows = dict[int, I64]()
    with Tester() as tester:
        for number, several in by_number.items():
            picked = log.index.rows_between(number, start, end)
            numbers = numbers_of(picked)
            for applied in several:
                numbers = numbers[tester.test(applied, numbers)]
            rows[number] = numbers
    without = [ch.topic for ch in chosen if ch.number not in by_number and not ch.reserved and len(ch)]
    if not without:
        return Matches(rows)
    names = ", ".join(map(repr, without[:NAMED])) + " …" * (len(without) > NAMED)
    count = f"{len(without)} channel{'s' * (len(without) != 1)}"
    return Matches(rows, (f"left out {count} without the fields of the condition: {names}",))


def limit(
    log: Log, where: Where, topics: Iterable[str], start: int | None = None, end: int | None = None
) -> tuple[Log, list[str], tuple[str, ...]]:
    """Return the same open log, whose intervals contain only messages that meet conditions, topics, and notes.

    topics  candidates; those that a condition is about are returned

    Raises as ``matching`` does.
    """
    channels = [log[topic] for topic in topics]
    matches = matching(log, where, channels, start, end)
    kept = [ch.topic for ch in channels if ch.number in matches.rows]
    return log.derive(index=log.index.restricted_to(matches.rows)), kept, matches.notes


def apply(log: Log, condition: WhereCondition, channels: Sequence[Channel]) -> list[Applied]:
    """Return the condition on each of *channels* that it is about; raises errors that name what exists."""
    tables = Tables([Asked(log, log.name, (None, None), log.channels, False)], ())
    scoped = dict[tuple[str, ...], tuple[str, str]]()
    for name in condition.names:
        if (split := _topic_and_path(log, tables, name, channels)) is not None:
            scoped[name] = split
    topics = list(dict.fromkeys(topic for topic, _ in scoped.values()))
    if len(topics) > 1:
        both = " and ".join(map(repr, topics))
        raise UsageError(
            f"a condition is about the messages of one channel, not of {both}: write one for each"
        )
    if topics:
        ch = log[topics[0]]
        if ch not in channels:
            raise UsageError(
                f"the condition is about {ch.topic!r}, which is not among the chosen channels", path=log.name
            )
        columns = {n: scoped[n][1] if n in scoped else _path(ch, n, True) for n in condition.names}
        return [Applied(condition, ch, columns)]
    applied = []
    for ch in channels:
        paths = {name: path for name in condition.names if (path := _path(ch, name)) is not None}
        if len(paths) == len(condition.names) and _is_decodable(ch, paths.values()):
            applied.append(Applied(condition, ch, paths))
    if not applied and channels:
        raise _nothing(log, condition, channels)
    return applied


def _topic_and_path(
    log: Log, tables: Tables, name: tuple[str, ...], channels: Sequence[Channel]
) -> tuple[str, str] | None:
    """Return topic and field path of a name that begins with a channel; None if it is the field of any channel.

    The channel is the longest beginning that is a topic, or its name in SQL. Raises UsageError for a name that may be
    both, NotFoundError for a field that the channel does not have.
    """
    fields = [ch for ch in channels if _path(ch, name) is not None]
    for n in range(len(name) - 1, 0, -1):
        text = ".".join(name[:n])
        try:
            topic = tables.topic(text)
        except UsageError:
            if fields:
                continue
            raise
        if topic is None:
            continue
        path = _path(log[topic], name[n:], not fields)
        if path is None or (fields and log[topic] not in channels):
            continue
        if others := [ch.topic for ch in fields if ch.topic != topic]:
            raise UsageError(
                f"{'.'.join(name)} may be {path!r} of {topic!r}, or a field of {others[0]!r}",
                path=log.name,
                hint="choose the channel with topics=",
            )
        return topic, path
    return None


def _nothing(log: Log, condition: WhereCondition, channels: Sequence[Channel]) -> LogError:
    """Return the error for a condition whose fields no channel has."""
    having = {name: [ch.topic for ch in channels if _path(ch, name)] for name in condition.names}
    for name, topics in having.items():
        if not topics:
            known = dict.fromkeys(f"{ch.topic}.{path}" for ch in channels for path in _fields(ch))
            if len(name) == 1:
                known = dict.fromkeys(path for ch in channels for path in _fields(ch))
            what = "field" if len(name) == 1 else "channel or field"
            return NotFoundError(what, ".".join(name), known, path=log.name)
    where = "; ".join(
        f"{'.'.join(name)} is in {', '.join(map(repr, topics[:3]))}{' …' * (len(topics) > 3)}"
        for name, topics in having.items()
    )
    return UsageError(f"no channel has all fields of the condition: {where}", path=log.name)


def _fields(ch: Channel) -> list[str]:
    try:
        return ch.fields
    except DefinitionError:
        return []


def _path(ch: Channel, name: Sequence[str], needed: bool = False) -> Any:
    """Return the field path, ``time`` or ``time_ns`` that a name in a condition means for *ch*.

    None if there is no such field, or an error if it is *needed*. As in SQL, case counts only if paths differ in
    nothing else.
    """
    path = ".".join(name)
    if path.casefold() in (TIME, TIME_NS):
        return path.casefold()
    try:
        check_fields(ch, [path])
        return path
    except (NotFoundError, DefinitionError):
        alike = [field for field in _fields(ch) if field.casefold() == path.casefold()]
        if len(alike) == 1:
            return alike[0]
        if needed:
            raise
        return None


def _is_decodable(ch: Channel, paths: Iterable[str]) -> bool:
    """Return whether the definition of *ch* can be used; also True if only times are needed."""
    try:
        return {*paths} <= {TIME, TIME_NS} or ch.layout is not None
    except DefinitionError:
        return False


def numbers_of(rows: Rows) -> I64:
    """Return rows as int64[n]."""
    return np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows


def _is_name(part: Mapping[str, Any]) -> bool:
    return bool(part["class"] == "COLUMN_REF")


def _is_zero(part: Mapping[str, Any]) -> bool:
    # DuckDB 2 writes the text of a number, DuckDB 1 its value.
    literal, value = part.get("literal") or {}, part.get("value") or {}
    return "0" in {str(literal.get("text")), str(value.get("value"))}


class Tester:
    """Tests messages with DuckDB, which can read nothing but these; a context manager."""

    def __enter__(self) -> Tester:
        self._duckdb = import_duckdb()
        with memory_errors(self._duckdb), ExitStack() as stack:
            self._con = stack.enter_context(borrowed(self._duckdb))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def test(self, applied: Applied, rows: I64) -> NDArray[np.bool_]:
        """Return bool[n]: which messages of the channel at *rows* meet the condition.

        Only the fields in the condition are decoded, and only of messages for which its parts about the time are true.
        """
        tree, of_time, others = applied.condition.tree, list[Any](), list[Any]()
        for part in _conjuncts(tree):
            named = {applied.columns[tuple(p["column_names"])] for p in parts_of(part) if _is_name(p)}
            (of_time if named <= {TIME, TIME_NS} else others).append(part)
        is_true = np.ones(len(rows), np.bool_)
        for parts, batches in ((of_time, partial(_times, applied.ch)), (others, partial(_decoded, applied))):
            if parts:
                query = self._query(applied, parts)
                here = np.flatnonzero(is_true)
                is_true[here] = self._true(applied, query, batches(rows[here]), len(here))
        return is_true

    def _true(
        self, applied: Applied, query: str, batches: Iterator[tuple[pa.Table, I64, int]], n: int
    ) -> NDArray[np.bool_]:
        """Return bool[n]: for which of *n* messages *query* gives true."""
        is_true, done = np.zeros(n, np.bool_), 0
        for table, message, count in batches:
            is_true[done + message[self._answer(applied, query, table)]] = True
            done += count
        return is_true

    def _answer(self, applied: Applied, query: str, table: pa.Table) -> NDArray[np.bool_]:
        try:
            self._con.register(_TABLE, table)
            result = self._con.sql(query)
            read = result.to_arrow_reader if hasattr(result, "to_arrow_reader") else result.fetch_arrow_reader
            column = read(MOST).read_all().column(0)
            self._con.unregister(_TABLE)
        except self._duckdb.Error as error:
            text = " ".join(re.split(r"LINE |You might need|Candidate ", str(error))[0].split())
            raise UsageError(
                f"the condition {applied.condition.text!r} cannot be applied to {applied.ch.topic!r}: {text}",
                path=applied.ch.log.name,
            ) from None
        return np.asarray(column.fill_null(False).to_numpy(), np.bool_)

    def _query(self, applied: Applied, parts: list[Any]) -> str:
        """Return the query for parts of a condition joined by AND, with its columns named by their paths."""
        parts = json.loads(json.dumps(parts))
        for part in (part for part in parts_of(parts) if _is_name(part)):
            part["column_names"] = [applied.columns[tuple(part["column_names"])]]
        frame = json.loads(self._value("json_serialize_sql(?::VARCHAR)", _FRAME))
        cast = frame["statements"][0]["node"]["select_list"][0]
        cast["child"]["children"] = [cast["child"]["children"][0], *parts]
        return self._value("json_deserialize_sql(?::JSON)", json.dumps(frame))

    def _value(self, expression: str, value: str) -> str:
        with memory_errors(self._duckdb):
            text: str = self._con.execute(f"SELECT {expression}", [value]).fetchall()[0][0]
        return text


def _times(ch: Channel, rows: I64) -> Iterator[tuple[pa.Table, I64, int]]:
    """Yield the times of messages as a table, with the number of the message of each row, and how many there are."""
    import pyarrow as pa

    times = ch.times
    for lo in range(0, len(rows), MOST):
        block = times[rows[lo : lo + MOST]]
        table = pa.table({TIME: _clock(time_column(ch, block)), TIME_NS: pa.array(block)})
        yield table, np.arange(len(block)), len(block)


def _decoded(applied: Applied, rows: I64) -> Iterator[tuple[pa.Table, I64, int]]:
    """Yield the columns of a condition as ``_times`` does, a row per record, in batches of bounded size."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from logreel.ops.query.topic_table import as_type, storable

    ch = applied.ch
    paths = [path for path in dict.fromkeys(applied.columns.values()) if path not in (TIME, TIME_NS)]
    has_times = len(paths) < len({*applied.columns.values()})
    # Of several files, times put messages in order.
    shape = RowOptions(explode=False, clock=has_times or bool(ch.members))
    has_records = isinstance(ch.layout.root, Records)
    reader = TableReader(ch, own_paths(ch, paths), shape)
    for batch in reader.batches(as_slice(rows), most_rows(ch), BYTES):
        message, columns = np.arange(batch.num_rows), batch.columns[1:]
        if has_records:
            # A message that cannot be decoded is a null, and has no records.
            counts = pc.fill_null(pc.list_value_length(columns[0]), 0)
            message, columns = np.repeat(message, counts), [as_list(column).flatten() for column in columns]
        kinds = [storable(column.type) for column in columns]
        arrays = {
            path: as_type(column, arrow_type, len(column))
            for path, column, arrow_type in zip(paths, columns, kinds, strict=True)
            if arrow_type is not None
        }
        if has_times:
            times = batch.column(0).take(row_numbers(message))
            arrays |= {TIME: _clock(times), TIME_NS: times.cast(pa.int64())}
        yield pa.table(arrays), message, batch.num_rows


def _clock(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return times without time zone: with one, DuckDB compares without nanoseconds."""
    import pyarrow as pa

    return column.cast(pa.timestamp("ns")) if pa.types.is_timestamp(column.type) else column


def _conjuncts(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the conditions that are joined by AND."""
    waiting = [tree]
    while waiting:
        node = waiting.pop(0)
        if node["type"] == "CONJUNCTION_AND":
            waiting = [*node["children"], *waiting]
        else:
            yield node


#: start <= time < end, ns; None: unbounded.
Span = tuple[int | None, int | None]


def value_changes(log: Log, wanted: str, span: Span, most: int) -> list[tuple[int | None, str]]:
    """Return the start of each interval in which a field keeps its value, ns, and the value as text.

    wanted  ``topic.field``, a single number, text or truth value
    span    interval; the first value counts from its start, or from the last message before it
    most    largest number of intervals

    NaN is equal to NaN, and to -0 is 0; null and messages that cannot be decoded do not change the value. Of messages
    with equal times, the last one counts. Raises UsageError for what is no single value, and for more intervals.
    """
    ch, path = one_field(log, wanted)
    rows = log.index.rows_between(ch.number, None, span[1])
    known, codes = dict[str, int](), list[NDArray[np.int32]]()
    reader = TableReader(ch, own_paths(ch, [path]), RowOptions(explode=False, clock=bool(ch.members)))
    for batch in reader.batches(rows, most_rows(ch), BYTES):
        column = batch.column(1)
        if _is_nested(column.type):
            raise UsageError(f"{path!r} of {ch.topic!r} is not a single value: choose an item of it")
        dictionary = column.dictionary_encode()
        numbers = [known.setdefault(text, len(known)) for text in _texts(dictionary.dictionary)]
        if len(known) > most:
            raise UsageError(f"{path!r} of {ch.topic!r} has more than {most} different values")
        table = np.array([*numbers, -1], np.int32)
        codes.append(table[dictionary.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)])
    code = np.concatenate([np.zeros(0, np.int32), *codes])
    is_known = code >= 0
    times, code = _last_of_each_time(ch.times[rows][is_known], code[is_known])
    if not len(times):
        raise UsageError(f"{path!r} of {ch.topic!r} has no value in the interval", path=log.name)
    changed = np.flatnonzero(np.diff(code, prepend=-1))
    if span[0] is not None:
        # What holds at the start begins there.
        before = int(times[changed].searchsorted(span[0], "right")) - 1
        changed = changed[max(before, 0) :]
    if len(changed) > most:
        raise UsageError(
            f"{path!r} of {ch.topic!r} has {len(changed)} values one after another; at most {most}"
        )
    texts = list(known)
    starts = [span[0], *times[changed[1:]].tolist()]
    return [(start, texts[number]) for start, number in zip(starts, code[changed].tolist(), strict=True)]


def true_intervals(log: Log, where: Where, span: Span) -> list[Span]:
    """Return the intervals in *span* in which all conditions are true, ascending.

    Each condition is about one channel, and is true from a message that meets it up to the next one that does not.
    NULL is not true. Raises UsageError for a condition about several channels, and as ``where.matching``.
    """
    intervals: list[Span] = [span]
    channels = [ch for ch in log.channels.values() if len(ch)]
    with Tester() as tester:
        for condition in parse_where(where):
            applied = on_one_channel(log, condition, channels)
            rows = numbers_of(log.index.rows_between(applied.ch.number, None, span[1]))
            intervals = intersect_intervals(
                intervals, _intervals(applied.ch, rows, tester.test(applied, rows))
            )
    return intervals


def on_one_channel(log: Log, condition: WhereCondition, channels: Sequence[Channel]) -> Applied:
    """Return the condition on the only one of *channels* that it is about; raises UsageError for none or several."""
    several = apply(log, condition, channels)
    if not several:
        raise UsageError("no channel with messages has the fields of the condition", path=log.name)
    if len(several) > 1:
        names = ", ".join(repr(applied.ch.topic) for applied in several[:3]) + " …" * (len(several) > 3)
        raise UsageError(
            f"the fields of the condition are in several channels, {names}: write topic.field", path=log.name
        )
    return several[0]


def _intervals(ch: Channel, rows: Rows, met: NDArray[np.bool_]) -> list[Span]:
    times, met = _last_of_each_time(ch.times[rows], met)
    turns = np.flatnonzero(np.diff(met, prepend=False))
    edges = [*times[turns].tolist(), None]
    return [(edges[i], edges[i + 1]) for i in range(0, len(turns), 2)]


def _last_of_each_time(times: I64, values: NDArray[Any]) -> tuple[I64, NDArray[Any]]:
    """Return ascending times without repeats, and for each the last of its values."""
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.flatnonzero(np.diff(times, append=times[-1:] + 1) != 0) if len(times) else order
    return times[last], values[last]


def one_field(log: Log, wanted: str) -> tuple[Channel, str]:
    """Return channel and path of ``topic.field``; raises UsageError unless it is one field of one channel."""
    chosen = fields_by_topic(log, [wanted])
    (topic, paths), *others = chosen.items()
    if others or paths is None or len(paths) != 1:
        what = "a whole channel" if paths is None else f"{len(chosen) * len(paths)} fields"
        raise UsageError(f"{wanted!r} is {what}: name one field, as topic.field", path=log.name)
    ch = log[topic]
    if isinstance(ch.layout.root, Records):
        raise UsageError(f"a message of {topic!r} holds many records, not one value", path=log.name)
    return ch, paths[0]


def _is_nested(arrow_type: Any) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_nested(arrow_type)
        or pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
    )


def _texts(values: Any) -> list[str]:
    """Return the values of an Arrow array as text; integers for times."""
    import pyarrow as pa

    if pa.types.is_boolean(values.type):
        return ["true" if value else "false" for value in values.to_pylist()]
    if pa.types.is_string(values.type):
        return [str(value) for value in values.to_pylist()]
    # Numbers of float32 are written with their own digits.
    return [_number(value) for value in column_values(values)]


def _number(value: Any) -> str:
    if isinstance(value, np.floating):
        text = str(value + type(value)(0))
        return text.removesuffix(".0")
    return str(value)
