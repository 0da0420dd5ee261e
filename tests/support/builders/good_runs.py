"""Good runs of three vehicles, the same for the same seed, and faults that are put into them.

A multicopter (ULog), a rover (ROS bag) and a car (MCAP with ROS 2 messages). No two runs are alike: routes, lengths,
wind, noise, clocks, lost messages and texts vary.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import logreel
from support.samples.ulog.builder import Builder

Array = NDArray[np.float64]
#: Time of the first message of bags and MCAP files in s, and of ULogs since boot.
EPOCH, BOOT = 1_700_000_000.0, 30.0
GRAVITY = 9.81


@dataclass
class Topic:
    """Times of logging in s since the start, how long before that a message was made, and columns of its fields."""

    times: Array
    columns: dict[str, Array]
    age: Array


@dataclass
class Run:
    """One run: its topics, lines of text (time, syslog level, text), parameters, and the seconds it lasts."""

    vehicle: str
    seconds: float
    topics: dict[str, Topic] = field(default_factory=dict)
    text: list[tuple[float, int, str]] = field(default_factory=list)
    parameters: dict[str, int | float] = field(default_factory=dict)


class _Maker:
    """Makes topics of one run with its own clock errors, lost messages and noise."""

    def __init__(self, run: Run, seed: int) -> None:
        self.run, self.random = run, np.random.default_rng(seed)

    def around(self, value: float, share: float = 0.05) -> float:
        return value * float(1 + self.random.uniform(-share, share))

    def noise(self, n: int, size: float) -> Array:
        return self.random.normal(0, size, n)

    def drift(self, times: Array, size: float, seconds: float = 3.0) -> Array:
        """Return a random walk that returns to zero, such as gusts."""
        knots = np.arange(0, self.run.seconds + seconds, seconds)
        return np.interp(times, knots, self.random.normal(0, size, len(knots)))

    def times(self, rate: float) -> Array:
        due = np.arange(self.random.uniform(0, 1 / rate), self.run.seconds, 1 / rate)
        late = np.abs(self.random.normal(0, 0.03 / rate, len(due)))
        kept = self.random.random(len(due)) > 0.002
        return (due + late)[kept]

    def topic(self, name: str, rate: float, make: Callable[[Array], dict[str, Array]]) -> None:
        times = self.times(rate)
        age = 0.004 + np.abs(self.random.normal(0, 0.001, len(times)))
        self.run.topics[name] = Topic(times, make(times), age)


def _between(times: Array, start: float, end: float) -> NDArray[np.bool_]:
    return (times >= start) & (times < end)


def _ramp(times: Array, start: float, end: float, slope: float = 3.0) -> Array:
    """Return 0 outside of the interval, 1 inside, with ramps of *slope* seconds."""
    return np.clip(np.minimum((times - start) / slope, (end - times) / slope), 0, 1)


def multicopter(seed: int) -> Run:
    """Return a flight: standing, armed, take-off, mission, way home, landed."""
    random = np.random.default_rng(10_000 + seed)
    mission = float(random.uniform(26, 34))
    marks = np.cumsum([random.uniform(5, 7), 3.0, 4.0, mission, random.uniform(10, 12), 3.0, 5.0])
    armed, up, task, home, down, off, end = marks.tolist()
    run = Run("multicopter", end)
    m = _Maker(run, seed)
    speed, radius, height = m.around(4.0), m.around(15.0), m.around(20.0)
    turn = speed / radius

    def air(t: Array) -> Array:
        return _ramp(t, up, down, 4.0)

    def angle(t: Array) -> Array:
        return turn * np.clip(t - task, 0, down - task)

    gust = m.drift(np.arange(0, end, 0.05), 0.05)

    def wind(t: Array) -> Array:
        return np.interp(t, np.arange(0, end, 0.05), gust) * air(t)

    def status(t: Array) -> dict[str, Array]:
        mode = np.where(_between(t, task, home), 3, np.where(_between(t, home, down), 5, 0))
        return {
            "nav_state": mode.astype(float),
            "arming_state": np.where(_between(t, armed, off), 2.0, 1.0),
            "failsafe": np.zeros(len(t)),
        }

    def battery(t: Array) -> dict[str, Array]:
        current = 0.6 + 14 * air(t) + m.noise(len(t), 0.3) * air(t)
        volts = m.around(16.5, 0.01) - 0.012 * t - 0.035 * current + m.noise(len(t), 0.02)
        return {"voltage_v": volts, "current_a": current, "remaining": 1 - 0.004 * t}

    def imu(t: Array) -> dict[str, Array]:
        shake = 0.02 + 0.4 * air(t)
        n, moving = len(t), air(t) * _ramp(t, task, down)
        return {
            "gyro_rad[0]": wind(t) + m.noise(n, 0.02) * (0.1 + air(t)),
            "gyro_rad[1]": 0.5 * wind(t) + m.noise(n, 0.02) * (0.1 + air(t)),
            "gyro_rad[2]": turn * moving + m.noise(n, 0.01) * (0.1 + air(t)),
            "accelerometer_m_s2[0]": 0.3 * wind(t) + m.noise(n, 1.0) * shake,
            "accelerometer_m_s2[1]": speed * turn * moving * 0.4 + m.noise(n, 1.0) * shake,
            "accelerometer_m_s2[2]": -GRAVITY + m.noise(n, 1.2) * shake,
        }

    def attitude(t: Array) -> dict[str, Array]:
        roll, yaw = 0.1 * air(t) * _ramp(t, task, down) + 0.3 * wind(t), angle(t)
        return {
            "q[0]": np.cos(roll / 2) * np.cos(yaw / 2),
            "q[1]": np.sin(roll / 2) * np.cos(yaw / 2),
            "q[2]": np.sin(roll / 2) * np.sin(yaw / 2),
            "q[3]": np.cos(roll / 2) * np.sin(yaw / 2),
        }

    def local(t: Array) -> dict[str, Array]:
        going = air(t) * _ramp(t, task, down)
        n, a = len(t), angle(t)
        return {
            "x": radius * np.sin(a) + m.noise(n, 0.02) + wind(t),
            "y": radius * (1 - np.cos(a)) + m.noise(n, 0.02) + wind(t),
            "z": -height * air(t) + m.noise(n, 0.05),
            "vx": speed * going * np.cos(a) + m.noise(n, 0.05),
            "vy": speed * going * np.sin(a) + m.noise(n, 0.05),
            "vz": m.noise(n, 0.05) + 0.5 * wind(t),
        }

    def motors(t: Array) -> dict[str, Array]:
        base = np.where(_between(t, armed, off), 1100.0, 900.0) + 450 * air(t)
        return {f"output[{i}]": base + (30 * m.noise(len(t), 1) + 200 * wind(t)) * air(t) for i in range(4)}

    def position(t: Array) -> dict[str, Array]:
        a = angle(t)
        return {
            "lat": 47.397 + (radius * np.sin(a) + m.noise(len(t), 0.1)) / 111_320,
            "lon": 8.545 + (radius * (1 - np.cos(a)) + m.noise(len(t), 0.1)) / 75_000,
            "alt": 480 + height * air(t) + m.noise(len(t), 0.2),
        }

    m.topic("vehicle_status", 2, status)
    m.topic("vehicle_land_detected", 2, lambda t: {"landed": (air(t) <= 0).astype(float)})
    m.topic("battery_status", 5, battery)
    m.topic("sensor_combined", 50, imu)
    m.topic("vehicle_attitude", 20, attitude)
    m.topic("vehicle_local_position", 10, local)
    m.topic("vehicle_global_position", 5, position)
    m.topic("actuator_outputs", 20, motors)
    run.text = [(armed, 6, "Armed by RC"), (up, 6, "Takeoff detected"), (down, 6, "Landing detected")]
    run.text += [(home, 4, f"Return at {radius:.1f} m")] if m.random.random() < 0.7 else []
    run.parameters = {
        "MAV_TYPE": 2,
        "BAT1_N_CELLS": 4,
        "MC_ROLL_P": 6.5,
        "MPC_XY_VEL_MAX": 12.0,
        "SYS_AUTOSTART": 4001,
    }
    run.parameters["CAL_GYRO0_XOFF"] = float(m.noise(1, 0.01)[0])
    return run


def rover(seed: int) -> Run:
    """Return a drive in a yard: standing, figures of eight on its own, standing at the dock."""
    random = np.random.default_rng(20_000 + seed)
    go, stop, end = np.cumsum([random.uniform(4, 6), random.uniform(40, 50), random.uniform(5, 6)]).tolist()
    run = Run("rover", end)
    m = _Maker(run, seed)
    speed, lap = m.around(1.2), m.around(24.0)

    def going(t: Array) -> Array:
        return _ramp(t, go, stop, 2.0)

    def way(t: Array) -> Array:
        return 2 * np.pi * np.clip(t - go, 0, stop - go) / lap

    def imu(t: Array) -> dict[str, Array]:
        n, g = len(t), going(t)
        return {
            "wx": m.noise(n, 0.01) * (0.2 + g),
            "wy": m.noise(n, 0.01) * (0.2 + g),
            "wz": 0.6 * np.cos(way(t)) * g + m.noise(n, 0.01),
            "ax": 0.3 * np.sin(2 * way(t)) * g + m.noise(n, 0.15) * (0.1 + g),
            "ay": 0.7 * np.cos(way(t)) * g + m.noise(n, 0.15) * (0.1 + g),
            "az": GRAVITY + m.noise(n, 0.2) * (0.1 + g),
        }

    def odometry(t: Array) -> dict[str, Array]:
        n, a, g = len(t), way(t), going(t)
        return {
            "x": 3 * np.sin(a) + m.noise(n, 0.01),
            "y": 1.5 * np.sin(2 * a) + m.noise(n, 0.01),
            "v": speed * g * (1 + 0.1 * np.sin(a)) + m.noise(n, 0.02) * g,
            "w": 0.6 * np.cos(a) * g + m.noise(n, 0.01) * g,
        }

    m.topic("/imu", 50, imu)
    m.topic("/odom", 20, odometry)
    m.topic("/cmd_vel", 10, lambda t: {"v": speed * going(t), "w": 0.6 * np.cos(way(t)) * going(t)})
    m.topic(
        "/battery", 2, lambda t: {"v": m.around(25.2, 0.01) - 0.01 * t - 0.5 * going(t) + m.noise(len(t), 0.03),
                                  "i": 1.0 + 5 * going(t) + m.noise(len(t), 0.1)}
    )  # fmt: skip
    m.topic("/mode", 2, lambda t: {"mode": np.where(t < go, 0.0, np.where(t < stop, 1.0, 2.0))})
    m.topic("/temperature", 1, lambda t: {"cpu": m.around(48) + 0.05 * t + m.noise(len(t), 0.5)})
    run.text = [(0.5, 6, "map loaded in 0.35 s"), (go, 6, "goal accepted"), (stop, 6, "docked")]
    run.text += [
        (go + 5 + k, 4, f"control loop took {m.around(0.06):.3f} s")
        for k in range(int(random.integers(1, 4)))
    ]
    return run


def car(seed: int) -> Run:
    """Return a drive in town: standing, streets with turns and a stop at lights, parked."""
    random = np.random.default_rng(30_000 + seed)
    marks = np.cumsum(
        [random.uniform(4, 6), random.uniform(18, 22), random.uniform(4, 6), random.uniform(18, 22), 5.0]
    )
    go, red, green, stop, end = marks.tolist()
    run = Run("car", end)
    m = _Maker(run, seed)
    cruise, bend = m.around(11.0), m.around(0.15, 0.1)
    grid = np.arange(0, end, 0.05)
    walk = m.drift(grid, 0.4)

    def speed(t: Array) -> Array:
        share = np.maximum(_ramp(t, go, red, 5.0), _ramp(t, green, stop, 5.0))
        return np.maximum(share * (cruise + np.interp(t, grid, walk)), 0)

    def steer(t: Array) -> Array:
        return bend * np.sin(2 * np.pi * (t - go) / 9.0) * (speed(t) > 0.5)

    def imu(t: Array) -> dict[str, Array]:
        n, v = len(t), speed(t)
        ahead = np.gradient(speed(grid), grid)
        shake = 0.05 + 0.03 * v
        return {
            "wx": m.noise(n, 0.01), "wy": m.noise(n, 0.01), "wz": v * steer(t) / 2.7 + m.noise(n, 0.01),
            "ax": np.interp(t, grid, ahead) + m.noise(n, 1) * shake,
            "ay": v * v * steer(t) / 2.7 + m.noise(n, 1) * shake,
            "az": GRAVITY + m.noise(n, 1) * shake,
        }  # fmt: skip

    def wheels(t: Array) -> dict[str, Array]:
        names = ("front_left", "front_right", "rear_left", "rear_right")
        return {name: speed(t) / 0.31 + m.noise(len(t), 0.05) * (speed(t) > 0) for name in names}

    def engine(t: Array) -> dict[str, Array]:
        gear = np.ceil(np.maximum(speed(t), 0.1) / 4)
        rpm = 800 + np.maximum(speed(t), 0) / gear * 500 + m.noise(len(t), 15)
        return {
            "rpm": rpm,
            "coolant": m.around(88, 0.02) + m.noise(len(t), 0.2),
            "volts": 14.1 + m.noise(len(t), 0.04),
        }

    m.topic("/imu", 50, imu)
    m.topic("/wheels", 20, wheels)
    m.topic(
        "/steering",
        20,
        lambda t: {"angle": steer(t) + m.noise(len(t), 0.002), "torque": 4 * steer(t) + m.noise(len(t), 0.1)},
    )
    m.topic("/engine", 10, engine)
    m.topic(
        "/gear", 5, lambda t: {"mode": np.where(speed(t) < 0.1, 0.0, np.ceil(np.maximum(speed(t), 0.1) / 4))}
    )
    m.topic(
        "/fix",
        5,
        lambda t: {
            "x": np.cumsum(speed(t)) / 5 + m.noise(len(t), 0.2),
            "y": m.noise(len(t), 0.2) + 3 * np.sin(t / 9),
        },
    )
    run.text = [
        (1.0, 6, f"logger started, {int(random.integers(10, 90))} GB free"),
        (go, 6, "drive begins"),
        (stop, 6, "parked"),
    ]
    return run


VEHICLES: dict[str, Callable[[int], Run]] = {"multicopter": multicopter, "rover": rover, "car": car}


# ------------------------------------------------------------------------------------------------------ files

_ULOG = {
    "vehicle_status": ("uint8_t nav_state;uint8_t arming_state;bool failsafe;uint8_t[5] _padding0;", "BB?"),
    "vehicle_land_detected": ("bool landed;uint8_t[7] _padding0;", "?"),
    "battery_status": ("float voltage_v;float current_a;float remaining;uint8_t[4] _padding0;", "3f"),
    "sensor_combined": ("uint64_t timestamp_sample;float[3] gyro_rad;float[3] accelerometer_m_s2;", "Q6f"),
    "vehicle_attitude": ("float[4] q;", "4f"),
    "vehicle_local_position": ("float x;float y;float z;float vx;float vy;float vz;", "6f"),
    "vehicle_global_position": ("double lat;double lon;float alt;uint8_t[4] _padding0;", "2df"),
    "actuator_outputs": ("float[4] output;", "4f"),
}


def content(run: Run) -> bytes:
    """Return the file of a run."""
    return (
        _ulog(run)
        if run.vehicle == "multicopter"
        else _ros(run, ".bag" if run.vehicle == "rover" else ".mcap")
    )


def _rows(run: Run) -> list[tuple[float, str, int]]:
    """Return time, topic and row of all messages, in the order of logging."""
    rows = [(t, name, i) for name, topic in run.topics.items() for i, t in enumerate(topic.times.tolist())]
    stepped = any(bool((np.diff(topic.times) < 0).any()) for topic in run.topics.values())
    return rows if stepped else sorted(rows)


def _ulog(run: Run) -> bytes:
    out = Builder(start_us=int(BOOT * 1e6)).flags().info("sys_name", "PX4").info("ver_hw", "TEST")
    for name, value in run.parameters.items():
        out.parameter(f"{'float' if isinstance(value, float) else 'int32_t'} {name}", value)
    numbers = {name: i for i, name in enumerate(_ULOG)}
    for name, (fields, _) in _ULOG.items():
        out.format(f"{name}:uint64_t timestamp;{fields}").subscribe(name, numbers[name])
    tables = _tables(run)
    lines = sorted(run.text)
    for t, name, i in _rows(run):
        now = int((BOOT + t) * 1e6)
        while lines and lines[0][0] <= t:
            out.text(lines[0][1], int((BOOT + lines[0][0]) * 1e6), lines[0][2])
            lines.pop(0)
        values: list[Any] = tables[name][i]
        if name == "sensor_combined":
            values = [int(now - run.topics[name].age[i] * 1e6), *values]
        out.data(numbers[name], struct.pack(f"<Q{_ULOG[name][1]}", now, *values))
    return out.bytes()


_HEADER1 = "uint32 seq\ntime stamp\nstring frame_id\n"
_TEXT1 = "byte level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\nstring[] topics\n"
#: Levels of rosgraph_msgs/Log and rcl_interfaces/Log by syslog level.
_LEVELS1, _LEVELS2 = {6: 2, 4: 4, 3: 8}, {6: 20, 4: 30, 3: 40}


def _ros(run: Run, suffix: str) -> bytes:
    language = "ros1msg" if suffix == ".bag" else "ros2msg"
    out = io.BytesIO()
    with logreel.create(out, format=suffix.strip(".").replace("bag", "rosbag")) as w:
        channels = {}
        for name, topic in run.topics.items():
            types = "".join(f"{'uint8' if c == 'mode' else 'float64'} {c}\n" for c in topic.columns)
            stamp = "time stamp\n" if suffix == ".bag" else "builtin_interfaces/Time stamp\n"
            text = f"{stamp}{types}"
            if suffix != ".bag":
                text += "=" * 80 + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
            label = name.strip("/").title()
            channels[name] = w.add_channel(
                name, logreel.Schema(f"yard/{'msg/' * (suffix != '.bag')}{label}", language, text)
            )
        tables, packed = _tables(run), {}
        for name, topic in run.topics.items():
            form = "<II" + "".join("B" if c == "mode" else "d" for c in topic.columns)
            packed[name] = _packer(form, b"" if suffix == ".bag" else b"\0\1\0\0")
        rows: list[tuple[float, str, int]] = [*_rows(run)]
        written: list[tuple[int, Any, Any]] = []
        for t, name, i in rows:
            now = _ns(t)
            made = now - int(run.topics[name].age[i] * 1e9)
            written.append((now, channels[name], packed[name](made // 10**9, made % 10**9, *tables[name][i])))
        text_channel = w.add_channel("/rosout", _log_schema(suffix))
        for t, level, text in run.text:
            written.append((_ns(t), text_channel, _log_line(suffix, _ns(t), level, text)))
        if all(bool((np.diff(topic.times) >= 0).all()) for topic in run.topics.values()):
            written.sort(key=lambda row: row[0])
        for now, channel, message in written:
            w.write(channel, now, message)
    return out.getvalue()


def _packer(form: str, head: bytes) -> Callable[..., bytes]:
    return lambda *values: head + struct.pack(form, *values)


def _tables(run: Run) -> dict[str, list[list[Any]]]:
    """Return the rows of each topic; states are integers."""
    whole = {"mode", "nav_state", "arming_state", "failsafe", "landed"}
    return {
        name: [
            list(row)
            for row in zip(
                *((v.astype(int) if c in whole else v).tolist() for c, v in topic.columns.items()),
                strict=True,
            )
        ]
        for name, topic in run.topics.items()
    }


def _ns(t: float) -> int:
    return int(EPOCH) * 10**9 + round(t * 1e9)


def _log_schema(suffix: str) -> Any:
    if suffix == ".bag":
        text = f"byte DEBUG=1\nbyte INFO=2\nbyte WARN=4\nbyte ERROR=8\nbyte FATAL=16\nHeader header\n{_TEXT1}"
        return logreel.Schema(
            "rosgraph_msgs/Log", "ros1msg", f"{text}{'=' * 80}\nMSG: std_msgs/Header\n{_HEADER1}"
        )
    text = (
        "byte DEBUG=10\nbyte INFO=20\nbyte WARN=30\nbyte ERROR=40\nbyte FATAL=50\nbuiltin_interfaces/Time stamp\n"
        "uint8 level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\n"
    )
    text += "=" * 80 + "\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
    return logreel.Schema("rcl_interfaces/msg/Log", "ros2msg", text)


def _log_line(suffix: str, now: int, level: int, text: str) -> dict[str, Any]:
    common = {"name": "/main", "msg": text, "file": "", "function": "", "line": 0}
    if suffix == ".bag":
        header = {"seq": 0, "stamp": now, "frame_id": ""}
        return {"header": header, "level": _LEVELS1[level], **common, "topics": []}
    return {"stamp": now, "level": _LEVELS2[level], **common}


# ------------------------------------------------------------------------------------------------------ faults


@dataclass(frozen=True)
class _Parts:
    """What faults touch in a vehicle: topics and columns. *moving*: a signal of the motion, *turn*: a gyro axis."""

    imu: str
    turn: str
    push: tuple[str, str]
    place: tuple[str, str]
    volts: tuple[str, str]
    mode: tuple[str, str]
    steady: str
    #: Clean signals: columns of a topic that tell how it moves.
    moving: tuple[str, str]


PARTS = {
    "multicopter": _Parts(
        "sensor_combined", "gyro_rad[0]", ("accelerometer_m_s2[1]", "accelerometer_m_s2[2]"),
        ("vehicle_local_position", "x"), ("battery_status", "voltage_v"), ("vehicle_status", "nav_state"),
        "vehicle_attitude", ("vehicle_local_position", "vx"),
    ),
    "rover": _Parts(
        "/imu", "wx", ("ay", "az"), ("/odom", "x"), ("/battery", "v"), ("/mode", "mode"), "/odom", ("/odom", "v")
    ),
    "car": _Parts(
        "/imu", "wx", ("ay", "az"), ("/fix", "x"), ("/engine", "volts"), ("/gear", "mode"), "/wheels",
        ("/wheels", "rear_left"),
    ),
}  # fmt: skip
Fault = Callable[[Run, _Parts, float, float], bool]


def _kept(topic: Topic, rows: NDArray[np.bool_]) -> None:
    topic.times, topic.age = topic.times[rows], topic.age[rows]
    topic.columns = {name: values[rows] for name, values in topic.columns.items()}


def _changed(
    run: Run, topic: str, column: str, at: float, change: Callable[[Array, Array], Array], end: float = 1e9
) -> bool:
    """Replace the values of a column from *at* on by ``change(values, seconds since at)``."""
    own = run.topics[topic]
    rows = _between(own.times, at, end)
    values = own.columns[column].copy()
    values[rows] = change(values[rows], own.times[rows] - at)
    own.columns[column] = values
    return True


def _dropped(run: Run, parts: _Parts, at: float, size: float) -> bool:
    own = run.topics[parts.steady]
    _kept(own, (own.times < at) | (own.times >= at + size))
    return True


def _slower(run: Run, parts: _Parts, at: float, size: float) -> bool:
    own = run.topics[parts.imu]
    number = np.floor(np.arange(len(own.times)) * size)
    _kept(own, (own.times < at) | (np.diff(number, prepend=-1) > 0))
    return True


def _stuck(run: Run, parts: _Parts, at: float, size: float) -> bool:
    for column in run.topics[parts.imu].columns:
        _changed(run, parts.imu, column, at, lambda v, t: np.full(len(v), v[0]) if len(v) else v, at + size)
    return True


def _late(run: Run, parts: _Parts, at: float, size: float) -> bool:
    own = run.topics[parts.imu]
    late = own.times >= at
    own.times, own.age = own.times + size * late, own.age + size * late
    _kept(own, own.times < run.seconds)
    return True


def _flip(run: Run, parts: _Parts, at: float, size: float) -> bool:
    return _changed(
        run, *parts.mode, at, lambda v, t: np.full(len(v), {1.0: 4.0, 2.0: 5.0, 3.0: 14.0}[size]), at + 3
    )


def _error_text(run: Run, parts: _Parts, at: float, size: float) -> bool:
    lines = {
        1.0: (4, "timeout of node 12 after 0.25 s"),
        2.0: (3, "sensor 0 failed: timeout"),
        3.0: (3, "ESC 2 offline"),
    }
    run.text.append((at, *lines[size]))
    return True


def _parameter(run: Run, parts: _Parts, at: float, size: float) -> bool:
    if not run.parameters:
        return False
    run.parameters["MC_ROLL_P"] *= size
    return True


def _clock(run: Run, parts: _Parts, at: float, size: float) -> bool:
    for own in run.topics.values():
        own.times = own.times + size * (own.times >= at)
    run.text = [(t + size * (t >= at), level, text) for t, level, text in run.text]
    return True


def _swapped(run: Run, parts: _Parts, at: float, size: float) -> bool:
    """Swap two axes: 1: acceleration to the side and roll rate, 2: ahead and to the side, 3: to the side and down."""
    own, (side, down) = run.topics[parts.imu], parts.push
    ahead = side.replace("[1]", "[0]").replace("ay", "ax")
    pair = {1.0: (side, parts.turn), 2.0: (ahead, side), 3.0: (side, down)}[size]
    rows = own.times >= at
    a, b = (own.columns[name] for name in pair)
    own.columns[pair[0]], own.columns[pair[1]] = np.where(rows, b, a), np.where(rows, a, b)
    return True


def _jittery(run: Run, parts: _Parts, at: float, size: float) -> bool:
    own = run.topics[parts.imu]
    late = np.random.default_rng(1).uniform(0, size / 50, len(own.times)) * (own.times >= at)
    own.times = np.sort(own.times + late)
    return True


def _waves(hertz: float) -> Callable[[Array], Array]:
    return lambda t: np.sin(2 * np.pi * hertz * t)


def _sag(share: float) -> Callable[[Array, Array], Array]:
    return lambda v, t: v * (1 - share * np.exp(-t))


def _rough(size: float) -> Callable[[Array, Array], Array]:
    return lambda v, t: v + size * np.random.default_rng(2).normal(size=len(v))


def _with(
    target: Callable[[_Parts], tuple[str, str]], change: Callable[[float], Callable[[Array, Array], Array]]
) -> Fault:
    return lambda run, parts, at, size: _changed(run, *target(parts), at, change(size))


def _turn(parts: _Parts) -> tuple[str, str]:
    return parts.imu, parts.turn


def _vertical(parts: _Parts) -> tuple[str, str]:
    return parts.imu, parts.push[1]


#: Faults by name: what is done from a time on, and three sizes of it, small to large, with their unit.
FAULTS: dict[str, tuple[Fault, tuple[float, float, float], str]] = {
    "dropped topic": (_dropped, (5.0, 10.0, 1e9), "s of silence, the last: to the end"),
    "lower rate": (_slower, (0.9, 0.7, 0.5), "of the rate"),
    "stuck sensor": (_stuck, (2.0, 5.0, 1e9), "s, the last: to the end"),
    "bias": (_with(_turn, lambda s: lambda v, t: v + s), (0.02, 0.1, 0.5), "rad/s"),
    "delay": (_late, (0.02, 0.1, 0.5), "s"),
    "jump": (_with(lambda p: p.place, lambda s: lambda v, t: v + s), (1.0, 10.0, 100.0), "m"),
    "mode flip": (_flip, (1.0, 2.0, 3.0), "to the mode 4, 5, 14"),
    "brown-out": (_with(lambda p: p.volts, _sag), (0.02, 0.1, 0.3), "of the voltage"),
    "text": (_error_text, (1.0, 2.0, 3.0), "a new warning, two errors"),
    "parameter": (_parameter, (1.01, 1.2, 2.0), "times the value"),
    "gap": (lambda run, parts, at, size: _dropped(run, parts, at, size), (0.1, 0.5, 2.0), "s"),
    "clock forward": (_clock, (0.2, 2.0, 20.0), "s"),
    "clock back": (_clock, (-0.2, -2.0, -20.0), "s"),
    "swapped axes": (_swapped, (1.0, 2.0, 3.0), "side and roll rate, ahead and side, side and down"),
    "saturation": (
        _with(lambda p: p.moving, lambda s: lambda v, t: np.clip(v, -s, s)), (3.0, 1.0, 0.1), "m/s or rad/s at most",
    ),
    "oscillation": (_with(_turn, lambda s: lambda v, t: v + s * _waves(3.0)(t)), (0.02, 0.1, 0.5), "rad/s at 3 Hz"),
    "noise": (_with(_vertical, _rough), (0.2, 1.0, 5.0), "m/s²"),
    "no number": (
        _with(lambda p: p.place, lambda s: lambda v, t: np.where(np.arange(len(v)) < s, np.nan, v)),
        (1.0, 10.0, 100.0), "messages with NaN",
    ),
    "drift": (_with(_vertical, lambda s: lambda v, t: v + s * t), (0.02, 0.1, 0.5), "m/s² each second"),
    "jitter": (_jittery, (0.2, 1.0, 3.0), "periods"),
}  # fmt: skip


def faulty(vehicle: str, seed: int, fault: str, size: int) -> tuple[Run, float] | None:
    """Return a run with a fault of a size (0, 1, 2), and its begin in s; None if the vehicle cannot have it.

    The begin is the first message with another content: a speed that is limited is none before the vehicle moves. None
    also if there is none, since the run is a good one then.
    """
    run, good = (VEHICLES[vehicle](seed) for _ in range(2))
    at = 0.45 * run.seconds
    change, sizes, _ = FAULTS[fault]
    if not change(run, PARTS[vehicle], at, sizes[size]):
        return None
    if fault == "parameter":
        return run, 0.0
    if run.text != good.text or any(
        not np.array_equal(run.topics[name].times, topic.times) for name, topic in good.topics.items()
    ):
        return run, at
    changed = [
        float(topic.times[np.argmax(other)])
        for name, topic in good.topics.items()
        for column, values in topic.columns.items()
        if (other := run.topics[name].columns[column] != values).any()
    ]
    return (run, min(changed)) if changed else None


def start_of(run: Run) -> int:
    """Return the time of second 0 of a run, ns of the clock of its log."""
    return int(BOOT * 1e9) if run.vehicle == "multicopter" else int(EPOCH) * 10**9
