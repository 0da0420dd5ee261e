"""Simulate sensors in a small scene: a wall, a cylinder and the ground, cast ray by ray.

Metres, x forward, y left, z up, from the sensor.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

#: Microseconds of one firing of a HDL-32E, and its lasers' elevations in the order in which they fire.
FIRING_US = 46.08
ELEVATIONS = np.array(
    [-30.67 + 4 / 3 * (j // 2) if j % 2 == 0 else -9.33 + 4 / 3 * (j // 2) for j in range(32)]
)
FARTHEST = 100.0


@dataclass(frozen=True)
class Scene:
    """A wall at x = *wall* up to *half* to both sides, an upright cylinder, the ground at z = *ground*."""

    wall: float = 10.0
    half: float = 8.0
    cylinder: tuple[float, float] = (-5.0, 3.0)
    radius: float = 1.0
    ground: float = -1.8

    def cast(self, direction: F64) -> F64:
        """Return float64[n]: metres to the nearest surface along unit vectors float64[n, 3]; infinite without any."""
        x, y, z = direction.T
        with np.errstate(divide="ignore", invalid="ignore"):
            wall = self.wall / x
            wall = np.where((wall > 0) & (np.abs(wall * y) <= self.half), wall, np.inf)
            ground = np.where(z < 0, self.ground / z, np.inf)
            flat = x**2 + y**2
            along = (x * self.cylinder[0] + y * self.cylinder[1]) / flat
            tangent_squared = self.cylinder[0] ** 2 + self.cylinder[1] ** 2 - self.radius**2
            root = np.sqrt(along**2 - tangent_squared / flat)
            cylinder = np.where(along - root > 0, along - root, np.inf)
        return np.fmin(np.fmin(wall, ground), cylinder)


def hdl32e(scene: Scene, first_us: int, count: int, hertz: float = 20.0) -> list[bytes]:
    """Return *count* packets of an HDL-32E that turns with *hertz*."""
    us = first_us + FIRING_US * np.arange(12 * count)
    azimuth = np.rint(us * 1e-6 * hertz * 36000).astype(np.int64) % 36000
    turn, tilt = np.deg2rad(azimuth / 100)[:, None], np.deg2rad(ELEVATIONS)
    direction = np.stack(
        [
            np.cos(tilt) * np.cos(turn),
            -np.cos(tilt) * np.sin(turn),
            np.broadcast_to(np.sin(tilt), (len(us), 32)),
        ],
        -1,
    )
    far = scene.cast(direction.reshape(-1, 3)).reshape(-1, 32)
    units = np.where(far < FARTHEST, np.rint(far / 0.002), 0).astype("<u2")
    blocks = np.zeros((12 * count, 100), np.uint8)
    blocks[:, :2] = 0xFF, 0xEE
    blocks[:, 2:4] = azimuth.astype("<u2")[:, None].view(np.uint8)
    returns = np.zeros((12 * count, 32, 3), np.uint8)
    returns[:, :, :2] = units[..., None].view(np.uint8)
    returns[:, :, 2] = np.where(units, 20 + 5 * np.arange(32), 0)
    blocks[:, 4:] = returns.reshape(12 * count, 96)
    clock = us[::12].astype(np.int64) % 3_600_000_000
    return [
        blocks[12 * i : 12 * i + 12].tobytes() + struct.pack("<IBB", clock[i], 0x37, 0x21)
        for i in range(count)
    ]


def plane(scene: Scene, angles: F64, longest: float) -> list[int]:
    """Return the ranges of a planar scanner in mm at *angles* in rad; 1 where it sees nothing."""
    direction = np.stack([np.cos(angles), np.sin(angles), np.zeros(len(angles))], -1)
    far = scene.cast(direction)
    return [int(mm) for mm in np.where(far < longest, np.rint(far * 1000), 1)]
