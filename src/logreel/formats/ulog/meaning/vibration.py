"""Vibration of the sensors, and clipped measurements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, inside

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
        found = topics.columns(topics.log[name], METRIC)
        values = found.values[METRIC].astype(np.float64)
        if phases.moving:
            values = values[inside(found.time, phases.moving)]
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
        found = topics.columns(topics.log[name], *(f"accel_clipping[{axis}]" for axis in range(3)))
        clipped = sum(
            int(np.clip(np.diff(values.astype(np.int64)), 0, None).sum()) for values in found.values.values()
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
