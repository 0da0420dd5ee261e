"""Arithmetic of unit quaternions x, y, z, w and vectors, for whole columns at once.

Arrays have one row per rotation or vector: float64[…, 4] and float64[…, 3]; leading axes broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64, I64

#: The rotation that changes nothing.
IDENTITY = (0.0, 0.0, 0.0, 1.0)
#: Smaller norms of quaternions count as 0: a rotation that is not known.
LEAST_NORM = 1e-6


def conjugated(turn: F64) -> F64:
    """Return the inverse rotations."""
    inverse: F64 = turn * np.array([-1.0, -1.0, -1.0, 1.0])
    return inverse


def multiplied(a: F64, b: F64) -> F64:
    """Return the rotations that apply *b* first, then *a*."""
    ax, ay, az, aw = np.moveaxis(np.asarray(a, np.float64), -1, 0)
    bx, by, bz, bw = np.moveaxis(np.asarray(b, np.float64), -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def rotated(turn: F64, vectors: F64) -> F64:
    """Return *vectors*, each rotated by its rotation."""
    x, y, z, w = np.moveaxis(np.asarray(turn, np.float64), -1, 0)
    a, b, c = np.moveaxis(np.asarray(vectors, np.float64), -1, 0)
    # v + 2 w (q × v) + 2 q × (q × v)
    i, j, k = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return np.stack(
        [a + w * i + y * k - z * j, b + w * j + z * i - x * k, c + w * k + x * j - y * i], axis=-1
    )


def turn_to(direction: F64) -> F64:
    """Return a rotation, x, y, z, w, that turns the x axis to *direction*, float64[3] of any length."""
    x, y, z = direction
    # The sum with the x axis lies half way; opposite to it, any turn by 180 degrees does.
    turn = np.array([0.0, -z, y, float(np.linalg.norm(direction)) + x])
    length = float(np.linalg.norm(turn))
    return turn / length if length > 0 else np.array([0.0, 0.0, 1.0, 0.0])


def unit(turn: F64) -> tuple[F64, NDArray[np.bool_]]:
    """Return the quaternions with norm 1, and bool[…]: which are rotations.

    Those that contain NaN or infinity, or are zero, become NaN.
    """
    with np.errstate(all="ignore"):
        size = np.linalg.norm(turn, axis=-1)
        good = np.isfinite(size) & (size > LEAST_NORM)
        normed = np.where(good[..., None], turn / np.where(good, size, 1.0)[..., None], np.nan)
    return normed, good


def angle_between(a: F64, b: F64) -> F64:
    """Return the angles in rad between rotations, 0 to π; exact for small angles, too."""
    # Of a quaternion and its negative, which are the same rotation, the nearer one counts.
    near = np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    far = np.maximum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    angle: F64 = 4 * np.arctan2(near, far)
    return angle


def matrices(turn: F64) -> F64:
    """Return the rotation matrices float64[…, 3, 3]."""
    x, y, z, w = np.moveaxis(np.asarray(turn, np.float64), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def euler(turn: F64) -> F64:
    """Return roll, pitch and yaw in rad: float64[…, 3], rotations about fixed x, then y, then z (as in URDF)."""
    x, y, z, w = np.moveaxis(np.asarray(turn, np.float64), -1, 0)
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return np.stack([roll, pitch, yaw], axis=-1)


#: Translation float64[3, n or 1] and rotation float64[4, n or 1].
Columns = tuple[F64, F64]
#: Angles (rad) below which a rotation is interpolated as one of this angle: the sine of 0 cannot be divided by.
_LEAST_ANGLE = 1e-9


class PoseCurve:
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
