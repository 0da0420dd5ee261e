"""ROS messages of a small robot that drives a figure of eight in a room."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from support.samples.grey_jpeg import jpeg
from support.samples.rosbag.old import Message, Topic, stamp

START_NS = 1_747_470_140 * 10**9 + 250_000_000
#: The figure of eight: half its length and width in metres, seconds for one lap.
LONG, WIDE, LAP = 3.0, 1.5, 24.0
#: The room: half its length and width in metres; what the laser sees.
ROOM = np.array([5.0, 3.5])
BEAMS = 360
#: Where the room is, in degrees, and metres per degree there.
LATITUDE, LONGITUDE, ALTITUDE = 50.3636, 7.5587, 67.5
METRES = 111_320.0
WHEELS = ("wheel_left_joint", "wheel_right_joint", "caster_joint")
WHEEL_RADIUS, TRACK = 0.033, 0.16
LINES = (
    (0.02, 2, "/amcl", "Received a 60 X 44 map @ 0.200 m/pix"),
    (0.05, 2, "/move_base", "odom received!"),
    (0.30, 4, "/move_base", "Control loop missed its desired rate of 20.0000Hz"),
    (0.55, 1, "/camera", "exposure 1/60 s"),
    (0.80, 8, "/gps", "no fix: 3 satellites — waiting"),
    (0.95, 2, "/move_base", "Goal reached"),
)

_CALLER = (("callerid", b"/robot"), ("latching", b"0"))
IMU = Topic("/imu", "sensor_msgs/Imu", more=_CALLER)
ODOM = Topic("/odom", "nav_msgs/Odometry", more=_CALLER)
SCAN = Topic("/scan", "sensor_msgs/LaserScan", more=_CALLER)
FIX = Topic("/gps/fix", "sensor_msgs/NavSatFix", more=_CALLER)
TF = Topic("/tf", "tf2_msgs/TFMessage", more=_CALLER)
JOINTS = Topic("/joint_states", "sensor_msgs/JointState", more=_CALLER)
LOG = Topic("/rosout", "rosgraph_msgs/Log", more=_CALLER)
CAMERA = Topic("/camera/compressed", "sensor_msgs/CompressedImage", more=_CALLER)
COMMAND = Topic("/cmd_vel", "geometry_msgs/Twist", more=_CALLER)
MAP = Topic("/map", "nav_msgs/OccupancyGrid", more=(("callerid", b"/map_server"), ("latching", b"1")))


def messages(seconds: float) -> Iterator[Message]:
    """Yield all messages of a drive by time; simultaneous ones in the order of a launch."""
    makers = (
        (IMU, 100.0, 0.0, _imu),
        (ODOM, 50.0, 0.001, _odom),
        (TF, 50.0, 0.0012, _tf),
        (JOINTS, 30.0, 0.002, _joints),
        (COMMAND, 20.0, 0.003, _command),
        (SCAN, 10.0, 0.017, _scan),
        (CAMERA, 5.0, 0.04, _camera),
        (FIX, 1.0, 0.11, _fix),
    )
    found: list[tuple[int, Message]] = []
    for topic, rate, delay, make in makers:
        for seq in range(int(seconds * rate)):
            t = seq / rate
            found.append(_sent(topic, t, delay, make(seq, t)))
    found.append(_sent(MAP, 0.0, 0.0005, _map()))
    for seq, (share, level, name, text) in enumerate(LINES):
        found.append(_sent(LOG, share * seconds, 0.0008, _log(seq, share * seconds, level, name, text)))
    for _, message in sorted(found, key=itemgetter(0)):
        yield message


def _sent(topic: Topic, t: float, delay: float, payload: bytes) -> tuple[int, Message]:
    time_ns = _ns(t + delay)
    return time_ns, (topic, time_ns, payload)


def _ns(t: float) -> int:
    return START_NS + round(t * 1e9)


def _text(text: str) -> bytes:
    return struct.pack("<I", len(text.encode())) + text.encode()


def _header(seq: int, t: float, frame: str) -> bytes:
    return struct.pack("<I", seq) + stamp(_ns(t)) + _text(frame)


def _pose(t: float) -> tuple[float, float, float, float, float]:
    """Return position in m, heading in rad, speed in m/s and turning rate in rad/s."""
    w = 2 * math.pi / LAP
    x, y = LONG * math.sin(w * t), WIDE * math.sin(2 * w * t)
    vx, vy = LONG * w * math.cos(w * t), 2 * WIDE * w * math.cos(2 * w * t)
    ax, ay = -LONG * w * w * math.sin(w * t), -4 * WIDE * w * w * math.sin(2 * w * t)
    speed = math.hypot(vx, vy)
    return x, y, math.atan2(vy, vx), speed, (vx * ay - vy * ax) / speed**2


def _noise(seq: int, kind: int, size: float) -> float:
    """Return a pseudo-random value, the same in every run."""
    return size * math.sin(12.9898 * seq + 78.233 * kind + 4.1 * math.sin(1.7 * seq + kind))


def _turn(heading: float) -> tuple[float, float, float, float]:
    return 0.0, 0.0, math.sin(heading / 2), math.cos(heading / 2)


def _diagonal(n: int, *values: float) -> list[float]:
    return [values[i] if i == j else 0.0 for i in range(n) for j in range(n)]


def _imu(seq: int, t: float) -> bytes:
    _, _, heading, speed, rate = _pose(t)
    accel = _noise(seq, 1, 0.05), speed * rate + _noise(seq, 2, 0.05), 9.81 + _noise(seq, 3, 0.08)
    turning = _noise(seq, 4, 0.002), _noise(seq, 5, 0.002), rate + _noise(seq, 6, 0.004)
    numbers = (*_turn(heading), *_diagonal(3, 0.0025, 0.0025, 0.0025), *turning)
    numbers += (*_diagonal(3, 4e-6, 4e-6, 4e-6), *accel, *_diagonal(3, 0.01, 0.01, 0.01))
    return _header(seq, t, "imu_link") + struct.pack("<37d", *numbers)


def _odom(seq: int, t: float) -> bytes:
    x, y, heading, speed, rate = _pose(t)
    pose = (x, y, 0.0, *_turn(heading), *_diagonal(6, 1e-3, 1e-3, 1e6, 1e6, 1e6, 1e-2))
    twist = (speed, 0.0, 0.0, 0.0, 0.0, rate, *_diagonal(6, 1e-3, 1e-3, 1e6, 1e6, 1e6, 1e-2))
    return _header(seq, t, "odom") + _text("base_footprint") + struct.pack("<85d", *pose, *twist)


def _tf(seq: int, t: float) -> bytes:
    x, y, heading, _, _ = _pose(t)
    moves = [("odom", "base_footprint", x, y, heading)]
    if seq % 5 == 0:
        moves.append(("map", "odom", 0.002 * seq / 50, -0.001 * seq / 50, 0.0))
    parts = [
        _header(0, t, frame) + _text(child) + struct.pack("<7d", tx, ty, 0.0, *_turn(angle))
        for frame, child, tx, ty, angle in moves
    ]
    return struct.pack("<I", len(parts)) + b"".join(parts)


def _joints(seq: int, t: float) -> bytes:
    _, _, heading, speed, rate = _pose(t)
    wheels = [(speed + side * rate * TRACK / 2) / WHEEL_RADIUS for side in (-1, 1)]
    position = [0.26 * t / WHEEL_RADIUS, 0.27 * t / WHEEL_RADIUS, heading]
    names = struct.pack("<I", len(WHEELS)) + b"".join(map(_text, WHEELS))
    # The driver knows no efforts, so that array is empty.
    return b"".join(
        (
            _header(seq, t, ""),
            names,
            struct.pack("<I3d", 3, *position),
            struct.pack("<I3d", 3, *wheels, rate),
            struct.pack("<I", 0),
        )
    )


def _command(seq: int, t: float) -> bytes:
    _, _, _, speed, rate = _pose(t)
    return struct.pack("<6d", speed, 0.0, 0.0, 0.0, 0.0, rate)


def _ranges(t: float) -> NDArray[np.float32]:
    """Return float32[BEAMS], distances to the walls in m, NaN or infinity without an echo."""
    x, y, heading, _, _ = _pose(t)
    angle = heading + np.arange(BEAMS) * (2 * np.pi / BEAMS)
    way = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    with np.errstate(divide="ignore"):
        walls = (np.sign(way) * ROOM - np.array([x, y])) / way
    metres = walls.min(axis=1) + 0.01 * np.sin(40 * angle)
    metres[metres > 7.0] = np.inf
    metres[:: BEAMS // 4] = np.nan
    found: NDArray[np.float32] = metres.astype("<f4")
    return found


def _scan(seq: int, t: float) -> bytes:
    step = 2 * math.pi / BEAMS
    settings = (0.0, 2 * math.pi - step, step, 0.1 / BEAMS, 0.1, 0.12, 7.0)
    ranges = _ranges(t)
    light = (4000 / (1 + np.nan_to_num(ranges, nan=0.0, posinf=9.0))).astype("<f4")
    return b"".join(
        (
            _header(seq, t, "base_scan"),
            struct.pack("<7f", *settings),
            *(struct.pack("<I", BEAMS) + values.tobytes() for values in (ranges, light)),
        )
    )


def _camera(seq: int, t: float) -> bytes:
    image = jpeg(_view(t))
    return _header(seq, t, "camera_link") + _text("jpeg") + struct.pack("<I", len(image)) + image


def _view(t: float) -> NDArray[np.uint8]:
    """Return uint8[96, 128], an image of the wall ahead, brighter if near, above a tiled floor."""
    near = np.nan_to_num(_ranges(t), nan=1.0, posinf=7.0)
    ahead = 1 / np.maximum(0.3, near[np.linspace(-30, 29, 16).astype(int)])
    high = np.clip(12 * ahead, 1, 5).astype(int)
    grid = np.full((12, 16), 40.0)
    for column, half in enumerate(high):
        grid[6 - half : 6 + half, column] = 60 + 180 * min(1.0, ahead[column])
        grid[6 + half :, column] = 90 + 30 * ((np.arange(6 - half) + column + int(4 * t)) % 2)
    return np.repeat(np.repeat(grid, 8, axis=0), 8, axis=1).astype(np.uint8)


def _fix(seq: int, t: float) -> bytes:
    x, y, _, _, _ = _pose(t)
    place = LATITUDE + y / METRES, LONGITUDE + x / METRES / math.cos(math.radians(LATITUDE)), ALTITUDE
    # Status 0 is a fix, service 1 is GPS, covariance of kind 2 is a diagonal.
    numbers = struct.pack("<bH12d", 0, 1, *place, *_diagonal(3, 0.25, 0.25, 1.0))
    return _header(seq, t, "gps") + numbers + b"\x02"


def _map() -> bytes:
    grid = np.full((44, 60), -1, np.int8)
    grid[4:-4, 4:-4] = 0
    grid[[4, -5], 4:-4] = 100
    grid[4:-4, [4, -5]] = 100
    info = stamp(_ns(0)) + struct.pack("<fII7d", 0.2, 60, 44, -6.0, -4.4, 0.0, 0.0, 0.0, 0.0, 1.0)
    return _header(0, 0.0, "map") + info + struct.pack("<I", grid.size) + grid.tobytes()


def _log(seq: int, t: float, level: int, name: str, text: str) -> bytes:
    topics = ("/rosout", "/odom")
    return b"".join(
        (
            _header(seq, t, ""),
            struct.pack("<b", level),
            *(_text(part) for part in (name, text, "node.cpp", "spin")),
            struct.pack("<II", 100 + seq, len(topics)),
            *map(_text, topics),
        )
    )
