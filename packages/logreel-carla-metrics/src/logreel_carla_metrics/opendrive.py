"""Read an OpenDRIVE map: reference lines, lanes, and points in the middle of lanes.

Source: ASAM OpenDRIVE 1.4 and later, sections on reference lines, elevation, lane offsets and lane widths.
Superelevation, lateral shapes, and lane borders in place of widths are not applied.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from logreel import UsageError

F64 = NDArray[np.float64]
#: Limits of what is read: bytes of the file, levels of elements, metres of all roads.
MAX_BYTES, MAX_DEPTH, MAX_LENGTH = 256 << 20, 64, 1_000_000.0
#: Metres between two points of a reference line, and parts of this step when a spiral is integrated.
STEP, PARTS = 0.5, 16


@dataclass(slots=True)
class Element:
    """An XML element: its name, attributes, and children."""

    name: str
    attributes: Mapping[str, str]
    children: list[Element] = field(default_factory=list)

    def all(self, *path: str) -> Iterator[Element]:
        """Yield the elements at a path of names below this one."""
        for child in self.children:
            if child.name == path[0]:
                yield from child.all(*path[1:]) if len(path) > 1 else [child]

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute as a finite number; raises UsageError if it is none."""
        text = self.attributes.get(name)
        try:
            value = float(text) if text is not None else default
        except ValueError:
            value = None
        if value is None or not math.isfinite(value):
            raise UsageError(f"<{self.name}> has no valid number {name!r}, but {text!r}")
        return value


def parse(text: str) -> Element:
    """Return the root element of XML; raises UsageError for other content, document types, and too much of it."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_BYTES:
        raise UsageError(f"a map of more than {MAX_BYTES} bytes")
    root = Element("", {})
    stack = [root]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > MAX_DEPTH:
            raise UsageError(f"elements in more than {MAX_DEPTH} levels")
        child = Element(name, attributes)
        stack[-1].children.append(child)
        stack.append(child)

    def refuse(*_: Any) -> None:
        raise UsageError("a map has no document type and no entities")

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: stack.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise UsageError(f"no OpenDRIVE map: {error}") from None
    return root


@dataclass(frozen=True, slots=True)
class Cubic:
    """A polynomial a + b·d + c·d² + d·d³ of the distance from *s*."""

    s: float
    a: float
    b: float
    c: float
    d: float

    def value(self, s: float) -> float:
        """Return the value at *s*."""
        t = s - self.s
        return self.a + t * (self.b + t * (self.c + t * self.d))

    def slope(self, s: float) -> float:
        """Return the change per metre at *s*."""
        t = s - self.s
        return self.b + t * (2 * self.c + t * 3 * self.d)


def _cubics(elements: Iterator[Element], start: str, base: float = 0.0) -> list[Cubic]:
    found = [Cubic(base + e.number(start), *(e.number(name, 0.0) for name in "abcd")) for e in elements]
    return sorted(found, key=lambda one: one.s)


def _cubic_at(cubics: list[Cubic], s: float) -> Cubic:
    """Return the polynomial that holds at *s*; zero without one."""
    at = sum(one.s <= s for one in cubics)
    return cubics[max(at - 1, 0)] if cubics else Cubic(0.0, 0.0, 0.0, 0.0, 0.0)


class Geometry:
    """A part of a reference line: line, arc, spiral, poly3 or paramPoly3."""

    def __init__(self, element: Element) -> None:
        self.s, self.length = element.number("s"), max(element.number("length"), 0.0)
        self._start = tuple(element.number(name) for name in ("x", "y", "hdg"))
        shape = next(iter(element.children), Element("line", {}))
        self._shape = shape
        if shape.name not in ("line", "arc", "spiral", "poly3", "paramPoly3"):
            raise UsageError(f"a reference line has no shape <{shape.name}>")
        names = {"arc": ("curvature",), "spiral": ("curvStart", "curvEnd"), "poly3": tuple("abcd")}
        self._numbers = [shape.number(name) for name in names.get(shape.name, ())]
        if shape.name == "paramPoly3":
            self._numbers = [shape.number(f"{n}{axis}") for axis in "UV" for n in "abcd"]

    def points(self, distance: F64) -> tuple[F64, F64, F64]:
        """Return x, y and heading at distances from the start of this part: float64[n] each."""
        x, y, heading = self._start
        u, v, turn = self._local(distance)
        cosine, sine = math.cos(heading), math.sin(heading)
        return x + cosine * u - sine * v, y + sine * u + cosine * v, heading + turn

    def _local(self, d: F64) -> tuple[F64, F64, F64]:
        kind, n = self._shape.name, self._numbers
        if kind == "line":
            return d, np.zeros_like(d), np.zeros_like(d)
        if kind == "arc" and n[0]:
            return np.sin(n[0] * d) / n[0], (1 - np.cos(n[0] * d)) / n[0], n[0] * d
        if kind in ("arc", "spiral"):
            first, last = (n[0], n[-1])
            return _spiral(d, first, (last - first) / (self.length or 1.0))
        if kind == "poly3":
            v = n[0] + d * (n[1] + d * (n[2] + d * n[3]))
            return d, v, np.arctan(n[1] + d * (2 * n[2] + d * 3 * n[3]))
        p = d if self._shape.attributes.get("pRange") == "arcLength" else d / (self.length or 1.0)
        u, du = _polynomial(n[:4], p)
        v, dv = _polynomial(n[4:], p)
        return u, v, np.arctan2(dv, du)


def _polynomial(n: list[float], p: F64) -> tuple[F64, F64]:
    """Return value and derivative of a cubic polynomial."""
    return n[0] + p * (n[1] + p * (n[2] + p * n[3])), n[1] + p * (2 * n[2] + p * 3 * n[3])


def _spiral(d: F64, curvature: float, change: float) -> tuple[F64, F64, F64]:
    """Return u, v and turn of a curve whose curvature changes linearly, by the midpoint rule from point to point."""
    edges = np.concatenate([[0.0], d])
    part = (np.arange(PARTS) + 0.5) / PARTS
    middle = edges[:-1, None] + np.diff(edges)[:, None] * part
    turn = curvature * middle + change * middle**2 / 2
    width = np.diff(edges) / PARTS
    u, v = (np.cumsum(f(turn).sum(axis=1) * width) for f in (np.cos, np.sin))
    return u, v, curvature * d + change * d**2 / 2


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane of one section of a road; *widths* by distance along the road."""

    id: int
    type: str
    widths: list[Cubic]

    def width(self, s: float) -> float:
        """Return the width at *s*."""
        return _cubic_at(self.widths, s).value(s)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a road with the same lanes, from *start* to *end*."""

    number: int
    start: float
    end: float
    lanes: dict[int, Lane]

    def middle(self, lane: int, s: float) -> float:
        """Return the distance of the middle of a lane to the left of the lane offset, metres."""
        side = 1 if lane > 0 else -1
        inner = sum(self.lanes[n * side].width(s) for n in range(1, abs(lane)) if n * side in self.lanes)
        return side * (inner + self.lanes[lane].width(s) / 2)


class Road:
    """A road."""

    def __init__(self, element: Element) -> None:
        self.id = int(element.number("id"))
        self.junction = int(element.number("junction", -1.0))
        self.geometries = sorted(map(Geometry, element.all("planView", "geometry")), key=lambda one: one.s)
        self._elevation = _cubics(element.all("elevationProfile", "elevation"), "s")
        self._offset = _cubics(element.all("lanes", "laneOffset"), "s")
        self.length = max((one.s + one.length for one in self.geometries), default=0.0)
        starts = sorted(element.all("lanes", "laneSection"), key=lambda one: one.number("s"))
        ends = [*(one.number("s") for one in starts[1:]), self.length]
        self.sections = [
            Section(n, one.number("s"), end, _lanes(one))
            for n, (one, end) in enumerate(zip(starts, ends, strict=True))
        ]

    def reference(self, s: F64) -> tuple[F64, F64, F64]:
        """Return x, y and heading of the reference line at ascending *s*: float64[n] each."""
        x, y, heading = np.zeros((3, len(s)))
        starts = np.array([one.s for one in self.geometries])
        which = np.maximum(starts.searchsorted(s, side="right") - 1, 0)
        for n, geometry in enumerate(self.geometries):
            mine = which == n
            x[mine], y[mine], heading[mine] = geometry.points(
                np.clip(s[mine] - geometry.s, 0.0, geometry.length)
            )
        return x, y, heading

    def lane_points(self, section: Section, lane: int, s: F64) -> F64:
        """Return the middle of a lane: float64[n, 5], x, y, z, heading and slope, at ascending *s*."""
        x, y, heading = self.reference(s)
        values = s.tolist()
        t = np.array([_cubic_at(self._offset, one).value(one) + section.middle(lane, one) for one in values])
        z = np.array([_cubic_at(self._elevation, one).value(one) for one in values])
        slope = np.array([_cubic_at(self._elevation, one).slope(one) for one in values])
        return np.stack([x - np.sin(heading) * t, y + np.cos(heading) * t, z, heading, slope], axis=1)


def _lanes(section: Element) -> dict[int, Lane]:
    found = {}
    base = section.number("s")
    for side in ("left", "right"):
        for one in section.all(side, "lane"):
            number = int(one.number("id"))
            found[number] = Lane(
                number, one.attributes.get("type", "none"), _cubics(one.all("width"), "sOffset", base)
            )
    return found


def roads_of(text: str) -> list[Road]:
    """Return the roads of an OpenDRIVE map; raises UsageError for other content."""
    found = [Road(one) for one in parse(text).all("OpenDRIVE", "road")]
    if not found:
        raise UsageError("no OpenDRIVE map: it has no road")
    if sum(road.length for road in found) > MAX_LENGTH:
        raise UsageError(f"roads of more than {MAX_LENGTH:g} m")
    return found
