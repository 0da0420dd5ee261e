"""SQL over a dataset: its topics and its catalogue as tables, executed by DuckDB, which reads nothing else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError, TopicError, UsageError
from logreel.fleet.dataset import Dataset
from logreel.ops.query.database import connect, import_duckdb
from logreel.ops.query.sql import CATALOGUE, RESULT_ROWS
from logreel.ops.query.topic_table import alias

if TYPE_CHECKING:
    import pyarrow as pa


def query(dataset: Dataset | str | os.PathLike[str], text: str) -> pa.Table:
    """Return the result of a query over a dataset.

    text  SQL of DuckDB. Each topic is a table, named by the topic in double quotes or by its alias, ``imu_data`` for
          ``/imu/data``, with the columns ``time`` (UTC), ``time_ns``, ``log``, and its fields. ``logreel.logs`` is the
          catalogue, ``logreel.parts`` the files

    Only the columns that the query needs are read. The query cannot read or write anything else.

    Raises UsageError for an invalid query, TopicError for a table that does not exist, MissingDependencyError without
    DuckDB.
    """
    import pyarrow as pa

    with answer(dataset, text) as (schema, batches):
        return pa.Table.from_batches(batches, schema)


@contextlib.contextmanager
def answer(
    dataset: Dataset | str | os.PathLike[str], text: str
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Return the schema of the result of ``query``, and its rows in batches, computed while they are read."""
    duckdb = import_duckdb()
    found = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    con = connect(duckdb)
    try:
        missed: dict[str, TopicError] = {}
        with _errors(duckdb, missed):
            _offer(con, duckdb, found, text, missed)
            result = con.sql(text)
            if result is None:
                raise UsageError("the query has no result: end it with SELECT …")
            reader = result.to_arrow_reader(RESULT_ROWS)
        yield reader.schema, _batches(duckdb, reader, missed)
    finally:
        con.close()


def _batches(duckdb: Any, reader: Any, missed: Mapping[str, TopicError]) -> Iterator[pa.RecordBatch]:
    with _errors(duckdb, missed):
        yield from reader


def _offer(con: Any, duckdb: Any, dataset: Dataset, text: str, missed: dict[str, TopicError]) -> None:
    """Register the tables that the query names, then lock the configuration."""
    if CATALOGUE in text.casefold():
        con.execute(f"CREATE SCHEMA {CATALOGUE}")
        for name, table in (("logs", dataset.logs()), ("parts", dataset.part_table())):
            con.register("~table", table)
            con.execute(f'CREATE TABLE {CATALOGUE}.{name} AS FROM "~table"')
            con.unregister("~table")
    try:
        names = con.get_table_names(text)
    except duckdb.Error:
        # DuckDB does not return the tables of several statements.
        names = {*dataset.topics, *map(alias, dataset.topics)}
    topics: dict[str, list[str]] = {}
    for topic in dataset.topics:
        for word in {topic.casefold(), alias(topic).casefold()}:
            topics.setdefault(word, []).append(topic)
    for name in sorted(names):
        if name in dataset.topics:
            con.register(name, dataset.arrow(name))
            continue
        fitting = topics.get(name.casefold(), [])
        if len(fitting) > 1:
            both = " or ".join(f'"{topic}"' for topic in fitting)
            raise UsageError(f"{name} may mean {both}: write its name as it is, in quotes")
        if fitting:
            con.register(name, dataset.arrow(fitting[0]))
        else:
            missed[name] = TopicError("table", name, dataset.topics)
    con.execute("SET lock_configuration = true")


@contextlib.contextmanager
def _errors(duckdb: Any, missed: Mapping[str, TopicError]) -> Iterator[None]:
    """Raise errors of DuckDB and Arrow in the block as UsageError, TopicError or LogError."""
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        text = str(error)
        for name, one in missed.items():
            if f"with name {name} does not exist" in text:
                raise one from None
        wrong = (duckdb.ProgrammingError, duckdb.NotSupportedError, duckdb.PermissionException)
        kind = UsageError if isinstance(error, wrong) else LogError
        raise kind(f"the query failed: {' '.join(text.partition('LINE ')[0].split())}") from None
