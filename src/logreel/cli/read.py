"""Verbs that show what is in a log: info, summary, cat and text."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from logreel.cli import draw, inputs, options
from logreel.cli.help import verb

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.cli.following import Ending
    from logreel.log.log import Channel, Log, Message
    from logreel.log.scan import TextLine
    from logreel.log.topic_fields import FieldsByTopic
    from logreel.ops.inspect.info import Info
    from logreel.ops.inspect.summary import Summary
    from logreel.ops.selection import Selection

#: Limits of what info prints for people: metadata entries, their length, names in a list. --json is complete.
ENTRIES, LENGTH, NAMES = 12, 100, 5
#: Seconds between two summaries of a growing log.
PAUSE = 1.0
#: Bytes of messages that are surely more than a brief answer shows.
ENOUGH = 10_000
#: Forms of messages that cat prints.
STYLES = ("text", "ndjson", "csv")


@verb(
    examples={
        "logreel info flight.ulg": "format, times, channels and problems of a log",
        "logreel info logs": "one line for each log in a folder and below it",
    },
)
@options.selection("topics", "exclude", "start", "end", "where", "segment")
@click.option("--long", is_flag=True, help="Print all details of several logs, instead of one line each.")
@options.follow
@inputs.text_output
@inputs.logs("decrypt", "definitions")
@options.answer
def info(logs: inputs.Logs, selection: Selection, long: bool, follow: bool, as_json: bool) -> int:
    """Show format, times, channels, metadata and problems of logs.

    Several files get one line each; a folder means all logs in and below it. --json prints one object per file, each
    on one line. If a file cannot be opened, the others are still shown. -f shows one log again whenever it has grown,
    at most once a second: in place on a terminal, else one after another.
    """
    from logreel.errors import UsageError
    from logreel.ops.inspect.info import info as look

    if follow:
        if selection.has_interval or selection.where:
            raise UsageError("-f takes no -S, -E and --where")
        _refuse_brief()
        return _follow_info(logs, selection, as_json)
    brief = not (long or logs.as_one) and (
        logs.several or any(os.path.isdir(name) for name in {*logs.names} - {*logs.files})
    )

    def answer(names: inputs.Names) -> Info:
        with logs.open(names) as log:
            inputs.note_decrypted(log)
            return look(log, **options.members_of(selection))

    if selection.topics is not None and logs.several:
        return _matching(logs, answer, long, as_json)
    if brief and not as_json:
        _, code = inputs.print_each(logs, answer, LinePrinter().show, as_json)
        return code
    _, code = inputs.print_each(logs, answer, show_info, as_json, gap=True)
    return code


def _refuse_brief() -> None:
    """Raise UsageError for --brief where there is no end."""
    from logreel.errors import UsageError

    shape = draw.shape()
    if shape is not None and shape.brief:
        raise UsageError("-f goes on for as long as the log grows: leave out --brief")


def _matching(logs: inputs.Logs, answer: Callable[[inputs.Names], Info], long: bool, as_json: bool) -> int:
    """Print the logs that have one of the channels asked for, with these channels; return the exit code.

    The logs that have none are counted on stderr; if none has any, the error is that of the first.
    """
    from logreel.cli.exits import LOST
    from logreel.errors import TopicError

    without: list[TopicError] = []

    def look(name: inputs.Names) -> Info | None:
        try:
            return answer(name)
        except TopicError as error:
            without.append(error)
            return None

    def print_one(summary: Info | None) -> None:
        if summary is None:
            return
        if as_json:
            draw.echo_json(summary.as_dict(), line=True)
        elif long:
            show_info(summary)
            draw.echo()
        else:
            draw.echo_head(summary.path)
            _show_channels(summary)

    results, code = inputs.open_each(logs, look, print_one)
    matching = sum(answered is not None for answered in results)
    if without and not matching:
        raise without[0]
    if without:
        draw.say(f"{len(without)} of {len(results)} logs have no such channel")
    return LOST if code and matching else code


def _follow_info(logs: inputs.Logs, selection: Selection, as_json: bool) -> int:
    """Show the summary of one growing log again and again."""
    from logreel.cli import following
    from logreel.errors import TopicError, UsageError
    from logreel.ops.inspect.info import info as look

    if len(logs.names) != 1:
        raise UsageError(f"-f shows one log, not {len(logs.names)}")
    following.refuse_output()
    with following.ending() as event, following.opened(logs, event, segment=selection.segment) as log:
        for n, _ in enumerate(log.changes(poll=PAUSE, stop=event)):
            try:
                summary = look(log, topics=selection.topics, exclude=selection.exclude)
            except TopicError:
                # The channels may come later.
                summary = look(log)
            if as_json:
                draw.echo_json(summary.as_dict(), line=True)
                continue
            if sys.stdout.isatty():
                # To the upper left corner, and erase what is below.
                sys.stdout.write("\x1b[H\x1b[J")
            elif n:
                draw.echo()
            show_info(summary)
        return following.finish(log, event)


class LinePrinter:
    """Prints one line per log, with a head before the first; the name is last because it can be long."""

    def __init__(self) -> None:
        from logreel.registry.registry import formats

        self._columns = (
            ("format", max(map(len, formats()))), ("start", 20), ("duration", -11), ("messages", -9), ("size", -8),
            ("problems", -8),
        )  # fmt: skip
        self._has_head = False

    def show(self, summary: Info) -> None:
        """Print one Info as one line."""
        from logreel.log.times import duration_text, utc_text

        if not self._has_head:
            draw.echo_head(self._line([name for name, _ in self._columns], "log"))
            self._has_head = True
        start, duration = "", ""
        if summary.start_ns is not None and summary.end_ns is not None:
            shift = 0 if summary.epoch == "unix" else summary.utc_offset_ns
            start = "" if shift is None else utc_text(summary.start_ns + shift, 0)
            duration = duration_text(summary.end_ns - summary.start_ns)
        size = draw.size_text(summary.size)
        cells = [
            summary.format,
            start,
            duration,
            str(summary.messages),
            size,
            str(len(summary.problems) or ""),
        ]
        draw.echo(self._line(cells, summary.path))

    def _line(self, cells: list[str], name: str) -> str:
        padded = [
            cell.rjust(-width) if width < 0 else cell.ljust(width)
            for cell, (_, width) in zip(cells, self._columns, strict=True)
        ]
        return "  ".join([*padded, name])


def show_info(summary: Info) -> None:
    """Print one Info for people."""
    from logreel.registry.registry import format_named

    fmt = format_named(summary.format)
    live = [ch for ch in summary.channels if ch.messages and not ch.topic.startswith("~")]
    draw.echo(summary.path)
    rows = [
        ("format", f"{fmt.title if fmt else summary.format}, version {summary.version}"),
        ("size", draw.size_text(summary.size)),
        *_times(summary),
        ("messages", f"{summary.messages} in {len(live)} channel{'s' * (len(live) != 1)}"),
        *([("logs in it", _segments(summary))] if len(summary.segments) > 1 else []),
        ("problems", _problems(summary)),
    ]
    draw.table(("", ""), rows, indent=2)
    _show_channels(summary)
    empty = [ch.topic for ch in summary.channels if not ch.messages]
    if empty:
        more = f" and {len(empty) - NAMES} more" if len(empty) > NAMES else ""
        draw.echo(f"  without messages: {', '.join(empty[:NAMES])}{more}")
    _show_metadata(summary.metadata)
    if summary.attachments:
        listed = ", ".join(a.name for a in summary.attachments[:NAMES])
        more = f" and {len(summary.attachments) - NAMES} more" if len(summary.attachments) > NAMES else ""
        draw.echo(f"  attachments: {listed}{more}")


def _times(summary: Info) -> list[tuple[str, str]]:
    from logreel.log.times import duration_text, seconds_text, utc_text

    if summary.start_ns is None or summary.end_ns is None:
        return [("start", "unknown: no messages with a time")]
    clock = {"boot": " s after boot", "start": " s after the start"}.get(summary.epoch)
    shift = 0 if summary.epoch == "unix" else summary.utc_offset_ns
    start = seconds_text(summary.start_ns) + clock if clock else ""
    if shift is not None:
        start = utc_text(summary.start_ns + shift, 3) + (f"  ({start})" if start else "")
    return [
        ("start", start or f"{summary.start_ns} ns"),
        *(("", text) for text in summary.utc_notes),
        ("duration", duration_text(summary.end_ns - summary.start_ns)),
    ]


def _segments(summary: Info) -> str:
    """Return the number, messages and duration of each log in the file as text."""
    from logreel.log.times import duration_text

    each = [
        f"{s.number}: {s.messages} messages, {duration_text(None if s.end is None else s.end - (s.start or 0))}"
        for s in summary.segments
    ]
    return f"{'; '.join(each)} (--segment, split --by-segment)"


def _problems(summary: Info) -> str:
    if not summary.problems:
        return "none"
    from logreel.log.part_checks import BETWEEN_FILES

    lost = sum(problem.size for problem in summary.problems if problem.lost)
    first = summary.problems[0]
    count = len(summary.problems)
    head = f"{count} problem{'s' * (count != 1)}, {draw.size_text(lost)} lost"
    place = "" if first.code in BETWEEN_FILES else f" (at byte {first.offset})"
    return f"{head}; {'first: ' if count > 1 else ''}{first.text}{place}"


def _show_channels(summary: Info) -> None:
    rows = [ch for ch in summary.channels if ch.messages]
    if not rows:
        return
    # Types are not shown if all topics already contain them, as sensor_accel[1] does.
    typed = any(ch.type not in (ch.topic.partition("[")[0], ch.topic[1:]) for ch in rows)
    head = ("channel", *(["type"] if typed else []), "messages", "rate", "size")
    cells = [
        (
            ch.topic,
            *([ch.type] if typed else []),
            str(ch.messages),
            draw.rate_text(ch.rate),
            "" if ch.bytes is None else draw.size_text(ch.bytes),
        )
        for ch in rows
    ]
    draw.echo()
    draw.table(head, cells, right=range(len(head) - 3, len(head)), indent=2)
    draw.echo()


def _show_metadata(metadata: Mapping[str, Any]) -> None:
    short = {k: v for k, v in metadata.items() if isinstance(v, str | int | float) and len(str(v)) <= LENGTH}
    shown = list(short.items())[:ENTRIES]
    if shown:
        draw.table(("", ""), [(key, str(value)) for key, value in shown], indent=2)
    if len(metadata) > len(shown):
        draw.echo(f"  … {len(metadata) - len(shown)} more in --json")


@verb(
    examples={
        "logreel summary flight.ulg": "what happened: modes, battery, position, faults",
        "logreel summary logs --json": "the same for each log in a folder, a JSON object per line",
    },
)
@options.selection("topics", "exclude", "start", "end", "where", "segment")
@inputs.text_output
@inputs.logs("decrypt", "definitions")
@options.answer
def summary(logs: inputs.Logs, selection: Selection, as_json: bool) -> int:
    """Show what happened in a recording: vehicle, flight, modes, battery, position, faults, errors.

    ! marks a warning, !! an error. Times are seconds after the start of the log, as -S and -E of other verbs take them.
    """
    from logreel.ops.inspect.summary import summary as look

    shape = draw.shape()
    if shape is not None and shape.brief and not shape.fields:
        from logreel.cli.orientation import Orientation

        answers = inputs.answer_each(
            logs, functools.partial(Orientation, options.members_of(selection)), _no_text, as_json
        )
        return answers[1] or answers[2]

    def answer(log: Log) -> Summary:
        return look(log, **options.members_of(selection))

    _, code, lost = inputs.answer_each(logs, answer, show_summary, as_json)
    return code or lost


def _no_text(result: object) -> None:
    """Print nothing: a brief answer is made of its object."""


def show_summary(summary: Summary) -> None:
    """Print a summary for people."""
    width = draw.width()
    draw.echo_head(summary.path)
    for section in summary:
        draw.echo()
        draw.echo_head(section.title)
        label = min(max(len(fact.label) for fact in section), width // 3)
        for fact in section:
            _show_fact(fact.label, fact.text, fact.level, label, width)


def _show_fact(label: str, text: str, level: int | None, column: int, width: int) -> None:
    head = f"{draw.mark(level):<2}{draw.safe(label).ljust(column)}  "
    if len(head) > column + 4:
        draw.echo(head.rstrip())
        head = " " * (column + 4)
    for line in draw.wrapped(text, width, head, " " * len(head)):
        draw.echo(line)


@verb(
    examples={
        "logreel cat flight.ulg -t battery_status:voltage_v,current_a -n 10": "the first ten values of two fields",
        "logreel cat drive.bag -t /imu -S +5s -E +6s -o imu.csv": "one second of a channel as CSV",
    },
)
@options.selection("fields", "exclude", "start", "end", "where", "count")
@click.option(
    "--format",
    "style",
    type=click.Choice(STYLES),
    metavar="NAME",
    help="Output format: text, ndjson or csv; by default from the suffix of -o, else text.",
)
@options.utc
@options.interpolate
@options.safe_csv
@options.follow
@inputs.text_output
@inputs.logs("ros_axes", "segment", "decrypt", "definitions")
@options.answer
def cat(
    logs: inputs.Logs,
    selection: Selection,
    style: str | None,
    utc: bool,
    interpolate: bool,
    safe_csv: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """Print decoded messages in time order.

    csv prints one channel, in file order; of several logs, its first column is the log. -f prints in file order, and
    with --json one object per message. Messages of a pipe are printed in this way while they come, as text or ndjson.
    """
    from logreel.cli import following
    from logreel.errors import UsageError

    style = style or _style_of_output()
    if safe_csv and (as_json or style != "csv"):
        raise UsageError("--safe-csv is about formulas in CSV: it needs --format csv")
    if interpolate and (as_json or style != "csv"):
        raise UsageError("--interpolate spreads the times of rows: it needs --format csv")
    if selection.where and follow:
        raise UsageError("-f shows messages as they come: leave out --where")
    if not (selection.where or as_json or style == "csv"):
        follow = follow or following.comes_slowly(logs.names, selection.start, selection.end)
    if follow:
        if style == "csv" and not as_json:
            raise UsageError("-f prints messages as text or ndjson: leave out --format csv")
        _refuse_brief()
        return _follow_messages(logs, selection, "ndjson" if as_json else style, utc)
    messages = _Messages(logs, selection, "json" if as_json else style, utc, interpolate, safe_csv)
    if logs.several and messages.style == "csv":
        # The columns of all are known before the first row is written.
        with contextlib.ExitStack() as stack:
            code = inputs.each_log(logs, messages.show, False, stack)
            messages.tables.write(True)
            return code
    return inputs.each_log(logs, messages.show, messages.style == "text")


def _style_of_output() -> str:
    """Return the form of messages for the suffix of -o."""
    suffix = os.path.splitext(options.parameter("out") or "")[1].removeprefix(".").lower()
    return suffix if suffix in STYLES else "text"


def _follow_messages(logs: inputs.Logs, selection: Selection, style: str, utc: bool) -> int:
    """Print the messages of a growing log as they come."""
    from logreel.cli import following
    from logreel.log.times import shift_of, time_text
    from logreel.outputs.tables.ndjson import Decoder, line

    if logs.names != ("-",):
        following.refuse_output()
    skipped: list[str] = []
    decoders: dict[str, Decoder] = {}
    choose = following.Choice(selection)
    bounds = selection.start, selection.end

    def lines(log: Log, event: Ending) -> Iterator[str]:
        for message in log.follow(choose, *bounds, poll=following.POLL, stop=event):
            topic = message.channel.topic
            if topic not in decoders:
                decoders[topic] = Decoder([message.channel], skipped, choose.fields)
            data = decoders[topic](message)
            if data is None:
                continue
            shift = shift_of(log, utc)
            if style == "ndjson":
                yield line(message, data, shift)
            else:
                when = time_text(message.time, shift)
                yield draw.safe(f"{when}  {topic}  {draw.fields_text(data)}")

    with following.ending() as event, following.opened(logs, event) as log:
        name = log.name
        texts = itertools.islice(lines(log, event), selection.count)
        shape = draw.shape()
        if shape is not None:
            shape.show_lines(map(json.loads, texts))
        for text in texts if shape is None else ():
            sys.stdout.write(text + "\n")
        # Names that no channel had so far will not come any more, nor messages of an interval.
        choose.check(log)
        following.check_interval(log, name, bounds)
        for decoder in decoders.values():
            decoder.report()
        return following.finish(log, event, skipped)


class _Chosen(NamedTuple):
    """The messages of one log that are printed.

    span     first and last time, ns of the log's clock; None: no bound
    shift    ns to add for UTC; None: times of the log's clock
    skipped  gets a sentence for what cannot be decoded
    """

    log: Log
    channels: list[Channel]
    fields: FieldsByTopic
    span: tuple[int | None, int | None]
    shift: int | None
    skipped: list[str]

    def decoded(self, most: int | None) -> Iterator[tuple[Message, dict[str, Any]]]:
        """Yield the messages with their fields, at most *most*."""
        from logreel.outputs.tables.ndjson import decoded

        rows = decoded(self.log, self.channels, *self.span, self.skipped, self.fields)
        return itertools.islice(rows, most)

    @property
    def total(self) -> int:
        """Number of the messages, also of those that cannot be decoded."""
        spans = (self.log.index.rows_between(ch.number, *self.span) for ch in self.channels)
        return sum(rows.stop - rows.start if isinstance(rows, slice) else len(rows) for rows in spans)

    def closing(self) -> dict[str, Any]:
        """Return what stands behind the messages in the object of --json."""
        return {
            "skipped": self.skipped,
            "problems": [problem.as_dict() for problem in self.log.problems],
        }


class _Messages:
    """Prints the messages of one log after another; rows of CSV of several logs are kept for one table.

    style  ``text``, ``ndjson``, ``csv``, or ``json`` for one object per log
    """

    def __init__(
        self,
        logs: inputs.Logs,
        selection: Selection,
        style: str,
        utc: bool,
        interpolate: bool,
        safe_csv: bool,
    ) -> None:
        self.style, self.tables = style, _LogTables(safe_csv)
        self._several, self._selection = logs.several, selection
        self._utc, self._interpolate = utc, interpolate

    def show(self, log: Log) -> int:
        """Print the messages of a log, or keep its rows; return the exit code."""
        from logreel.log.times import interval, shift_of

        selection = self._selection
        span = interval(log, selection.start, selection.end)
        shift = shift_of(log, self._utc)
        fields = inputs.chosen_fields(log, selection)
        if selection.where:
            from logreel.ops.query.where import limit

            log, kept, notes = limit(log, selection.where, fields, *span)
            fields = {topic: fields[topic] for topic in kept}
            draw.show_notes(notes)
        chosen = _Chosen(log, [log[topic] for topic in fields], fields, span, shift, [])
        shape = draw.shape()
        if self.style == "csv":
            self.tables.add(chosen, selection.count, self._utc, self._interpolate)
            if not self._several:
                self.tables.write()
        elif shape is not None:
            self._print_shaped(shape, chosen)
        else:
            self._print(chosen)
        return draw.finish(log, chosen.skipped)

    def _print(self, chosen: _Chosen) -> None:
        from logreel.log.times import time_text
        from logreel.outputs.tables.ndjson import line

        write, style, log, shift = sys.stdout.write, self.style, chosen.log, chosen.shift
        if style == "json":
            write(f'{{"path": {json.dumps(log.name)}, "messages": [')
        between = ""
        for message, data in chosen.decoded(self._selection.count):
            if style == "text":
                when = time_text(message.time, shift)
                write(draw.safe(f"{when}  {message.channel.topic}  {draw.fields_text(data)}") + "\n")
            elif style == "ndjson":
                write(line(message, data, shift, log.name if self._several else None) + "\n")
            else:
                write(between + line(message, data, shift))
                between = "," if self._several else ",\n"
        if style == "json":
            # The last members of the object.
            write(f"], {json.dumps(chosen.closing())[1:]}\n")

    def _print_shaped(self, shape: draw.AnswerShape, chosen: _Chosen) -> None:
        """Print the object of --json in the shape that is asked for; no more messages are decoded than it needs."""
        from logreel.outputs.tables.ndjson import line

        wanted = self._selection.count
        most = min((n for n in (shape.most, wanted) if n is not None), default=None)
        head = {"path": chosen.log.name}
        messages = (json.loads(line(message, data, chosen.shift)) for message, data in chosen.decoded(most))
        count = 0 if most is None else chosen.total
        count = count if wanted is None else min(count, wanted)
        if shape.brief:
            shown, size = [], 0
            for message in messages:
                shown.append(message)
                size += len(json.dumps(message))
                if size > ENOUGH:
                    break
            left = {"messages": count - len(shown)}
            draw.echo_json({**head, "messages": shown, **chosen.closing()}, self._several, left)
        else:
            shape.stream(head, "messages", messages, chosen.closing, count)


class _LogTables:
    """The rows of a channel of each log, which are written as one table."""

    def __init__(self, safe: bool) -> None:
        self._safe = safe
        self._tables: list[tuple[str, pa.Schema, Iterator[pa.RecordBatch]]] = []

    def add(self, chosen: _Chosen, count: int | None, utc: bool, interpolate: bool) -> None:
        """Add up to *count* rows of the only channel that is chosen."""
        from logreel.errors import UsageError
        from logreel.outputs.tables.csv import limited

        if len(chosen.channels) != 1:
            raise UsageError(f"csv shows one channel, not {len(chosen.channels)}: choose it with -t")
        rows = limited(chosen.channels[0], *chosen.span, utc, count, interpolate, chosen.fields)
        self._tables.append((chosen.log.name, *rows))

    def write(self, several: bool = False) -> None:
        """Write all rows to stdout; of *several* logs with the column ``log``."""
        from logreel.outputs.tables.csv import write, write_safe, write_together

        sys.stdout.flush()
        out = draw.SafeLines() if sys.stdout.isatty() else sys.stdout.buffer
        if several:
            write_together(out, self._tables, self._safe)
            return
        for _, schema, batches in self._tables:
            (write_safe if self._safe else write)(out, schema, batches)


@verb(
    examples={
        "logreel text flight.ulg --level warning": "warnings and errors of the robot",
        "logreel text flight.ulg --utc -n 20": "the first 20 lines, with wall-clock times",
    },
)
@click.option(
    "--level", metavar="LEVEL", help="Only this severity or worse: error, warning, info …, or 0 to 7."
)
@click.option("--all", "repeated", is_flag=True, help="Repeat checks that the previous report had, too.")
@options.selection()
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Only the first N lines.")
@options.utc
@options.follow
@inputs.text_output
@inputs.logs("segment", "decrypt", "definitions")
@options.answer
def text(
    logs: inputs.Logs,
    level: str | None,
    repeated: bool,
    selection: Selection,
    count: int | None,
    utc: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """Show text messages of the robot, events and failing checks included.

    With -f, and from a pipe, new lines are shown as they come, with -f --json one object per line.
    """
    from logreel.cli import following
    from logreel.errors import UsageError
    from logreel.log.times import shift_of
    from logreel.ops.inspect.text import as_dict, level_number
    from logreel.ops.inspect.text import text as look

    is_limited = bool(selection.topics or selection.exclude or selection.where)
    if follow and is_limited:
        raise UsageError("-f takes no -t, -x and --where: text comes from all channels")
    least = None if level is None else level_number(level)
    if not as_json and not is_limited:
        follow = follow or following.comes_slowly(logs.names, selection.start, selection.end)
    if follow:
        _refuse_brief()
        return _follow_lines(logs, least, selection, repeated, count, utc, as_json)

    def answer(log: Log) -> int:
        lines = itertools.islice(look(log, least, **options.members_of(selection), repeated=repeated), count)
        shift = shift_of(log, utc)
        if as_json:
            draw.echo_answer(log, logs.several, lines=[as_dict(line) for line in lines])
            return draw.finish(log)
        for line in lines:
            draw.echo(_line_text(line, shift))
        return draw.finish(log)

    return inputs.each_log(logs, answer, not as_json)


def _line_text(line: TextLine, shift: int | None) -> str:
    from logreel.log.times import time_text
    from logreel.ops.inspect.text import level_name

    source = f"[{line.source}] " if line.source else ""
    return f"{time_text(line.time, shift)}  {level_name(line.level):<9}  {source}{line.text}".rstrip()


def _follow_lines(
    logs: inputs.Logs,
    level: int | None,
    selection: Selection,
    repeated: bool,
    count: int | None,
    utc: bool,
    as_json: bool,
) -> int:
    """Print the text lines of a growing log as they come."""
    from logreel.cli import following
    from logreel.log.times import shift_of
    from logreel.ops.inspect.text import as_dict, follow_text

    if logs.names != ("-",):
        following.refuse_output()
    bounds = selection.start, selection.end
    with following.ending() as event, following.opened(logs, event) as log:
        name = log.name
        lines = follow_text(log, level, *bounds, repeated=repeated, poll=following.POLL, stop=event)
        first = itertools.islice(lines, count)
        if as_json:
            draw.echo_json_lines(map(as_dict, first))
        for line in () if as_json else first:
            draw.echo(_line_text(line, shift_of(log, utc)))
        following.check_interval(log, name, bounds)
        return following.finish(log, event)
