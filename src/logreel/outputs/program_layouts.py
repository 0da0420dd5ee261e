"""Layouts for other programs beside a converted log: Foxglove (JSON), PlotJuggler (XML), Rerun (blueprint).

They show what the first screen of the viewer and a report show: the charts that the log deserves, its map, its scene
and its pictures, with the topics and fields of the new log.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.io.atomic_file import exists, target_of
from logreel.layout.nodes import FixedArray, Struct
from logreel.lenses import Image, Imu, Joints, Position, Text, lenses
from logreel.lenses.base import nodes_of
from logreel.lenses.facts import LINE, XY, Chart, Series
from logreel.log.log import Log
from logreel.log.topic_fields import check_fields
from logreel.meaning.charts import charts, first_charts
from logreel.meaning.curves import paths_of
from logreel.ops.rewrite.target import output_of
from logreel.outputs.files import new_file
from logreel.outputs.registry import Shape, find_output
from logreel.outputs.tracks import xml_text
from logreel.outputs.write import Converted
from logreel.registry.open import as_log_to_copy, open_log
from logreel.write.log_copier import original_of

if TYPE_CHECKING:
    from logreel.io.output_stream import Destination
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel

#: Plots of a page, pages after the first one, and panels of one kind, at most.
PLOTS, PAGES, PANELS = 6, 11, 4
#: Title of the first page.
OVERVIEW = "Overview"
#: Messages that a map, and pictures that an image panel of Foxglove shows, as its documentation and source name them.
_MAP = {"sensor_msgs/NavSatFix", "foxglove/LocationFix"}
_PICTURES = {
    "sensor_msgs/Image", "sensor_msgs/CompressedImage", "foxglove/RawImage", "foxglove/CompressedImage",
    "foxglove/CompressedVideo",
}  # fmt: skip
#: What its 3D panel draws.
_SCENE = {
    "foxglove/FrameTransform", "foxglove/FrameTransforms", "foxglove/LaserScan", "foxglove/PointCloud",
    "foxglove/PoseInFrame", "foxglove/PosesInFrame", "foxglove/SceneUpdate", "geometry_msgs/PoseArray",
    "geometry_msgs/PoseStamped", "geometry_msgs/PoseWithCovarianceStamped", "geometry_msgs/TransformStamped",
    "nav_msgs/OccupancyGrid", "nav_msgs/Path", "sensor_msgs/LaserScan", "sensor_msgs/PointCloud2", "tf/tfMessage",
    "tf2_msgs/TFMessage", "visualization_msgs/Marker", "visualization_msgs/MarkerArray",
}  # fmt: skip
#: What a function of a curve multiplies the number by.
_FACTORS = {"degrees": 57.29577951308232, "percent": 100.0, "thousandth": 0.001}


@dataclass(frozen=True, slots=True)
class ChartPage:
    """Plots that stand together, with what stands at their side on the first page.

    maps, scene, pictures  topics
    """

    title: str
    plots: list[Chart]
    maps: list[str] = field(default_factory=list)
    scene: list[str] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)


def pages_of(
    source: Log, names: Mapping[str, str], shows: Callable[[Series], bool]
) -> tuple[list[ChartPage], int]:
    """Return the charts of *source* as pages, those of its first screen first, and the number of curves left out.

    names  topics in the new log, by topic; a curve of any other topic is left out
    shows  whether the program can show a curve, which has the topic of the new log
    """
    proposed, left, kept = charts(source), 0, list[tuple[Chart, bool]]()
    first = first_charts(proposed)
    for number, chart in enumerate(proposed):
        renamed = [
            replace(series, topic=names[series.topic]) for series in chart.series if series.topic in names
        ]
        series = tuple(filter(shows, renamed)) if chart.kind in (LINE, XY) else ()
        left += len(chart.series) - len(series)
        if series and (chart.kind == LINE or len(series) == len(chart.series) > 1):
            kept.append((replace(chart, series=series), number < first))
    groups: dict[str, list[Chart]] = {}
    for chart, is_first in kept:
        if not is_first:
            groups.setdefault(chart.group or "More", []).append(chart)
    pages = [ChartPage(OVERVIEW, [chart for chart, is_first in kept if is_first][:PLOTS])]
    pages += [ChartPage(title, plots[:PLOTS]) for title, plots in list(groups.items())[:PAGES]]
    return pages, left


def _short_type(ch: Channel) -> str:
    """Return the name of a type as ROS 1 and the tables above write it."""
    return (
        ch.schema.name.replace("::", "/")
        .replace(".", "/")
        .replace("_msgs/msg/", "_msgs/")
        .replace("foxglove_msgs/", "foxglove/")
    )


def _topics_of(log: Log, types: set[str], most: int = PANELS) -> list[str]:
    return [ch.topic for ch in log.channels.values() if len(ch) and _short_type(ch) in types][:most]


def _has(log: Log, series: Series) -> bool:
    """Return whether *log* has the field of a curve."""
    ch = log.channels.get(series.topic)
    if ch is None or not series.field:
        return False
    try:
        check_fields(ch, paths_of(ch, series.field))
    except LogError:
        return False
    return True


def _inputs(log: Log, series: Series) -> list[str]:
    """Return the paths of the numbers of a curve; of arrays each item."""
    ch = log.channels[series.topic]
    if series.function not in ("roll", "pitch", "yaw", "norm"):
        return [series.field]
    several = paths_of(ch, series.field)
    return several if len(several) > 1 else [f"{series.field}[{n}]" for n in range(_length(ch, series.field))]


def _length(ch: Channel, path: str) -> int:
    """Return the number of items of an array of fixed size; 0 for another field."""
    node: Any = ch.layout.record
    for name in path.split("."):
        node = nodes_of(node).get(name) if isinstance(node, Struct) else None
    return node.count if isinstance(node, FixedArray) else 0


# ---------------------------------------------------------------------------------------------------- Foxglove

#: What Foxglove's paths take without quotes.
_PLAIN = re.compile(r"/?[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")


def foxglove_path(series: Series) -> str:
    """Return the message path of a curve: ``/odom.pose.pose.position.x``, ``"sensor[1]".temperature.@mul(100.0)``."""
    topic = series.topic if _PLAIN.fullmatch(series.topic) else json.dumps(series.topic, ensure_ascii=False)
    ending = {"": "", "negative": ".@negative", "derivative": ".@derivative"}.get(series.function)
    return f"{topic}.{series.field}{f'.@mul({_FACTORS[series.function]})' if ending is None else ending}"


def _shown_by_foxglove(log: Log) -> Callable[[Series], bool]:
    return lambda series: (
        not series.where
        and series.function in ("", "negative", "derivative", *_FACTORS)
        and _has(log, series)
    )


def write_foxglove(out: IO[bytes], source: Log, new: Log, names: Mapping[str, str]) -> int:
    """Write a layout that Foxglove and Lichtblick import; return the number of curves that it has no words for."""
    pages, left = pages_of(source, names, _shown_by_foxglove(new))
    pages[0] = replace(
        pages[0],
        maps=_topics_of(new, _MAP),
        scene=_topics_of(new, _SCENE, 40),
        pictures=_topics_of(new, _PICTURES),
    )
    panels: dict[str, Any] = {}

    def add(name: str, config: Mapping[str, Any]) -> str:
        panel = f"{name}!{len(panels)}logreel"
        panels[panel] = config
        return panel

    def laid_out(page: ChartPage) -> Any:
        plots = [add("Plot", _foxglove_plot(chart)) for chart in page.plots]
        side = (
            [add("map", {"layer": "map", "followTopic": page.maps[0], "disabledTopics": []})]
            if page.maps
            else []
        )
        if page.scene:
            topics = {topic: {"visible": True} for topic in page.scene}
            side.append(add("3D", {"topics": topics, "layers": {"grid": _GRID}}))
        side += [add("Image", {"imageMode": {"imageTopic": topic}}) for topic in page.pictures]
        return _split("row", [*filter(None, (_split("column", plots), _split("column", side)))])

    tabs = [{"title": page.title, "layout": laid} for page in pages if (laid := laid_out(page))]
    if not tabs:
        raise LogError("the log has nothing that a layout could show", path=source.name)
    root = add("Tab", {"activeTabIdx": 0, "tabs": tabs})
    data = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": root,
    }
    out.write(json.dumps(data, indent=1, allow_nan=False).encode() + b"\n")
    return left


_GRID = {
    "visible": True,
    "layerId": "foxglove.Grid",
    "instanceId": "grid",
    "label": "Grid",
    "size": 10,
    "divisions": 10,
}


def _foxglove_plot(chart: Chart) -> dict[str, Any]:
    curves = chart.series[1:] if chart.kind == XY else chart.series
    paths = [
        {
            "value": foxglove_path(series),
            "enabled": True,
            "timestampMethod": "receiveTime",
            "label": f"{series.name} [{series.unit}]" if series.unit else series.name,
        }
        for series in curves
    ]
    config = {"title": chart.title, "paths": paths, "showLegend": True, "isSynced": chart.kind != XY}
    if chart.kind == XY:
        config |= {
            "xAxisVal": "custom",
            "xAxisPath": {"value": foxglove_path(chart.series[0]), "enabled": True},
        }
    else:
        config["xAxisVal"] = "timestamp"
    if chart.y is not None:
        config |= {"minYValue": chart.y[0], "maxYValue": chart.y[1]}
    return config


def _split(direction: str, panels: Sequence[Any]) -> Any:
    """Return panels of equal size beside or above each other, as the binary tree that Foxglove has; None for none."""
    if len(panels) < 2:
        return panels[0] if panels else None
    return {
        "direction": direction,
        "first": panels[0],
        "second": _split(direction, panels[1:]),
        "splitPercentage": round(100 / len(panels), 3),
    }


# ------------------------------------------------------------------------------------------------- PlotJuggler

_COLOURS = ("#1f77b4", "#d62728", "#1ac938", "#ff7f0e", "#f14cc1", "#9467bd", "#17becf", "#bcbd22")
#: Bodies of functions in Lua, of *value* and *v1*, *v2* …; a quaternion is w, x, y, z. Lua has had atan2 up to 5.2.
_LUA = {
    "roll": "return math.deg((math.atan2 or math.atan)(2*(value*v1 + v2*v3), 1 - 2*(v1*v1 + v2*v2)))",
    "pitch": "return math.deg(math.asin(math.max(-1, math.min(1, 2*(value*v2 - v3*v1)))))",
    "yaw": "return math.deg((math.atan2 or math.atan)(2*(value*v3 + v1*v2), 1 - 2*(v2*v2 + v3*v3)))",
    "negative": "return -value",
    **{name: f"return value * {factor}" for name, factor in _FACTORS.items()},
}


def plotjuggler_name(topic: str, path: str) -> str:
    """Return the name of a curve in PlotJuggler, as its readers of messages make it: ``/odom/pose/position/x``."""
    return f"{topic}/{path.replace('.', '/')}"


def _shown_by_plotjuggler(log: Log) -> Callable[[Series], bool]:
    def shows(series: Series) -> bool:
        if series.where or not _has(log, series):
            return False
        count = len(_inputs(log, series))
        if series.function in ("roll", "pitch", "yaw"):
            return count == 4
        return series.function in ("", *_LUA) or (series.function == "norm" and count > 1)

    return shows


def write_plotjuggler(out: IO[bytes], source: Log, new: Log, names: Mapping[str, str]) -> int:
    """Write a layout of PlotJuggler; return the number of curves that it has no words for.

    Functions of fields are functions in Lua of the layout.
    """
    pages, left = pages_of(source, names, _shown_by_plotjuggler(new))
    pages = [page for page in pages if page.plots]
    if not pages:
        raise LogError("the log has no curves that a layout could show", path=source.name)
    snippets: dict[str, str] = {}

    def name_of(series: Series) -> str:
        inputs = [plotjuggler_name(series.topic, path) for path in _inputs(new, series)]
        if not series.function:
            return inputs[0]
        name = f"{plotjuggler_name(series.topic, series.field)}/{series.function}"
        snippets[name] = _snippet(name, series.function, inputs)
        return name

    lines = ["<?xml version='1.0' encoding='UTF-8'?>", "<root>"]
    lines.append(' <tabbed_widget name="Main Window" parent="main_window">')
    for page in pages:
        lines += [f'  <Tab containers="1" tab_name={_quoted(page.title)}>', "   <Container>"]
        share = ";".join([f"{1 / len(page.plots):.6f}"] * len(page.plots))
        lines.append(f'    <DockSplitter orientation="-" count="{len(page.plots)}" sizes="{share}">')
        for chart in page.plots:
            lines += _dock_area(chart, [name_of(series) for series in chart.series])
        lines += ["    </DockSplitter>", "   </Container>", "  </Tab>"]
    lines += [
        '  <currentTabIndex index="0"/>',
        " </tabbed_widget>",
        ' <use_relative_time_offset enabled="1"/>',
    ]
    lines += [" <customMathEquations>", *snippets.values(), " </customMathEquations>", "</root>", ""]
    out.write("\n".join(lines).encode())
    return left


def _dock_area(chart: Chart, curves: Sequence[str]) -> Iterator[str]:
    yield f"     <DockArea name={_quoted(chart.title)}>"
    mode = "XYPlot" if chart.kind == XY else "TimeSeries"
    yield f'      <plot mode="{mode}" style="Lines" flip_x="false" flip_y="false">'
    yield (
        "       <limitY/>"
        if chart.y is None
        else f'       <limitY min="{chart.y[0]!r}" max="{chart.y[1]!r}"/>'
    )
    if chart.kind == XY:
        for n, name in enumerate(curves[1:]):
            pair = f"curve_x={_quoted(curves[0])} curve_y={_quoted(name)}"
            yield f'       <curve name={_quoted(f"{curves[0]};{name}")} {pair} color="{_COLOURS[n % len(_COLOURS)]}"/>'
    else:
        for n, name in enumerate(curves):
            yield f'       <curve name={_quoted(name)} color="{_COLOURS[n % len(_COLOURS)]}"/>'
    yield "      </plot>"
    yield "     </DockArea>"


def _snippet(name: str, function: str, inputs: Sequence[str]) -> str:
    """Return a function of curves: of the first, *value*, and the others, *v1* …"""
    body = _LUA.get(function)
    if body is None:
        body = f"return math.sqrt({' + '.join(f'{v}*{v}' for v in ('value', *_values(inputs)))})"
    more = "".join(
        f"\n    <{v}>{xml_text(other)}</{v}>" for v, other in zip(_values(inputs), inputs[1:], strict=True)
    )
    return (
        f"  <snippet name={_quoted(name)}>\n   <global></global>\n   <function>{xml_text(body)}</function>\n"
        f"   <linked_source>{xml_text(inputs[0])}</linked_source>\n"
        f"   <additional_sources>{more}\n   </additional_sources>\n  </snippet>"
    )


def _values(inputs: Sequence[str]) -> list[str]:
    return [f"v{n}" for n in range(1, len(inputs))]


def _quoted(text: str) -> str:
    # Characters that XML forbids become U+FFFD; then only quotes are left to escape.
    return f'"{xml_text(text)}"'


# ------------------------------------------------------------------------------------------------------- Rerun


def write_rerun(out: IO[bytes], source: Log, new: Log, names: Mapping[str, str]) -> int:
    """Write a blueprint for the recording of *source*; return the number of curves that it cannot show.

    Needs ``logreel[rerun]``.
    """
    try:
        import rerun
        import rerun.blueprint as views
    except ImportError as error:
        raise MissingDependencyError("rerun-sdk", "rerun") from error
    pages, left = pages_of(
        source, names, lambda series: not series.function and not series.where and _has(source, series)
    )

    def entity(topic: str, *parts: str) -> str:
        return str(rerun.new_entity_path([name for name in (*topic.split("/"), *parts) if name]))

    def curve(series: Series) -> str:
        # The items of an array of numbers are one entity.
        return entity(series.topic, *re.sub(r"\[\d+\]$", "", series.field).split("."))

    def side() -> Iterator[Any]:
        maps, pictures, scene = list[str](), list[str](), list[str]()
        for ch in source.channels.values():
            for lens in lenses(ch) if len(ch) and not ch.reserved else ():
                if isinstance(lens, Position):
                    maps.append(f"{entity(ch.topic)}/**")
                elif isinstance(lens, Image):
                    pictures.append(entity(ch.topic))
                elif not isinstance(lens, Text | Imu | Joints):
                    scene.append(f"{entity(ch.topic)}/**")
        if maps:
            yield views.MapView(contents=maps, name="Map")
        if scene:
            yield views.Spatial3DView(contents=list(dict.fromkeys(scene)), name="Scene")
        yield from (views.Spatial2DView(origin=path, name=path) for path in pictures[:PANELS])

    def laid_out(page: ChartPage, *beside: Any) -> Any:
        plots = [
            views.TimeSeriesView(contents=list(dict.fromkeys(map(curve, chart.series))), name=chart.title)
            for chart in page.plots
            if chart.kind == LINE
        ]
        columns = [views.Vertical(*several) for several in (plots, beside) if several]
        return views.Horizontal(*columns, name=page.title) if columns else None

    tabs = [laid_out(page, *(side() if page is pages[0] else ())) for page in pages]
    tabs = [tab for tab in tabs if tab is not None]
    if not tabs:
        raise LogError("the log has nothing that a blueprint could show", path=source.name)
    views.Blueprint(views.Tabs(*tabs), auto_views=False).save(APPLICATION, out.name)
    return left


#: The application of recordings that ``convert`` writes, which a blueprint is for.
APPLICATION = "logreel"


# ------------------------------------------------------------------------------------------- beside a conversion


@dataclass(frozen=True, slots=True)
class ProgramLayout:
    """How a layout for a program is written.

    title   the program
    suffix  of the file, in place of that of the output
    logs    whether it shows logs; else recordings of Rerun
    write   called with file, source, new log, and topics of the new log by topic of the source; returns how many curves
            it left out
    """

    title: str
    suffix: str
    logs: bool
    write: Callable[[IO[bytes], Log, Log, Mapping[str, str]], int]

    def path(self, output: str) -> str:
        """Return the path of the layout beside *output*."""
        # A log may be a folder.
        stem, _ = os.path.splitext(output.rstrip("/"))
        return f"{stem}{self.suffix}"


PROGRAMS: Mapping[str, ProgramLayout] = {
    "foxglove": ProgramLayout("Foxglove", ".foxglove.json", True, write_foxglove),
    "plotjuggler": ProgramLayout("PlotJuggler", ".plotjuggler.xml", True, write_plotjuggler),
    "rerun": ProgramLayout("Rerun", ".rbl", False, write_rerun),
}


def with_layout(
    src: Openable | Log,
    dst: Destination,
    program: str,
    force: bool,
    definitions: Definitions,
    convert: Callable[[Log], Converted],
) -> Converted:
    """Convert *src* by *convert*, then write a layout for *program* beside *dst*; return the summary with a note on it.

    Raises UsageError for an output that the program does not open, LogError if the layout exists without *force*.
    """
    wanted = PROGRAMS[program]
    name, stream, _ = output_of(dst, None)
    output = find_output(name)
    beside = output.shape is Shape.LOG if wanted.logs else output.suffix == ".rrd"
    if stream is not None or not beside:
        fits = "a log, such as x.mcap" if wanted.logs else "a recording, x.rrd"
        raise UsageError(f"a layout for {wanted.title} lies beside {fits}, not {name}")
    path = wanted.path(name)
    if target_of(path).exists() and not force:
        raise exists(path)
    with as_log_to_copy(src, definitions) as source:
        done = convert(source)
        if not wanted.logs:
            names = {ch.topic: ch.topic for ch in source.channels.values()}
            left = _written(wanted, path, force, source, source, names)
        else:
            with open_log(name) as new:
                left = _written(wanted, path, force, source, new, _new_names(source, new))
    note = f"the layout for {wanted.title} is {path}"
    if left:
        note += f"; {left} curve{'s' * (left != 1)} of this log's charts cannot be shown in that program"
    return replace(done, notes=(*done.notes, note))


def _written(
    wanted: ProgramLayout, path: str, force: bool, source: Log, new: Log, names: Mapping[str, str]
) -> int:
    with new_file(path, force) as out:
        return wanted.write(out, source, new, names)


def _new_names(source: Log, new: Log) -> dict[str, str]:
    """Return the topics of *new* by the topics of *source*."""
    names = {ch.topic: ch.topic for ch in source.channels.values() if ch.topic in new.channels}
    for ch in new.channels.values():
        if (was := original_of(ch)) is not None and was.topic in source.channels:
            names[was.topic] = ch.topic
    return names
