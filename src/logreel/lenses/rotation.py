"""Arithmetic of unit quaternions x, y, z, w and vectors, for whole columns at once.

Arrays have one row per rotation or vector: float64[…, 4] and float64[…, 3]; leading axes broadcast.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.lenses.base import F64

#: The rotation that changes nothing.
IDENTITY = (0.0, 0.0, 0.0, 1.0)
#: Smaller norms of quaternions count as 0: a rotation that is not known.
LEAST_NORM = 1e-6


def conjugated(turn: F64) -> F64:
    """Return the inverse rotations."""
    found: F64 = turn * np.array([-1.0, -1.0, -1.0, 1.0])
    return found


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


def unit(turn: F64) -> tuple[F64, NDArray[np.bool_]]:
    """Return the quaternions with norm 1, and bool[…]: which are rotations.

    Those that contain NaN or infinity, or are zero, become NaN.
    """
    with np.errstate(all="ignore"):
        size = np.linalg.norm(turn, axis=-1)
        good = np.isfinite(size) & (size > LEAST_NORM)
        found = np.where(good[..., None], turn / np.where(good, size, 1.0)[..., None], np.nan)
    return found, good


def angle_between(a: F64, b: F64) -> F64:
    """Return the angles in rad between rotations, 0 to π; exact for small angles, too."""
    # Of a quaternion and its negative, which are the same rotation, the nearer one counts.
    near = np.minimum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    far = np.maximum(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))
    found: F64 = 4 * np.arctan2(near, far)
    return found


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
