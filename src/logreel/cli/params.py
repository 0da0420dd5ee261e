"""``logreel params``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.scan import Parameter


@click.command()
@common.file
@click.option("--changed", is_flag=True, help="Only parameters that changed during the log.")
@click.option(
    "--defaults", is_flag=True, help="Only parameters that differ from a default, with their defaults."
)
@common.utc
@paths.text_output
@common.segment
@common.msgdef
@common.as_json
def params(
    file: paths.Given,
    changed: bool,
    defaults: bool,
    utc: bool,
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Show parameters of the robot and their changes."""
    from logreel.log.times import shift_of
    from logreel.ops.inspect.params import as_dict
    from logreel.ops.inspect.params import params as look
    from logreel.registry.open import open_log

    with open_log(file, definitions=msgdef, segment=segment) as log:
        shift = shift_of(log, utc)
        found = look(log, changed=changed, defaults=defaults)
        if as_json:
            draw.echo_answer(log, parameters=[as_dict(p) for p in found])
        elif found:
            show(found, defaults, shift)
        else:
            draw.say("no such parameters in this log" if changed or defaults else "no parameters in this log")
        return draw.finish(log)


def show(found: list[Parameter], defaults: bool, shift: int | None) -> None:
    """Print parameters for people."""
    from logreel.log.times import time_text

    rows = []
    for p in found:
        changes = ", ".join(f"{draw.value_text(c.value)} at {time_text(c.time, shift)}" for c in p.changes)
        known = ", ".join(f"{kind} {draw.value_text(value)}" for kind, value in p.defaults.items())
        rows.append((p.name, draw.value_text(p.value), *([known] if defaults else []), changes))
    head = ("parameter", "value", *(["default"] if defaults else []), "changes")
    draw.table(head, rows, right=(1,))
