"""Curves: numeric fields over time, with no more points than a drawing can show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError, UsageError
from logreel.io.arrays import F64, I64
from logreel.layout.numpy_columns import ARRAY, LIST, MAX_STRUCTS, STRUCT, Column, type_name
from logreel.lenses.base import columns_by_path
from logreel.lenses.facts import Series
from logreel.log.columns import DENSE, ColumnReader, RowOptions, own_paths
from logreel.log.scan import Brief
from logreel.log.times import Time, interval
from logreel.log.topic_fields import fields_by_topic
from logreel.meaning.gaps import block_lengths, channel_gaps, gap_limit, holds_samples

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


#: Arrays with more items than this are not drawn as a whole.
MAX_ITEMS = 32
#: Most curves that one name may mean.
MAX_CURVES = 64
#: Fields that repeat the time of the message; drawn only if they are named.
STAMPS = ("timestamp", "header.stamp")
#: Words of topics and fields that are commanded: their values hold until the next message even if all of them differ.
_SETPOINT = re.compile(r"(?<![a-z])(setpoints?|sp|targets?|desired|goals?|reference)(?![a-z])", re.I)
#: Topics with such a word whose values are measured all the same: the sticks of a pilot.
_STICKS = re.compile(r"manual_control", re.I)
#: Messages that are looked at to see how often a value changes: this many pieces of as many messages each.
_PIECES, _IN_PIECE = 4, 128
#: Values that change in a smaller share of the messages than this hold until the next one.
_RARELY = 1 / 8


@dataclass(frozen=True, slots=True, repr=False)
class Curve(Brief):
    """One numeric field over time.

    unit    as stated by the schema, or empty
    times   int64[n] ns of the log's clock, in order
    values  float64[n]; NaN: no value
    count   number of messages or records, of which the points are the extrema if ``reduced`` was called
    gaps    intervals (ns) in which nothing was measured, over which no line goes
    stepped  whether a value holds until the next one, as that of a setpoint or a mode does: its line has steps
    """

    topic: str
    field: str
    unit: str
    times: I64
    values: NDArray[np.float64]
    count: int
    gaps: Sequence[tuple[int, int]] = ()
    stepped: bool = False

    @property
    def name(self) -> str:
        """``topic.field``."""
        return f"{self.topic}.{self.field}"

    def reduced(self, pixels: int) -> Curve:
        """Return the curve with at most four points for each of *pixels* equal intervals: first, least, greatest, last.

        A line through these points covers the same pixels as one through all.
        """
        if len(self.times) <= 4 * pixels:
            return self
        rows = extrema(self.times, self.values, pixels)
        return replace(self, times=self.times[rows], values=self.values[rows])

    def broken(self) -> Curve:
        """Return the curve with a point without a value in each gap, where its line breaks."""
        times, values = broken_at(self.times, self.values, self.gaps)
        return self if len(times) == len(self.times) else replace(self, times=times, values=values)


def broken_at(times: I64, values: F64, gaps: Sequence[tuple[int, int]], least: int = 0) -> tuple[I64, F64]:
    """Return points of a line with a NaN in the middle of each gap that lies between two of them.

    least  gaps up to this length (ns), such as a pixel, are left out
    """
    wide = [(lo, hi) for lo, hi in gaps if hi - lo > least]
    if not wide or not len(times):
        return times, values
    ends = np.array(wide, np.int64)
    rows = np.searchsorted(times, ends[:, 1])
    # Of a point in a gap, the channel has other messages than those that were looked at.
    empty = (rows > 0) & (rows < len(times)) & (times[np.maximum(rows - 1, 0)] <= ends[:, 0])
    rows, middles = rows[empty], (ends[:, 0] + (ends[:, 1] - ends[:, 0]) // 2)[empty]
    return np.insert(times, rows, middles), np.insert(values, rows, np.nan)


def paired(x: Curve, y: Curve, most: int) -> tuple[I64, F64, F64]:
    """Return up to *most* times of *x*, its values, and the last value of *y* at each; NaN before the first one."""
    rows = np.unique(np.linspace(0, max(len(x.times) - 1, 0), min(most, len(x.times))).astype(np.int64))
    times, last = x.times[rows], y.times.searchsorted(x.times[rows], "right") - 1
    values = np.full(len(rows), np.nan)
    values[last >= 0] = y.values[last[last >= 0]]
    return times, x.values[rows], values


def is_stepped(ch: Channel, field: str, function: str = "") -> bool:
    """Return whether a value of a field holds until the next message, so that its line has steps.

    So are setpoints, named states and booleans, and what changes in few of the messages, such as modes, counters and
    commands that are repeated. A command that is another one each time, as of a joystick, is a line.
    """
    if function and not function_named(function).keeps_steps:
        return False
    if _SETPOINT.search(f"{ch.topic} {field}") and not _STICKS.search(ch.topic):
        return True
    # Not imported before: most fields are no states.
    from logreel.registry.registry import states_of

    return field in states_of(ch.log).get(ch.topic, {}) or _changes_rarely(ch, field)


def _changes_rarely(ch: Channel, field: str) -> bool:
    """Return whether a field is a boolean, or changes, but in few messages, in some pieces of the channel.

    Where the gaps of a line would not be seen in steps, it is none: nothing is drawn that was not measured.
    """
    n = len(ch)
    if not field or n < 3:
        return False
    changes = steps = 0
    try:
        reader = ColumnReader(ch, own_paths(ch, field))
        firsts = (
            [0] if n <= _PIECES * _IN_PIECE else np.linspace(0, n - _IN_PIECE, _PIECES).astype(int).tolist()
        )
        for first in firsts:
            (column, *others) = reader.read(
                slice(first, first + (n if len(firsts) == 1 else _IN_PIECE))
            ).columns
            curves = [values for _, _, values in sample_numbers(field, "", column)]
            if others or len(curves) != 1:
                return False
            if column.type == "bool":
                return True
            known = curves[0][np.isfinite(curves[0])]
            changes += int(np.count_nonzero(np.diff(known)))
            steps += max(0, len(known) - 1)
    except LogError:
        return False
    if not 0 < changes < _RARELY * steps:
        return False
    return set(channel_gaps(ch)) <= set(channel_gaps(ch, True))


def curves(
    log: Log, wanted: str | Iterable[str], start: Time | None = None, end: Time | None = None
) -> list[Curve]:
    """Return the curves of fields of *log*.

    wanted      ``topic.field``, ``topic:field,field`` or topics, whose numeric fields are all meant; see
                ``fields_by_topic``. An array is one curve for each item
    start, end  as for ``Channel.to_arrow``

    Raises UsageError for text, and for arrays of changing length; TopicError and NotFoundError for unknown names.
    """
    lo, hi = interval(log, start, end)
    chosen: list[Curve] = []
    for topic, fields in fields_by_topic(log, wanted).items():
        # Gaps and steps are looked for, which reads each field again, only if the curves are not too many.
        more = list(islice(channel_curves(log[topic], fields, lo, hi), MAX_CURVES + 1 - len(chosen)))
        if len(chosen) + len(more) > MAX_CURVES:
            raise UsageError(
                f"{wanted!r} means more than {MAX_CURVES} curves: choose fields, such as {(chosen or more)[0].name}",
                path=log.name,
            )
        chosen += _with_gaps(log[topic], more)
    return chosen


def _with_gaps(ch: Channel, curves: Iterable[Curve]) -> Iterator[Curve]:
    """Yield the curves of a channel with their gaps, and whether they are stepped."""
    gaps: dict[bool, list[tuple[int, int]]] = {}
    for curve in curves:
        stepped = is_stepped(ch, curve.field)
        if stepped not in gaps:
            gaps[stepped] = channel_gaps(ch, stepped)
        yield replace(curve, gaps=gaps[stepped], stepped=stepped)


#: Samples of a message at times of their own.
SPREAD = RowOptions(interpolate=True)


def curve_reader(ch: Channel, paths: Sequence[str] | None) -> ColumnReader:
    """Return the reader of fields that become curves: samples of a message are spread up to the next message."""
    if not holds_samples(ch):
        return ColumnReader(ch, paths)
    return ColumnReader(ch, paths, SPREAD, block_lengths(ch.times))


def channel_curves(ch: Channel, fields: list[str] | None, lo: int | None, hi: int | None) -> Iterator[Curve]:
    """Yield the curves of fields of one channel, with lo <= time < hi (ns); see ``curves``."""
    reader = curve_reader(ch, own_paths(ch, fields))
    span = interval(ch.log, *(None if t is None else int(t) for t in (lo, hi)))
    rows = reader.read(ch.log.index.rows_between(ch.number, *span))
    times = rows.time
    order = None if np.all(times[1:] >= times[:-1]) else np.argsort(times, kind="stable")
    drawn = False
    for own_name, own_unit, column in zip(reader.names, reader.projection.units, rows.columns, strict=True):
        has_numbers = False
        for name, unit, numbers in sample_numbers(own_name, own_unit, column):
            if fields is None and name in STAMPS:
                continue
            has_numbers = drawn = True
            yield _curve(ch.topic, name, unit, times, numbers, order)
        if fields is not None and not has_numbers:
            raise UsageError(why_no_curve(ch, own_name, column), path=ch.log.name)
    if not drawn:
        raise UsageError(f"{ch.topic!r} has no numeric field", path=ch.log.name)


def _curve(
    topic: str, name: str, unit: str, times: I64, numbers: NDArray[np.float64], order: I64 | None
) -> Curve:
    if order is not None:
        times, numbers = times[order], numbers[order]
    return Curve(topic, name, unit, times, numbers, len(times))


def sample_numbers(name: str, unit: str, column: Column) -> Iterator[tuple[str, str, NDArray[np.float64]]]:
    """Yield path, unit and values of each curve of a column; nothing for text and other columns without numbers."""
    if column.type == STRUCT:
        for member, member_unit in zip(column.names, column.units, strict=True):
            yield from sample_numbers(f"{name}.{member}", member_unit, column.member(member))
    elif column.type == ARRAY:
        if column.size <= (MAX_STRUCTS if column.has_structs else MAX_ITEMS):
            for i in range(column.size):
                yield from sample_numbers(f"{name}[{i}]", unit, column.select((i,)))
    elif (values := column.numbers()) is not None:
        yield name, unit, values


def why_no_curve(ch: Channel, name: str, column: Column) -> str:
    """Return a sentence why a field with such a column is no single curve."""
    if column.type == ARRAY:
        return f"{ch.topic}.{name} has {column.size} items: choose some of them, such as {ch.topic}.{name}[0]"
    if column.type == LIST:
        return (
            f"{ch.topic}.{name} has arrays of changing length: choose an item, such as {ch.topic}.{name}[0]"
        )
    return f"{ch.topic}.{name} is no number, but {type_name(column)}"


def pixel_edges(start: int, end: int, pixels: int) -> I64:
    """Return int64[pixels + 1] ns: bounds of equal intervals of start <= time < end."""
    edges: I64 = start + ((end - start) / pixels * np.arange(pixels + 1)).astype(np.int64)
    return edges


def extrema(times: I64, values: F64, pixels: int) -> I64:
    """Return the rows of the first, least, greatest and last value in each of *pixels* equal intervals of time.

    times   int64[n] in order
    values  float64[n]; NaN is neither least nor greatest

    Returns int64[m] in order, m <= 4 * pixels.
    """
    edges = pixel_edges(int(times[0]), int(times[-1]) + 1, pixels)
    return extrema_between(times, values, edges)


def extrema_between(times: I64, values: F64, edges: I64) -> I64:
    """Return the same for the intervals between *edges*, int64[pixels + 1] ns; *times* are in the outer ones."""
    first = np.unique(np.searchsorted(times, edges[:-1]))
    first = first[first < len(times)]
    last = np.append(first[1:], len(times)) - 1
    interval_of = np.repeat(np.arange(len(first)), last - first + 1)
    rows = [first, last]
    for least in (np.fmin, np.fmax):
        equal = np.flatnonzero(values == least.reduceat(values, first.astype(np.intp))[interval_of])
        rows.append(equal[np.unique(interval_of[equal], return_index=True)[1]])
    return np.unique(np.concatenate(rows))


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
    keeps_steps  whether the result of values that hold until the next message holds, too
    number  what the number is that stands behind the name of the function, as in ``low_pass 5``; empty: there is none
    usual   that number if none is given
    """

    name: str
    text: str
    inputs: str
    apply: Callable[[F64, F64], F64]
    unit: Callable[[str], str] = lambda unit: unit
    keeps_steps: bool = True
    number: str = ""
    usual: float = 1.0


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
    length: F64 = np.sqrt(np.sum(v * v, axis=1))
    return length


def _scaled(factor: float, t: F64, v: F64) -> F64:
    return v[:, 0] * factor


def _derivative(t: F64, v: F64) -> F64:
    return _over_time(t, np.diff(v[:, 0], prepend=v[:1, 0]))


def _over_time(t: F64, change: F64) -> F64:
    """Return *change* per second; NaN for the first value, and where time does not pass."""
    step = np.diff(t, prepend=t[:1])
    slope: F64 = np.divide(change, step, out=np.full(len(t), np.nan), where=step > 0)
    return slope


def _integral(t: F64, v: F64) -> F64:
    """Return the sum of the trapezoids up to each value; over one that is missing, from the one before to the next."""
    total = np.full(len(t), np.nan)
    known = np.flatnonzero(np.isfinite(v[:, 0]))
    times, values = t[known], v[known, 0]
    total[known] = np.concatenate(
        [np.zeros(min(1, len(known))), np.cumsum(np.diff(times) * (values[1:] + values[:-1]) / 2)]
    )
    return total


def _unit_of_integral(unit: str) -> str:
    for per in ("/s²", "/s^2"):
        if unit.endswith(per):
            return unit.removesuffix(per) + "/s"
    return unit.removesuffix("/s") if unit.endswith("/s") else f"{unit}·s" if unit else ""


def _moving_mean(seconds: float, t: F64, v: F64) -> F64:
    """Return the mean of the values at most half of *seconds* before and after each time."""
    known = np.isfinite(v[:, 0])
    # Sums of small numbers are exact where those of large ones are not.
    middle = v[known, 0].mean() if known.any() else 0.0
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, v[:, 0] - middle, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    first, last = t.searchsorted(t - seconds / 2, "left"), t.searchsorted(t + seconds / 2, "right")
    count = counts[last] - counts[first]
    mean = np.divide(sums[last] - sums[first], count, out=np.full(len(t), np.nan), where=count > 0)
    return np.where(known, mean + middle, np.nan)


#: Samples of the even grid of a filter for each sample of the field: of a very uneven one, parts are left as they are.
_MOST_EVEN = 8


def _low_pass(hertz: float, t: F64, v: F64) -> F64:
    """Return values without what is faster than *hertz*, without delay: a Butterworth filter of order 2, twice.

    Parts between gaps are filtered by themselves; a missing value stays missing.
    """
    out = np.full(len(t), np.nan)
    known = np.flatnonzero(np.isfinite(v[:, 0]))
    times, values = t[known], v[known, 0]
    steps = np.diff(times)
    step = float(np.median(steps[steps > 0])) if (steps > 0).any() else 0.0
    if not step:
        return v[:, 0]
    nanoseconds = (steps * 1e9).astype(np.int64)
    for part in np.split(np.arange(len(known)), np.flatnonzero(nanoseconds > gap_limit(nanoseconds)) + 1):
        since, own = times[part] - times[part[0]], values[part]
        count = int(since[-1] / step) + 1
        smooth = own
        if 2 <= count <= _MOST_EVEN * len(part) + 2:
            even = np.interp(np.arange(count + 1) * step, since, own)
            smooth = np.interp(since, np.arange(count + 1) * step, _without_fast(even, hertz * step))
        out[known[part]] = smooth
    return out


def _without_fast(even: F64, cut: float) -> F64:
    """Return evenly sampled values without frequencies above *cut* (per sample); ends are mirrored about themselves."""
    before, after = 2 * even[0] - even[:0:-1], 2 * even[-1] - even[-2::-1]
    long = np.concatenate([before, even, after])
    middle = long.mean()
    frequency = np.fft.rfftfreq(len(long))
    kept: F64 = np.fft.irfft(np.fft.rfft(long - middle) / (1 + (frequency / cut) ** 4), len(long)) + middle
    return kept[len(before) : len(before) + len(even)]


def _high_pass(hertz: float, t: F64, v: F64) -> F64:
    return v[:, 0] - _low_pass(hertz, t, v)


def _rate(t: F64, v: F64) -> F64:
    return _over_time(t, np.ones(len(t)))


def _interval(t: F64, v: F64) -> F64:
    milliseconds = np.diff(t, prepend=t[:1]) * 1e3
    milliseconds[:1] = np.nan
    return milliseconds


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
    Function("derivative", "change per second", NUMBER, _derivative, lambda u: f"{u}/s" if u else "", False),
    Function("integral", "sum over time, by trapezoids", NUMBER, _integral, _unit_of_integral, False),
    Function(
        "moving_mean",
        "mean of the values around each moment",
        NUMBER,
        partial(_moving_mean, 1.0),
        keeps_steps=False,
        number="seconds of the mean",
    ),
    Function(
        "low_pass",
        "slow changes only, without delay",
        NUMBER,
        partial(_low_pass, 1.0),
        keeps_steps=False,
        number="highest frequency, Hz",
    ),
    Function(
        "high_pass",
        "fast changes only, without delay",
        NUMBER,
        partial(_high_pass, 1.0),
        keeps_steps=False,
        number="lowest frequency, Hz",
    ),
    Function("rate", "messages per second", TIMES, _rate, _always("Hz"), False),
    Function("interval", "time since the message before", TIMES, _interval, _always("ms"), False),
    Function(
        "delay",
        "time from the stamp in the message to the time of the message",
        NUMBER,
        _delay,
        _always("ms"),
        False,
    ),
)
#: All functions by name.
FUNCTIONS = {function.name: function for function in _LIST}


def function_named(text: str) -> Function:
    """Return a function by its name, or by name and number, ``low_pass 5``.

    Raises UsageError for an unknown name, and for what is no such number.
    """
    name, _, number = text.partition(" ")
    if name not in FUNCTIONS:
        raise UsageError(f"no function {name!r}; there are {', '.join(FUNCTIONS)}")
    function = FUNCTIONS[name]
    if not number:
        return function
    if not function.number:
        raise UsageError(f"{name!r} takes no number")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise UsageError(f"{text!r:.80}: write {name} and a number above 0, the {function.number}")
    bound: Any = function.apply
    return replace(function, apply=partial(bound.func, value))


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
    stepped = is_stepped(ch, series.field, series.function)
    gaps = channel_gaps(ch, stepped)
    parts = [_series_part(ch, series, a, b) for a, b in _windows(ch, lo, hi, pixels)]
    share = None if pixels is None else max(pixels // len(parts), 1)
    shown = (
        parts if share is None else [part.reduced(share) for part in parts if len(part.times)] or parts[:1]
    )
    if len(shown) == 1:
        return replace(shown[0], gaps=gaps, stepped=stepped)
    times, values = (np.concatenate([getattr(part, name) for part in shown]) for name in ("times", "values"))
    count = sum(part.count for part in parts)
    return replace(shown[0], times=times, values=values, count=count, gaps=gaps, stepped=stepped)


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


def _series_part(ch: Channel, series: Series, lo: int | None, hi: int | None) -> Curve:
    function = function_named(series.function) if series.function else None
    if function is not None and function.inputs == TIMES:
        times, unit, inputs = _times(ch, lo, hi), "", np.zeros((0, 0))
    elif series.where:
        times, unit, inputs = _picked(ch, series, lo, hi)
    else:
        times, unit, inputs = _inputs(ch, series.field, lo, hi)
    input_type = NUMBER if function is None else function.inputs
    wanted = {NUMBER: 1, QUATERNION: 4}.get(input_type, inputs.shape[1])
    if input_type != TIMES and inputs.shape[1] != wanted:
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
    inputs = list(channel_curves(ch, paths_of(ch, field), lo, hi))
    values = np.stack([curve.values for curve in inputs], axis=1)
    return inputs[0].times, inputs[0].unit, _ordered(ch, field, values)


def _ordered(ch: Channel, field: str, values: F64) -> F64:
    """Return the values of an array of four with w first, if the channel states another order."""
    order = str(ch.metadata.get("quaternion_order", "")).split()
    if values.shape[1] != 4 or sorted(order) != list("wxyz") or field not in ch.fields:
        return values
    return values[:, [order.index(name) for name in "wxyz"]]


def _picked(ch: Channel, series: Series, lo: int | None, hi: int | None) -> tuple[I64, str, F64]:
    """Return the same as ``_inputs`` for the records or list items that the series selects."""
    key, _, wanted = series.where.partition("=")
    paths = paths_of(ch, series.field)
    wanted_paths = list(dict.fromkeys([key, *paths]))
    reader = ColumnReader(ch, wanted_paths, DENSE)
    records = reader.read(ch.log.index.rows_between(ch.number, lo, hi))
    columns = columns_by_path(wanted_paths, records)
    names, rows = columns[key].flat()
    chosen = np.flatnonzero(names.astype(str) == wanted)
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    values = np.stack([_items(columns[path], rows[chosen], place[chosen]) for path in paths], axis=1)
    times = records.time[rows[chosen]]
    order = np.argsort(times, kind="stable")
    return times[order], reader.projection.units[wanted_paths.index(paths[0])], values[order]


def _items(column: Column, rows: I64, place: I64) -> F64:
    """Return float64[m]: the items of a column of lists or numbers at these rows and places; NaN if there is none."""
    values, owner = column.flat()
    at = np.searchsorted(owner, rows) + place
    present = at < len(owner)
    present[present] = owner[at[present]] == rows[present]
    out = np.full(len(rows), np.nan)
    if values.dtype.kind not in "biuf":
        raise UsageError(f"a field of type {values.dtype} has no numbers to draw")
    out[present] = values[at[present]]
    return out


#: Samples of a segment, and the least number of them.
SEGMENT, LEAST = 1024, 64
#: Messages that are read of a channel; of a longer one, equal parts all over the log.
MOST, PARTS = 1_000_000, 50
#: A step longer than this many median steps ends a segment; over shorter ones, values are interpolated.
GAP = 6


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Amplitude spectral density of one series.

    frequency  float64[n] Hz
    density    float64[n] unit per √Hz
    segments   number of segments in the mean
    """

    series: Series
    unit: str
    frequency: F64
    density: F64
    segments: int


def spectrum(log: Log, series: Series, start: int | None, end: int | None) -> Spectrum | None:
    """Return the spectrum of a series between two times (ns); None if it is too short or too irregular."""
    total: F64 | None = None
    count, unit, rate = 0, "", 0.0
    for lo, hi in _parts(log, series, start, end):
        curve = series_curve(log, series, lo, hi)
        unit = curve.unit
        if rate == 0 and len(curve.times) > LEAST:
            step = float(np.median(np.diff(curve.times))) / 1e9
            rate = 1 / step if step > 0 else 0.0
        if rate == 0:
            continue
        for values in _segments(curve.times, curve.values, rate):
            (density,) = spectral_density(values[None], rate)
            if total is None:
                total = np.zeros_like(density)
            if len(density) == len(total):
                total += density
                count += 1
    if total is None or not count:
        return None
    frequency = np.arange(1, len(total) + 1) * rate / (2 * len(total))
    return Spectrum(series, unit, frequency, np.sqrt(total / count), count)


def _parts(
    log: Log, series: Series, start: int | None, end: int | None
) -> list[tuple[int | None, int | None]]:
    ch = log[series.topic]
    first, last = log.start if start is None else start, log.end if end is None else end
    if len(ch) <= MOST or first is None or last is None:
        return [(start, end)]
    share = (last - first) * MOST // len(ch) // PARTS
    return [(at, at + share) for at in (first + (last - first) * n // PARTS for n in range(PARTS))]


def _segments(times: I64, values: F64, rate: float) -> list[F64]:
    """Return evenly sampled segments of equal length that overlap by half, without long gaps and missing values."""
    good = np.isfinite(values)
    times, values = times[good], values[good]
    size = SEGMENT
    while size > len(values) // 4 and size > LEAST:
        size //= 2
    step = 1e9 / rate
    broken = np.flatnonzero(np.diff(times) > GAP * step) + 1
    segments = []
    for part in np.split(np.arange(len(times)), broken):
        if len(part) < size:
            continue
        since = times[part] - times[part[0]]
        even = np.interp(np.arange(0, since[-1] + 1, step), since, values[part])
        segments += [even[at : at + size] for at in range(0, len(even) - size + 1, size // 2)]
    return segments


def spectral_density(values: F64, rate: float = 1.0) -> F64:
    """Return float64[w, n // 2]: one-sided power density (unit²/Hz) of w segments, without the frequency 0.

    values  float64[w, n]; what is missing counts as the mean of its segment
    rate    samples per second

    The frequencies are multiples of rate / n.
    """
    known = np.isfinite(values)
    count = known.sum(axis=1, keepdims=True)
    mean = np.where(known, values, 0).sum(axis=1, keepdims=True) / np.maximum(count, 1)
    change = np.where(known, values - mean, 0)
    samples = values.shape[1]
    window = np.hanning(samples + 1)[:-1]
    density: F64 = np.abs(np.fft.rfft(change * window, axis=1)[:, 1:]) ** 2 / (rate * np.sum(window**2))
    # Half of the power is at negative frequencies, except at half the rate.
    density[:, : (samples - 1) // 2] *= 2
    return density
