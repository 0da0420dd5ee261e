"""Fields over time with no more points than the pixels can show, one field over another, charts and spectrograms."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from logreel.errors import LogError, UsageError
from logreel.io.arrays import F64, I64
from logreel.layout.arrow_arrays import buffer_of, text_metadata
from logreel.lenses.facts import LINE, XY, Chart, Series
from logreel.lenses.facts import SPECTROGRAM as SPECTROGRAM_CHART
from logreel.log.log import Log
from logreel.log.times import utc_shift, utc_text
from logreel.meaning.charts import charts, first_charts, side_panels
from logreel.meaning.columns import SampledColumn, SortedColumn, Window, row_at
from logreel.meaning.curves import FUNCTIONS, Curve, broken_at, spectral_density
from logreel.meaning.gaps import channel_gaps
from logreel.meaning.layouts import LayoutCurve, found_series, meanings
from logreel.outputs.http.routes import ARROW, BYTES, Parameters, RequestParameter, Route, number
from logreel.outputs.view.channels import array_of, fields_of
from logreel.outputs.view.columns import WantedSeries, checked_series, series_objects, wanted_series
from logreel.outputs.view.limits import (
    DOCUMENT,
    HATCHED,
    PAIRS,
    PATIENCE,
    POINTS_PER_PIXEL,
    SPECTROGRAM,
    STILL,
    TEXT_CHARACTERS,
)
from logreel.outputs.view.overview import json_object, read_note
from logreel.outputs.view.parameters import FROM, ONE_SERIES, SERIES, TO, pixels
from logreel.registry.registry import states_of

if TYPE_CHECKING:
    from logreel.outputs.page.report import StillPanel
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog


MEDIA = "application/vnd.apache.arrow.stream"


def arrow_stream(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Return columns of numbers, equally long, as the bytes of an Arrow IPC stream, with *metadata* of its schema."""
    import pyarrow as pa

    fields = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in columns.items()]
    schema = pa.schema(fields, metadata=text_metadata(dict(metadata)))
    # Not pa.array of NumPy's, which imports pandas where that is installed.
    arrays = [
        pa.Array.from_buffers(column.type, len(values), [None, buffer_of(np.ascontiguousarray(values))])
        for column, values in zip(schema, columns.values(), strict=True)
    ]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def arrow_response(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> Response:
    """Return one stream as an answer."""
    return Response(arrow_stream(columns, metadata), media_type=MEDIA)


def several(streams: Iterable[bytes]) -> Response:
    """Return several streams as one answer: each after its length as u32, little-endian."""
    body = b"".join(part for data in streams for part in (struct.pack("<I", len(data)), data))
    return Response(body, media_type="application/octet-stream")


#: Pixels if a request does not say how many there are.
PIXELS = 1000
_PAIR_PIXELS = PAIRS // (4 * POINTS_PER_PIXEL)
_X = RequestParameter("x", text="Series of one axis, topic.field")
_Y = RequestParameter("y", text="Series of the other axis")


def routes() -> list[Route]:
    """Return the requests for series, pairs of them, functions, charts, spectrograms, and pages with what is seen."""
    return [
        Route("/api/logs/{log}/series", _series, (*ONE_SERIES, FROM, TO, pixels(PIXELS), SERIES), ARROW),
        Route("/api/logs/{log}/pairs", _pairs, (FROM, TO, pixels(_PAIR_PIXELS), _X, _Y, SERIES), ARROW),
        Route("/api/logs/{log}/statistics", _statistics, (*ONE_SERIES, FROM, TO, SERIES)),
        Route("/api/functions", _functions),
        *chart_routes(),
        *spectrogram_routes(),
        Route("/api/logs/{log}/document", _document, result=BYTES, body_bytes=DOCUMENT),
    ]


def _functions(session: Session, request: Parameters) -> ASGIApp:
    return JSONResponse(
        [
            {"name": f.name, "text": f.text, "inputs": f.inputs, "number": f.number, "usual": f.usual}
            for f in FUNCTIONS.values()
        ]
    )


def _statistics(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    """Answer with statistics of all values of each series between two moments, not of those that are drawn."""
    lo, hi = request.interval()
    return JSONResponse([_statistics_of(log, wanted, (lo, hi), request) for wanted in wanted_series(request)])


def _statistics_of(
    log: ViewLog, wanted: WantedSeries, span: tuple[int | None, int | None], request: Parameters
) -> dict[str, Any]:
    try:
        # Samples stand for no statistics: it is waited for the rows in order.
        column = log.columns.get(wanted, request, inf)
        with log.reading(column, request):
            window = Window(column, *(log.clock(time) for time in span))
            return {**asdict(window.statistics(request.check)), "unit": column.unit}
    except LogError as error:
        if "s" not in request:
            raise
        return {"error": error.text}


@dataclass(frozen=True, slots=True)
class SeriesWindow:
    """What a request for series is to draw.

    lo, hi  window, ns after the start of the log; None: no bound
    pixels  its width
    until   moment of ``monotonic`` up to which all series together wait for pyramids
    """

    lo: int | None
    hi: int | None
    pixels: int
    until: float


def _series(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    window = SeriesWindow(*request.interval(), request.get("px"), monotonic() + PATIENCE)
    wanted = list(wanted_series(request))
    if "s" not in request:
        return arrow_response(*_columns(log, wanted[0], window, request))
    return several(_stream(log, series, window, request) for series in wanted)


def _stream(log: ViewLog, wanted: WantedSeries, window: SeriesWindow, request: Parameters) -> bytes:
    """Return one of several streams; one that cannot be answered is empty and says why in its metadata."""
    try:
        return arrow_stream(*_columns(log, wanted, window, request))
    except LogError as error:
        return arrow_stream({"t": np.zeros(0), "v": np.zeros(0)}, {"error": error.text})


def _columns(
    log: ViewLog, wanted: WantedSeries, window: SeriesWindow, request: Parameters
) -> tuple[dict[str, Any], dict[str, str]]:
    column = log.columns.get(wanted, request, window.until)
    rows = Window(column, log.clock(window.lo), log.clock(window.hi))
    most = POINTS_PER_PIXEL * window.pixels
    with log.reading(column, request):
        times, values = rows.points(window.pixels, most)
    is_sample = isinstance(column, SampledColumn)
    points = "all" if len(rows) <= most else "sample" if is_sample else "extrema"
    about = {"unit": column.unit, "count": str(len(rows)), "points": points}
    stepped = log.once(f"stepped {wanted.topic} {wanted.shape}", wanted.is_stepped, request)
    gaps = log.once(
        f"gaps {wanted.topic} {stepped}",
        lambda opened: channel_gaps(opened[wanted.topic], stepped),
        request,
    )
    if stepped:
        about["held"] = "yes"
    if len(times) and gaps:
        # What is narrower than a pixel, or than the distance of samples, is not seen.
        shares = len(times) if is_sample else window.pixels
        least = 0 if points == "all" else (int(times[-1]) - int(times[0])) // max(1, shares)
        inside = [(a, b) for a, b in gaps if a < times[-1] and b > times[0] and b - a > least]
        longest = sorted(inside, key=lambda gap: gap[0] - gap[1])[:HATCHED]
        if longest:
            about["gaps"] = json.dumps([(a - log.start, b - log.start) for a, b in sorted(longest)])
        times, values = broken_at(times, values, inside)
    return _since(log, times, values), about


def _since(log: ViewLog, times: I64, values: F64) -> dict[str, Any]:
    return {"t": (times - log.start).astype(np.float64), "v": values}


def _pairs(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    """Answer with y at the times of x, by its last value."""
    lo, hi = request.interval()
    wanted = list(wanted_series(request)) if "s" in request else [_named(request.text(name)) for name in "xy"]
    if len(wanted) != 2:
        raise UsageError("pairs are of two series: x and y")
    # As many points as a line of this width can show, so that zooming shows more.
    most = min(PAIRS, 4 * POINTS_PER_PIXEL * request.get("px"))
    x, y = (log.columns.get(series, request) for series in wanted)
    window = Window(x, log.clock(lo), log.clock(hi))
    with log.reading(x, request):
        times, first = x.read(window.rows(most))
    with log.reading(y, request):
        second = _last_values(y, times)
    columns = {"x": first, "y": second, "t": (times - log.start).astype(np.float64)}
    about = {"unit_x": x.unit, "unit_y": y.unit, "count": str(len(window))}
    return arrow_response(columns, about)


def _named(text: str) -> WantedSeries:
    """Return the series ``topic.field`` or ``topic:field``; topics with dots need the colon."""
    for mark in (":", "."):
        topic, separator, field = text.partition(mark)
        if separator and topic and field:
            return WantedSeries(topic, field)
    raise UsageError(f"{text!r:.80} is no topic.field")


def _last_values(column: SortedColumn, times: I64) -> F64:
    """Return the value at each of *times*, int64[n] in order, that came last; NaN before the first one."""
    rows = column.search(times + 1) - 1
    known = np.unique(rows[rows >= 0])
    values = column.read(known)[1]
    latest = np.full(len(times), np.nan)
    has_value = rows >= 0
    latest[has_value] = values[known.searchsorted(rows[has_value])]
    return latest


#: Columns of the picture that are computed at once, between two looks at whether the client still waits.
AT_ONCE = 64
#: Values of a picture: this many decibels below the greatest power are the darkest ones.
RANGE_DB = 80.0
#: Samples of a spectrum at least, without which it says nothing.
LEAST = 16
_SIZE = tuple(
    RequestParameter(name, number(LEAST // 2, SPECTROGRAM), "Pixels", 256) for name in ("width", "height")
)


def spectrogram_routes() -> list[Route]:
    """Return the request for a spectrogram."""
    return [Route("/api/logs/{log}/spectrogram", _spectrogram, (*ONE_SERIES, FROM, TO, *_SIZE), BYTES)]


def _spectrogram(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    lo, hi = request.interval()
    width, height = request.get("width"), request.get("height")
    (wanted,) = wanted_series(request)
    column = log.columns.get(wanted, request)
    window = Window(column, log.clock(lo), log.clock(hi))
    height = min(height, len(window) // 2)
    if height < LEAST // 2:
        raise UsageError(f"a spectrogram needs at least {LEAST} samples, here are {len(window)}")
    rows = _segments(window, width, 2 * height)
    power = np.empty((len(rows), height))
    times = np.empty((len(rows), 2), np.int64)
    steps: list[F64] = []
    for at in range(0, len(rows), AT_ONCE):
        block = rows[at : at + AT_ONCE]
        known, where = np.unique(block, return_inverse=True)
        with log.reading(column, request):
            t, v = column.read(known)
        t, v = t[where].reshape(block.shape), v[where].reshape(block.shape)
        times[at : at + len(block)] = t[:, [0, -1]]
        steps.append(np.diff(t, axis=1).ravel().astype(np.float64))
        power[at : at + len(block)] = spectral_density(v)
    step = float(np.median(np.concatenate(steps)))
    if not step > 0:
        raise UsageError("the samples have no distance in time")
    picture, least, most = in_decibels(power * (step / 1e9))
    middle = times.mean(axis=1) - log.start
    half = (middle[-1] - middle[0]) / (2 * max(1, len(rows) - 1))
    head = {
        "from": int(middle[0] - half),
        "to": int(middle[-1] + half),
        "frequency_max": 0.5e9 / step,
        "width": len(rows),
        "height": height,
        "unit": f"({column.unit})²/Hz" if column.unit else "",
        "least": least,
        "most": most,
    }
    text = json.dumps(head).encode()
    return Response(
        struct.pack("<I", len(text)) + text + picture.tobytes(), media_type="application/octet-stream"
    )


def _segments(window: Window, width: int, samples: int) -> I64:
    """Return int64[w, samples]: rows of overlapping or distant segments that are evenly spread, w <= width."""
    count = len(window) - samples + 1
    first = np.unique(np.linspace(0, count - 1, min(width, count)).astype(np.int64))
    rows: I64 = window.first + first[:, None] + np.arange(samples)
    return rows


def in_decibels(power: F64) -> tuple[NDArray[np.uint8], float, float]:
    """Return uint8[h, w], lowest frequency first, with the decibels that 0 and 255 mean."""
    most = float(10 * np.log10(power.max())) if power.max() > 0 else 0.0
    least = most - RANGE_DB
    with np.errstate(divide="ignore"):
        decibels = 10 * np.log10(power)
    scaled = np.clip((decibels - least) * (255 / RANGE_DB), 0, 255)
    return np.ascontiguousarray(scaled.T.astype(np.uint8)), least, most


#: Kind of the panel that shows a chart, where it has another name.
PANELS = {LINE: "plot"}
#: Panels below the first screen that the page draws with it.
BEYOND = 2
_LAST_ITEM = re.compile(r"\[\d+\]$")


def chart_routes() -> list[Route]:
    """Return the request for the charts."""
    return [
        Route("/api/logs/{log}/charts", _charts),
        Route("/api/logs/{log}/layout", _of_layout, (SERIES,)),
    ]


def _charts(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    return JSONResponse(log.once("charts", all_charts, request))


def _of_layout(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    """Answer with the series that each curve of a layout is in this log; null for those that it lacks."""
    wanted = [LayoutCurve.of(data) for data in series_objects(request)]
    known = log.once("meanings", meanings, request)
    with log.open(request) as opened:
        series = [found_series(opened, curve, known) for curve in wanted]
    # Curves without a label are named by the page, in view of the others of their plot.
    return JSONResponse([curve and {**_chart_series(curve), "label": curve.label} for curve in series])


def all_charts(log: Log) -> dict[str, Any]:
    """Return the charts of a log as panels, which of them and what beside them the first screen shows.

    The first series say what their fields are, so that their plots need not wait for the answer about all channels.
    """
    proposed = charts(log)
    first = first_charts(proposed)
    panels = [_panel(chart) for chart in proposed]
    states = states_of(log)
    fields: dict[str, list[dict[str, Any]]] = {}
    for series in chain.from_iterable(panel["series"] for panel in panels[: first + BEYOND]):
        topic = series["topic"]
        if topic not in fields:
            with suppress(LogError):
                fields[topic] = list(fields_of(log[topic], states.get(topic, {})))
        series["about"] = _about(series["field"], fields.get(topic, []))
    meant = {name: _chart_series(series) for name, series in meanings(log, proposed).items()}
    return {"panels": panels, "side": side_panels(log), "first": first, "meanings": meant}


def _about(path: str, fields: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the field at *path*, the array whose item it is, or the first item of the array that it is."""
    for name in (path, _LAST_ITEM.sub("", path)):
        for field in fields:
            if field["path"] == name:
                return field
    return next((field for field in fields if field["path"].startswith(f"{path}[")), None)


def _panel(chart: Chart) -> dict[str, Any]:
    return {
        "title": chart.title,
        "kind": PANELS.get(chart.kind, chart.kind),
        "group": chart.group,
        "series": [_chart_series(series) for series in chart.series],
        "y": None if chart.y is None else list(chart.y),
        "bands": chart.kind == LINE,
    }


def _chart_series(series: Series) -> dict[str, Any]:
    return {
        "topic": series.topic,
        "field": series.field,
        "function": series.function,
        "where": series.where,
        "label": series.name,
        "unit": series.unit,
        "scale": 1,
    }


#: Panels of a page, curves of a panel, and items of an array that is drawn.
DRAWN, CURVES, DRAWN_ITEMS = 64, 32, 4000
#: Pixels of a curve that is not read from the log by itself.
DERIVED = 1500
#: Panels whose contents are sections of every page.
SECTIONS = ("text", "findings")
#: First bytes of pictures that a page may send, by their media types.
_STILL = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"RIFF": "image/webp"}


class _Part(NamedTuple):
    """What of a log a page shows.

    start, end  ns; None: no bound
    here        moment of the cursor, ns; None: there is none
    zero        ns that times are told from; of UTC times the epoch
    is_utc      whether times are told as UTC
    """

    start: int | None
    end: int | None
    here: int | None
    zero: int
    is_utc: bool

    def told(self, time: int) -> str:
        """Return a moment for sentences."""
        since = time - self.zero
        return f"{utc_text(since, 3)[11:-1]} UTC" if self.is_utc else f"{since / 1e9:.2f} s"


def _document(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    """Answer with a page that works offline and shows what the page of the viewer shows of a log.

    The content has ``panels`` as in a layout, ``from``, ``to`` and ``at``, the cursor, in ns since the start of the
    log (null: none), ``utc``, and ``notes``, if those are not the ones beside the log. A panel that only the viewer
    draws has a picture of what was seen as ``still``, a data URL.
    """
    # Not needed for the first picture.
    from logreel.outputs.page.report import Seen, report_of_view

    content = json_object(request.body)
    listed = content.get("panels")
    if not isinstance(listed, list) or len(listed) > DRAWN:
        raise UsageError(f"a page has a list of up to {DRAWN} panels")
    lo, hi, here = (log.clock(_moment(content.get(name), name)) for name in ("from", "to", "at"))
    with log.open(request) as opened:
        shift = utc_shift(opened) if content.get("utc") else None
    part = _Part(lo, hi, here, log.start if shift is None else -shift, shift is not None)
    curves, undrawn = dict[Series, Curve](), list[str]()
    seen = []
    for panel in listed:
        if not isinstance(panel, Mapping):
            raise UsageError("a panel is an object")
        shown = _seen(log, panel, part, request, curves)
        if shown is not None:
            seen.append(shown)
        elif panel.get("kind") not in SECTIONS:
            undrawn.append(str(panel.get("title") or panel.get("kind"))[:TEXT_CHARACTERS])
    noted = content.get("notes")
    notes = [read_note(note, log.start) for note in noted] if isinstance(noted, list) else None
    with log.open(request) as opened:
        what = Seen(seen, curves, notes, undrawn=undrawn, here=here)
        page = report_of_view(opened, what, start=lo, end=hi, utc=shift is not None)
    return Response(page.html.encode("utf-8", "replace"), media_type="application/octet-stream")


def _moment(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 62:
        raise UsageError(f"{name} {value!r:.80} is no time in ns after the start of the log")
    return int(value)


def _seen(
    log: ViewLog, panel: Mapping[str, Any], part: _Part, request: Parameters, curves: dict[Series, Curve]
) -> Chart | StillPanel | None:
    """Return what shows a panel; SQL expressions are worked out into *curves*. None for what no page draws."""
    from logreel.outputs.page.report import StillPanel, curve_names

    shown = str(panel.get("kind"))
    title = str(panel.get("title") or "")[:TEXT_CHARACTERS]
    if panel.get("still"):
        return _still_panel(title or shown, panel["still"], part)
    if shown == "array" and panel.get("topic"):
        return _array_panel(log, panel, title or f"{panel['topic']}.{panel.get('field')}", part, request)
    series = [
        _seen_series(log, data, part, request, curves)
        for data in _seen_curves(panel, shown)
        if not data.get("hidden") and str(data.get("log", log.id)) == log.id
    ]
    if shown == XY:
        named = title or curve_names(series, True) or "XY plot"
        if len(series) != 2:
            return StillPanel(named, "", "This plot had no two fields of this log.")
        return Chart(named, tuple(series), XY, equal=panel.get("equal") is True)
    if shown not in ("plot", SPECTROGRAM_CHART):
        return None
    if not series:
        return StillPanel(title or "Plot", "", "No curve of this log was shown here.")
    y = panel.get("y")
    limits = None
    if isinstance(y, list) and len(y) == 2 and all(isinstance(end, int | float) for end in y) and y[0] < y[1]:
        limits = float(y[0]), float(y[1])
    return Chart(
        title or curve_names(series),
        tuple(series),
        LINE if shown == "plot" else SPECTROGRAM_CHART,
        y=limits,
    )


def _seen_curves(panel: Mapping[str, Any], shown: str) -> list[Mapping[str, Any]]:
    """Return the curves of a panel; raises UsageError for what is none."""
    if shown == "plot":
        wanted = panel.get("series") or []
    elif shown == XY:
        wanted = [panel[axis] for axis in "xy" if panel.get(axis)]
    else:
        wanted = [panel] if panel.get("topic") else []
    if not isinstance(wanted, list) or len(wanted) > CURVES:
        raise UsageError(f"a panel has a list of up to {CURVES} curves")
    if not all(isinstance(data, Mapping) and data.get("topic") for data in wanted):
        raise UsageError("a curve is an object with a topic")
    return wanted


def _seen_series(
    log: ViewLog, data: Mapping[str, Any], part: _Part, request: Parameters, curves: dict[Series, Curve]
) -> Series:
    known = checked_series(data)
    label, unit = (str(data.get(name) or "")[:TEXT_CHARACTERS] for name in ("label", "unit"))
    series = Series(known.topic, known.field or known.sql, known.function, label, unit, known.where)
    if known.sql:
        with suppress(LogError):
            column = log.columns.get(known, request, inf)
            with log.reading(column, request):
                window = Window(column, part.start, part.end)
                times, values = window.points(DERIVED, POINTS_PER_PIXEL * DERIVED)
            curves[series] = Curve(known.topic, known.name, column.unit, times, values, len(window))
    return series


def _still_panel(title: str, data: Any, part: _Part) -> StillPanel:
    """Return a panel that is a picture of what was seen, from a data URL; raises UsageError for anything else."""
    from logreel.outputs.page.html import cell_text
    from logreel.outputs.page.report import StillPanel

    _, comma, text = data.partition(",") if isinstance(data, str) else ("", "", "")
    try:
        picture = base64.b64decode(text, validate=True) if comma and len(text) <= 2 * STILL else b""
    except binascii.Error:
        picture = b""
    media = next((media for magic, media in _STILL.items() if picture.startswith(magic)), None)
    if media is None or len(picture) > STILL:
        raise UsageError(f"the picture of a panel is no PNG, JPEG or WebP of at most {STILL} bytes")
    told = "at the start of it" if part.here is None else f"at {part.told(part.here)}"
    said = f"A still picture of what was seen {told}."
    encoded = base64.b64encode(picture).decode()
    image = f'<img alt="{cell_text(f"{title}: {said}")}" src="data:{media};base64,{encoded}">'
    return StillPanel(title, image, said)


def _array_panel(
    log: ViewLog, panel: Mapping[str, Any], title: str, part: _Part, request: Parameters
) -> StillPanel:
    """Return the panel of an array at the cursor, or at the start of what is shown."""
    from logreel.outputs.page.chart_svg import SvgAxis, SvgCurve, chart_svg, value_span
    from logreel.outputs.page.report import StillPanel

    field = str(panel.get("field"))
    try:
        with log.open(request) as opened:
            ch = opened[str(panel["topic"])]
            at = next((time for time in (part.here, part.start) if time is not None), log.start)
            row = row_at(ch, at)
            if row is None and (part.here is not None or not len(ch)):
                return StillPanel(title, "", "No message of this channel is at or before the cursor.")
            time, items, unit = array_of(ch, field, row or 0)
    except LogError as error:
        return StillPanel(title, "", f"This cannot be drawn: {error.text}.")
    values = np.array([np.nan if item is None else item for item in items[:DRAWN_ITEMS]], np.float64)
    said = f"{len(items)} values{f' [{unit}]' if unit else ''} over their index, of the message at {part.told(time)}"
    said += f", of which the first {DRAWN_ITEMS} are drawn." if len(items) > DRAWN_ITEMS else "."
    if not np.isfinite(values).any():
        return StillPanel(title, "", said)
    line = SvgCurve(np.arange(len(values), dtype=np.float64), values)
    drawing = chart_svg([line], SvgAxis(-0.5, len(values) - 0.5), value_span([line]))
    return StillPanel(title, drawing, said)
