"""``logreel check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw
from logreel.errors import SEVERITIES

if TYPE_CHECKING:
    from logreel.errors import Severity
    from logreel.ops.check import Checked


@click.command()
@click.argument("files", metavar="FILE…", nargs=-1, required=True)
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warn",
    show_default=True,
    help="The least severity that gives exit code 4.",
)
@common.as_json
def check(files: tuple[str, ...], fail_on: Severity, as_json: bool) -> int:
    """Tell whether a log is sound: damage, checksums, index against content.

    With several files --json gives a list of objects. A file that cannot be opened does not stop the others.
    """
    from logreel.cli.run import FOUND, report
    from logreel.errors import LogError
    from logreel.ops.check import check as look

    found, code = [], 0
    for file in files:
        try:
            found.append(look(file))
        except (LogError, OSError) as error:
            failed = report(error)
            code = code or failed
            continue
        if not as_json:
            show(found[-1])
    if as_json and (found or len(files) > 1):
        draw.echo_json(found[0].as_dict() if len(files) == 1 else [one.as_dict() for one in found])
    return code or (FOUND if any(one.worse(fail_on) for one in found) else 0)


def show(one: Checked) -> None:
    """Print what was found in one log, a line for each finding."""
    if not one.findings:
        draw.echo(f"{one.path}: sound")
    for finding in one.findings:
        place = "" if finding.offset is None else f" (at byte {finding.offset})"
        topic = "" if finding.topic is None else f"{finding.topic}: "
        draw.echo(f"{one.path}: {finding.severity}: {finding.code}: {topic}{finding.text}{place}")
