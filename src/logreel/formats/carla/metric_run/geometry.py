"""Vectors, rotations and transforms with the names and operators of the simulator's Python package ``carla``.

Lengths are in metres, angles in degrees, axes left-handed: x forward, y to the right, z up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

from logreel.formats.carla.simulator.rotation import Axes, axes, rotated
from logreel.formats.carla.simulator.values import Rotation as Angles
from logreel.formats.carla.simulator.values import Vector


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

    def axes(self) -> Axes:
        """Return the directions of x, y and z of the rotated frame."""
        return axes(Angles(self.roll, self.pitch, self.yaw))

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
        return Vector3D(*rotated(Vector(*in_vector), self.rotation.axes()))

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
