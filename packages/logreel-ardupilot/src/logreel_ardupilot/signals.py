"""What a flight is judged by, from the messages of DataFlash logs and from those of MAVLink: ``Signals``.

Sources: ArduPilot, the documentation of its log messages, AP_Logger.h (LogErrorCode); MAVLink, common.xml.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import Channel, DefinitionError, Log, members
from logreel_ardupilot.definitions import TYPES, Definition
from logreel_ardupilot.meaning import MODES, SUBSYSTEMS, modes_of

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Span = tuple[int, int]
#: What codes of errors mean, by subsystem; code 0 says that an error is over.
_ANY = {1: "failed", 4: "unhealthy"}
CODES: Mapping[int, Mapping[int, str]] = {
    **{subsystem: {1: "triggered"} for subsystem in (5, 6, 7, 8, 17, 20, 23, 26, 27, 29, 31)},
    2: {2: "frames are late"},
    3: {1: "failed to initialise", 2: "failed to calibrate", 4: "unhealthy"},
    9: {
        1: "altitude fence",
        2: "circle fence",
        3: "altitude and circle fence",
        4: "polygon fence",
        8: "lower altitude fence",
    },
    11: {2: "glitch"},
    12: {1: "crash into the ground", 2: "loss of control"},
    13: {2: "abandoned"},
    15: {2: "not deployed, too low", 3: "not deployed, landed"},
    16: {2: "variances too high"},
    18: {2: "glitch", 3: "bad depth"},
    21: {2: "no terrain data"},
    22: {
        2: "no destination",
        3: "RTL restarted",
        4: "no circle",
        5: "destination outside the fence",
        6: "RTL without rangefinder",
    },
    25: {1: "thrust lost"},
    30: {1: "internal error"},
}
#: Subsystems whose errors are failsafes, and the one whose codes are modes.
FAILSAFES = {5, 6, 7, 8, 9, 17, 20, 23, 26, 27, 29, 31}
_MODE, _LANE = 10, 24
#: Vehicles by type in HEARTBEAT; the autopilot ArduPilot there, and its flag of armed motors.
_VEHICLES = {
    **dict.fromkeys((2, 3, 4, 13, 14, 15, 29, 35), "ArduCopter"),
    **dict.fromkeys((1, 16, 17, 19, 20, 21, 22, 23, 24, 25, 28), "ArduPlane"),
    **dict.fromkeys((10, 11), "ArduRover"),
    12: "ArduSub",
    5: "AntennaTracker",
    7: "Blimp",
}
_ARDUPILOT, _ARMED = 3, 128
#: Fix of GPS from which positions count.
FIX_3D = 3


@dataclass(frozen=True, slots=True)
class Event:
    """An error or failsafe, or that one is over (*code* 0)."""

    time: int
    subsystem: int
    code: int
    text: str

    @property
    def is_failsafe(self) -> bool:
        """Whether it is a failsafe."""
        return self.subsystem in FAILSAFES


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one instance.

    topic   channel that has them; *fields*: those that are shown as evidence
    name    for people
    time    int64[n] ns, ascending
    values  float64[n] by name, in the units of the documentation: V, A, mAh, m, m/s, m/s/s, degrees
    """

    topic: str
    name: str
    time: I64
    values: Mapping[str, F64]
    fields: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> F64:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def inside(self, spans: Iterable[Span] | None) -> Measured:
        """Return those in the spans; all for None."""
        if spans is None:
            return self
        kept = np.zeros(len(self.time), np.bool_)
        for start, end in spans:
            kept |= (self.time >= start) & (self.time <= end)
        values = {name: column[kept] for name, column in self.values.items()}
        return Measured(self.topic, self.name, self.time[kept], values, self.fields)


@dataclass(slots=True)
class Signals:
    """What was measured and reported in a flight.

    vehicle, firmware  as in the metadata of DataFlash logs; empty if unknown
    modes      time and name of each new mode
    armed      intervals with armed motors; None if nothing says so
    flying     intervals in the air, and what says so
    batteries  ``volts``, and ``amps``, ``used`` (mAh), ``left`` (%) where they are measured
    receivers  ``fix``, ``satellites``, ``hdop``, ``lat``, ``lng``, ``height``, ``speed``
    vibration  ``x``, ``y``, ``z`` in m/s/s, ``clips`` so far
    filters    test ratios of innovations: ``velocity``, ``position``, ``height``, ``compass``, ``airspeed``
    lanes      time and number of each other primary estimator
    heights    ``height`` above home
    load       ``load`` of the processor, %
    """

    vehicle: str = ""
    firmware: str = ""
    modes: list[tuple[int, str]] = field(default_factory=list)
    armed: list[Span] | None = None
    flying: list[Span] = field(default_factory=list)
    flying_by: str = ""
    events: list[Event] = field(default_factory=list)
    batteries: list[Measured] = field(default_factory=list)
    receivers: list[Measured] = field(default_factory=list)
    vibration: list[Measured] = field(default_factory=list)
    filters: list[Measured] = field(default_factory=list)
    lanes: list[tuple[int, int]] = field(default_factory=list)
    heights: list[Measured] = field(default_factory=list)
    load: list[Measured] = field(default_factory=list)


_SIGNALS: WeakKeyDictionary[Log, tuple[int, Signals]] = WeakKeyDictionary()


def signals(log: Log) -> Signals:
    """Return the Signals of a log; read once."""
    count, known = _SIGNALS.get(log, (-1, None))
    if known is None or count != log.message_count:
        known = _of_mavlink(log) if log.format == "tlog" else _of_dataflash(log)
        _SIGNALS[log] = log.message_count, known
    return known


def _channel(log: Log, topic: str, *fields: str) -> Channel | None:
    """Return a channel that has messages and all *fields*."""
    ch = log.channels.get(topic)
    try:
        return ch if ch is not None and len(ch) and set(fields) <= members(ch).keys() else None
    except DefinitionError:
        return None


def _read(ch: Channel, names: Mapping[str, str], scales: Mapping[str, float]) -> tuple[I64, dict[str, F64]]:
    """Return times, ascending, and the columns that the channel has, by new name, scaled."""
    time = np.asarray(ch.times)
    order = np.argsort(time, kind="stable")
    known = members(ch)
    columns = {
        new: np.asarray(ch[name])[order].astype(np.float64) * scales.get(name, 1.0)
        for new, name in names.items()
        if name in known
    }
    return time[order], columns


def _instances(
    ch: Channel, names: Mapping[str, str], instance: Iterable[str], scales: Mapping[str, float] | None = None
) -> Iterator[Measured]:
    """Yield what a channel measured, for each number in the first of the fields *instance* that it has."""
    scales = _scales(ch) if scales is None else scales
    time, columns = _read(ch, names, scales)
    fields = tuple(name for name in names.values() if name in members(ch))
    number = next((name for name in instance if name in members(ch)), None)
    if number is None:
        yield Measured(ch.topic, ch.topic, time, columns, fields)
        return
    numbers = np.asarray(ch[number])[np.argsort(np.asarray(ch.times), kind="stable")]
    for each in np.unique(numbers).tolist():
        rows = numbers == each
        name = f"{ch.topic}[{each}]"
        yield Measured(ch.topic, name, time[rows], {key: v[rows] for key, v in columns.items()}, fields)


def _scales(ch: Channel) -> dict[str, float]:
    """Return the factors that letters of types stand for, by column."""
    columns = Definition.of_schema(ch.schema).columns or ()
    # Logs before 2016 have hundredths of volts and amperes in whole numbers.
    old = {c.name: 0.01 for c in columns if c.name in ("Volt", "Curr") and c.letter in "hH"}
    return {c.name: TYPES[c.letter][2] for c in columns} | old


def _spans(changes: list[tuple[int, bool]], end: int) -> list[Span]:
    """Return the intervals in which a state is true, from its values over time."""
    spans, since = list[Span](), None
    for time, value in changes:
        if value and since is None:
            since = time
        elif not value and since is not None:
            spans.append((since, time))
            since = None
    return [*spans, (since, end)] if since is not None else spans


def _changes(time: I64, values: NDArray[Any]) -> list[tuple[int, Any]]:
    """Return the values of a state where they change."""
    if not len(time):
        return []
    rows = np.concatenate([[0], np.flatnonzero(values[1:] != values[:-1]) + 1])
    return list(zip(time[rows].tolist(), values[rows].tolist(), strict=True))


# ------------------------------------------------------------------------------------------------ DataFlash


def _of_dataflash(log: Log) -> Signals:
    made = Signals(str(log.metadata.get("vehicle", "")), str(log.metadata.get("firmware", "")))
    end = log.end or 0
    if (ch := _channel(log, "MODE", "Mode")) is not None:
        names = modes_of(log)
        pairs = zip(np.asarray(ch.times).tolist(), np.asarray(ch["Mode"]).tolist(), strict=True)
        made.modes = [(time, names.get(number, f"mode {number}")) for time, number in pairs]
    events = []
    if (ch := _channel(log, "EV", "Id")) is not None:
        events = list(zip(np.asarray(ch.times).tolist(), np.asarray(ch["Id"]).tolist(), strict=True))
    states = _channel(log, "STAT", "isFlying", "Armed")
    made.armed = _armed(log, events, states, end)
    in_air = [(time, number == 28) for time, number in events if number in (18, 28)]
    if states is not None:
        made.flying, made.flying_by = _spans(_state(states, "isFlying"), end), "STAT.isFlying"
    elif in_air:
        made.flying, made.flying_by = _spans(in_air, end), "events NOT_LANDED and LAND_COMPLETE"
    if (ch := _channel(log, "ERR", "Subsys", "ECode")) is not None:
        columns = (np.asarray(ch.times), np.asarray(ch["Subsys"]), np.asarray(ch["ECode"]))
        for time, subsystem, code in zip(*(column.tolist() for column in columns), strict=True):
            made.events.append(Event(time, subsystem, code, error_text(subsystem, code, modes_of(log))))
            if subsystem == _LANE:
                made.lanes.append((time, code))
    for topic in ("BAT", "BAT2", "CURR", "CUR2"):
        if (ch := _channel(log, topic, "Volt")) is not None:
            names_of = {"volts": "Volt", "amps": "Curr", "used": "CurrTot", "left": "RemPct"}
            made.batteries += _instances(ch, names_of, ("Inst", "Instance", "I"))
    for topic in ("GPS", "GPS2", "GPSB"):
        if (ch := _channel(log, topic, "Status", "Lat", "Lng")) is not None:
            names_of = {"fix": "Status", "satellites": "NSats", "hdop": "HDop", "lat": "Lat", "lng": "Lng"}
            names_of |= {"height": "Alt", "speed": "Spd"}
            made.receivers += _instances(ch, names_of, ("I",))
    if (ch := _channel(log, "VIBE", "VibeX", "VibeY", "VibeZ")) is not None:
        names_of = {"x": "VibeX", "y": "VibeY", "z": "VibeZ", "clips": "Clip"}
        parts = list(_instances(ch, names_of, ("IMU",)))
        # Older logs have the clips of three accelerometers in each message.
        if "Clip0" in members(ch):
            columns_of = [
                np.asarray(ch[f"Clip{n}"], np.float64) for n in range(3) if f"Clip{n}" in members(ch)
            ]
            part = parts[0]
            parts = [
                Measured(
                    part.topic,
                    part.name,
                    part.time,
                    {**part.values, "clips": np.sum(columns_of, axis=0)},
                    part.fields,
                )
            ]
        made.vibration += parts
    for topic in ("XKF4", "NKF4", "NKF9", "EKF4"):
        if (ch := _channel(log, topic, "SV", "SP", "SH", "SM")) is not None:
            names_of = {
                "velocity": "SV",
                "position": "SP",
                "height": "SH",
                "compass": "SM",
                "airspeed": "SVT",
            }
            made.filters += _instances(ch, names_of, ("C",))
            if not made.lanes and "PI" in members(ch):
                rows = np.asarray(ch["C"]) == 0 if "C" in members(ch) else np.ones(len(ch), np.bool_)
                made.lanes += _changes(np.asarray(ch.times)[rows], np.asarray(ch["PI"])[rows])[1:]
    for topic, name in (("POS", "RelHomeAlt"), ("CTUN", "Alt")):
        if not made.heights and (ch := _channel(log, topic, name)) is not None:
            made.heights += _instances(ch, {"height": name}, ())
    if (ch := _channel(log, "PM", "Load")) is not None:
        made.load += _instances(ch, {"load": "Load"}, (), {"Load": 0.1})
    return made


def _state(ch: Channel, name: str) -> list[tuple[int, bool]]:
    return [(time, value != 0) for time, value in _changes(np.asarray(ch.times), np.asarray(ch[name]))]


def _armed(log: Log, events: list[tuple[int, int]], states: Channel | None, end: int) -> list[Span] | None:
    """Return the intervals with armed motors, by the best message that tells."""
    if (ch := _channel(log, "ARM", "ArmState")) is not None:
        changes = _state(ch, "ArmState")
    elif told := [(time, number == 10) for time, number in events if number in (10, 11)]:
        changes = told
    elif states is not None:
        changes = _state(states, "Armed")
    else:
        return None
    # A log whose first word is that motors are disarmed began with armed ones.
    if changes and not changes[0][1] and log.start is not None and states is None:
        changes.insert(0, (log.start, True))
    return _spans(changes, end)


def error_text(subsystem: int, code: int, modes: Mapping[int, str]) -> str:
    """Return an error for people, such as ``FAILSAFE_BATT: triggered``."""
    name = SUBSYSTEMS.get(subsystem, f"subsystem {subsystem}")
    if subsystem == _LANE:
        return f"{name}: estimator {code}"
    if code == 0:
        return f"{name}: over"
    if subsystem == _MODE:
        return f"{name}: {modes.get(code, f'mode {code}')} refused"
    return f"{name}: {CODES.get(subsystem, _ANY).get(code, f'error {code}')}"


# ------------------------------------------------------------------------------------------------ MAVLink


def autopilot(log: Log) -> str:
    """Return ``system/component`` of the autopilot of a telemetry log: ArduPilot with the most heartbeats; or empty."""
    counts = {}
    for topic, ch in log.channels.items():
        sender, _, name = topic.rpartition("/")
        if name == "HEARTBEAT" and len(ch):
            counts[sender] = int(np.count_nonzero(np.asarray(ch["autopilot"]) == _ARDUPILOT))
    best = max(counts, key=lambda sender: counts[sender], default="")
    return best if counts.get(best) else ""


def _of_mavlink(log: Log) -> Signals:
    made, sender, end = Signals(), autopilot(log), log.end or 0
    if not sender:
        return made

    def channel(name: str, *fields: str) -> Channel | None:
        return _channel(log, f"{sender}/{name}", *fields)

    beats = channel("HEARTBEAT", "autopilot", "type", "custom_mode", "base_mode")
    if beats is not None:
        kept = np.asarray(beats["autopilot"]) == _ARDUPILOT
        time, mode, flags = (
            column[kept]
            for column in (
                np.asarray(beats.times),
                np.asarray(beats["custom_mode"]),
                np.asarray(beats["base_mode"]),
            )
        )
        made.vehicle = _VEHICLES.get(int(np.asarray(beats["type"])[kept][0]), "")
        names = MODES.get(made.vehicle, {})
        made.modes = [(at, names.get(number, f"mode {number}")) for at, number in _changes(time, mode)]
        made.armed = _spans(_changes(time, flags & _ARMED != 0), end)
    for line in log.text:
        if line.source == sender and not made.firmware and line.text.startswith(("Ardu", "Rover")):
            made.firmware = line.text
    state = channel("EXTENDED_SYS_STATE", "landed_state")
    if state is not None:
        changes = [
            (at, value in (2, 3, 4))
            for at, value in _changes(np.asarray(state.times), np.asarray(state["landed_state"]))
        ]
        made.flying, made.flying_by = _spans(changes, end), "EXTENDED_SYS_STATE.landed_state"
    wanted: list[tuple[list[Measured], str, dict[str, str], dict[str, float]]] = [
        (
            made.batteries,
            "SYS_STATUS",
            {"volts": "voltage_battery", "amps": "current_battery", "left": "battery_remaining"},
            {"voltage_battery": 1e-3, "current_battery": 0.01},
        ),
        (
            made.receivers,
            "GPS_RAW_INT",
            {"fix": "fix_type", "satellites": "satellites_visible", "hdop": "eph", "lat": "lat", "lng": "lon"}
            | {"height": "alt", "speed": "vel"},
            {"eph": 0.01, "lat": 1e-7, "lon": 1e-7, "alt": 1e-3, "vel": 0.01},
        ),
        (
            made.filters,
            "EKF_STATUS_REPORT",
            {"velocity": "velocity_variance", "position": "pos_horiz_variance", "height": "pos_vert_variance"}
            | {"compass": "compass_variance", "airspeed": "airspeed_variance"},
            {},
        ),
        (made.heights, "GLOBAL_POSITION_INT", {"height": "relative_alt"}, {"relative_alt": 1e-3}),
        (made.load, "SYS_STATUS", {"load": "load"}, {"load": 0.1}),
    ]
    for parts, name, columns, scales in wanted:
        if (ch := channel(name, next(iter(columns.values())))) is not None:
            parts += _instances(ch, columns, (), scales)
    if (ch := channel("VIBRATION", "vibration_x", "vibration_y", "vibration_z", "clipping_0")) is not None:
        time, values = _read(ch, {"x": "vibration_x", "y": "vibration_y", "z": "vibration_z"}, {})
        order = np.argsort(np.asarray(ch.times), kind="stable")
        clips = [np.asarray(ch[f"clipping_{n}"], np.float64)[order] for n in range(3)]
        values["clips"] = np.sum(clips, axis=0)
        fields = ("vibration_x", "vibration_y", "vibration_z")
        made.vibration.append(Measured(ch.topic, ch.topic, time, values, fields))
    return made
