"""Verbs that show one sort of content of logs: schema, params, attachments, notes, stats and du."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.log.log import Log
    from logreel.log.scan import Attachment, Change, Parameter
    from logreel.meaning.notes import Note
    from logreel.ops.inspect.du import Usage
    from logreel.ops.inspect.schema import SchemaInfo
    from logreel.ops.inspect.stats import ChannelStats
    from logreel.ops.selection import Selection

#: Changes of one parameter that params lists; more are counted.
LISTED = 6
#: Notation of parameters if no option chooses another one.
PLAIN = {"final": False, "initial": False, "timestamps": False, "delimiter": ",", "safe_csv": False}


#: Columns of stats that are shown only if a channel has a value there: gaps, messages out of order, duplicates.
RARE = range(6, 9)


def _print_answer_schema(context: click.Context, option: click.Parameter, name: str | None) -> None:
    """Print the JSON Schema of the answers of a verb, in place of running the command."""
    if name is None or context.resilient_parsing:
        return
    from logreel.cli.answer_schemas import SCHEMAS, of_other_packages, schema_of
    from logreel.errors import NotFoundError

    described = schema_of(name)
    if described is None and _has_json(context, name):
        described = of_other_packages(name)
    if described is None:
        raise NotFoundError("verb with --json", name, SCHEMAS)
    click.echo(json.dumps(described, indent=2))
    context.exit()


def _has_json(context: click.Context, name: str) -> bool:
    """Return whether there is such a command, and it has --json."""
    command: click.Command | None = context.find_root().command
    for word in name.split():
        command = command.get_command(context, word) if isinstance(command, click.Group) else None
    return command is not None and any("--json" in param.opts for param in command.params)


@verb(
    examples={
        "logreel schema drive.bag /imu": "the definition of a channel, and its fields",
        "logreel schema flight.ulg 'battery*' --json": "the channels that a pattern matches, as JSON",
        "logreel schema --of info": "the JSON Schema of what info --json prints",
    },
)
@click.option(
    "--of",
    metavar="VERB",
    is_eager=True,
    expose_value=False,
    callback=_print_answer_schema,
    help="Print the JSON Schema of what VERB --json prints, such as info or 'carla info'; needs no FILE.",
)
@options.selection("topics", "exclude")
@inputs.text_output
@inputs.logs_and_words(
    "FILE… [TOPIC…]", options.FILE_OR_TOPIC, "ros_axes", "segment", "decrypt", "definitions"
)
@options.answer
def schema(logs: inputs.Logs, words: tuple[str, ...], selection: Selection, as_json: bool) -> int:
    """Show message definitions, and fields with types and units.

    TOPIC is a channel or a pattern such as 'sensor_*'; by default all channels are shown. Arguments that exist as files
    or folders, or end like the name of a log, are logs; all others are topics.
    """
    from logreel.ops.inspect.schema import schema as look

    def answer(log: Log) -> int:
        wanted = (*words, *(selection.topics or ()))
        schemas = [look(ch) for ch in inputs.chosen(log, wanted or tuple(log.channels), selection.exclude)]
        if as_json:
            draw.echo_json(
                {"path": log.name, "schemas": [schema.as_dict() for schema in schemas]}, line=logs.several
            )
            return 0
        for number, schema in enumerate(schemas):
            if number:
                draw.echo()
            _show_schema(schema)
        return 0

    return inputs.each_log(logs, answer, not as_json)


def _show_schema(schema: SchemaInfo) -> None:
    """Print one definition for people."""
    draw.echo(f"{schema.topic}  ({schema.name}, {schema.encoding})")
    for name, value in schema.metadata.items():
        draw.echo(f"  {name}: {value}")
    for line in schema.text.splitlines():
        draw.echo(f"  | {line}")
    if schema.fields is None:
        draw.echo(f"  cannot be decoded: {schema.trouble}")
    else:
        draw.table(("field", "type", "unit"), [(f.path, f.type, f.unit) for f in schema.fields], indent=2)


#: How parameters are written in other forms than text.
_notation = options.as_object(
    "notation",
    dict,
    click.option(
        "--final", is_flag=True, help="With params, qgc, yaml: the last values instead of the first ones."
    ),
    click.option(
        "--only-initial", "initial", is_flag=True, help="With history, octave: leave later values out."
    ),
    click.option(
        "--timestamps", is_flag=True, help="With history: times of the values in µs, in a second line."
    ),
    click.option(
        "--separator",
        "delimiter",
        metavar="CHARACTER",
        default=",",
        help="With csv, history: between the values; default a comma.",
    ),
    options.safe_csv,
)


@verb(
    examples={
        "logreel params flight.ulg 'BAT*' MPC_XY_CRUISE": "the parameters that a pattern and a name select",
        "logreel params flight.ulg --changed": "those that changed during the log, with times",
        "logreel params flight.ulg --format params -o vehicle.params": "a parameter file for QGroundControl",
    },
)
@click.option("--changed", is_flag=True, help="Only parameters whose value changed during the log.")
@click.option("--defaults", is_flag=True, help="Only parameters that differ from a default.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "csv", "params", "qgc", "yaml", "history", "octave")),
    default="text",
    metavar="NAME",
    help="text; csv: first and last value, defaults, number of changes; params or qgc: parameter file of "
    "QGroundControl; yaml: names and values; history: all values in their order, as CSV; octave: the same for GNU "
    "Octave.",
)
@_notation
@options.selection("start", "end")
@options.utc
@inputs.text_output
@inputs.logs_and_words("FILE… [PATTERN…]", options.FILE_OR_PARAMETER, "segment", "decrypt", "definitions")
@options.answer
def params(
    logs: inputs.Logs,
    words: tuple[str, ...],
    changed: bool,
    defaults: bool,
    form: str,
    notation: dict[str, Any],
    utc: bool,
    selection: Selection,
    as_json: bool,
) -> int:
    """Show parameters of the robot: first and last value, default, and changes.

    PATTERN is the name of a parameter, a shell pattern, or re: and a regular expression. Arguments that exist as files
    or folders, or end like the name of a log, are logs; all others are patterns. With -S and -E, the first value is the
    value at the start of the interval, and changes are those in the interval.
    """
    from logreel.errors import UsageError
    from logreel.log.times import shift_of
    from logreel.ops.inspect.params import as_dict, params_text, with_log
    from logreel.ops.inspect.params import params as look

    if form != "text" and as_json:
        raise UsageError(f"--format and {draw.notation()} are two notations: give one of them")
    if form == "text" and notation != PLAIN:
        raise UsageError(
            "--final, --only-initial, --timestamps, --separator and --safe-csv need a --format such as csv"
        )
    if form in ("params", "qgc", "yaml", "history", "octave"):
        logs.only(f"--format {form} is a file of the parameters of one log")
    tables: list[str] = []

    def answer(log: Log) -> int:
        skipped: list[str] = []
        span = options.members_of(selection)
        parameters = look(log, words or None, changed=changed, defaults=defaults, **span)
        if as_json:
            draw.echo_answer(log, logs.several, parameters=[as_dict(p) for p in parameters])
        elif parameters and form != "text":
            text = params_text(parameters, form, skipped, **notation)
            if logs.several:
                text = with_log(text, log.name, notation["delimiter"], notation["safe_csv"], head=not tables)
            tables.append(log.name)
            click.echo(text, nl=False)
        elif parameters:
            _show_parameters(parameters, changed or utc, shift_of(log, utc))
        else:
            about = f"{log.name}: " if logs.several else ""
            draw.say(f"{about}no {'such ' if log.parameters else ''}parameters in this log")
        return draw.finish(log, skipped)

    return inputs.each_log(logs, answer, form == "text" and not as_json)


def _show_parameters(parameters: Sequence[Parameter], with_times: bool, shift: int | None) -> None:
    """Print parameters for people; columns without any value are left out.

    with_times  True: also list the changes with their times
    """
    rows = []
    for p in parameters:
        changes = p.real_changes
        cells = [p.name, draw.value_text(p.value), draw.value_text(p.final), _defaults_text(p)]
        cells += [str(len(changes)) if changes else "", _changes_text(changes, shift) if with_times else ""]
        rows.append(cells)
    head = ("parameter", "initial", "final", "default", "changes", "values" if with_times else "")
    used = [i for i in range(len(head)) if i < 3 or any(row[i] for row in rows)]
    right = [at for at, i in enumerate(used) if i in (1, 2, 4)]
    draw.table([head[i] for i in used], [[row[i] for i in used] for row in rows], right=right)


def _defaults_text(p: Parameter) -> str:
    """Return the defaults that the log contains; their kind is named unless they are all equal."""
    texts = {origin: draw.value_text(value) for origin, value in p.defaults.items()}
    if len(texts) > 1 and len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{value} ({origin})" for origin, value in texts.items())


def _changes_text(changes: Sequence[Change], shift: int | None) -> str:
    from logreel.log.times import time_text

    texts = [f"{draw.value_text(c.value)} at {time_text(c.time, shift)}" for c in changes[:LISTED]]
    more = [f"… {len(changes) - LISTED} more"] if len(changes) > LISTED else []
    return ", ".join([*texts, *more])


@verb(
    examples={
        "logreel attachments walk.mcap": "the files attached to a log",
        "logreel attachments walk.mcap -o files": "extract them to a folder",
    },
)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=options.FOLDER,
    help="Write the attachments to this folder; - writes a single one to stdout.",
)
@click.option("--name", metavar="NAME", help="Only this attachment; without -o its content goes to stdout.")
@options.force
@inputs.logs("segment", "decrypt", "definitions")
@options.answer
def attachments(logs: inputs.Logs, folder: str | None, name: str | None, force: bool, as_json: bool) -> int:
    """List or extract the files attached to logs; of several logs, each gets a folder in DIR."""
    from logreel.errors import NotFoundError
    from logreel.log.source_files import inputs_of
    from logreel.outputs.files import extract

    if folder == inputs.STDOUT or (folder is None and name is not None and not as_json):
        logs.only("the content of one attachment goes to stdout")
    outputs = inputs.outputs_in(folder or "", logs, "") if logs.several and folder else {}

    def answer(log: Log) -> int:
        names = dict(log.attachments)
        if name is not None and name not in names:
            raise NotFoundError("attachment", name, names, path=log.name)
        chosen = [a for a in names.values() if name in (None, a.name)]
        if folder == inputs.STDOUT:
            return _write_single(log, chosen, as_json)
        to = inputs.output_for(outputs, log) if outputs else folder
        files: dict[str, str] = {}
        if to and chosen:
            files = extract(chosen, to, force, all_names=list(names), sources=inputs_of(log))
        if as_json:
            draw.echo_answer(log, logs.several, attachments=[_as_dict(a, files) for a in chosen])
        elif folder:
            for path in files.values():
                draw.say(f"wrote {path}")
        elif name is not None:
            _to_stdout(chosen[0])
        elif chosen:
            rows = [(a.name, a.media_type, draw.size_text(a.size)) for a in chosen]
            draw.table(("name", "type", "size"), rows, right=(2,))
        return draw.finish(log)

    return inputs.each_log(logs, answer, folder is None and not as_json)


#: A note that is added, and the id of one that is removed.
_changed_notes = options.as_object(
    "changes",
    dict,
    click.option("--add", "title", metavar="TITLE", help="Add a note with this title; needs --at."),
    click.option("--at", "begin", metavar="TIME", help="With --add: the moment, or start of an interval."),
    click.option("--until", "end", metavar="TIME", help="With --add: the end of the interval."),
    click.option("--text", metavar="TEXT", help="With --add: text in addition to the title."),
    click.option("--author", metavar="NAME", help="With --add: name of the author."),
    click.option(
        "--colour",
        type=click.Choice(["blue", "green", "orange", "purple", "red"]),
        help="With --add: colour of its flag in the viewer.",
    ),
    click.option("--remove", metavar="ID", help="Remove the note with this id."),
)


@verb(
    examples={
        "logreel notes flight.ulg": "the notes on a log",
        "logreel notes flight.ulg --add 'Motor 3 slows down' --at 41.5s --until 44s": "add one on a span",
        "logreel notes flight.ulg --remove 8e23dd0a7c1e": "remove one by its id, which --json prints",
    },
)
@_changed_notes
@options.utc
@inputs.logs("definitions")
@options.answer
def notes(logs: inputs.Logs, changes: dict[str, Any], utc: bool, as_json: bool) -> int:
    """Show, add or remove notes on moments and intervals of logs.

    Notes are stored beside the log, in FILE.notes.json; the viewer and reports show them. TIME has the forms of -S:
    12.5s after the start, -5s before the end, UTC, or log:598.6.
    """
    from logreel.errors import UsageError
    from logreel.log.times import shift_of
    from logreel.meaning.notes import notes as notes_on

    title, removed = changes.pop("title"), changes.pop("remove")
    values = {name: value for name, value in changes.items() if value is not None}
    if title is None and values:
        raise UsageError("--at, --until, --text, --author and --colour describe a note: add it with --add")
    if title is not None and "begin" not in values:
        raise UsageError("a note needs a time: --at")
    if title is not None or removed is not None:
        logs.only("a note is about one log")

    def answer(log: Log) -> int:
        listed = notes_on(log)
        if removed is not None:
            listed.remove(removed)
        if title is not None:
            listed.add(values.pop("begin"), title, **values)
        if title is not None or removed is not None:
            draw.say(f"wrote {listed.save()}")
        draw.show_notes([listed.problem] if listed.problem else [])
        if as_json:
            file = None if listed.path is None or not listed.path.exists() else str(listed.path)
            draw.echo_answer(log, logs.several, file=file, notes=[note.as_dict() for note in listed])
        elif title is None and removed is None:
            _show_notes(listed, shift_of(log, utc))
            if not len(listed):
                draw.say(f"{log.name}: no notes yet")
        return draw.finish(log)

    return inputs.each_log(logs, answer, not as_json)


def _show_notes(listed: Sequence[Note], shift: int | None) -> None:
    """Print notes for people: time or times, title and author, with the text below."""
    from logreel.log.times import duration_text, time_text

    for note in listed:
        lasts = "" if note.end is None else f" for {duration_text(note.end - note.begin)}"
        author = f"  ({note.author})" if note.author else ""
        draw.echo_wrapped(f"{time_text(note.begin, shift)}{lasts}  ", f"{note.title}{author}")
        for line in note.text.splitlines():
            draw.echo_wrapped("    ", line)


def _write_single(log: Log, chosen: list[Attachment], as_json: bool) -> int:
    """Write the only attachment to stdout, for ``-o -``; raises UsageError for several."""
    from logreel.errors import UsageError

    if as_json:
        raise UsageError(f"{draw.notation()} and -o - would both write to stdout: leave out one of them")
    if len(chosen) != 1:
        raise UsageError(
            f"{len(chosen)} attachments do not fit on stdout: choose one with --name", path=log.name
        )
    _to_stdout(chosen[0])
    return draw.finish(log)


def _as_dict(attachment: Attachment, files: dict[str, str]) -> dict[str, object]:
    file = files.get(attachment.name)
    return {
        "name": attachment.name,
        "media_type": attachment.media_type,
        "size": attachment.size,
        "file": file,
    }


def _to_stdout(attachment: Attachment) -> None:
    """Write the content of an attachment to stdout; raises UsageError for binary data on a terminal."""
    from logreel.errors import UsageError

    data = attachment.read()
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    elif attachment.media_type.startswith("text/"):
        for line in data.decode("utf-8", "replace").splitlines():
            draw.echo(line)
    else:
        raise UsageError(f"{attachment.name} is not text: redirect the output, or use -o DIR")


@verb(
    examples={
        "logreel stats drive.bag -t /imu": "rate, jitter and gaps of a channel",
        "logreel stats flight.ulg -t battery_status --fields": "also minimum, mean and maximum of its fields",
    },
)
@options.selection("fields", "exclude", "start", "end", "where")
@click.option("--fields", is_flag=True, help="Also show minimum, mean and maximum of every numeric field.")
@inputs.text_output
@inputs.logs("ros_axes", "segment", "decrypt", "definitions")
@options.answer_with_keys
def stats(logs: inputs.Logs, selection: Selection, fields: bool, as_json: bool) -> int:
    """Show rate, jitter, gaps and order of the messages of each channel.

    A gap is an interval without messages that is longer than five median periods and twice the 90th percentile of the
    periods.
    """
    from logreel.ops.inspect.stats import stats as look

    def answer(log: Log) -> int:
        chosen = inputs.chosen_fields(log, selection)
        start, end, where = selection.start, selection.end, selection.where
        channels = look(log, chosen, fields=fields, start=start, end=end, where=where)
        if as_json:
            draw.echo_answer(log, logs.several, channels=[channel.as_dict() for channel in channels])
        else:
            _show_stats(channels)
        bad = [
            f"the fields of {channel.topic!r} cannot be decoded"
            for channel in channels
            if (fields or chosen[channel.topic] is not None) and channel.fields is None
        ]
        return draw.finish(log, bad)

    return inputs.each_log(logs, answer, not as_json)


def _show_stats(channels: list[ChannelStats]) -> None:
    """Print statistics for people."""
    from logreel.log.times import duration_text

    head = (
        "channel",
        "messages",
        "rate",
        "period",
        "jitter",
        "longest",
        "gaps",
        "out of order",
        "duplicates",
        "size",
    )
    rows = []
    for channel in channels:
        p = channel.period_ns
        times = [duration_text(round(t)) for t in (p.median, p.std, p.max)] if p else ["", "", ""]
        counts = [str(n) if n else "" for n in (channel.gap_count, channel.out_of_order, channel.duplicates)]
        size = draw.size_text(channel.bytes)
        rows.append(
            (channel.topic, str(channel.messages), draw.rate_text(channel.rate), *times, *counts, size)
        )
    # Empty columns would only make the table wider.
    used = [i for i in range(len(head)) if i not in RARE or any(row[i] for row in rows)]
    draw.table([head[i] for i in used], [[row[i] for i in used] for row in rows], right=range(1, len(used)))
    for channel in channels:
        if channel.fields:
            draw.echo()
            values = [
                (f.path, *map(draw.number_text, (f.min, f.mean, f.max)), str(f.nan) if f.nan else "")
                for f in channel.fields
            ]
            draw.table((channel.topic, "min", "mean", "max", "NaN"), values, right=range(1, 5))


@verb(
    examples={
        "logreel du drive.bag": "the bytes of each topic, and of what is no message",
        "logreel du drive.bag --chunks --json": "also of each chunk, as JSON",
    },
)
@options.selection("topics", "exclude", "start", "end", "where", "segment")
@click.option("--chunks", is_flag=True, help="Also show each chunk: place, compression, messages, bytes.")
@inputs.text_output
@inputs.logs("decrypt")
@options.answer
def du(logs: inputs.Logs, selection: Selection, chunks: bool, as_json: bool) -> int:
    """Show what uses the bytes of a log: payloads and records of each topic, definitions, indexes, damage.

    The column "stored" adds up to the size of the file. A compressed chunk is divided among its topics in proportion to
    their uncompressed bytes. With -t, -x, -S, -E, --where or --segment, the bytes are those of the log that slice would
    write.
    """
    from logreel.ops.inspect.du import du as look

    def usage(log: Log) -> Usage:
        return look(log, **options.members_of(selection))

    def show(answer: Usage) -> None:
        _show_usage(answer, chunks)

    _, code, lost = inputs.answer_each(logs, usage, show, as_json)
    return code or lost


def _show_usage(usage: Usage, chunks: bool) -> None:
    """Print the bytes of a log for people."""
    draw.echo_head(f"{usage.path}  {usage.format}  {draw.size_text(usage.size)}")
    rows = [
        (
            topic.topic,
            str(topic.messages),
            *map(str, (topic.payload_bytes, topic.record_bytes, topic.stored_bytes)),
            _share(topic.stored_bytes, usage.size),
            _ratio(topic.ratio),
        )
        for topic in usage.topics
    ]
    rows += [
        (f"({content})", "", "", "", str(count), _share(count, usage.size), "")
        for content, count in usage.other.items()
    ]
    sums = (
        sum(topic.messages for topic in usage.topics),
        sum(topic.payload_bytes for topic in usage.topics),
        sum(topic.record_bytes for topic in usage.topics),
        usage.size,
    )
    rows.append(("total", *map(str, sums), _share(usage.size, usage.size), ""))
    _usage_table(("topic", "messages", "payload", "records", "stored", "share", "ratio"), rows)
    if chunks:
        draw.echo()
        parts = [
            (
                *map(str, (topic.offset,)),
                topic.compression,
                *map(str, (topic.messages, topic.size, topic.stored_bytes)),
                _ratio(topic.ratio),
            )
            for topic in usage.chunks
        ]
        if parts:
            draw.table(
                ("chunk at", "compression", "messages", "size", "stored", "ratio"), parts, (0, 2, 3, 4, 5)
            )
        else:
            draw.echo("no chunks")


def _usage_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table without the last column if no topic is compressed."""
    used = len(head) - all(row[-1] in ("", "1.00") for row in rows)
    draw.table(head[:used], [row[:used] for row in rows], range(1, used))


def _share(part: int, total: int) -> str:
    return f"{100 * part / total:.1f} %" if total else ""


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
