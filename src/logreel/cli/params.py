"""``logreel params``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.io.source import Definitions
    from logreel.log.log import Log
    from logreel.log.scan import Change, Parameter

#: Changes of one parameter that are listed; more are counted.
LISTED = 6


@verb(
    examples={
        "logreel params flight.ulg 'BAT*' MPC_XY_CRUISE": "the parameters that a pattern and a name select",
        "logreel params flight.ulg --changed": "those that changed during the log, with times",
        "logreel params flight.ulg --format params -o vehicle.params": "a parameter file for QGroundControl",
    },
)
@common.logs_and_words("FILE… [PATTERN…]", arguments.FILE_OR_PARAMETER)
@click.option("--changed", is_flag=True, help="Only parameters whose value changed during the log.")
@click.option("--defaults", is_flag=True, help="Only parameters that differ from a default.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "csv", "params", "qgc", "yaml", "history", "octave")),
    default="text",
    metavar="NAME",
    help="text; csv: first and last value, defaults, number of changes; params or qgc: parameter file of "
    "QGroundControl; yaml: names and values; history: all values in their order, as CSV; octave: the same for GNU "
    "Octave.",
)
@click.option(
    "--final", is_flag=True, help="With params, qgc, yaml: the last values instead of the first ones."
)
@click.option("--only-initial", "initial", is_flag=True, help="With history, octave: leave later values out.")
@click.option("--timestamps", is_flag=True, help="With history: times of the values in µs, in a second line.")
@click.option(
    "--separator",
    "delimiter",
    metavar="CHARACTER",
    default=",",
    help="With csv, history: between the values; default a comma.",
)
@common.start
@common.end
@common.safe_csv
@common.utc
@paths.text_output
@common.segment
@common.decrypt
@common.msgdef
@common.as_json
def params(
    logs: paths.Logs,
    words: tuple[str, ...],
    changed: bool,
    defaults: bool,
    form: str,
    final: bool,
    initial: bool,
    timestamps: bool,
    delimiter: str,
    safe_csv: bool,
    utc: bool,
    start: str | None,
    end: str | None,
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Show parameters of the robot: first and last value, default, and changes.

    PATTERN is the name of a parameter, a shell pattern, or re: and a regular expression. Arguments that exist as files
    or folders, or end like the name of a log, are logs; all others are patterns. With -S and -E, the first value is the
    one in force at the start, and changes are those in the interval.
    """
    from logreel.errors import UsageError
    from logreel.log.times import shift_of
    from logreel.ops.inspect.params import as_dict
    from logreel.ops.inspect.params import params as look

    if form != "text" and as_json:
        raise UsageError("--format and --json are two notations: give one of them")
    if form == "text" and (final or initial or timestamps or safe_csv or delimiter != ","):
        raise UsageError(
            "--final, --only-initial, --timestamps, --separator and --safe-csv need a --format such as csv"
        )
    if form in ("params", "qgc", "yaml", "history", "octave"):
        logs.only(f"--format {form} is a file of the parameters of one log")
    tables: list[tuple[str, str]] = []

    def answer(log: Log) -> int:
        skipped: list[str] = []
        shift = shift_of(log, utc)
        found = look(log, words or None, changed=changed, defaults=defaults, start=start, end=end)
        if as_json:
            draw.echo_answer(log, logs.several, parameters=[as_dict(p) for p in found])
        elif found and form != "text":
            from logreel.ops.inspect.params import params_text, with_log

            text = params_text(
                found,
                form,
                skipped,
                delimiter=delimiter,
                initial=initial,
                final=final,
                timestamps=timestamps,
                safe_csv=safe_csv,
            )
            if logs.several:
                text = with_log(text, log.name, delimiter, safe_csv, head=not tables)
            tables.append((log.name, text))
            click.echo(text, nl=False)
        elif found:
            show(found, changed or utc, shift)
        else:
            about = f"{log.name}: " if logs.several else ""
            draw.say(f"{about}no {'such ' if log.parameters else ''}parameters in this log")
        return draw.finish(log, skipped)

    heading = form == "text" and not as_json
    return common.each_log(logs, answer, heading, definitions=msgdef, segment=segment)


def show(found: Sequence[Parameter], with_times: bool, shift: int | None) -> None:
    """Print parameters for people; columns without any value are left out.

    with_times  True: also list the changes with their times
    """
    rows = []
    for p in found:
        changes = p.real_changes
        cells = [p.name, draw.value_text(p.value), draw.value_text(p.final), _defaults_text(p)]
        cells += [str(len(changes)) if changes else "", _changes_text(changes, shift) if with_times else ""]
        rows.append(cells)
    head = ("parameter", "initial", "final", "default", "changes", "values" if with_times else "")
    used = [i for i in range(len(head)) if i < 3 or any(row[i] for row in rows)]
    right = [at for at, i in enumerate(used) if i in (1, 2, 4)]
    draw.table([head[i] for i in used], [[row[i] for i in used] for row in rows], right=right)


def _defaults_text(p: Parameter) -> str:
    """Return the defaults that the log contains; their kind is named unless they are all equal."""
    texts = {kind: draw.value_text(value) for kind, value in p.defaults.items()}
    if len(texts) > 1 and len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{value} ({kind})" for kind, value in texts.items())


def _changes_text(changes: Sequence[Change], shift: int | None) -> str:
    from logreel.log.times import time_text

    texts = [f"{draw.value_text(c.value)} at {time_text(c.time, shift)}" for c in changes[:LISTED]]
    more = [f"… {len(changes) - LISTED} more"] if len(changes) > LISTED else []
    return ", ".join([*texts, *more])
