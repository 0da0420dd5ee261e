"""High vibration of accelerometers while flying."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.phases import Phases
from logreel.formats.ulog.meaning.vibration import HIGH, METRIC, SINCE, VERY_HIGH
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, inside, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

#: Shorter intervals are landings and bumps.
LEAST_NS = 3 * SECOND


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each accelerometer and interval of much vibration."""
    topics, phases = Topics(log), Phases.of(log)
    names = topics.instances("vehicle_imu_status", METRIC, SINCE)
    if not names:
        yield NotAssessed("the log has no vibration metric in m/s², which PX4 writes since 1.13")
    for name in names:
        found = topics.columns(log[name], METRIC)
        values = np.asarray(found.values[METRIC], np.float64)
        flying = inside(found.time, phases.moving) if phases.moving else np.ones(len(values), bool)
        with np.errstate(invalid="ignore"):
            high = flying & (values > HIGH)
        for start, end in runs(found.time, high, 2 * SECOND):
            if end - start >= LEAST_NS:
                worst = float(np.nanmax(values[(found.time >= start) & (found.time <= end)]))
                yield Detection(
                    f"{name}: up to {worst:.1f} m/s² from {since_start(start, log)}, for {duration_text(end - start)}",
                    "error" if worst > VERY_HIGH else "warn",
                    start,
                    end,
                    (name,),
                    {"metric": worst},
                    f"{HIGH:.1f} m/s² for {duration_text(LEAST_NS)}; above {VERY_HIGH:.1f} m/s² an error",
                    "Flight Review: half of, and once, the acceleration of gravity",
                )


VIBRATION = Detector(
    "vibration", f"vibration above {HIGH:.1f} m/s² for {duration_text(LEAST_NS)} while flying", detect
)
