"""Rotations by roll, pitch and yaw as in the simulator: left-handed, x forward, y to the right, z up."""

from __future__ import annotations

from math import atan2, cos, degrees, hypot, radians, sin
from typing import NamedTuple

from logreel.formats.carla.simulator.values import Rotation, Transform, Vector

#: Centimetres per metre.
METRE = 100.0


class Axes(NamedTuple):
    """Axes of a rotated frame: the directions of its x, y and z."""

    x: Vector
    y: Vector
    z: Vector


def axes(rotation: Rotation) -> Axes:
    """Return the axes of a frame with this rotation: first roll, then pitch, then yaw."""
    roll, pitch, yaw = map(radians, rotation)
    sr, sp, sy = sin(roll), sin(pitch), sin(yaw)
    cr, cp, cy = cos(roll), cos(pitch), cos(yaw)
    return Axes(
        Vector(cp * cy, cp * sy, sp),
        Vector(sr * sp * cy - cr * sy, sr * sp * sy + cr * cy, -sr * cp),
        Vector(-(cr * sp * cy + sr * sy), cy * sr - cr * sp * sy, cr * cp),
    )


def rotated(vector: Vector, frame: Axes) -> Vector:
    """Return a vector given in a rotated frame in the outer frame."""
    return Vector(*(sum(part * axis[i] for part, axis in zip(vector, frame, strict=True)) for i in range(3)))


def rotation_of(frame: Axes) -> Rotation:
    """Return the rotation of a frame given by its axes."""
    x, y, z = frame
    return Rotation(degrees(atan2(-y.z, z.z)), degrees(atan2(x.z, hypot(x.x, x.y))), degrees(atan2(x.y, x.x)))


def camera_pose(pose: Transform, offset: tuple[float, float, float], pitch: float) -> Transform:
    """Return the pose of a camera in the frame of *pose*: *offset* in metres, *pitch* in degrees."""
    outer = axes(pose.rotation)
    moved = rotated(Vector(*offset), outer)
    location = Vector(*(a + b * METRE for a, b in zip(pose.location, moved, strict=True)))
    inner = axes(Rotation(0.0, pitch, 0.0))
    return Transform(location, rotation_of(Axes(*(rotated(axis, outer) for axis in inner))))
