"""Fields over time, with no more points than the pixels can show; and one field over another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.errors import LogError, UsageError
from logreel.io.arrays import F64, I64
from logreel.meaning.columns import SampledColumn, SortedColumn, Window
from logreel.meaning.curves import FUNCTIONS
from logreel.outputs.http.routes import ARROW, Parameters, RequestParameter, Route
from logreel.outputs.view.arrow_answer import arrow_response, arrow_stream, several
from logreel.outputs.view.columns import Wanted, wanted_series
from logreel.outputs.view.limits import PAIRS, POINTS_PER_PIXEL
from logreel.outputs.view.parameters import FROM, ONE_SERIES, SERIES, TO, pixels

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

#: Pixels if a request does not say how many there are.
PIXELS = 1000
_PAIR_PIXELS = PAIRS // (4 * POINTS_PER_PIXEL)
_X = RequestParameter("x", text="Series of one axis, topic.field")
_Y = RequestParameter("y", text="Series of the other axis")


def routes() -> list[Route]:
    """Return the requests for series, pairs of series, and the functions that they may have."""
    return [
        Route("/api/logs/{log}/series", _series, (*ONE_SERIES, FROM, TO, pixels(PIXELS), SERIES), ARROW),
        Route("/api/logs/{log}/pairs", _pairs, (FROM, TO, pixels(_PAIR_PIXELS), _X, _Y, SERIES), ARROW),
        Route("/api/functions", _functions),
    ]


def _functions(session: Session, given: Parameters) -> ASGIApp:
    return JSONResponse([{"name": f.name, "text": f.text, "inputs": f.inputs} for f in FUNCTIONS.values()])


def _series(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    lo, hi = given.interval()
    pixels = given.get("px")
    wanted = list(wanted_series(given))
    if "s" not in given:
        return arrow_response(*_columns(log, wanted[0], lo, hi, pixels, given))
    return several(_stream(log, one, lo, hi, pixels, given) for one in wanted)


def _stream(
    log: ViewLog, wanted: Wanted, lo: int | None, hi: int | None, pixels: int, given: Parameters
) -> bytes:
    """Return one of several streams; one that cannot be answered is empty and says why in its metadata."""
    try:
        return arrow_stream(*_columns(log, wanted, lo, hi, pixels, given))
    except LogError as error:
        return arrow_stream({"t": np.zeros(0), "v": np.zeros(0)}, {"error": error.text})


def _columns(
    log: ViewLog, wanted: Wanted, lo: int | None, hi: int | None, pixels: int, given: Parameters
) -> tuple[dict[str, Any], dict[str, str]]:
    column = log.columns.get(wanted, given)
    window = Window(column, log.clock(lo), log.clock(hi))
    most = POINTS_PER_PIXEL * pixels
    with log.reading(column, given):
        times, values = window.points(pixels, most)
    is_sample = isinstance(column, SampledColumn)
    points = "all" if len(window) <= most else "sample" if is_sample else "extrema"
    return _since(log, times, values), {"unit": column.unit, "count": str(len(window)), "points": points}


def _since(log: ViewLog, times: I64, values: F64) -> dict[str, Any]:
    return {"t": (times - log.start).astype(np.float64), "v": values}


def _pairs(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    """Answer with y at the times of x, by its last value."""
    lo, hi = given.interval()
    wanted = list(wanted_series(given)) if "s" in given else [_named(given.text(name)) for name in "xy"]
    if len(wanted) != 2:
        raise UsageError("pairs are of two series: x and y")
    # As many points as a line of this width can show, so that zooming shows more.
    most = min(PAIRS, 4 * POINTS_PER_PIXEL * given.get("px"))
    x, y = (log.columns.get(one, given) for one in wanted)
    window = Window(x, log.clock(lo), log.clock(hi))
    with log.reading(x, given):
        times, first = x.read(window.rows(most))
    with log.reading(y, given):
        second = _last_values(y, times)
    columns = {"x": first, "y": second, "t": (times - log.start).astype(np.float64)}
    about = {"unit_x": x.unit, "unit_y": y.unit, "count": str(len(window))}
    return arrow_response(columns, about)


def _named(text: str) -> Wanted:
    """Return the series ``topic.field`` or ``topic:field``; topics with dots need the colon."""
    for mark in (":", "."):
        topic, found, field = text.partition(mark)
        if found and topic and field:
            return Wanted(topic, field)
    raise UsageError(f"{text!r:.80} is no topic.field")


def _last_values(column: SortedColumn, times: I64) -> F64:
    """Return the value at each of *times*, int64[n] in order, that came last; NaN before the first one."""
    rows = column.search(times + 1) - 1
    known = np.unique(rows[rows >= 0])
    values = column.read(known)[1]
    found = np.full(len(times), np.nan)
    there = rows >= 0
    found[there] = values[known.searchsorted(rows[there])]
    return found
