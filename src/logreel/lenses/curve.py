"""Interpolation of poses between times, for many times at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.lenses.base import F64
from logreel.lenses.rotation import angle_between

#: Translation float64[3, n or 1] and rotation float64[4, n or 1].
Columns = tuple[F64, F64]
#: Angles (rad) below which a rotation is interpolated as one of this angle: the sine of 0 cannot be divided by.
_LEAST_ANGLE = 1e-9


class Curve:
    """Poses prepared for interpolation: linear in position, and on the shortest way with constant speed in rotation.

    time      int64[n] ns, strictly increasing
    position  float64[n, 3], *rotation* float64[n, 4] unit quaternions x, y, z, w
    kept      bool[n]: the pose is kept until the next one, instead of leading to it; None: one pose for all times
    """

    def __init__(self, time: I64, position: F64, rotation: F64, kept: NDArray[np.bool_] | None) -> None:
        self.time, self.static = time, kept is None
        if kept is None:
            self._fixed: Columns = (position[-1][:, None], rotation[-1][:, None])
            return
        n, turn, place = len(time), rotation, position
        after = np.append(np.arange(1, n), n - 1)
        after = np.where(kept, np.arange(n), after)
        other = turn[after]
        # Of a quaternion and its negative, which are the same rotation, the nearer one is the shortest way.
        other = np.where((np.einsum("ij,ij->i", turn, other) < 0)[:, None], -other, other)
        angle = np.maximum(angle_between(turn, other) / 2, _LEAST_ANGLE)
        size = np.sin(angle)[:, None]
        step = np.diff(time, append=time[-1:]).astype(np.float64)
        self.step = np.where(step > 0, step, 1.0)
        self.angle = angle
        self.place, self.move = place.T.copy(), (place[after] - place).T.copy()
        self.turn, self.other = (turn / size).T.copy(), (other / size).T.copy()

    def at(self, times: I64, hold: bool, gap: int | None, good: NDArray[np.bool_]) -> Columns:
        """Return the poses at *times* (int64[k] ns).

        hold  take the nearest pose before the first and after the last; else they are not known there
        gap   do not interpolate between poses that are further apart (ns); None: any distance
        good  bool[k], becomes False where the pose is not known
        """
        if self.static:
            return self._fixed
        i = np.searchsorted(self.time, times, side="right") - 1
        if not hold:
            good &= (i >= 0) & (times <= self.time[-1])
            np.maximum(i, 0, out=i)
        else:
            np.maximum(i, 0, out=i)
            times = np.clip(times, self.time[0], self.time[-1])
        f = (times - self.time[i]) / self.step[i]
        if gap is not None and not hold:
            good &= ~((f > 0) & (self.step[i] > gap))
        angle = self.angle[i]
        np.clip(f, 0.0, 1.0, out=f)
        done = f * angle
        turn = np.sin(angle - done) * self.turn.take(i, axis=1)
        turn += np.sin(done) * self.other.take(i, axis=1)
        place = self.place.take(i, axis=1)
        place += f * self.move.take(i, axis=1)
        return place, turn
