"""Fields over time, with no more points than the pixels can show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.types import ASGIApp

from logreel.errors import LogError, UsageError
from logreel.io.arrays import I64
from logreel.ops.query.curves import F64, extrema_between, pixel_edges
from logreel.ops.query.field_column import FieldColumn
from logreel.outputs.view.arrow_answer import arrow_response, arrow_stream, several
from logreel.outputs.view.limits import POINTS_PER_PIXEL, SERIES
from logreel.outputs.view.parameters import Parameters
from logreel.outputs.view.route import ViewRoute

if TYPE_CHECKING:
    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog

PIXELS = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """One series that a request asks for."""

    topic: str
    field: str


@dataclass(frozen=True, slots=True)
class Points:
    """Points of a series: times (int64[n] ns of the log's clock, in order) and values (float64[n]).

    count  number of rows in the window, of which these are all, or the extrema
    all    whether no row of the window is left out
    """

    times: I64
    values: F64
    unit: str
    count: int
    all: bool


def routes() -> list[ViewRoute]:
    """Return the request for series."""
    return [ViewRoute("series", _series, ("topic", "field", "from", "to", "px", "s…"))]


def _series(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    lo, hi = given.interval()
    pixels = given.pixels(default=PIXELS)
    wanted = list(_wanted(given))
    if len(wanted) == 1 and "s" not in given:
        return arrow_response(*_columns(log, points_of(log, wanted[0], lo, hi, pixels, given)))
    return several(_stream(log, one, lo, hi, pixels, given) for one in wanted)


def _wanted(given: Parameters) -> Iterator[Wanted]:
    if "s" not in given:
        yield Wanted(given.text("topic"), given.text("field"))
        return
    if len(given.all("s")) > SERIES:
        raise UsageError(f"one request asks for at most {SERIES} series")
    for text in given.all("s"):
        try:
            found = json.loads(text)
            yield Wanted(str(found["topic"]), str(found["field"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            raise UsageError(f"s {text!r:.80} is no JSON object with topic and field") from None


def _stream(
    log: ViewLog, wanted: Wanted, lo: int | None, hi: int | None, pixels: int, given: Parameters
) -> bytes:
    """Return one of several streams; one that cannot be answered is empty and says why in its metadata."""
    try:
        return arrow_stream(*_columns(log, points_of(log, wanted, lo, hi, pixels, given)))
    except LogError as error:
        return arrow_stream({"t": np.zeros(0), "v": np.zeros(0)}, {"error": error.text})


def _columns(log: ViewLog, points: Points) -> tuple[dict[str, Any], dict[str, str]]:
    columns = {"t": (points.times - log.start).astype(np.float64), "v": points.values}
    about = {"unit": points.unit, "count": str(points.count), "points": "all" if points.all else "extrema"}
    return columns, about


def points_of(
    log: ViewLog, wanted: Wanted, lo: int | None, hi: int | None, pixels: int, given: Parameters
) -> Points:
    """Return the points of a series with lo <= t < hi (ns after the start), and one on either side of these."""
    key = f"column {json.dumps([wanted.topic, wanted.field])}"

    def whole(opened: Any) -> tuple[I64, F64, str]:
        column = FieldColumn(opened[wanted.topic], wanted.field)
        return *column.whole(given.check), column.unit

    times, values, unit = log.once(key, whole, given)
    return reduced(times, values, unit, log.clock(lo), log.clock(hi), pixels)


def reduced(times: I64, values: F64, unit: str, lo: int | None, hi: int | None, pixels: int) -> Points:
    """Return the rows with lo <= time < hi if these are few, else their extrema; and one row on either side."""
    first = 0 if lo is None else int(times.searchsorted(lo))
    last = len(times) if hi is None else int(times.searchsorted(hi))
    last = max(first, last)
    count = last - first
    rows = np.arange(first, last)
    if count > POINTS_PER_PIXEL * pixels:
        lo = int(times[first]) if lo is None else lo
        hi = int(times[last - 1]) + 1 if hi is None else hi
        rows = first + extrema_between(times[first:last], values[first:last], pixel_edges(lo, hi, pixels))
    before = [first - 1] if first > 0 else []
    after = [last] if last < len(times) else []
    every = np.concatenate([np.array(before, np.int64), rows, np.array(after, np.int64)])
    return Points(times[every], values[every], unit, count, len(rows) == count)
