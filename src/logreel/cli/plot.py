"""``logreel plot``."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.io.source import Definitions
    from logreel.log.log import Log


@verb(
    examples={
        "logreel plot flight.ulg battery_status.voltage_v": "a chart in the terminal",
        "logreel plot flight.ulg 'vehicle_attitude.q[0]' -o attitude.html": "a page with the chart",
    },
)
@common.logs_and_words("FILE… TOPIC.FIELD…", arguments.FILE_OR_FIELD)
@common.start
@common.end
@common.utc
@common.segment
@common.ros_axes
@common.decrypt
@common.msgdef
@click.option(
    "--width", type=click.IntRange(30, 1000), metavar="N", help="Columns of the chart in a terminal."
)
@click.option("--height", type=click.IntRange(6, 1000), metavar="N", help="Lines of the chart in a terminal.")
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    type=arguments.FILE,
    help="Write a picture (.png .svg .pdf) or a page that works offline (.html); of several logs a folder, OUT/, "
    "with one for each.",
)
@click.option(
    "--format", "form", metavar="NAME", help="Kind of OUT for -o - and a folder OUT/: png svg pdf html."
)
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
def plot(
    logs: paths.Logs,
    words: tuple[str, ...],
    start: str | None,
    end: str | None,
    utc: bool,
    segment: int | None,
    ros_axes: bool,
    decrypt: bool,
    msgdef: Definitions,
    width: int | None,
    height: int | None,
    out: str | None,
    form: str | None,
    force: bool,
) -> int:
    """Draw fields over time: in the terminal, or as a picture or page with -o.

    Each TOPIC.FIELD is a panel; TOPIC:FIELD,FIELD puts several curves into one, and a TOPIC all its numbers. Arguments
    that exist as files or folders, or end like the name of a log, are logs; each has panels of its own.
    """
    from logreel.errors import UsageError
    from logreel.outputs.page.plot import plot as make

    if not words:
        raise UsageError("say what to plot: topic.field")
    if out is not None and not logs.several:
        paths.check_form(form, out)
    suffix = f".{form or 'png'}" if out == paths.STDOUT or logs.several else ""

    def show(log: Log) -> int:
        found = make(log, *words, start=start, end=end, utc=utc)
        columns, _ = shutil.get_terminal_size((100, 0))
        # Names from the log are escaped in the text; other control characters are colours.
        text = found.text(width or columns, height or 0, color=draw.has_colors())
        sys.stdout.write(text + "\n")
        return draw.finish(log)

    def write(log: Log, path: Destination, name: str) -> int:
        found = make(log, *words, start=start, end=end, utc=utc)
        found.save(path, format=suffix or None, force=force)
        if out != paths.STDOUT:
            draw.say(f"wrote {name}")
        return draw.finish(log)

    options: dict[str, Any] = {
        "definitions": msgdef,
        "ros_axes": ros_axes,
        "segment": segment,
        "decrypt": decrypt,
    }
    if out is None:
        return common.each_log(logs, show, True, **options)
    return common.write_each(logs, out, write, suffix, False, **options)
