"""Sample of a small robot that walks in a circle, with ROS 1, ROS 2, JSON and protobuf messages."""

from __future__ import annotations

import functools
import json
import math
import struct
from collections.abc import Callable

from logreel.schemas.ros1msg import full_text
from support.samples.mcap.builder import START, Builder, string

#: Where the circle is, and its radius in metres.
LATITUDE, LONGITUDE, ALTITUDE, RADIUS = 50.3636, 7.5587, 67.5, 8.0
METRES = 111_320.0
#: Seconds for one round.
LAP = 20.0

_STATUS = {
    "type": "object",
    "properties": {
        "mode": {"type": "string"},
        "battery": {"type": "number"},
        "steps": {"type": "integer"},
        "motors": {"type": "array", "items": {"type": "number"}},
        "pose": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
    },
}
_STRING2 = "string data\n"
_FOOT = (
    "std_msgs/Header header\nuint8 leg\nbool down\nfloat64 force\ngeometry_msgs/Vector3[] points\n"
    + "=" * 80
    + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    + "=" * 80
    + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
    + "=" * 80
    + "\nMSG: geometry_msgs/Vector3\nfloat64 x\nfloat64 y\nfloat64 z\n"
)


def fill(out: Builder, seconds: float) -> Builder:
    """Define channels, and write the messages of *seconds*."""
    out.schema(1, "sensor_msgs/Imu", "ros1msg", full_text("sensor_msgs/Imu").encode())
    out.schema(2, "sensor_msgs/NavSatFix", "ros1msg", full_text("sensor_msgs/NavSatFix").encode())
    out.schema(3, "robot.Status", "jsonschema", json.dumps(_STATUS).encode())
    out.schema(4, "robot.Motor", "protobuf", _descriptors())
    out.schema(5, "std_msgs/msg/String", "ros2msg", _STRING2.encode())
    out.schema(6, "robot/msg/Foot", "ros2msg", _FOOT.encode())
    out.channel(1, 1, "/imu", "ros1", {"callerid": "/robot"}).channel(2, 2, "/fix", "ros1")
    out.channel(3, 3, "/status", "json").channel(4, 4, "/motor", "protobuf")
    out.channel(5, 5, "/chatter", "cdr").channel(6, 6, "/foot", "cdr")
    makers: tuple[tuple[int, float, Callable[[int, float], bytes]], ...] = (
        (1, 100.0, _imu),
        (2, 2.0, _fix),
        (3, 5.0, _status),
        (4, 50.0, _motor),
        (5, 1.0, _chatter),
        (6, 20.0, _foot),
    )
    rows = [
        (START + round(k / rate * 1e9) + number, number, k, k / rate, make)
        for number, rate, make in makers
        for k in range(int(seconds * rate))
    ]
    for time, number, k, at, make in sorted(rows, key=lambda row: row[0]):
        out.message(number, time, make(k, at), k + 1, time - 250_000)
    out.metadata("robot", {"name": "walker", "serial": "W-7"})
    return out.attachment("calibration.yaml", "application/yaml", b"imu: {gain: 1.02}\n")


def _stamp(at: float) -> int:
    return START + round(at * 1e9)


def _header(k: int, at: float, frame: str) -> bytes:
    return struct.pack("<III", k, *divmod(_stamp(at), 10**9)) + string(frame)


def _imu(k: int, at: float) -> bytes:
    turn = 2 * math.pi * at / LAP
    quaternion = (0.0, 0.0, math.sin(turn / 2), math.cos(turn / 2))
    covariance = (0.01, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.0, 0.01)
    rates = (0.02 * math.sin(9 * at), 0.02 * math.cos(9 * at), 2 * math.pi / LAP)
    bumps = (0.3 * math.sin(11 * at), 0.2 * math.cos(11 * at), 9.81 + 0.4 * math.sin(22 * at))
    numbers = (*quaternion, *covariance, *rates, *covariance, *bumps, *covariance)
    return _header(k, at, "imu") + struct.pack("<37d", *numbers)


def _place(at: float) -> tuple[float, float]:
    turn = 2 * math.pi * at / LAP
    return RADIUS * math.cos(turn), RADIUS * math.sin(turn)


def _fix(k: int, at: float) -> bytes:
    x, y = _place(at)
    longitude = LONGITUDE + x / METRES / math.cos(math.radians(LATITUDE))
    numbers = (LATITUDE + y / METRES, longitude, ALTITUDE, *(0.5, 0, 0, 0, 0.5, 0, 0, 0, 1.0))
    return _header(k, at, "gps") + struct.pack("<bH12dB", 0, 1, *numbers, 2)


def _status(k: int, at: float) -> bytes:
    x, y = _place(at)
    status = {
        "mode": "walk" if k % 20 else "stand",
        "battery": round(0.98 - at / 5000, 5),
        "steps": k * 2,
        "motors": [round(1.5 + 0.2 * math.sin(at + leg), 4) for leg in range(4)],
        "pose": {"x": round(x, 4), "y": round(y, 4)},
    }
    return json.dumps(status).encode()


def _motor(k: int, at: float) -> bytes:
    # Fields of protobuf: 1 uint32 leg, 2 double angle, 3 float torque, 4 string state.
    leg, state = k % 4, b"swing" if k % 8 < 4 else b"stance"
    angle, torque = 0.4 * math.sin(6 * at + leg), 12.0 + 3 * math.cos(6 * at + leg)
    raw = b"\x08" + bytes([leg]) + b"\x11" + struct.pack("<d", angle) + b"\x1d" + struct.pack("<f", torque)
    return raw + b"\x22" + bytes([len(state)]) + state


def _descriptors() -> bytes:
    from google.protobuf import descriptor_pb2

    made = descriptor_pb2.FileDescriptorSet()
    file = made.file.add(name="robot.proto", package="robot", syntax="proto3")
    message = file.message_type.add(name="Motor")
    for number, (name, kind) in enumerate((("leg", 13), ("angle", 1), ("torque", 2), ("state", 9)), 1):
        message.field.add(name=name, number=number, type=kind, label=1)
    return bytes(made.SerializeToString())


def _cdr(*parts: bytes | tuple[str, tuple[float | int, ...]]) -> bytes:
    """Return little-endian CDR of texts and numbers, aligned to their size after the four bytes of the header."""
    out = bytearray(b"\x00\x01\x00\x00")
    for part in parts:
        if isinstance(part, bytes):
            out += bytes(-len(out) % 4) + struct.pack("<I", len(part) + 1) + part + b"\0"
            continue
        for number in part[1]:
            width = struct.calcsize(part[0])
            out += bytes(-(len(out) - 4) % width) + struct.pack("<" + part[0], number)
    return bytes(out)


def _chatter(k: int, at: float) -> bytes:
    return _cdr(f"round {at / LAP:.2f}".encode())


def _foot(k: int, at: float) -> bytes:
    points = tuple(round(math.sin(at + i), 6) for i in range(3 * (k % 3)))
    return _cdr(
        ("I", divmod(_stamp(at), 10**9)),
        b"foot",
        ("B", (k % 4, k % 8 < 4)),
        ("d", (80 * abs(math.sin(6 * at)),)),
        ("I", (k % 3,)),
        ("d", points),
    )


def walk(seconds: float = 10.0, builder: Builder | None = None) -> bytes:
    """Return a valid file of a robot that walks in a circle, with messages in four encodings."""
    return _walk(seconds) if builder is None else fill(builder, seconds).bytes()


@functools.lru_cache(16)
def _walk(seconds: float) -> bytes:
    return fill(Builder(), seconds).bytes()
