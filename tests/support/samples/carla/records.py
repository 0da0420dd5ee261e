"""Encode records of CARLA recordings, as each release of the simulator writes them.

Shares no code with the reader, so that tests can compare the two.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Vector = Sequence[float]
#: Types of attributes by name; all others are strings.
KINDS = {
    "number_of_wheels": 1,
    "generation": 1,
    "sticky_control": 0,
    "is_invincible": 0,
    "speed": 2,
    "mass": 2,
    "color": 4,
}


@dataclass(frozen=True, slots=True)
class Release:
    """Packets and layouts of one release.

    version       header version
    attribute     number of the first type of attributes
    wide          True: vectors of float64, as on the UE5 line
    wheel_floats  number of floats of a wheel in PhysicsControl
    sensor        type of sensors in EventAdd
    sign          type of traffic signs in EventAdd
    ids           kinds of packets that differ between releases
    always        packets written in each frame, also without records
    additional    packets written in each frame if additional data is recorded
    """

    version: int = 1
    attribute: int = 0
    wide: bool = False
    wheel_floats: int = 12
    sensor: int = 5
    sign: int = 4
    ids: Mapping[str, int] | None = None
    always: tuple[str, ...] = ()
    additional: tuple[str, ...] = ("BoundingBox", "PlatformTime")


EVENTS = ("EventAdd", "EventDel", "EventParent", "Collision", "Position", "State")
MOVES = (*EVENTS, "AnimVehicle", "AnimWalker")
LIGHTS = (*MOVES, "VehicleLight")
VISUAL = ("VisualTime", *LIGHTS)
WHEELS = (*VISUAL, "AnimVehicleWheels", "AnimBiker")
DOORS = (*WHEELS, "VehicleDoor")
BONES = ("BoundingBox", "PlatformTime", "WalkerBones")
WHEELS_FIRST = {"AnimVehicleWheels": 21, "AnimBiker": 22}
DOOR_FIRST = {"VehicleDoor": 21, "AnimVehicleWheels": 22, "AnimBiker": 23}
DOOR_LAST = {**WHEELS_FIRST, "VehicleDoor": 23}

RELEASES = {
    "0.9.4": Release(sensor=0, sign=0, always=EVENTS, additional=()),
    "0.9.6": Release(sensor=0, sign=0, always=MOVES, additional=()),
    "0.9.10": Release(sensor=0, wheel_floats=9, always=LIGHTS),
    "0.9.12": Release(always=LIGHTS),
    "0.9.14": Release(always=VISUAL, additional=BONES),
    "0.9.15": Release(ids=WHEELS_FIRST, always=WHEELS, additional=BONES),
    "2023": Release(ids=DOOR_FIRST, always=DOORS, additional=BONES),
    "2024": Release(attribute=1, ids=DOOR_FIRST, always=DOORS, additional=BONES),
    "0.9.16": Release(2, 1, ids=DOOR_LAST, always=DOORS, additional=BONES),
    "2026": Release(2, 1, ids={**DOOR_LAST, "Weather": 24}, always=DOORS, additional=BONES),
    "0.10.0": Release(wide=True, ids=DOOR_FIRST, always=DOORS, additional=BONES),
    "dreyevr-0.9.13": Release(ids={"Weather": 18}, always=LIGHTS),
    "dreyevr-0.9.14": Release(ids={"Weather": 21}, always=VISUAL, additional=BONES),
}

#: Packets in their order within a frame, with their kind in most releases.
IDS = {
    "VisualTime": 20,
    "EventAdd": 2,
    "EventDel": 3,
    "EventParent": 4,
    "Collision": 5,
    "VehicleDoor": 23,
    "Position": 6,
    "State": 7,
    "AnimVehicle": 8,
    "AnimWalker": 9,
    "VehicleLight": 10,
    "SceneLight": 11,
    "AnimVehicleWheels": 21,
    "AnimBiker": 22,
    "Weather": 24,
    "Kinematics": 12,
    "BoundingBox": 13,
    "TriggerVolume": 17,
    "PlatformTime": 14,
    "PhysicsControl": 15,
    "TrafficLightTime": 16,
    "WalkerBones": 19,
}
#: Packets with one record and no count.
SINGLE = {"VisualTime", "PlatformTime"}


def text(value: str | bytes) -> bytes:
    """Return a string with its length (u16)."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<H", len(data)) + data


def packet(number: int, payload: bytes, size: int | None = None) -> bytes:
    """Return a packet; *size*: stated size, if wrong."""
    return struct.pack("<BI", number, len(payload) if size is None else size) + payload


def counted(records: Sequence[bytes], total: int | None = None) -> bytes:
    """Return records with their count (u16); *total*: stated count, if wrong."""
    return struct.pack("<H", len(records) if total is None else total) + b"".join(records)


def header(version: int, date: int, town: str, magic: str = "CARLA_RECORDER") -> bytes:
    """Return the header of a recording."""
    return struct.pack("<H", version) + text(magic) + struct.pack("<q", date) + text(town)


def vector(values: Vector, wide: bool) -> bytes:
    """Return three numbers: float64 if *wide*, else float32."""
    return struct.pack("<3d" if wide else "<3f", *values)


def attributes(values: Mapping[str, str], first: int) -> bytes:
    """Return types, names and values of attributes; *first*: number of the first type."""
    out = struct.pack("<H", len(values))
    for name, value in values.items():
        out += struct.pack("<B", KINDS.get(name, 3) + first) + text(name) + text(value)
    return out


def floats(*values: float) -> bytes:
    """Return float32 numbers."""
    return struct.pack(f"<{len(values)}f", *values)


def listed(rows: Iterable[Vector]) -> bytes:
    """Return rows of float32 numbers with their count (u32)."""
    rows = list(rows)
    return struct.pack("<I", len(rows)) + b"".join(floats(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class Physics:
    """Physics of a vehicle; the defaults are those of a sedan.

    motor   max_rpm, moi, damping at full throttle, and without throttle with the clutch engaged and disengaged
    rest    clutch strength, final ratio, mass in kg, drag coefficient
    wheels  tire friction, damping rate, maximum steering angle, radius, maximum torques of brake and handbrake,
            three stiffness values (omitted in old releases), position
    """

    motor: Vector = (5800.0, 1.0, 0.15, 2.0, 0.35)
    autobox: bool = True
    rest: Vector = (10.0, 4.0, 2404.0, 0.3)
    center: Vector = (0.6, 0.0, -0.25)
    torque: Sequence[Vector] = ((0.0, 400.0), (1890.75, 500.0), (5729.5, 400.0))
    gears: Sequence[Vector] = ((3.59, 0.5, 0.65), (2.19, 0.5, 0.65), (1.41, 0.5, 0.65))
    steering: Sequence[Vector] = ((0.0, 1.0), (20.0, 0.9), (120.0, 0.7))
    wheels: Sequence[Vector] = tuple(
        (3.5, 0.25, steer, 35.5, 1500.0, brake, 3.0, 20.0, 1000.0, x, y, 35.0)
        for steer, brake, x in ((70.0, 0.0, 145.0), (0.0, 3000.0, -145.0))
        for y in (-80.0, 80.0)
    )

    def record(self, actor: int, wheel_floats: int = 12) -> bytes:
        """Return the record; *wheel_floats* 9: as in old releases."""
        wheels = [w if wheel_floats == 12 else (*w[:6], *w[9:]) for w in self.wheels]
        return b"".join(
            (
                struct.pack("<I5f?", actor, *self.motor, self.autobox),
                floats(*self.rest, *self.center),
                listed(self.torque),
                listed(self.gears),
                listed(self.steering),
                listed(wheels),
            )
        )
