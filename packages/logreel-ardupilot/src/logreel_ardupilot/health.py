"""Detectors of faults that flights of ArduPilot show: failsafes, vibration, estimator, battery, satellites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from logreel.plugin import Detection, Detector, Log, NotAssessed, runs
from logreel_ardupilot.signals import FIX_3D, Measured, signals
from logreel_ardupilot.summary import (
    HDOP,
    RATIO,
    REFUSED,
    SATELLITES,
    STRONG_VIBRATION,
    UNCONNECTED,
    VIBRATION,
    in_use,
    seconds_text,
    since_start,
    spoken,
    strongest,
)

#: Runs that are no farther apart are one; shorter ones of vibration and of test ratios are none.
_NEAR, _SHORT = 2 * 10**9, 10**9
Severity = Literal["error", "warn", "note"]
Detections = Iterator[Detection | NotAssessed]


def _failsafes(log: Log) -> Detections:
    made = signals(log)
    if not made.events and made.armed is None:
        yield NotAssessed("the log tells of no arming and of no errors")
    for event in made.events:
        if event.code:
            severity: Severity = "error" if event.is_failsafe or event.subsystem in (12, 25, 30) else "warn"
            text = f"{event.text} at {since_start(event.time, log)}"
            evidence = {"subsystem": event.subsystem, "code": event.code}
            yield Detection(
                text, severity, event.time, event.time, ("ERR",), evidence, "an error that ArduPilot logged"
            )
    if not made.events:
        for line in spoken(log.text):
            text = f"{line.text!r} at {since_start(line.time, log)}"
            yield Detection(
                text, "warn", line.time, line.time, (), {}, "a message of failsafe, crash or failure"
            )


def _intervals(
    log: Log,
    parts: list[Measured],
    missing: str,
    judge: Callable[[Measured], NDArray[np.bool_]],
    tell: Callable[[Measured], tuple[str, Severity, dict[str, float]]],
    bound: str,
    source: str,
    short: int = 0,
) -> Detections:
    """Yield a detection for each interval in which *judge* finds bad measurements; *tell*: what these say."""
    made, any_read = signals(log), False
    for part in parts:
        used = in_use(made, part)
        if not len(used.time):
            continue
        any_read = True
        for start, end in runs(used.time, judge(used), _NEAR):
            if end - start < short:
                continue
            text, severity, evidence = tell(used.inside([(start, end)]))
            during = f" for {seconds_text(end - start)}" if end > start else ""
            yield Detection(
                f"{part.name}: {text} at {since_start(start, log)}{during}",
                severity,
                start,
                end,
                (part.topic,),
                evidence,
                bound,
                source,
                fields=part.fields,
            )
    if not any_read:
        yield NotAssessed(missing)


def _vibration(log: Log) -> Detections:
    def tell(part: Measured) -> tuple[str, Severity, dict[str, float]]:
        worst = float(strongest(part).max())
        return (
            f"vibration of {worst:.0f} m/s/s",
            "error" if worst > STRONG_VIBRATION else "warn",
            {"m/s/s": worst},
        )

    yield from _intervals(
        log,
        signals(log).vibration,
        "the log has no vibration",
        lambda part: strongest(part) > VIBRATION,
        tell,
        f"{VIBRATION:.0f} m/s/s, and {STRONG_VIBRATION:.0f} for an error",
        "ArduPilot, measuring vibration",
    )


def _clipping(log: Log) -> Detections:
    def tell(part: Measured) -> tuple[str, Severity, dict[str, float]]:
        count = float(part["new"].sum())
        return f"accelerometers clipped {count:.0f} times", "warn", {"clips": count}

    parts = []
    for part in signals(log).vibration:
        if "clips" in part:
            new = np.maximum(np.diff(part["clips"], prepend=part["clips"][:1]), 0)
            parts.append(replace(part, values={**part.values, "new": new}))
    yield from _intervals(
        log,
        parts,
        "the log counts no clips",
        lambda part: part["new"] > 0,
        tell,
        "a clip with armed motors",
        "ArduPilot, measuring vibration",
    )


def _estimator(log: Log) -> Detections:
    def worst(part: Measured) -> NDArray[np.float64]:
        # Airspeed is judged by the estimator only.
        names = [name for name in part.values if name != "airspeed"]
        ratios: NDArray[np.float64] = np.nan_to_num(np.max([part[name] for name in names], axis=0))
        return ratios

    def tell(part: Measured) -> tuple[str, Severity, dict[str, float]]:
        each = {name: float(np.nanmax(column)) for name, column in part.values.items() if name != "airspeed"}
        name = max(each, key=lambda key: each[key])
        return f"test ratio of {name} at {each[name]:.2f}", "error" if each[name] >= REFUSED else "warn", each

    bound = f"{RATIO}, and {REFUSED} for an error, for {seconds_text(_SHORT)}"
    yield from _intervals(
        log,
        signals(log).filters,
        "the log has no test ratios of an estimator",
        lambda part: worst(part) > RATIO,
        tell,
        bound,
        "ArduPilot, FS_EKF_THRESH",
        _SHORT,
    )
    for time, lane in signals(log).lanes:
        text = f"estimator {lane} became the primary one at {since_start(time, log)}"
        yield Detection(
            text, "warn", time, time, (), {"lane": lane}, "another primary estimator", "ArduPilot, EKF lanes"
        )


def _battery(log: Log) -> Detections:
    limit = _low_volts(log)

    def tell(part: Measured) -> tuple[str, Severity, dict[str, float]]:
        worst = float(part["volts"].min())
        return f"battery at {worst:.2f} V", "error", {"volts": worst}

    if limit is None:
        yield NotAssessed("the log has no parameter BATT_LOW_VOLT above 0")
        return
    yield from _intervals(
        log,
        [part for part in signals(log).batteries if (part["volts"] > UNCONNECTED).any()][:1],
        "the log has no voltage of a battery",
        lambda part: (part["volts"] > UNCONNECTED) & (part["volts"] < limit),
        tell,
        f"{limit:g} V",
        "BATT_LOW_VOLT of this vehicle",
    )


def _low_volts(log: Log) -> float | None:
    parameter = log.parameters.get("BATT_LOW_VOLT") or log.parameters.get("FS_BATT_VOLTAGE")
    value = None if parameter is None else parameter.value
    return float(value) if isinstance(value, (int, float)) and value > UNCONNECTED else None


def _satellites(log: Log) -> Detections:
    def judge(part: Measured) -> NDArray[np.bool_]:
        bad = (part["fix"] < FIX_3D) | (part["satellites"] < SATELLITES)
        return bad | (part["hdop"] > 2 * HDOP) if "hdop" in part else bad

    def tell(part: Measured) -> tuple[str, Severity, dict[str, float]]:
        least = float(part["satellites"].min())
        has_lost = bool((part["fix"] < FIX_3D).any())
        text = "no 3D fix" if has_lost else f"{least:.0f} satellites"
        if not has_lost and "hdop" in part:
            text += f", HDOP {part['hdop'].max():.1f}"
        return text, "error" if has_lost else "warn", {"satellites": least}

    used = [part for part in signals(log).receivers if (part["fix"] >= FIX_3D).any()]
    bound = f"a 3D fix, {SATELLITES} satellites, HDOP {2 * HDOP:g}"
    yield from _intervals(
        log, used, "no receiver had a fix", judge, tell, bound, "ArduPilot, arming checks of GPS"
    )


DETECTORS = (
    Detector("failsafe", "errors and failsafes that ArduPilot logged", _failsafes),
    Detector("vibration", f"vibration above {VIBRATION:.0f} m/s/s with armed motors", _vibration),
    Detector("clipping", "accelerometers that clip with armed motors", _clipping),
    Detector(
        "estimator", f"test ratios of the estimator above {RATIO}, and other primary estimators", _estimator
    ),
    Detector("battery", "batteries below the voltage at which the vehicle should act", _battery),
    Detector(
        "satellites", "receivers that had a fix, without one or with few satellites while armed", _satellites
    ),
)
