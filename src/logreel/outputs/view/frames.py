"""Coordinate frames of a log and the transforms between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import numpy as np

from logreel.lenses import F64, Transform
from logreel.lenses.rotation import conjugated, multiplied, rotated
from logreel.log.times import SECOND
from logreel.ops.query.frame_links import Link, links_of
from logreel.outputs.view.lens_cache import lenses_of

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Messages with transforms up to which they are all kept in memory; of longer logs a window is read for each moment.
MESSAGES = 300_000
#: Windows in ns before the moment in which transforms of such a log are searched; channels with few messages whole.
WINDOW, FEW = 30 * SECOND, 2000
#: Time in ns after the moment in which the next transform is searched.
AHEAD = SECOND
#: Transforms between one frame and the root at most, so that circles end.
DEEP = 256
#: Names of usual reference frames, best first.
_FIXED = ("map", "earth", "world", "odom", "odom_combined")


@dataclass(frozen=True, slots=True)
class Place:
    """A rigid transform: *position* in metres, *rotation* as a quaternion x, y, z, w; float64 each."""

    position: F64
    rotation: F64

    def after(self, other: Place) -> Place:
        """Return the transform that applies *other* first, then this one."""
        return Place(
            self.position + rotated(self.rotation, other.position),
            multiplied(self.rotation, other.rotation),
        )

    def inverse(self) -> Place:
        """Return the inverse transform."""
        back = conjugated(self.rotation)
        return Place(-rotated(back, self.position), back)

    def numbers(self) -> list[float]:
        """Return x, y, z of the position and x, y, z, w of the rotation."""
        return [float(value) for value in (*self.position, *self.rotation)]


NOWHERE = Place(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]))


_KNOWN: WeakKeyDictionary[Log, tuple[int, Frames]] = WeakKeyDictionary()


class Frames:
    """The frames of a log.

    whole  all transforms by parent and child; None where there are too many to keep
    """

    def __init__(self, log: Log) -> None:
        # They are kept by log, and must not keep it alive.
        self._log = ref(log)
        total = _messages(log)
        self.whole: list[Link] | None = links_of(log, poses=False)[0] if total <= MESSAGES else None

    @classmethod
    def of(cls, log: Log) -> Frames:
        """Return the frames of *log*, read once and again when the log has grown."""
        size = _messages(log)
        known = _KNOWN.get(log)
        if known is None or known[0] != size:
            known = _KNOWN[log] = (size, cls(log))
        return known[1]

    def at(self, time: int) -> Tree:
        """Return the tree of frames at *time* (ns), interpolated; beyond the transforms of a frame, the nearest one."""
        links: dict[str, tuple[str, Place]] = {}
        moment, good = np.array([time], np.int64), np.ones(1, np.bool_)
        for link in self._near(time):
            place, turn = link.curve.at(moment, True, None, good)
            # Of a frame with several parents, the one that was stated last counts.
            row = -1 if link.static else max(0, int(np.searchsorted(link.time, time, side="right")) - 1)
            size = float(np.linalg.norm(turn[:, 0]))
            links[link.child] = (link.parents[int(link.parent[row])], Place(place[:, 0], turn[:, 0] / size))
        return Tree(links)

    def _near(self, time: int) -> list[Link]:
        if self.whole is not None:
            return self.whole
        log = self._log()
        if log is None:
            return []

        def bounds(ch: Channel) -> tuple[int | None, int | None]:
            return (None, None) if len(ch) <= FEW else (time - WINDOW, time + AHEAD)

        return links_of(log, poses=False, bounds=bounds)[0]


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


def _messages(log: Log) -> int:
    """Return the number of messages with transforms."""
    return sum(len(ch) for ch, found in lenses_of(log) if any(isinstance(one, Transform) for one in found))
