"""Build the bundled log: one second of a robot that turns slowly next to a wall and a pillar."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from support.samples.grey_jpeg import jpeg
from support.samples.koblenz.builder import Builder
from support.samples.koblenz.scene import FIRING_US, Scene, hdl32e, plane

#: Packets in a Velodyne message.
PACKETS = 18
#: Angles in rad; straight ahead is step 384 of 1024 for one model, 540 of 1440 for the other.
URG = np.deg2rad((np.arange(44, 726) - 384) * 360 / 1024)
UTM = np.deg2rad((np.arange(1081) - 540) * 360 / 1440)


def picture(camera: int, number: int) -> bytes:
    """Return a grey JPEG of 64 x 48 pixels."""
    rows, columns = np.mgrid[0:48, 0:64]
    return jpeg(((rows * 3 + columns * 2 + 40 * camera + 8 * number) % 256).astype(np.uint8))


@cache
def drive(seconds: float = 1.0, packets: int = PACKETS) -> bytes:
    """Return a log with all six message types, two cameras, two scanners, and a GPS fix every second.

    packets  number of packets in a Velodyne message; fewer make a smaller log of as many messages
    """
    out, scene = Builder(), Scene()
    near, urg, utm = Scene(wall=2.5, cylinder=(-1.0, 1.5), radius=0.3), "Hokuyo_URG-04LX", "Hokuyo_UTM-30LX"

    def velodyne(ms: float, i: int) -> None:
        out.velodyne(ms, hdl32e(scene, round(i * PACKETS * 12 * FIRING_US), packets))

    def pose(ms: float, _: int) -> None:
        half = ms / 1000 * 0.05
        out.pose(ms, (math.cos(half), 0.0, 0.0, math.sin(half)))

    def gps(ms: float, i: int) -> None:
        out.gps(ms, (12, 34, 50 + i), place=(50.3629 + 1e-5 * i, 7.5586 + 2e-5 * i), speed=3.6, quality=2)

    # For each sensor: time of the first message and period in ms, and the function that appends a message.
    plan: list[tuple[float, float, Callable[[float, int], object]]] = [
        (1.25, 200, lambda ms, i: out.obd(ms, 3 + i % 2, 900 + 10 * i, 12.5)),
        (2.5, 1000, gps),
        (3.75, 20, pose),
        (5.0, PACKETS * 12 * FIRING_US / 1000, velodyne),
        (6.25, 200, lambda ms, i: out.image(ms, 0, 64, 48, picture(0, i))),
        (7.25, 200, lambda ms, i: out.image(ms, 1, 64, 48, picture(1, i))),
        (7.5, 100, lambda ms, _: out.laser(ms, urg, "front", plane(near, URG, 5.6))),
        (8.5, 25, lambda ms, _: out.laser(ms, utm, "rear", plane(scene, UTM, 30.0))),
    ]
    times = [
        (first + i * step, n, i)
        for n, (first, step, _) in enumerate(plan)
        for i in range(math.ceil((seconds * 1000 - first) / step) + (step == 1000))
    ]
    for ms, n, i in sorted(times):
        plan[n][2](ms, i)
    return out.bytes()
