"""The flight: modes and phases (armed, in the air, failsafe), also as bands, motion, and what endangered it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.io.arrays import F64
from logreel.lenses.base import Columns
from logreel.lenses.facts import ERROR, WARNING, Band, Fact, Section, Topics, inside, since_start, total
from logreel.log.log import Log
from logreel.log.times import duration_text
from logreel.meaning.tracks import jumps

if TYPE_CHECKING:
    from logreel.io.arrays import I64
    from logreel.log.log import Channel, Log

#: ``nav_state`` of ``vehicle_status``: the numbers that have one meaning in all releases of PX4 since 2014.
NAV_STATES = {
    0: "Manual",
    1: "Altitude",
    2: "Position",
    3: "Mission",
    4: "Hold",
    5: "Return",
    10: "Acro",
    12: "Descend",
    13: "Termination",
    14: "Offboard",
    15: "Stabilized",
    17: "Takeoff",
    18: "Land",
    19: "Follow target",
    20: "Precision land",
    21: "Orbit",
    22: "VTOL takeoff",
    **{22 + n: f"External {n}" for n in range(1, 9)},
}
#: Numbers whose meaning changed: until v1.13 they had these names …
OLD_NAV_STATES = {
    6: "RC recovery",
    7: "Return to ground station",
    8: "Land, engine failure",
    9: "Land, GPS failure",
    11: "Land",
    16: "Rattitude",
}
#: … and have these since v1.15, some since later releases.
NEW_NAV_STATES = {6: "Position slow", 7: "Guided course", 8: "Altitude cruise"}
#: A field that ``vehicle_status`` has since the releases whose free numbers are used again.
NEW_FIELD = "valid_nav_states_mask"

#: ``main_state`` of ``commander_state``: the mode that the pilot chose; until v1.13.
MAIN_STATES = {
    0: "Manual",
    1: "Altitude",
    2: "Position",
    3: "Mission",
    4: "Hold",
    5: "Return",
    6: "Acro",
    7: "Offboard",
    8: "Stabilized",
    9: "Rattitude",
    10: "Takeoff",
    11: "Land",
    12: "Follow target",
    13: "Precision land",
    14: "Orbit",
}
#: ``arming_state`` of ``vehicle_status`` in all releases.
ARMED = 2


#: Bands of open logs with the number of their messages, which grows with logs that are still written.
_BANDS: WeakKeyDictionary[Log, tuple[int, tuple[Band, ...]]] = WeakKeyDictionary()


def bands(log: Log) -> Iterator[Band]:
    """Yield flight modes, armed intervals, flights and failsafes of *log*."""
    count, known = _BANDS.get(log, (-1, ()))
    if count != log.message_count:
        count, complete = log.message_count, []
        for band in _read_bands(log):
            complete.append(band)
            yield band
        _BANDS[log] = count, tuple(complete)
        return
    yield from known


def _read_bands(log: Log) -> Iterator[Band]:
    status = _channel(log, "vehicle_status")
    chosen = _channel(log, "commander_state")
    if status is not None and "nav_state" in status:
        yield from _runs(log, status, "nav_state", "mode", nav_state_names(status).get)
    elif chosen is not None and "main_state" in chosen:
        yield from _runs(log, chosen, "main_state", "mode", MAIN_STATES.get)
    if status is not None and "arming_state" in status:
        yield from _where(log, status, "arming_state", "armed", "Armed", lambda v: v == ARMED)
    elif (armed := _channel(log, "actuator_armed")) is not None and "armed" in armed:
        yield from _where(log, armed, "armed", "armed", "Armed", lambda v: v != 0)
    landed = _channel(log, "vehicle_land_detected")
    if landed is not None and "landed" in landed:
        yield from _where(log, landed, "landed", "air", "In the air", lambda v: v == 0)
    if status is not None and "failsafe" in status:
        yield from _where(log, status, "failsafe", "failsafe", "Failsafe", lambda v: v != 0)


def nav_state_names(status: Channel) -> dict[int, str]:
    """Return the names of ``nav_state`` by number, for the release whose fields *status* has."""
    return NAV_STATES | (NEW_NAV_STATES if NEW_FIELD in status else OLD_NAV_STATES)


def _channel(log: Log, topic: str) -> Channel | None:
    ch = log.channels.get(topic)
    return ch if ch is not None and len(ch) else None


def _runs(
    log: Log, ch: Channel, field: str, band_kind: str, name: Callable[[int], str | None]
) -> Iterator[Band]:
    """Yield a band for each run of equal values; the last one lasts until the end of the log."""
    source = f"{ch.topic}.{field}"
    times, values, ends = _states(log, ch, field)
    for start, end, value in zip(times.tolist(), ends.tolist(), values.tolist(), strict=True):
        yield Band(start, end, name(value) or f"Mode {value}", band_kind, f"{source} = {value}")


def _where(
    log: Log, ch: Channel, field: str, band_kind: str, label: str, test: Callable[[Any], NDArray[np.bool_]]
) -> Iterator[Band]:
    """Yield a band for each interval in which the values of a field pass *test*."""
    times, values, ends = _states(log, ch, field, test)
    for start, end, value in zip(times.tolist(), ends.tolist(), values.tolist(), strict=True):
        if value:
            yield Band(start, end, label, band_kind, f"{ch.topic}.{field}")


def _states(
    log: Log, ch: Channel, field: str, test: Callable[[Any], NDArray[np.bool_]] | None = None
) -> tuple[I64, NDArray[Any], I64]:
    """Return start, value and end of each run of equal values, in order of time."""
    values = np.ma.filled(ch[field], 0)
    if test is not None:
        values = test(values)
    times = ch.times
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    changed = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    end = max(times[-1], log.end or 0)
    return times[changed], values[changed], np.append(times[changed][1:], end)


#: A vehicle that touches the ground for less than this, ns, goes on flying.
TOUCH_NS = 10**9


@dataclass(frozen=True, slots=True)
class Phases:
    """Intervals of a flight by kind, each in the order of time."""

    armed: tuple[Band, ...]
    air: tuple[Band, ...]
    modes: tuple[Band, ...]
    failsafe: tuple[Band, ...]

    @classmethod
    def of(cls, log: Log) -> Phases:
        """Return the phases of *log*."""
        first = log.start or 0
        clipped = [replace(band, start=max(band.start, first)) for band in bands(log) if band.end > first]

        def of_kind(name: str) -> tuple[Band, ...]:
            return tuple(sorted((band for band in clipped if band.kind == name), key=lambda b: b.start))

        armed = of_kind("armed")
        return cls(armed, _flights(of_kind("air"), armed), of_kind("mode"), of_kind("failsafe"))

    @property
    def moving(self) -> tuple[Band, ...]:
        """Intervals over which a flight is measured: in the air, or else armed."""
        return self.air or self.armed


def _flights(air: Sequence[Band], armed: Sequence[Band]) -> tuple[Band, ...]:
    """Return the intervals in the air without touches of the ground, from the time on at which the vehicle is armed.

    Before its first message, the state of landing is not known, and a vehicle that is not armed does not take off.
    """
    flights: list[Band] = []
    for band in air:
        start = next((arming.start for arming in armed if band.start < arming.start < band.end), band.start)
        if flights and band.start - flights[-1].end <= TOUCH_NS:
            flights[-1] = replace(flights[-1], end=band.end)
        else:
            flights.append(replace(band, start=start))
    return tuple(flights)


POSITION, ATTITUDE, RATES = "vehicle_local_position", "vehicle_attitude", "vehicle_angular_velocity"


def flight(topics: Topics, phases: Phases) -> Section:
    """Return when the vehicle was armed and in the air, in which modes, and how far, high and fast it moved."""
    return Section("flight", "Flight", (*_times(topics, phases), *_modes(phases), *_motion(topics, phases)))


def _times(topics: Topics, phases: Phases) -> Iterator[Fact]:
    log = topics.log
    if not phases.armed:
        if _says_whether_armed(topics):
            yield Fact("armed", "armed", [], "never")
    else:
        yield Fact(
            "armed",
            "armed",
            [[band.start, band.end] for band in phases.armed],
            _intervals(log, phases.armed),
            note=phases.armed[0].source,
        )
    if phases.air:
        # A flight that goes on at an end of the log has no take-off or no landing in it.
        starts = [b.start for b in phases.air if b.start > (log.start or 0) + 10**9]
        ends = [b.end for b in phases.air if b.end < (log.end or 0)]
        yield Fact(
            "air",
            "in the air",
            [[band.start, band.end] for band in phases.air],
            _intervals(log, phases.air),
            note=phases.air[0].source,
        )
        yield Fact("takeoffs", "take-offs", len(starts), str(len(starts)))
        yield Fact("landings", "landings", len(ends), str(len(ends)))


def _says_whether_armed(topics: Topics) -> bool:
    return topics.has("vehicle_status", "arming_state") or topics.has("actuator_armed", "armed")


def _intervals(log: Log, bands: Sequence[Band], most: int = 4) -> str:
    shown = [f"{since_start(b.start, log)} to {since_start(b.end, log)}" for b in bands[:most]]
    more = f" and {len(bands) - most} more" if len(bands) > most else ""
    return f"{', '.join(shown)}{more} ({duration_text(total(bands))} in all)"


def _modes(phases: Phases) -> Iterator[Fact]:
    lasted: dict[str, int] = defaultdict(int)
    for band in phases.modes:
        lasted[band.label] += band.end - band.start
    if lasted:
        ordered = sorted(lasted.items(), key=lambda item: -item[1])
        text = ", ".join(f"{name} {duration_text(ns)}" for name, ns in ordered)
        yield Fact("modes", "modes", dict(ordered), text, "ns", note=phases.modes[0].source)


def _motion(topics: Topics, phases: Phases) -> Iterator[Fact]:
    samples = topics.first(POSITION, "x", "y", "z", "xy_valid", "z_valid")
    # What the estimate does while the vehicle stands on a table is noise.
    if samples is None or (not phases.moving and _says_whether_armed(topics)):
        return
    moving = inside(samples.time, phases.moving) if phases.moving else np.ones(len(samples.time), bool)
    note = "vehicle_local_position, " + (
        "in the air" if phases.air else "armed" if phases.armed else "whole log"
    )
    level = moving & (samples.values["xy_valid"] != 0)
    steps = steps_between(topics, samples, level)
    if moving.any() and not level.any():
        yield Fact("distance", "distance", None, "no valid position", "m", note=note)
    elif len(steps):
        yield Fact("distance", "distance", float(steps.sum()), f"{steps.sum():.0f} m", "m", note=note)
    upright = moving & (samples.values["z_valid"] != 0)
    if upright.any():
        height = -samples.values["z"][upright].astype(np.float64)
        height = height[np.isfinite(height)]
        if len(height):
            gain = float(height.max() - height.min())
            yield Fact("height", "height gained", gain, f"{gain:.1f} m", "m", note=note)
    yield from _speeds(topics, moving, note)
    yield from _attitude(topics, phases)


def steps_between(topics: Topics, samples: Columns, valid: NDArray[np.bool_]) -> F64:
    """Return the horizontal distances in m between messages that follow each other, without jumps of the estimate."""
    both = valid[1:] & valid[:-1]
    if topics.has(POSITION, "xy_reset_counter"):
        resets = topics.columns(topics.log[POSITION], "xy_reset_counter").values["xy_reset_counter"]
        both &= resets[1:] == resets[:-1]
    x, y = (np.diff(samples.values[axis].astype(np.float64)) for axis in "xy")
    steps = np.hypot(x, y)
    return steps[both & np.isfinite(steps) & ~jumps(samples.time, steps)]


def _speeds(topics: Topics, moving: NDArray[np.bool_], note: str) -> Iterator[Fact]:
    samples = topics.first(POSITION, "vx", "vy", "vz", "v_xy_valid", "v_z_valid")
    if samples is None:
        return
    values = {name: samples.values[name].astype(np.float64) for name in ("vx", "vy", "vz")}
    level = np.hypot(values["vx"], values["vy"])[moving & (samples.values["v_xy_valid"] != 0)]
    level = level[np.isfinite(level)]
    if len(level):
        fastest, mean = float(level.max()), float(level.mean())
        yield Fact(
            "speed",
            "speed",
            {"max": fastest, "mean": mean},
            f"{fastest:.1f} m/s at most, {mean:.1f} m/s on average",
            "m/s",
            note=note,
        )
    upright = -values["vz"][moving & (samples.values["v_z_valid"] != 0)]
    upright = upright[np.isfinite(upright)]
    if len(upright):
        up, down = max(float(upright.max()), 0.0), max(float(-upright.min()), 0.0)
        yield Fact(
            "climb",
            "climb",
            {"up": up, "down": down},
            f"{up:.1f} m/s up, {down:.1f} m/s down at most",
            "m/s",
            note=note,
        )


def _attitude(topics: Topics, phases: Phases) -> Iterator[Fact]:
    """Yield the greatest angle between the vehicle's axis and the vertical, and its greatest rotation rate."""
    if topics.has(ATTITUDE, "q"):
        attitude = topics.columns(topics.log[ATTITUDE], *(f"q[{n}]" for n in range(4)))
        moving = inside(attitude.time, phases.moving) if phases.moving else np.ones(len(attitude.time), bool)
        w, x, y, z = (attitude.values[f"q[{n}]"].astype(np.float64)[moving] for n in range(4))
        norm = w**2 + x**2 + y**2 + z**2
        with np.errstate(invalid="ignore", divide="ignore"):
            upright = np.clip(1 - 2 * (x**2 + y**2) / norm, -1, 1)
        upright = upright[np.isfinite(upright)]
        if len(upright):
            tilt = float(np.degrees(np.arccos(upright.min())))
            yield Fact("tilt", "tilt", tilt, f"{tilt:.0f}° at most", "°", note=f"{ATTITUDE}.q")
    rates: Columns | None
    if topics.has(RATES, "xyz"):
        rates = topics.columns(topics.log[RATES], *(f"xyz[{n}]" for n in range(3)))
    else:
        rates = topics.first(ATTITUDE, "rollspeed", "pitchspeed", "yawspeed")
    if rates is not None:
        moving = inside(rates.time, phases.moving) if phases.moving else np.ones(len(rates.time), bool)
        squares = sum(value.astype(np.float64)[moving] ** 2 for value in rates.values.values())
        fast = np.sqrt(squares)
        fast = fast[np.isfinite(fast)]
        if len(fast):
            most = float(np.degrees(fast.max()))
            note = (
                f"{RATES}.xyz" if "xyz[0]" in rates.values else f"{ATTITUDE}.rollspeed, pitchspeed, yawspeed"
            )
            yield Fact("rotation", "rotation", most, f"{most:.0f} °/s at most", "°/s", note=note)


#: The topic of conditions, and how the fields begin that say which ones a mode needs, not that one fails.
CONDITIONS, REQUIRED = "failsafe_flags", "mode_req_"
#: The topic of detected failures, and how their fields begin.
DETECTOR, FAILURE = "failure_detector_status", "fd_"
BUSY = 0.95
NS_PER_MS = 10**6
#: How the names of attachments begin that are reports of a crash of the processor.
HARD_FAULT = "hardfault_"


def safety(topics: Topics, phases: Phases) -> Section:
    """Return failsafes, detected failures, processor load and dropouts of the logger."""
    return Section(
        "safety",
        "Safety",
        (
            *_failsafes(topics, phases),
            *_conditions(topics, phases),
            *_failures(topics),
            *_hard_faults(topics),
            *_load(topics),
            *_dropouts(topics),
        ),
    )


def _failsafes(topics: Topics, phases: Phases) -> Iterator[Fact]:
    if not topics.has("vehicle_status", "failsafe"):
        return
    if not phases.failsafe:
        yield Fact("failsafe", "failsafe", [], "none", note="vehicle_status.failsafe")
        return
    first = since_start(phases.failsafe[0].start, topics.log)
    yield Fact(
        "failsafe",
        "failsafe",
        [[band.start, band.end] for band in phases.failsafe],
        f"{len(phases.failsafe)} x, {duration_text(total(phases.failsafe))} in all, first at {first}",
        level=ERROR,
        note="vehicle_status.failsafe",
        times=tuple(band.start for band in phases.failsafe),
    )


def _conditions(topics: Topics, phases: Phases) -> Iterator[Fact]:
    """Yield the conditions that began to fail while the vehicle was in the air, or armed."""
    flags = [name for name in topics.fields(CONDITIONS) if not name.startswith((REQUIRED, "timestamp", "_"))]
    # A condition that fails from the start on is not there on this vehicle, such as a mission.
    raised = topics.rises(CONDITIONS, flags, phases.moving)
    if raised:
        text = ", ".join(
            f"{name.replace('_', ' ')} at {since_start(at, topics.log)}" for name, at in raised.items()
        )
        note = f"{CONDITIONS}, from false to true in the air"
        times = tuple(raised.values())
        yield Fact(
            "conditions", "failed in flight", list(raised), text, level=WARNING, note=note, times=times
        )


def _failures(topics: Topics) -> Iterator[Fact]:
    flags = [name for name in topics.fields(DETECTOR) if name.startswith(FAILURE)]
    if raised := topics.rises(DETECTOR, flags):
        failures = {name.removeprefix(FAILURE).replace("_", " "): at for name, at in raised.items()}
        text = ", ".join(f"{name} at {since_start(at, topics.log)}" for name, at in failures.items())
        yield Fact(
            "failures",
            "detected failures",
            list(failures),
            text,
            level=ERROR,
            note=f"{DETECTOR}.{FAILURE}*",
            times=tuple(raised.values()),
        )


def _hard_faults(topics: Topics) -> Iterator[Fact]:
    """Yield the reports of crashes of the processor that the autopilot appended to the log after a restart."""
    names = [name for name in topics.log.attachments if name.startswith(HARD_FAULT)]
    if names:
        reports = "1 report" if len(names) == 1 else f"{len(names)} reports"
        text = (
            f"{reports} of a crash of the processor: {', '.join(names[:4])}{' …' if len(names) > 4 else ''}"
        )
        yield Fact(
            "hard_faults", "hard faults", names, text, level=ERROR, note="'logreel attachments' has them"
        )


def _load(topics: Topics) -> Iterator[Fact]:
    samples = topics.first("cpuload", "load")
    if samples is None:
        return
    values = samples.values["load"].astype(np.float64)
    values = values[np.isfinite(values)]
    if len(values):
        most, mean = float(values.max()), float(values.mean())
        yield Fact(
            "load",
            "processor load",
            {"mean": mean, "max": most},
            f"{mean:.0%} on average, {most:.0%} at most",
            level=WARNING if mean > BUSY else None,
            note="cpuload.load",
        )


def _dropouts(topics: Topics) -> Iterator[Fact]:
    samples = topics.first("~dropout", "duration")
    if samples is not None:
        lost = samples.values["duration"].astype(np.int64) * NS_PER_MS
        yield Fact(
            "dropouts",
            "dropouts",
            {"count": len(lost), "ns": int(lost.sum()), "longest_ns": int(lost.max())},
            f"{len(lost)}, {duration_text(int(lost.sum()))} in all, the longest {duration_text(int(lost.max()))}",
            level=WARNING,
            note="dropouts of the logger",
            times=tuple(samples.time.tolist()),
        )
    elif topics.log.start is not None:
        yield Fact("dropouts", "dropouts", {"count": 0, "ns": 0, "longest_ns": 0}, "none")
