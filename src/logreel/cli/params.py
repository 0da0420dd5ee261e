"""``logreel params``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.scan import Parameter


@verb(
    examples={
        "logreel params flight.ulg --changed": "parameters that changed during the log",
        "logreel params flight.ulg --format qgc -o vehicle.params": "a parameter file for QGroundControl",
    },
)
@common.file
@click.option("--changed", is_flag=True, help="Only parameters that changed during the log.")
@click.option(
    "--defaults", is_flag=True, help="Only parameters that differ from a default, with their defaults."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "csv", "octave", "qgc")),
    default="text",
    metavar="NAME",
    help="text, csv, octave (text of GNU Octave) or qgc (parameter file of QGroundControl).",
)
@click.option("--only-initial", "initial", is_flag=True, help="With csv, octave: leave later values out.")
@click.option("--timestamps", is_flag=True, help="With csv: times of the values in µs, in a second line.")
@click.option(
    "--separator",
    "delimiter",
    metavar="CHARACTER",
    default=",",
    help="With csv: between the values; default a comma.",
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
    form: str,
    initial: bool,
    timestamps: bool,
    delimiter: str,
    utc: bool,
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Show parameters of the robot and their changes."""
    from logreel.errors import UsageError
    from logreel.log.times import shift_of
    from logreel.ops.inspect.params import as_dict
    from logreel.ops.inspect.params import params as look
    from logreel.registry.open import open_log

    if form != "text" and as_json:
        raise UsageError("--format and --json are two notations: give one of them")
    if form == "text" and (initial or timestamps):
        raise UsageError("--only-initial and --timestamps belong to --format csv")
    skipped: list[str] = []
    with open_log(file, definitions=msgdef, segment=segment) as log:
        shift = shift_of(log, utc)
        found = look(log, changed=changed, defaults=defaults)
        if as_json:
            draw.echo_answer(log, parameters=[as_dict(p) for p in found])
        elif found and form != "text":
            from logreel.ops.inspect.params_text import params_text

            text = params_text(
                found, form, skipped, delimiter=delimiter, initial=initial, timestamps=timestamps
            )
            click.echo(text, nl=False)
        elif found:
            show(found, defaults, shift)
        else:
            draw.say("no such parameters in this log" if changed or defaults else "no parameters in this log")
        return draw.finish(log, skipped)


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
