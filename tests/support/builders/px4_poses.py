"""ULogs with attitudes and local positions, and what they mean by the rules of PX4 written plainly."""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np

from support.samples.ulog.builder import Builder

#: Exchange of north-east-down with east-north-up, and of forward-right-down with forward-left-up.
ENU = np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]])
FLU = np.diag([1.0, -1, -1])
START_US, SECOND_US = 5_000_000, 1_000_000


class State(NamedTuple):
    """Position in north-east-down and attitude as yaw, pitch, roll in rad at one time."""

    position: tuple[float, float, float]
    yaw: float
    pitch: float
    roll: float


def state(us: int) -> State:
    """Return the motion of the vehicle of ``px4``, which turns slowly and climbs."""
    t = (us - START_US) / SECOND_US
    return State((3 * t, 2 - t, -0.5 * t), 0.3 * t - 2.8, 0.1 * math.sin(t), 0.2)


def quaternion(yaw: float, pitch: float, roll: float) -> list[float]:
    """Return w, x, y, z of the rotation by yaw, then pitch, then roll (aerospace order), from the textbook."""
    cy, cp, cr = (math.cos(a / 2) for a in (yaw, pitch, roll))
    sy, sp, sr = (math.sin(a / 2) for a in (yaw, pitch, roll))
    return [
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    ]


def wanted(us: int) -> np.ndarray:
    """Return the matrix 4 × 4 from the body (forward, left, up) to the map (east, north, up)."""
    now = state(us)
    (cy, cp, cr), (sy, sp, sr) = (
        [f(a) for a in (now.yaw, now.pitch, now.roll)] for f in (math.cos, math.sin)
    )
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    out = np.eye(4)
    out[:3, :3] = ENU @ about_z @ about_y @ about_x @ FLU
    out[:3, 3] = ENU @ now.position
    return out


def px4(
    seconds: float = 4.0,
    *,
    old: bool = False,
    suffix: str = "",
    unknown_until: float = 0.0,
    reset_at: float | None = None,
    never: bool = False,
) -> bytes:
    """Return a ULog with ``vehicle_attitude`` at 50 Hz and ``vehicle_local_position`` at 10 Hz.

    old            fields of firmware of 2016: ``yaw`` instead of ``heading``, no sample times, no counters
    suffix         after the names of both topics, e.g. ``_groundtruth``
    unknown_until  seconds until which the horizontal position is not valid; *never*: it never is
    reset_at       seconds at which the estimator is reset: the position jumps 100 m north
    """
    out = Builder(start_us=START_US).flags()
    attitude, place = f"vehicle_attitude{suffix}", f"vehicle_local_position{suffix}"
    if old:
        out.format(
            f"{attitude}:uint64_t timestamp;float rollspeed;float pitchspeed;float yawspeed;float[4] q;"
        )
        out.format(
            f"{place}:uint64_t timestamp;float x;float y;float z;float vx;float vy;float vz;float yaw;bool xy_valid;"
            "bool z_valid;"
        )
    else:
        out.format(
            f"{attitude}:uint64_t timestamp;uint64_t timestamp_sample;float[4] q;uint8_t quat_reset_counter;"
        )
        out.format(
            f"{place}:uint64_t timestamp;uint64_t timestamp_sample;float x;float y;float z;float vx;float vy;"
            "float vz;float heading;bool xy_valid;uint8_t xy_reset_counter;uint8_t z_reset_counter;"
        )
    out.subscribe(attitude, 0).subscribe(place, 1)
    for n in range(int(seconds * 50)):
        us = START_US + n * SECOND_US // 50
        now, late = state(us), 4000
        q = quaternion(now.yaw, now.pitch, now.roll)
        if old:
            out.data(0, struct.pack("<Q7f", us, 0, 0, 0, *q))
        else:
            out.data(0, struct.pack("<QQ4fB", us + late, us, *q, 0))
        if n % 5 == 0:
            valid = not never and us >= START_US + unknown_until * SECOND_US
            jumped = reset_at is not None and us >= START_US + reset_at * SECOND_US
            x, y, z = now.position
            x += 100 * jumped
            if old:
                out.data(1, struct.pack("<Q7f??", us, x, y, z, 0, 0, 0, now.yaw, valid, True))
            else:
                row = (us + late, us, x, y, z, 0, 0, 0, now.yaw, valid, jumped, 0)
                out.data(1, struct.pack("<QQ7f?BB", *row))
    return out.bytes()
