"""Verbs that write logs from logs: slice, merge, split, sort, edit, recover, migrate, add and index."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.log.log import Log
    from logreel.ops.edit.edit import Edited
    from logreel.ops.migrate import Migrated
    from logreel.ops.rewrite.recover import Recovered
    from logreel.ops.selection import Selection

#: Lines about what may still identify that edit prints.
LISTED = 40
#: What add adds.
ATTACHMENT, METADATA = "attachment", "metadata"
#: Output of verbs that can also do without: of edit with --dry-run, and of migrate with --write-template.
_optional_out = click.option(
    "-o", "--output", "out", metavar="OUT", type=options.FILE, help="Path of the new log; - is stdout."
)


def _written(
    logs: inputs.Logs,
    as_json: bool,
    write: Callable[..., Any],
    show: Callable[[Log, Any, str], None] | None = None,
) -> Callable[[Log, Destination | None, str], int]:
    """Return a function that writes a new log and says on stderr what was written, or prints it as JSON.

    write  called with a log, the output, and ``progress``; returns a ``Rewritten``
    show   prints its result for people: called with the log, the result, and the name of the output
    """

    def one_log(log: Log, path: Destination | None, name: str) -> int:
        with draw.progress(name or log.name) as progress:
            done = write(log, path, progress=progress)
        if as_json:
            draw.echo_answer(log, logs.several, **done.as_dict())
        elif show is None:
            draw.show_written(done, name)
            draw.show_windows(log, done)
        else:
            show(log, done, name)
        return draw.finish(log, done.skipped)

    return one_log


@verb(
    examples={
        "logreel slice flight.ulg -S +10s -E +20s -o part.ulg": "ten seconds of a log",
        "logreel slice drive.bag -x '/camera/*' -o small.bag": "a log without its pictures",
        'logreel slice flight.ulg --where "sensor_gps.fix_type = 3" -o fix.ulg': "messages that meet a condition",
        'logreel slice flight.ulg --around "battery_status.current_a>=20" -o hi.ulg': "only around such moments",
    },
)
@options.selection("topics", "exclude", "start", "end", "where", "around", "count", "keep_latched", "latched")
@options.output("out", "compression", "chunk_bytes", "options", "force")
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def slice(  # noqa: A001 - the verb's name
    logs: inputs.Logs, selection: Selection, output: options.LogToWrite, as_json: bool
) -> int:
    """Write a part of a log as a new log of the same format.

    Messages are copied unchanged. Text, parameters and dropouts are included unless -t names other channels.
    --keep-latched adds the state at -S: latched topics, static transforms, parameters, actors.
    """
    from logreel.ops.rewrite.slice import slice_log

    write = functools.partial(slice_log, selection=selection, **output.options)
    return inputs.write_each(logs, output.name, _written(logs, as_json, write), inputs.log_suffix, as_json)


@verb(
    examples={
        "logreel sort drive.bag -o sorted.bag": "the messages in the order of their times",
        "logreel sort flight.ulg -o sorted.ulg --force": "replace an earlier output",
    },
)
@options.selection()
@options.output("out", "compression", "chunk_bytes", "options", "force")
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def sort(logs: inputs.Logs, selection: Selection, output: options.LogToWrite, as_json: bool) -> int:
    """Write a log with its messages sorted by time."""
    from logreel.ops.rewrite.slice import sort_log

    write = functools.partial(sort_log, selection=selection, **output.options)
    return inputs.write_each(logs, output.name, _written(logs, as_json, write), inputs.log_suffix, as_json)


@verb(
    examples={
        "logreel recover broken.bag -o sound.bag": "everything that a damaged log still holds",
        "logreel recover broken.bag -o again.bag --json": "with the lost places as JSON",
    },
)
@options.selection("topics", "exclude", "start", "end", "where", "segment")
@options.output(
    click.option(
        "-o", "--output", "out", metavar="OUT", type=options.FILE,
        help="Path of the new log; - is stdout; the default for x.bag.active is x.bag.",
    ),
    "format", "compression", "chunk_bytes", "options", "force",
)  # fmt: skip
@inputs.logs("decrypt", "definitions")
@options.as_json
def recover(logs: inputs.Logs, selection: Selection, output: options.LogToWrite, as_json: bool) -> int:
    """Write the intact content of a damaged log as a new log.

    All complete messages and all definitions are kept. Lost parts are listed with their size and the times around
    them. The new log is verified before it gets its name; the damaged log is not changed. Of a folder of ROS 2, x/ is
    a folder with all of its files, and its metadata.
    """
    from logreel.ops.record.lines import waiting_lines
    from logreel.ops.rewrite.recover import recover as save

    inputs.check_form(output.format, output.out)
    for file in logs.files:
        if (lines := waiting_lines(file)) is not None:
            draw.say(f"{lines} holds the first lines of this recording: logreel record NEW --from {lines}")
    save_log = functools.partial(save, format=output.format, selection=selection, **output.options)
    write = _written(logs, as_json, save_log, _show_recovered)
    if output.out is None:
        # The output of each is called as the log.
        return inputs.each_log(logs, lambda log: write(log, None, ""), False)
    return inputs.write_each(
        logs, output.out, write, lambda log: inputs.suffix_of(output.format or log.format), as_json
    )


def _show_recovered(log: Log, done: Recovered, out: str) -> None:
    """Print what was written and what was lost; on stderr if the log goes to stdout."""
    from logreel.log.times import time_text

    draw.show_written(done, out)
    if not done.lost:
        return

    def text(time: int | None) -> str:
        return "" if time is None else time_text(time, log.utc_offset if log.epoch == "unix" else None)

    rows = [(str(p.offset), str(p.size), text(p.start_ns), text(p.end_ns), p.code, p.text) for p in done.lost]
    if out == inputs.STDOUT:
        for row in rows:
            draw.say(f"lost {row[1]} bytes at byte {row[0]}: {row[5]}")
        return
    draw.table(("at byte", "bytes", "after", "before", "what", ""), rows, right=(0, 1))


def _joining(rename: tuple[str, ...], **members: Any) -> dict[str, Any]:
    """Return the options of merge that say how logs are joined."""
    from logreel.errors import UsageError

    for pair in rename:
        if "=" not in pair:
            raise UsageError(f"--rename {pair!r}: write OLD=NEW")
    return {**members, "rename": {old: new for old, _, new in (pair.partition("=") for pair in rename)}}


@verb(
    examples={
        "logreel merge first.ulg second.ulg -o both.ulg --align start": "one log from two flights, from the same start",
        "logreel merge flight.ulg drive.bag -o all.mcap --align start": "two formats in one MCAP, from the same start",
    },
)
@click.argument("files", metavar="IN…", nargs=-1, required=True, type=options.FILE)
@options.selection("topics", "exclude", "start", "end")
@options.as_object(
    "joining",
    _joining,
    click.option(
        "--align", metavar="HOW", help="Shift the clocks of all logs but the first: utc, start, or by +2.5s."
    ),
    click.option(
        "--anyway",
        is_flag=True,
        help="Also merge logs whose clocks began at different times, as if it were one clock.",
    ),
    click.option(
        "--prefix",
        "prefixes",
        multiple=True,
        metavar="TEXT",
        help="Prefix for the topics of a log; repeat it for each log.",
    ),
    click.option("--rename", multiple=True, metavar="OLD=NEW", help="Rename a topic."),
)
@options.output("out", "format", "compression", "chunk_bytes", "options", "force")
@options.opening("segment", "decrypt", "definitions")
@options.as_json
def merge(
    files: tuple[str, ...],
    selection: Selection,
    joining: dict[str, Any],
    output: options.LogToWrite,
    opening: dict[str, Any],
    as_json: bool,
) -> int:
    """Merge several logs into one, in time order: logs of one format, or of any formats into an MCAP.

    A folder means all logs in and below it. Clocks are shifted only with --align, and logs whose clocks began at
    different times, such as flights after several boots, are merged only with it. Channels with the same name and
    definition become one channel.
    """
    from logreel.outputs.merge_formats import merge as write
    from logreel.registry.open import expand, open_many

    inputs.check_form(output.format, output.out)
    with contextlib.ExitStack() as stack:
        names = expand(files)
        logs = open_many(names, stack, parts=True, **opening)
        suffix = inputs.suffix_of(output.format or logs[0].format)
        path = inputs.destination(output.name, suffix, as_json)
        with draw.progress(output.name) as progress:
            done = write(
                logs,
                path,
                format=output.format,
                selection=selection,
                **joining,
                **output.options,
                progress=progress,
            )
        if as_json:
            problems = [{"path": log.name} | p.as_dict() for log in logs for p in log.problems]
            draw.echo_json({"paths": names, **done.as_dict(), "problems": problems})
        else:
            draw.show_written(done, output.name)
        codes = [draw.finish(log, done.skipped if n == 0 else ()) for n, log in enumerate(logs)]
        return max(codes)


def _parts(size: str | None, **members: Any) -> dict[str, Any]:
    """Return the options of split that say where parts begin, and how they are called."""
    return {"size": None if size is None else options.bytes_of(size), **members}


@verb(
    examples={
        "logreel split flight.ulg --every 20s -o parts": "a log for every 20 seconds",
        "logreel split flight.ulg --on vehicle_status.nav_state -o modes": "a log for each flight mode",
        'logreel split flight.ulg --where "vehicle_status.arming_state = 2" -o armed': "a log for each time armed",
        'logreel split flight.ulg --around "battery_status.current_a>=20" -o loads': "a log for each window",
    },
)
@options.selection(
    "topics",
    "exclude",
    "start",
    "end",
    click.option(
        "--where",
        multiple=True,
        metavar="CONDITION",
        help='One log per interval in which this condition in SQL is true: "battery_status.voltage_v < 14".',
    ),
    "around",
    "keep_latched",
    "latched",
)
@options.as_object(
    "parts",
    _parts,
    click.option("--every", metavar="TIME", help="One log per interval of this length: 60s, 00:05:00."),
    click.option("--size", metavar="SIZE", help="Logs of at most this size: 100MB, 1GiB."),
    click.option("--by-topic", is_flag=True, help="One log per channel."),
    click.option("--by-segment", is_flag=True, help="One log per log in a file that contains several."),
    click.option(
        "--on",
        metavar="TOPIC.FIELD",
        type=options.TOPIC_OR_FIELD,
        help="A new log at each change of this field: vehicle_status.nav_state.",
    ),
    click.option(
        "--name",
        metavar="TEMPLATE",
        help="File names, such as {stem}_{index:03}_{value}. Keys: {stem} {index} {start} {end} {utc}; {value} with "
        "--on, --by-topic and --by-segment; {topic} with --by-topic; {segment} with --by-segment; {condition} and "
        "{number} with --around.",
    ),
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    required=True,
    type=options.FOLDER,
    help="Folder for the new logs.",
)
@options.output("compression", "chunk_bytes", "options", "force")
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def split(
    logs: inputs.Logs,
    selection: Selection,
    parts: dict[str, Any],
    folder: str,
    output: options.LogToWrite,
    as_json: bool,
) -> int:
    """Split a log into several logs: by time, size, channel, segment, value of a field, condition, or windows.

    A value holds, and a condition is true, until the next message of its channel. Of several logs, each gets a folder
    in DIR, with the name of the log.
    """
    from logreel.ops.rewrite.split import split as write

    inputs.no_folder(folder, "parts of a log")
    folders = inputs.outputs_in(folder, logs, "") if logs.several else {}

    def answer(log: Log) -> int:
        place = inputs.output_for(folders, log) if folders else folder
        if logs.several:
            os.makedirs(os.path.dirname(place), exist_ok=True)
        with draw.progress(place) as progress:
            done = write(log, place, **parts, selection=selection, **output.options, progress=progress)
        if as_json:
            draw.echo_answer(log, logs.several, output=place, logs=[part.as_dict() for part in done])
        else:
            for part in done:
                draw.show_written(part)
                draw.show_windows(log, part)
        return draw.finish(log, [sentence for part in done for sentence in part.skipped])

    return inputs.each_log(logs, answer, False)


def _pairs(context: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str] | None:
    """Return new names by old ones, of arguments OLD=NEW."""
    from logreel.errors import UsageError

    new_names = {}
    for pair in pairs:
        old, equals, new = pair.rpartition("=")
        if not (old and equals and new):
            raise UsageError(f"{option.opts[0]} {pair!r}: write OLD=NEW")
        new_names[old] = new
    return new_names or None


def _changes(entries: tuple[str, ...], **members: Any) -> dict[str, Any]:
    """Return the changes that edit makes, as keyword arguments of the library."""
    changes = {name: value if value != () else None for name, value in members.items()}
    return {**changes, "set": dict(options.metadata_of(entries, "--set ")) or None}


@verb(
    examples={
        "logreel edit drive.bag -o new.bag --rename /imu=/sensors/imu": "another topic",
        "logreel edit flight.ulg -o public.ulg --redact position": "positions moved to a neutral place",
        "logreel edit flight.ulg -o report.ulg --redact place,identity,time": "says neither where nor who nor when",
    },
)
@options.as_object(
    "changes",
    _changes,
    click.option(
        "--recipe",
        metavar="FILE",
        type=options.FILE,
        help="Changes in a TOML file, with the names of these options; options add to it.",
    ),
    click.option(
        "--rename",
        multiple=True,
        metavar="OLD=NEW",
        callback=_pairs,
        help="Rename a topic; OLD may be a pattern or 're:…', with {} or {1} in NEW for what it matched.",
    ),
    click.option(
        "--frame",
        multiple=True,
        metavar="OLD=NEW",
        callback=_pairs,
        help="Rename a frame of coordinates in all fields that name frames.",
    ),
    click.option(
        "--drop-topic",
        multiple=True,
        metavar="TOPIC",
        type=options.TOPIC,
        help="Leave out this channel: a name, pattern, 're:…' or condition.",
    ),
    click.option(
        "--zero",
        multiple=True,
        metavar="TOPIC.FIELD",
        type=options.TOPIC_OR_FIELD,
        help="Set a field to zero or empty; the schema stays. Several: TOPIC:FIELD,FIELD.",
    ),
    click.option("--shift", metavar="TIME", help="Add a length of time to all times: 2s, -250ms, 00:01:30."),
    click.option("--scale", type=float, metavar="FACTOR", help="Stretch times from the start of the log."),
    click.option(
        "--clock",
        type=click.Choice(["both", "log", "header"]),
        help="Which times --shift and --scale change: both, log, or header (stamps in messages).",
    ),
    click.option(
        "--restamp",
        type=click.Choice(["header=log", "log=header"]),
        help="header=log: stamps become log times; log=header: log times become stamps.",
    ),
    click.option(
        "--set",
        "entries",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set metadata of the log, or of a channel with TOPIC:KEY=VALUE.",
    ),
    click.option("--unset", multiple=True, metavar="KEY", help="Remove metadata of the log."),
    click.option("--attach", multiple=True, metavar="FILE", type=options.FILE, help="Attach a file."),
    click.option(
        "--redact",
        multiple=True,
        metavar="WHAT[=HOW]",
        help="Remove what others should not see: all, or place, identity, time, position, images, text; with =HOW "
        "other ways. Several with commas.",
    ),
    click.option(
        "--origin",
        metavar="LAT,LON[,ALT]",
        help="Where redacted positions move the first position to; default 0.01,0.01,0.",
    ),
)
@click.option("--dry-run", is_flag=True, help="Write nothing; list what would change.")
@options.output(_optional_out, "compression", "chunk_bytes", "force")
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def edit(
    logs: inputs.Logs, changes: dict[str, Any], dry_run: bool, output: options.LogToWrite, as_json: bool
) -> int:
    """Write a log with other names, frames, times, fields or metadata.

    Everything that is not changed stays as it is, byte for byte; the new log is read back and compared. Exit code 3:
    something could not be changed.
    """
    from logreel.errors import UsageError
    from logreel.ops.edit.edit import edit as run

    if output.out is None and not dry_run:
        raise UsageError("give the new log with -o OUT, or --dry-run")
    edit_log = functools.partial(run, dry_run=dry_run, **output.options, **changes)
    write = _written(logs, as_json, edit_log, lambda log, done, name: _show_edited(done, name))
    if dry_run or output.out is None:
        return inputs.each_log(logs, lambda log: write(log, None, output.out or ""), not as_json)
    return inputs.write_each(logs, output.name, write, inputs.log_suffix, as_json)


def _show_edited(done: Edited, out: str) -> None:
    """Print what was written and what changed; on stderr if the log goes to stdout."""
    if done.written:
        draw.show_written(done, out)
    else:
        draw.show_notes(done.notes)
    if not done.changes:
        draw.say("nothing changes")
    rows = [
        (change.kind, change.topic or "–", change.what, str(change.messages or "–"))
        for change in done.changes
    ]
    if rows and out != inputs.STDOUT:
        draw.table(("change", "topic", "what", "messages"), rows, right=(3,))
    if done.may_identify:
        draw.say("what may still identify:")
        for left in done.may_identify[:LISTED]:
            draw.say(f"  {left.where}: {left.what}" + (f" ({left.count} times)" if left.count > 1 else ""))
        if len(done.may_identify) > LISTED:
            draw.say(f"  and {len(done.may_identify) - LISTED} more; --json has them all")


@verb(
    examples={
        "logreel migrate old.bag -o new.bag --rules rules.toml": "messages in other types, by rules",
        "logreel migrate old.bag -o partial.bag --rules rules.toml --partial": "keep what no rule covers",
    },
)
@options.rules
@options.wanted
@click.option(
    "--only-rules",
    is_flag=True,
    help="Do not update types to the definitions that logreel knows, only by rules.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Leave messages as they are where a rule is missing, and exit with code 3.",
)
@click.option(
    "--write-template",
    "write_template",
    metavar="FILE",
    type=options.FILE,
    help="Write the beginning of each missing rule into FILE (.bmr or .toml), and no log.",
)
@options.output(_optional_out, "compression", "chunk_bytes", "force")
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def migrate(
    logs: inputs.Logs,
    rules: tuple[str, ...],
    wanted: tuple[str, ...],
    only_rules: bool,
    partial: bool,
    write_template: str | None,
    output: options.LogToWrite,
    as_json: bool,
) -> int:
    """Write a log with its messages in other versions of their types, by rules.

    Rules are files of ROS (.bmr) or TOML. Types whose fields only changed their order or their nested types need no
    rules. All other messages stay as they are. check --types lists what would be migrated.
    """
    from logreel.errors import UsageError
    from logreel.ops.migrate import migrate as run

    if (output.out is None) == (write_template is None):
        raise UsageError("give the new log with -o OUT, or --write-template FILE")
    planned: dict[str, Any] = {"rules": rules, "to": wanted, "known": not only_rules}
    if write_template is not None:
        logs.only("--write-template is for one log")
        begin = functools.partial(_begin_rules, write_template, force=output.options["force"], **planned)
        return inputs.each_log(logs, begin, False)
    migrate_log = functools.partial(run, partial=partial, **planned, **output.options)
    write = _written(logs, as_json, migrate_log, lambda log, done, name: _show_migrated(done, name))
    return inputs.write_each(logs, output.name, write, inputs.log_suffix, as_json)


def _begin_rules(path: str, log: Log, **planned: Any) -> int:
    """Write the beginnings of missing rules into a file; return the exit code."""
    from logreel.ops.migrate import write_template

    count = write_template(log, path, **planned)
    draw.say(
        f"{path}: {count} rule{'s' * (count > 1)} to complete"
        if count
        else "no rule is missing; nothing is written"
    )
    return 0


def _show_migrated(done: Migrated, out: str) -> None:
    """Print what was written, and the types that changed; on stderr if the log goes to stdout."""
    draw.show_written(done, out)
    if not done.changes or out == inputs.STDOUT:
        return
    rows = [
        (
            change.topic,
            str(change.messages),
            _version(change.old_type, change.old_version),
            _version(change.new_type, change.new_version),
        )
        for change in done.changes
    ]
    draw.table(("topic", "messages", "from", "to"), rows, right=(1,))


def _version(name: str, version: str) -> str:
    return f"{name} {version[:8]}"


@verb(
    examples={
        "logreel add metadata flight.ulg operator=Kim place=hall": "add values to a log",
        "logreel add attachment walk.mcap notes.txt": "add a file to a log",
    },
)
@click.argument("what", type=click.Choice([ATTACHMENT, METADATA]), metavar="attachment|metadata")
@inputs.one_file
@click.argument("values", metavar="PATH…|NAME=VALUE…", nargs=-1, required=True, type=options.FILE)
@click.option("--name", metavar="NAME", help="Name of the attachment; by default that of its file.")
@click.option(
    "--media-type", metavar="TYPE", help="Type of the attachments, such as image/png; by default by suffix."
)
@options.as_json
def add(
    what: str, file: str, values: tuple[str, ...], name: str | None, media_type: str | None, as_json: bool
) -> int:
    """Add files or metadata to an existing log.

    "add attachment FILE PATH…" adds files, "add metadata FILE NAME=VALUE…" adds values. The log is replaced when the
    new one is complete.
    """
    from logreel.errors import UsageError
    from logreel.ops.add import add_attachments, add_metadata

    if what == METADATA:
        if name is not None or media_type is not None:
            raise UsageError("--name and --media-type are for attachments")
        done = add_metadata(file, options.metadata_of(values, ""))
        count = len(done.metadata)
    else:
        done = add_attachments(file, _contents(values, name), media_type)
        count = len(done.attachments)
    if as_json:
        draw.echo_json(done.as_dict())
    else:
        added = f"{count} attachments" if count > 1 and what == ATTACHMENT else what
        draw.say(f"added {added} to {file}")
    return 0


def _contents(values: tuple[str, ...], name: str | None) -> dict[str, bytes]:
    """Return the content of files by name; - is standard input."""
    from logreel.errors import UsageError

    if name is not None and len(values) > 1:
        raise UsageError("--name is for a single attachment")
    if inputs.STDOUT in values and name is None:
        raise UsageError("- is standard input, which has no name: add --name")
    contents: dict[str, bytes] = {}
    for path in values:
        key = name or os.path.basename(path)
        if key in contents:
            raise UsageError(f"two files are called {key!r}: add one of them with --name")
        if path == inputs.STDOUT:
            contents[key] = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as content:
                contents[key] = content.read()
    return contents


@verb(
    examples={
        "logreel index flight.ulg": "write an index file beside a log, which makes opening faster",
        "logreel index first.ulg second.ulg": "the same for several logs",
    },
)
@inputs.files
@options.as_json
def index(files: tuple[str, ...], as_json: bool) -> int:
    """Write an index file for each log, so that it opens at once."""
    from logreel.cli.exits import LOST
    from logreel.registry import index_cache
    from logreel.registry.open import one_file

    logs = inputs.Logs(files)

    def write(names: inputs.Names) -> None:
        path = str(index_cache.write(one_file(str(names))))
        if as_json:
            draw.echo_json({"path": names, "index": path}, line=logs.several)
        else:
            draw.say(f"wrote {path}")

    if not logs.several:
        write(logs.each[0])
        return 0
    written, code = inputs.open_each(logs, write)
    return LOST if code and written else code
