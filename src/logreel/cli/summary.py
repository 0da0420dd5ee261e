"""``logreel summary``."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.ops.inspect.summary import Summary

#: Least and greatest width of the text, and the indentation of sections.
NARROW, WIDE, INDENT = 40, 120, "  "


@verb(
    examples={
        "logreel summary flight.ulg": "what happened: modes, battery, position, faults",
        "logreel summary logs --json": "the same for each log in a folder, a JSON object per line",
    },
)
@common.logs
@common.selection
@common.segment
@common.decrypt
@common.msgdef
@paths.text_output
@common.as_json
def summary(
    logs: paths.Logs, selection: dict[str, Any], segment: int | None, msgdef: Definitions, as_json: bool
) -> int:
    """Show what happened in a recording: vehicle, flight, modes, battery, position, faults, errors.

    What deserves attention is marked with ! (a warning) or !! (an error). Times are seconds after the start of the log,
    as -S and -E of other verbs take them.
    """
    from logreel.ops.inspect.summary import summary as look

    def one(log: Log) -> Summary:
        return look(log, **selection, segment=segment)

    _, code, lost = common.answer_each(logs, one, show, as_json, msgdef)
    return code or lost


def show(found: Summary) -> None:
    """Print a summary for people."""
    width = min(max(shutil.get_terminal_size((100, 0)).columns, NARROW), WIDE)
    draw.echo_head(found.path)
    for section in found:
        draw.echo()
        draw.echo_head(section.title)
        label = min(max(len(fact.label) for fact in section), width // 3)
        for fact in section:
            _show(fact.label, fact.text, fact.level, label, width)


def _show(label: str, text: str, level: int | None, column: int, width: int) -> None:
    mark = "" if level is None else "!" if level >= 4 else "!!"
    head = f"{mark:<2}{draw.safe(label).ljust(column)}  "
    if len(head) > column + 4:
        draw.echo(head.rstrip())
        head = " " * (column + 4)
    lines = textwrap.wrap(draw.safe(text), width - len(head), break_on_hyphens=False) or [""]
    for n, line in enumerate(lines):
        draw.echo((head if n == 0 else " " * len(head)) + line)
