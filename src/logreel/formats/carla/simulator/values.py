"""Values that metrics and replay return."""

from __future__ import annotations

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
