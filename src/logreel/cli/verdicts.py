"""Verbs that judge runs beside others: ci by a contract, compare by another run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from logreel.cli import draw, inputs, options
from logreel.cli.check import fail_on
from logreel.cli.help import verb

if TYPE_CHECKING:
    from logreel.errors import Severity
    from logreel.ops.inspect.anchors import Align
    from logreel.ops.inspect.compare import Comparison, Deviation
    from logreel.ops.inspect.verdict import RunVerdict
    from logreel.ops.selection import Selection

#: Findings and deviations that are printed; --json has them all.
LISTED = 20


@verb(
    examples={
        "logreel ci logs --contract c.toml -o out": "judge all logs of a folder",
        "logreel ci drive.bag --contract c.toml --baseline old.bag -o verdict": "beside a good run",
    },
)
@click.option(
    "--contract",
    metavar="FILE",
    type=options.FILE,
    required=True,
    help="TOML file with the requirements, written by hand or by check --learn.",
)
@click.option(
    "--baseline",
    metavar="LOG",
    type=options.FILE,
    help="A good run, which the page shows beside those that fail.",
)
@fail_on("warn")
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="DIR",
    type=options.FOLDER,
    required=True,
    help="Folder for junit.xml, results.sarif, summary.md and report.html.",
)
@options.force
@inputs.logs("segment", "decrypt", "definitions")
@options.as_json
def ci(
    logs: inputs.Logs,
    contract: str,
    baseline: str | None,
    fail_on: Severity,
    folder: str,
    force: bool,
    as_json: bool,
) -> int:
    """Check runs against a contract, and write the results for programs that show test results.

    DIR gets JUnit XML with a case for each line of the contract, SARIF, a summary in Markdown, and an offline page with
    the signals of failing runs where they begin to fail, beside those of the baseline. A line that could not be
    assessed is skipped, not passed. --json prints one object per run.
    """
    from logreel.cli.exits import FOUND
    from logreel.errors import LogError, UsageError
    from logreel.ops.inspect.contract import read_contract
    from logreel.ops.inspect.verdict import judge, unreadable
    from logreel.outputs.ci import CiResult

    inputs.no_folder(folder, "verdicts")
    required = read_contract(contract)
    verdicts: list[RunVerdict] = []

    def judged(names: inputs.Names) -> RunVerdict:
        try:
            with logs.open(names) as log:
                inputs.note_decrypted(log, writes=True)
                verdicts.append(judge(log, required, fail_on))
        except UsageError:
            raise
        except (LogError, OSError) as error:
            name = names if isinstance(names, str) else names[0]
            verdicts.append(unreadable(name, error, fail_on))
            raise
        return verdicts[-1]

    results, code = inputs.print_each(logs, judged, _show_verdict, as_json)
    if not verdicts:
        return code
    with logs.open(baseline) if baseline is not None else contextlib.nullcontext() as good:
        opening = {**logs.opening, "anyway": logs.anyway}
        for path in CiResult(tuple(verdicts), required, contract, good, opening).save(folder, force=force):
            draw.say(f"wrote {path}")
    return code or (FOUND if any(run.failed for run in results) else 0)


def _show_verdict(run: RunVerdict) -> None:
    """Print what became of a run, and the first that breaks the contract."""
    from logreel.outputs.page.verdict_page import finding_text, onset_text, outcome

    draw.echo(f"{run.path}: {outcome(run)}")
    told = [*run.broken, *run.defects]
    for finding in told[:LISTED]:
        at = onset_text(run, finding)
        draw.echo_wrapped("  ", f"{f'{at} ' if at else ''}{finding_text(finding)}")
    if len(told) > LISTED:
        draw.echo(f"  and {len(told) - LISTED} more")


_both = click.argument("files", metavar="A B", nargs=-1, required=True, type=options.FILE)


@verb(
    examples={
        "logreel compare first.ulg second.ulg": "what begins to differ in the second run, and when",
        "logreel compare first.ulg second.ulg -t 'sensor_*' -o page.html": "with the signals around each onset",
    },
)
@options.selection("topics", "exclude")
@click.option(
    "--align",
    type=click.Choice(["start", "arming", "utc"]),
    help="Moments at which both runs are aligned. Default: arming if both logs state it, else the start.",
)
@click.option(
    "-o",
    "--output",
    "out",
    metavar="OUT",
    type=options.FILE,
    help="Also write a page with the evidence: OUT.html.",
)
@options.force
@inputs.logs("segment", "decrypt", "definitions", files=_both)
@options.answer
def compare(
    logs: inputs.Logs,
    selection: Selection,
    align: Align | None,
    out: str | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compare two runs, and list what begins to differ in B, in the order of time.

    Compares topics, rates, gaps, delays; in each state the level and spread of values; values that stop moving, states,
    errors in the text, lags. A difference counts if it is larger than the variation in A and a share of the value, so
    a second good run has none. The first difference need not be the cause of the others. The exit code is 0 if nothing
    differs, else 4. To compare files, use diff.
    """
    from logreel.cli.exits import FOUND
    from logreel.errors import UsageError
    from logreel.ops.inspect.compare import compare as look

    if len(logs.names) != 2:
        raise UsageError(f"compare takes two runs, A and B, not {len(logs.names)}")
    if out == inputs.STDOUT:
        raise UsageError("the page is a file: give OUT.html with -o")
    both = [
        inputs.Logs((name,), logs.as_one, logs.anyway).only(f"{name}: one side is one log")
        for name in logs.names
    ]
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(logs.open(names)) for names in both)
        for log in (first, second):
            inputs.note_decrypted(log)
        told = look(first, second, align=align, topics=selection.topics or None, exclude=selection.exclude)
        if out is not None:
            from logreel.outputs.page.comparison_page import save_page

            save_page(told, first, second, out, force=force)
            draw.say(f"wrote {out}")
    if as_json:
        draw.echo_json(told.as_dict())
    else:
        _show_comparison(told)
    return 0 if told.same else FOUND


def _show_comparison(told: Comparison) -> None:
    """Print deviations by their onset, then what was not compared."""
    count = len(told.deviations)
    what = f"{count} deviation{'s' * (count != 1)}" if count else "nothing differs"
    draw.echo(f"{told.b} beside {told.a}: {what} (aligned at {told.align})")
    for deviation in told.deviations[:LISTED]:
        at = "" if deviation.onset_ns is None else f"{told.seconds(deviation.onset_ns):.2f} s"
        where = ".".join(part for part in (deviation.topic, deviation.field) if part)
        state = f" [{deviation.state}]" if deviation.state and where else ""
        draw.echo_wrapped(
            f"  {at:>9}  ", f"{where}{state}{': ' if where else ''}{deviation.text}{_figures(deviation)}"
        )
    if count > LISTED:
        draw.echo(f"  and {count - LISTED} more; --json has them all")
    for text in told.not_assessed:
        draw.echo_wrapped("  -          ", f"not compared: {text}")
    for text in told.notes:
        draw.echo_wrapped("  -          ", text)


def _figures(deviation: Deviation) -> str:
    """Return effect sizes in brackets."""
    told = [f"d {deviation.cohens_d:.1f}"] if deviation.cohens_d is not None else []
    told += [f"KS {deviation.ks:.2f}"] if deviation.ks is not None else []
    return f" ({', '.join(told)})" if told else ""
