"""Satellite navigation, the estimator (rejected measurements, resets, faults), and vibration of the sensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.flight import Phases
from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, inside, since_start

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


def satellites(topics: Topics) -> Section:
    """Return the quality of satellite navigation."""
    return Section("gnss", "GNSS", tuple(_facts(topics)))


def _facts(topics: Topics) -> Iterator[Fact]:
    name = next((name for name in RECEIVERS if topics.has(name, "fix_type")), None)
    if name is None:
        return
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
