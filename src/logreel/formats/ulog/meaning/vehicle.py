"""The vehicle: type, airframe, firmware, hardware."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.lenses.facts import Fact, Section, Topics
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
        found = parameters[name].value if name in parameters else None
        return int(found) if isinstance(found, (int, float)) else None

    kind = value_of("MAV_TYPE")
    status = topics.first("vehicle_status", "vehicle_type")
    if kind in VEHICLE_TYPES:
        yield Fact("type", "type", kind, VEHICLE_TYPES[kind], note="parameter MAV_TYPE")
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
