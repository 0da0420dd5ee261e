"""Motors that fail: by failure detection, by speed controllers, by outputs at their limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import LogError
from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.base import columns
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, inside, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

#: Flags of failure detection about motors.
FLAGS = ("fd_motor", "fd_imbalanced_prop", "fd_arm_escs")
#: A motor stands still below this speed while others turn faster than the other one, 1/min.
STILL, TURNING = 50, 500
LEAST_NS = SECOND // 2
ESC = "esc_status"
MOTORS_AT_MOST = 8


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for flags of failure detection, and for motors that stand still in flight."""
    topics, phases = Topics(log), Phases.of(log)
    flags = [name for name in FLAGS if topics.has("failure_detector_status", name)]
    speeds = bool(phases.moving) and _motors(topics) > 0
    if not flags and not speeds:
        yield NotAssessed("the log has neither failure detection nor speeds of motors in flight")
        return
    if flags:
        found = topics.columns(log["failure_detector_status"], *flags)
        for name in flags:
            for start, end in runs(found.time, found.values[name] != 0, SECOND):
                yield Detection(
                    f"failure detection: {name.removeprefix('fd_').replace('_', ' ')} at {since_start(start, log)}",
                    "error",
                    start,
                    end,
                    ("failure_detector_status",),
                    {name: True},
                    "flag is set",
                    "PX4 failure_detector_status",
                )
    if speeds:
        yield from _still(log, topics, phases)


def _motors(topics: Topics) -> int:
    """Return the number of motors whose speed is reported; 0 for outputs without telemetry, such as PWM."""
    found = topics.first(ESC, "esc_count")
    return 0 if found is None else min(int(found.values["esc_count"].max()), MOTORS_AT_MOST)


def _still(log: Log, topics: Topics, phases: Phases) -> Iterator[Detection]:
    paths = [f"esc[{n}].esc_rpm" for n in range(_motors(topics))]
    try:
        found = columns(log[ESC], paths)
    except LogError:
        return
    speed = np.abs(np.stack([np.asarray(found.values[path], np.float64) for path in paths], axis=1))
    flying = inside(found.time, phases.moving)
    for n in range(speed.shape[1]):
        others = np.delete(speed, n, axis=1)
        still = flying & (speed[:, n] < STILL) & (others > TURNING).any(axis=1)
        # A controller that never reports a speed is not connected.
        if not (speed[:, n] > TURNING).any():
            continue
        for start, end in runs(found.time, still):
            if end - start >= LEAST_NS:
                yield Detection(
                    f"motor {n + 1} stands still from {since_start(start, log)}, for {duration_text(end - start)}",
                    "error",
                    start,
                    end,
                    (ESC,),
                    {"rpm": float(speed[(found.time >= start) & (found.time <= end), n].max())},
                    f"{STILL} 1/min while others turn faster than {TURNING} 1/min",
                    "logreel",
                )


MOTORS = Detector("motor-loss", "flags of failure detection, and motors that stand still in flight", detect)
