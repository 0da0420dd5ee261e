"""Detectors of faults that only PX4 flights show: supply, satellites, vibration, estimator, motors, remote control."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.errors import LogError
from logreel.formats.ulog.meaning.flight import Phases
from logreel.formats.ulog.meaning.vehicle import (
    FAULT,
    FIX_3D,
    FLAGS,
    HIGH,
    METRIC,
    RATIOS,
    RECEIVERS,
    SINCE,
    STATUS,
    VERY_HIGH,
)
from logreel.lenses.base import columns
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, inside, runs, since_start
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
FROZEN_NS, FROZEN_MESSAGES, FROZEN_SHARE = SECOND, 20, 0.9


def detect_frozen_sensors(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in which a sensor repeats one measurement."""
    topics = Topics(log)
    looked = False
    for topic, word, members, fields in SENSORS:
        for name in topics.instances(topic, *members):
            samples = topics.columns(log[name], *fields)
            if len(samples.time) < 2 * FROZEN_MESSAGES:
                continue
            same = np.all(
                [samples.values[field][1:] == samples.values[field][:-1] for field in fields], axis=0
            )
            for start, end in runs(samples.time[1:], same):
                first = int(np.searchsorted(samples.time[1:], start))
                last = int(np.searchsorted(samples.time[1:], end, side="right"))
                begin = int(samples.time[first])
                others = np.concatenate([same[:first], same[last:]])
                if end - begin < FROZEN_NS or last - first < FROZEN_MESSAGES or len(others) < FROZEN_MESSAGES:
                    continue
                if float(np.mean(~others)) >= FROZEN_SHARE:
                    yield Detection(
                        f"{word} {name} repeats one measurement from {since_start(begin, log)} on,"
                        f" for {duration_text(end - begin)}",
                        "error",
                        begin,
                        end,
                        (name,),
                        {"messages": last - first + 1, "duration_ns": end - begin},
                        f"{FROZEN_MESSAGES} equal measurements over {duration_text(FROZEN_NS)},"
                        f" where {FROZEN_SHARE:.0%} of the others differ",
                        "logreel: noise makes measurements of such sensors differ",
                        fields=tuple(fields),
                    )
            # A barometer with coarse steps repeats itself in the air as well.
            looked = looked or float(np.mean(~same)) >= FROZEN_SHARE / 2
    if not looked:
        yield NotAssessed("no sensor topic has measurements that usually differ")


FROZEN_SENSOR = Detector(
    "frozen-sensor",
    "accelerometers, gyroscopes, magnetometers and barometers that repeat one measurement for"
    f" {duration_text(FROZEN_NS)}",
    detect_frozen_sensors,
)


#: Volts of a cell below which a lithium polymer battery is empty, and volts of the 5 V supply that are too low.
CELL, SUPPLY = 3.3, 4.7
#: Volts below which nothing is connected.
UNCONNECTED = 1.0


def detect_brown_outs(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for low cells, a low supply, and a log that ends while the vehicle is in the air."""
    topics, phases = Topics(log), Phases.of(log)
    looked = False
    for name in topics.instances("battery_status", "voltage_v", "cell_count"):
        samples = topics.columns(log[name], "voltage_v", "cell_count")
        volts, cells = (
            np.asarray(samples.values[field], np.float64) for field in ("voltage_v", "cell_count")
        )
        known = (cells > 0) & (volts > UNCONNECTED)
        if not known.any():
            continue
        looked = True
        low = known & (volts < CELL * cells)
        for start, end in runs(samples.time, low, 2 * SECOND):
            worst = float(
                (volts / np.maximum(cells, 1))[(samples.time >= start) & (samples.time <= end)].min()
            )
            yield Detection(
                f"{name}: {worst:.2f} V a cell at {since_start(start, log)}, for {duration_text(end - start)}",
                "error",
                start,
                end,
                (name,),
                {"volts_per_cell": worst},
                f"{CELL} V a cell",
                "discharge limit of lithium polymer cells under load",
                fields=("voltage_v",),
            )
    yield from _not_measured(log, topics, phases)
    supply = topics.first("system_power", "voltage5v_v") or topics.first("system_power", "voltage5V_v")
    if supply is not None:
        volts = next(iter(supply.values.values())).astype(np.float64)
        if (volts > UNCONNECTED).any():
            looked = True
            for start, end in runs(supply.time, (volts < SUPPLY) & (volts > UNCONNECTED), 2 * SECOND):
                worst = float(volts[(supply.time >= start) & (supply.time <= end)].min())
                yield Detection(
                    f"the 5 V supply is at {worst:.2f} V at {since_start(start, log)}",
                    # On a table, the supply is that of a USB port.
                    "error" if any(a.start <= end and a.end > start for a in phases.armed) else "warn",
                    start,
                    end,
                    ("system_power",),
                    {"volts": worst},
                    f"{SUPPLY} V",
                    "PX4 arming check of avionics power",
                    fields=tuple(supply.values),
                )
    landed = topics.first("vehicle_land_detected", "landed")
    if landed is not None and log.end is not None:
        looked = True
        yield from _ends_in_the_air(log, phases)
    if not looked:
        yield NotAssessed("the log has no battery voltage, supply voltage or landing detection")


def _ends_in_the_air(log: Log, phases: Phases) -> Iterator[Detection]:
    """Yield a detection if the vehicle is armed and in the air at the end of the log."""
    end = log.end or 0
    flying = inside(np.array([end - 1]), phases.air)[0] and inside(np.array([end - 1]), phases.armed)[0]
    if flying:
        yield Detection(
            "the log ends while the vehicle is armed and in the air: it lost its power, or the log was cut",
            "warn",
            end,
            end,
            ("vehicle_land_detected",),
            {"in_air_since_ns": phases.air[-1].start},
            "landed before the end",
            "a loss of power ends a log so",
            fields=("landed",),
        )


def _not_measured(log: Log, topics: Topics, phases: Phases) -> Iterator[Detection]:
    """Yield a detection if no battery has a voltage while the vehicle is in the air."""
    names = topics.instances("battery_status", "voltage_v")
    volts = [topics.columns(log[name], "voltage_v") for name in names]
    if not phases.air or not volts:
        return
    most = max(
        float(np.max(samples.values["voltage_v"][inside(samples.time, phases.air)], initial=0))
        for samples in volts
    )
    if most < UNCONNECTED:
        yield Detection(
            f"no battery is measured in the air: {most:.2f} V at most",
            "error",
            phases.air[0].start,
            phases.air[-1].end,
            tuple(names),
            {"volts": most},
            f"{UNCONNECTED} V",
            "no low-battery warning or failsafe can work",
            fields=("voltage_v",),
        )


BROWN_OUT = Detector(
    "brown-out",
    f"cells below {CELL} V, the 5 V supply below {SUPPLY} V, a log that ends in the air",
    detect_brown_outs,
)


def detect_estimator(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each kind of measurement that is rejected, and each fault."""
    topics = Topics(log)
    ratios = [name for name in RATIOS if topics.has(STATUS, name)]
    faults = [name for name in topics.fields(FLAGS) if name.startswith(FAULT)] if topics.has(FLAGS) else []
    if not ratios and not faults:
        yield NotAssessed("the log has no status of the estimator")
    for name in ratios:
        samples = topics.columns(log[STATUS], name)
        values = np.asarray(samples.values[name], np.float64)
        for start, end in runs(samples.time, values > 1, 2 * SECOND):
            worst = float(values[(samples.time >= start) & (samples.time <= end)].max())
            yield Detection(
                f"{RATIOS[name]} is rejected from {since_start(start, log)}, for {duration_text(end - start)}",
                "warn",
                start,
                end,
                (STATUS,),
                {name: worst},
                f"{name} of 1",
                "PX4 estimator_status: measurements above 1 are rejected",
                fields=(name,),
            )
    if faults:
        samples = topics.columns(log[FLAGS], *faults)
        for name in faults:
            for start, end in runs(samples.time, samples.values[name] != 0, 5 * SECOND):
                yield Detection(
                    f"fault {name.removeprefix(FAULT).replace('_', ' ')} from {since_start(start, log)},"
                    f" for {duration_text(end - start)}",
                    "error",
                    start,
                    end,
                    (FLAGS,),
                    {name: True},
                    "flag is set",
                    "PX4 estimator_status_flags",
                    fields=(name,),
                )


ESTIMATOR = Detector("estimator", "measurements that the estimator rejects, and its faults", detect_estimator)


def detect_failsafe(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval in failsafe."""
    if not Topics(log).has("vehicle_status", "failsafe"):
        yield NotAssessed("the log has no state of the failsafe")
        return
    for band in Phases.of(log).failsafe:
        yield Detection(
            f"failsafe from {since_start(band.start, log)}, for {duration_text(band.end - band.start)}",
            "error",
            band.start,
            band.end,
            ("vehicle_status",),
            {"failsafe": True},
            "flag is set",
            "PX4 vehicle_status",
            fields=("failsafe",),
        )


FAILSAFE = Detector("failsafe", "the failsafe flag of the vehicle's state", detect_failsafe)


#: Flags of failure detection about motors.
MOTOR_FLAGS = ("fd_motor", "fd_imbalanced_prop", "fd_arm_escs")
#: A motor stands still below this speed while others turn faster than the other one, 1/min.
STILL, TURNING = 50, 500
STILL_NS = SECOND // 2
ESC = "esc_status"
MOTORS_AT_MOST = 8


def detect_motor_loss(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for flags of failure detection, and for motors that stand still in flight."""
    topics, phases = Topics(log), Phases.of(log)
    flags = [name for name in MOTOR_FLAGS if topics.has("failure_detector_status", name)]
    speeds = bool(phases.moving) and _motors(topics) > 0
    if not flags and not speeds:
        yield NotAssessed("the log has neither failure detection nor speeds of motors in flight")
        return
    if flags:
        samples = topics.columns(log["failure_detector_status"], *flags)
        for name in flags:
            for start, end in runs(samples.time, samples.values[name] != 0, SECOND):
                yield Detection(
                    f"failure detection: {name.removeprefix('fd_').replace('_', ' ')} at {since_start(start, log)}",
                    "error",
                    start,
                    end,
                    ("failure_detector_status",),
                    {name: True},
                    "flag is set",
                    "PX4 failure_detector_status",
                    fields=(name,),
                )
    if speeds:
        yield from _still(log, topics, phases)


def _motors(topics: Topics) -> int:
    """Return the number of motors whose speed is reported; 0 for outputs without telemetry, such as PWM."""
    samples = topics.first(ESC, "esc_count")
    return 0 if samples is None else min(int(samples.values["esc_count"].max()), MOTORS_AT_MOST)


def _still(log: Log, topics: Topics, phases: Phases) -> Iterator[Detection]:
    paths = [f"esc[{n}].esc_rpm" for n in range(_motors(topics))]
    try:
        samples = columns(log[ESC], paths)
    except LogError:
        return
    speed = np.abs(np.stack([np.asarray(samples.values[path], np.float64) for path in paths], axis=1))
    flying = inside(samples.time, phases.moving)
    for n in range(speed.shape[1]):
        others = np.delete(speed, n, axis=1)
        still = flying & (speed[:, n] < STILL) & (others > TURNING).any(axis=1)
        # A controller that never reports a speed is not connected.
        if not (speed[:, n] > TURNING).any():
            continue
        for start, end in runs(samples.time, still):
            if end - start >= STILL_NS:
                yield Detection(
                    f"motor {n + 1} stands still from {since_start(start, log)}, for {duration_text(end - start)}",
                    "error",
                    start,
                    end,
                    (ESC,),
                    {"rpm": float(speed[(samples.time >= start) & (samples.time <= end), n].max())},
                    f"{STILL} 1/min while others turn faster than {TURNING} 1/min",
                    "logreel",
                    fields=(paths[n], *(path for path in paths if path != paths[n])),
                )


MOTORS = Detector(
    "motor-loss", "flags of failure detection, and motors that stand still in flight", detect_motor_loss
)


#: Topics and flags that say that the signal is lost, newest first.
RC_FLAGS = (
    ("failsafe_flags", "manual_control_signal_lost"),
    ("vehicle_status", "rc_signal_lost"),
    ("input_rc", "rc_lost"),
)


def detect_rc_loss(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval without a signal after the first one, while armed."""
    topics, phases = Topics(log), Phases.of(log)
    signal = next(((topic, flag) for topic, flag in RC_FLAGS if topics.has(topic, flag)), None)
    if signal is None:
        yield NotAssessed("the log does not say whether there is a remote control")
        return
    topic, flag = signal
    states = topics.columns(log[topic], flag)
    lost = states.values[flag] != 0
    if lost.all():
        yield NotAssessed(f"there is no remote control: {topic}.{flag} throughout")
        return
    for start, end in runs(states.time, lost & inside(states.time, phases.armed), SECOND):
        yield Detection(
            f"the remote control is lost at {since_start(start, log)}, for {duration_text(end - start)}",
            "warn",
            start,
            end,
            (topic,),
            {flag: True},
            "flag is set while armed",
            f"PX4 {topic}",
            fields=(flag,),
        )


REMOTE = Detector("rc-loss", "the signal of the remote control while armed", detect_rc_loss)


#: Least values of ``jamming_state`` and ``spoofing_state`` that are a warning; and of the indicator, of 255.
STATE, INDICATOR = 2, 80
_SOURCES = {
    "jamming_state": "PX4 sensor_gps: 1 is OK",
    "spoofing_state": "PX4 sensor_gps: 1 is OK",
    "jamming_indicator": "PX4 guide, flight review: about 40 is normal",
}


def detect_interference(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for jamming, spoofing, and a fix that was lost; without any fix, nothing can be lost."""
    topics = Topics(log)
    name = next((name for name in RECEIVERS if topics.has(name, "fix_type")), None)
    if name is None:
        yield NotAssessed("the log has no messages of a receiver")
        return
    for field, word, least in (
        ("jamming_state", "jamming", STATE),
        ("spoofing_state", "spoofing", STATE),
        ("jamming_indicator", "jamming", INDICATOR),
    ):
        if (samples := topics.first(name, field)) is None:
            continue
        values = samples.values[field]
        for start, end in runs(samples.time, values >= least, 5 * SECOND):
            worst = int(values[(samples.time >= start) & (samples.time <= end)].max())
            yield Detection(
                f"{word}: {field} is {worst} at {since_start(start, log)}, for {duration_text(end - start)}",
                "warn",
                start,
                end,
                (name,),
                {field: worst},
                f"{field} of {least}",
                _SOURCES[field],
                fields=(field,),
            )
    fix = topics.columns(log[name], "fix_type")
    kinds = fix.values["fix_type"]
    if not (kinds >= FIX_3D).any():
        best = int(kinds.max())
        yield NotAssessed(f"{name} never has a 3D fix (fix_type at most {best}), so none can be lost")
        return
    had = np.maximum.accumulate(kinds >= FIX_3D)
    for start, end in runs(fix.time, had & (kinds < FIX_3D), SECOND):
        yield Detection(
            f"the fix is lost at {since_start(start, log)}, for {duration_text(end - start)}",
            "error",
            start,
            end,
            (name,),
            {"fix_type": int(kinds[(fix.time >= start) & (fix.time <= end)].min())},
            "fix_type of 3 after the first fix",
            "MAVLink GPS_FIX_TYPE",
            fields=("fix_type",),
        )


INTERFERENCE = Detector(
    "gnss-interference",
    "jamming and spoofing that a receiver reports, and fixes that are lost",
    detect_interference,
)


#: Shorter intervals are landings and bumps.
SHAKING_NS = 3 * SECOND


def detect_vibration(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each accelerometer and interval of much vibration."""
    topics, phases = Topics(log), Phases.of(log)
    names = topics.instances("vehicle_imu_status", METRIC, SINCE)
    if not names:
        yield NotAssessed("the log has no vibration metric in m/s², which PX4 writes since 1.13")
    for name in names:
        samples = topics.columns(log[name], METRIC)
        values = np.asarray(samples.values[METRIC], np.float64)
        flying = inside(samples.time, phases.moving) if phases.moving else np.ones(len(values), bool)
        with np.errstate(invalid="ignore"):
            high = flying & (values > HIGH)
        for start, end in runs(samples.time, high, 2 * SECOND):
            if end - start >= SHAKING_NS:
                worst = float(np.nanmax(values[(samples.time >= start) & (samples.time <= end)]))
                yield Detection(
                    f"{name}: up to {worst:.1f} m/s² from {since_start(start, log)}, for {duration_text(end - start)}",
                    "error" if worst > VERY_HIGH else "warn",
                    start,
                    end,
                    (name,),
                    {"metric": worst},
                    f"{HIGH:.1f} m/s² for {duration_text(SHAKING_NS)}; above {VERY_HIGH:.1f} m/s² an error",
                    "Flight Review: half of, and once, the acceleration of gravity",
                    fields=(METRIC,),
                )


VIBRATION = Detector(
    "vibration",
    f"vibration above {HIGH:.1f} m/s² for {duration_text(SHAKING_NS)} while flying",
    detect_vibration,
)

DETECTORS = (BROWN_OUT, INTERFERENCE, VIBRATION, ESTIMATOR, MOTORS, REMOTE, FAILSAFE, FROZEN_SENSOR)
