"""What messages of ArduPilot mean: positions, parameters, lines of text, flight modes, events and errors, UTC.

Sources: ArduPilot, the numbers of modes of each vehicle (mode.h), AP_Logger.h (LogEvent, LogErrorSubsystem).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import Change, LensFinder, Log, Parameter, Position, Scalar, Scaled, TextLine

Rows = Sequence[NDArray[np.void]]


def _numbered(text: str) -> dict[int, str]:
    pairs = (entry.split(":") for entry in text.split())
    return {int(number): name for number, name in pairs}


_COPTER = """0:STABILIZE 1:ACRO 2:ALT_HOLD 3:AUTO 4:GUIDED 5:LOITER 6:RTL 7:CIRCLE 8:POSITION 9:LAND 10:OF_LOITER
11:DRIFT 13:SPORT 14:FLIP 15:AUTOTUNE 16:POSHOLD 17:BRAKE 18:THROW 19:AVOID_ADSB 20:GUIDED_NOGPS
21:SMART_RTL 22:FLOWHOLD 23:FOLLOW 24:ZIGZAG 25:SYSTEMID 26:AUTOROTATE 27:AUTO_RTL 28:TURTLE
29:RATE_ACRO"""
_PLANE = """0:MANUAL 1:CIRCLE 2:STABILIZE 3:TRAINING 4:ACRO 5:FBWA 6:FBWB 7:CRUISE 8:AUTOTUNE 10:AUTO 11:RTL 12:LOITER
13:TAKEOFF 14:AVOID_ADSB 15:GUIDED 16:INITIALISING 17:QSTABILIZE 18:QHOVER 19:QLOITER 20:QLAND 21:QRTL 22:QAUTOTUNE
23:QACRO 24:THERMAL 25:LOITER_ALT_QLAND 26:AUTOLAND"""
_ROVER = """0:MANUAL 1:ACRO 2:LEARNING 3:STEERING 4:HOLD 5:LOITER 6:FOLLOW 7:SIMPLE 8:DOCK 9:CIRCLE 10:AUTO 11:RTL
12:SMART_RTL 15:GUIDED 16:INITIALISING"""
_SUB = """0:STABILIZE 1:ACRO 2:ALT_HOLD 3:AUTO 4:GUIDED 7:CIRCLE 9:SURFACE 16:POSHOLD 19:MANUAL 20:MOTOR_DETECT
21:SURFTRAK"""
_TRACKER = "0:MANUAL 1:STOP 2:SCAN 3:SERVO_TEST 4:GUIDED 10:AUTO 16:INITIALISING"
_BLIMP = "0:LAND 1:MANUAL 2:VELOCITY 3:LOITER 4:RTL 5:AUTO 6:HOLD"
#: Names of modes by vehicle, as the first line of text names it.
MODES: Mapping[str, Mapping[int, str]] = {
    name: _numbered(text)
    for name, text in {
        "ArduCopter": _COPTER,
        "ArduPlane": _PLANE,
        "ArduRover": _ROVER,
        "ArduSub": _SUB,
        "AntennaTracker": _TRACKER,
        "Blimp": _BLIMP,
    }.items()
}
#: Names of vehicles in the first lines of text logs.
_VEHICLE = re.compile(rb"\b(ArduCopter|ArduPlane|ArduRover|Rover|ArduSub|AntennaTracker|Blimp)\b")
#: Events (EV.Id) and subsystems of errors (ERR.Subsys).
EVENTS = _numbered(
    """10:ARMED 11:DISARMED 15:AUTO_ARMED 17:LAND_COMPLETE_MAYBE 18:LAND_COMPLETE 19:LOST_GPS 21:FLIP_START 22:FLIP_END
25:SET_HOME 26:SET_SIMPLE_ON 27:SET_SIMPLE_OFF 28:NOT_LANDED 29:SET_SUPERSIMPLE_ON 30:AUTOTUNE_INITIALISED
31:AUTOTUNE_OFF 32:AUTOTUNE_RESTART 33:AUTOTUNE_SUCCESS 34:AUTOTUNE_FAILED 35:AUTOTUNE_REACHED_LIMIT
36:AUTOTUNE_PILOT_TESTING 37:AUTOTUNE_SAVEDGAINS 38:SAVE_TRIM 39:SAVEWP_ADD_WP 41:FENCE_ENABLE 42:FENCE_DISABLE
43:ACRO_TRAINER_OFF 44:ACRO_TRAINER_LEVELING 45:ACRO_TRAINER_LIMITED 46:GRIPPER_GRAB 47:GRIPPER_RELEASE
49:PARACHUTE_DISABLED 50:PARACHUTE_ENABLED 51:PARACHUTE_RELEASED 52:LANDING_GEAR_DEPLOYED 53:LANDING_GEAR_RETRACTED
54:MOTORS_EMERGENCY_STOPPED 55:MOTORS_EMERGENCY_STOP_CLEARED 56:MOTORS_INTERLOCK_DISABLED 57:MOTORS_INTERLOCK_ENABLED
60:EKF_ALT_RESET 61:LAND_CANCELLED_BY_PILOT 62:EKF_YAW_RESET 67:GPS_PRIMARY_CHANGED 163:SURFACED 164:NOT_SURFACED
165:BOTTOMED 166:NOT_BOTTOMED"""
)
SUBSYSTEMS = _numbered(
    """1:MAIN 2:RADIO 3:COMPASS 4:OPTFLOW 5:FAILSAFE_RADIO 6:FAILSAFE_BATT 7:FAILSAFE_GPS 8:FAILSAFE_GCS
9:FAILSAFE_FENCE 10:FLIGHT_MODE 11:GPS 12:CRASH_CHECK 13:FLIP 14:AUTOTUNE 15:PARACHUTES 16:EKFCHECK 17:FAILSAFE_EKFINAV
18:BARO 19:CPU 20:FAILSAFE_ADSB 21:TERRAIN 22:NAVIGATION 23:FAILSAFE_TERRAIN 24:EKF_PRIMARY 25:THRUST_LOSS_CHECK
26:FAILSAFE_SENSORS 27:FAILSAFE_LEAK 28:PILOT_INPUT 29:FAILSAFE_VIBE 30:INTERNAL_ERROR 31:FAILSAFE_DEADRECKON"""
)


def find_position(nodes: Mapping[str, Any]) -> Position | None:
    """Return the lens of latitude and longitude in 1e-7 degrees, with the altitude as float, if there is one."""
    integer = Scalar("int32")
    if "TimeUS" not in nodes or not nodes.get("Lat") == nodes.get("Lng") == integer:
        return None
    altitude = nodes.get("Alt")
    # Stored as float in m, or in cm.
    factors = {Scalar("float32"): 1.0, Scalar("float64"): 1.0, integer: 0.01}
    height = Scaled("Alt", factors[altitude]) if altitude in factors else None
    return Position(Scaled("Lat", 1e-7), Scaled("Lng", 1e-7), height)


POSITION = LensFinder("position", find_position, by_fields=True)


def _text(raw: bytes) -> str:
    return raw.split(b"\0", 1)[0].decode("utf-8", "replace")


def _times(rows: NDArray[np.void]) -> NDArray[np.int64]:
    """Return int64[n] ns."""
    for name, unit in (("TimeUS", 1000), ("TimeMS", 10**6)):
        if name in (rows.dtype.names or ()):
            largest = np.uint64(((1 << 63) - 1) // unit)
            return np.minimum(rows[name].astype(np.uint64), largest).astype(np.int64) * unit
    return np.zeros(len(rows), np.int64)


def _has(rows: NDArray[np.void], **kinds: str) -> bool:
    """Return whether the rows have these columns, of these kinds of NumPy types."""
    fields: Mapping[str, Any] = rows.dtype.fields or {}
    return all(name in fields and fields[name][0].kind in kind for name, kind in kinds.items())


def parameters(parts: Rows) -> list[Parameter]:
    """Return the parameters of PARM: the first value of each, then its changes, and its default if it is logged."""
    values: dict[str, list[tuple[int, float]]] = {}
    defaults: dict[str, float] = {}
    for rows in parts:
        if not _has(rows, Name="S", Value="f"):
            continue
        standard = rows["Default"] if _has(rows, Default="f") else np.full(len(rows), np.nan)
        names = map(_text, rows["Name"].tolist())
        for name, time, value, default in zip(
            names, _times(rows).tolist(), rows["Value"].tolist(), standard.tolist(), strict=True
        ):
            values.setdefault(name, []).append((time, value))
            if default == default:
                defaults[name] = default
    return [
        Parameter(
            name,
            "float",
            every[0][1],
            tuple(Change(time, value) for time, value in every[1:]),
            {"system": defaults[name]} if name in defaults else {},
        )
        for name, every in values.items()
    ]


def text(rows_of: Callable[[str], Rows]) -> list[TextLine]:
    """Return lines of text: MSG, and events and errors by their names."""
    lines = []
    for rows in rows_of("MSG"):
        if _has(rows, Message="S"):
            texts = map(_text, rows["Message"].tolist())
            lines += [TextLine(t, None, s) for t, s in zip(_times(rows).tolist(), texts, strict=True)]
    for rows in rows_of("EV"):
        if _has(rows, Id="u"):
            for time, number in zip(_times(rows).tolist(), rows["Id"].tolist(), strict=True):
                lines.append(TextLine(time, 6, EVENTS.get(number, f"event {number}"), "EV", "event"))
    for rows in rows_of("ERR"):
        if _has(rows, Subsys="u", ECode="u"):
            for time, part, code in zip(
                _times(rows).tolist(), rows["Subsys"].tolist(), rows["ECode"].tolist(), strict=True
            ):
                # Code 0 says that an error is over.
                what = f"{SUBSYSTEMS.get(part, f'subsystem {part}')} error {code}" if code else "resolved"
                name = SUBSYSTEMS.get(part, f"subsystem {part}")
                lines.append(
                    TextLine(time, 3 if code else 5, what if code else f"{name} {what}", "ERR", "event")
                )
    return sorted(lines, key=lambda line: line.time)


def firmware(texts: Iterable[str]) -> dict[str, str]:
    """Return vehicle and firmware, by the lines of text."""
    for line in texts:
        vehicle = re.sub(r"^(APM:|Ardu)?(?=Copter|Plane|Rover|Sub)", "Ardu", line.split(" ", 1)[0])
        if vehicle in MODES:
            return {"vehicle": vehicle, "firmware": line}
    return {}


def _leap_seconds(utc: float) -> int:
    """Return the seconds that GPS time is ahead of UTC, in seconds since 1970."""
    return 18 if utc >= 1483228800 else 17 if utc >= 1435708800 else 16 if utc >= 1341100800 else 15


def utc_offset(parts: Rows) -> int | None:
    """Return the median of the ns from the clock of the log to UTC, by GPS messages with a fix; None without any."""
    offsets = []
    for rows in parts:
        if not _has(rows, Status="u", GWk="u", GMS="u"):
            continue
        fixed = rows[(rows["Status"] >= 3) & (rows["GWk"] > 1000)]
        if not len(fixed):
            continue
        gps = 315964800 * 1000 + fixed["GWk"].astype(np.int64) * 604_800_000 + fixed["GMS"].astype(np.int64)
        leap = _leap_seconds(float(np.median(gps)) / 1000)
        offsets.append((gps - leap * 1000) * 10**6 - _times(fixed))
    return int(np.sort(np.concatenate(offsets))[sum(map(len, offsets)) // 2]) if offsets else None


def mode_numbers(head: bytes) -> Callable[[str], int | None]:
    """Return a function from the name of a mode to its number, for the vehicle that *head* names.

    Names count without case and separators; where no vehicle is named, only those on which all vehicles agree.
    """
    match = _VEHICLE.search(head)
    vehicle = match[1].decode().replace("ArduRover", "Rover").replace("Rover", "ArduRover") if match else ""
    tables = [MODES[vehicle]] if vehicle else list(MODES.values())
    numbers: dict[str, set[int]] = {}
    for table in tables:
        for number, name in table.items():
            numbers.setdefault(_plain(name), set()).add(number)

    def number_of(name: str) -> int | None:
        known = numbers.get(_plain(name), set())
        return next(iter(known)) if len(known) == 1 else None

    return number_of


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).upper()


def modes_of(log: Log) -> Mapping[int, str]:
    """Return the names of the modes of the vehicle of a log; none if the vehicle is unknown."""
    return MODES.get(str(log.metadata.get("vehicle", "")), {})


def states(log: Log) -> Mapping[str, Mapping[str, Mapping[int, str]]]:
    """Return the names of numbers: modes, events, subsystems."""
    return {
        "MODE": {"ModeNum": modes_of(log), "Mode": modes_of(log)},
        "EV": {"Id": EVENTS},
        "ERR": {"Subsys": SUBSYSTEMS},
    }
