"""What the script of a report draws: curves, spectra and bands as JSON data, reduced to a bounded number of points."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import LogError
from logreel.lenses.charts import LINE, SPECTROGRAM, XY, Chart
from logreel.meaning.curves import Spectrum, series_curve, spectrum
from logreel.outputs.plot.printable import printable

if TYPE_CHECKING:
    from logreel.lenses.charts import Band
    from logreel.log.log import Log
    from logreel.meaning.curves import Curve

#: Points of all curves of a report, about; each takes 11 to 22 bytes of the page. Least and most pixels of a curve.
POINTS, LEAST, MOST = 150_000, 150, 1500
#: Most bands that are drawn, longest first.
BANDS = 300
#: A curve whose values differ by less than this share of their size needs the digits of float64.
NARROW = 1e-4


class Clock:
    """Times of the page: float64 seconds since *zero* (ns), the first and last of which is in *span*."""

    def __init__(self, zero: int, first: int, last: int) -> None:
        self.zero = zero
        self.first, self.last = first, max(last, first + 1)

    def seconds(self, time: int) -> float:
        """Return a time in seconds of the page."""
        return (time - self.zero) / 1e9

    def packed(self, times: Any) -> dict[str, Any]:
        """Return int64[n] ns as uint32 steps of the span, in base64."""
        step = (self.last - self.first) / (2**32 - 1)
        steps = np.clip(np.round((times - self.first) / step), 0, 2**32 - 1).astype("<u4")
        return {"from": self.seconds(self.first), "step": step / 1e9, "data": _base64(steps)}


def panels(
    log: Log,
    charts: Sequence[Chart],
    clock: Clock,
    start: int | None,
    end: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Return a panel for each chart that has values; see ``report`` for *progress*."""
    curves = sum(len(chart.series) for chart in charts if chart.kind == LINE)
    pixels = min(max(POINTS // 4 // max(curves, 1), LEAST), MOST)
    found = []
    for number, chart in enumerate(_grouped(charts)):
        if progress is not None:
            progress(number, len(charts))
        if chart.kind == XY:
            continue
        if chart.kind == SPECTROGRAM:
            panel = _spectrum_panel(log, chart, start, end)
        else:
            panel = _panel(log, chart, clock, pixels, start, end)
        if panel is not None:
            found.append({"title": printable(chart.title), "group": printable(chart.group), **panel})
    return found


def _grouped(charts: Sequence[Chart]) -> list[Chart]:
    """Return the charts of the first screen as one group, then the others by group, in order of the first of each."""
    first = [replace(chart, group="Overview") for chart in charts if chart.first]
    rest = [chart for chart in charts if not chart.first]
    names = list(dict.fromkeys(chart.group for chart in rest))
    return first + sorted(rest, key=lambda chart: names.index(chart.group))


def _panel(
    log: Log, chart: Chart, clock: Clock, pixels: int, start: int | None, end: int | None
) -> dict[str, Any] | None:
    curves = []
    for series in chart.series:
        try:
            curve = series_curve(log, series, start, end, pixels)
        except LogError:
            # A damaged definition or interval costs one curve, not the report.
            continue
        if np.isfinite(curve.values).any():
            curves.append((printable(series.name), curve))
    if not curves:
        return None
    units = {curve.unit for _, curve in curves}
    return {
        "unit": units.pop() if len(units) == 1 else "",
        "y": chart.y,
        "curves": [_curve(name, curve, clock) for name, curve in curves],
        "about": _about([(name, curve.values, curve.unit) for name, curve in curves]),
    }


def _curve(name: str, curve: Curve, clock: Clock) -> dict[str, Any]:
    return {"name": name, "unit": curve.unit, "times": clock.packed(curve.times), **_values(curve.values)}


def _values(values: Any) -> dict[str, Any]:
    good = values[np.isfinite(values)]
    most = float(np.abs(good).max()) if len(good) else 0.0
    narrow = len(good) > 0 and float(np.ptp(good)) < NARROW * most
    if narrow or most > 1e30:
        return {"values": _base64(values.astype("<f8")), "wide": True}
    return {"values": _base64(values.astype("<f4"))}


def _spectrum_panel(log: Log, chart: Chart, start: int | None, end: int | None) -> dict[str, Any] | None:
    found: list[Spectrum] = []
    for series in chart.series:
        try:
            one = spectrum(log, series, start, end)
        except LogError:
            continue
        if one is not None:
            found.append(one)
    if not found:
        return None
    unit = f"{found[0].unit}/√Hz" if found[0].unit else "1/√Hz"
    peaks = [
        f"{one.series.name} is strongest at {one.frequency[int(np.argmax(one.density))]:.1f} Hz"
        for one in found
    ]
    return {
        "kind": "spectrum",
        "unit": unit,
        "curves": [
            {
                "name": printable(one.series.name),
                "unit": unit,
                "first": float(one.frequency[0]),
                "step": float(one.frequency[0]),
                "values": _base64(one.density.astype("<f4")),
            }
            for one in found
        ],
        "about": printable("; ".join(peaks)),
    }


def _about(curves: Iterable[tuple[str, Any, str]]) -> str:
    """Return a sentence for those who do not see the curves."""
    parts = []
    for name, values, unit in curves:
        good = values[np.isfinite(values)]
        parts.append(f"{name} from {good.min():.6g} to {good.max():.6g} {unit}".rstrip())
    return "; ".join(parts)


def band_data(bands: Sequence[Band], clock: Clock) -> list[dict[str, Any]]:
    """Return the longest bands as JSON data, in order of time."""
    some = sorted(bands, key=lambda band: band.start - band.end)[:BANDS]
    return [
        {
            "from": clock.seconds(band.start),
            "to": clock.seconds(band.end),
            "label": printable(band.label),
            "kind": band.kind,
            "source": printable(band.source),
        }
        for band in sorted(some, key=lambda band: band.start)
    ]


def _base64(array: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
