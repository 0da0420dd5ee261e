"""Two runs as the viewer compares them: its first plots with the curves of both, and statistics of all fields."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from logreel.errors import LogError
from logreel.lenses.facts import LINE, Chart
from logreel.log.log import Log
from logreel.log.times import SECOND
from logreel.meaning.charts import charts, first_charts
from logreel.meaning.curves import series_curve
from logreel.ops.inspect.diff import side_by_side
from logreel.ops.inspect.stats import FieldStats, field_stats
from logreel.outputs.page.chart_svg import PageClock, SvgCurve, chart_svg, legend, pixels_for, value_span
from logreel.outputs.page.evidence import figure_of
from logreel.outputs.page.html import cell_text, table

#: Plots of a run, rows of the table, and messages of a channel from which on its fields have no statistics.
PLOTS, ROWS, MOST_MESSAGES = 8, 60, 1_000_000


def plots_of_both(run: Log, other: Log, shift: int, names: tuple[str, str], onset: int | None) -> str:
    """Return the plots that the viewer shows first of a run, each with the same curves of the other one behind.

    shift  ns from the clock of *run* to that of *other*
    onset  moment (ns) that is marked; None: none
    """
    if run.start is None or run.end is None:
        return ""
    clock = PageClock(run.start, run.start, run.end)
    proposed = charts(run)
    figures = [
        _plot(chart, run, other, shift, names, clock, onset)
        for chart in proposed[: first_charts(proposed)]
        if chart.kind == LINE
    ]
    drawn = "".join([text for text in figures if text][:PLOTS])
    return f'<div class="charts">{drawn}</div>' if drawn else ""


def _plot(
    chart: Chart,
    run: Log,
    other: Log,
    shift: int,
    names: tuple[str, str],
    clock: PageClock,
    onset: int | None,
) -> str:
    lines: list[SvgCurve] = []
    drawn: list[str] = []
    pixels = pixels_for(2 * len(chart.series))
    for name, log, by in ((names[0], run, 0), (names[1], other, shift)):
        for series in chart.series:
            try:
                curve = series_curve(log, series, clock.first + by, clock.last + 1 + by, pixels)
            except LogError:
                # What one of the runs lacks is told by the verdict.
                continue
            if np.isfinite(curve.values).any():
                shown = curve.reduced(pixels).broken()
                gaps = clock.intervals([(lo - by, hi - by) for lo, hi in curve.gaps])
                seconds = (shown.times - by - clock.zero) / SECOND
                lines.append(SvgCurve(seconds, shown.values, gaps, curve.stepped))
                drawn.append(f"{name}: {series.name}" if len(chart.series) > 1 else name)
    if not lines:
        return ""
    marks = []
    if onset is not None:
        at = clock.seconds(onset)
        marks = [(at, at + 0.003 * (clock.last - clock.first) / SECOND, "", "bad")]
    drawing = chart_svg(lines, clock.axis, value_span(lines, chart.y), marks)
    return figure_of(chart.title, "", drawing + legend(drawn))


def statistics_of(log: Log) -> dict[str, FieldStats]:
    """Return statistics of the fields of a log by topic, a line break, and path; channels that are too large lack."""
    every: dict[str, FieldStats] = {}
    for ch in log.channels.values():
        if ch.reserved or not 0 < len(ch) <= MOST_MESSAGES:
            continue
        try:
            every |= {f"{ch.topic}\n{field.path}": field for field in field_stats(ch) or ()}
        except LogError:
            # A damaged definition costs one channel.
            continue
    return every


def statistics_of_both(
    run: Mapping[str, FieldStats], other: Mapping[str, FieldStats], names: tuple[str, str]
) -> str:
    """Return a table of the statistics of all fields, the most different first, as the viewer has it."""
    beside = side_by_side([run, other])
    rows = []
    for field in beside[:ROWS]:
        numbers = [
            "" if stats is None or value is None else f"{value:.5g}"
            for key in ("min", "mean", "max")
            for stats in field.stats
            for value in [None if stats is None else getattr(stats, key)]
        ]
        topic, _, path = field.path.partition("\n")
        rows.append((cell_text(f"{topic}.{path}", 200), *numbers))
    if not rows:
        return ""
    head = (
        "Field",
        *(f"{what}, {cell_text(name, 60)}" for what in ("Least", "Mean", "Greatest") for name in names),
    )
    more = f'<p class="note">and {len(beside) - ROWS} more</p>' if len(beside) > ROWS else ""
    return (
        f"<details><summary>Statistics of all fields, the most different first</summary>"
        f"{table(head, rows, range(1, len(head)))}{more}</details>"
    )
