"""Values that metrics and replay return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
