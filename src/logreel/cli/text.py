"""``logreel text``."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@click.command()
@common.file
@click.option(
    "--level", metavar="LEVEL", help="Only this severity or worse: error, warning, info …, or 0 to 7."
)
@common.start
@common.end
@click.option("-n", "--count", type=click.IntRange(min=0), metavar="N", help="Only the first N lines.")
@common.utc
@common.segment
@common.msgdef
@paths.text_output
@common.as_json
def text(
    file: paths.Given,
    segment: int | None,
    msgdef: Definitions,
    level: str | None,
    start: str | None,
    end: str | None,
    count: int | None,
    utc: bool,
    as_json: bool,
) -> int:
    """Show text messages of the robot, events included."""
    from logreel.log.times import interval, shift_of, time_text
    from logreel.ops.inspect.text import as_dict, level_name, level_number
    from logreel.ops.inspect.text import text as look
    from logreel.registry.open import open_log

    with open_log(file, definitions=msgdef, segment=segment) as log:
        least = None if level is None else level_number(level)
        lines = itertools.islice(look(log, least, *interval(log, start, end)), count)
        shift = shift_of(log, utc)
        if as_json:
            draw.echo_answer(log, lines=[as_dict(line) for line in lines])
            return draw.finish(log)
        for line in lines:
            source = f"[{line.source}] " if line.source else ""
            when = time_text(line.time, shift)
            draw.echo(f"{when}  {level_name(line.level):<9}  {source}{line.text}".rstrip())
        return draw.finish(log)
