"""The page of a report: sections, tables, and the data that its script draws."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from logreel._version import __version__
from logreel.lenses.facts import ERROR, WARNING, Band, Series
from logreel.log.log import Channel, Log
from logreel.log.scan import Parameter, TextLine
from logreel.log.times import duration_text, utc_text
from logreel.meaning.notes import Note
from logreel.ops.inspect.incidents import Incident, Incidents, is_spoken, looked_at
from logreel.ops.inspect.info import facts
from logreel.ops.inspect.params import differs
from logreel.ops.inspect.summary import Summary
from logreel.ops.inspect.text import level_name
from logreel.outputs.page.chart_svg import PageClock, figure, legend
from logreel.outputs.page.html import LONGEST, cell_text, packed, page, printable, table
from logreel.outputs.page.track import Drawing, DrawnTracks, svg

#: Kind of a panel that is a picture or a sentence, which scripts leave as it is.
STILL = "still"
#: Classes of what deserves attention, by severity.
CLASSES: dict[str | None, str] = {"error": "bad", "warn": "warn", "note": "note"}
#: Findings and events that are listed one by one, and other intervals of a finding.
LISTED, OTHERS = 60, 6


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


#: Most bands that are drawn, longest first.
BANDS = 300


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
#: Sections about the whole log.
WHOLE = ("What happened", "Parameters", "Topics", "Problems", "About the file")
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


@dataclass(frozen=True, slots=True)
class ReportContents:
    """What a page about a log shows.

    shift   ns from the log's clock to UTC if times are UTC; None: seconds since the start
    result  what happened in the part that is shown
    notes   those of people
    part    whether charts, track and text show a part of the log
    is_view  whether the page is what a person saw: without what is about the whole log
    undrawn  titles of panels that it lacks
    """

    clock: PageClock
    shift: int | None
    result: Incidents
    notes: Sequence[Note]
    bands: Sequence[Band]
    lines: Sequence[TextLine]
    panels: Sequence[dict[str, Any]]
    tracks: DrawnTracks | None
    part: bool = False
    is_view: bool = False
    undrawn: Sequence[str] = ()


def report_page(log: Log, contents: ReportContents) -> str:
    """Return the text of the page."""
    clock, shift, lines, panels = contents.clock, contents.shift, contents.lines, contents.panels

    def label(time: int) -> str:
        return f"{clock.seconds(time):.2f} s" if shift is None else utc_text(time + shift, 3)[11:-1]

    def moment(time: int, end: int | None = None, panel: int | None = None) -> str:
        extent = "" if end is None else f' data-to="{clock.seconds(end):.6f}"'
        extent += "" if panel is None else f' data-chart="chart-{panel}"'
        text = label(time) + ("" if end is None or label(end) == label(time) else f" … {label(end)}")
        return f'<button type="button" class="at" data-at="{clock.seconds(time):.6f}"{extent}>{text}</button>'

    texts = {
        "Findings": _findings(contents.result, panels, moment),
        "Notes": _notes(contents.notes, moment),
        "Track": _track(contents.tracks),
        "What happened": _sections(contents.result.summary),
        "Charts": _charts(panels) + _undrawn(contents.undrawn),
        "Text": text_table(lines, moment) if lines else "",
        "Parameters": _folded(len(log.parameters), parameters_table(list(log.parameters.values()), moment)),
        "Topics": topics_table(log),
        "Problems": problems_table(log) if log.problems else "",
        "About the file": _folded(len(log.metadata), metadata_table(log)),
    }
    left_out = WHOLE if contents.is_view else ()
    filled = {name: text for name, text in texts.items() if text and name not in left_out}
    ids = {name: name.lower().replace(" ", "-") for name in filled}
    data = {
        "utc": shift is not None,
        "panels": [
            {name: value for name, value in panel.items() if name not in ("svg", "series", "said")}
            for panel in panels
        ],
        **_time_data(contents),
        "track": _track_data(contents.tracks, clock),
    }
    title = cell_text(os.path.basename(log.name) or "log", 200)
    body = _BODY.format(
        version=__version__,
        title=title,
        facts=facts_list([*facts(log), *_counts(log), *_part(contents)]),
        links="".join(f'<a href="#{ids[name]}">{name}</a>' for name in filled),
        sections="\n".join(
            f'<section id="{ids[name]}"><h2>{name}</h2>{text}</section>' for name, text in filled.items()
        ),
    )
    pictures = any(panel.get("kind") == STILL for panel in panels)
    return page(title, body, data, "report.css", ["plot.js", "report.js"], pictures=pictures)


def _time_data(contents: ReportContents) -> dict[str, Any]:
    """Return the span of the page, the bands with the notes, and the marks of the most severe lines of text."""
    clock, lines = contents.clock, contents.lines
    noted = [
        Band(note.begin, note.begin if note.end is None else note.end, _title(note), "note", note.author)
        for note in contents.notes
    ]
    severe = sorted(
        (line for line in lines if line.level is not None and line.level <= WARNING),
        key=lambda line: 7 if line.level is None else line.level,
    )
    return {
        "span": [clock.seconds(clock.first), clock.seconds(clock.last)],
        "bands": band_data([*contents.bands, *noted], clock),
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


def _part(contents: ReportContents) -> list[tuple[str, str]]:
    if not contents.part:
        return []
    clock, shift = contents.clock, contents.shift
    begins = f"{clock.seconds(clock.first):.2f} s" if shift is None else utc_text(clock.first + shift, 3)
    return [("Shown", f"{duration_text(clock.last - clock.first)} from {begins}")]


def _findings(
    result: Incidents, panels: Sequence[dict[str, Any]], moment: Callable[[int, int, int | None], str]
) -> str:
    """Return what happened: faults, worst first, with intervals and the chart that shows them; events; notes."""
    shown = [panel["series"] if panel.get("kind") not in ("spectrum", STILL) else () for panel in panels]

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


def _title(note: Note) -> str:
    """Return the title of a note, or the first line of its text."""
    return note.title or note.text.strip().splitlines()[0]


def _notes(notes: Sequence[Note], moment: Callable[[int], str]) -> str:
    """Return the notes of people as a list; texts keep their lines."""
    items = []
    for note in notes:
        until = "" if note.end is None else f" to {moment(note.end)}"
        author = f' <span class="note">{cell_text(note.author)}</span>' if note.author else ""
        text = "<br>".join(cell_text(line, 2000) for line in note.text.splitlines()) if note.title else ""
        more = f"<p>{text}</p>" if text else ""
        items.append(
            f'<li class="{note.colour or "usual"}">{moment(note.begin)}{until} '
            f"<b>{cell_text(_title(note), 300)}</b>{author}{more}</li>"
        )
    return f'<ul class="notes">{"".join(items)}</ul>' if items else ""


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


def _undrawn(titles: Sequence[str]) -> str:
    if not titles:
        return ""
    return f'<p class="note">Seen, but not on this page: {cell_text(", ".join(titles), 600)}.</p>'


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
    said = f'<p class="note">{cell_text(said, 600)}</p>' if (said := panel.get("said")) else ""
    content = panel["svg"] + (legend(names) if names else "") + said
    return figure(panel["title"] + unit, 4, panel["about"], content, f"chart-{number}")


def _folded(count: int, text: str) -> str:
    if not count:
        return ""
    return f"<details><summary>{count} entries</summary>{text}</details>"
