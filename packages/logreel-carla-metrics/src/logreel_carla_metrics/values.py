"""Vectors, transforms and states with the names and operators of the simulator's Python package ``carla``.

Lengths are in metres, angles in degrees, axes left-handed: x forward, y to the right, z up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum, IntFlag
from typing import Any, Self

import logreel


class Values:
    """Base of values: equality and text by their members."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({members})"


class Vector2D(Values):
    """A vector in the plane."""

    def __init__(self, x: float = 0.0, y: float = 0.0) -> None:
        self.x, self.y = float(x), float(y)

    def length(self) -> float:
        """Return the length."""
        return math.hypot(self.x, self.y)


class Vector3D(Values):
    """A vector; sums, differences, products and quotients with numbers are vectors of the same class."""

    def __init__(self, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> None:
        self.x, self.y, self.z = float(x), float(y), float(z)

    def __iter__(self) -> Iterator[float]:
        return iter((self.x, self.y, self.z))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vector3D) and tuple(self) == tuple(other)

    __hash__ = None

    def __add__(self, other: Vector3D) -> Self:
        return type(self)(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector3D) -> Self:
        return type(self)(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, factor: float) -> Self:
        return type(self)(self.x * factor, self.y * factor, self.z * factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Self:
        return type(self)(self.x / divisor, self.y / divisor, self.z / divisor)

    def __neg__(self) -> Self:
        return self * -1.0

    def __abs__(self) -> Self:
        return type(self)(abs(self.x), abs(self.y), abs(self.z))

    def squared_length(self) -> float:
        """Return the square of the length."""
        return self.dot(self)

    def length(self) -> float:
        """Return the length."""
        return math.sqrt(self.squared_length())

    def make_unit_vector(self) -> Self:
        """Return the vector of length 1 with the same direction; raises ZeroDivisionError for length 0."""
        return self / self.length()

    def dot(self, vector: Vector3D) -> float:
        """Return the scalar product."""
        return self.x * vector.x + self.y * vector.y + self.z * vector.z

    def dot_2d(self, vector: Vector3D) -> float:
        """Return the scalar product without z."""
        return self.x * vector.x + self.y * vector.y

    def cross(self, vector: Vector3D) -> Self:
        """Return the vector product."""
        return type(self)(
            self.y * vector.z - self.z * vector.y,
            self.z * vector.x - self.x * vector.z,
            self.x * vector.y - self.y * vector.x,
        )

    def distance(self, vector: Vector3D) -> float:
        """Return the distance to another point."""
        return (self - vector).length()

    def distance_squared(self, vector: Vector3D) -> float:
        """Return the square of the distance to another point."""
        return (self - vector).squared_length()

    def distance_2d(self, vector: Vector3D) -> float:
        """Return the distance to another point without z."""
        return math.sqrt(self.distance_squared_2d(vector))

    def distance_squared_2d(self, vector: Vector3D) -> float:
        """Return the square of the distance to another point without z."""
        apart = self - vector
        return apart.dot_2d(apart)

    def get_vector_angle(self, vector: Vector3D) -> float:
        """Return the angle to another vector in radians."""
        cosine = self.dot(vector) / (self.length() * vector.length())
        return math.acos(min(max(cosine, -1.0), 1.0))


class Location(Vector3D):
    """A point in metres."""


class Rotation(Values):
    """Pitch, yaw and roll in degrees."""

    def __init__(self, pitch: float = 0.0, yaw: float = 0.0, roll: float = 0.0) -> None:
        self.pitch, self.yaw, self.roll = float(pitch), float(yaw), float(roll)

    def axes(self) -> Any:
        """Return the directions of x, y and z of the rotated frame as ``logreel.carla.Axes``."""
        return logreel.carla.Rotation(self.roll, self.pitch, self.yaw).axes()

    def get_forward_vector(self) -> Vector3D:
        """Return the direction of x."""
        return Vector3D(*self.axes().x)

    def get_right_vector(self) -> Vector3D:
        """Return the direction of y."""
        return Vector3D(*self.axes().y)

    def get_up_vector(self) -> Vector3D:
        """Return the direction of z."""
        return Vector3D(*self.axes().z)


class Transform(Values):
    """Location and rotation of a frame."""

    def __init__(self, location: Location | None = None, rotation: Rotation | None = None) -> None:
        self.location = Location() if location is None else location
        self.rotation = Rotation() if rotation is None else rotation

    def get_forward_vector(self) -> Vector3D:
        """Return the direction of x."""
        return self.rotation.get_forward_vector()

    def get_right_vector(self) -> Vector3D:
        """Return the direction of y."""
        return self.rotation.get_right_vector()

    def get_up_vector(self) -> Vector3D:
        """Return the direction of z."""
        return self.rotation.get_up_vector()

    def transform(self, in_point: Vector3D) -> Location:
        """Return a point of this frame in the outer frame."""
        return Location(*(self.transform_vector(in_point) + self.location))

    def transform_vector(self, in_vector: Vector3D) -> Vector3D:
        """Return a vector of this frame in the outer frame."""
        return Vector3D(*self.rotation.axes().outer(logreel.carla.Vector(*in_vector)))

    def get_matrix(self) -> list[list[float]]:
        """Return the 4 × 4 matrix that transforms points of this frame to the outer frame."""
        columns = (*self.rotation.axes(), tuple(self.location))
        return [*([float(column[i]) for column in columns] for i in range(3)), [0.0, 0.0, 0.0, 1.0]]

    def get_inverse_matrix(self) -> list[list[float]]:
        """Return the 4 × 4 matrix that transforms points of the outer frame to this frame."""
        rows = [
            [*axis, -sum(a * b for a, b in zip(axis, self.location, strict=True))]
            for axis in self.rotation.axes()
        ]
        return [*rows, [0.0, 0.0, 0.0, 1.0]]


class BoundingBox(Values):
    """A box: its centre, half its size, and its rotation."""

    def __init__(self, location: Location | None = None, extent: Vector3D | None = None) -> None:
        self.location = Location() if location is None else location
        self.extent = Vector3D() if extent is None else extent
        self.rotation = Rotation()

    def get_local_vertices(self) -> list[Location]:
        """Return the corners in the frame of the box's owner."""
        pose, half = Transform(self.location, self.rotation), self.extent
        signs = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        return [pose.transform(Location(x * half.x, y * half.y, z * half.z)) for x, y, z in signs]

    def get_world_vertices(self, transform: Transform) -> list[Location]:
        """Return the corners in the frame that is outside of *transform*."""
        return [transform.transform(corner) for corner in self.get_local_vertices()]

    def contains(self, world_point: Vector3D, transform: Transform) -> bool:
        """Return whether a point is in the box of an owner with this transform."""
        rest: Any = Transform(self.location, self.rotation).get_inverse_matrix()
        inner = _applied(rest, _applied(transform.get_inverse_matrix(), world_point))
        return all(abs(a) <= b for a, b in zip(inner, self.extent, strict=True))


def _applied(matrix: list[list[float]], point: Vector3D) -> Vector3D:
    return Vector3D(*(sum(a * b for a, b in zip(row, (*point, 1.0), strict=True)) for row in matrix[:3]))


class TrafficLightState(Enum):
    """State of a traffic light."""

    Red = 0
    Yellow = 1
    Green = 2
    Off = 3
    Unknown = 4


class VehicleLightState(IntFlag):
    """Lights of a vehicle."""

    NONE = 0
    Position = 1
    LowBeam = 2
    HighBeam = 4
    Brake = 8
    RightBlinker = 16
    LeftBlinker = 32
    Reverse = 64
    Fog = 128
    Interior = 256
    Special1 = 512
    Special2 = 1024
    All = 0xFFFFFFFF


class LightGroup(Enum):
    """Group of a street or building light."""

    NONE = 0
    Vehicle = 1
    Street = 2
    Building = 3
    Other = 4


class Color(Values):
    """A colour with components 0 to 255."""

    def __init__(self, r: int = 0, g: int = 0, b: int = 0, a: int = 255) -> None:
        self.r, self.g, self.b, self.a = r, g, b, a


class LightState(Values):
    """State of a street or building light."""

    def __init__(
        self,
        intensity: float = 0.0,
        color: Color | None = None,
        group: LightGroup = LightGroup.NONE,
        active: bool = False,
    ) -> None:
        self.intensity, self.color = intensity, Color() if color is None else color
        self.group, self.active = group, active


class VehicleControl(Values):
    """Controls of a vehicle."""

    def __init__(
        self,
        throttle: float = 0.0,
        steer: float = 0.0,
        brake: float = 0.0,
        hand_brake: bool = False,
        reverse: bool = False,
        manual_gear_shift: bool = False,
        gear: int = 0,
    ) -> None:
        self.throttle, self.steer, self.brake, self.hand_brake = throttle, steer, brake, hand_brake
        self.reverse, self.manual_gear_shift, self.gear = reverse, manual_gear_shift, gear


class _Members(Values):
    """Values that are given by name; the others are the defaults of the class."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)


class GearPhysicsControl(_Members):
    """A gear."""

    ratio = 1.0
    down_ratio = 0.5
    up_ratio = 0.65


class WheelPhysicsControl(_Members):
    """A wheel."""

    tire_friction = 2.0
    damping_rate = 0.25
    max_steer_angle = 70.0
    radius = 30.0
    max_brake_torque = 1500.0
    max_handbrake_torque = 3000.0

    def __init__(self, **values: Any) -> None:
        self.position = Vector3D()
        super().__init__(**values)


class VehiclePhysicsControl(_Members):
    """Physics of a vehicle."""

    max_rpm = 5000.0
    moi = 1.0
    damping_rate_full_throttle = 0.15
    damping_rate_zero_throttle_clutch_engaged = 2.0
    damping_rate_zero_throttle_clutch_disengaged = 0.35
    use_gear_autobox = True
    gear_switch_time = 0.5
    clutch_strength = 10.0
    final_ratio = 4.0
    mass = 1000.0
    drag_coefficient = 0.3

    def __init__(self, **values: Any) -> None:
        self.center_of_mass = Vector3D()
        self.torque_curve: list[Vector2D] = []
        self.steering_curve: list[Vector2D] = []
        self.forward_gears: list[GearPhysicsControl] = []
        self.wheels: list[WheelPhysicsControl] = []
        super().__init__(**values)
