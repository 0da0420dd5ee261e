"""The vehicle: batteries, satellite navigation, the estimator (rejected measurements, resets, faults), vibration."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.flight import Phases
from logreel.io.arrays import F64
from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, inside, since_start
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


#: Fields of ``battery_status`` that are told.
BATTERY = ("voltage_v", "cell_count", "remaining", "discharged_mah", "current_a", "warning")


def power(topics: Topics) -> Section:
    """Return voltage, charge, current and warnings of each battery."""
    for name in topics.instances("battery_status", "voltage_v"):
        topics.read_together(name, BATTERY)
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
                    times=(int(times[rows[0]]),),
                )
                break


RECEIVERS = ("vehicle_gps_position", "sensor_gps")
#: ``fix_type``, the same numbers in all releases.
FIXES = {
    0: "none",
    1: "none",
    2: "2D",
    3: "3D",
    4: "3D, differential",
    5: "RTK, float",
    6: "RTK, fixed",
    8: "extrapolated",
}
#: The least fix that gives a position with a height.
FIX_3D = 3
#: ``jamming_state`` and ``spoofing_state``, of receivers that report them.
#: Releases name them differently: 2 is a warning or mitigated, 3 critical or detected.
JAMMING = {2: ("warning", WARNING), 3: ("detected", ERROR)}
SPOOFING = {2: ("indicated", WARNING), 3: ("detected", ERROR)}


#: Fields of a receiver that are told.
RECEPTION = (
    "fix_type", "satellites_used", "eph", "epv", "jamming_state", "spoofing_state", "jamming_indicator",
    "noise_per_ms",
)  # fmt: skip


def satellites(topics: Topics) -> Section:
    """Return the quality of satellite navigation."""
    return Section("gnss", "GNSS", tuple(_receivers(topics)))


def _receivers(topics: Topics) -> Iterator[Fact]:
    name = next((name for name in RECEIVERS if topics.has(name, "fix_type")), None)
    if name is None:
        return
    topics.read_together(name, RECEPTION)
    fix = topics.columns(topics.log[name], "fix_type")
    kinds = fix.values["fix_type"]
    share = float(np.mean(kinds >= FIX_3D))
    best = int(kinds.max())
    fixed = "" if share == 1 else f", 3D or better in {share:.0%} of the messages" if share else " throughout"
    yield Fact(
        "fix",
        "fix",
        {"best": best, "share_3d": share},
        FIXES.get(best, str(best)) + fixed,
        level=WARNING if 0 < share < 0.99 else None,
        note=f"{name}.fix_type",
    )
    if (used := topics.first(name, "satellites_used")) is not None:
        counts = used.values["satellites_used"][kinds >= FIX_3D] if share else used.values["satellites_used"]
        least, most = int(counts.min()), int(counts.max())
        text = str(most) if least == most else f"{least} to {most}"
        yield Fact(
            "satellites", "satellites", {"min": least, "max": most}, text, note=f"{name}.satellites_used"
        )
    for path, label in (("eph", "horizontal error"), ("epv", "vertical error")):
        if share and (samples := topics.first(name, path)) is not None:
            values = samples.values[path].astype(np.float64)[kinds >= FIX_3D]
            values = values[np.isfinite(values)]
            if len(values):
                middle, worst = float(np.median(values)), float(values.max())
                yield Fact(
                    path,
                    label,
                    {"median": middle, "max": worst},
                    f"{middle:.1f} m, {worst:.1f} m at worst",
                    "m",
                    note=f"{name}.{path}, as estimated by the receiver",
                )
    yield from _interference(topics, name)


def _interference(topics: Topics, name: str) -> Iterator[Fact]:
    for path, label, states in (
        ("jamming_state", "jamming", JAMMING),
        ("spoofing_state", "spoofing", SPOOFING),
    ):
        if (samples := topics.first(name, path)) is None:
            continue
        for state, (text, level) in sorted(states.items(), reverse=True):
            if len(rows := np.flatnonzero(samples.values[path] == state)):
                at = since_start(int(samples.time[rows[0]]), topics.log)
                yield Fact(label, label, text, f"{text} from {at} on", level=level, note=f"{name}.{path}")
                break
    for path, label in (("jamming_indicator", "jamming indicator"), ("noise_per_ms", "noise per ms")):
        if (samples := topics.first(name, path)) is not None and len(values := samples.values[path]):
            most = int(values.max())
            if most > 0:
                yield Fact(path, label, most, f"{most} at most", note=f"{name}.{path}")


STATUS = "estimator_status"
#: Ratios of innovation and gate: measurements above 1 are rejected.
RATIOS = {
    "vel_test_ratio": "velocity",
    "pos_test_ratio": "position",
    "hgt_test_ratio": "height",
    "mag_test_ratio": "magnetometer",
    "hdg_test_ratio": "heading",
    "tas_test_ratio": "airspeed",
    "hagl_test_ratio": "height above ground",
    "beta_test_ratio": "sideslip",
}
#: Counters of jumps of the estimate, in ``vehicle_local_position``.
RESETS = {
    "xy_reset_counter": "position",
    "z_reset_counter": "height",
    "vxy_reset_counter": "velocity",
    "vz_reset_counter": "vertical velocity",
    "heading_reset_counter": "heading",
}
#: The topic of the flags, and how the names of faults begin.
FLAGS, FAULT = "estimator_status_flags", "fs_"
COUNTER = 256


def estimator(topics: Topics) -> Section:
    """Return what went wrong in the estimation of attitude and position."""
    return Section(
        "estimator", "Estimator", (*_rejected(topics), *_flags(topics), *_resets(topics), *_faults(topics))
    )


def _rejected(topics: Topics) -> Iterator[Fact]:
    present = [name for name in RATIOS if topics.has(STATUS, name)]
    if not present:
        return
    shares = {}
    firsts = {}
    topics.read_together(STATUS, present)
    for name in present:
        samples = topics.columns(topics.log[STATUS], name)
        over = samples.values[name] > 1
        if over.any():
            shares[RATIOS[name]] = float(over.mean())
            firsts[RATIOS[name]] = int(samples.time[np.argmax(over)])
    if not shares:
        yield Fact("rejected", "rejected", {}, "no measurement", note=f"{STATUS}.*_test_ratio > 1")
        return
    text = ", ".join(
        f"{name} {share:.1%} of the time from {since_start(firsts[name], topics.log)} on"
        for name, share in shares.items()
    )
    yield Fact("rejected", "rejected", shares, text, level=WARNING, note=f"{STATUS}.*_test_ratio > 1")


def _flags(topics: Topics) -> Iterator[Fact]:
    flags = [field for field in topics.fields(FLAGS) if field.startswith(FAULT)]
    if raised := topics.rises(FLAGS, flags):
        faults = {name.removeprefix(FAULT).replace("_", " "): at for name, at in raised.items()}
        text = ", ".join(f"{name} from {since_start(at, topics.log)} on" for name, at in faults.items())
        yield Fact("faults", "faults", list(faults), text, level=ERROR, note=f"{FLAGS}.{FAULT}*")


def _resets(topics: Topics) -> Iterator[Fact]:
    name = "vehicle_local_position"
    counts = {}
    for field, label in RESETS.items():
        if (samples := topics.first(name, field)) is not None:
            steps = np.mod(np.diff(samples.values[field].astype(np.int64)), COUNTER)
            if steps.any():
                counts[label] = int(steps.sum())
    if counts:
        text = ", ".join(f"{label} {count} x" for label, count in counts.items())
        yield Fact("resets", "resets", counts, text, note=f"{name}.*_reset_counter")


def _faults(topics: Topics) -> Iterator[Fact]:
    samples = topics.first(STATUS, "filter_fault_flags")
    if samples is None or topics.has(FLAGS):
        return
    flags = samples.values["filter_fault_flags"]
    if (on := flags != 0).any():
        at = since_start(int(samples.time[np.argmax(on)]), topics.log)
        value = int(np.bitwise_or.reduce(flags.astype(np.int64)))
        yield Fact(
            "faults",
            "faults",
            value,
            f"flags {value:#x} from {at} on",
            level=ERROR,
            note=f"{STATUS}.filter_fault_flags",
        )


#: Bounds in m/s² of the vibration metric of accelerometers: half of, and once, the acceleration of gravity.
HIGH, VERY_HIGH = 9.80665 / 2, 9.80665
METRIC = "accel_vibration_metric"
#: A field that messages have since the metric is an acceleration; before, it was a velocity.
SINCE = "delta_angle_coning_metric"


def vibration(topics: Topics, phases: Phases) -> Section:
    """Return the vibration metric while moving, and how often measurements were clipped."""
    return Section("vibration", "Vibration", (*_metric(topics, phases), *_clipping(topics)))


def _metric(topics: Topics, phases: Phases) -> Iterator[Fact]:
    for name in topics.instances("vehicle_imu_status", METRIC, SINCE):
        samples = topics.columns(topics.log[name], METRIC)
        values = samples.values[METRIC].astype(np.float64)
        if phases.moving:
            values = values[inside(samples.time, phases.moving)]
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        most, mean = float(values.max()), float(values.mean())
        level = ERROR if mean > VERY_HIGH else WARNING if mean > HIGH else None
        number = name.partition("[")[2].rstrip("]") or "0"
        yield Fact(
            f"accelerometer_{number}",
            f"accelerometer {number}",
            {"mean": mean, "max": most},
            f"{mean:.2f} m/s² on average, {most:.2f} m/s² at most",
            "m/s²",
            level=level,
            note=f"{name}.{METRIC}; above {HIGH:.1f} m/s² is much",
        )


def _clipping(topics: Topics) -> Iterator[Fact]:
    for name in topics.instances("vehicle_imu_status", "accel_clipping"):
        samples = topics.columns(topics.log[name], *(f"accel_clipping[{axis}]" for axis in range(3)))
        clipped = sum(
            int(np.clip(np.diff(values.astype(np.int64)), 0, None).sum())
            for values in samples.values.values()
        )
        if clipped:
            number = name.partition("[")[2].rstrip("]") or "0"
            yield Fact(
                f"clipping_{number}",
                f"clipping {number}",
                clipped,
                f"{clipped} measurements of the accelerometer",
                level=WARNING,
                note=f"{name}.accel_clipping",
            )
