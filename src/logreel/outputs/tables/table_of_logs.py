"""One table of several logs: each is converted to a temporary file first, because their columns may differ."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from logreel.io.atomic_file import exists, keep_sources
from logreel.io.output_stream import OutputStream
from logreel.outputs.files import new_file, new_table
from logreel.outputs.registry import CSV_WITHOUT_FORMULAS, Output, Shape
from logreel.outputs.tables.csv import LOG, together

if TYPE_CHECKING:
    import pyarrow as pa


class TableOfLogs:
    """A table with the rows of several logs and a column ``log``; use it as a context.

    out      path or stream
    sources  names of the logs, which are never replaced
    force    replace an existing file
    parts    name and temporary file of each log so far

    Raises LogError if *out* exists, UsageError if it is one of the logs.
    """

    suffix = ".arrow"

    def __init__(self, out: str | OutputStream, sources: Iterable[str], force: bool) -> None:
        self._stream = out if isinstance(out, OutputStream) else None
        self._out = "" if isinstance(out, OutputStream) else out
        self._force = force
        if self._stream is None:
            keep_sources(self._out, sources)
            if os.path.lexists(self._out) and not force:
                raise exists(self._out)
        self.parts: list[tuple[str, str]] = []

    def __enter__(self) -> TableOfLogs:
        place = None if self._stream is not None else os.path.dirname(os.path.abspath(self._out))
        self._folder = tempfile.TemporaryDirectory(prefix=".logreel-logs-", dir=place)
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def part(self, log: str) -> str:
        """Return the path of the file that the rows of a log have to be written to."""
        path = os.path.join(self._folder.name, f"{len(self.parts)}{self.suffix}")
        self.parts.append((log, path))
        return path

    def _written(self) -> list[tuple[str, str]]:
        """Return the parts that are there: a log that could not be converted has none."""
        self.parts = [(log, path) for log, path in self.parts if os.path.exists(path)]
        return self.parts

    def write(self, output: Output) -> int:
        """Write the table and return the number of its rows; nothing is written if no log was converted."""
        from pyarrow import ipc

        if not self._written():
            return 0
        with ExitStack() as stack:
            tables = []
            for log, path in self.parts:
                reader = ipc.open_file(stack.enter_context(open(path, "rb")))
                tables.append((log, reader.schema, _batches(reader)))
            if output.suffix == ".csv":
                return self._write_csv(tables, output is CSV_WITHOUT_FORMULAS)
            schema, rows = together(tables)
            return new_table(self._out, self._force, output.write, schema, rows, self._stream)

    def _write_csv(self, tables: list[tuple[str, pa.Schema, Iterator[pa.RecordBatch]]], safe: bool) -> int:
        from logreel.outputs.tables.csv import write_together

        count = 0

        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in batches:
                count += batch.num_rows
                yield batch

        with new_file(self._out, self._force, self._stream) as file:
            write_together(file, [(log, schema, counted(rows)) for log, schema, rows in tables], safe)
        return count


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    for n in range(reader.num_record_batches):
        yield reader.get_batch(n)


class LinesOfLogs(TableOfLogs):
    """Lines of JSON of several logs, each with the key ``log``."""

    suffix = ".ndjson"

    def write(self, output: Output) -> int:
        """Write the lines and return their number; nothing is written if no log was converted."""
        count = 0
        if not self._written():
            return 0
        with new_file(self._out, self._force, self._stream) as out:
            for log, path in self.parts:
                before = f"{{{json.dumps(LOG)}: {json.dumps(log)}, ".encode("ascii")
                with Path(path).open("rb") as lines:
                    count += _copy_lines(lines, out, before)
        return count


def _copy_lines(lines: IO[bytes], out: IO[bytes], before: bytes) -> int:
    count = 0
    for line in lines:
        out.write(before + line[1:])
        count += 1
    return count


def table_of_logs(output: Output) -> Callable[[str | OutputStream, Iterable[str], bool], TableOfLogs] | None:
    """Return the class by which *output* is one table of several logs; None for outputs that are no table."""
    if output.shape is Shape.TABLES:
        return TableOfLogs
    return LinesOfLogs if output.suffix == ".ndjson" else None
