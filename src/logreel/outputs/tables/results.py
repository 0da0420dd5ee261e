"""Writers for the result of a query, by format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import IO, TYPE_CHECKING

from logreel.errors import UsageError
from logreel.outputs.tables import arrow, csv, parquet, rows

if TYPE_CHECKING:
    import pyarrow as pa

Writer = Callable[[IO[bytes], "pa.Schema", Iterable["pa.RecordBatch"]], None]

#: Writers by the name of the format, which is also its suffix.
FORMS: dict[str, Writer] = {
    "csv": csv.write_result,
    "parquet": parquet.write_nested,
    "json": rows.write_list,
    "ndjson": rows.write,
    "arrow": arrow.write,
}
#: Binary formats.
BINARY = ("parquet", "arrow")


def form_of(name: str) -> str:
    """Return the format for the suffix of *name*; raises UsageError with the known ones."""
    suffix = os.path.splitext(name)[1].lower().removeprefix(".")
    if suffix not in FORMS:
        raise UsageError(f"the suffix of {name!r} names no form of a table; known: {', '.join(FORMS)}")
    return suffix
