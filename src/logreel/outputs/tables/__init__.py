"""Tables as files: CSV, Parquet, Arrow and lines of JSON, of one channel, of several, and of several logs.

Formats are functions that take schema and record batches: of ``csv``, ``columnar`` and ``ndjson``; ``writers`` returns
those for results of a query. ``combined`` joins channels to one table, ``table_of_logs`` does so for logs, and
``growing`` appends to tables of a log that is still written. Called by ``outputs.write`` and the command line; what a
table contains is decided in ``ops.query``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING

from logreel.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Writer = Callable[[IO[bytes], "pa.Schema", Iterable["pa.RecordBatch"]], None]

#: Binary formats.
BINARY = ("parquet", "arrow")


def writers() -> dict[str, Writer]:
    """Return the writers for the result of a query by the name of the format, which is also its suffix."""
    from logreel.outputs.tables import columnar, csv, ndjson

    return {
        "csv": csv.write_result,
        "parquet": columnar.write_nested,
        "json": ndjson.write_list,
        "ndjson": ndjson.write_result,
        "arrow": columnar.write_arrow,
    }


def form_of(name: str) -> str:
    """Return the format for the suffix of *name*; raises UsageError with the known ones."""
    suffix = os.path.splitext(name)[1].lower().removeprefix(".")
    known = writers()
    if suffix not in known:
        raise UsageError(f"the suffix of {name!r} names no form of a table; known: {', '.join(known)}")
    return suffix
