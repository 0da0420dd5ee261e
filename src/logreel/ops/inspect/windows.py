"""How the channels of a log behave over time, in figures that contracts are learned from and judged by.

Values are reduced to figures of windows of a second each, batch by batch, so memory follows the number of windows, not
of messages. Rates, jitter and delays are measured over times alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import LogError
from logreel.io.arrays import F64, I64
from logreel.layout.numpy_columns import ARRAY, LIST, STRUCT, Column
from logreel.lenses.base import columns, find_stamp, members
from logreel.log.columns import PLAIN, ColumnReader, own_paths
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND
from logreel.meaning.charts import bands
from logreel.meaning.gaps import steps_of
from logreel.ops.query.record_batches import rows_per_batch

#: Length of a window of values in ns.
WINDOW = SECOND
#: Windows after a change of state that belong to no state, since values settle, and before it: it is told late.
SETTLE, LATE = 2, 1
#: Kinds of bands that make the state of a log.
STATES = ("mode", "armed", "air")
#: Steps, or delays, of which the median is taken: one late message is no jitter.
BLOCK = 20
#: A field with more levels than this, or more changes, has no names of levels.
LEVELS, CHANGES = 16, 4096
#: Items of an array that are fields of their own.
ITEMS = 16
#: Windows before and after a broken bound in which the begin of a drift is looked for, the least ones of it and before
#: it, how finely in s, the share of the variation that it has to explain, and how far from it a window is at most.
RAMP_BEFORE, RAMP_AFTER, RAMP_LEAST, RAMP_STEP, RAMP_SHARE, RAMP_MOST = 40, 2, 3, 0.05, 0.9, 0.2


#: Steps of lags in ns, how far they are looked for, and the least correlation.
LAG_STEP, LAG_MOST, CORRELATED = SECOND // 10, 30, 0.95
#: Time over which lags are looked for at most, ns.
LAG_SPAN = 300 * SECOND


def in_order(times: I64) -> I64:
    """Return *times* sorted."""
    return np.sort(times) if bool((times[1:] < times[:-1]).any()) else times


def silences(ch: Channel) -> tuple[I64, NDArray[np.uint64]]:
    """Return start and length (ns) of each step between messages, and before the first and after the last message."""
    edges = [time for time in (ch.log.start, ch.log.end) if time is not None]
    times = np.sort(np.append(ch.times, np.array(edges, np.int64)))
    return times[:-1], steps_of(times)


def counts_within(times: I64, window: int) -> I64:
    """Return int64[k]: how many messages there are in the *window* ns that begin at each of the first k messages.

    times  int64[n] in order; the last messages, from which on the window is not over yet, are left out
    """
    if not len(times) or int(times[-1]) - int(times[0]) < window:
        return np.zeros(0, np.int64)
    first = times[: int(np.searchsorted(times, int(times[-1]) - window, "right"))]
    ends: I64 = np.searchsorted(times, first + window).astype(np.int64)
    return ends - np.arange(len(first))


def block_medians(values: F64, size: int = BLOCK) -> F64:
    """Return float64[n // size]: the median of each block of *size* values."""
    count = len(values) // size
    medians: F64 = np.median(values[: count * size].reshape(count, size), axis=1) if count else values[:0]
    return medians


def jitter_blocks(times: I64) -> F64:
    """Return float64[k] ns: for each block of steps, the median distance of a step from the median of all."""
    steps = steps_of(times).astype(np.float64)
    return block_medians(np.abs(steps - np.median(steps))) if len(steps) else steps


@dataclass(frozen=True, slots=True)
class Delays:
    """Time of logging less the stamp in the message: medians of blocks, with the times at which blocks begin."""

    begin: I64
    delay: F64


def delays(ch: Channel) -> Delays | None:
    """Return the delays of a channel in ns; None if its messages have no stamps that go on."""
    try:
        stamp = find_stamp(members(ch))
        if stamp is None:
            return None
        stamped = columns(ch, stamp.paths, stamp=stamp)
    except LogError:
        return None
    known = stamped.stamp != 0
    times, stamps = stamped.time[known], stamped.stamp[known]
    if len(times) < BLOCK or bool((stamps == stamps[0]).all()):
        return None
    delay = block_medians((times - stamps).astype(np.float64))
    return Delays(times[: len(delay) * BLOCK : BLOCK], delay)


# ------------------------------------------------------------------------------------------------------ states


class States:
    """Which state, such as ``Mission, armed``, each window of a log belongs to.

    names  of the states that occur
    """

    def __init__(self, log: Log) -> None:
        self.zero = log.start or 0
        known = bands(log)
        by_kind = {name: [band for band in known if band.kind == name] for name in STATES}
        self._bands = {name: inner for name, inner in by_kind.items() if inner}
        edges = {time for inner in self._bands.values() for band in inner for time in (band.start, band.end)}
        self._edges = np.array(sorted(edges), np.int64)
        # Between two edges nothing changes.
        middles = [*(self._edges[:-1] + np.diff(self._edges) // 2).tolist()]
        self._names = [self._name(time) for time in middles]
        self._last: tuple[I64, I64] = (np.zeros(0, np.int64),) * 2
        self.names = sorted({name for name in self._names if name})

    def _name(self, time: int) -> str:
        labels = []
        for inner in self._bands.values():
            labels += [band.label for band in inner if band.start <= time < band.end][:1]
        return ", ".join(labels)

    def of(self, windows: I64) -> NDArray[np.int64]:
        """Return int64[w]: the index in *names* of each window; -1 where the state changes, settles or has no name."""
        code = np.full(len(windows), -1, np.int64)
        if not self.names:
            return code
        # Most fields of a topic have the same windows.
        if np.array_equal(self._last[0], windows):
            return self._last[1]
        begin = self.zero + (windows - SETTLE) * WINDOW
        end = self.zero + (windows + 1 + LATE) * WINDOW
        first = np.searchsorted(self._edges, begin, "right") - 1
        last = np.searchsorted(self._edges, end, "left") - 1
        number = {name: i for i, name in enumerate(self.names)}
        codes = np.array([number.get(name, -1) for name in self._names] + [-1], np.int64)
        # The first window of a log is after no change.
        starts = (first < 0) & (last == 0)
        inside = ((first == last) & (first >= 0)) | starts
        code[inside] = codes[np.minimum(last[inside], len(self._names))]
        self._last = windows, code
        return code


# ------------------------------------------------------------------------------------------------------ values

#: Rows of the table of a part of a field: what is added, what is the least, and what is the greatest.
_NUMBER, _NAN, _SUM, _SQUARES, _MOVES, _LOW, _HIGH, _STEP = range(8)


@dataclass(frozen=True, slots=True)
class FieldWindows:
    """One numeric field in windows of a second; all arrays have one entry for each window with messages, by time.

    number   int64[w]: seconds since the start of the log
    count    values that are numbers; *nan* counts the others
    low, high, mean, spread  least, greatest and mean value, and standard deviation; NaN without numbers
    step     greatest difference to the value before; *moves* counts the values that differ from it
    levels   messages by value, of integers and flags with few values; None of others
    changes  time, value before and value after of each change of such a field; None if there are too many
    rises, falls  whether any value is greater, and less, than the one before
    """

    path: str
    number: I64
    count: I64
    nan: I64
    low: F64
    high: F64
    mean: F64
    spread: F64
    step: F64
    moves: I64
    levels: dict[int, int] | None
    changes: list[tuple[int, int, int]] | None
    rises: bool
    falls: bool


class _FieldTally:
    """Figures of one field, from batches in the order of the file."""

    def __init__(self, is_whole: bool) -> None:
        self._parts: list[tuple[I64, F64]] = []
        self._last = np.nan
        self._offset: float | None = None
        self.levels: dict[int, int] | None = {} if is_whole else None
        self.changes: list[tuple[int, int, int]] | None = [] if is_whole else None
        self.rises = self.falls = False

    @property
    def has_values(self) -> bool:
        return bool(self._parts)

    def add(self, times: I64, zero: int, values: NDArray[np.float64]) -> None:
        if not len(values):
            return
        if self.levels is not None:
            self._count_levels(times, values)
        known = np.isfinite(values)
        if self._offset is None and known.any():
            self._offset = float(values[np.argmax(known)])
        centred = np.where(known, values - (self._offset or 0.0), 0.0)
        before = np.concatenate([[self._last], values[:-1]])
        with np.errstate(invalid="ignore"):
            step = values - before
        step[~np.isfinite(step)] = 0.0
        self.rises |= bool((step > 0).any())
        self.falls |= bool((step < 0).any())
        self._last = float(values[-1])
        nan = np.isnan(values)
        table = np.stack([
            known, nan, centred, centred * centred, step != 0, np.where(nan, np.inf, values),
            np.where(nan, -np.inf, values), np.abs(step),
        ]).astype(np.float64, copy=False)  # fmt: skip
        self._parts.append(_reduced((times - zero) // WINDOW, table))
        if len(self._parts) > 64:
            self._parts = [self._joined()]

    def _count_levels(self, times: I64, values: NDArray[np.float64]) -> None:
        # Sorting all values of a field that has many would take longer than all else.
        few = len(np.unique(values[: 16 * LEVELS])) <= LEVELS
        if not few:
            self.levels = self.changes = None
            return
        levels, counts = np.unique(values, return_counts=True)
        total = {} if self.levels is None else self.levels
        for level, n in zip(levels.tolist(), counts.tolist(), strict=True):
            total[int(level)] = total.get(int(level), 0) + n
        if len(total) > LEVELS:
            self.levels = self.changes = None
        elif self.changes is not None:
            before = np.concatenate([[self._last], values[:-1]])
            rows = np.flatnonzero((before != values) & np.isfinite(before))
            if len(self.changes) + len(rows) > CHANGES:
                self.changes = None
                return
            columns = times[rows].tolist(), before[rows].tolist(), values[rows].tolist()
            self.changes += [(t, int(a), int(b)) for t, a, b in zip(*columns, strict=True)]

    def _joined(self) -> tuple[I64, F64]:
        """Return the parts as one: windows may begin in one batch, and end in another."""
        number = np.concatenate([number for number, _ in self._parts])
        order = np.argsort(number, kind="stable")
        return _reduced(number[order], np.concatenate([table for _, table in self._parts], axis=1)[:, order])

    def result(self, path: str) -> FieldWindows:
        number, table = self._joined()
        count = table[_NUMBER]
        with np.errstate(invalid="ignore", divide="ignore"):
            centred = table[_SUM] / count
            spread = np.sqrt(np.maximum(table[_SQUARES] / count - centred * centred, 0.0))
        low = np.where(np.isinf(table[_LOW]) & (table[_LOW] > 0) & (count == 0), np.nan, table[_LOW])
        high = np.where(np.isinf(table[_HIGH]) & (table[_HIGH] < 0) & (count == 0), np.nan, table[_HIGH])
        return FieldWindows(
            path,
            number,
            count.astype(np.int64),
            table[_NAN].astype(np.int64),
            low,
            high,
            centred + (self._offset or 0.0),
            spread,
            table[_STEP],
            table[_MOVES].astype(np.int64),
            self.levels,
            self.changes,
            self.rises,
            self.falls,
        )


def _reduced(number: I64, table: F64) -> tuple[I64, F64]:
    """Return each run of equal windows as one."""
    begins = np.concatenate([[0], np.flatnonzero(number[1:] != number[:-1]) + 1]).astype(np.intp)
    parts = [
        np.add.reduceat(table[:_LOW], begins, axis=1),
        np.minimum.reduceat(table[_LOW : _LOW + 1], begins, axis=1),
        np.maximum.reduceat(table[_HIGH:], begins, axis=1),
    ]
    return number[begins], np.concatenate(parts)


def field_windows(
    ch: Channel, paths: Sequence[str] | None = None, with_bytes: bool = True
) -> list[FieldWindows]:
    """Return the numeric fields of a channel, or those at *paths* and inside of them, in windows.

    with_bytes  False: without long arrays of bytes, such as pictures

    Memory is that of a batch, and of the windows of the fields. Raises DefinitionError if the definition of the channel
    cannot be used.
    """
    tallies: dict[str, _FieldTally] = {}
    zero = ch.log.start or 0
    reader = ColumnReader(ch, own_paths(ch, paths), PLAIN)
    for rows in reader.batches(slice(0, len(ch)), rows_per_batch(ch)):
        for name, column in zip(reader.names, rows.columns, strict=True):
            for path, times, values, is_whole in _numbers(name, column, rows.time, with_bytes):
                if path not in tallies:
                    tallies[path] = _FieldTally(is_whole)
                tallies[path].add(times, zero, values)
    return [tally.result(path) for path, tally in tallies.items() if tally.has_values]


def values_between(ch: Channel, path: str, start: int, end: int) -> tuple[I64, F64]:
    """Return times and values of the numeric field at *path* with start <= time < end (ns); see ``FieldWindows``."""
    reader = ColumnReader(ch, own_paths(ch, [path.removesuffix("[]")]), PLAIN)
    rows = reader.read(ch.log.index.rows_between(ch.number, start, end))
    for name, column in zip(reader.names, rows.columns, strict=True):
        for own_path, times, values, _ in _numbers(name, column, rows.time):
            if own_path == path:
                return times, values
    return rows.time[:0], np.zeros(0)


def _numbers(
    path: str, column: Column, times: I64, with_bytes: bool = True
) -> Iterator[tuple[str, I64, F64, bool]]:
    """Yield path, times and values of the numbers of a column, and whether they are integers or flags."""
    if column.type == STRUCT:
        for name in column.names:
            yield from _numbers(f"{path}.{name}", column.member(name), times, with_bytes)
    elif column.type == ARRAY and column.size <= ITEMS:
        for i in range(column.size):
            yield from _numbers(f"{path}[{i}]", column.select((i,)), times, with_bytes)
    elif column.type in (ARRAY, LIST):
        values, rows = column.flat()
        if values.dtype.kind in "iufb" and (with_bytes or values.dtype.itemsize > 1):
            yield f"{path}[]", times[rows], values.astype(np.float64), False
    elif column.type.startswith(("int", "uint", "float", "bool")):
        present = column.present()
        with np.errstate(invalid="ignore"):
            values = present.values.astype(np.float64)
        yield path, times if column.valid is None else times[column.valid], values, column.type[:5] != "float"


def difference(a: FieldWindows, b: FieldWindows) -> tuple[I64, F64]:
    """Return the windows that both fields have, and by how much their means differ."""
    common, in_a, in_b = np.intersect1d(a.number, b.number, assume_unique=True, return_indices=True)
    return common, np.abs(a.mean[in_a] - b.mean[in_b])


def goes_by_one(field: FieldWindows) -> bool:
    """Return whether whole values are a scale, such as gears: they only ever change by one, and have three or more."""
    steps = {abs(after - before) for _, before, after in field.changes or ()}
    return steps == {1} and len(field.levels or ()) > 2


def still_runs(field: FieldWindows, moving: float = 0.0) -> list[tuple[int, int]]:
    """Return first and last index of each run of windows in which values do not differ from the one before.

    moving  share of the values that may
    """
    still = (field.moves <= moving * field.count) & (field.count > 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True))


def drift_begin(number: I64, means: F64, place: int) -> float | None:
    """Return when a drift began, in s since the start of the log, that leaves a bound in the window *place*.

    number, means  of windows, as in ``FieldWindows``

    A drift leaves a bound long after it begins. The means before are fitted by a level, from a moment on with a slope.
    None if they do not lie still before that moment, or if a jump or a straight line fits them as well.
    """
    first, last = max(place - RAMP_BEFORE, 0), place + RAMP_AFTER
    rows = np.arange(first, min(last + 1, len(number)))
    rows = rows[np.isfinite(means[rows])]
    begin, mean = number[rows].astype(np.float64), means[rows]
    total = float(np.var(mean)) * len(rows) if len(rows) >= 3 * RAMP_LEAST else 0.0
    if not total > 0:
        return None
    moments = np.arange(begin[RAMP_LEAST], begin[-1] - RAMP_LEAST + 1, RAMP_STEP)
    # The mean of a slope over a window in which it begins is that of a part of it.
    inside = np.clip(begin[None, :] + 1 - moments[:, None], 0, None)
    slope = np.where(inside < 1, inside**2 / 2, inside - 0.5)
    jumps = np.arange(begin[0] + RAMP_STEP, begin[-1] + 1, RAMP_STEP)
    others = np.vstack([np.clip(begin[None, :] + 1 - jumps[:, None], 0, 1), begin])
    (rest, worst), (other_rest, _) = _rest_of_fit(slope, mean), _rest_of_fit(others, mean)
    if not len(rest) or float(rest.min()) > min((1 - RAMP_SHARE) * total, float(other_rest.min()) / 2):
        return None
    best = int(np.argmin(rest))
    before = mean[begin + 1 <= moments[best]]
    excursion = abs(float(mean[-1]) - float(before.mean())) if len(before) >= RAMP_LEAST else 0.0
    # A part of a slow course bends, but does not lie still before; behind one that goes on, a fault is no part of it.
    is_drift = float(np.std(before)) < (1 - RAMP_SHARE) * excursion and worst[best] < RAMP_MOST * excursion
    return float(moments[best]) if is_drift else None


def _rest_of_fit(courses: F64, values: F64) -> tuple[F64, F64]:
    """Return float64[k] each: sum of squares, and greatest distance, of *values* from a level and each of k courses."""
    around = courses - courses.mean(axis=1, keepdims=True)
    centred = values - values.mean()
    factor = (around @ centred) / np.maximum(np.sum(around**2, axis=1), 1e-300)
    rest = centred - factor[:, None] * around
    return np.sum(rest**2, axis=1), np.abs(rest).max(axis=1)


# ------------------------------------------------------------------------------------------------------ text

_VARIABLE = re.compile(r"0[xX][0-9a-fA-F]+|[-+]?\d+(?:[.,:]\d+)*(?:[eE][-+]?\d+)?")


def text_pattern(text: str) -> str:
    """Return a line of text with ``#`` in place of each number."""
    return " ".join(_VARIABLE.sub("#", text).split())


def text_patterns(log: Log, level: int) -> Iterable[tuple[str, int | None, int]]:
    """Yield pattern, level and time of the lines of text of at least this syslog level."""
    for line in log.text:
        if line.level is not None and line.level <= level and not line.repeated:
            yield text_pattern(line.text), line.level, line.time


# ------------------------------------------------------------------------------------------------------ two runs


def independent(values: F64) -> float:
    """Return how many independent values as many autocorrelated ones, float64[n], are worth: at least 1."""
    n, around = len(values), values - values.mean()
    power = float(around @ around)
    if not power > 0 or n < 4:
        return float(n)
    # Of few values it is estimated too low, by about (1 + 3 r) / n (Marriott and Pope), with a standard error: the
    # greater one is the careful one.
    correlation = min(max((n * float(around[1:] @ around[:-1]) / power + 1) / (n - 3), 0.0), 1.0)
    correlation = min(correlation + math.sqrt((1 - correlation**2) / n), 1.0)
    return max(n * (1 - correlation) / (1 + correlation), 1.0)


def kolmogorov_smirnov(a: F64, b: F64) -> float:
    """Return the greatest difference of the distribution functions of two samples, 0 to 1."""
    a, b = np.sort(a), np.sort(b)
    every = np.concatenate([a, b])
    in_a, in_b = np.searchsorted(a, every, "right") / len(a), np.searchsorted(b, every, "right") / len(b)
    return float(np.abs(in_a - in_b).max())


def wasserstein(a: F64, b: F64) -> float:
    """Return the area between the distribution functions of two samples, in their unit (earth mover's distance)."""
    a, b = np.sort(a), np.sort(b)
    every = np.sort(np.concatenate([a, b]))
    in_a = np.searchsorted(a, every[:-1], "right") / len(a)
    in_b = np.searchsorted(b, every[:-1], "right") / len(b)
    return float(np.sum(np.abs(in_a - in_b) * np.diff(every)))


def cohens_d(a: F64, b: F64) -> float | None:
    """Return the difference of the means of two samples in pooled standard deviations; None for constant ones."""
    pooled = float(np.sqrt((np.var(a) + np.var(b)) / 2))
    return (float(np.mean(b)) - float(np.mean(a))) / pooled if pooled > 0 else None


def lag_of(
    a: Log, b: Log, zeros: tuple[int, int], topic: str, path: str, half: int | None = None
) -> tuple[float, float] | None:
    """Return by how many ns a field of *b* lags behind that of *a*, and their correlation then; None if unclear.

    half  0, 1: only in the first or second half of what both logs have
    """
    before = min(zero - (log.start or 0) for log, zero in zip((a, b), zeros, strict=True))
    after = min((log.end or 0) - zero for log, zero in zip((a, b), zeros, strict=True))
    first, last = -min(before, LAG_SPAN), min(after, LAG_SPAN)
    if last - first < 4 * LAG_MOST * LAG_STEP:
        return None
    if half is not None:
        middle = (first + last) // 2
        first, last = (middle, last) if half else (first, middle)
    grid = np.arange(first, last, LAG_STEP)
    series = []
    for log, zero in zip((a, b), zeros, strict=True):
        try:
            times, values = values_between(log[topic], path, zero + first, zero + last)
        except LogError:
            return None
        known = np.isfinite(values)
        if int(known.sum()) < BLOCK:
            return None
        order = np.argsort(times[known], kind="stable")
        series.append(np.interp(grid, times[known][order] - zero, values[known][order]))
    return best_lag(series[0], series[1])


def best_lag(a: F64, b: F64) -> tuple[float, float] | None:
    """Return the lag of *b* behind *a* in ns, and the correlation there; None if none is best by far.

    a, b  float64[n] at times that are LAG_STEP apart
    """
    n, most = len(a), LAG_MOST
    if n <= 2 * most + 2:
        return None
    inner = a[most : n - most]
    inner = inner - inner.mean()
    size = float(np.sqrt(inner @ inner))
    if not size > 0:
        return None
    told = np.zeros(2 * most + 1)
    for i in range(2 * most + 1):
        part = b[i : i + len(inner)]
        part = part - part.mean()
        other = float(np.sqrt(part @ part))
        told[i] = float(inner @ part) / (size * other) if other > 0 else 0.0
    best = int(np.argmax(told))
    # At an end of the range, or with neighbours that are as good, it is no lag.
    if told[best] < CORRELATED or best in (0, 2 * most):
        return None
    if told[best] - max(told[max(best - 5, 0)], told[min(best + 5, 2 * most)]) < 0.002:
        return None
    return float((best - most) * LAG_STEP), float(told[best])
