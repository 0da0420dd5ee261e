"""Verbs for many logs: fleet, one dataset of all with a catalogue, and dataset, training data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, options
from logreel.cli.help import GroupWithExamples, WithExamples, verb
from logreel.cli.query import QueryResult, result_options

if TYPE_CHECKING:
    from logreel.fleet.ingesting import Ingested
    from logreel.fleet.upkeep import FleetReport, Status, Verified
    from logreel.ops.selection import Selection
    from logreel.outputs.dataset import DatasetWritten

#: Lines of each part of a report; and files that are not named as logs are, up to which each has a line.
LINES, FEW = 20, 3


_dataset = click.argument("dataset", metavar="DATASET", type=options.FOLDER)


@click.group(
    cls=GroupWithExamples,
    examples={
        "logreel fleet ingest logs/ -o fleet": "a dataset of all logs in a folder",
        "logreel fleet report fleet": "what is damaged or missing, and hours by vehicle",
    },
)
def fleet() -> None:
    """Write many logs into one dataset of Parquet with a catalogue, and query it.

    The dataset has the messages by topic and day, and a row for each log: format, losses, vehicle and others.
    """


def _work(fields: tuple[str, ...], task_size: str, **members: Any) -> dict[str, Any]:
    """Return the options of ingest that say what a task reads, and who does it."""
    return {**members, "fields": fields or None, "target_bytes": options.bytes_of(task_size)}


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet ingest logs/ -o fleet": "all logs in and below a folder, those that are new",
        "logreel fleet ingest logs/ -o imu -t vehicle_attitude -t /imu/data": "only some channels",
        'logreel fleet ingest logs/ -o loads --around "battery_status.current_a>=20"': "only around such moments",
    },
)
@click.argument("sources", metavar="SOURCES…", nargs=-1, required=True, type=options.FILE)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="DATASET",
    required=True,
    type=options.FOLDER,
    help="Folder of the dataset.",
)
@options.selection("topics", "start", "end", "around")
@options.as_object(
    "work",
    _work,
    click.option(
        "--field",
        "fields",
        multiple=True,
        metavar="PATH",
        help="Only this field of each topic that has it; may be repeated.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "ray"]),
        default="local",
        show_default=True,
        help="Where the work is done: processes of this machine, or a Ray cluster.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of processes; by default one per processor.",
    ),
    click.option(
        "--task-size",
        metavar="SIZE",
        default="256MiB",
        show_default=True,
        help="Size of the messages that one process reads at once.",
    ),
    click.option(
        "--timestamps",
        type=click.Choice(["us", "ns"]),
        default="us",
        show_default=True,
        help="Unit of timestamps: us as Spark reads them, with integers in ns beside them; or ns alone.",
    ),
)
@options.opening("decrypt", "definitions")
@options.as_json
def ingest(
    sources: tuple[str, ...],
    out: str,
    selection: Selection,
    work: dict[str, Any],
    opening: dict[str, Any],
    as_json: bool,
) -> int:
    """Write logs into a dataset: those that are new there or have changed.

    SOURCES are files, folders and patterns. A log is its content: moved, renamed and copied files add no rows. A log
    that cannot be read becomes a row of the catalogue with the reason. A run that was interrupted is continued by the
    same command.
    """
    from logreel.cli.exits import LOST
    from logreel.fleet import ingest as write

    with draw.progress(out) as bar:
        done = write(
            sources,
            out,
            **options.members_of(selection),
            **work,
            **opening,
            progress=None if bar is None else lambda path, done, total: bar(done, total),
        )
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        _show_ingested(done, out)
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
@_dataset
@options.answer
def status(dataset: str, as_json: bool) -> int:
    """Show how many logs, rows and files a dataset has, and what an interrupted run left."""
    from logreel.fleet import status as look

    result = look(dataset)
    if as_json:
        draw.echo_json(result.as_dict())
    else:
        _show_status(result)
    return 0


def _show_status(dataset: Status) -> None:
    draw.echo_head(dataset.path)
    rows = [
        ["logs", str(dataset.logs), f"{dataset.ok} ok, {dataset.damaged} damaged, {dataset.failed} failed"],
        ["topics", str(dataset.topics), ""],
        ["rows", str(dataset.rows), ""],
        ["files", str(dataset.parts), draw.size_text(dataset.size)],
    ]
    if dataset.again:
        rows.append(["again", str(dataset.again), "logs that the next run reads again"])
    if dataset.planned or dataset.unfinished or dataset.orphans:
        text = f"finished tasks of a run that did not end, {dataset.planned} plans, {dataset.orphans} files"
        rows.append(["left", str(dataset.unfinished), text])
    draw.table(["", "", ""], rows, right=[1], indent=2)


@fleet.command(
    cls=WithExamples,
    examples={
        'logreel fleet query "FROM battery_status LIMIT 5" fleet': "rows of a topic of all logs",
        'logreel fleet query "FROM logreel.logs" fleet -o logs.parquet': "the catalogue as a file",
    },
)
@click.argument("query")
@_dataset
@result_options
def query(query: str, dataset: str, result: QueryResult) -> int:
    """Query topics and catalogue of a dataset with DuckDB's SQL.


    Each topic is a table with the columns time (UTC), time_ns, log, and its fields. logreel.logs is the catalogue,
    logreel.parts lists the files.
    """
    from logreel.fleet.sql import answer, in_order

    query, dataset = in_order(query, dataset)
    with answer(query, dataset) as (schema, batches):
        result.show(schema, batches, {"path": dataset})
    return 0


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet remove fleet logs/flight.ulg": "the log at a path, with its rows and files",
        "logreel fleet remove fleet logs/2024 --json": "all logs that lie in a folder",
    },
)
@_dataset
@click.argument("logs", metavar="LOG…", nargs=-1, required=True, type=options.FILE)
@options.as_json
def remove(dataset: str, logs: tuple[str, ...], as_json: bool) -> int:
    """Delete logs from a dataset: rows, files and rows of the catalogue. The logs themselves stay.

    LOG is a path or a folder, also one that does not exist any more, or the key of a log, or the first digits of it.
    A log that exists at several paths is removed completely.
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
@_dataset
@options.answer
def report(dataset: str, as_json: bool) -> int:
    """Show damaged logs, missing topics, implausible clocks, hours by vehicle and firmware, and copies."""
    from logreel.fleet import report as look

    result = look(dataset)
    if as_json:
        draw.echo_json(result.as_dict())
    else:
        _show_report(result)
    return 0


def _show_report(result: FleetReport) -> None:
    from logreel.ops.inspect.summary import counted

    draw.echo_head("hours")
    draw.table(
        ["vehicle", "firmware", "logs", "hours"],
        [
            [row.vehicle or "-", row.firmware or "-", str(row.logs), f"{row.hours:.3f}"]
            for row in result.hours
        ],
        right=[2, 3],
        indent=2,
    )
    for head, lines in (
        ("failed", _failed(result)),
        ("implausible clocks", [f"{path}: {reason}" for path, reason in result.clocks.items()]),
        ("damaged", [f"{path}: {counted(lost, 'byte')} lost; {text}" for path, lost, text in result.damaged]),
        ("missing topics", [f"{path}: {', '.join(names)}" for path, names in result.missing.items()]),
        ("duplicates", [" = ".join(paths) for paths in result.duplicates]),
        ("columns", result.notes),
    ):
        if lines:
            draw.echo_head(head)
            for line in lines[:LINES]:
                draw.echo(f"  {line}")
            if len(lines) > LINES:
                draw.echo(f"  and {len(lines) - LINES} more; --json has them all")


def _failed(result: FleetReport) -> list[str]:
    """Return a line for each log that failed; many files that are not named as logs are share one."""
    others = result.unrelated
    if others.total() <= FEW:
        return [f"{path}: {why}" for path, why in result.failed.items()]
    kinds = ", ".join(f"{n} {suffix or 'without suffix'}" for suffix, n in others.most_common())
    logs = [f"{path}: {why}" for path, why in result.failed.items() if not result.is_unrelated(path)]
    return [f"{others.total()} files that are not named as logs are: {kinds}", *logs]


@fleet.command(
    cls=WithExamples,
    examples={
        "logreel fleet verify fleet": "whether a copy is complete",
        "logreel fleet verify fleet --json": "the same for programs",
    },
)
@_dataset
@options.answer
def verify(dataset: str, as_json: bool) -> int:
    """Read every file of a dataset and compare digest, size and rows with the catalogue.


    Exit code 4 if a file is missing or has changed. Files that are not in the catalogue are only named.
    """
    from logreel.cli.exits import FOUND
    from logreel.fleet import verify as look

    result = look(dataset)
    if as_json:
        draw.echo_json(result.as_dict())
    else:
        _show_verified(result)
    return FOUND if result.wrong else 0


def _show_verified(result: Verified) -> None:
    draw.echo(f"{result.path}: {result.files} files with {result.rows} rows are as they were written")
    for path, why in result.wrong.items():
        draw.echo(f"  {path}: {why}")
    for path in result.orphans:
        draw.echo(f"  {path}: not in the catalogue, left by a run that did not end")


@verb(
    examples={
        "logreel dataset drive.bag -o lane --spec lane.toml --to lerobot": "episodes for LeRobot, with videos",
        "logreel dataset logs/ -o flights --spec hover.toml --to zarr": "a replay buffer of all logs in a folder",
    },
)
@click.argument("files", metavar="LOGS…", nargs=-1, required=True, type=options.FILE)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=options.FOLDER,
    help="Folder of the dataset.",
)
@click.option(
    "--spec",
    metavar="FILE",
    required=True,
    type=options.FILE,
    help="TOML file that says what an episode is, and which features it has.",
)
@click.option(
    "--to",
    type=click.Choice(["lerobot", "zarr", "hdf5", "lance"]),
    default="lerobot",
    show_default=True,
    help="Kind of dataset.",
)
@options.opening("decrypt", "definitions")
@options.as_json
def dataset(
    files: tuple[str, ...], out: str, spec: str, to: str, opening: dict[str, Any], as_json: bool
) -> int:
    """Write training data: episodes with features at a fixed rate, and the error in time of each feature.

    The same command with more logs, changed logs or a changed specification rewrites only what has changed; one that
    was interrupted is continued. Logs that cannot be used are left out (exit code 3).
    """
    from logreel.cli.exits import LOST
    from logreel.outputs.dataset import dataset as write
    from logreel.registry.open import expand

    with draw.progress(out) as progress:
        done = write(expand(files), out, spec, to=to, progress=progress, **opening)
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        _show_dataset(done)
    return LOST if done.skipped else 0


def _show_dataset(done: DatasetWritten) -> None:
    """Print one line for each feature with its error in time, on stdout; what is left out on stderr."""
    from logreel.log.times import duration_text
    from logreel.ops.inspect.summary import counted

    again = f", {done.reused} as before" if done.reused else ""
    episodes = counted(len(done.episodes), "episode")
    draw.echo(f"{done.path}: {episodes} with {done.frames} frames for {done.to}{again}")
    rows, frames = [], [episode["frames"] for episode in done.episodes]
    for name in done.episodes[0]["sync"]:
        every = [episode["sync"][name] for episode in done.episodes]
        mean = sum(episode["mean_ns"] * n for episode, n in zip(every, frames, strict=True)) / done.frames
        worst = max(sync["max_ns"] for sync in every)
        ends = [duration_text(round(error)) for error in (mean, worst, every[0]["bound_ns"])]
        rows.append([name, every[0]["method"], *ends])
    draw.table(["feature", "method", "mean error", "largest", "bound"], rows, right=[2, 3, 4], indent=2)
    draw.show_notes([*done.skipped, *done.notes])
