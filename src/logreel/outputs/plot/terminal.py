"""Plots as text: one chart of Braille dots for each panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import MissingDependencyError
from logreel.log.times import seconds_text, utc_text
from logreel.outputs.plot.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from logreel.outputs.plot.panels import Panel, Panels

#: Colours of the 256 of terminals that are distinct on light and dark backgrounds, and for the colour-blind.
COLORS = (32, 208, 36, 169, 178, 75, 166, 244)
#: Least size of a panel that can be read.
LEAST_WIDTH, LEAST_HEIGHT = 30, 6
HEIGHT = 14
#: Columns of the numbers at the left.
NUMBERS = 10
#: Least distance of numbers below the chart, in columns.
APART = 12


def chart(plot: Panels, width: int, height: int, color: bool) -> str:
    """Return *plot* as lines of *width* columns; see ``Plot.text``."""
    width = max(width, LEAST_WIDTH)
    each = max(height // len(plot.panels) - 1 if height else HEIGHT, LEAST_HEIGHT)
    first, last = plot.span
    lines = []
    for number, panel in enumerate(plot.panels):
        lines.append(_heading(panel, color))
        lines += _panel(plot, panel, (first, last), width, each, color, number == len(plot.panels) - 1)
    lines.append(plot.axis.rjust(width))
    return "\n".join(line.rstrip() for line in lines)


def _heading(panel: Panel, color: bool) -> str:
    names = []
    for i, (name, curve) in enumerate(zip(map(printable, panel.names), panel.curves, strict=True)):
        label = f"⣀⡠ {name}" if len(panel.curves) > 1 else name
        if not len(curve.times):
            label += " (no messages)"
        names.append(_colored(label, i) if color else label)
    return f"{printable(panel.title)}  {'  '.join(names)}".strip()


def _colored(text: str, number: int) -> str:
    return f"\x1b[38;5;{COLORS[number % len(COLORS)]}m{text}\x1b[0m"


def _panel(
    plot: Panels, panel: Panel, span: tuple[int, int], width: int, height: int, color: bool, last: bool
) -> Sequence[str]:
    try:
        import plotext
    except ImportError as error:
        raise MissingDependencyError("plotext", "plot") from error

    # The only figure of the library; its size would be limited by that of the terminal.
    figure = plotext.figure
    plotext.terminal.limit(False, False)
    figure.clear()
    figure.plot_size(width, height)
    figure.theme("colorless")
    drawn = [curve.reduced(2 * width) for curve in panel.curves]
    some = [curve.values[np.isfinite(curve.values)] for curve in drawn]
    values = np.concatenate(some) if some else np.empty(0)
    lo, hi = _limits(values)
    for number, curve in enumerate(drawn):
        for seconds, numbers in _pieces(plot, curve):
            signal = figure.signal(seconds, numbers, marker=_marker(plotext, number, color))
            figure.draw(signal.lines())
    x, y = figure.ruler("x"), figure.ruler("y")
    begin, end = ((t - plot.origin) / 1e9 for t in span)
    x.lim(begin, end if end > begin else begin + 1)
    y.lim(lo, hi)
    marks = _ticks(lo, hi, max(2, height // 4))
    y.ticks(marks, [f"{mark:.6g}".rjust(NUMBERS) for mark in marks])
    moments = _ticks(begin, end, max(2, (width - NUMBERS) // APART)) if last else []
    x.ticks(moments, [_moment(plot, at) for at in moments])
    text: str = figure.build().string()
    plain: str = text if color else plotext.uncolorize(text)
    return plain.splitlines()


def _marker(plotext: Any, number: int, color: bool) -> Any:
    if not color:
        return "braille"
    return plotext.marker("braille", COLORS[number % len(COLORS)])


def _pieces(plot: Panels, curve: Any) -> Any:
    """Yield runs of points without NaN, as seconds and values."""
    sound = np.isfinite(curve.values)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], sound, [False]])))
    for lo, hi in zip(edges[::2], edges[1::2], strict=True):
        yield ((curve.times[lo:hi] - plot.origin) / 1e9).tolist(), curve.values[lo:hi].tolist()


def _limits(values: Any) -> tuple[float, float]:
    """Return least and greatest value, apart from each other."""
    if not len(values):
        return 0.0, 1.0
    lo, hi = float(values.min()), float(values.max())
    if hi > lo:
        return lo, hi
    return lo - (abs(lo) * 0.01 or 1.0), hi + (abs(hi) * 0.01 or 1.0)


def _ticks(lo: float, hi: float, count: int) -> list[float]:
    """Return up to *count* round numbers from *lo* to *hi*."""
    if not hi > lo:
        return [lo]
    step = 10.0 ** np.floor(np.log10((hi - lo) / count))
    step *= next(k for k in (1, 2, 5, 10, 20) if (hi - lo) / (step * k) < count)
    marks = np.arange(np.ceil(lo / step), np.floor(hi / step) + 1) * step
    # Without negative zeros.
    return [float(mark) + 0.0 for mark in marks] or [lo]


def _moment(plot: Panels, seconds: float) -> str:
    if plot.shift is None:
        return f"{seconds:.6g}"
    at = plot.origin + round(seconds * 1e9) + plot.shift
    return utc_text(at, 1)[11:-1] if at > 0 else seconds_text(at, 1)
