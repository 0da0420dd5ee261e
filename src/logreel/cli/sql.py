"""``logreel sql``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.source import Definitions
    from logreel.log.log import Log

FORMS = ["table", "csv", "parquet", "json", "ndjson", "arrow"]

result_format = click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    metavar="NAME",
    help=f"Format of the result: {', '.join(FORMS)}; by default from -o, else a table to read.",
)
result_output = click.option(
    "-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="Write the result to this file."
)


@verb(
    examples={
        'logreel sql "SELECT max(voltage_v) FROM battery_status" flight.ulg': "one number from a channel",
        'logreel sql "FROM battery_status LIMIT 5" flight.ulg -o battery.csv': "rows of a channel as CSV",
    },
)
@click.argument("query")
@common.logs
@result_format
@result_output
@common.safe_csv
@common.force
@common.topics
@common.start
@common.end
@common.segment
@common.utc
@common.ros_axes
@common.decrypt
@common.msgdef
@common.as_json
def sql(
    query: str,
    logs: paths.Logs,
    ros_axes: bool,
    decrypt: bool,
    msgdef: Definitions,
    form: str | None,
    out: str | None,
    safe_csv: bool,
    force: bool,
    topics: tuple[str, ...],
    start: str | None,
    end: str | None,
    segment: int | None,
    utc: bool,
    as_json: bool,
) -> int:
    """Query channels as tables with DuckDB's SQL.

    logreel sql "SELECT avg(voltage_v) FROM battery_status" flight.ulg

    Each topic is a table over all logs, with the columns time, time_ns, log, and its fields. Topics with other
    characters than letters, digits and _ go in double quotes, or are written with _ instead: imu_data is /imu/data.
    The tables logreel.logs and logreel.channels list logs and channels. A folder means all logs in and below it. If a
    file cannot be opened, the query runs on the others.
    """
    from logreel.cli.exits import LOST
    from logreel.log.joined_log import inputs_of
    from logreel.ops.query.sql import answer
    from logreel.registry.open import check_types, open_one_of_several

    with contextlib.ExitStack() as stack:

        def opened(name: paths.Given) -> Log:
            log = open_one_of_several(
                name,
                definitions=msgdef,
                ros_axes=ros_axes,
                segment=segment,
                decrypt=decrypt,
                anyway=logs.anyway,
            )
            logs.saw(log)
            return stack.enter_context(log)

        tables, code = common.open_each(logs, opened)
        if not tables:
            return code
        check_types(tables)
        for log in tables:
            paths.note_decrypted(log)
        form = result_form(form, out, as_json)
        check_safe_csv(safe_csv, form)
        schema, batches = stack.enter_context(answer(query, tables, start, end, utc, topics=topics or None))
        if as_json:
            _print_json(tables, schema, batches)
        elif form == "table":
            print_table(schema, batches)
        else:
            read = [name for log in tables for name in inputs_of(log)]
            write_result(form, out, force, schema, batches, read, safe_csv)
        return max(code and LOST, *(draw.finish(log) for log in tables))


def result_form(form: str | None, out: str | None, as_json: bool) -> str:
    """Return the format of the result; raises UsageError for options that contradict each other."""
    from logreel.errors import UsageError
    from logreel.outputs.tables.results import BINARY, form_of

    if as_json and (form or out):
        raise UsageError("--json is a form of its own: leave out --format and -o")
    if out is None or out == "-":
        if form in BINARY and sys.stdout.isatty():
            raise UsageError(f"{form} is no text for a terminal: give a file with -o")
        return form or "table"
    if form == "table":
        raise UsageError("a table to read goes to stdout: leave out -o, or choose csv")
    return form or form_of(out)


def check_safe_csv(safe_csv: bool, form: str) -> None:
    """Raise UsageError for --safe-csv with another *form* than CSV."""
    from logreel.errors import UsageError

    if safe_csv and form != "csv":
        raise UsageError("--safe-csv is about formulas in CSV: it needs --format csv or -o x.csv")


def write_result(
    form: str,
    out: str | None,
    force: bool,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    sources: list[str],
    safe_csv: bool = False,
) -> None:
    """Write the rows to the file *out* or to stdout; *sources* are files that must not be replaced.

    safe_csv  mark text that a spreadsheet would run
    """
    from logreel.io.atomic_file import keep_sources
    from logreel.outputs.files import new_table
    from logreel.outputs.tables.csv import write_safe_result
    from logreel.outputs.tables.results import FORMS as WRITERS

    write = write_safe_result if safe_csv else WRITERS[form]
    if out is None or out == "-":
        sys.stdout.flush()
        target: Any = draw.SafeLines() if sys.stdout.isatty() else sys.stdout.buffer
        write(target, schema, batches)
        return
    keep_sources(out, sources)
    rows = new_table(out, force, write, schema, batches)
    draw.say(f"wrote {rows} row{'s' * (rows != 1)} to {out}")


def _print_json(logs: list[Log], schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Print the object of ``--json``."""
    from logreel.outputs.tables.rows import plain_rows

    draw.echo_json(
        {
            "paths": [log.name for log in logs],
            "columns": [{"name": field.name, "type": str(field.type)} for field in schema],
            "rows": [row for batch in batches for row in plain_rows(batch)],
            "problems": [problem.as_dict() for log in logs for problem in log.problems],
        }
    )


def print_table(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    """Print the rows as a table: durations in seconds, timestamps in RFC 3339."""
    import pyarrow as pa

    from logreel.log.times import seconds_text, utc_text
    from logreel.outputs.tables.rows import plain_rows

    def cell(kind: pa.DataType, value: Any) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        if pa.types.is_duration(kind):
            return seconds_text(value)
        return utc_text(value) if pa.types.is_timestamp(kind) else draw.value_text(value)

    kinds = schema.types
    rows = [
        [cell(kind, value) for kind, value in zip(kinds, row.values(), strict=True)]
        for batch in batches
        for row in plain_rows(batch)
    ]
    texts = (pa.types.is_string, pa.types.is_nested, pa.types.is_timestamp, pa.types.is_boolean)
    right = [i for i, kind in enumerate(kinds) if not any(of(kind) for of in texts)]
    draw.table(schema.names, rows, right)
