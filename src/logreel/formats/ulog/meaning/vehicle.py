"""The vehicle, its batteries and power supply."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.io.arrays import F64
from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, since_start
from logreel.log.times import duration_text

#: Types of vehicles, ``MAV_TYPE`` of MAVLink; the numbers of ground stations and accessories are left out.
VEHICLE_TYPES = {
    1: "fixed wing",
    2: "quadrotor",
    3: "coaxial helicopter",
    4: "helicopter",
    7: "airship",
    8: "balloon",
    9: "rocket",
    10: "ground rover",
    11: "boat",
    12: "submarine",
    13: "hexarotor",
    14: "octorotor",
    15: "tricopter",
    16: "flapping wing",
    17: "kite",
    19: "VTOL, two rotors, tail-sitter",
    20: "VTOL, four rotors, tail-sitter",
    21: "VTOL, tilt rotor",
    22: "VTOL, fixed rotors",
    23: "VTOL, tail-sitter",
    24: "VTOL, tilt wing",
    28: "parafoil",
    29: "dodecarotor",
    35: "decarotor",
}
#: 32 bits; the flight time of a vehicle is stored in two parameters, in microseconds.
WORD, NS_PER_US = 0xFFFFFFFF, 1000
#: Parameters that are listed.
LISTED = 6
#: ``vehicle_type`` of ``vehicle_status``, where the parameter is not logged.
KINDS = {1: "rotary wing", 2: "fixed wing", 3: "rover", 4: "airship"}


def vehicle(topics: Topics) -> Section:
    """Return what is known of the vehicle and its software."""
    return Section("vehicle", "Vehicle", tuple(_facts(topics)))


def _facts(topics: Topics) -> Iterator[Fact]:
    about, parameters = topics.log.metadata, topics.log.parameters

    def value_of(name: str) -> int | None:
        value = parameters[name].value if name in parameters else None
        return int(value) if isinstance(value, (int, float)) else None

    mav_type = value_of("MAV_TYPE")
    status = topics.first("vehicle_status", "vehicle_type")
    if mav_type in VEHICLE_TYPES:
        yield Fact("type", "type", mav_type, VEHICLE_TYPES[mav_type], note="parameter MAV_TYPE")
    elif status is not None and (last := int(status.values["vehicle_type"][-1])) in KINDS:
        yield Fact("type", "type", last, KINDS[last], note="vehicle_status.vehicle_type")
    release, commit = about.get("ver_sw_release"), str(about.get("ver_sw", ""))
    system = str(about.get("sys_name", ""))
    branch = str(about.get("ver_sw_branch", ""))
    if release or commit:
        more = ", ".join(part for part in (branch, f"commit {commit[:10]}" if commit else "") if part)
        text = " ".join(part for part in (system, str(release or "")) if part)
        yield Fact(
            "firmware", "firmware", str(release or commit), f"{text} ({more})" if more else text or commit
        )
    vendor = about.get("ver_vendor_sw_release")
    if vendor and not str(vendor).startswith("v0.0.0"):
        yield Fact("vendor_firmware", "vendor version", str(vendor), str(vendor))
    if board := about.get("ver_hw"):
        subtype = str(about.get("ver_hw_subtype", "") or "")
        yield Fact("hardware", "hardware", str(board), " ".join(filter(None, (str(board), subtype))))
    frame = value_of("SYS_AUTOSTART")
    if frame:
        yield Fact("airframe", "airframe", frame, str(frame), note="parameter SYS_AUTOSTART")
    if number := about.get("sys_uuid"):
        yield Fact("uuid", "board number", str(number), str(number))
    high, low = value_of("LND_FLIGHT_T_HI"), value_of("LND_FLIGHT_T_LO")
    if high is not None and low is not None and (high or low):
        flown = ((high & WORD) << 32 | low & WORD) * NS_PER_US
        yield Fact(
            "life",
            "flown before",
            flown,
            duration_text(flown),
            "ns",
            note="parameters LND_FLIGHT_T_HI and LND_FLIGHT_T_LO",
        )
    changed = [p for p in parameters.values() if any(value != p.value for value in p.defaults.values())]
    if any(p.defaults for p in parameters.values()):
        names = sorted(p.name for p in changed)
        listed = ", ".join(f"{name} {_number(parameters[name].value)}" for name in names[:LISTED])
        more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
        text = f"{len(names)} of {len(parameters)} parameters" + (f": {listed}{more}" if listed else "")
        values = {name: parameters[name].value for name in names}
        yield Fact("parameters_changed", "not default", values, text, note="'params --defaults' lists all")
    elif parameters:
        yield Fact("parameters", "parameters", len(parameters), f"{len(parameters)}, defaults not logged")


def _number(value: float | int | str | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


#: ``warning`` of ``battery_status``: the states that need attention, and their syslog level.
WARNINGS = {1: ("low", WARNING), 2: ("critical", ERROR), 3: ("emergency", ERROR), 4: ("failed", ERROR)}


#: Voltage below which no battery is connected, V; monitors without one report some hundredths.
LEAST_VOLTAGE = 1.0


def power(topics: Topics) -> Section:
    """Return voltage, charge, current and warnings of each battery."""
    names = [
        name
        for name in topics.instances("battery_status", "voltage_v")
        if np.any(topics.columns(topics.log[name], "voltage_v").values["voltage_v"] >= LEAST_VOLTAGE)
    ]
    if not names and topics.instances("battery_status", "voltage_v"):
        text = f"not measured: below {LEAST_VOLTAGE:.0f} V throughout"
        return Section(
            "power", "Power", (Fact("battery", "battery", None, text, note="battery_status.voltage_v"),)
        )
    facts = [
        fact
        for number, name in enumerate(names, 1)
        for fact in _battery(topics, name, "battery" if len(names) == 1 else f"battery {number}")
    ]
    return Section("power", "Power", tuple(facts))


def _battery(topics: Topics, name: str, label: str) -> Iterator[Fact]:
    key = label.replace(" ", "_")

    def field(path: str) -> F64 | None:
        samples = topics.first(name, path)
        return None if samples is None else np.asarray(samples.values[path], np.float64)

    measured = topics.columns(topics.log[name], "voltage_v")
    times, voltage = measured.time, np.asarray(measured.values["voltage_v"], np.float64)
    known = np.flatnonzero(voltage >= LEAST_VOLTAGE)
    first, last, least = known[0], known[-1], known[np.argmin(voltage[known])]
    cells = field("cell_count")
    count = int(cells.max()) if cells is not None else 0
    per_cell = f", {voltage[least] / count:.2f} V a cell" if 0 < count < 100 else ""
    yield Fact(
        f"{key}_voltage",
        f"{label}",
        {"start": float(voltage[first]), "end": float(voltage[last]), "min": float(voltage[least])},
        f"{voltage[first]:.2f} V to {voltage[last]:.2f} V; least {voltage[least]:.2f} V{per_cell}"
        f" at {since_start(int(times[least]), topics.log)}",
        "V",
        note=f"{name}.voltage_v",
    )
    if 0 < count < 100:
        yield Fact(f"{key}_cells", "cells", count, str(count), note=f"{name}.cell_count")
    remaining = field("remaining")
    if remaining is not None and len(shown := remaining[(remaining >= 0) & (remaining <= 1)]):
        yield Fact(
            f"{key}_remaining",
            "charge",
            {"start": float(shown[0]), "end": float(shown[-1])},
            f"{shown[0]:.0%} to {shown[-1]:.0%}",
            note=f"{name}.remaining",
        )
    used = field("discharged_mah")
    if used is not None and len(used := used[np.isfinite(used) & (used >= 0)]) and used.max() > 0:
        spent = float(used.max() - used[0])
        yield Fact(f"{key}_used", "used", spent, f"{spent:.0f} mAh", "mAh", note=f"{name}.discharged_mah")
    current = field("current_a")
    if current is not None and len(current := current[np.isfinite(current) & (current > 0)]):
        yield Fact(
            f"{key}_current",
            "current",
            {"max": float(current.max()), "mean": float(current.mean())},
            f"{current.max():.1f} A at most, {current.mean():.1f} A on average",
            "A",
            note=f"{name}.current_a",
        )
    warning = field("warning")
    if warning is not None:
        for state, (text, level) in sorted(WARNINGS.items(), reverse=True):
            if len(rows := np.flatnonzero(warning == state)):
                at = since_start(int(times[rows[0]]), topics.log)
                yield Fact(
                    f"{key}_warning",
                    "warning",
                    text,
                    f"{text} from {at} on",
                    level=level,
                    note=f"{name}.warning",
                )
                break
