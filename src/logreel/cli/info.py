"""``logreel info``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw, following
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.ops.inspect.info import Info

#: Limits of the output for people: metadata entries, their length, names in a list. --json is complete.
ENTRIES, LENGTH, NAMES = 12, 100, 5


@verb(
    examples={
        "logreel info flight.ulg": "format, times, channels and problems of a log",
        "logreel info logs": "one line for each log in a folder and below it",
    },
)
@common.logs
@common.selection
@click.option("--long", is_flag=True, help="Print all details of several logs, instead of one line each.")
@common.segment
@common.decrypt
@common.msgdef
@following.follow
@paths.text_output
@common.as_json
def info(
    logs: paths.Logs,
    segment: int | None,
    msgdef: Definitions,
    selection: dict[str, Any],
    long: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """Show format, times, channels, metadata and problems of logs.

    Several files get one line each; a folder means all logs in and below it. --json prints one object per file, each
    on one line. If a file cannot be opened, the others are still shown. -f shows one log again whenever it has grown,
    at most once a second: in place on a terminal, else one after another.
    """
    from logreel.errors import UsageError
    from logreel.ops.inspect.info import info as look

    topics, exclude = selection["topics"], selection["exclude"]
    if follow:
        if any(selection[name] for name in ("start", "end", "where")):
            raise UsageError("-f takes no -S, -E and --where")
        return _follow(logs.names, topics or (), exclude, segment, msgdef, as_json)
    brief = not (long or logs.as_one) and (logs.several or any(os.path.isdir(name) for name in logs.names))

    def answer(name: paths.Given) -> Info:
        with logs.open(name, definitions=msgdef) as log:
            paths.note_decrypted(log)
            return look(log, **selection, segment=segment)

    if topics is not None and logs.several:
        return _matching(logs, answer, long, as_json)
    if brief and not as_json:
        _, code = common.print_each(logs, answer, LinePrinter().show, as_json)
        return code
    _, code = common.print_each(logs, answer, show, as_json, gap=True)
    return code


def _matching(logs: paths.Logs, answer: Callable[[paths.Given], Info], long: bool, as_json: bool) -> int:
    """Print the logs that have one of the channels asked for, with these channels; return the exit code.

    The logs that have none are counted on stderr; if none has any, the error is that of the first.
    """
    from logreel.cli.exits import LOST
    from logreel.errors import TopicError

    without: list[TopicError] = []

    def look(name: paths.Given) -> Info | None:
        try:
            return answer(name)
        except TopicError as error:
            without.append(error)
            return None

    def print_one(found: Info | None) -> None:
        if found is None:
            return
        if as_json:
            draw.echo_json(found.as_dict(), line=True)
        elif long:
            show(found)
            draw.echo()
        else:
            draw.echo_head(found.path)
            _channels(found)

    results, code = common.open_each(logs, look, print_one)
    matching = sum(found is not None for found in results)
    if without and not matching:
        raise without[0]
    if without:
        draw.say(f"{len(without)} of {len(results)} logs have no such channel")
    return LOST if code and matching else code


#: Seconds between two summaries of a growing log.
PAUSE = 1.0


def _follow(
    files: tuple[str, ...],
    topics: tuple[str, ...],
    exclude: tuple[str, ...],
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Show the summary of one growing log again and again."""
    from logreel.errors import TopicError, UsageError
    from logreel.ops.inspect.info import info as look

    if len(files) != 1:
        raise UsageError(f"-f shows one log, not {len(files)}")
    following.refuse_output()
    with following.ending() as event, following.opened(files, event, msgdef, segment=segment) as log:
        for n, _ in enumerate(log.changes(poll=PAUSE, stop=event)):
            try:
                summary = look(log, topics=topics or None, exclude=exclude)
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
            show(summary)
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

    def show(self, one: Info) -> None:
        """Print one Info as one line."""
        from logreel.log.times import duration_text, utc_text

        if not self._has_head:
            draw.echo_head(self._line([name for name, _ in self._columns], "log"))
            self._has_head = True
        start, duration = "", ""
        if one.start_ns is not None and one.end_ns is not None:
            shift = 0 if one.epoch == "unix" else one.utc_offset_ns
            start = "" if shift is None else utc_text(one.start_ns + shift, 0)
            duration = duration_text(one.end_ns - one.start_ns)
        size = draw.size_text(one.size)
        cells = [one.format, start, duration, str(one.messages), size, str(len(one.problems) or "")]
        draw.echo(self._line(cells, one.path))

    def _line(self, cells: list[str], name: str) -> str:
        padded = [
            cell.rjust(-width) if width < 0 else cell.ljust(width)
            for cell, (_, width) in zip(cells, self._columns, strict=True)
        ]
        return "  ".join([*padded, name])


def show(one: Info) -> None:
    """Print one Info for people."""
    from logreel.registry.registry import format_named

    fmt = format_named(one.format)
    live = [ch for ch in one.channels if ch.messages and not ch.topic.startswith("~")]
    draw.echo(one.path)
    rows = [
        ("format", f"{fmt.title if fmt else one.format}, version {one.version}"),
        ("size", draw.size_text(one.size)),
        *_times(one),
        ("messages", f"{one.messages} in {len(live)} channel{'s' * (len(live) != 1)}"),
        *([("logs in it", _segments(one))] if len(one.segments) > 1 else []),
        ("problems", _problems(one)),
    ]
    draw.table(("", ""), rows, indent=2)
    _channels(one)
    empty = [ch.topic for ch in one.channels if not ch.messages]
    if empty:
        more = f" and {len(empty) - NAMES} more" if len(empty) > NAMES else ""
        draw.echo(f"  without messages: {', '.join(empty[:NAMES])}{more}")
    _metadata(one.metadata)
    if one.attachments:
        listed = ", ".join(a.name for a in one.attachments[:NAMES])
        more = f" and {len(one.attachments) - NAMES} more" if len(one.attachments) > NAMES else ""
        draw.echo(f"  attachments: {listed}{more}")


def _times(one: Info) -> list[tuple[str, str]]:
    from logreel.log.times import duration_text, seconds_text, utc_text

    if one.start_ns is None or one.end_ns is None:
        return [("start", "unknown: no messages with a time")]
    clock = {"boot": " s after boot", "start": " s after the start"}.get(one.epoch)
    shift = 0 if one.epoch == "unix" else one.utc_offset_ns
    start = seconds_text(one.start_ns) + clock if clock else ""
    if shift is not None:
        start = utc_text(one.start_ns + shift, 3) + (f"  ({start})" if start else "")
    return [
        ("start", start or f"{one.start_ns} ns"),
        *(("", text) for text in one.utc_notes),
        ("duration", duration_text(one.end_ns - one.start_ns)),
    ]


def _segments(one: Info) -> str:
    """Return the number, messages and duration of each log in the file as text."""
    from logreel.log.times import duration_text

    each = [
        f"{s.number}: {s.messages} messages, {duration_text(None if s.end is None else s.end - (s.start or 0))}"
        for s in one.segments
    ]
    return f"{'; '.join(each)} (--segment, split --by-segment)"


def _problems(one: Info) -> str:
    if not one.problems:
        return "none"
    from logreel.log.part_checks import BETWEEN_FILES

    lost = sum(problem.size for problem in one.problems if problem.lost)
    first = one.problems[0]
    count = len(one.problems)
    head = f"{count} problem{'s' * (count != 1)}, {draw.size_text(lost)} lost"
    place = "" if first.code in BETWEEN_FILES else f" (at byte {first.offset})"
    return f"{head}; {'first: ' if count > 1 else ''}{first.text}{place}"


def _channels(one: Info) -> None:
    rows = [ch for ch in one.channels if ch.messages]
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


def _metadata(metadata: Mapping[str, Any]) -> None:
    short = {k: v for k, v in metadata.items() if isinstance(v, str | int | float) and len(str(v)) <= LENGTH}
    shown = list(short.items())[:ENTRIES]
    if shown:
        draw.table(("", ""), [(key, str(value)) for key, value in shown], indent=2)
    if len(metadata) > len(shown):
        draw.echo(f"  … {len(metadata) - len(shown)} more in --json")
