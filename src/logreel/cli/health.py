"""``logreel health``."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb
from logreel.errors import SEVERITIES

if TYPE_CHECKING:
    from logreel.errors import Severity
    from logreel.io.source import Definitions
    from logreel.lenses.detection import Detection
    from logreel.log.log import Log
    from logreel.ops.health.health import Health

#: Seconds before and after a detection that its slice contains.
AROUND = 2
SECOND = 10**9


@verb(
    examples={
        "logreel health drive.bag": "faults of the robot, with the interval of each",
        "logreel health logs --fail-on warn": "exit code 4 if any log in a folder has a warning or an error",
    },
)
@common.files
@click.option(
    "--detector",
    "detectors",
    multiple=True,
    metavar="NAME",
    help="Run only this detector, or those that match a pattern; may be repeated.",
)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="error",
    show_default=True,
    help="Lowest severity that gives exit code 4.",
)
@common.as_one
@common.segment
@common.decrypt
@common.msgdef
@paths.text_output
@common.as_json
def health(
    files: tuple[str, ...],
    detectors: tuple[str, ...],
    fail_on: Severity,
    as_one: bool,
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Look for faults of the robot: silent and stuck sensors, clocks, losses, vibration, failsafes …

    Each finding names its interval, what was measured, the bound, and the line that cuts it out of the log. At the end
    stands what was looked at without a finding, and what could not be assessed.
    """
    from logreel.cli.exits import FOUND
    from logreel.ops.health.health import health as look

    def one(log: Log) -> Health:
        return look(log, detectors or None, segment=segment)

    found, code, lost = common.answer_each(paths.given_logs(files, as_one), one, show, as_json, msgdef)
    return code or (FOUND if any(one.worse(fail_on) for one in found) else lost)


def show(found: Health) -> None:
    """Print the result for people."""
    draw.echo_head(found.path)
    outputs: Counter[str] = Counter()
    for one in found.detections:
        outputs[one.detector] += 1
        draw.echo(f"  {one.severity:<6}{one.detector}: {one.text}")
        if one.threshold:
            source = f" ({one.source})" if one.source not in ("", "logreel") else ""
            draw.echo(f"        bound: {one.threshold}{source}")
        draw.echo(f"        {slice_line(found, one, outputs[one.detector])}")
    if not found.detections:
        draw.echo("  nothing found")
    for name, text in found.clean:
        draw.echo(f"  ok    {name}: {text}")
    for name, text in found.not_assessed:
        draw.echo(f"  -     {name}: not assessed, {text}")


def slice_line(found: Health, one: Detection, number: int = 1) -> str:
    """Return the command that cuts the interval of a detection out of the log, with some seconds around it.

    number  counts the detections of one detector, so that each has an output of its own
    """
    zero, last = found.start_ns or 0, found.end_ns or 0
    # Detections may lie before or behind the log, whose ends leave out single messages with other times.
    start, end = (min(max(time, zero), last) for time in (one.start, one.end))
    begin = max((start - zero) / SECOND - AROUND, 0)
    stem, suffix = os.path.splitext(os.path.basename(found.path))
    out = f"{stem}_{one.detector}{f'_{number}' if number > 1 else ''}{suffix}"
    segment = "" if found.segment is None else f" --segment {found.segment}"
    interval = f"-S +{begin:.1f}s -E +{(end - zero) / SECOND + AROUND:.1f}s"
    return f"logreel slice {shlex.quote(found.path)}{segment} {interval} -o {shlex.quote(out)}"
