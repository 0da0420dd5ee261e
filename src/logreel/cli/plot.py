"""``logreel plot``."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions


@verb(
    examples={
        "logreel plot flight.ulg battery_status.voltage_v": "a chart in the terminal",
        "logreel plot flight.ulg 'vehicle_attitude.q[0]' -o attitude.html": "a page with the chart",
    },
)
@click.argument("file", metavar="FILE", type=arguments.FILE)
@click.argument("fields", metavar="TOPIC.FIELD…", nargs=-1, required=True, type=arguments.TOPIC_OR_FIELD)
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
    help="Write a picture (.png .svg .pdf) or a page that works offline (.html).",
)
@click.option("--format", "form", metavar="NAME", help="Kind of OUT for -o -: png svg pdf html.")
@click.option("--force", is_flag=True, help="Replace an existing OUT.")
def plot(
    file: str,
    fields: tuple[str, ...],
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

    Each TOPIC.FIELD is a panel; TOPIC:FIELD,FIELD puts several curves into one, and a TOPIC all its numbers.
    """
    from logreel.outputs.plot import plot as make
    from logreel.registry.open import open_log

    with open_log(file, definitions=msgdef, ros_axes=ros_axes, segment=segment, decrypt=decrypt) as log:
        paths.note_decrypted(log)
        if out is not None:
            paths.check_form(form, out)
        found = make(log, *fields, start=start, end=end, utc=utc)
        if out is None:
            columns, _ = shutil.get_terminal_size((100, 0))
            # Names from the log are escaped in the text; other control characters are colours.
            text = found.text(width or columns, height or 0, color=draw.has_colors())
            sys.stdout.write(text + "\n")
        else:
            suffix = f".{form or 'png'}" if out == paths.STDOUT else ""
            found.save(paths.destination(out, suffix, False), format=suffix or None, force=force)
            if out != paths.STDOUT:
                draw.say(f"wrote {out}")
        return draw.finish(log)
