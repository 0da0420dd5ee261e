"""Flights of a plane and drives of a rover: circles around a home, in modes of a mission."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from support.samples.ulog.builder import Builder

#: Start of the data in us, seconds of it, and messages a second.
START, SECONDS, RATE = 30_000_000, 90, 10
#: Seconds after the start: armed, moving, mission, way home, standing, disarmed.
ARMED, MOVING, MISSION, HOME, STANDING, DISARMED = 4.0, 8.0, 20.0, 65.0, 80.0, 84.0
#: Home in degrees and metres, and metres of one degree of latitude.
LATITUDE, LONGITUDE, HEIGHT, DEGREE = 47.397, 8.545, 480.0, 111_320.0
#: Numbers of modes in PX4.
MANUAL, AUTO_MISSION, AUTO_RETURN = 0, 3, 5

_TOPICS = {
    "vehicle_status": "uint64_t timestamp;uint8_t nav_state;uint8_t arming_state;uint8_t system_type;bool failsafe;"
    "uint8_t[4] _padding0;",
    "vehicle_land_detected": "uint64_t timestamp;bool landed;uint8_t[7] _padding0;",
    "battery_status": "uint64_t timestamp;float voltage_v;float current_a;float remaining;uint8_t cell_count;"
    "uint8_t[3] _padding0;",
    "vehicle_attitude": "uint64_t timestamp;float[4] q;",
    "vehicle_global_position": "uint64_t timestamp;double lat;double lon;float alt;uint8_t[4] _padding0;",
    "vehicle_local_position": "uint64_t timestamp;float x;float y;float z;float vx;float vy;float vz;",
    "airspeed_validated": "uint64_t timestamp;float true_airspeed_m_s;uint8_t[4] _padding0;",
}


@dataclass(frozen=True)
class _Vehicle:
    """What moves: its MAV_TYPE, metres of the circle, m/s, metres above home, and volts of the battery."""

    kind: int
    radius: float
    speed: float
    height: float
    volts: float
    flies: bool


_PLANE, _ROVER = _Vehicle(1, 120.0, 17.0, 60.0, 16.4, True), _Vehicle(10, 15.0, 2.5, 0.0, 12.4, False)


def plane() -> bytes:
    """Return a ULog of a fixed wing that takes off, flies circles and lands."""
    return _drive(_PLANE)


def rover() -> bytes:
    """Return a ULog of a ground rover that drives circles."""
    return _drive(_ROVER)


def _drive(vehicle: _Vehicle) -> bytes:
    out = Builder(start_us=START).flags().info("sys_name", "PX4").info("ver_hw", "TEST")
    topics = [name for name in _TOPICS if vehicle.flies or name != "airspeed_validated"]
    for name in topics:
        out.format(f"{name}:{_TOPICS[name]}")
    out.parameter("int32_t MAV_TYPE", vehicle.kind)
    for number, name in enumerate(topics):
        out.subscribe(name, number)
    way = 0.0
    for tick in range(SECONDS * RATE):
        t, now = tick / RATE, START + tick * 1_000_000 // RATE
        # Between standing and moving it takes five seconds.
        share = min(max((t - MOVING) / 5, 0.0), max((STANDING - t) / 5, 0.0), 1.0)
        speed = vehicle.speed * share * (1 + 0.05 * math.sin(t))
        way += speed / RATE
        angle, height = way / vehicle.radius, vehicle.height * share
        north, east = vehicle.radius * math.sin(angle), vehicle.radius * (1 - math.cos(angle))
        yaw = angle % (2 * math.pi)
        roll = 0.35 * share if vehicle.flies else 0.01 * math.sin(7 * t) * share
        pitch = 0.03 * math.sin(2 * t) * share
        if tick % 5 == 0:
            mode = AUTO_MISSION if MISSION <= t < HOME else AUTO_RETURN if HOME <= t < STANDING else MANUAL
            armed = 2 if ARMED <= t < DISARMED else 1
            out.data(0, struct.pack("<QBBB?4x", now, mode, armed, vehicle.kind, False))
            out.data(1, struct.pack("<Q?7x", now, not (vehicle.flies and share > 0)))
        amperes = 0.5 + 12 * share
        volts = vehicle.volts - 0.01 * t - 0.03 * amperes
        out.data(2, struct.pack("<QfffB3x", now, volts, amperes, 1 - 0.004 * t, 4 if vehicle.flies else 3))
        out.data(3, struct.pack("<Q4f", now, *_quaternion(roll, pitch, yaw)))
        # Estimates move by centimetres where the vehicle stands.
        latitude = LATITUDE + (north + 0.02 * math.sin(3.7 * t)) / DEGREE
        longitude = LONGITUDE + (east + 0.02 * math.sin(2.9 * t)) / DEGREE / math.cos(math.radians(LATITUDE))
        out.data(4, struct.pack("<Qddf4x", now, latitude, longitude, HEIGHT + height))
        velocity = speed * math.cos(yaw), speed * math.sin(yaw), 0.0
        out.data(5, struct.pack("<Q6f", now, north, east, -height, *velocity))
        if vehicle.flies:
            out.data(6, struct.pack("<Qf4x", now, speed + 1.5 * math.sin(angle)))
    return out.bytes()


def _quaternion(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Return w, x, y, z of a rotation by yaw, then pitch, then roll."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )
