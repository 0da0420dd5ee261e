"""Coordinate frames of a log and the transforms between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.lenses import F64, Transform
from logreel.log.times import SECOND
from logreel.outputs.view.lens_cache import lenses_of

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Messages with transforms up to which they are all kept in memory; of longer logs a window is read for each moment.
MESSAGES = 300_000
#: Windows in ns before the moment in which transforms of such a log are searched; channels with few messages whole.
WINDOW, FEW = 30 * SECOND, 2000
#: Transforms between one frame and the root at most, so that circles end.
DEEP = 256
#: Names of usual reference frames, best first.
_FIXED = ("map", "earth", "world", "odom", "odom_combined")


@dataclass(frozen=True, slots=True)
class Edge:
    """All transforms of one frame relative to its parent, sorted by time."""

    channel: str
    parent: str
    child: str
    time: I64
    position: F64
    rotation: F64


@dataclass(frozen=True, slots=True)
class Place:
    """A rigid transform: *position* in metres, *rotation* as a quaternion x, y, z, w; float64 each."""

    position: F64
    rotation: F64

    def after(self, other: Place) -> Place:
        """Return the transform that applies *other* first, then this one."""
        return Place(
            self.position + rotated(other.position[None], self.rotation)[0],
            multiplied(self.rotation, other.rotation),
        )

    def inverse(self) -> Place:
        """Return the inverse transform."""
        back = self.rotation * (-1, -1, -1, 1)
        return Place(-rotated(self.position[None], back)[0], back)

    def numbers(self) -> list[float]:
        """Return x, y, z of the position and x, y, z, w of the rotation."""
        return [float(value) for value in (*self.position, *self.rotation)]


NOWHERE = Place(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))


def multiplied(a: F64, b: F64) -> F64:
    """Return the product of two quaternions x, y, z, w."""
    xyz = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(xyz, a[3] * b[3] - a[:3] @ b[:3])


def rotated(vectors: F64, turn: F64) -> F64:
    """Return float64[n, 3]: *vectors* rotated by the unit quaternion *turn*."""
    half = np.cross(turn[:3], vectors) + turn[3] * vectors
    out: F64 = vectors + 2 * np.cross(turn[:3], half)
    return out


def plain_name(frame: Any) -> str:
    """Return the name of a frame without the leading slash of old logs; empty for None."""
    return "" if frame is None else str(frame).lstrip("/")


_KNOWN: WeakKeyDictionary[Log, tuple[int, Frames]] = WeakKeyDictionary()


class Frames:
    """The frames of a log.

    whole  all transforms by parent and child; None where there are too many to keep
    """

    def __init__(self, log: Log) -> None:
        self._channels = transform_channels(log)
        total = sum(len(ch) for ch, _ in self._channels)
        self.whole: list[Edge] | None = _edges(self._channels) if total <= MESSAGES else None

    @classmethod
    def of(cls, log: Log) -> Frames:
        """Return the frames of *log*, read once and again when the log has grown."""
        size = sum(len(ch) for ch, _ in transform_channels(log))
        known = _KNOWN.get(log)
        if known is None or known[0] != size:
            known = _KNOWN[log] = (size, cls(log))
        return known[1]

    def at(self, time: int) -> Tree:
        """Return the tree of frames with the last transforms at or before *time* (ns), or else the first ones."""
        links: dict[str, tuple[int, str, Place]] = {}
        for edge in self._near(time):
            row = max(0, int(np.searchsorted(edge.time, time, side="right")) - 1)
            when = int(edge.time[row])
            # Of a frame with several parents, the latest known transform counts; one from the future counts least.
            rank = when if when <= time else -when
            if edge.child not in links or links[edge.child][0] < rank:
                turn = edge.rotation[row]
                size = float(np.linalg.norm(turn))
                unit = turn / size if size > 0 and np.isfinite(size) else NOWHERE.rotation
                place = np.nan_to_num(edge.position[row], posinf=0.0, neginf=0.0)
                links[edge.child] = (rank, edge.parent, Place(place, unit))
        return Tree({child: (parent, place) for child, (_, parent, place) in links.items()})

    def _near(self, time: int) -> list[Edge]:
        if self.whole is not None:
            return self.whole
        few = [pair for pair in self._channels if len(pair[0]) <= FEW]
        many = [pair for pair in self._channels if len(pair[0]) > FEW]
        return _edges(few) + _edges(many, time - WINDOW, time + 1)


class Tree:
    """The tree of frames at one moment: by child, its parent and its place there."""

    def __init__(self, links: Mapping[str, tuple[str, Place]]) -> None:
        self.links = dict(links)

    @property
    def names(self) -> list[str]:
        """Names of all frames, sorted."""
        return sorted({*self.links, *(parent for parent, _ in self.links.values())})

    def fixed(self) -> str:
        """Return the frame in which to show the log: a usual name, else the root of the most frames; else ''."""
        names = self.names
        for name in _FIXED:
            if name in names:
                return name
        roots = [self._to_root(name)[0] for name in names]
        return max(sorted(set(roots)), key=roots.count) if roots else ""

    def place(self, frame: str, fixed: str) -> Place | None:
        """Return the transform from *frame* to *fixed*; None if they are not connected."""
        if frame == fixed:
            return NOWHERE
        if frame not in self.links and fixed not in self.links:
            return None
        root, here = self._to_root(frame)
        other, there = self._to_root(fixed)
        return there.inverse().after(here) if root == other else None

    def robot(self, fixed: str) -> str:
        """Return the frame of the robot, by its usual names, among those connected with *fixed*; else ''."""
        there = [name for name in self.names if name != fixed and self.place(name, fixed) is not None]
        own = {name: name.rpartition("/")[2] for name in there}
        for usual in ("base_link", "base_footprint"):
            for name in there:
                if own[name] == usual:
                    return name
        return next((name for name in there if own[name].startswith("base")), "")

    def _to_root(self, frame: str) -> tuple[str, Place]:
        place, seen = NOWHERE, 0
        while frame in self.links and seen < DEEP:
            frame, step = self.links[frame]
            place, seen = step.after(place), seen + 1
        return frame, place


def transform_channels(log: Log) -> list[tuple[Channel, Transform]]:
    """Return the channels of *log* with transforms, and the lens of each."""
    return [(ch, lens) for ch, lenses in lenses_of(log) for lens in lenses if isinstance(lens, Transform)]


def _edges(
    channels: Iterable[tuple[Channel, Transform]], start: int | None = None, end: int | None = None
) -> list[Edge]:
    found = []
    for ch, lens in channels:
        try:
            places = lens.track(ch, start, end)
        except LogError:
            continue
        n = len(places.time)
        # Static transforms are sent once, often after the first messages that need them.
        names = [np.full(n, "", object) if one is None else one for one in (places.frame, places.child)]
        keys = np.array([f"{plain_name(p)}\n{plain_name(c)}" for p, c in zip(*names, strict=True)], object)
        known, code = np.unique(keys.astype(str), return_inverse=True)
        order = np.lexsort((places.time, code))
        parts = np.split(order, np.cumsum(np.bincount(code, minlength=len(known)))[:-1]) if n else []
        for name, rows in zip(known.tolist(), parts, strict=True):
            parent, _, child = name.partition("\n")
            if parent and child and parent != child:
                found.append(
                    Edge(
                        ch.topic,
                        parent,
                        child,
                        places.time[rows],
                        places.position[rows],
                        places.rotation[rows],
                    )
                )
    return found
