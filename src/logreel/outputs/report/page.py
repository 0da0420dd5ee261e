"""The page of a report: HTML with its data, style and scripts, which loads nothing."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from logreel._version import __version__
from logreel.lenses.meaning import ERROR
from logreel.log.times import duration_text, utc_text
from logreel.ops.inspect.info import facts
from logreel.outputs import vendor
from logreel.outputs.plot.printable import printable
from logreel.outputs.report import tables
from logreel.outputs.report.drawn import Clock, band_data
from logreel.outputs.report.tables import cell_text
from logreel.outputs.report.track import Drawing, svg

if TYPE_CHECKING:
    from logreel.lenses.charts import Band
    from logreel.log.log import Log
    from logreel.log.scan import TextLine
    from logreel.ops.inspect.summary import Summary
    from logreel.outputs.report.findings import Told
    from logreel.outputs.report.track import DrawnTracks

#: Most marks of text lines above the charts.
MARKS = 500
#: Most facts of one section that are shown.
FACTS = 40

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="logreel {version}">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
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
<noscript>Charts need JavaScript; everything else on this page can be read without.</noscript>
<script type="application/json" id="data">{data}</script>
<script>{library}</script>
<script>{script}</script>
</body>
</html>
"""


def page(
    log: Log,
    clock: Clock,
    shift: int | None,
    about: Summary,
    told: Sequence[Told],
    bands: Sequence[Band],
    lines: Sequence[TextLine],
    panels: Sequence[dict[str, Any]],
    tracks: DrawnTracks | None,
    part: bool = False,
) -> str:
    """Return the text of the page.

    about  what happened in the log
    shift  ns from the log's clock to UTC if times are UTC; None: seconds since the start
    part   whether charts, track and text show a part of the log
    """

    def moment(time: int) -> str:
        seconds = clock.seconds(time)
        label = f"{seconds:.2f} s" if shift is None else utc_text(time + shift, 3)[11:-1]
        return f'<button type="button" class="at" data-at="{seconds:.6f}">{label}</button>'

    found = {
        "Findings": _findings(told, moment),
        "Track": _track(tracks),
        "What happened": _sections(about),
        "Charts": _charts(panels),
        "Text": tables.text(lines, moment) if lines else "",
        "Parameters": _folded(len(log.parameters), tables.parameters(list(log.parameters.values()), moment)),
        "Topics": tables.topics(log),
        "Problems": tables.problems(log) if log.problems else "",
        "About the file": _folded(len(log.metadata), tables.metadata(log)),
    }
    there = {name: text for name, text in found.items() if text}
    ids = {name: name.lower().replace(" ", "-") for name in there}
    frame = Drawing.around(tracks.tracks) if tracks else None
    style = _style()
    library, script = vendor.read("uplot", "uPlot.iife.min.js"), _script()
    data = {
        "utc": shift is not None,
        "span": [clock.seconds(clock.first), clock.seconds(clock.last)],
        "panels": panels,
        "bands": band_data(bands, clock),
        "marks": [
            {"t": clock.seconds(line.time), "level": line.level, "text": printable(line.text)[:200]}
            for line in sorted(lines, key=lambda line: 7 if line.level is None else line.level)[:MARKS]
            if line.level is not None and line.level <= 4
        ],
        "track": _track_data(tracks, frame, clock),
    }
    title = cell_text(os.path.basename(log.name) or "log", 200)
    return _PAGE.format(
        version=__version__,
        policy=html.escape(_policy(style, library, script), True),
        title=title,
        style=style,
        facts=tables.facts([*facts(log), *_counts(log), *_part(clock, shift, part)]),
        links="".join(f'<a href="#{ids[name]}">{name}</a>' for name in there),
        sections="\n".join(
            f'<section id="{ids[name]}"><h2>{name}</h2>{text}</section>' for name, text in there.items()
        ),
        # Text of a log must not end the element.
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        library=library,
        script=script,
    )


def _style() -> str:
    own = files(__package__).joinpath("static", "report.css").read_text("utf-8")
    return vendor.read("uplot", "uPlot.min.css") + own


def _script() -> str:
    charts = files("logreel.outputs.plot").joinpath("static", "plot.js").read_text("utf-8")
    return charts + files(__package__).joinpath("static", "report.js").read_text("utf-8")


def _policy(style: str, *scripts: str) -> str:
    """Return a Content-Security-Policy that allows this style and these scripts, and no request."""

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    allowed = " ".join(map(digest, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {digest(style)}; base-uri 'none'; form-action 'none'"


def _counts(log: Log) -> list[tuple[str, str]]:
    channels = sum(1 for ch in log.channels.values() if len(ch) and not ch.reserved)
    lost = sum(problem.lost for problem in log.problems)
    problems = f"{len(log.problems)}, {lost} with lost data" if log.problems else "none"
    size = f"{log.size / 1e6:.1f} MB" if log.size >= 1e5 else f"{log.size} bytes"
    return [("Size", size), ("Messages", f"{log.message_count} in {channels} topics"), ("Problems", problems)]


def _part(clock: Clock, shift: int | None, part: bool) -> list[tuple[str, str]]:
    if not part:
        return []
    begins = f"{clock.seconds(clock.first):.2f} s" if shift is None else utc_text(clock.first + shift, 3)
    return [("Shown", f"{duration_text(clock.last - clock.first)} from {begins}")]


def _findings(told: Sequence[Told], moment: Any) -> str:
    items = [
        f'<li class="{one.severity}"><span class="mark">{one.severity}</span> '
        f"{moment(one.time) if one.time is not None else ''} {cell_text(one.text, 600)}</li>"
        for one in told
    ]
    return f'<ul class="findings">{"".join(items)}</ul>'


def _sections(about: Summary) -> str:
    """Return the facts of a summary; the recording itself is in the head, and the text has a table."""
    blocks = []
    for section in about:
        if section.key in {"recording", "text"}:
            continue
        rows = "".join(
            f'<tr class="{_mark(fact.level)}"><th scope="row">{cell_text(fact.label, 80)}</th>'
            f'<td title="{cell_text(fact.note, 200)}">{cell_text(fact.text, 600)}</td></tr>'
            for fact in section.facts[:FACTS]
        )
        more = len(section.facts) - FACTS
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
    return f'{svg(tracks, Drawing.around(tracks.tracks))}<ul class="keys">{names}</ul><p class="note">{about}</p>'


def _track_data(tracks: DrawnTracks | None, frame: Drawing | None, clock: Clock) -> Any:
    if tracks is None or frame is None:
        return None
    first = tracks.tracks[0]
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
    return (
        '<div id="strip" aria-hidden="true"></div><div id="panels"></div>'
        f'<details class="values"><summary>Charts as text</summary><ul>{about}</ul></details>'
    )


def _folded(count: int, text: str) -> str:
    if not count:
        return ""
    return f"<details><summary>{count} entries</summary>{text}</details>"
