"""Connections to DuckDB, in which a query sees nothing but the tables that it is given."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from logreel.errors import MissingDependencyError
from logreel.io.thread_room import has_limited_room

#: No query reads other files, the network or variables of Python.
CLOSED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


def import_duckdb() -> Any:
    """Return the module of DuckDB; raises MissingDependencyError without it."""
    try:
        import duckdb
    except ImportError as error:
        raise MissingDependencyError("duckdb", "sql") from error
    return duckdb


def connect(duckdb: Any, memory: str | None = None, *, spill: bool = True) -> Any:
    """Return a new connection.

    memory  most memory that it uses, such as ``256MB``; None: DuckDB's default
    spill   whether what does not fit is written to temporary files

    Raises MemoryError if DuckDB cannot allocate.
    """
    config = dict(CLOSED)
    if memory is not None:
        config["memory_limit"] = memory
    if not spill:
        config["temp_directory"] = ""
    if has_limited_room():
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
        found = pool.submit(connect, duckdb, memory, spill=spill)
        try:
            yield found.result
        finally:
            found.result().close()


@contextmanager
def memory_errors(duckdb: Any) -> Iterator[None]:
    """Raise MemoryError where DuckDB cannot allocate in the block."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(str(error)) from None
