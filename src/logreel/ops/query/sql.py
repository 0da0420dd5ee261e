"""SQL queries over channels as tables, executed by DuckDB."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, LogError, MissingDependencyError, TopicError, UsageError
from logreel.io.platform import has_limited_room
from logreel.layout.arrow_arrays import values_of
from logreel.log.log import Log
from logreel.log.source_files import refusal
from logreel.log.tables import distinct
from logreel.log.times import Time, intervals, shift_of, utc_shift
from logreel.log.topic_match import is_pattern, match_in_each
from logreel.registry.open import open_many

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel
    from logreel.ops.query.topic_table import TopicTable


#: No query reads other files, the network or variables of Python.
CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
#: Most memory of a borrowed database.
MEMORY = "1GB"
#: Databases that nobody has borrowed: connecting takes longer than testing messages of a small log.
_idle: list[Any] = []


def import_duckdb() -> Any:
    """Return the module of DuckDB; raises MissingDependencyError without it."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError("duckdb", "sql") from error
    return duckdb


def connect(duckdb: Any, memory: str | None = None, *, spill: bool = True, threads: bool = True) -> Any:
    """Return a new connection.

    memory   most memory that it uses, such as ``256MB``; None: DuckDB's default
    spill    whether what does not fit is written to temporary files
    threads  whether it may start threads

    Raises MemoryError if DuckDB cannot allocate.
    """
    config = dict(CLOSED)
    if memory is not None:
        config["memory_limit"] = memory
    if not spill:
        config["temp_directory"] = ""
    if not threads or has_limited_room():
        # A thread of DuckDB ends the process where it cannot allocate; the thread of the caller gets an error.
        config["threads"] = "1"
        if int(duckdb.__version__.partition(".")[0]) >= 2:
            config["async_threads"] = "0"
    with memory_errors(duckdb):
        return duckdb.connect(":memory:", config=config)


@contextmanager
def connecting(duckdb: Any, memory: str | None = None, *, spill: bool = True) -> Iterator[Callable[[], Any]]:
    """Connect in another thread; yield a function that waits for the connection, which the block closes at its end.

    Parameters and errors as for ``connect``.
    """
    if has_limited_room():
        # The C library ends the process where a thread cannot allocate its variables.
        con = connect(duckdb, memory, spill=spill)
        with contextlib.closing(con):
            yield lambda: con
        return
    with ThreadPoolExecutor(1) as pool:
        connection = pool.submit(connect, duckdb, memory, spill=spill)
        try:
            yield connection.result
        finally:
            connection.result().close()


@contextmanager
def borrowed(duckdb: Any) -> Iterator[Any]:
    """Yield a connection to an empty database, which is kept for the next caller unless the block raises.

    Its configuration is locked; the block must create nothing but what ends with the connection. It has no threads, so
    that a fork of the process can use it, too.
    """
    with memory_errors(duckdb):
        try:
            database = _idle.pop()
        except IndexError:
            database = connect(duckdb, MEMORY, spill=False, threads=False)
            database.execute("SET lock_configuration = true")
    try:
        with database.cursor() as con:
            yield con
    except BaseException:
        database.close()
        raise
    _idle.append(database)


@contextmanager
def memory_errors(duckdb: Any) -> Iterator[None]:
    """Raise MemoryError where DuckDB cannot allocate in the block."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from None


#: Schema of the tables about the logs, so that topics cannot have the same names.
CATALOGUE, CHANNELS = "logreel", "channels"
#: Seconds between two looks at the limits of a query.
LOOK = 0.1
#: Rows of a batch of the result.
RESULT_ROWS = 65536
#: Most logs that an error names.
NAMED = 5
#: A quoted name with a dot or an index, which may be the path of a field.
_QUOTED = re.compile(r'"([^"]*[.\[][^"]*)"')
_MONTH, _DAY = 30 * 86_400 * 10**9, 86_400 * 10**9


def sql(
    query: str,
    *logs: Openable | Log,
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    definitions: Definitions = (),
    topics: str | Sequence[str] | None = None,
    exclude: str | Iterable[str] = (),
) -> pa.Table:
    """Return the result of a query over the channels of *logs*, which are tables named by their topics.

    query  SQL of DuckDB; ``SELECT avg(voltage_v) FROM battery_status``. Topics with special characters need quotes,
           ``"/imu/data"``, or are named by their alias, ``imu_data``. A path in quotes, ``"pose.position.x"``,
           ``"q[2]"``, is a column, too; only this part of the field is decoded. Conditions and patterns as for
           ``Log.match``, ``"type=sensor_msgs/Imu"``, ``"/camera/*"``, are tables of all channels that they select,
           with a column ``topic``
    logs   open Logs, or anything that ``logreel.open`` takes; the same topic of several logs is one table
    start, end  ns, or text as on the command line, separately for each log; half-open
    utc    wall-clock times
    definitions  as for ``logreel.open``
    topics  names, patterns or conditions as for ``Log.match``: only these channels are tables; None: all
    exclude  the same: these are no tables

    A table has the columns ``time`` (timestamp, or, if the log's clock is not Unix time, an interval, which DuckDB
    stores in microseconds), ``time_ns`` (integer ns), the fields, and ``log``. Only the columns that the query needs
    are decoded, and only messages that can meet its conditions on ``time_ns``. ``logreel.logs`` and
    ``logreel.channels`` list the logs and channels. The query cannot read anything else.

    Raises UsageError for an invalid query, TopicError for a topic that no log has, MissingDependencyError without
    DuckDB.
    """
    with answer(query, logs, start, end, utc, definitions, topics, exclude) as (schema, batches):
        import pyarrow as pa

        return pa.Table.from_batches(batches, schema)


@contextmanager
def answer(
    query: str,
    logs: Sequence[Openable | Log],
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    definitions: Definitions = (),
    topics: str | Sequence[str] | None = None,
    exclude: str | Iterable[str] = (),
    bounds: Bounds | None = None,
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Return the schema of the result of ``sql``, and its rows in batches, computed while they are read."""
    if not logs:
        raise UsageError("a query needs a log to ask")
    duckdb = import_duckdb()
    with contextlib.ExitStack() as stack:
        stack.enter_context(memory_errors(duckdb))
        memory = None if bounds is None else bounds.memory
        # Connecting takes about as long as opening a log.
        connection = stack.enter_context(connecting(duckdb, memory, spill=bounds is None))
        opened = open_many(logs, stack, definitions)
        if any(refusal(log) for log in opened):
            # What does not fit into memory would be written to the disk.
            connection = stack.enter_context(connecting(duckdb, memory, spill=False))
        names = distinct([log.name for log in opened])
        if utc:
            check_utc(opened)
        spans = intervals(opened, start, end)
        paths = tuple(dict.fromkeys(_QUOTED.findall(query)))
        channels_of = [log.channels for log in opened]
        chosen = channels_of if topics is None else match_in_each(channels_of, topics)
        excluded = match_in_each(channels_of, exclude)
        every = [
            {n: ch for n, ch in channels.items() if n in named and n not in left_out}
            for channels, named, left_out in zip(channels_of, chosen, excluded, strict=True)
        ]
        asked = [Asked(*channels, utc) for channels in zip(opened, names, spans, every, strict=True)]
        tables = Tables(asked, paths)
        con = connection()
        if bounds is not None:
            stack.enter_context(bounded(con, bounds))
        with _database_errors(duckdb, tables):
            _offer(con, duckdb, query, tables)
            relation = con.sql(query)
            if relation is None:
                raise UsageError("the query has no result: end it with SELECT …")
            reader = _reader(relation)
            schema = _result_schema(reader.schema)
        yield schema, _results(duckdb, tables, reader, schema)


def check_utc(logs: Sequence[Log]) -> None:
    """Raise UsageError if a log does not tell UTC: its rows would have no time among those of the others."""
    without = [log.name for log in logs if utc_shift(log) is None]
    if not without:
        return
    if len(logs) == 1:
        shift_of(logs[0], True)
    more = f" and {len(without) - NAMED} more" if len(without) > NAMED else ""
    raise UsageError(
        f"{len(without)} of {len(logs)} logs do not tell how their clocks relate to UTC: "
        f"{', '.join(without[:NAMED])}{more}",
        hint="leave these out, or ask for times of their own clocks",
    )


@dataclass(slots=True)
class Bounds:
    """Limits of a query of someone who is not trusted with time and memory.

    memory   most memory that DuckDB uses, such as ``256MB``
    check    called some times a second; raises to end the query
    """

    seconds: float
    memory: str
    check: Callable[[], None]


@contextmanager
def bounded(con: Any, bounds: Bounds) -> Iterator[None]:
    """End the query of *con* in the block when its time is over or its check raises."""
    done = Event()
    why: list[Exception] = []

    def watch() -> None:
        until = monotonic() + bounds.seconds
        while not done.wait(LOOK):
            try:
                bounds.check()
            except Exception as error:
                why.append(error)
            if monotonic() >= until:
                why.append(UsageError(f"the query takes longer than {bounds.seconds:g} s"))
            if why:
                # Again and again: a query that has just begun would not notice.
                con.interrupt()

    watcher = Thread(target=watch, name="logreel-sql-bounds", daemon=True)
    watcher.start()
    try:
        yield
    except Exception as error:
        if why:
            raise why[0] from None
        raise error
    finally:
        done.set()
        watcher.join()
    if why:
        raise why[0]


@dataclass(frozen=True, slots=True)
class Asked:
    """A log in a query: its name there, its interval (ns), its channels, and whether times are wall-clock times."""

    log: Log
    name: str
    span: tuple[int | None, int | None]
    channels: Mapping[str, Channel]
    utc: bool


@dataclass
class Tables:
    """The topics of several logs as tables.

    paths   paths of nested fields that are columns, too
    wrong   exceptions raised while a table was read
    missed  errors for names of tables in the query that no log has
    turn    lock held while messages are decoded
    """

    asked: list[Asked]
    paths: tuple[str, ...]
    wrong: list[Exception] = field(default_factory=list)
    missed: dict[str, TopicError] = field(default_factory=dict)
    turn: Lock = field(default_factory=Lock)

    @cached_property
    def topics(self) -> list[str]:
        """All topics of all logs, without repetitions."""
        return list(dict.fromkeys(topic for asked in self.asked for topic in asked.channels))

    @cached_property
    def aliases(self) -> dict[str, list[str]]:
        """Topics by alias in lower case."""
        from logreel.ops.query.topic_table import alias

        topics: dict[str, list[str]] = {}
        for topic in self.topics:
            topics.setdefault(alias(topic).casefold(), []).append(topic)
        return topics

    def topic(self, name: str) -> str | None:
        """Return the topic that *name* means in a query, or None; raises UsageError if it is ambiguous."""
        if name in self.topics:
            return name
        alike = [topic for topic in self.topics if topic.casefold() == name.casefold()]
        alike = alike or self.aliases.get(name.casefold(), [])
        if len(alike) > 1:
            both = " or ".join(f'"{topic}"' for topic in alike)
            raise UsageError(f"{name} may mean {both}: write its name as it is, in quotes")
        return alike[0] if alike else None

    def table(self, topic: str) -> TopicTable:
        """Return the channels named *topic* as a table; raises DefinitionError if one cannot be decoded."""
        from logreel.ops.query.topic_table import TablePart, TopicTable

        parts = []
        for asked in self.asked:
            if topic in asked.channels:
                ch = asked.channels[topic]
                rows = asked.log.index.rows_between(ch.number, *asked.span)
                parts.append(TablePart(ch, asked.name, rows, asked.utc, self.paths))
        return TopicTable(topic, parts, self.wrong.append, self.turn)

    def selection(self, want: str) -> TopicTable:
        """Return the channels that a condition or pattern selects as one table, with a column ``topic``.

        Raises TopicError if it selects none, UsageError for an invalid regular expression.
        """
        from logreel.ops.query.topic_table import TablePart, TopicTable

        parts = []
        chosen = match_in_each([asked.channels for asked in self.asked], want)
        for asked, names in zip(self.asked, chosen, strict=True):
            for ch in (ch for ch in asked.channels.values() if ch.topic in names):
                rows = asked.log.index.rows_between(ch.number, *asked.span)
                parts.append(TablePart(ch, asked.name, rows, asked.utc, self.paths, labelled=True))
        return TopicTable(want, parts, self.wrong.append, self.turn)

    def everything(self) -> dict[str, TopicTable]:
        """Return the tables of all topics that can be decoded, by topic and by unambiguous alias, in lower case."""
        tables: dict[str, TopicTable] = {}
        for topic in self.topics:
            if topic.casefold() not in tables:
                with contextlib.suppress(DefinitionError):
                    tables[topic.casefold()] = self.table(topic)
        for word, (topic, *others) in self.aliases.items():
            if not others and word not in tables and topic.casefold() in tables:
                tables[word] = tables[topic.casefold()]
        return tables


def _offer(con: Any, duckdb: Any, query: str, tables: Tables) -> None:
    """Register the tables that *query* names at *con*, then lock its configuration."""
    if CATALOGUE in query.casefold():
        _add_catalogue(con, query, tables)
    try:
        names = con.get_table_names(query)
    except duckdb.Error:
        # DuckDB does not return the tables of several statements.
        names = set()
    chosen: dict[str, str] = {}
    for name in sorted(names):
        topic = tables.topic(name)
        if topic is None and is_pattern(name):
            try:
                con.register(name, tables.selection(name))
            except TopicError as error:
                tables.missed[name] = error
        elif topic is None:
            tables.missed[name] = TopicError("table", name, tables.topics)
        elif chosen.setdefault(name.casefold(), topic) != topic:
            raise UsageError(
                f"case does not tell tables apart: the query names {topic!r} and another one like it"
            )
        else:
            con.register(name, tables.table(topic))
    if not names:
        for name, table in tables.everything().items():
            con.register(name, table)
    con.execute("SET lock_configuration = true")


def _add_catalogue(con: Any, query: str, tables: Tables) -> None:
    """Add the tables ``logreel.logs`` and ``logreel.channels``."""
    import pyarrow as pa

    con.execute(f"CREATE SCHEMA {CATALOGUE}")
    logs, channels = [], []
    for asked in tables.asked:
        log = asked.log
        logs.append(
            (asked.name, log.format, log.version, log.size, log.epoch, log.start, log.end, utc_shift(log))
        )
        if CHANNELS in query.casefold():
            # Chunks that nobody has unpacked yet may hold fewer messages than an index says: that is told then.
            for part in (part for part in log.parts if not part.index.reads_in_ranges):
                part.index.resolve(np.arange(len(part.index.table.base), dtype=np.int64))
        for ch in asked.channels.values():
            channel_schema = ch.schema
            facts = {key: list(values) for key, values in ch.facts.items() if values}
            channels.append(
                (
                    asked.name,
                    ch.topic,
                    channel_schema.name,
                    channel_schema.encoding,
                    len(ch),
                    ch.start,
                    ch.end,
                    facts,
                )
            )
    text, number = pa.string(), pa.int64()
    edges = [("start_ns", number), ("end_ns", number)]
    clock: list[tuple[str, pa.DataType]] = [
        ("size", number),
        ("epoch", text),
        *edges,
        ("utc_offset_ns", number),
    ]
    kinds: dict[str, list[tuple[str, pa.DataType]]] = {
        "logs": [("log", text), ("format", text), ("version", text), *clock],
        "channels": [(n, text) for n in ("log", "topic", "type", "encoding")]
        + [("messages", number), *edges, ("facts", pa.map_(text, pa.list_(text)))],
    }
    for name, rows in (("logs", logs), ("channels", channels)):
        schema = pa.schema(kinds[name])
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        con.register("~table", table)
        con.execute(f'CREATE TABLE {CATALOGUE}.{name} AS FROM "~table"')
        con.unregister("~table")


@contextmanager
def _database_errors(duckdb: Any, tables: Tables) -> Iterator[None]:
    """Raise errors of DuckDB and Arrow in the block as UsageError, TopicError or LogError."""
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if tables.wrong:
            raise tables.wrong[0] from None
        text = str(error)
        for name, missed in tables.missed.items():
            if f"with name {name} does not exist" in text:
                raise missed from None
        wrong = (duckdb.ProgrammingError, duckdb.NotSupportedError, duckdb.PermissionException)
        error_type = UsageError if isinstance(error, wrong) else LogError
        raise error_type(f"the query failed: {' '.join(text.partition('LINE ')[0].split())}") from None


def _reader(relation: Any) -> pa.RecordBatchReader:
    read = relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader
    reader: pa.RecordBatchReader = read(RESULT_ROWS)
    return reader


def _results(duckdb: Any, tables: Tables, reader: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with _database_errors(duckdb, tables):
        for batch in reader:
            columns = [_duration(c) if _is_interval(c.type) else c for c in batch.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _result_schema(schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    kinds = [pa.duration("ns") if _is_interval(arrow_type) else arrow_type for arrow_type in schema.types]
    return pa.schema(list(zip(distinct(schema.names), kinds, strict=True)))


def _is_interval(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(arrow_type == pa.month_day_nano_interval())


def _duration(column: pa.Array[Any]) -> pa.Array[Any]:
    """Return intervals as durations; a month has 30 days, as in comparisons by DuckDB."""
    import pyarrow as pa

    parts = np.dtype([("months", "<i4"), ("days", "<i4"), ("ns", "<i8")])
    data = column.buffers()[1]
    values = values_of(data, parts, len(column), column.offset * parts.itemsize)
    ns = values["months"] * np.int64(_MONTH) + values["days"] * np.int64(_DAY) + values["ns"]
    return pa.array(ns, pa.duration("ns"), mask=np.asarray(column.is_null()))
