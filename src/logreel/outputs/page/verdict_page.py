"""The page of a verdict: runs that fail beside a good one, the signals at their onsets, what could not be assessed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from html import escape
from typing import TYPE_CHECKING, Any

from logreel._version import __version__
from logreel.errors import Finding, LogError
from logreel.log.log import Log
from logreel.log.times import duration_text
from logreel.ops.inspect.anchors import anchor, shared_anchor
from logreel.ops.inspect.contract import Contract
from logreel.ops.inspect.verdict import BROKEN, KEPT, NO_ANSWER, RunVerdict
from logreel.outputs.page.evidence import evidence, figure_of, signal_of
from logreel.outputs.page.html import cell_text, page, table
from logreel.outputs.page.side_by_side import plots_of_both, statistics_of, statistics_of_both
from logreel.registry.open import as_open_log, open_log

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable
    from logreel.ops.inspect.stats import FieldStats

#: Runs with drawings, drawings of a run, and rows of a table.
RUNS, DRAWINGS, ROWS = 6, 12, 300
#: Names of both runs in drawings and tables.
NAMES = "this run", "baseline"


def verdict_page(
    runs: Sequence[RunVerdict],
    contract: Contract,
    baseline: Openable | Log | None = None,
    opening: Mapping[str, Any] | None = None,
) -> str:
    """Return a page about runs, worst first; logs of failing runs, and the baseline, are opened again for drawings.

    opening  keyword arguments of ``logreel.open`` for that
    """
    ordered = worst_first(runs)
    failed = [run for run in ordered if run.failed]
    sections = []
    with ExitStack() as stack:
        good = None if baseline is None or not failed else stack.enter_context(as_open_log(baseline))
        stats = {} if good is None else statistics_of(good)
        for number, run in enumerate(failed):
            is_drawn = number < RUNS and not run.error
            drawn = _drawings(run, contract, good, stats, opening or {}) if is_drawn else ""
            sections.append(_run(run, number, drawn))
    title = (
        f"{len(failed)} of {len(runs)} run{'s' * (len(runs) != 1)} failed" if failed else "All runs passed"
    )
    facts = [("Runs", str(len(runs))), ("Failed", str(len(failed)))]
    facts += [] if good is None else [("Baseline", os.path.basename(good.name))]
    about = "".join(f"<div><dt>{escape(a)}</dt><dd>{cell_text(b)}</dd></div>" for a, b in facts)
    body = (
        f"<header><h1>{escape(title)}</h1><dl>{about}</dl></header><main>"
        f'<section id="runs"><h2>Runs</h2>{_overview(ordered)}</section>{"".join(sections)}'
        f'<section id="not-assessed"><h2>Not assessed</h2>{_silent(ordered)}</section></main>'
        "<footer>What breaks the contract stands in the order of its onsets, which is no order of causes. "
        f"Made by logreel {__version__}; works offline.</footer>"
    )
    return page(title, body, {}, "report.css", [])


def worst_first(runs: Sequence[RunVerdict]) -> list[RunVerdict]:
    """Return runs: those that cannot be read, then by what is broken, most first."""
    return sorted(
        runs, key=lambda run: (not run.error, not run.failed, -len(run.broken) - len(run.defects), run.path)
    )


def outcome(run: RunVerdict) -> str:
    """Return in words what became of a run."""
    if run.error:
        return f"cannot be judged: {run.error}"
    broken = sum(line.outcome == BROKEN for line in run.lines)
    told = [f"{broken} line{'s' * (broken != 1)} broken"] if broken else []
    count = len(run.defects)
    told += [f"{count} defect{'s' * (count != 1)} of the log"] if count else []
    return ", ".join(told) or "passed"


def onset_text(run: RunVerdict, finding: Finding) -> str:
    """Return when something begins, in seconds since the start of the run."""
    seconds = run.seconds(finding.time_ns)
    return "" if seconds is None else f"{seconds:.2f} s"


def finding_text(finding: Finding) -> str:
    """Return topic and text of a finding."""
    return f"{finding.topic}: {finding.text}" if finding.topic else finding.text


def _overview(runs: Sequence[RunVerdict]) -> str:
    rows = []
    for number, run in enumerate(runs[:ROWS]):
        first = next((finding for finding in run.broken), None) or next(iter(run.defects), None)
        mark = "bad" if run.failed else "good"
        name = cell_text(run.path, 200)
        length = None if run.start_ns is None or run.end_ns is None else run.end_ns - run.start_ns
        counts = [str(sum(line.outcome == o for line in run.lines)) for o in (KEPT, BROKEN, NO_ANSWER)]
        rows.append((
            f'<a href="#run-{number}">{name}</a>' if run.failed else name,
            f'<span class="{mark}">{cell_text(outcome(run))}</span>',
            "" if first is None else onset_text(run, first),
            "" if first is None else cell_text(finding_text(first), 200),
            "" if length is None else duration_text(length),
            *counts,
        ))  # fmt: skip
    more = f'<p class="note">and {len(runs) - ROWS} more runs</p>' if len(runs) > ROWS else ""
    head = ("Run", "Result", "First onset", "What", "Length", "Kept", "Broken", "Not assessed")
    return table(head, rows, (2, 5, 6, 7)) + more


def _run(run: RunVerdict, number: int, drawn: str) -> str:
    """Return the section of a run that fails."""
    head = f'<section id="run-{number}"><h2>{cell_text(run.path, 200)}: {cell_text(outcome(run), 300)}</h2>'
    if run.error:
        return f"{head}</section>"
    rows = [
        (
            onset_text(run, finding),
            cell_text(finding_text(finding), 400),
            f"<code>{cell_text(finding.rule, 200)}</code>",
        )
        for finding in run.broken[:ROWS]
    ]
    text = table(("Onset", "What breaks the contract", "Line of the contract"), rows, (0,)) if rows else ""
    defects = [
        (
            onset_text(run, finding),
            finding.severity,
            cell_text(f"{finding.code}: {finding_text(finding)}", 400),
        )
        for finding in run.defects[:ROWS]
    ]
    text += (
        f"<h3>Defects of the log</h3>{table(('At', 'Severity', 'What'), defects, (0,))}" if defects else ""
    )
    return f"{head}{drawn}{text}</section>"


def _drawings(
    run: RunVerdict,
    contract: Contract,
    good: Log | None,
    stats: Mapping[str, FieldStats],
    opening: Mapping[str, Any],
) -> str:
    """Return drawings of the signals that break the contract, first onset first, then the run beside the good one.

    stats  statistics of the fields of the good run
    """
    figures: dict[str, str] = {}
    beside = ""
    try:
        with open_log([*run.files] if len(run.files) > 1 else run.path, **opening) as log:
            other = None
            if good is not None:
                align = shared_anchor(log, good)
                other = good, anchor(good, align) - anchor(log, align)
            for finding in run.broken:
                signal = signal_of(finding, contract)
                if signal is None or finding.time_ns is None or signal.title in figures:
                    continue
                drawing = evidence(signal, log, finding.time_ns, other)
                if drawing:
                    text = f"{finding.text} (from {onset_text(run, finding)})"
                    figures[signal.title] = figure_of(signal.title, text, drawing)
                if len(figures) == DRAWINGS:
                    break
            if other is not None:
                onset = next((finding.time_ns for finding in run.broken if finding.time_ns is not None), None)
                plots = plots_of_both(log, *other, NAMES, onset)
                beside = f"<h3>The run beside the baseline</h3>{plots}" if plots else ""
                beside += statistics_of_both(statistics_of(log), stats, NAMES)
    except LogError as error:
        return f'<p class="note">Cannot be drawn: {cell_text(str(error))}</p>'
    return (f'<div class="charts">{"".join(figures.values())}</div>' if figures else "") + beside


def _silent(runs: Sequence[RunVerdict]) -> str:
    """Return what could not be assessed, each reason with its lines and runs."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        for line in run.lines:
            if line.outcome == NO_ANSWER:
                by_reason.setdefault((line.rule, line.reason), []).append(run.path)
        for text in run.not_assessed:
            by_reason.setdefault(("", text), []).append(run.path)
    if not by_reason:
        return '<p class="good">Every line of the contract was assessed in every run.</p>'
    rows = [
        (f"<code>{cell_text(rule, 200)}</code>" if rule else "", cell_text(reason, 300), str(len(paths)))
        for (rule, reason), paths in list(by_reason.items())[:ROWS]
    ]
    more = f'<p class="note">and {len(by_reason) - ROWS} more</p>' if len(by_reason) > ROWS else ""
    return table(("Line of the contract", "Why", "Runs"), rows, (2,)) + more
