"""Sensors that repeat one measurement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import F64
from logreel.lenses import Imu, Pose, Position
from logreel.lenses.detection import Detection, Detector, NotAssessed, runs
from logreel.lenses.meaning import since_start
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.ops.health.sensors import sensors

#: Equal measurements for this time and number, in a sensor whose measurements differ in this share of the others.
LEAST_NS, MESSAGES, SHARE = 2 * SECOND, 20, 0.9


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which all numbers of a sensor stay the same."""
    looked = False
    for ch, found in sensors(log):
        for lens in found:
            try:
                values = _values(ch, lens)
            except LogError:
                continue
            if values is None or len(values) != len(ch) or len(values) < 2 * MESSAGES:
                continue
            looked = True
            yield from _stuck(ch, values, isinstance(lens, Imu))
            break
    if not looked:
        yield NotAssessed("no inertial unit, position or pose has enough messages")


def _values(ch: Channel, lens: object) -> F64 | None:
    """Return float64[n, k]: the measurements of each message, or None for other sensors."""
    match lens:
        case Imu():
            _, rate, acceleration, _ = lens.motion(ch)
            return np.hstack([rate, acceleration])
        case Position():
            fixes = lens.fixes(ch)
            return np.stack([fixes.latitude, fixes.longitude, fixes.altitude], axis=1)
        case Pose(many=False):
            places = lens.track(ch)
            return np.hstack([places.position, places.rotation])
    return None


def _stuck(ch: Channel, values: F64, is_noisy: bool) -> Iterator[Detection]:
    """Yield the intervals in which *values* stay the same.

    is_noisy  whether measurements differ even if the robot stands still
    """
    same = np.all(values[1:] == values[:-1], axis=1)
    times = ch.times
    for start, end in runs(times[1:], same):
        first = int(np.searchsorted(times, start)) - 1
        last = int(np.searchsorted(times, end))
        begin = int(times[max(first, 0)])
        others = np.concatenate([same[: max(first, 0)], same[last:]])
        if end - begin < LEAST_NS or last - first < MESSAGES or not len(others):
            continue
        if float(np.mean(~others)) >= SHARE and (is_noisy or _stops_at_once(values, max(first, 0))):
            yield Detection(
                f"{ch.topic} repeats one measurement for {duration_text(end - begin)}"
                f" from {since_start(begin, ch.log)} on",
                "error",
                begin,
                end,
                (ch.topic,),
                {"messages": last - first + 1, "duration_ns": end - begin},
                f"{MESSAGES} equal measurements over {duration_text(LEAST_NS)}, where {SHARE:.0%} of the others differ",
                "logreel",
            )


def _stops_at_once(values: F64, row: int) -> bool:
    """Return whether what moved until *row* stands still from there on without having slowed down."""
    steps = np.sqrt((np.diff(values[max(row - MESSAGES, 0) : row + 1], axis=0) ** 2).sum(axis=1))
    return len(steps) >= MESSAGES // 2 and bool(steps[-1] >= steps.mean() / 2 > 0)


STUCK = Detector(
    "stuck-sensor",
    f"inertial units, positions and poses that repeat one measurement for {duration_text(LEAST_NS)}",
    detect,
)
