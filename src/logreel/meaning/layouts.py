"""Layout files: panels of curves that are named by topic and field or by meaning, and what of them a log has."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

from logreel.dataclass import dataclass, field, replace
from logreel.errors import LogError, UsageError
from logreel.io.atomic_file import replace_text
from logreel.lenses.facts import LINE, XY, Chart, Series
from logreel.log.log import Log
from logreel.log.topic_fields import check_fields
from logreel.meaning.charts import charts
from logreel.meaning.curves import TIMES, function_named, paths_of

#: Versions of layouts that are read; the last one is written.
VERSIONS = (1, 2)
#: Bytes of a file, panels of a layout, curves of a panel, and characters of a text.
BYTES, PANELS, CURVES, CHARACTERS = 1 << 20, 200, 64, 2000
#: Bytes of all layouts that are kept, kinds of vehicles, layouts of each, and characters of a name.
KEPT_BYTES, VEHICLES, NAMED, NAME = 8 << 20, 100, 100, 120
#: Kind of a panel that has curves over time.
PLOT = "plot"
#: Where a panel stands: in a row of its own, at the right of the panel before it, or below it in the same row.
PLACES = ("row", "right", "below")
#: Members of a curve that are text.
TEXTS = ("topic", "field", "function", "where", "sql", "means", "label", "unit", "log")
#: Members of a panel that are curves by themselves.
PAIRS = ("x", "y")


@dataclass(frozen=True, slots=True)
class _Rule:
    """Which series of a chart has a meaning: patterns of the title of the chart and of the name, and units."""

    title: str
    name: str
    units: tuple[str, ...] = ()

    def fits(self, chart: Chart, series: Series) -> bool:
        """Return whether a series of a chart has the meaning."""
        return (
            (not self.units or series.unit in self.units)
            and re.search(self.title, chart.title, re.I) is not None
            and re.fullmatch(self.name, series.name, re.I) is not None
        )


def _axes(what: str, title: str, *units: str) -> dict[str, tuple[_Rule, ...]]:
    return {f"{what} {axis}": (_Rule(title, axis, units),) for axis in "xyz"}


#: Rules of each meaning, the best first. They read charts, which formats and lenses make of any log.
MEANINGS: Mapping[str, tuple[_Rule, ...]] = {
    "roll": (_Rule("", "roll", ("deg",)),),
    "pitch": (_Rule("", "pitch", ("deg",)),),
    "yaw": (_Rule("", "yaw", ("deg",)),),
    "altitude": (_Rule(r"\baltitude$", ".*", ("m",)), _Rule(r"\bheight\b", ".*", ("m", ""))),
    "speed": (_Rule(r"\bspeed\b", ".*", ("m/s", "")),),
    **_axes("position", r"\bposition$", "m"),
    **_axes("velocity", r"(?<!angular )\bvelocity$", "m/s"),
    **_axes("acceleration", r"\bacceleration$", "m/s²"),
    **_axes("turn rate", r"(\bangular velocity|\bturn rates?)\b", "rad/s", "deg/s"),
    "battery voltage": (_Rule("batter", "voltage(_v)?"),),
    "battery current": (_Rule("batter", "current(_a)?"),),
    "battery charge": (_Rule("batter", "remaining|charge|percentage"), _Rule(r"\b(charge|battery)$", ".*")),
    "steering": (_Rule("", "steer(ing)?"),),
    "throttle": (_Rule("", "throttle"),),
    "brake": (_Rule("", "brake"),),
    "engine speed": (_Rule("", "rpm"),),
}


def meanings(log: Log, proposed: Iterable[Chart] | None = None) -> dict[str, Series]:
    """Return the series of *log* that has each of MEANINGS, for those that it has.

    proposed  ``charts(log)``, where they are known
    """
    pairs = [(c, s) for c in (charts(log) if proposed is None else proposed) for s in c.series]
    known: dict[str, Series] = {}
    for name, rules in MEANINGS.items():
        matching = (series for rule in rules for chart, series in pairs if rule.fits(chart, series))
        if (first := next(matching, None)) is not None:
            known[name] = first
    return known


@dataclass(frozen=True, slots=True)
class LayoutCurve:
    """One curve of a layout.

    topic  of the log it was made for, or the end of a topic without its namespace, ``imu/data``; empty: by *means*
    field, function, where, label, unit  as of ``Series``
    sql    an expression over the fields of the topic, which only the viewer draws
    means  one of MEANINGS, which finds the curve where there is no such topic and field
    """

    topic: str = ""
    field: str = ""
    function: str = ""
    where: str = ""
    sql: str = ""
    means: str = ""
    label: str = ""
    unit: str = ""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> LayoutCurve:
        """Return the curve that a member of a layout describes; raises UsageError for what is no text."""
        for name in TEXTS:
            if not isinstance(data.get(name) or "", str) or len(data.get(name) or "") > CHARACTERS:
                raise UsageError(f"{name} of a curve is no text of at most {CHARACTERS} characters")
        return cls(**{name: data[name] for name in TEXTS if data.get(name) and name != "log"})

    @property
    def name(self) -> str:
        """What it is called in sentences."""
        named = f"{self.topic}.{self.field or self.sql or self.function}" if self.topic else ""
        return (
            f"{named} ({self.means})"
            if named and self.means
            else named or self.means or "a curve without a topic"
        )


@dataclass(frozen=True, slots=True)
class LayoutPanel:
    """One panel of a layout: what shows it, such as ``plot`` or ``map``, its title and its curves.

    equal  whether both axes of a curve over another one have the same scale
    """

    panel: str
    title: str = ""
    curves: tuple[LayoutCurve, ...] = ()
    equal: bool = False


@dataclass(frozen=True, slots=True)
class ViewLayout:
    """A layout that was checked.

    panels  in their order
    data    all of it, as the page of the viewer takes it
    """

    panels: tuple[LayoutPanel, ...]
    data: Mapping[str, Any] = field(repr=False)


def read_layout(path: str | os.PathLike[str]) -> ViewLayout:
    """Return the layout in a file; raises UsageError for a file that is none, OSError if it cannot be read."""
    with open(path, "rb") as file:
        text = file.read(BYTES + 1)
    if len(text) > BYTES:
        raise UsageError(f"is no layout: it has more than {BYTES} bytes", path=os.fspath(path))
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"is no layout: {error or 'it is nested too deep'}", path=os.fspath(path)) from error
    try:
        return checked_layout(data)
    except UsageError as error:
        raise UsageError(f"is no layout: {error.text}", path=os.fspath(path)) from error


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def checked_layout(data: Any) -> ViewLayout:
    """Return a layout from JSON data that may come from anybody; raises UsageError that names what is wrong."""
    if not isinstance(data, Mapping):
        raise UsageError("it is no JSON object")
    if data.get("logreel", "layout") != "layout":
        raise UsageError(f"it says that it is a {data['logreel']!r:.40}")
    version = data.get("version", VERSIONS[-1])
    if version not in VERSIONS or isinstance(version, bool):
        raise UsageError(f"it has version {version!r:.40}, this logreel reads up to {VERSIONS[-1]}")
    panels = data.get("panels")
    if not isinstance(panels, list):
        raise UsageError("it has no list of panels")
    if len(panels) > PANELS:
        raise UsageError(f"it has {len(panels)} panels, at most {PANELS} are read")
    return ViewLayout(tuple(_checked_panel(panel, i) for i, panel in enumerate(panels)), data)


def _checked_panel(panel: Any, number: int) -> LayoutPanel:
    where = f"panels[{number}]"
    if not isinstance(panel, Mapping):
        raise UsageError(f"{where} is no object")
    shown, title = panel.get("kind"), panel.get("title") or ""
    if not isinstance(shown, str) or not shown or len(shown) > CHARACTERS:
        raise UsageError(f"{where}.kind is no text")
    if not isinstance(title, str) or len(title) > CHARACTERS:
        raise UsageError(f"{where}.title is no text of at most {CHARACTERS} characters")
    if panel.get("at", PLACES[0]) not in PLACES:
        raise UsageError(f"{where}.at is not one of {', '.join(PLACES)}")
    for name in ("height", "wide", "tall"):
        size = panel.get(name, 1)
        if isinstance(size, bool) or not isinstance(size, int | float) or not 0 < size < math.inf:
            raise UsageError(f"{where}.{name} is no number above 0")
    curves: list[LayoutCurve] = []
    for place, curve in _curves_of(panel):
        if not isinstance(curve, Mapping):
            raise UsageError(f"{where}.{place} is no object")
        if len(curves) == CURVES:
            raise UsageError(f"{where} has more than {CURVES} curves")
        try:
            curves.append(LayoutCurve.of(curve))
        except UsageError as error:
            raise UsageError(f"{where}.{place}: {error.text}") from error
    return LayoutPanel(shown, title, tuple(curves), panel.get("equal") is True)


def _curves_of(panel: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each curve of a panel with its place in it; hidden ones are left out."""
    series = panel.get("series")
    if isinstance(series, list):
        for i, curve in enumerate(series):
            if not (isinstance(curve, Mapping) and curve.get("hidden")):
                yield f"series[{i}]", curve
    elif series is not None:
        yield "series", series
    # Limits of a vertical axis have the name of a curve.
    yield from ((name, panel[name]) for name in PAIRS if isinstance(panel.get(name), Mapping))
    if panel.get("topic") or panel.get("means"):
        yield "topic", panel


def found_series(log: Log, wanted: LayoutCurve, known: Mapping[str, Series]) -> Series | None:
    """Return the series of *log* that a curve of a layout names, else the one that it means; None if there is none.

    known  what ``meanings`` returned
    """
    for topic in _topics(log, wanted.topic):
        series = Series(topic, wanted.field, wanted.function, wanted.label, wanted.unit, wanted.where)
        if wanted.sql or _has(log, series):
            return series
    if (meant := known.get(wanted.means)) is None:
        return None
    return replace(meant, label=wanted.label or meant.name)


def found_charts(log: Log, layout: ViewLayout) -> tuple[list[Chart], list[str]]:
    """Return the plots of a layout as charts of *log*, with the curves that it has, and a sentence for all else.

    Plots are those over time, and those of one curve over another one.
    """
    known, plots = meanings(log), list[Chart]()
    left, others = list[str](), Counter[str]()
    for number, panel in enumerate(layout.panels, 1):
        if panel.panel not in (PLOT, XY):
            others[panel.panel] += 1
            continue
        where = f"panel {number}" + (f", {panel.title!r}," if panel.title else "")
        curves = list[Series]()
        for wanted in panel.curves:
            series = found_series(log, wanted, known)
            if series is None:
                left.append(f"{where} lacks {wanted.name}: the log has no such field")
            elif wanted.sql and series.topic == wanted.topic:
                left.append(f"{where} lacks {wanted.name}: only the viewer draws SQL expressions")
            else:
                curves.append(series)
        if panel.panel == XY and len(panel.curves) != 2:
            left.append(f"{where} lacks one of its two curves")
        elif panel.panel == XY and len(curves) == 2:
            plots.append(Chart(panel.title, tuple(curves), XY, equal=panel.equal))
        elif panel.panel == PLOT and curves:
            plots.append(Chart(panel.title, tuple(curves), LINE))
        elif not panel.curves:
            left.append(f"{where} has no curves")
    if others:
        counted = ", ".join(f"{count} {other}" for other, count in others.items())
        left.append(f"panels that only the viewer shows: {counted}")
    return plots, left


def _topics(log: Log, topic: str) -> Iterator[str]:
    """Yield the topics that a name can mean, the best first.

    That is the topic itself; those that end with a name without a slash in front; and those that differ only by their
    first part, which is the name of the robot in many fleets.
    """
    if not topic:
        return
    if topic in log.channels:
        yield topic
    parts = topic.strip("/").split("/")
    for other in log.channels:
        theirs = other.strip("/").split("/")
        ends = not topic.startswith("/") and len(theirs) > len(parts) and theirs[-len(parts) :] == parts
        shifted = (
            theirs in (parts[1:], parts)
            or parts == theirs[1:]
            or (len(parts) > 1 and theirs[1:] == parts[1:])
        )
        if other != topic and (ends or shifted):
            yield other


def _has(log: Log, series: Series) -> bool:
    ch = log.channels[series.topic]
    if not len(ch):
        return False
    with suppress(LogError):
        if series.function and function_named(series.function).inputs == TIMES:
            return True
        check_fields(ch, paths_of(ch, series.field))
        return bool(series.field)
    return False


class KeptLayouts:
    """Layouts that a person keeps by name, for each kind of vehicle, in one file: JSON.

    path  of the file; None: nothing is kept
    why   why nothing is kept
    """

    def __init__(self, path: Path | None, why: str = "") -> None:
        self.path, self._why, self._lock = path, why, Lock()

    @property
    def why(self) -> str:
        """Why layouts are not kept; empty if they are."""
        if self.path is None:
            return self._why
        folder = next((parent for parent in self.path.parents if parent.exists()), self.path.parent)
        return "" if os.access(folder, os.W_OK) else f"the folder {folder} cannot be written to"

    def read(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """Return layouts by kind of vehicle and name, and the name of the one that each kind begins with.

        What is not as it was written is left out.
        """
        data: dict[str, Any] = {}
        with suppress(LogError):
            data = self._content()
        layouts, begin = (
            part if isinstance(part := data.get(name), dict) else {} for name in ("layouts", "begin")
        )
        kept = {
            vehicle: {name: layout for name, layout in named.items() if _is_layout(layout)}
            for vehicle, named in layouts.items()
            if isinstance(named, dict)
        }
        return kept, {vehicle: name for vehicle, name in begin.items() if name in kept.get(vehicle, {})}

    def _content(self) -> dict[str, Any]:
        """Return what the file holds, nothing if there is none; raises LogError if it cannot be read."""
        data: Any = {}
        if self.path is not None:
            try:
                with suppress(FileNotFoundError), open(self.path, "rb") as file:
                    data = json.loads(file.read(KEPT_BYTES + 1)[:KEPT_BYTES], parse_constant=_no_number)
            except (OSError, ValueError, RecursionError) as error:
                raise LogError(f"{self.path} cannot be read: move it away, or mend it ({error})") from error
        return data if isinstance(data, dict) else {}

    def change(
        self,
        vehicle: Any,
        name: Any,
        layout: Any = None,
        *,
        replaces: Any = None,
        begins: bool | None = None,
    ) -> None:
        """Keep a layout, or remove the one of this name, or say whether logs of the kind begin with it.

        layout    None: it is removed
        replaces  name that it had before, if it gets another one
        begins    in place of these

        Raises UsageError for what is no layout or no name, and for too many; LogError if the file cannot be written.
        """
        if self.why or self.path is None:
            raise UsageError(self.why)
        names = (vehicle, name, name if replaces is None else replaces)
        if not all(isinstance(text, str) and 0 < len(text) <= NAME for text in names):
            raise UsageError(f"a layout has a name and a kind of vehicle of at most {NAME} characters")
        if layout is not None:
            checked_layout(layout)
        with self._lock:
            # What cannot be read is not replaced.
            self._content()
            layouts, begin = self.read()
            own = layouts.setdefault(vehicle, {})
            if begins and name not in own:
                raise UsageError(f"there is no layout {name!r} for {vehicle}")
            if begins is not None:
                begin = {other: first for other, first in begin.items() if other != vehicle}
                begin |= {vehicle: name} if begins else {}
            elif layout is None:
                own.pop(name, None)
            else:
                own.pop(replaces, None)
                own[name] = layout
                if replaces is not None and begin.get(vehicle) == replaces:
                    begin[vehicle] = name
            if len(own) > NAMED or len(layouts) > VEHICLES:
                raise UsageError(f"there are {NAMED} layouts already: delete one")
            _write(self.path, {vehicle: named for vehicle, named in layouts.items() if named}, begin)


def _write(path: Path, layouts: Mapping[str, Any], begin: Mapping[str, str]) -> None:
    try:
        text = json.dumps({"logreel": "layouts", "layouts": layouts, "begin": begin}, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is no layout: {error}") from error
    if len(text) > KEPT_BYTES:
        raise UsageError(f"all layouts together have more than {KEPT_BYTES} bytes: delete one")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, text)
    except OSError as error:
        raise LogError(f"layouts cannot be kept: {error.strerror}", path=os.fspath(path)) from error


def _is_layout(data: Any) -> bool:
    try:
        checked_layout(data)
    except UsageError:
        return False
    return True
