"""SQL over a dataset: its topics and its catalogue as tables, executed by DuckDB, which reads nothing else."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError, TopicError, UsageError
from logreel.fleet.dataset import Dataset
from logreel.log.tables import distinct
from logreel.ops.query.sql import CATALOGUE, RESULT_ROWS, connect, import_duckdb
from logreel.ops.query.topic_table import alias

if TYPE_CHECKING:
    import pyarrow as pa

#: What DuckDB says of a table that does not exist.
_NO_TABLE = re.compile(r"Table with name (.+?) does not exist", re.DOTALL)


def query(text: str, dataset: Dataset | str | os.PathLike[str]) -> pa.Table:
    """Return the result of a query over a dataset.

    text  SQL of DuckDB. Each topic is a table, named by the topic in double quotes or by its alias, ``imu_data`` for
          ``/imu/data``, with the columns ``time`` (UTC), ``time_ns``, ``log`` (key of the log), and its fields.
          ``logreel.logs`` is the catalogue, ``logreel.parts`` the files
    dataset  a dataset or its folder; may also come first, if *text* is not the name of a folder

    Only the columns that the query needs are read. The query cannot read or write anything else.

    Raises UsageError for an invalid query, TopicError for a table that does not exist, MissingDependencyError without
    DuckDB.
    """
    import pyarrow as pa

    with answer(text, dataset) as (schema, batches):
        return pa.Table.from_batches(batches, schema)


@contextlib.contextmanager
def answer(
    text: str, dataset: Dataset | str | os.PathLike[str]
) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Return the schema of the result of ``query``, and its rows in batches, computed while they are read."""
    import pyarrow as pa

    text, dataset = in_order(text, dataset)
    duckdb = import_duckdb()
    opened = dataset if isinstance(dataset, Dataset) else Dataset(dataset)
    con = connect(duckdb)
    try:
        topics = _Topics(opened)
        with _errors(duckdb, topics):
            _offer(con, duckdb, opened, text, topics)
            result = con.sql(text)
            if result is None:
                raise UsageError("the query has no result: end it with SELECT …")
            reader = result.to_arrow_reader(RESULT_ROWS)
        # Columns of joined tables may have one name.
        names = distinct(reader.schema.names)
        schema = pa.schema(list(zip(names, reader.schema.types, strict=True)))
        yield schema, _batches(duckdb, reader, schema, topics)
    finally:
        con.close()


def in_order(text: Any, dataset: Any) -> tuple[str, Any]:
    """Return the query and the dataset, which may be given in the other order if only the first one is a folder.

    Raises UsageError if both are folders, or neither is.
    """
    folders = [isinstance(argument, Dataset) or os.path.isdir(argument) for argument in (text, dataset)]
    if folders == [False, True]:
        return text, dataset
    if folders == [True, False]:
        return dataset, text
    if folders[0]:
        raise UsageError(f"{text} and {dataset} are both folders: give a query and a dataset")
    raise UsageError(f"neither {text} nor {dataset} is a folder: give a query, then the dataset")


class _Topics:
    """The topics of a dataset by the names that they have in SQL, which ignores case."""

    def __init__(self, dataset: Dataset) -> None:
        self.names = dataset.topics
        self._words: dict[str, list[str]] = {}
        for topic in self.names:
            for word in {topic.casefold(), alias(topic).casefold()}:
                self._words.setdefault(word, []).append(topic)

    def named(self, name: str) -> str | None:
        """Return the topic that a query means by *name*; None if there is none, or if *name* may mean several."""
        if name in self.names:
            return name
        fitting = self._words.get(name.casefold(), [])
        return fitting[0] if len(fitting) == 1 else None

    def words_in(self, text: str) -> list[str]:
        """Return the names and aliases, in lower case, that appear anywhere in a query."""
        plain = text.casefold()
        return [word for word in self._words if word in plain]

    def error(self, name: str) -> LogError:
        """Return the error for a table of a query that is no topic, or may be several."""
        fitting = self._words.get(name.casefold(), [])
        if len(fitting) > 1:
            both = " or ".join(f'"{topic}"' for topic in fitting)
            return UsageError(f"{name} may mean {both}: write its name as it is, in quotes")
        return TopicError("table", name, self.names)


def _batches(duckdb: Any, reader: Any, schema: pa.Schema, topics: _Topics) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with _errors(duckdb, topics):
        for batch in reader:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _offer(con: Any, duckdb: Any, dataset: Dataset, text: str, topics: _Topics) -> None:
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
        # DuckDB does not tell the tables of several statements, nor of those that it cannot bind without columns:
        # JOIN … USING, PIVOT, unnest. Names that the query does not contain are not offered, ambiguous or not.
        names = topics.words_in(text)
    chosen: dict[str, str] = {}
    for name in sorted(names):
        topic = topics.named(name)
        if topic is None:
            # If it is a table, DuckDB says that there is none.
            continue
        if chosen.setdefault(name.casefold(), topic) != topic:
            raise UsageError(
                f"case does not tell tables apart: the query names {topic!r} and another one like it"
            )
        con.register(name, dataset.arrow(topic))
    con.execute("SET lock_configuration = true")


@contextlib.contextmanager
def _errors(duckdb: Any, topics: _Topics) -> Iterator[None]:
    """Raise errors of DuckDB and Arrow in the block as UsageError, TopicError or LogError."""
    import pyarrow as pa

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        text = str(error)
        if missing := _NO_TABLE.search(text):
            raise topics.error(missing[1]) from None
        wrong = (duckdb.ProgrammingError, duckdb.NotSupportedError, duckdb.PermissionException)
        error_class = UsageError if isinstance(error, wrong) else LogError
        raise error_class(f"the query failed: {' '.join(text.partition('LINE ')[0].split())}") from None
