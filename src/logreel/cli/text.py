"""``logreel text``."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw, following
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.log.scan import TextLine


@verb(
    examples={
        "logreel text flight.ulg --level warning": "warnings and errors of the robot",
        "logreel text flight.ulg --utc -n 20": "the first 20 lines, with wall-clock times",
    },
)
@common.logs
@click.option(
    "--level", metavar="LEVEL", help="Only this severity or worse: error, warning, info …, or 0 to 7."
)
@click.option("--all", "repeated", is_flag=True, help="Also checks that were in the report before.")
@common.selection
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Only the first N lines.")
@common.utc
@common.segment
@common.decrypt
@common.msgdef
@following.follow
@paths.text_output
@common.as_json
def text(
    logs: paths.Logs,
    segment: int | None,
    msgdef: Definitions,
    level: str | None,
    repeated: bool,
    selection: dict[str, Any],
    count: int | None,
    utc: bool,
    follow: bool,
    as_json: bool,
) -> int:
    """Show text messages of the robot, events and failing checks included.

    With -f, and from a pipe, new lines are shown as they come, with -f --json one object per line.
    """
    from logreel.errors import UsageError
    from logreel.log.times import shift_of
    from logreel.ops.inspect.text import as_dict, level_number
    from logreel.ops.inspect.text import text as look

    start, end = selection["start"], selection["end"]
    is_limited = any(selection[name] for name in ("topics", "exclude", "where"))
    if follow and is_limited:
        raise UsageError("-f takes no -t, -x and --where: text comes from all channels")
    if follow or (not as_json and not is_limited and following.comes_slowly(logs.names, start, end)):
        if logs.names != ("-",):
            following.refuse_output()
        with following.ending() as event, following.opened(logs.names, event, msgdef, segment=segment) as log:
            return _follow(log, event, level, (start, end), count, utc, as_json, repeated)
    least = None if level is None else level_number(level)

    def answer(log: Log) -> int:
        lines = itertools.islice(look(log, least, **selection, repeated=repeated), count)
        shift = shift_of(log, utc)
        if as_json:
            draw.echo_answer(log, logs.several, lines=[as_dict(line) for line in lines])
            return draw.finish(log)
        for line in lines:
            draw.echo(_line_text(line, shift))
        return draw.finish(log)

    return common.each_log(logs, answer, not as_json, definitions=msgdef, segment=segment)


def _line_text(line: TextLine, shift: int | None) -> str:
    from logreel.log.times import time_text
    from logreel.ops.inspect.text import level_name

    source = f"[{line.source}] " if line.source else ""
    return f"{time_text(line.time, shift)}  {level_name(line.level):<9}  {source}{line.text}".rstrip()


def _follow(
    log: Log,
    event: following.Ending,
    level: str | None,
    bounds: tuple[str | None, str | None],
    count: int | None,
    utc: bool,
    as_json: bool,
    repeated: bool,
) -> int:
    from logreel.log.times import shift_of
    from logreel.ops.inspect.text import as_dict, follow_text, level_number

    least = None if level is None else level_number(level)
    name = log.name
    lines = follow_text(log, least, *bounds, repeated=repeated, poll=following.POLL, stop=event)
    for line in itertools.islice(lines, count):
        if as_json:
            draw.echo_json(as_dict(line), line=True)
        else:
            draw.echo(_line_text(line, shift_of(log, utc)))
    following.check_interval(log, name, bounds)
    return following.finish(log, event)
