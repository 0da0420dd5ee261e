"""Queries of several logs of one test in one database of DuckDB: to connect takes ten times as long as to ask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from logreel.ops.query import sql

#: What a query does last to its connection; the next one could not do it again.
_LOCK = "SET lock_configuration = true"


class _Connection:
    """A connection to a database that stays open, for a query."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, query: str) -> Any:
        return None if query == _LOCK else self._connection.execute(query)


@contextmanager
def one_database() -> Iterator[None]:
    """Let ``logreel.sql`` use the same database in all calls of the block, each with a connection of its own.

    For tests of what queries answer, not of what they may do.
    """
    duckdb = pytest.importorskip("duckdb")
    with pytest.MonkeyPatch.context() as patch, sql.connect(duckdb) as database:
        patch.setattr(sql, "connect", lambda *_, **__: _Connection(database.cursor()))
        yield
