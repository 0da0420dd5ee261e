"""Plain values that metrics and replay speak in."""

from __future__ import annotations

from typing import NamedTuple


class Vector(NamedTuple):
    """Three numbers along the simulator's axes: x forward, y to the right, z up."""

    x: float
    y: float
    z: float


class Rotation(NamedTuple):
    """Degrees. Yaw turns x towards y, pitch lifts the nose, roll lowers the right side."""

    roll: float
    pitch: float
    yaw: float


class Transform(NamedTuple):
    """Where something is and how it is turned."""

    location: Vector
    rotation: Rotation


class VehicleControl(NamedTuple):
    """What the driver does."""

    steer: float
    throttle: float
    brake: float
    handbrake: bool
    gear: int

    @property
    def reverse(self) -> bool:
        """True while the gear is a reverse one."""
        return self.gear < 0


class Box(NamedTuple):
    """A box by its middle and half its size, in metres."""

    location: Vector
    extent: Vector


class SceneLight(NamedTuple):
    """A street or building light; colour in linear red, green, blue, alpha."""

    on: bool
    intensity: float
    color: tuple[float, float, float, float]
    group: str
