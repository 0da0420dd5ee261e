"""Reports: everything that a person should see of a log first, as one page that works offline.

Findings, sections and tables, and the data that the script of the page draws.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel._version import __version__
from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, name_and_stream
from logreel.lenses.facts import ERROR, LINE, SPECTROGRAM, WARNING, XY, Band, Chart, Series
from logreel.log.log import Channel, Log
from logreel.log.scan import Brief, Parameter, TextLine
from logreel.log.source_files import decrypted_notes, inputs_of
from logreel.log.times import Time, duration_text, interval, shift_of, utc_text
from logreel.meaning.charts import bands, charts
from logreel.meaning.curves import Curve, Spectrum, series_curve, spectrum
from logreel.ops.inspect.incidents import Incident, Incidents, incidents, is_spoken, looked_at
from logreel.ops.inspect.info import facts
from logreel.ops.inspect.params import differs
from logreel.ops.inspect.summary import Summary
from logreel.ops.inspect.text import level_name, lines_between
from logreel.outputs.files import new_file
from logreel.outputs.page.chart_svg import (
    PageClock,
    SvgAxis,
    SvgCurve,
    band_classes,
    chart_svg,
    figure,
    legend,
    occurring,
    pixels_for,
    value_span,
)
from logreel.outputs.page.html import LONGEST, cell_text, packed, page, printable, table
from logreel.outputs.page.track import Drawing, DrawnTracks, find_tracks, svg
from logreel.registry.open import as_open_log
from logreel.registry.registry import states_of

if TYPE_CHECKING:
    from logreel.log.joined_log import Openable

#: Classes of what deserves attention, by severity.
CLASSES: dict[str | None, str] = {"error": "bad", "warn": "warn", "note": "note"}
#: Findings and events that are listed one by one, other intervals of a finding, and charts that only findings need.
LISTED, OTHERS, ADDED = 60, 6, 12
#: Group of charts that only findings need.
FOR_FINDINGS = "Findings"


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


def chart_of(series: Sequence[Series], shown: Sequence[Sequence[Series]]) -> int | None:
    """Return the number of the chart that shows most of *series*, at least half of them; of several the smallest.

    shown  curves of each chart
    """
    wanted = {_key(curve) for curve in series}
    common = [len(wanted.intersection(map(_key, curves))) for curves in shown]
    best = max(range(len(shown)), key=lambda n: (common[n], -len(shown[n])), default=None)
    return None if best is None or not wanted or 2 * common[best] < len(wanted) else best


def _key(series: Series) -> tuple[str, str, str, str]:
    return series.topic, series.field, series.function, series.where


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
#: Most bands that are drawn, longest first.
BANDS = 300
#: A curve whose values differ by less than this share of their size needs the digits of float64.
NARROW = 1e-4


def panels_of(
    log: Log,
    charts: Sequence[Chart],
    clock: PageClock,
    spans: Sequence[Band],
    start: int | None,
    end: int | None,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Return a panel for each chart that has values: what the script draws, and as ``svg`` the same as SVG.

    spans     bands that lie behind the curves
    progress  see ``report``
    """
    curves = sum(len(chart.series) for chart in charts if chart.kind == LINE)
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
                lines = [_line(curve, clock, still_pixels) for curve in panel.pop("drawn")]
                span = value_span(lines, chart.y, states=panel.pop("states"))
                panel["svg"] = chart_svg(lines, clock.axis, span, behind)
        if panel is not None:
            about = {"title": printable(chart.title), "group": printable(chart.group), "series": chart.series}
            panels.append({**about, **panel})
    return panels


def _grouped(charts: Sequence[Chart]) -> list[Chart]:
    """Return the charts of the first screen as one group, then the others by group, in order of the first of each."""
    first = [replace(chart, group="Overview") for chart in charts if chart.first]
    rest = [chart for chart in charts if not chart.first]
    names = list(dict.fromkeys(chart.group for chart in rest))
    return first + sorted(rest, key=lambda chart: names.index(chart.group))


def _panel(
    log: Log, chart: Chart, clock: PageClock, pixels: int, start: int | None, end: int | None
) -> dict[str, Any] | None:
    curves, states = [], []
    known = states_of(log)
    for series in chart.series:
        try:
            curve = series_curve(log, series, start, end, pixels)
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


def band_data(bands: Sequence[Band], clock: PageClock) -> list[dict[str, Any]]:
    """Return the longest bands as JSON data, in order of time."""
    longest = sorted(bands, key=lambda band: band.start - band.end)[:BANDS]
    return [
        {
            "from": clock.seconds(band.start),
            "to": clock.seconds(band.end),
            "label": printable(band.label),
            "kind": band.kind,
            "source": printable(band.source),
        }
        for band in sorted(longest, key=lambda band: band.start)
    ]


#: Most rows of each table.
ROWS = 2000
#: Messages of a channel whose times are compared; longer channels get no longest gap.
COMPARED = 5_000_000


def _left_out(total: int, what: str) -> str:
    """Return a note on rows that are left out; empty for none."""
    return f'<p class="note">{total - ROWS} more {what} are not shown.</p>' if total > ROWS else ""


def topics_table(log: Log) -> str:
    """Return the table of channels: messages, rate, longest gap, and bytes."""
    channels = [ch for ch in log.channels.values() if len(ch)]
    empty = [ch.topic for ch in log.channels.values() if not len(ch) and not ch.reserved]
    sizes = log.index.sizes_are_cheap
    rows = []
    for ch in channels[:ROWS]:
        rate = ch.rate
        rows.append(
            (
                cell_text(ch.topic),
                cell_text(ch.schema.name),
                str(len(ch)),
                "" if rate is None else f"{rate:.4g} Hz",
                _longest(ch),
                _bytes(ch.bytes) if sizes else "",
            )
        )
    head = ("Topic", "Type", "Messages", "Rate", "Longest gap", "Size")
    out = table(head, rows, (2, 3, 4, 5)) + _left_out(len(channels), "topics")
    if empty:
        names = cell_text(", ".join(empty), 2000)
        out += f'<p class="note">Without messages: {names}</p>'
    return out


def _longest(ch: Channel) -> str:
    if not 1 < len(ch) <= COMPARED:
        return ""
    return f"{int(np.diff(np.sort(ch.times)).max()) / 1e9:.3f} s"


def _bytes(size: int) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size //= 1000
    return f"{size} {unit}"


def text_table(lines: Sequence[TextLine], moment: Callable[[int], str]) -> str:
    """Return the table of text lines; if there are too many, the most severe."""
    shown = list(lines)
    if len(shown) > ROWS:
        chosen = sorted(
            range(len(shown)), key=lambda i: (7 if shown[i].level is None else shown[i].level, i)
        )[:ROWS]
        shown = [shown[i] for i in sorted(chosen)]
    rows = []
    for line in shown:
        level = level_name(line.level)
        rows.append(
            (
                moment(line.time),
                f'<span class="{_severity(line.level)}">{level}</span>',
                cell_text(line.source, 60),
                cell_text(line.text),
            )
        )
    return table(("Time", "Level", "Source", "Text"), rows, (0,)) + _left_out(
        len(lines), "lines of less severe levels"
    )


def _severity(level: int | None) -> str:
    if level is None or level > 4:
        return "note"
    return "warn" if level == 4 else "bad"


def parameters_table(listed: Sequence[Parameter], moment: Callable[[int], str]) -> str:
    """Return the table of parameters: changed ones first, then those that differ from a default."""
    order = sorted(listed, key=lambda p: (not p.changes, not differs(p), p.name))
    rows = []
    for parameter in order[:ROWS]:
        changes = ", ".join(
            f"{moment(c.time)} → {cell_text(_short(c.value), 40)}" for c in parameter.changes[:8]
        )
        if len(parameter.changes) > 8:
            changes += f" and {len(parameter.changes) - 8} more"
        defaults = ", ".join(f"{value}" for value in dict.fromkeys(map(_short, parameter.defaults.values())))
        rows.append(
            (
                cell_text(parameter.name, 80),
                cell_text(_short(parameter.value), 60),
                cell_text(defaults, 60),
                changes,
            )
        )
    return table(("Parameter", "Value", "Default", "Changes"), rows, (1, 2)) + _left_out(
        len(listed), "parameters"
    )


def _short(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.7g}"
    if isinstance(value, bytes):
        return packed(np.frombuffer(value[:30], np.uint8))
    return str(value)


def problems_table(log: Log) -> str:
    """Return the table of problems with their places in the file."""
    rows = [
        (
            str(problem.offset),
            str(problem.size),
            '<span class="bad">yes</span>' if problem.lost else "no",
            cell_text(problem.code, 40),
            cell_text(problem.text),
        )
        for problem in log.problems[:ROWS]
    ]
    return table(("Byte", "Bytes", "Lost", "Code", "What"), rows, (0, 1)) + _left_out(
        len(log.problems), "problems"
    )


def facts_list(pairs: Sequence[tuple[str, str]]) -> str:
    """Return pairs of label and value as a list."""
    return (
        "<dl>"
        + "".join(f"<div><dt>{escape(a)}</dt><dd>{cell_text(b)}</dd></div>" for a, b in pairs)
        + "</dl>"
    )


def metadata_table(log: Log) -> str:
    """Return the table of metadata that are short values."""
    rows = [
        (cell_text(name, 80), cell_text(_short(value), 200))
        for name, value in log.metadata.items()
        if isinstance(value, (str, int, float)) and len(str(value)) < LONGEST
    ]
    return table(("Name", "Value"), rows[:ROWS])


#: Most marks of text lines above the charts.
MARKS = 500
#: Charts before those that are folded.
CHARTS = 12
#: Most facts of one section that are shown.
FACTS = 40

_BODY = """<header>
<h1>{title}</h1>
{facts}
<div class="tools"><button id="whole" type="button">Whole time</button>
<button id="theme" type="button">Dark or light</button></div>
</header>
<nav aria-label="Sections">{links}</nav>
<main>
{sections}
</main>
<footer>Drag in a chart: zoom. Double-click, or the key 0: whole time. Click a name: hide or show.
Made by logreel {version}; works offline.</footer>
<noscript>Charts cannot be zoomed without JavaScript.</noscript>"""


def report_page(
    log: Log,
    clock: PageClock,
    shift: int | None,
    result: Incidents,
    bands: Sequence[Band],
    lines: Sequence[TextLine],
    panels: Sequence[dict[str, Any]],
    tracks: DrawnTracks | None,
    part: bool = False,
) -> str:
    """Return the text of the page.

    result  what happened in the part that is shown
    shift  ns from the log's clock to UTC if times are UTC; None: seconds since the start
    part   whether charts, track and text show a part of the log
    """

    def label(time: int) -> str:
        return f"{clock.seconds(time):.2f} s" if shift is None else utc_text(time + shift, 3)[11:-1]

    def moment(time: int, end: int | None = None, panel: int | None = None) -> str:
        extent = "" if end is None else f' data-to="{clock.seconds(end):.6f}"'
        extent += "" if panel is None else f' data-chart="chart-{panel}"'
        text = label(time) + ("" if end is None or label(end) == label(time) else f" … {label(end)}")
        return f'<button type="button" class="at" data-at="{clock.seconds(time):.6f}"{extent}>{text}</button>'

    texts = {
        "Findings": _findings(result, panels, moment),
        "Track": _track(tracks),
        "What happened": _sections(result.summary),
        "Charts": _charts(panels),
        "Text": text_table(lines, moment) if lines else "",
        "Parameters": _folded(len(log.parameters), parameters_table(list(log.parameters.values()), moment)),
        "Topics": topics_table(log),
        "Problems": problems_table(log) if log.problems else "",
        "About the file": _folded(len(log.metadata), metadata_table(log)),
    }
    filled = {name: text for name, text in texts.items() if text}
    ids = {name: name.lower().replace(" ", "-") for name in filled}
    data = {
        "utc": shift is not None,
        "panels": [
            {name: value for name, value in panel.items() if name not in ("svg", "series")}
            for panel in panels
        ],
        **_time_data(clock, bands, lines),
        "track": _track_data(tracks, clock),
    }
    title = cell_text(os.path.basename(log.name) or "log", 200)
    body = _BODY.format(
        version=__version__,
        title=title,
        facts=facts_list([*facts(log), *_counts(log), *_part(clock, shift, part)]),
        links="".join(f'<a href="#{ids[name]}">{name}</a>' for name in filled),
        sections="\n".join(
            f'<section id="{ids[name]}"><h2>{name}</h2>{text}</section>' for name, text in filled.items()
        ),
    )
    return page(title, body, data, "report.css", ["plot.js", "report.js"])


def _time_data(clock: PageClock, bands: Sequence[Band], lines: Sequence[TextLine]) -> dict[str, Any]:
    """Return the span of the page, the bands, and the marks of the most severe lines of text."""
    severe = sorted(
        (line for line in lines if line.level is not None and line.level <= WARNING),
        key=lambda line: 7 if line.level is None else line.level,
    )
    return {
        "span": [clock.seconds(clock.first), clock.seconds(clock.last)],
        "bands": band_data(bands, clock),
        "marks": [
            # Texts before the first message of data, and behind the last, stand at the ends.
            {
                "t": clock.seconds(min(max(line.time, clock.first), clock.last)),
                "level": line.level,
                "text": printable(line.text)[:200],
            }
            for line in severe[:MARKS]
        ],
    }


def _counts(log: Log) -> list[tuple[str, str]]:
    channels = sum(1 for ch in log.channels.values() if len(ch) and not ch.reserved)
    lost = sum(problem.lost for problem in log.problems)
    problems = f"{len(log.problems)}, {lost} with lost data" if log.problems else "none"
    size = f"{log.size / 1e6:.1f} MB" if log.size >= 1e5 else f"{log.size} bytes"
    return [("Size", size), ("Messages", f"{log.message_count} in {channels} topics"), ("Problems", problems)]


def _part(clock: PageClock, shift: int | None, part: bool) -> list[tuple[str, str]]:
    if not part:
        return []
    begins = f"{clock.seconds(clock.first):.2f} s" if shift is None else utc_text(clock.first + shift, 3)
    return [("Shown", f"{duration_text(clock.last - clock.first)} from {begins}")]


def _findings(
    result: Incidents, panels: Sequence[dict[str, Any]], moment: Callable[[int, int, int | None], str]
) -> str:
    """Return what happened: faults, worst first, with intervals and the chart that shows them; events; notes."""
    shown = [panel["series"] if panel.get("kind") != "spectrum" else () for panel in panels]

    def item(incident: Incident) -> str:
        panel = chart_of(incident.series, shown)
        first, *others = [moment(*span, panel) for span in incident.spans[: OTHERS + 1]] or [""]
        mark = incident.severity or ""
        sides = [
            cell_text(incident.source, 200) if mark else "",
            f"also: {cell_text('; '.join(incident.more), 600)}" if incident.more else "",
            f"also at {', '.join(others)}" if others else "",
            f"{more} more times" if (more := len(incident.spans) - len(others) - 1) > 0 else "",
            "" if panel is None else f'<a href="#chart-{panel}">{cell_text(panels[panel]["title"], 120)}</a>',
        ]
        side = " · ".join(part for part in sides if part)
        marked = f'<span class="mark">{mark}</span> ' if mark else ""
        about = f' <span class="from">{side}</span>' if side else ""
        return f'<li class="{CLASSES.get(mark, "event")}">{marked}{first} {cell_text(incident.text, 600)}{about}</li>'

    def listed(several: Sequence[Incident]) -> str:
        more = len(several) - LISTED
        rest = f'<p class="note">and {more} more</p>' if more > 0 else ""
        return f'<ul class="findings">{"".join(map(item, several[:LISTED]))}</ul>{rest}'

    faults = [incident for incident in result.faults if incident.severity != "note"]
    notes = [incident for incident in result.faults if incident.severity == "note"]
    text = listed(faults) if faults else f'<p class="good">{cell_text(looked_at(result), 2000)}</p>'
    if result.events:
        text += f"<h3>Events</h3>{listed(result.events)}"
    if notes:
        text += f"<details><summary>Notes ({len(notes)})</summary>{listed(notes)}</details>"
    return text


def _sections(about: Summary) -> str:
    """Return the facts of a summary; the recording is in the head, the text has a table, findings tell the events."""
    blocks = []
    for section in about:
        shown = [fact for fact in section.facts if not is_spoken(section, fact)]
        if section.key in {"recording", "text"} or not shown:
            continue
        rows = "".join(
            f'<tr class="{_mark(fact.level)}"><th scope="row">{cell_text(fact.label, 80)}</th>'
            f'<td title="{cell_text(fact.note, 200)}">{cell_text(fact.text, 600)}</td></tr>'
            for fact in shown[:FACTS]
        )
        more = len(shown) - FACTS
        rest = f'<p class="note">and {more} more</p>' if more > 0 else ""
        blocks.append(f"<div><h3>{cell_text(section.title, 80)}</h3><table>{rows}</table>{rest}</div>")
    return f'<div class="facts">{"".join(blocks)}</div>' if blocks else ""


def _mark(level: int | None) -> str:
    if level is None:
        return ""
    return "bad" if level <= ERROR else "warn"


def _track(tracks: DrawnTracks | None) -> str:
    if tracks is None:
        return ""
    names = "".join(
        f'<li><span class="key t{n % 7}"></span>{cell_text(track.name, 80)}</li>'
        for n, track in enumerate(tracks.tracks)
    )
    about = (
        f"Circle: start, square: end. Zero is at {cell_text(tracks.origin, 120)}. "
        f"{cell_text(tracks.tracks[0].name, 80)}: {cell_text(tracks.about)}."
    )
    if not all(track.near.all() for track in tracks.tracks):
        about += " Places far behind a jump lie outside of the drawing."
    if any(len(track.jumps) for track in tracks.tracks):
        about += " A cross marks where a track jumps, as no vehicle can move."
    return f'{svg(tracks, Drawing.around(tracks.tracks))}<ul class="keys">{names}</ul><p class="note">{about}</p>'


def _track_data(tracks: DrawnTracks | None, clock: PageClock) -> Any:
    if tracks is None:
        return None
    first, frame = tracks.tracks[0], Drawing.around(tracks.tracks)
    return {
        "times": [round(clock.seconds(t), 3) for t in first.times.tolist()],
        "x": [round(v, 1) for v in frame.x(first.right).tolist()],
        "y": [round(v, 1) for v in frame.y(first.up).tolist()],
    }


def _charts(panels: Sequence[dict[str, Any]]) -> str:
    if not panels:
        return ""
    about = "".join(
        f"<li>{cell_text(panel['title'])}: {cell_text(panel['about'], 600)}</li>" for panel in panels
    )
    # In the order of the data, by which the script finds the figure of each panel.
    numbered = list(enumerate(panels))
    drawn = _groups(numbered[:CHARTS])
    if rest := panels[CHARTS:]:
        names = ", ".join(dict.fromkeys(panel["group"] or panel["title"] for panel in rest))
        count = f"{len(rest)} more chart{'s' * (len(rest) != 1)}"
        summary_line = f"<summary>{count}: {cell_text(names, 300)}</summary>"
        drawn += f'<details class="more">{summary_line}{_groups(numbered[CHARTS:])}</details>'
    return (
        f'<div id="strip" aria-hidden="true"></div><div id="panels">{drawn}</div>'
        f'<details class="values"><summary>Charts as text</summary><ul>{about}</ul></details>'
    )


def _groups(numbered: Sequence[tuple[int, dict[str, Any]]]) -> str:
    return "".join(
        (f"<h3>{cell_text(group, 200)}</h3>" if group else "")
        + f'<div class="charts">{"".join(_figure(number, panel) for number, panel in grouped)}</div>'
        for group, grouped in groupby(numbered, lambda pair: pair[1]["group"])
    )


def _figure(number: int, panel: dict[str, Any]) -> str:
    unit = f" [{panel['unit']}]" if panel["unit"] else ""
    names = [
        curve["name"] + (f" [{curve['unit']}]" if curve["unit"] and not unit else "")
        for curve in panel["curves"]
    ]
    content = panel["svg"] + legend(names)
    return figure(panel["title"] + unit, 4, panel["about"], content, f"chart-{number}")


def _folded(count: int, text: str) -> str:
    if not count:
        return ""
    return f"<details><summary>{count} entries</summary>{text}</details>"


@dataclass(frozen=True, repr=False)
class Report(Brief):
    """A page about a log; ``logreel.report`` makes it.

    name      of the log
    html      the whole page, which needs no other file and no network
    findings  what went wrong in the part that is shown, worst first, as ``incidents`` finds it
    charts    titles of the charts that the page has
    inputs    names of the files of the log, which ``save`` does not replace
    """

    name: str
    html: str
    findings: tuple[Incident, ...]
    charts: tuple[str, ...]
    inputs: Sequence[str] = field(default=(), repr=False)

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


def report(
    log: Openable | Log,
    *,
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Return a Report: summary, findings, track, charts, text, parameters, topics and problems of a log.

    log         a path, or an open Log
    start, end  as for ``Channel.to_arrow``; topics, parameters and problems are always those of the whole log
    utc         UTC times, for logs with a known offset to UTC
    progress    called with the charts that are done, and their number

    The page has less than 8 MB for any log. Raises UsageError for an interval outside of the log, for an encrypted log
    that was not opened with ``decrypt=True``, and with *utc* for a log whose offset to UTC is unknown.
    """
    with as_open_log(log) as opened:
        decrypted_notes(opened)
        lo, hi = interval(opened, start, end)
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
        proposed += charts_for(result.faults, proposed)
        spans = [band for band in bands(opened) if band.start < clock.last and band.end > clock.first]
        lines = list(lines_between(opened, None, lo, hi, repeated=False))
        panels = panels_of(opened, proposed, clock, spans, lo, hi, progress)
        tracks = find_tracks(opened, proposed, lo, hi)
        text = report_page(
            opened,
            clock,
            shift,
            result,
            spans,
            lines,
            panels,
            tracks,
            part=lo is not None or hi is not None,
        )
        titles = tuple(panel["title"] for panel in panels)
        return Report(opened.name, text, result.faults, titles, inputs_of(opened))
