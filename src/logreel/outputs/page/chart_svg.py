"""Charts as SVG, which pages show without scripts and print; scripts put charts that can be zoomed in their place."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64
from logreel.lenses.facts import Band
from logreel.log.times import utc_text
from logreel.outputs.page.html import cell_text, packed, printable

#: Size of a drawing in its own units; margins at the left, right, top and bottom for numbers.
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 190, 62, 8, 8, 22
#: Height of a drawing of one curve over another, its points at most, and its pieces, the first of them the faintest.
PAIR_HEIGHT, PAIRS, PIECES, FAINTEST = 320, 8000, 12, 0.4
#: Pixels of curves that are drawn over each other, which are not reduced up to four times as many points.
PAIRED = 250_000
#: Points of all drawings of a page, about, of 7 bytes each; least and most pixels of a curve.
POINTS, LEAST_PIXELS, MOST_PIXELS = 200_000, 50, (WIDTH - LEFT - RIGHT) // 2
#: Curves have coordinates of a tenth of a unit.
FINE = 10
#: Number of colours of the style sheet.
COLOURS = 7
#: Distance of the lines that hatch a gap; most gaps that are hatched.
HATCH, GAPS = 6, 100
#: Characters of a name of a state that stand beside the axis.
NAME = 12
#: Narrowest band that can hold its name, for each character of it.
CHARACTER = 6


@dataclass(frozen=True, slots=True)
class SvgCurve:
    """What is drawn of a curve: seconds and values, float64[n] with NaN where the line breaks.

    gaps     intervals without measurements, in seconds
    stepped  whether values hold until the next one
    """

    x: F64
    y: F64
    gaps: Sequence[tuple[float, float]] = ()
    stepped: bool = False


@dataclass(frozen=True, slots=True)
class SvgAxis:
    """An axis from *low* to *high*; *text* writes the numbers at its marks. *log*: decades are equally long.

    states  names of numbers, which stand in their place
    """

    low: float
    high: float
    text: Callable[[float], str] = "{:g}".format
    log: bool = False
    states: Mapping[int, str] = field(default_factory=dict)

    def part(self, values: NDArray[np.float64]) -> F64:
        """Return where values lie: 0 at the low end, 1 at the high one."""
        low, high = self.low, self.high
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                values = np.log10(values)
            low, high = np.log10(low), np.log10(high)
        out: F64 = (values - low) / (high - low)
        return out

    def marks(self, most: int) -> list[float]:
        """Return up to about *most* round values on the axis; of states, each one or each second, third …"""
        if self.states:
            named = [float(number) for number in sorted(self.states) if self.low <= number <= self.high]
            return named[:: len(named) // (2 * most + 1) + 1]
        if self.log:
            first, last = int(np.ceil(np.log10(self.low))), int(np.floor(np.log10(self.high)))
            return [10.0**n for n in range(first, last + 1, max(1, (last - first) // most + 1))]
        step = round_step((self.high - self.low) / most)
        first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
        # Without negative zeros.
        return [float(f"{n * step:.15g}") + 0.0 for n in np.arange(first, last + 1)]


class PageClock:
    """Times of the page: float64 seconds since *zero* (ns), the first and last of which is in *span*.

    utc  whether *zero* is the epoch of UTC
    """

    def __init__(self, zero: int, first: int, last: int, utc: bool = False) -> None:
        self.zero, self.utc = zero, utc
        self.first, self.last = first, max(last, first + 1)

    def seconds(self, time: int) -> float:
        """Return a time in seconds of the page."""
        return (time - self.zero) / 1e9

    @property
    def axis(self) -> SvgAxis:
        """The axis of time of drawings."""
        return SvgAxis(self.seconds(self.first), self.seconds(self.last), self._text)

    def _text(self, seconds: float) -> str:
        if not self.utc:
            return f"{seconds:g} s"
        digits = 0 if self.last - self.first > 10**10 else 3
        return utc_text(round(seconds * 1e9), digits)[11:-1]

    def intervals(self, gaps: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
        """Return those of the intervals (ns) that are on the page, in seconds."""
        return [(self.seconds(lo), self.seconds(hi)) for lo, hi in gaps if lo < self.last and hi > self.first]

    def packed(self, times: Any) -> dict[str, Any]:
        """Return int64[n] ns as uint32 steps of the span, in base64."""
        step = (self.last - self.first) / (2**32 - 1)
        steps = np.clip(np.round((times - self.first) / step), 0, 2**32 - 1).astype("<u4")
        return {"from": self.seconds(self.first), "step": step / 1e9, "data": packed(steps)}


def round_step(least: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that is not below *least*."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(power * n for n in (1, 2, 5, 10) if power * n >= least * (1 - 1e-9)))


def limits_of(values: Any) -> tuple[float, float]:
    """Return least and greatest value, apart from each other."""
    if not len(values):
        return 0.0, 1.0
    lo, hi = float(values.min()), float(values.max())
    if hi > lo:
        return lo, hi
    return lo - (abs(lo) * 0.01 or 1.0), hi + (abs(hi) * 0.01 or 1.0)


def ticks(lo: float, hi: float, wanted: int, most: int | None = None) -> list[float]:
    """Return round numbers from *lo* to *hi*: about *wanted*, and no more than *most*."""
    if not hi > lo:
        return [lo]
    choices: list[tuple[int, list[float]]] = []
    power = 10.0 ** np.floor(np.log10((hi - lo) / max(wanted, 1)))
    for factor in (0.5, 1, 2, 2.5, 5, 10, 20):
        step = power * factor
        marks = np.arange(np.ceil(lo / step - 1e-9), np.floor(hi / step + 1e-9) + 1) * step
        # Without negative zeros.
        numbers = [float(f"{mark:.12g}") + 0.0 for mark in marks]
        if numbers and (most is None or len(numbers) <= most):
            choices.append((abs(len(numbers) - wanted), numbers))
    return min(choices, key=lambda pair: pair[0])[1] if choices else [lo]


def pixels_for(curves: int) -> int:
    """Return the width to which each of this number of curves of a page is reduced."""
    return min(max(POINTS // 4 // max(curves, 1), LEAST_PIXELS), MOST_PIXELS)


def value_span(
    lines: Sequence[SvgCurve],
    fixed: Sequence[float] | None = None,
    log: bool = False,
    states: Mapping[int, str] | None = None,
) -> SvgAxis:
    """Return the axis of the values; constant values lie in its middle. *fixed*: its ends; *states*: its names."""
    values = np.concatenate([line.y[np.isfinite(line.y)] for line in lines] or [np.empty(0)])
    if log:
        values = values[values > 0]
    if fixed is not None:
        low, high = map(float, fixed)
    elif not len(values):
        low, high = (0.1, 1.0) if log else (0.0, 1.0)
    else:
        low, high = float(values.min()), float(values.max())
    if log:
        return SvgAxis(low, high if high > low else low * 10, "{:.0e}".format, True)
    room = (high - low) * 0.06 if fixed is None else 0.0
    if not high > low:
        room = abs(high) * 0.01 or 1.0
    low, high = low - room, high + room
    if not np.isfinite(high - low):
        low, high = low / 2, high / 2
    if occur := occurring(states or {}, values):
        return SvgAxis(low, high, lambda number: occur[int(number)], states=occur)
    return SvgAxis(low, high)


def occurring(states: Mapping[int, str], values: F64) -> dict[int, str]:
    """Return the names of those states that are among *values*."""
    numbers = np.unique(values).tolist() if states else []
    return {int(number): printable(states[number]) for number in numbers if number in states}


def chart_svg(
    lines: Sequence[SvgCurve],
    x: SvgAxis,
    y: SvgAxis,
    bands: Sequence[tuple[float, float, str, str]] = (),
) -> str:
    """Return a drawing; colours come from the classes ``t0`` … of the page.

    bands  from, to, label and class of what lies behind the curves
    """
    out = [f'<svg class="still" viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true">']
    out += _bands(bands, x)
    out += _grid(x, y)
    for gap in _united(lines):
        out += _hatch(*_places(x, gap))
    for number, line in enumerate(lines):
        dashed = " dash" if number >= COLOURS else ""
        path = _path(line, x, y)
        if path:
            out.append(
                f'<path class="t{number % COLOURS}{dashed}" transform="scale({1 / FINE:g})" d="{path}"/>'
            )
    return "".join([*out, "</svg>"])


def pair_svg(x: F64, y: F64, labels: tuple[str, str], equal: bool = False, here: int | None = None) -> str:
    """Return a drawing of *y* over *x*, from faint at the start to strong at the end; empty if it has no point.

    x, y    float64[n] in order of time; NaN where there is no value
    labels  of both axes, with units
    equal   whether both axes have the same scale
    here    row that is marked
    """
    sound = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not len(sound):
        return ""
    line = SvgCurve(x, y)
    across, up = value_span([SvgCurve(x, x)]), value_span([line])
    right, bottom = WIDTH - RIGHT, PAIR_HEIGHT - BOTTOM
    if equal:
        scale = max((across.high - across.low) / (right - LEFT), (up.high - up.low) / (bottom - TOP))
        across, up = _widened(across, scale * (right - LEFT)), _widened(up, scale * (bottom - TOP))
    out = [f'<svg class="still pair" viewBox="0 0 {WIDTH} {PAIR_HEIGHT}" aria-hidden="true">']
    out += _grid(across, up, PAIR_HEIGHT)
    for rows, strength in pieces_of(len(x)):
        if path := _path(SvgCurve(x[rows], y[rows]), across, up, PAIR_HEIGHT):
            out.append(f'<path class="t0" opacity="{strength}" transform="scale({1 / FINE:g})" d="{path}"/>')

    def place(row: int) -> tuple[float, float]:
        part, high = (float(axis.part(of[row : row + 1])[0]) for axis, of in ((across, x), (up, y)))
        return LEFT + part * (right - LEFT), bottom - high * (bottom - TOP)

    cx, cy = place(int(sound[0]))
    out.append(f'<circle class="t0 start" cx="{cx:.1f}" cy="{cy:.1f}" r="4"/>')
    cx, cy = place(int(sound[-1]))
    out.append(f'<rect class="t0 end" x="{cx - 4:.1f}" y="{cy - 4:.1f}" width="8" height="8"/>')
    if here is not None and 0 <= here < len(x) and np.isfinite(x[here]) and np.isfinite(y[here]):
        cx, cy = place(here)
        out.append(f'<circle class="here" cx="{cx:.1f}" cy="{cy:.1f}" r="4"/>')
    out.append(f'<text x="{LEFT + 4}" y="{TOP + 10}">{cell_text(labels[1], 90)}</text>')
    out.append(f'<text x="{right - 4}" y="{bottom - 5}" text-anchor="end">{cell_text(labels[0], 90)}</text>')
    return "".join([*out, "</svg>"])


def pieces_of(points: int) -> list[tuple[slice, float]]:
    """Return pieces of a curve over another one, each with its strength: 1 for the last one."""
    edges = np.linspace(0, points, min(PIECES, points) + 1).astype(int).tolist()
    weakest = (1 - FAINTEST) / max(len(edges) - 1, 1)
    strengths = [round(1 - weakest * left, 2) for left in reversed(range(len(edges) - 1))]
    return [
        (slice(first, last + 1), strength)
        for (first, last), strength in zip(pairwise(edges), strengths, strict=True)
    ]


def _widened(axis: SvgAxis, length: float) -> SvgAxis:
    middle = (axis.low + axis.high) / 2
    return replace(axis, low=middle - length / 2, high=middle + length / 2)


#: Colours of pictures, which can be seen on light and dark pages, and their style.
TINTS = ("#2b87c8", "#dd6e22", "#17a37a", "#c773a3", "#8a78d6", "#b58900", "#808080")
_STYLE = (
    "text{font:10px system-ui,sans-serif;fill:#808080}.grid{stroke:#80808050}"
    "path{fill:none;stroke:var(--tint);stroke-width:1.2px;stroke-linejoin:round;stroke-linecap:round}"
    f"path[transform]{{stroke-width:{1.2 * FINE:g}px}}.dash{{stroke-dasharray:60 30}}"
    "path.gap{stroke:#808080;stroke-width:.6px;opacity:.6}"
    ".start{fill:#80808040;stroke:var(--tint)}.end{fill:var(--tint)}"
) + "".join(f".t{number}{{--tint:{colour}}}" for number, colour in enumerate(TINTS))


def picture(drawing: str, about: str, width: int) -> str:
    """Return a drawing of ``chart_svg`` as an image that needs no style sheet, no script and no other file.

    about  what is said to those who do not see it
    width  in pixels
    """
    start = '<svg xmlns="http://www.w3.org/2000/svg"'
    document = drawing.replace("<svg", start, 1).replace(">", f"><style>{_STYLE}</style>", 1)
    data = base64.b64encode(document.encode("utf-8", "replace")).decode()
    return (
        f'<img alt="{cell_text(about, 300)}" width="{width}" style="max-width:100%;height:auto" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def picture_legend(names: Sequence[str]) -> str:
    """Return the names of curves beside their colours, for a picture."""
    return "".join(
        f'<span style="margin-right:14px"><b style="color:{TINTS[n % COLOURS]}">—</b> {cell_text(name, 120)}</span>'
        for n, name in enumerate(names)
    )


def legend(names: Sequence[str]) -> str:
    """Return the names of curves beside their colours."""
    items = "".join(
        f'<li><span class="key t{n % COLOURS}"></span>{cell_text(name, 120)}</li>'
        for n, name in enumerate(names)
    )
    return f'<ul class="keys still">{items}</ul>'


def figure(title: str, level: int, about: str, content: str, id: str = "") -> str:
    """Return a chart with its title as a heading; *about* is what is said to those who do not see it."""
    label = f' id="{id}"' if id else ""
    label += f' role="group" aria-label="{cell_text(f"{title}: {about}", 700)}"' if about else ""
    return f"<figure{label}><h{level}>{cell_text(title, 300)}</h{level}>{content}</figure>"


def band_classes(bands: Sequence[Band]) -> list[str]:
    """Return a class for each band: one colour for each mode, ``bad`` for a failsafe or a collision, else none."""
    labels = list(dict.fromkeys(band.label for band in bands if band.kind == "mode"))
    return [
        "bad"
        if band.kind in ("failsafe", "collision")
        else f"t{labels.index(band.label) % COLOURS}"
        if band.kind == "mode"
        else ""
        for band in bands
    ]


def _places(x: SvgAxis, interval: tuple[float, float]) -> tuple[float, float]:
    parts = np.clip(x.part(np.array(interval)), 0, 1)
    low, high = (LEFT + parts * (WIDTH - LEFT - RIGHT)).tolist()
    return low, high


def _bands(bands: Sequence[tuple[float, float, str, str]], x: SvgAxis) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for low, high, label, colour in bands:
        left, right = _places(x, (low, high))
        if not colour or right - left < 0.5:
            continue
        yield (
            f'<rect class="band {colour}" x="{left:.1f}" y="{TOP}" width="{right - left:.1f}" '
            f'height="{bottom - TOP}"/>'
        )
        if colour != "bad" and right - left > CHARACTER * len(label) + 6:
            yield f'<text x="{left + 3:.1f}" y="{TOP + 9}">{cell_text(label, 80)}</text>'


def _grid(x: SvgAxis, y: SvgAxis, height: int = HEIGHT) -> Iterator[str]:
    bottom, right = height - BOTTOM, WIDTH - RIGHT
    marks = np.array(x.marks(7))
    for mark, part in zip(marks.tolist(), x.part(marks).tolist(), strict=True):
        at = LEFT + part * (right - LEFT)
        yield f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>'
        anchor = "end" if at > right - 14 else "middle"
        yield f'<text x="{at:.1f}" y="{bottom + 14}" text-anchor="{anchor}">{cell_text(x.text(mark), 40)}</text>'
    marks = np.array(y.marks(5))
    for mark, part in zip(marks.tolist(), y.part(marks).tolist(), strict=True):
        at = bottom - part * (bottom - TOP)
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>'
        yield f'<text x="{LEFT - 5}" y="{at + 3.5:.1f}" text-anchor="end">{cell_text(y.text(mark), NAME)}</text>'


def _united(lines: Sequence[SvgCurve]) -> list[tuple[float, float]]:
    """Return the longest gaps of all lines, each once."""
    every = sorted({gap for line in lines for gap in line.gaps}, key=lambda gap: gap[0] - gap[1])
    return every[:GAPS]


def _hatch(left: float, right: float) -> Iterator[str]:
    """Yield oblique lines over the height of the drawing."""
    height = HEIGHT - BOTTOM - TOP
    if right - left < 1:
        return
    parts = []
    for begin in np.arange(left - height, right, HATCH).tolist():
        low, high = max(begin, left), min(begin + height, right)
        if high > low:
            bottom = HEIGHT - BOTTOM
            parts.append(f"M{low:.1f} {bottom - (low - begin):.1f}L{high:.1f} {bottom - (high - begin):.1f}")
    yield f'<path class="gap" d="{"".join(parts)}"/>'


def sound_parts(sound: Any) -> list[slice]:
    """Return the parts of bool[n] that are true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], sound, [False]])))
    return [slice(lo, hi) for lo, hi in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _path(line: SvgCurve, x: SvgAxis, y: SvgAxis, height: int = HEIGHT) -> str:
    """Return a line as data of a path, in steps where values are stepped; parts without values are left out."""
    right, bottom = WIDTH - RIGHT, height - BOTTOM
    across = np.round(FINE * (LEFT + np.clip(x.part(line.x), 0, 1) * (right - LEFT)))
    up = np.round(FINE * (bottom - np.clip(y.part(line.y), -1, 2) * (bottom - TOP)))
    sound = np.isfinite(across) & np.isfinite(up)
    out = []
    for rows in sound_parts(sound):
        px, py = across[rows].astype(np.int64), up[rows].astype(np.int64)
        # A point between two gaps is a dot, by the round ends of lines.
        out.append(f"M{px[0]} {py[0]}" + ("h0" if len(px) == 1 else ""))
        for right_by, down_by in zip(np.diff(px).tolist(), np.diff(py).tolist(), strict=True):
            if line.stepped:
                out.append(f"h{right_by}" * (right_by != 0) + f"v{down_by}" * (down_by != 0))
            elif right_by or down_by:
                out.append(f"l{right_by} {down_by}".replace(" -", "-"))
        if line.stepped and rows.stop == len(sound):
            out.append(f"H{FINE * right}")
    return "".join(out)
