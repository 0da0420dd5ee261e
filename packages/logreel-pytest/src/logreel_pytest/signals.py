"""Signals: fields of a log over time that remember where they come from, so that a failed assertion can show them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    I64 = NDArray[np.int64]

#: Columns and rows of a chart in the terminal, and seconds that it shows before and after the moment.
COLUMNS, ROWS, AROUND = 60, 6, 10.0
BARS = " ▁▂▃▄▅▆▇█"
SECOND = 1e9
#: Charts of the running test as pictures.
_drawn: list[str] = []


def take_drawn() -> list[str]:
    """Return the charts that were drawn since the last call, as SVG."""
    drawn = _drawn[:]
    _drawn.clear()
    return drawn


class Signal(np.ndarray[Any, np.dtype[Any]]):
    """A field of a topic as an array, or what was computed of it value by value.

    name   ``topic.field``
    times  int64[n] ns of the log's clock
    start  first time of the log, ns
    shown  float64[n]: what a chart of it draws in its place, such as the values that were compared; or None

    Comparisons give a Signal of booleans. ``min``, ``max`` and ``mean`` of a number give a Reading.
    """

    name: str
    times: I64
    start: int
    shown: NDArray[Any] | None

    def __new__(
        cls, values: NDArray[Any], name: str, times: I64, start: int, shown: NDArray[Any] | None = None
    ) -> Signal:
        """Return *values* as a Signal."""
        signal = np.asarray(values).view(cls)
        signal.name, signal.times, signal.start, signal.shown = name, times, start, shown
        return signal

    def __array_finalize__(self, other: Any) -> None:
        """Take over what the array that this one is made from remembers, if it has a value for each of its times."""
        self.name, self.times = getattr(other, "name", ""), getattr(other, "times", _NONE)
        self.start, self.shown = getattr(other, "start", 0), None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Return what a function of NumPy gives; of values over time again a Signal, which says how it was made."""
        plain = [np.asarray(one) if isinstance(one, Signal) else one for one in inputs]
        if "out" in options:
            options["out"] = tuple(
                np.asarray(one) if isinstance(one, Signal) else one for one in options["out"]
            )
        result = getattr(ufunc, method)(*plain, **options)
        first = next((one for one in inputs if isinstance(one, Signal)), self)
        if method != "__call__" or not isinstance(result, np.ndarray) or result.shape != first.shape:
            return result
        sign = _SIGNS.get(ufunc.__name__)
        words = [
            one.name
            if isinstance(one, Signal)
            else f"{float(one):g}"
            if isinstance(one, int | float | np.number)
            else "…"
            for one in inputs
        ]
        name = (
            f" {sign} ".join(words) if sign and len(words) == 2 else f"{ufunc.__name__}({', '.join(words)})"
        )
        values = (
            first.shown if first.shown is not None else None if first.dtype == bool else np.asarray(first)
        )
        return Signal(result, name, first.times, first.start, values if result.dtype == bool else None)

    def __getitem__(self, key: Any) -> Any:
        """Return values; those of several rows keep their times."""
        values = super().__getitem__(key)
        if isinstance(values, Signal) and len(self.times) == len(self):
            rows = key[0] if isinstance(key, tuple) and key else key
            times = self.times[np.asarray(rows) if not isinstance(rows, slice | int) else rows]
            values.times = times if np.ndim(times) else self.times[:0]
            values.shown = None if self.shown is None else self.shown[rows]
        return values

    def min(self, *args: Any, **options: Any) -> Any:
        """Return the least value, as a Reading at its time."""
        return self._reading("min", np.nanargmin, args, options)

    def max(self, *args: Any, **options: Any) -> Any:
        """Return the greatest value, as a Reading at its time."""
        return self._reading("max", np.nanargmax, args, options)

    def _reading(self, name: str, place: Any, args: Any, options: Any) -> Any:
        values = np.asarray(self)
        value = getattr(values, name)(*args, **options)
        is_series = values.ndim == 1 and len(values) == len(self.times) and values.dtype.kind in "iuf"
        if args or options or not is_series or not np.isfinite(values).any():
            return value
        return Reading(float(value), self, int(place(values)), name)

    def mean(self, *args: Any, **options: Any) -> Any:
        """Return the mean, as a Reading of all of the signal."""
        value = np.asarray(self).mean(*args, **options)
        is_series = self.ndim == 1 and len(self) == len(self.times) > 0 and self.dtype.kind in "iuf"
        return Reading(float(value), self, None, "mean") if is_series and not args and not options else value

    def seconds(self, row: int) -> float:
        """Return the time of a row in seconds since the start of the log."""
        return (int(self.times[row]) - self.start) / SECOND


_NONE = np.zeros(0, np.int64)
_SIGNS = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "bitwise_and": "&", "bitwise_or": "|",
}  # fmt: skip


class Reading(float):
    """A number that was read from a signal: *row*, where it stands, or None for a figure of all of it."""

    signal: Signal
    row: int | None
    what: str

    def __new__(cls, value: float, signal: Signal, row: int | None, what: str) -> Reading:
        """Return *value* as a Reading."""
        reading = super().__new__(cls, value)
        reading.signal, reading.row, reading.what = signal, row, what
        return reading

    def told(self) -> list[str]:
        """Return where and when it is, and a chart of the moment."""
        at = "" if self.row is None else f" at {self.signal.seconds(self.row):.2f} s"
        return [f"{self.what} of {self.signal.name}{at}:", *drawn(self.signal, self.row)]


def drawn(signal: Signal, row: int | None, met: NDArray[np.bool_] | None = None) -> list[str]:
    """Return lines of a chart of a signal around a row, or of all of it, and keep it for the report of the test.

    met  bool[n]: rows that are marked below the chart
    """
    values, times = np.asarray(signal if signal.shown is None else signal.shown, np.float64), signal.times
    shown = np.isfinite(values)
    if row is not None:
        shown &= np.abs(times - times[row]) <= AROUND * SECOND
    rows = np.flatnonzero(shown)
    if not len(rows):
        return ["(no values)"]
    lines = _chart(values[rows], (times[rows] - signal.start) / SECOND, _marks(rows, row, met))
    at = None if row is None else int(times[row])
    _drawn.append(_picture(signal.name, values[rows], times[rows], at))
    return lines


def _marks(rows: NDArray[np.intp], row: int | None, met: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Return bool[m]: which of the rows of a chart are marked."""
    return met[rows] if met is not None else rows == (-1 if row is None else row)


def _chart(values: NDArray[np.float64], seconds: NDArray[np.float64], marks: NDArray[np.bool_]) -> list[str]:
    """Return lines of blocks: the range of the values in each column, the marks below, and the times at the ends."""
    first, last = float(seconds[0]), float(seconds[-1])
    place = np.zeros(len(values), int)
    if last > first:
        place = np.minimum(((seconds - first) / (last - first) * COLUMNS).astype(int), COLUMNS - 1)
    low, high = float(values.min()), float(values.max())
    height = np.full(COLUMNS, -1)
    for column in range(COLUMNS):
        inside = values[place == column]
        if len(inside):
            # The value that is farthest from the middle is what a chart must not hide.
            value = inside[np.argmax(np.abs(inside - (low + high) / 2))]
            share = (value - low) / (high - low) if high > low else 0.5
            height[column] = 1 + round(share * (8 * ROWS - 1))
    texts = [f"{high:.6g}", f"{low:.6g}"]
    width = max(map(len, texts))
    lines = []
    for level in reversed(range(ROWS)):
        label = texts[0] if level == ROWS - 1 else texts[1] if level == 0 else ""
        blocks = "".join(BARS[int(min(max(h - 8 * level, 0), 8))] for h in height)
        lines.append(f"{label:>{width}} ┤{blocks}".rstrip())
    below = [" "] * COLUMNS
    for column in place[marks].tolist():
        below[column] = "▲"
    if marks.any():
        lines.append(f"{'':>{width}}  {''.join(below)}".rstrip())
    ends = f"{first:.1f} s", f"{last:.1f} s"
    lines.append(f"{'':>{width}}  {ends[0]}{ends[1]:>{COLUMNS - len(ends[0])}}")
    return lines


def _picture(name: str, values: NDArray[np.float64], times: I64, at: int | None) -> str:
    """Return the same as SVG, for reports in HTML."""
    low, high, first, last = float(values.min()), float(values.max()), int(times[0]), int(times[-1])
    step = len(values) // 2000 + 1
    x = 10 + 580 * (times[::step] - first) / max(last - first, 1)
    y = 110 - 90 * (values[::step] - low) / (high - low or 1.0)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    mark = ""
    if at is not None:
        place = 10 + 580 * (at - first) / max(last - first, 1)
        mark = f'<line x1="{place:.1f}" x2="{place:.1f}" y1="16" y2="114" stroke="#b3261e" stroke-dasharray="3 3"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="600" height="130" role="img"><rect width="600" height="130" '
        f'fill="#fff"/><text x="10" y="12" font-size="11" font-family="sans-serif">{escape(name)}: {low:.6g} to '
        f'{high:.6g}</text>{mark}<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="1.4"/></svg>'
    )
