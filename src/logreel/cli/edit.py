"""``logreel edit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

#: Lines about what may still identify that are printed.
LISTED = 40

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.ops.edit.edit import Edited


def _pairs(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, str] | None:
    """Return new names by old ones, of arguments OLD=NEW."""
    from logreel.errors import UsageError

    found = {}
    for pair in given:
        old, equals, new = pair.rpartition("=")
        if not (old and equals and new):
            raise UsageError(f"{option.opts[0]} {pair!r}: write OLD=NEW")
        found[old] = new
    return found or None


@verb(
    examples={
        "logreel edit drive.bag -o new.bag --rename /imu=/sensors/imu": "another topic",
        "logreel edit flight.ulg -o public.ulg --redact position": "positions moved to a neutral place",
        "logreel edit flight.ulg -o report.ulg --redact place,identity,time": "says neither where nor who nor when",
    },
)
@common.logs
@click.option(
    "-o", "--output", "out", metavar="OUT", type=arguments.FILE, help="Path of the new log; - is stdout."
)
@click.option(
    "--recipe",
    metavar="FILE",
    type=arguments.FILE,
    help="Changes in a TOML file, with the names of these options; options add to it.",
)
@click.option(
    "--rename",
    multiple=True,
    metavar="OLD=NEW",
    callback=_pairs,
    help="Rename a topic; OLD may be a pattern or 're:…', with {} or {1} in NEW for what it matched.",
)
@click.option(
    "--frame",
    multiple=True,
    metavar="OLD=NEW",
    callback=_pairs,
    help="Rename a frame of coordinates in all fields that name frames.",
)
@click.option(
    "--drop-topic",
    multiple=True,
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="Leave out this channel: a name, pattern, 're:…' or condition.",
)
@click.option(
    "--zero",
    multiple=True,
    metavar="TOPIC.FIELD",
    type=arguments.TOPIC_OR_FIELD,
    help="Set a field to zero or empty; the schema stays. Several: TOPIC:FIELD,FIELD.",
)
@click.option("--shift", metavar="TIME", help="Add a length of time to all times: 2s, -250ms, 00:01:30.")
@click.option("--scale", type=float, metavar="FACTOR", help="Stretch times from the start of the log.")
@click.option(
    "--clock",
    type=click.Choice(["both", "log", "header"]),
    help="Which times --shift and --scale change: both, log, or header (stamps in messages).",
)
@click.option(
    "--restamp",
    type=click.Choice(["header=log", "log=header"]),
    help="header=log: stamps become log times; log=header: log times become stamps.",
)
@click.option(
    "--set",
    "entries",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set metadata of the log, or of a channel with TOPIC:KEY=VALUE.",
)
@click.option("--unset", multiple=True, metavar="KEY", help="Remove metadata of the log.")
@click.option("--attach", multiple=True, metavar="FILE", type=arguments.FILE, help="Attach a file.")
@click.option(
    "--redact",
    multiple=True,
    metavar="WHAT[=HOW]",
    help="Remove what others should not see: all, or place, identity, time, position, images, text; with =HOW other "
    "ways. Several with commas.",
)
@click.option(
    "--origin",
    metavar="LAT,LON[,ALT]",
    help="Where redacted positions move the first position to; default 0.01,0.01,0.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; list what would change.")
@common.compression
@common.chunk_size
@common.force
@common.segment
@common.decrypt
@common.msgdef
@common.as_json
def edit(
    logs: paths.Logs,
    out: str | None,
    entries: tuple[str, ...],
    dry_run: bool,
    compression: str | None,
    chunk_bytes: int | None,
    force: bool,
    segment: int | None,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
    **changes: Any,
) -> int:
    """Write a log with other names, frames, times, fields or metadata.

    Everything that is not changed stays as it is, byte for byte; the new log is read back and compared. Exit code 3:
    something could not be changed.
    """
    from logreel.errors import UsageError
    from logreel.ops.edit.edit import edit as run

    if out is None and not dry_run:
        raise UsageError("give the new log with -o OUT, or --dry-run")
    given: dict[str, Any] = {name: value if value != () else None for name, value in changes.items()}
    given["set"] = dict(common.metadata_of(entries, "--set ")) or None

    def write(log: Log, path: Destination | None, name: str) -> int:
        with draw.progress(name) as progress:
            done = run(
                log,
                path,
                dry_run=dry_run,
                compression=compression,
                chunk_bytes=chunk_bytes,
                force=force,
                progress=progress,
                **given,
            )
        if as_json:
            draw.echo_answer(log, logs.several, **done.as_dict())
        else:
            _show(done, name)
        return draw.finish(log, done.skipped)

    options: dict[str, Any] = {"definitions": msgdef, "segment": segment, "decrypt": decrypt}
    if dry_run or out is None:
        return common.each_log(logs, lambda log: write(log, None, out or ""), not as_json, **options)
    return common.write_each(logs, out, write, paths.log_suffix, as_json, **options)


def _show(done: Edited, out: str) -> None:
    """Print what was written and what changed; on stderr if the log goes to stdout."""
    if done.written:
        draw.show_written(done, out)
    else:
        draw.show_notes(done.notes)
    if not done.changes:
        draw.say("nothing changes")
    rows = [(one.kind, one.topic or "–", one.what, str(one.messages or "–")) for one in done.changes]
    if rows and out != paths.STDOUT:
        draw.table(("change", "topic", "what", "messages"), rows, right=(3,))
    if done.may_identify:
        draw.say("what may still identify:")
        for left in done.may_identify[:LISTED]:
            draw.say(f"  {left.where}: {left.what}" + (f" ({left.count} times)" if left.count > 1 else ""))
        if len(done.may_identify) > LISTED:
            draw.say(f"  and {len(done.may_identify) - LISTED} more; --json has them all")
