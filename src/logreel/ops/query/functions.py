"""Functions of fields, such as the roll of a quaternion, and curves of the series of charts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.lenses.base import columns_by_path, flatten, times_of
from logreel.lenses.charts import Series
from logreel.log.times import Time, interval
from logreel.ops.query.curves import Curve, channel_curves

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

F64 = NDArray[np.float64]

#: Kinds of inputs: one number; any number of them; a quaternion; no field, only the times of the messages.
NUMBER, VECTOR, QUATERNION, TIMES = "number", "vector", "quaternion", "times"
#: Messages of a channel that are read at once, if a curve is to be reduced.
WINDOW = 2_000_000


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a field, sample by sample.

    text    description for people
    inputs  ``number``, ``vector`` (an array, or a struct of numbers), ``quaternion`` (w, x, y, z), ``times`` (no field)
    apply   called with float64[n] times in seconds and float64[n, k] inputs; returns float64[n]
    unit    returns the unit of the result from that of the input
    """

    name: str
    text: str
    inputs: str
    apply: Callable[[F64, F64], F64]
    unit: Callable[[str], str] = lambda unit: unit


def _degrees(angle: F64) -> F64:
    return np.asarray(np.degrees(angle), np.float64)


def _roll(t: F64, q: F64) -> F64:
    w, x, y, z = q.T
    return _degrees(np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)))


def _pitch(t: F64, q: F64) -> F64:
    w, x, y, z = q.T
    return _degrees(np.arcsin(np.clip(2 * (w * y - z * x), -1, 1)))


def _yaw(t: F64, q: F64) -> F64:
    w, x, y, z = q.T
    return _degrees(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))


def _norm(t: F64, v: F64) -> F64:
    found: F64 = np.sqrt(np.sum(v * v, axis=1))
    return found


def _scaled(factor: float, t: F64, v: F64) -> F64:
    return v[:, 0] * factor


def _derivative(t: F64, v: F64) -> F64:
    return _over_time(t, np.diff(v[:, 0], prepend=v[:1, 0]))


def _over_time(t: F64, change: F64) -> F64:
    """Return *change* per second; NaN for the first value, and where time does not pass."""
    step = np.diff(t, prepend=t[:1])
    found: F64 = np.divide(change, step, out=np.full(len(t), np.nan), where=step > 0)
    return found


def _rate(t: F64, v: F64) -> F64:
    return _over_time(t, np.ones(len(t)))


def _interval(t: F64, v: F64) -> F64:
    found = np.diff(t, prepend=t[:1]) * 1e3
    found[:1] = np.nan
    return found


def _delay(t: F64, v: F64) -> F64:
    # A stamp of 0 means that there is none.
    return np.where(v[:, 0] == 0, np.nan, (t - v[:, 0]) * 1e3)


def _always(unit: str) -> Callable[[str], str]:
    return lambda _: unit


_LIST = (
    Function("roll", "rotation about x of a quaternion", QUATERNION, _roll, _always("deg")),
    Function("pitch", "rotation about y of a quaternion", QUATERNION, _pitch, _always("deg")),
    Function("yaw", "rotation about z of a quaternion", QUATERNION, _yaw, _always("deg")),
    Function("norm", "length of a vector", VECTOR, _norm),
    Function("degrees", "radians as degrees", NUMBER, partial(_scaled, 180 / np.pi), _always("deg")),
    Function("negative", "with the other sign", NUMBER, partial(_scaled, -1.0)),
    Function("percent", "fraction as percent", NUMBER, partial(_scaled, 100.0), _always("%")),
    Function("thousandth", "divided by 1000", NUMBER, partial(_scaled, 1e-3)),
    Function("derivative", "change per second", NUMBER, _derivative, lambda u: f"{u}/s" if u else ""),
    Function("rate", "messages per second", TIMES, _rate, _always("Hz")),
    Function("interval", "time since the message before", TIMES, _interval, _always("ms")),
    Function(
        "delay",
        "time from the stamp in the message to the time of the message",
        NUMBER,
        _delay,
        _always("ms"),
    ),
)
#: All functions by name.
FUNCTIONS = {function.name: function for function in _LIST}


def function_named(name: str) -> Function:
    """Return a function; raises UsageError for an unknown name."""
    if name not in FUNCTIONS:
        raise UsageError(f"no function {name!r}; there are {', '.join(FUNCTIONS)}")
    return FUNCTIONS[name]


def series_curve(
    log: Log,
    series: Series,
    start: Time | None = None,
    end: Time | None = None,
    pixels: int | None = None,
) -> Curve:
    """Return the curve of a series of a chart.

    start, end  as for ``Channel.to_arrow``
    pixels      reduce the curve to the extrema of this number of equal intervals, as ``Curve.reduced``; long channels
                are then read part by part, so that memory is bounded

    Raises TopicError and NotFoundError for unknown names, UsageError for fields without numbers and for an unknown
    function.
    """
    lo, hi = interval(log, start, end)
    ch = log[series.topic]
    parts = [_curve(ch, series, a, b) for a, b in _windows(ch, lo, hi, pixels)]
    share = None if pixels is None else max(pixels // len(parts), 1)
    shown = (
        parts if share is None else [part.reduced(share) for part in parts if len(part.times)] or parts[:1]
    )
    if len(shown) == 1:
        return shown[0]
    times, values = (np.concatenate([getattr(part, name) for part in shown]) for name in ("times", "values"))
    return replace(shown[0], times=times, values=values, count=sum(part.count for part in parts))


def _windows(
    ch: Channel, lo: int | None, hi: int | None, pixels: int | None
) -> list[tuple[int | None, int | None]]:
    """Return intervals of the channel that have about WINDOW messages each."""
    count = -(-len(ch) // WINDOW) if pixels is not None else 1
    first = ch.log.start if lo is None else lo
    last = ch.log.end if hi is None else hi
    if count <= 1 or first is None or last is None:
        return [(lo, hi)]
    edges = [first + (last - first) * i // count for i in range(1, count)]
    return list(zip([lo, *edges], [*edges, hi], strict=True))


def _curve(ch: Channel, series: Series, lo: int | None, hi: int | None) -> Curve:
    function = function_named(series.function) if series.function else None
    if function is not None and function.inputs == TIMES:
        times, unit, inputs = _times(ch, lo, hi), "", np.zeros((0, 0))
    elif series.where:
        times, unit, inputs = _picked(ch, series, lo, hi)
    else:
        times, unit, inputs = _inputs(ch, series.field, lo, hi)
    kind = NUMBER if function is None else function.inputs
    wanted = {NUMBER: 1, QUATERNION: 4}.get(kind, inputs.shape[1])
    if kind != TIMES and inputs.shape[1] != wanted:
        what = f"for {series.function!r}" if function else "for one curve"
        raise UsageError(
            f"{ch.topic}.{series.field} has {inputs.shape[1]} numbers: {what} there must be {wanted}",
            path=ch.log.name,
        )
    if function is not None:
        zero = int(times[0]) if len(times) and series.function != "delay" else 0
        with np.errstate(invalid="ignore", over="ignore"):
            values = function.apply((times - zero) / 1e9, inputs)
        unit = function.unit(unit)
    else:
        values = inputs[:, 0]
    return Curve(ch.topic, series.field, series.unit or unit, times, values, len(times))


def _times(ch: Channel, lo: int | None, hi: int | None) -> I64:
    times = ch.times
    if np.any(times[1:] < times[:-1]):
        times = np.sort(times)
    a, b = (None if t is None else int(np.searchsorted(times, t)) for t in (lo, hi))
    return times[a:b]


def paths_of(ch: Channel, field: str) -> list[str]:
    """Return the paths of the numbers of *field*: itself, or those of its members; a quaternion is w, x, y, z."""
    inside = [path for path in ch.fields if path.startswith(field + ".")] if field else []
    if not inside:
        return [field]
    names = [path[len(field) + 1 :] for path in inside]
    if sorted(names) == list("wxyz"):
        return [f"{field}.{name}" for name in "wxyz"]
    return inside


def _inputs(ch: Channel, field: str, lo: int | None, hi: int | None) -> tuple[I64, str, F64]:
    """Return times, the unit, and float64[n, k] of a field that has k numbers."""
    found = list(channel_curves(ch, paths_of(ch, field), lo, hi))
    values = np.stack([curve.values for curve in found], axis=1)
    return found[0].times, found[0].unit, _ordered(ch, field, values)


def _ordered(ch: Channel, field: str, values: F64) -> F64:
    """Return the values of an array of four with w first, if the channel states another order."""
    order = str(ch.metadata.get("quaternion_order", "")).split()
    if values.shape[1] != 4 or sorted(order) != list("wxyz") or field not in ch.fields:
        return values
    return values[:, [order.index(name) for name in "wxyz"]]


def _picked(ch: Channel, series: Series, lo: int | None, hi: int | None) -> tuple[I64, str, F64]:
    """Return the same as ``_inputs`` for the records or list items that the series selects."""
    from logreel.log.tables import DENSE, table

    key, _, wanted = series.where.partition("=")
    paths = paths_of(ch, series.field)
    wanted_paths = list(dict.fromkeys([key, *paths]))
    found = table(ch, wanted_paths, lo, hi, DENSE)
    columns = columns_by_path(wanted_paths, found)
    names, rows = flatten(columns[key])
    mine = np.flatnonzero(names.astype(str) == wanted)
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    values = np.stack([_items(columns[path], rows[mine], place[mine]) for path in paths], axis=1)
    times = times_of(found)[rows[mine]]
    order = np.argsort(times, kind="stable")
    about = found.schema.field(1 + wanted_paths.index(paths[0])).metadata or {}
    return times[order], about.get(b"unit", b"").decode(), values[order]


def _items(column: Any, rows: I64, place: I64) -> F64:
    """Return float64[m]: the items of a column of lists or numbers at these rows and places; NaN if there is none."""
    values, owner = flatten(column)
    at = np.searchsorted(owner, rows) + place
    there = at < len(owner)
    there[there] = owner[at[there]] == rows[there]
    out = np.full(len(rows), np.nan)
    if values.dtype.kind not in "biuf":
        raise UsageError(f"a field of type {values.dtype} has no numbers to draw")
    out[there] = values[at[there]]
    return out
