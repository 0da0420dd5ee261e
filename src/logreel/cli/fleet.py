"""``logreel fleet``: many logs as one dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli.help import GroupWithExamples, WithExamples
from logreel.cli.sql import result_format, result_output

if TYPE_CHECKING:
    from logreel.fleet.ingesting import Ingested
    from logreel.fleet.reports import FleetReport, Status
    from logreel.fleet.verifying import Verified
    from logreel.io.source import Definitions

#: Lines of each part of a report; and files that are not named as logs are, up to which each has a line.
LINES, FEW = 20, 3

dataset = click.argument("dataset", metavar="DATASET", type=arguments.FOLDER)


@click.group(
    cls=GroupWithExamples,
    examples={
        "logreel fleet ingest logs/ -o fleet": "a dataset of all logs in a folder",
        "logreel fleet report fleet": "what is damaged or missing, and hours by vehicle",
    },
)
def fleet() -> None:
    """Write many logs into one dataset of Parquet with a catalogue, and ask it.

    The dataset has the messages by topic and day, and a row for each log: what it is, what it lost, which vehicle.
    """


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet ingest logs/ -o fleet": "all logs in and below a folder, those that are new",
        "logreel fleet ingest logs/ -o imu -t vehicle_attitude -t /imu/data": "only some channels",
    },
)
@click.argument("sources", metavar="SOURCES…", nargs=-1, required=True, type=arguments.FILE)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="DATASET",
    required=True,
    type=arguments.FOLDER,
    help="Folder of the dataset.",
)
@common.topics
@common.start
@common.end
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="PATH",
    help="Only this field of each topic that has it; may be repeated.",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Where the work is done: processes of this machine, or a Ray cluster.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of processes; by default one per processor.",
)
@click.option(
    "--task-size",
    metavar="SIZE",
    default="256MiB",
    show_default=True,
    help="Size of the messages that one process reads at once.",
)
@click.option(
    "--timestamps",
    type=click.Choice(["us", "ns"]),
    default="us",
    show_default=True,
    help="Unit of timestamps: us as Spark reads them, with integers in ns beside them; or ns alone.",
)
@common.decrypt
@common.msgdef
@common.as_json
def ingest(
    sources: tuple[str, ...],
    out: str,
    topics: tuple[str, ...],
    start: str | None,
    end: str | None,
    fields: tuple[str, ...],
    engine: str,
    workers: int | None,
    task_size: str,
    timestamps: str,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write logs into a dataset: those that are new there or have changed.

    SOURCES are files, folders and patterns. A log is its content: moved, renamed and copied files add no rows. A log
    that cannot be read becomes a row of the catalogue with the reason. A run that was interrupted is continued by the
    same command.
    """
    from logreel.fleet import ingest as write

    with draw.progress(out) as bar:
        done = write(
            sources,
            out,
            topics=topics or None,
            fields=fields or None,
            start=start,
            end=end,
            definitions=msgdef,
            decrypt=decrypt,
            engine=engine,
            workers=workers,
            target_bytes=common.bytes_of(task_size),
            timestamps=timestamps,
            progress=None if bar is None else lambda path, done, total: bar(done, total),
        )
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        _show_ingested(done, out)
    from logreel.cli.exits import LOST

    return LOST if done.failed or done.damaged else 0


def _show_ingested(done: Ingested, out: str) -> None:
    """Print what a run did: one line on stdout, what was lost on stderr."""
    counts = {
        "new": done.new,
        "changed": done.changed,
        "unchanged": done.unchanged,
        "removed": done.removed,
        "moved": done.moved,
        "copied": done.copies,
    }
    always = ("new", "changed", "unchanged", "removed")
    words = [f"{len(paths)} {word}" for word, paths in counts.items() if paths or word in always]
    draw.echo(f"{out}: {', '.join(words)}; {done.rows} rows in {done.parts} files")
    if done.ignored:
        draw.show_notes([f"{len(done.ignored)} other file{'s' * (len(done.ignored) != 1)} ignored"])
    draw.show_notes([f"{path}: {why}" for path, why in done.failed.items()])
    draw.show_notes([f"{path}: damaged; 'logreel fleet report' says more" for path in done.damaged])
    draw.show_notes([f"{path}: is gone; its messages are kept in the dataset" for path in done.removed])
    draw.show_notes(done.notes)


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet status fleet": "numbers of logs, rows and files",
        "logreel fleet status fleet --json": "the same for programs",
    },
)
@dataset
@common.as_json
def status(dataset: str, as_json: bool) -> int:
    """Show how many logs, rows and files a dataset has, and what an interrupted run left."""
    from logreel.fleet import status as look

    found = look(dataset)
    if as_json:
        draw.echo_json(found.as_dict())
    else:
        _show_status(found)
    return 0


def _show_status(found: Status) -> None:
    draw.echo_head(found.path)
    rows = [
        ["logs", str(found.logs), f"{found.ok} ok, {found.damaged} damaged, {found.failed} failed"],
        ["topics", str(found.topics), ""],
        ["rows", str(found.rows), ""],
        ["files", str(found.parts), draw.size_text(found.size)],
    ]
    if found.again:
        rows.append(["again", str(found.again), "logs that the next run reads again"])
    if found.planned or found.unfinished or found.orphans:
        text = f"finished tasks of a run that did not end, {found.planned} plans, {found.orphans} files"
        rows.append(["left", str(found.unfinished), text])
    draw.table(["", "", ""], rows, right=[1], indent=2)


@fleet.command(
    cls=WithExamples,
    examples={
        'logreel fleet query "FROM battery_status LIMIT 5" fleet': "rows of a topic of all logs",
        'logreel fleet query "FROM logreel.logs" fleet -o logs.parquet': "the catalogue as a file",
    },
)
@click.argument("query")
@dataset
@result_format
@result_output
@common.safe_csv
@common.force
@common.as_json
def query(
    query: str, dataset: str, form: str | None, out: str | None, safe_csv: bool, force: bool, as_json: bool
) -> int:
    """Query topics and catalogue of a dataset with DuckDB's SQL.


    Each topic is a table with the columns time (UTC), time_ns, log, and its fields. logreel.logs is the catalogue,
    logreel.parts lists the files.
    """
    from logreel.cli.sql import check_safe_csv, print_table, result_form, write_result
    from logreel.fleet.sql import answer, in_order
    from logreel.outputs.tables.rows import plain_rows

    query, dataset = in_order(query, dataset)
    form = result_form(form, out, as_json)
    check_safe_csv(safe_csv, form)
    with answer(query, dataset) as (schema, batches):
        if as_json:
            columns = [{"name": field.name, "type": str(field.type)} for field in schema]
            rows = [row for batch in batches for row in plain_rows(batch)]
            draw.echo_json({"path": dataset, "columns": columns, "rows": rows})
        elif form == "table":
            print_table(schema, batches)
        else:
            write_result(form, out, force, schema, batches, [], safe_csv)
    return 0


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet remove fleet logs/flight.ulg": "the log at a path, with its rows and files",
        "logreel fleet remove fleet logs/2024 --json": "all logs that lie in a folder",
    },
)
@dataset
@click.argument("logs", metavar="LOG…", nargs=-1, required=True, type=arguments.FILE)
@common.as_json
def remove(dataset: str, logs: tuple[str, ...], as_json: bool) -> int:
    """Delete logs from a dataset: rows, files and rows of the catalogue. The logs themselves stay.

    LOG is a path or a folder, also one that does not exist any more, or the key of a log, or its begin. A log that
    lies at several places is removed as a whole.
    """
    from logreel.fleet import remove as delete

    done = delete(dataset, logs)
    if as_json:
        draw.echo_json(done.as_dict())
        return 0
    draw.echo(f"{dataset}: {len(done.logs)} removed; {done.rows} rows in {done.parts} files")
    for key, places in done.logs.items():
        draw.echo(f"  {key[:8]}  {' = '.join(places)}")
    draw.show_notes([f"{name}: not in the dataset" for name in done.unknown])
    return 0


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet report fleet": "damage, missing topics, hours, implausible clocks",
        "logreel fleet report fleet --json": "the same for programs",
    },
)
@dataset
@common.as_json
def report(dataset: str, as_json: bool) -> int:
    """Show damaged logs, missing topics, implausible clocks, hours by vehicle and firmware, and copies."""
    from logreel.fleet import report as look

    found = look(dataset)
    if as_json:
        draw.echo_json(found.as_dict())
    else:
        _show_report(found)
    return 0


def _show_report(found: FleetReport) -> None:
    from logreel.ops.inspect.lens_sections import counted

    draw.echo_head("hours")
    draw.table(
        ["vehicle", "firmware", "logs", "hours"],
        [[one.vehicle or "-", one.firmware or "-", str(one.logs), f"{one.hours:.3f}"] for one in found.hours],
        right=[2, 3],
        indent=2,
    )
    for head, lines in (
        ("failed", _failed(found)),
        ("implausible clocks", [f"{path}: {reason}" for path, reason in found.clocks.items()]),
        ("damaged", [f"{path}: {counted(lost, 'byte')} lost; {text}" for path, lost, text in found.damaged]),
        ("missing topics", [f"{path}: {', '.join(names)}" for path, names in found.missing.items()]),
        ("duplicates", [" = ".join(paths) for paths in found.duplicates]),
        ("columns", found.notes),
    ):
        if lines:
            draw.echo_head(head)
            for line in lines[:LINES]:
                draw.echo(f"  {line}")
            if len(lines) > LINES:
                draw.echo(f"  and {len(lines) - LINES} more; --json has them all")


def _failed(found: FleetReport) -> list[str]:
    """Return a line for each log that failed; many files that are not named as logs are share one."""
    others = found.unrelated
    if others.total() <= FEW:
        return [f"{path}: {why}" for path, why in found.failed.items()]
    kinds = ", ".join(f"{n} {suffix or 'without suffix'}" for suffix, n in others.most_common())
    logs = [f"{path}: {why}" for path, why in found.failed.items() if not found.is_unrelated(path)]
    return [f"{others.total()} files that are not named as logs are: {kinds}", *logs]


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet verify fleet": "whether a copy is complete",
        "logreel fleet verify fleet --json": "the same for programs",
    },
)
@dataset
@common.as_json
def verify(dataset: str, as_json: bool) -> int:
    """Read every file of a dataset and compare digest, size and rows with the catalogue.


    Exit code 4 if a file is missing or has changed. Files that are not in the catalogue are only named.
    """
    from logreel.cli.exits import FOUND
    from logreel.fleet import verify as look

    found = look(dataset)
    if as_json:
        draw.echo_json(found.as_dict())
    else:
        _show_verified(found)
    return FOUND if found.wrong else 0


def _show_verified(found: Verified) -> None:
    draw.echo(f"{found.path}: {found.files} files with {found.rows} rows are as they were written")
    for path, why in found.wrong.items():
        draw.echo(f"  {path}: {why}")
    for path in found.orphans:
        draw.echo(f"  {path}: not in the catalogue, left by a run that did not end")
