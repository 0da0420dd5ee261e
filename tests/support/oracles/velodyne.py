"""Plain decoder of Velodyne packets, return by return, from the manuals: the reference for the compiled decoder."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Laser:
    """Calibration of one laser in degrees and metres."""

    elevation: float
    rotation: float = 0.0
    distance: float = 0.0
    vertical: float = 0.0
    horizontal: float = 0.0


@dataclass
class Point:
    x: float
    y: float
    z: float
    intensity: int
    laser: int
    azimuth: float
    us: float


HDL32E = [Laser(-30.67 + 4 / 3 * (j // 2) if j % 2 == 0 else -9.33 + 4 / 3 * (j // 2)) for j in range(32)]


def decode(packet: bytes, lasers: Sequence[Laser]) -> list[Point]:
    """Return the points of one packet; *us*: time after the stamp of the packet."""
    found = []
    dual = packet[1204] == 0x39 and len(lasers) == 32
    for block in range(12):
        flag, azimuth = struct.unpack_from("<HH", packet, 100 * block)
        if azimuth > 35999 or not (flag == 0xEEFF or (flag == 0xDDFF and len(lasers) == 64)):
            continue
        bank = 32 if flag == 0xDDFF else 0
        firing = block // 2 if dual else block
        for j in range(32):
            raw, intensity = struct.unpack_from("<HB", packet, 100 * block + 4 + 3 * j)
            if raw == 0:
                continue
            one = lasers[bank + j]
            d = raw * 0.002 + one.distance
            w, a = math.radians(one.elevation), math.radians(azimuth / 100 - one.rotation)
            r = d * math.cos(w) - one.vertical * math.sin(w)
            right = r * math.sin(a) - one.horizontal * math.cos(a)
            forward = r * math.cos(a) + one.horizontal * math.sin(a)
            up = d * math.sin(w) + one.vertical * math.cos(w)
            us = 46.08 * firing + 1.152 * j if len(lasers) == 32 else 0.0
            degrees = (azimuth / 100 - one.rotation) % 360
            found.append(Point(forward, -right, up, intensity, bank + j, degrees, us))
    return found


def ring(lasers: Sequence[Laser], laser: int) -> int:
    """Return the ring of a laser: the number of lasers with a lower elevation."""
    return sum(other.elevation < lasers[laser].elevation for other in lasers)
