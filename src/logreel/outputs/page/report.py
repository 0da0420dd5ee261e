"""Reports: everything that a person should see of a log first, as one page that works offline.

Findings, sections and tables, and the data that the script of the page draws.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, name_and_stream
from logreel.lenses.facts import LINE, SPECTROGRAM, XY, Band, Chart, Series
from logreel.log.log import Log
from logreel.log.scan import Brief
from logreel.log.source_files import decrypted_notes, inputs_of
from logreel.log.times import Time, interval, shift_of
from logreel.meaning.charts import bands, charts
from logreel.meaning.curves import Curve, Spectrum, paired, series_curve, spectrum
from logreel.meaning.layouts import ViewLayout, found_charts, read_layout
from logreel.meaning.notes import Note, notes
from logreel.ops.inspect.incidents import Incident, incidents
from logreel.ops.inspect.text import lines_between
from logreel.outputs.files import new_file
from logreel.outputs.page.chart_svg import (
    PAIRED,
    PAIRS,
    PageClock,
    SvgAxis,
    SvgCurve,
    band_classes,
    chart_svg,
    occurring,
    pair_svg,
    pixels_for,
    value_span,
)
from logreel.outputs.page.html import packed, printable
from logreel.outputs.page.report_page import STILL, ReportContents, chart_of, report_page
from logreel.outputs.page.track import find_tracks
from logreel.registry.open import as_open_log
from logreel.registry.registry import states_of

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable

#: Charts that only findings need, and their group.
ADDED, FOR_FINDINGS = 12, "Findings"


def in_part(several: Iterable[Incident], start: int | None, end: int | None) -> tuple[Incident, ...]:
    """Return incidents without times, and those with start <= time < end (ns), with their intervals there."""
    chosen = []
    for incident in several:
        inside = tuple(
            (first, last)
            for first, last in incident.spans
            if (end is None or first < end) and (start is None or last >= start)
        )
        if inside or not incident.spans:
            chosen.append(replace(incident, spans=inside))
    return tuple(chosen)


def charts_for(told: Iterable[Incident], proposed: Sequence[Chart]) -> list[Chart]:
    """Return charts of the curves that show incidents and that no proposed chart has."""
    added: list[Chart] = []
    for incident in told:
        shown = [chart.series for chart in (*proposed, *added) if chart.kind == LINE]
        if incident.series and len(added) < ADDED and chart_of(incident.series, shown) is None:
            added.append(Chart(_title(incident.series), incident.series, group=FOR_FINDINGS))
    return added


def _title(series: Sequence[Series]) -> str:
    """Return the topics of curves, and what is shown of them."""
    topics = ", ".join(dict.fromkeys(curve.topic for curve in series))
    if all(curve.function == "interval" for curve in series):
        return f"Time between messages of {topics}"
    fields = ", ".join(dict.fromkeys(curve.field for curve in series))
    return f"{topics}: {fields}"


#: Points of all curves of a report, about; each takes 11 to 22 bytes of the page. Least and most pixels of a curve.
POINTS, LEAST_PIXELS, MOST_PIXELS = 150_000, 150, 1500
#: Most gaps of a curve that are hatched.
GAPS = 100
#: A curve whose values differ by less than this share of their size needs the digits of float64.
NARROW = 1e-4


def panels_of(
    log: Log,
    charts: Sequence[Chart | StillPanel],
    clock: PageClock,
    spans: Sequence[Band],
    start: int | None,
    end: int | None,
    progress: Callable[[int, int], None] | None = None,
    known: Mapping[Series, Curve] | None = None,
    here: int | None = None,
) -> list[dict[str, Any]]:
    """Return a panel for each chart that has values: what the script draws, and as ``svg`` the same as SVG.

    spans     bands that lie behind the curves
    progress  see ``report``
    known     curves that are not read from the log, by their series
    here      moment (ns) that is marked in curves over each other
    """
    curves = sum(len(chart.series) for chart in charts if isinstance(chart, Chart) and chart.kind == LINE)
    pixels = min(max(POINTS // 4 // max(curves, 1), LEAST_PIXELS), MOST_PIXELS)
    behind = list(
        zip(
            [clock.seconds(band.start) for band in spans],
            [clock.seconds(band.end) for band in spans],
            [band.label for band in spans],
            band_classes(spans),
            strict=True,
        )
    )
    still_pixels = pixels_for(curves)
    panels = []
    for number, chart in enumerate(charts if known is not None else _grouped(charts)):
        if progress is not None:
            progress(number, len(charts))
        panel: dict[str, Any] | None
        if isinstance(chart, StillPanel):
            panels.append(chart.as_dict())
            continue
        if chart.kind == XY:
            # Proposed ones are places, which the track shows.
            panel = None if known is None else _pair_panel(log, chart, (start, end), known, here)
        elif chart.kind == SPECTROGRAM:
            panel = _spectrum_panel(log, chart, start, end)
        else:
            panel = _panel(log, chart, clock, pixels, start, end, known or {})
            if panel is not None:
                lines = [_line(curve, clock, still_pixels) for curve in panel.pop("drawn")]
                span = value_span(lines, chart.y, states=panel.pop("states"))
                panel["svg"] = chart_svg(lines, clock.axis, span, behind)
        if panel is not None:
            about = {"title": printable(chart.title), "group": printable(chart.group), "series": chart.series}
            panels.append({**about, **panel})
        elif known is not None:
            # What somebody saw, or asked for, is never left out without a word.
            panels.append(StillPanel(chart.title, "", "No values in the time that is shown.").as_dict())
    return panels


@dataclass(frozen=True, slots=True)
class StillPanel:
    """A panel that is a picture, or only a sentence.

    content  HTML of the picture, which is trusted
    said     a sentence on it, which is text
    """

    title: str
    content: str
    said: str

    def as_dict(self) -> dict[str, Any]:
        """Return the panel as ``panels_of`` returns it."""
        named = {
            "title": printable(self.title),
            "group": "",
            "series": (),
            "kind": STILL,
            "svg": self.content,
        }
        return {**named, "unit": "", "curves": [], "about": printable(self.said), "said": self.said}


def _pair_panel(
    log: Log,
    chart: Chart,
    span: tuple[int | None, int | None],
    known: Mapping[Series, Curve],
    here: int | None,
) -> dict[str, Any] | None:
    """Return the panel of one curve over another, with a mark at *here* (ns); None if it has no point."""
    try:
        x, y = (known.get(series) or series_curve(log, series, *span, PAIRED) for series in chart.series)
    except LogError as error:
        return StillPanel(chart.title, "", f"This cannot be drawn: {error.text}.").as_dict()
    times, across, up = paired(x, y, PAIRS)
    row = None if here is None else int(times.searchsorted(here, "right")) - 1
    names = [
        (series.label or f"{series.topic}.{series.name}") + (f" [{curve.unit}]" if curve.unit else "")
        for series, curve in zip(chart.series, (x, y), strict=True)
    ]
    drawing = pair_svg(across, up, (names[0], names[1]), chart.equal, row)
    said = f"{names[1]} over {names[0]}: faint at the start (circle), strong at the end (square)"
    said += ", with a dot at the cursor." if row is not None and row >= 0 else "."
    return StillPanel(chart.title, drawing, said).as_dict() if drawing else None


def _grouped(charts: Sequence[Chart | StillPanel]) -> list[Chart]:
    """Return the charts of the first screen as one group, then the others by group, in order of the first of each."""
    drawn = [chart for chart in charts if isinstance(chart, Chart)]
    first = [replace(chart, group="Overview") for chart in drawn if chart.first]
    rest = [chart for chart in drawn if not chart.first]
    names = list(dict.fromkeys(chart.group for chart in rest))
    return first + sorted(rest, key=lambda chart: names.index(chart.group))


def _panel(
    log: Log,
    chart: Chart,
    clock: PageClock,
    pixels: int,
    start: int | None,
    end: int | None,
    curves_known: Mapping[Series, Curve],
) -> dict[str, Any] | None:
    curves, states = [], []
    known = states_of(log)
    for series in chart.series:
        try:
            curve = curves_known.get(series) or series_curve(log, series, start, end, pixels)
        except LogError:
            # A damaged definition or interval costs one curve, not the report.
            continue
        if np.isfinite(curve.values).any():
            curves.append((printable(series.name), curve))
            names = {} if series.function else known.get(series.topic, {}).get(series.field, {})
            states.append(occurring(names, curve.values))
    if not curves:
        return None
    units = {curve.unit for _, curve in curves}
    return {
        "drawn": [curve for _, curve in curves],
        "unit": units.pop() if len(units) == 1 else "",
        "states": states[0] if all(names == states[0] for names in states) else {},
        "y": chart.y,
        "curves": [
            _curve_data(name, curve, clock) | ({"states": names} if names else {})
            for (name, curve), names in zip(curves, states, strict=True)
        ],
        "about": _about([(name, curve.values, curve.unit) for name, curve in curves]),
    }


def _line(curve: Curve, clock: PageClock, pixels: int) -> SvgCurve:
    drawn = curve.reduced(pixels).broken()
    return SvgCurve(
        (drawn.times - clock.zero) / 1e9, drawn.values, clock.intervals(curve.gaps), curve.stepped
    )


def _curve_data(name: str, curve: Curve, clock: PageClock) -> dict[str, Any]:
    drawn = curve.broken()
    return {
        "name": name,
        "unit": curve.unit,
        "times": clock.packed(drawn.times),
        **_values(drawn.values),
        "gaps": clock.intervals(curve.gaps)[:GAPS],
        "held": curve.stepped,
    }


def _values(values: Any) -> dict[str, Any]:
    good = values[np.isfinite(values)]
    most = float(np.abs(good).max()) if len(good) else 0.0
    narrow = len(good) > 0 and float(np.ptp(good)) < NARROW * most
    if narrow or most > 1e30:
        return {"values": packed(values.astype("<f8")), "wide": True}
    return {"values": packed(values.astype("<f4"))}


def _spectrum_panel(log: Log, chart: Chart, start: int | None, end: int | None) -> dict[str, Any] | None:
    spectra: list[Spectrum] = []
    for series in chart.series:
        try:
            density = spectrum(log, series, start, end)
        except LogError:
            continue
        if density is not None:
            spectra.append(density)
    if not spectra:
        return None
    unit = f"{spectra[0].unit}/√Hz" if spectra[0].unit else "1/√Hz"
    peaks = [
        f"{density.series.name} is strongest at {density.frequency[int(np.argmax(density.density))]:.1f} Hz"
        for density in spectra
    ]
    lines = [SvgCurve(density.frequency, density.density) for density in spectra]
    across = SvgAxis(0.0, max(float(line.x[-1]) for line in lines), "{:g} Hz".format)
    return {
        "kind": "spectrum",
        "svg": chart_svg(lines, across, value_span(lines, log=True)),
        "unit": unit,
        "curves": [
            {
                "name": printable(density.series.name),
                "unit": unit,
                "first": float(density.frequency[0]),
                "step": float(density.frequency[0]),
                "values": packed(density.density.astype("<f4")),
            }
            for density in spectra
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


@dataclass(frozen=True, repr=False)
class Report(Brief):
    """A page about a log; ``logreel.report`` makes it.

    name      of the log
    html      the whole page, which needs no other file and no network
    findings  what went wrong in the part that is shown, worst first, as ``incidents`` finds it
    charts    titles of the charts that the page has
    inputs    names of the files of the log, which ``save`` does not replace
    left_out  what of a layout is not drawn, a sentence each
    """

    name: str
    html: str
    findings: tuple[Incident, ...]
    charts: tuple[str, ...]
    inputs: Sequence[str] = field(default=(), repr=False)
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        size = f"{len(self.html) / 1e6:.1f} MB"
        return f"<logreel.Report of {self.name!r}: {len(self.charts)} charts, {len(self.findings)} findings, {size}>"

    def save(self, out: Destination, *, force: bool = False) -> None:
        """Write the page to *out*: a path that ends in ``.html``, or a binary file object.

        force  replace an existing file
        """
        name, stream = name_and_stream(out)
        if stream is None:
            if os.path.splitext(name)[1].lower() not in (".html", ".htm"):
                raise UsageError(f"a report is a page: name it .html, not {name!r}")
            keep_sources(name, self.inputs)
        with new_file(name, force, stream) as file:
            file.write(self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        shown = html.escape(self.html, True)
        return f'<iframe style="width:100%;height:720px;border:0" srcdoc="{shown}"></iframe>'


def _notes_between(log: Log, start: int | None, end: int | None) -> list[Note]:
    """Return the notes on a part of *log*; a file that cannot be read is a note that says so."""
    try:
        return [note for note in notes(log) if note.touches(start, end)]
    except LogError as error:
        return [Note(log.start or 0, title="The notes beside the log cannot be shown", text=str(error))]


def report(
    log: Openable | Log,
    *,
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    layout: ViewLayout | str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Return a Report: summary, findings, notes, track, charts, text, parameters, topics and problems of a log.

    log         a path, or an open Log
    start, end  as for ``Channel.to_arrow``; topics, parameters and problems are always those of the whole log
    utc         UTC times, for logs with a known offset to UTC
    layout      in place of the charts that the log deserves: the plots of a layout file, as far as the log has them
    progress    called with the charts that are done, and their number

    The page has less than 8 MB for any log. Raises UsageError for an interval outside of the log, for an encrypted log
    that was not opened with ``decrypt=True``, with *utc* for a log whose offset to UTC is unknown, and for a file that
    is no layout.
    """
    if layout is None:
        return _report(log, (start, end), utc, progress, None)
    chosen = layout if isinstance(layout, ViewLayout) else read_layout(layout)
    with as_open_log(log) as opened:
        plots, lacking = found_charts(opened, chosen)
        named = [
            replace(chart, title=chart.title or curve_names(chart.series, chart.kind == XY))
            for chart in plots
        ]
        return _report(opened, (start, end), utc, progress, Seen(named, is_page=False, left_out=lacking))


def curve_names(series: Iterable[Series], is_pair: bool = False) -> str:
    """Return a title for a chart without one: its curves."""
    names = [f"{curve.topic}.{curve.name}" for curve in series]
    return " over ".join(reversed(names)) if is_pair else ", ".join(names)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a person sees of a log, for a page that shows the same.

    charts  the plots, and panels that are pictures
    curves  curves that are not read from the log by their series, such as those of SQL expressions
    notes   those of people; None: those that the log has
    is_page   whether the page has nothing else, such as topics and parameters
    left_out  sentences about what is not drawn
    undrawn   titles of panels that the page names, and does not draw
    here      moment of the cursor, ns; None: there is none
    """

    charts: Sequence[Chart | StillPanel]
    curves: Mapping[Series, Curve] = field(default_factory=dict)
    notes: Sequence[Note] | None = None
    is_page: bool = True
    left_out: Sequence[str] = ()
    undrawn: Sequence[str] = ()
    here: int | None = None


def report_of_view(
    log: Openable | Log, seen: Seen, *, start: Time | None = None, end: Time | None = None, utc: bool = False
) -> Report:
    """Return a Report with what is *seen*: its charts, findings, notes, track and text of an interval, nothing else.

    log, start, end, utc  as for ``report``, which tells the errors, too
    """
    return _report(log, (start, end), utc, None, seen)


def _report(
    log: Openable | Log,
    span: tuple[Time | None, Time | None],
    utc: bool,
    progress: Callable[[int, int], None] | None,
    seen: Seen | None,
) -> Report:
    with as_open_log(log) as opened:
        decrypted_notes(opened)
        lo, hi = interval(opened, *span)
        shift = shift_of(opened, utc)
        first, last = opened.start or 0, opened.end or 0
        zero = first if shift is None else -shift
        clock = PageClock(
            zero, first if lo is None else lo, last if hi is None else hi, utc=shift is not None
        )
        proposed = charts(opened)
        result = incidents(opened)
        result = replace(
            result,
            faults=in_part(result.faults, lo, hi),
            events=in_part(result.events, lo, hi),
        )
        spans = [band for band in bands(opened) if band.start < clock.last and band.end > clock.first]
        lines = list(lines_between(opened, None, lo, hi, repeated=False))
        shown, known, here = (proposed, None, None) if seen is None else (seen.charts, seen.curves, seen.here)
        if seen is None:
            shown = [*proposed, *charts_for(result.faults, proposed)]
        panels = panels_of(opened, shown, clock, spans, lo, hi, progress, known, here)
        tracks = find_tracks(opened, proposed, lo, hi)
        noted = _notes_between(opened, lo, hi) if seen is None or seen.notes is None else seen.notes
        contents = ReportContents(
            clock, shift, result, noted, spans, lines, panels, tracks,
            part=lo is not None or hi is not None,
            is_view=seen is not None and seen.is_page,
            undrawn=() if seen is None else seen.undrawn,
        )  # fmt: skip
        text = report_page(opened, contents)
        titles = tuple(panel["title"] for panel in panels)
        left = () if seen is None else tuple(seen.left_out)
        return Report(opened.name, text, result.faults, titles, inputs_of(opened), left)
