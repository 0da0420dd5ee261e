"""``logreel report``."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        "logreel report flight.ulg -o flight.html": "one page about the log, which works offline",
        "logreel report flight.ulg -S +10s -E +30s -o part.html": "the same for twenty seconds of it",
    },
)
@common.logs
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    required=True,
    type=arguments.FILE,
    help="The page to write; - for stdout; of several logs a folder, OUT/, with a page for each.",
)
@common.start
@common.end
@common.utc
@common.segment
@common.ros_axes
@common.decrypt
@common.msgdef
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
def report(
    logs: paths.Logs,
    out: str,
    start: str | None,
    end: str | None,
    utc: bool,
    segment: int | None,
    ros_axes: bool,
    decrypt: bool,
    msgdef: Definitions,
    force: bool,
) -> int:
    """Write a page about each log: findings, track, charts, text, parameters and topics; it works offline.

    What the charts show depends on the format and on what the topics mean.
    """
    from logreel.outputs.page.report import report as make

    def write(log: Log, path: Destination, name: str) -> int:
        with draw.progress("report") as tick:
            found = make(log, start=start, end=end, utc=utc, progress=tick)
        found.save(path, force=force)
        if out != paths.STDOUT:
            size = draw.size_text(len(found.html.encode()))
            draw.say(f"wrote {name} ({size}, {len(found.charts)} charts): open it in a browser")
        return draw.finish(log)

    options = {"definitions": msgdef, "ros_axes": ros_axes, "segment": segment, "decrypt": decrypt}
    return common.write_each(logs, out, write, ".html", False, **options)
