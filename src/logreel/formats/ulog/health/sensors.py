"""Raw sensors that repeat one measurement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

_XYZ = ("x", "y", "z")
#: Topics of sensors, the names for people, the fields of a measurement, and their paths.
SENSORS = (
    ("sensor_accel", "accelerometer", _XYZ, _XYZ),
    ("sensor_gyro", "gyroscope", _XYZ, _XYZ),
    ("sensor_mag", "magnetometer", _XYZ, _XYZ),
    ("sensor_baro", "barometer", ("pressure",), ("pressure",)),
    (
        "sensor_combined",
        "accelerometer",
        ("accelerometer_m_s2",),
        [f"accelerometer_m_s2[{n}]" for n in range(3)],
    ),
    ("sensor_combined", "gyroscope", ("gyro_rad",), [f"gyro_rad[{n}]" for n in range(3)]),
)
#: Equal measurements for this time and number, in a sensor whose measurements differ in this share of the others.
LEAST_NS, MESSAGES, SHARE = SECOND, 20, 0.9


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which a sensor repeats one measurement."""
    topics = Topics(log)
    looked = False
    for topic, word, members, fields in SENSORS:
        for name in topics.instances(topic, *members):
            found = topics.columns(log[name], *fields)
            if len(found.time) < 2 * MESSAGES:
                continue
            same = np.all([found.values[field][1:] == found.values[field][:-1] for field in fields], axis=0)
            for start, end in runs(found.time[1:], same):
                first = int(np.searchsorted(found.time[1:], start))
                last = int(np.searchsorted(found.time[1:], end, side="right"))
                begin = int(found.time[first])
                others = np.concatenate([same[:first], same[last:]])
                if end - begin < LEAST_NS or last - first < MESSAGES or len(others) < MESSAGES:
                    continue
                if float(np.mean(~others)) >= SHARE:
                    yield Detection(
                        f"{word} {name} repeats one measurement from {since_start(begin, log)} on,"
                        f" for {duration_text(end - begin)}",
                        "error",
                        begin,
                        end,
                        (name,),
                        {"messages": last - first + 1, "duration_ns": end - begin},
                        f"{MESSAGES} equal measurements over {duration_text(LEAST_NS)},"
                        f" where {SHARE:.0%} of the others differ",
                        "logreel: noise makes measurements of such sensors differ",
                    )
            # A barometer with coarse steps repeats itself in the air as well.
            looked = looked or float(np.mean(~same)) >= SHARE / 2
    if not looked:
        yield NotAssessed("no sensor topic has measurements that usually differ")


FROZEN_SENSOR = Detector(
    "frozen-sensor",
    "accelerometers, gyroscopes, magnetometers and barometers that repeat one measurement for"
    f" {duration_text(LEAST_NS)}",
    detect,
)
