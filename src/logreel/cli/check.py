"""``logreel check``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import rich_click as click

from logreel.cli import arguments, common, draw
from logreel.cli import files as paths
from logreel.cli.help import verb
from logreel.errors import SEVERITIES

if TYPE_CHECKING:
    from logreel.errors import Finding, Severity
    from logreel.io.source import Definitions
    from logreel.ops.inspect.check import Checked

#: Number of findings with the same code that are printed; more are counted.
LINES = 20


@verb(
    examples={
        "logreel check flight.ulg": "damage and irregularities of a log",
        "logreel check logs --fail-on error": "exit code 4 only for errors in the logs of a folder",
    },
)
@common.logs
@click.option(
    "--fail-on",
    type=click.Choice(SEVERITIES),
    default="warn",
    show_default=True,
    help="Lowest severity that gives exit code 4.",
)
@click.option(
    "--contract", metavar="FILE", type=arguments.FILE, help="TOML file with further requirements on the log."
)
@click.option(
    "--types",
    "with_types",
    is_flag=True,
    help="Also compare types with known definitions: what would have to be migrated.",
)
@common.rules
@common.wanted
@common.selection
@common.segment
@paths.text_output
@common.decrypt
@common.msgdef
@common.as_json
def check(
    logs: paths.Logs,
    fail_on: Severity,
    contract: str | None,
    with_types: bool,
    rules: tuple[str, ...],
    wanted: tuple[str, ...],
    selection: dict[str, Any],
    segment: int | None,
    msgdef: Definitions,
    as_json: bool,
) -> int:
    """Check logs for defects: damage, checksums, index, definitions, clocks, gaps, duplicates.

    -t, -x, -S, -E and --where limit what is checked of messages: order, gaps, duplicates, dropouts, types, contract.
    Damage, checksums, index, payloads and definitions are always those of the whole file.

    --types, --rules and --to name what migrate would do. --json prints one object per log, each on one line. If a log
    cannot be opened, the others are still checked.
    """
    from logreel.cli.exits import FOUND
    from logreel.ops.inspect.check import check as look
    from logreel.ops.inspect.contract import read_contract

    required = None if contract is None else read_contract(contract)

    def answer(name: paths.Given) -> Checked:
        with logs.open(name, definitions=msgdef, segment=segment) as log:
            paths.note_decrypted(log)
            return look(log, **selection, contract=required, types=with_types, rules=rules, to=wanted)

    found, code = common.print_each(logs, answer, show, as_json)
    return code or (FOUND if any(one.worse(fail_on) for one in found) else 0)


def show(one: Checked) -> None:
    """Print the findings of one log, one per line; at most LINES for each code."""
    if not one.worse("warn"):
        draw.echo(f"{one.path}: sound")
    seen: Counter[str] = Counter()
    for finding in one.findings:
        seen[finding.code] += 1
        if seen[finding.code] <= LINES:
            draw.echo(f"{one.path}: {finding.severity}: {finding.code}: {_finding_text(finding)}")
    for code, n in seen.items():
        if n > LINES:
            draw.echo(f"{one.path}: and {n - LINES} more of {code}; --json has them all")


def _finding_text(finding: Finding) -> str:
    """Return topic, text and place of a finding as one line."""
    from logreel.log.times import seconds_text

    place = [f"at byte {finding.offset}"] if finding.offset is not None else []
    place += [f"at {seconds_text(finding.time_ns)} s"] if finding.time_ns is not None else []
    where = f" ({', '.join(place)})" if place else ""
    return f"{finding.topic}: {finding.text}{where}" if finding.topic else f"{finding.text}{where}"
