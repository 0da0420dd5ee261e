"""``logreel geotag``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log


@verb(
    examples={
        "logreel geotag camera.ulg --pictures pictures -o tagged": "copies of pictures with positions",
        "logreel geotag camera.ulg --pictures pictures -o again --by order": "match pictures and triggers by order",
    },
)
@common.logs
@click.option(
    "--pictures",
    metavar="DIR",
    required=True,
    type=arguments.FOLDER,
    help="Folder of pictures, .jpg or .jpeg.",
)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="DIR",
    required=True,
    type=arguments.FOLDER,
    help="Folder for the tagged copies.",
)
@click.option(
    "--positions",
    "topic",
    metavar="TOPIC",
    type=arguments.TOPIC,
    help="Channel with positions; default that of a camera.",
)
@click.option("--by", type=click.Choice(("order", "time")), help="Match by order or by EXIF time.")
@click.option(
    "--offset", metavar="TIME", default="0s", help="Add this to the times of the pictures to get UTC."
)
@click.option("--tolerance", metavar="TIME", default="1s", help="Greatest time between picture and position.")
@common.force
@common.segment
@common.decrypt
@common.msgdef
@common.as_json
def geotag(
    logs: paths.Logs,
    pictures: str,
    out: str,
    topic: str | None,
    by: str | None,
    offset: str,
    tolerance: str,
    force: bool,
    segment: int | None,
    decrypt: bool,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Write positions of a log into the EXIF tags of pictures.

    The pictures themselves are not changed: copies are written.
    """
    from logreel.outputs.media.geotag import geotag as write

    logs.only("pictures get the positions of one log")

    def answer(log: Log) -> int:
        done = write(log, pictures, out, topic=topic, by=by, offset=offset, tolerance=tolerance, force=force)
        if as_json:
            draw.echo_answer(log, **done.as_dict())
        else:
            many = len(done.pictures)
            draw.say(f"wrote {many} picture{'s' * (many != 1)} with positions of {done.topic!r} to {out}")
        return draw.finish(log, done.skipped)

    return common.each_log(logs, answer, False, definitions=msgdef, segment=segment, decrypt=decrypt)
