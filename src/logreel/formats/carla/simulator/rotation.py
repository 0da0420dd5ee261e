"""Turning by roll, pitch and yaw as the simulator does: left-handed, x forward, y to the right, z up."""

from __future__ import annotations

from math import atan2, cos, degrees, hypot, radians, sin
from typing import NamedTuple

from logreel.formats.carla.simulator.values import Rotation, Transform, Vector

#: Centimetres of a metre.
METRE = 100.0


class Axes(NamedTuple):
    """Where x, y and z of a turned frame point."""

    x: Vector
    y: Vector
    z: Vector


def axes(rotation: Rotation) -> Axes:
    """The axes of a frame with this rotation: first rolled, then pitched, then turned."""
    roll, pitch, yaw = map(radians, rotation)
    sr, sp, sy = sin(roll), sin(pitch), sin(yaw)
    cr, cp, cy = cos(roll), cos(pitch), cos(yaw)
    return Axes(
        Vector(cp * cy, cp * sy, sp),
        Vector(sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp),
        Vector(-(cr * sp * cy + sr * sy), cy * sr - cr * sp * sy, cr * cp),
    )


def turned(vector: Vector, frame: Axes) -> Vector:
    """A vector of a frame as it is outside."""
    return Vector(*(sum(part * axis[i] for part, axis in zip(vector, frame, strict=True)) for i in range(3)))


def rotation_of(frame: Axes) -> Rotation:
    """The rotation that a frame has."""
    x, y, z = frame
    return Rotation(degrees(atan2(-y.z, z.z)), degrees(atan2(x.z, hypot(x.x, x.y))), degrees(atan2(x.y, x.x)))


def behind(pose: Transform, offset: tuple[float, float, float], pitch: float) -> Transform:
    """A camera that sits in the frame of *pose*: *offset* in metres from it, and pitched by so many degrees."""
    outer = axes(pose.rotation)
    moved = turned(Vector(*offset), outer)
    location = Vector(*(a + b * METRE for a, b in zip(pose.location, moved, strict=True)))
    inner = axes(Rotation(0.0, pitch, 0.0))
    return Transform(location, rotation_of(Axes(*(turned(axis, outer) for axis in inner))))
