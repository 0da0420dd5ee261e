"""The page of a comparison: what begins to differ, with both runs around each onset and their distributions."""

from __future__ import annotations

import os
from html import escape

import numpy as np

from logreel._version import __version__
from logreel.errors import UsageError
from logreel.io.arrays import F64
from logreel.io.atomic_file import keep_sources
from logreel.log.log import Log
from logreel.log.source_files import decrypted_notes, inputs_of
from logreel.ops.inspect.compare import Comparison, Deviation
from logreel.outputs.files import new_file
from logreel.outputs.page.chart_svg import SvgAxis, SvgCurve, chart_svg, legend, limits_of
from logreel.outputs.page.evidence import AFTER, Signal, evidence, figure_of
from logreel.outputs.page.html import cell_text, page, table
from logreel.outputs.page.side_by_side import plots_of_both, statistics_of, statistics_of_both

#: Signals that are drawn, rows of the table, and points of a distribution.
DRAWINGS, ROWS, POINTS = 24, 500, 200


def save_page(told: Comparison, a: Log, b: Log, out: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write the page of a comparison of two open logs; *force*: replace an existing file."""
    name = os.fspath(out)
    if os.path.splitext(name)[1].lower() not in (".html", ".htm"):
        raise UsageError(f"the evidence is a page: name it .html, not {name!r}")
    for log in (a, b):
        decrypted_notes(log)
        keep_sources(name, inputs_of(log))
    with new_file(name, force) as file:
        file.write(comparison_page(told, a, b).encode("utf-8", "replace"))


def comparison_page(told: Comparison, a: Log, b: Log) -> str:
    """Return the page of a comparison of two open logs."""
    count = len(told.deviations)
    title = f"{count} deviation{'s' * (count != 1)}" if count else "Nothing differs"
    names = [os.path.basename(log.name) or "log" for log in (a, b)]
    facts = [("A", names[0]), ("B", names[1]), ("Aligned at", told.align)]
    about = "".join(f"<div><dt>{escape(label)}</dt><dd>{cell_text(text)}</dd></div>" for label, text in facts)
    onset = next((change.onset_ns for change in told.deviations if change.onset_ns is not None), None)
    plots = plots_of_both(b, a, told.a_zero_ns - told.b_zero_ns, ("B", "A"), onset)
    plots += statistics_of_both(statistics_of(b), statistics_of(a), ("B", "A"))
    silent = "".join(f"<li>{cell_text(text, 600)}</li>" for text in (*told.not_assessed, *told.notes))
    body = (
        f"<header><h1>{escape(title)}: {cell_text(names[1])} beside {cell_text(names[0])}</h1><dl>{about}</dl></header>"
        f'<main><section id="deviations"><h2>What begins to differ</h2>{_table(told)}</section>'
        f'<section id="evidence"><h2>Evidence</h2>{_figures(told, a, b)}</section>'
        f'<section id="both"><h2>Both runs</h2>{plots}</section>'
        f'<section id="not-compared"><h2>Not compared</h2><ul>{silent or "<li>nothing</li>"}</ul></section></main>'
        "<footer>The order is that of onsets, not of causes. Distances are those of the means over a second, from the "
        f"onset on. Made by logreel {__version__}; works offline.</footer>"
    )
    return page(title, body, {}, "report.css", [])


def _table(told: Comparison) -> str:
    rows = []
    for deviation in told.deviations[:ROWS]:
        at = "" if deviation.onset_ns is None else f"{told.seconds(deviation.onset_ns):.2f} s"
        where = ".".join(part for part in (deviation.topic, deviation.field) if part)
        numbers = [
            "" if number is None else f"{number:.3g}"
            for number in (deviation.effect, deviation.cohens_d, deviation.ks, deviation.wasserstein)
        ]
        rows.append(
            (
                at,
                cell_text(where, 200),
                cell_text(deviation.state, 100),
                cell_text(deviation.text, 300),
                *numbers,
            )
        )
    if not rows:
        return '<p class="good">B does nothing that A does not do.</p>'
    more = (
        f'<p class="note">and {len(told.deviations) - ROWS} more</p>' if len(told.deviations) > ROWS else ""
    )
    head = ("Onset", "Signal", "State", "What differs", "Effect", "Cohen’s d", "KS", "Wasserstein")
    return table(head, rows, (0, 4, 5, 6, 7)) + more


def _figures(told: Comparison, a: Log, b: Log) -> str:
    """Return a drawing of each signal that differs at an onset, first onset first, with its distribution."""
    shift = told.a_zero_ns - told.b_zero_ns
    figures: dict[str, str] = {}
    for deviation in told.deviations:
        if (
            deviation.onset_ns is None
            or not deviation.topic
            or deviation.what == "topic"
            or len(figures) == DRAWINGS
        ):
            continue
        signal = Signal(deviation.topic, deviation.field, is_delay=deviation.what == "delay")
        if signal.title in figures:
            continue
        drawing = evidence(signal, b, deviation.onset_ns, (a, shift), ("B", "A"), told.b_zero_ns)
        if drawing:
            text = f"{deviation.text} (from {told.seconds(deviation.onset_ns):.2f} s)"
            same = (
                other
                for other in told.deviations
                if (other.topic, other.field) == (signal.topic, signal.field)
            )
            drawing += next(
                (_distributions(other, signal, a, b, shift) for other in same if other.ks is not None), ""
            )
            figures[signal.title] = figure_of(signal.title, text, drawing)
    return (
        f'<div class="charts">{"".join(figures.values())}</div>' if figures else "<p>No signal to draw.</p>"
    )


def _distributions(deviation: Deviation, signal: Signal, a: Log, b: Log, shift: int) -> str:
    """Return the distribution functions of both runs after the onset, if the deviation has distances."""
    if deviation.ks is None or deviation.onset_ns is None:
        return ""
    start, end = deviation.onset_ns, deviation.onset_ns + AFTER
    lines = []
    for log, by in ((b, 0), (a, shift)):
        _, values = signal.samples(log, start + by, end + by)
        values = np.sort(values[np.isfinite(values)])
        if not len(values):
            return ""
        lines.append(_steps(values))
    low, high = limits_of(np.concatenate([line.x for line in lines]))
    drawing = chart_svg(lines, SvgAxis(low, high), SvgAxis(0, 1))
    return f'<p class="note">Share of values up to:</p>{drawing}{legend(("B", "A"))}'


def _steps(values: F64) -> SvgCurve:
    """Return the distribution function of sorted values."""
    rows = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(np.int64))
    return SvgCurve(values[rows], (rows + 1) / len(values))
