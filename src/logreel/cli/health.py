"""``logreel health``."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb
from logreel.errors import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.errors import Severity
    from logreel.io.source import Definitions
    from logreel.lenses.facts import Detection
    from logreel.log.log import Log
    from logreel.ops.health.health import Health

#: Seconds before and after a detection that its slice contains.
AROUND = 2
#: Findings of one detector and bound that are printed.
LISTED = 10
SECOND = 10**9


@verb(
    examples={
        "logreel health drive.bag": "faults of the robot, with the interval of each",
        "logreel health logs --fail-on warn": "exit code 4 if any log in a folder has a warning or an error",
    },
)
@common.logs
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
@common.selection
@common.segment
@common.decrypt
@common.msgdef
@paths.text_output
@common.as_json
def health(
    logs: paths.Logs,
    detectors: tuple[str, ...],
    fail_on: Severity,
    selection: dict[str, Any],
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Look for faults of the robot: silent and stuck sensors, clocks, losses, vibration, failsafes …

    Findings of a detector stand together, worst first, each with its interval and what was measured, then the bound and
    the line that cuts the worst out of the log. At the end stands what was looked at without a finding, and what could
    not be assessed. Several logs end with a table. A detector that fails costs its own result only; the exit code is 3.
    """
    from logreel.cli.exits import FOUND, LOST
    from logreel.ops.health.health import health as look

    def assessed(log: Log) -> Health:
        return look(log, detectors or None, **selection, segment=segment)

    results, code, lost = common.answer_each(logs, assessed, show, as_json, msgdef)
    if len(results) > 1 and not as_json:
        show_table(results)
    for result in results:
        for name, error in result.failed:
            draw.say(f"{result.path}: the detector {name} failed: {error}")
    if any(result.worse(fail_on) for result in results):
        return code or FOUND
    return code or (LOST if any(result.failed for result in results) else lost)


def show(result: Health) -> None:
    """Print the result for people: findings of one detector together, worst first, each bound and command once."""
    draw.echo_head(result.path)
    groups: dict[str, dict[str, list[Detection]]] = {}
    for detection in result.detections:
        source = f" ({detection.source})" if detection.source not in ("", "logreel") else ""
        bound = f"{detection.threshold}{source}"
        groups.setdefault(detection.detector, {}).setdefault(bound, []).append(detection)
    for detector, by_bound in groups.items():
        draw.echo(f"  {detector}")
        for bound, group in by_bound.items():
            for detection in group[:LISTED]:
                draw.echo(f"    {detection.severity:<7}{detection.text}")
            if len(group) > LISTED:
                draw.echo(f"    and {len(group) - LISTED} more; --json lists all")
            if bound:
                draw.echo(f"    bound  {bound}")
        # Of the worst one: an interval that holds all of them may be the whole log.
        draw.echo(f"           {slice_line(result, next(iter(by_bound.values()))[0])}")
    if not result.detections:
        draw.echo("  nothing found")
    for name, text in result.clean:
        draw.echo(f"  ok    {name}: {text}")
    for name, text in result.not_assessed:
        draw.echo(f"  -     {name}: not assessed, {text}")
    for name, text in result.failed:
        draw.echo(f"  !     {name}: failed and found nothing, {text}")


def show_table(logs: Sequence[Health]) -> None:
    """Print one line for each of several logs: findings by severity, and by detector."""
    rows = []
    for log in logs:
        counts: Counter[str] = Counter(detection.severity for detection in log.detections)
        detectors = Counter(detection.detector for detection in log.detections)
        names = [f"{name} {n}" if n > 1 else name for name, n in detectors.items()]
        numbers = [str(counts[severity] or "") for severity in SEVERITIES]
        rows.append((log.path, *numbers, str(len(log.failed) or ""), ", ".join(names) or "nothing found"))
    draw.echo()
    used = [i for i in range(6) if i in (0, 5) or any(row[i] for row in rows)]
    head = ("log", *SEVERITIES, "failed", "findings")
    draw.table(
        [head[i] for i in used], [[row[i] for i in used] for row in rows], right=range(1, len(used) - 1)
    )


def slice_line(result: Health, detection: Detection) -> str:
    """Return the command that cuts the interval of a detection out of the log, with some seconds around it."""
    zero, last = result.start_ns or 0, result.end_ns or 0
    # Detections may lie before or behind the log, whose ends leave out single messages with other times.
    start, end = (min(max(time, zero), last) for time in (detection.start, detection.end))
    begin = max((start - zero) / SECOND - AROUND, 0)
    stem, suffix = os.path.splitext(os.path.basename(result.path))
    out = f"{stem}_{detection.detector}{suffix}"
    segment = "" if result.segment is None else f" --segment {result.segment}"
    interval = f"-S +{begin:.1f}s -E +{(end - zero) / SECOND + AROUND:.1f}s"
    return f"logreel slice {shlex.quote(result.path)}{segment} {interval} -o {shlex.quote(out)}"
