"""Rigid transforms between two frames at many times, as a lookup returns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.lenses import F64
from logreel.lenses.rotation import conjugated, euler, matrices, multiplied, rotated
from logreel.log.brief import Brief


@dataclass(frozen=True, slots=True, repr=False)
class RigidTransforms(Brief):
    """Transforms that map points in the frame *source* to the frame *target*.

    time         int64[n] ns of the log's clock
    translation  float64[n, 3] metres: the origin of *source* in *target*; NaN where it is not known
    rotation     float64[n, 4] unit quaternions x, y, z, w; NaN where it is not known
    valid        bool[n]: where it is known

    For a lookup at one time, the arrays have no first axis: ``translation`` is float64[3].
    """

    target: str
    source: str
    time: I64
    translation: F64
    rotation: F64
    valid: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.time.size

    @property
    def matrix(self) -> F64:
        """float64[n, 4, 4]: homogeneous matrices."""
        found = np.zeros((*self.time.shape, 4, 4))
        found[..., :3, :3], found[..., :3, 3] = matrices(self.rotation), self.translation
        found[..., 3, 3] = 1.0
        return found

    @property
    def euler(self) -> F64:
        """float64[n, 3]: roll, pitch and yaw in rad; rotations about the fixed axes x, then y, then z."""
        return euler(self.rotation)

    def apply(self, points: Any) -> F64:
        """Return *points*, given in the frame *source*, in the frame *target*.

        points  [3] one point for all times, [n, 3] one for each time, or [n, k, 3] k for each time; of a lookup at one
                time, [3] or [k, 3]

        Raises UsageError for other shapes.
        """
        given = np.asarray(points, np.float64)
        one = self.time.ndim == 0
        turn, move = self.rotation, self.translation
        if given.shape[-1:] != (3,) or given.ndim > 3 - one:
            raise UsageError(
                f"points have the shape {given.shape}: give [3], [n, 3] for each of n times, or [n, k, 3]"
            )
        if given.ndim == 3:
            turn, move = turn[:, None], move[:, None]
        if not one and given.ndim > 1 and len(given) != len(self):
            raise UsageError(
                f"there are {len(given)} points for {len(self)} times; for the same points at all times, give "
                "points[None].repeat(n, 0)"
            )
        found: F64 = rotated(turn, given) + move
        return found

    def inverse(self) -> RigidTransforms:
        """Return the transforms from *target* to *source*."""
        back = conjugated(self.rotation)
        return RigidTransforms(
            self.source, self.target, self.time, -rotated(back, self.translation), back, self.valid
        )

    def __matmul__(self, other: RigidTransforms) -> RigidTransforms:
        """Return the transforms that apply *other* first; raises UsageError if frames or times do not match."""
        if other.target != self.source or not np.array_equal(self.time, other.time):
            raise UsageError(
                f"transforms from {self.source!r} cannot follow ones to {other.target!r}, or at other times"
            )
        return RigidTransforms(
            self.target,
            other.source,
            self.time,
            rotated(self.rotation, other.translation) + self.translation,
            multiplied(self.rotation, other.rotation),
            self.valid & other.valid,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the transforms as JSON data: a list of one dict per time, None for numbers that are not known."""
        rows = zip(
            np.atleast_1d(self.time).tolist(),
            np.atleast_1d(self.valid).tolist(),
            np.atleast_2d(self.translation).tolist(),
            np.atleast_2d(self.rotation).tolist(),
            strict=True,
        )
        return {
            "target": self.target,
            "source": self.source,
            "transforms": [
                {
                    "time_ns": time,
                    "translation": place if good else None,
                    "rotation_xyzw": turn if good else None,
                }
                for time, good, place, turn in rows
            ],
        }
