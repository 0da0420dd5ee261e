"""Tracks of positions: where they jump, where their line is cut, and how long they are; all outputs use these rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.log.times import SECOND

if TYPE_CHECKING:
    from logreel.io.arrays import F64, I64
    from logreel.lenses.position import Fixes

#: A step is a jump if it is longer than this, in m, faster than this, in m/s,
JUMP_M, JUMP_SPEED = 100.0, 340.0
#: and faster than this number of usual steps, which are fast in tracks of rockets and satellites.
JUMP_FACTOR = 10
#: A line is cut at gaps longer than both: ns, and number of median periods.
GAP_NS, GAP_PERIODS = 10 * SECOND, 5
#: Mean radius of the Earth, m.
EARTH = 6_371_008.8
#: A robot stays where it is if all its positions are within this of the middle one, in m, by satellites or otherwise,
STILL_FIX, STILL_POSE = 10.0, 0.5
#: and the way between means of this number of positions is at most this share of the way between positions.
BLOCK, SHARE = 10, 0.5
#: Positions behind a jump are near if they are within this number of extents of the longest part; its least extent, m.
NEAR, LEAST_EXTENT = 10, 50.0


@dataclass(frozen=True, slots=True)
class PositionJump:
    """A step that no vehicle can make: from *start* to *end* (ns), *metres* long."""

    start: int
    end: int
    metres: float


@dataclass(frozen=True, slots=True)
class Way:
    """How far a track goes, in m.

    count   number of positions
    length  sum of the steps, without jumps; errors of positions of a robot that stands still add up, too
    extent  greatest distance from the middle position
    still   whether the robot stays where it is
    jumps   steps that do not count into *length*, longest first
    """

    count: int
    length: float
    extent: float
    still: bool
    jumps: tuple[PositionJump, ...]

    @property
    def distance(self) -> float:
        """Length of the way of the robot: 0 if it stays where it is."""
        return 0.0 if self.still else self.length

    def text(self) -> str:
        """Return the way for people: ``1.11 km in 101 positions``."""
        count = f"{self.count} position{'s' * (self.count != 1)}"
        if self.still:
            return f"stays within {length_text(self.extent)}, in {count}"
        way = f"{length_text(self.length)} in {count}"
        if not self.jumps:
            return way
        farthest = length_text(self.jumps[0].metres)
        if len(self.jumps) == 1:
            return f"{way}, without a jump of {farthest}"
        return f"{way}, without {len(self.jumps)} jumps of up to {farthest}"


class Track:
    """The known positions of one channel, robot or frame, in the order of time.

    time           int64[k]  ns
    place          float64[k, 3]  latitude and longitude in degrees and altitude in m; or x, y, z in m
    is_geographic  which of both
    """

    def __init__(self, time: I64, place: F64, is_geographic: bool) -> None:
        known = np.isfinite(place[:, : 2 if is_geographic else None]).all(axis=1)
        time, place = time[known], place[known]
        order = np.argsort(time, kind="stable")
        self.time, self.place, self.is_geographic = time[order], place[order], is_geographic
        self.steps = self._steps()
        self.jumps = jumps(self.time, self.steps)

    @classmethod
    def of_fixes(cls, fixes: Fixes) -> Track:
        """Return the track of the valid ones of *fixes*."""
        good = fixes.take(fixes.valid)
        return cls(good.time, np.stack([good.latitude, good.longitude, good.altitude], axis=-1), True)

    def __len__(self) -> int:
        return len(self.time)

    def _steps(self) -> F64:
        if self.is_geographic:
            return distances(self.place[:, 0], self.place[:, 1])
        return np.asarray(np.sqrt((np.diff(self.place, axis=0) ** 2).sum(axis=1)))

    @property
    def cuts(self) -> I64:
        """int64[c]: rows before which a line is cut: at jumps, long gaps, and where it crosses 180° of longitude."""
        periods = _periods(self.time)
        apart = self.jumps | (periods > max(GAP_NS, GAP_PERIODS * _median(periods)))
        if self.is_geographic:
            apart |= np.abs(np.diff(self.place[:, 1])) > 180
        return np.flatnonzero(apart) + 1

    @property
    def near(self) -> NDArray[np.bool_]:
        """bool[k]: the positions that a drawing shows: without those that a jump puts far away from most others."""
        if not self.jumps.any():
            return np.ones(len(self), np.bool_)
        part = np.concatenate([[0], np.cumsum(self.jumps)])
        main = part == np.bincount(part).argmax()
        away = self._away(np.median(self.place[main], axis=0))
        is_near: NDArray[np.bool_] = away <= NEAR * max(float(away[main].max()), LEAST_EXTENT)
        return is_near

    def _away(self, middle: F64) -> F64:
        """Return float64[k]: distances from a place in m."""
        if not self.is_geographic:
            return np.asarray(np.sqrt(((self.place - middle) ** 2).sum(axis=1)))
        return _great_circle(
            self.place[:, 0], self.place[:, 1], np.full(len(self), middle[0]), np.full(len(self), middle[1])
        )

    @property
    def way(self) -> Way:
        """How far the track goes."""
        if not len(self):
            return Way(0, 0.0, 0.0, True, ())
        length = float(self.steps[~self.jumps].sum())
        away = float(self._away(np.median(self.place, axis=0)).max())
        means = _means(self.place)
        coarse = (
            distances(means[:, 0], means[:, 1])
            if self.is_geographic
            else np.sqrt((np.diff(means, axis=0) ** 2).sum(axis=1))
        )
        bound = STILL_FIX if self.is_geographic else STILL_POSE
        still = away < bound and float(coarse.sum()) < SHARE * length
        rows = np.flatnonzero(self.jumps)
        rows = rows[np.argsort(-self.steps[rows], kind="stable")]
        told = (
            PositionJump(int(self.time[n]), int(self.time[n + 1]), float(self.steps[n]))
            for n in rows.tolist()
        )
        return Way(len(self), length, away, still, tuple(told))


def jumps(time: I64, steps: F64) -> NDArray[np.bool_]:
    """Return bool[k - 1]: the steps that no vehicle can make.

    time   int64[k]        ns, in order
    steps  float64[k - 1]  m between positions that follow each other
    """
    periods = _periods(time)
    # Positions that are logged together have not been measured together.
    seconds = np.maximum(periods, max(_median(periods), 1)) / SECOND
    speed = steps / seconds
    usual = float(np.median(speed)) if len(speed) else 0.0
    is_jump: NDArray[np.bool_] = (steps > JUMP_M) & (speed > max(JUMP_SPEED, JUMP_FACTOR * usual))
    return is_jump


def _periods(time: I64) -> NDArray[np.uint64]:
    # As unsigned numbers, so that times from one end of int64 to the other cannot overflow.
    return time[1:].view(np.uint64) - time[:-1].view(np.uint64)


def _median(periods: NDArray[np.uint64]) -> float:
    return float(np.median(periods)) if len(periods) else 0.0


def _means(values: F64) -> F64:
    """Return the means of BLOCK rows each, or the rows themselves if there are few."""
    whole = len(values) // BLOCK * BLOCK
    if whole < 2 * BLOCK:
        return values
    return np.asarray(values[:whole].reshape(-1, BLOCK, *values.shape[1:]).mean(axis=1))


def distances(latitude: F64, longitude: F64) -> F64:
    """Return float64[n - 1]: great-circle distances in m between positions in degrees that follow each other."""
    return _great_circle(latitude[1:], longitude[1:], latitude[:-1], longitude[:-1])


def _great_circle(latitude: F64, longitude: F64, to_latitude: F64, to_longitude: F64) -> F64:
    """Return float64[n]: great-circle distances in m between pairs of positions in degrees."""
    lat, lon, lat2, lon2 = map(np.radians, (latitude, longitude, to_latitude, to_longitude))
    half = np.sin((lat - lat2) / 2) ** 2 + np.cos(lat) * np.cos(lat2) * np.sin((lon - lon2) / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.minimum(half, 1))))


def length_text(metres: float) -> str:
    """Return a length as text: ``35.2 m``, ``1.23 km``, ``1118 km``."""
    if metres < 1000:
        return f"{metres:.1f} m"
    return f"{metres / 1000:.2f} km" if metres < 100_000 else f"{metres / 1000:.0f} km"
