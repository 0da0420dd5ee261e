"""Values that metrics and replay return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import atan2, cos, degrees, hypot, radians, sin
from typing import NamedTuple


class Vector(NamedTuple):
    """A vector in the simulator's axes: x forward, y to the right, z up."""

    x: float
    y: float
    z: float


class Rotation(NamedTuple):
    """Angles in degrees: yaw turns x towards y, pitch lifts the nose, roll lowers the right side."""

    roll: float
    pitch: float
    yaw: float

    def axes(self) -> Axes:
        """Return the axes of a frame with this rotation: first roll, then pitch, then yaw."""
        roll, pitch, yaw = map(radians, self)
        sr, sp, sy = sin(roll), sin(pitch), sin(yaw)
        cr, cp, cy = cos(roll), cos(pitch), cos(yaw)
        return Axes(
            Vector(cp * cy, cp * sy, sp),
            Vector(sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp),
            Vector(-(cr * sp * cy + sr * sy), cy * sr - cr * sp * sy, cr * cp),
        )


class Axes(NamedTuple):
    """Axes of a rotated frame: the directions of its x, y and z in the outer frame, left-handed."""

    x: Vector
    y: Vector
    z: Vector

    def outer(self, vector: Vector) -> Vector:
        """Return a vector of this frame in the outer frame."""
        return Vector(*(sum(v * axis[i] for v, axis in zip(vector, self, strict=True)) for i in range(3)))

    def rotation(self) -> Rotation:
        """Return the rotation of this frame."""
        x, y, z = self
        return Rotation(
            degrees(atan2(-y.z, z.z)), degrees(atan2(x.z, hypot(x.x, x.y))), degrees(atan2(x.y, x.x))
        )


class Transform(NamedTuple):
    """Location and rotation."""

    location: Vector
    rotation: Rotation


class Poses(Mapping[int, Transform]):
    """Poses of actors by id; each Transform is made on access.

    values  six numbers for each actor: location, then roll, pitch, yaw
    """

    __slots__ = ("values_by_id",)

    def __init__(self, values: Mapping[int, Sequence[float]]) -> None:
        self.values_by_id = values

    def __getitem__(self, actor: int) -> Transform:
        x, y, z, roll, pitch, yaw = self.values_by_id[actor]
        return Transform(Vector(x, y, z), Rotation(roll, pitch, yaw))

    def __contains__(self, actor: object) -> bool:
        return actor in self.values_by_id

    def __iter__(self) -> Iterator[int]:
        return iter(self.values_by_id)

    def __len__(self) -> int:
        return len(self.values_by_id)

    def __repr__(self) -> str:
        return repr(dict(self))


class VehicleControl(NamedTuple):
    """Controls of a vehicle."""

    steer: float
    throttle: float
    brake: float
    handbrake: bool
    gear: int

    @property
    def reverse(self) -> bool:
        """True for a reverse gear."""
        return self.gear < 0


class Box(NamedTuple):
    """A box: its centre, and half its size, in metres."""

    location: Vector
    extent: Vector


class SceneLight(NamedTuple):
    """A street or building light; colour as linear red, green, blue, alpha."""

    on: bool
    intensity: float
    color: tuple[float, float, float, float]
    group: str
