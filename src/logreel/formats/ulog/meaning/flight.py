"""The flight: armed, take-offs, modes, distance, height, speed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.base import F64, Columns
from logreel.lenses.charts import Band
from logreel.lenses.meaning import Fact, Section, Topics, inside, since_start, total
from logreel.log.log import Log
from logreel.log.times import duration_text

POSITION = "vehicle_local_position"


def flight(topics: Topics, phases: Phases) -> Section:
    """Return when the vehicle was armed and in the air, in which modes, and how far, high and fast it moved."""
    return Section("flight", "Flight", (*_times(topics, phases), *_modes(phases), *_motion(topics, phases)))


def _times(topics: Topics, phases: Phases) -> Iterator[Fact]:
    log = topics.log
    if not phases.armed:
        if topics.has("vehicle_status", "arming_state") or topics.has("actuator_armed", "armed"):
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
    found = topics.first(POSITION, "x", "y", "z", "xy_valid", "z_valid")
    if found is None:
        return
    moving = inside(found.time, phases.moving) if phases.moving else np.ones(len(found.time), bool)
    note = "vehicle_local_position, " + (
        "in the air" if phases.air else "armed" if phases.armed else "whole log"
    )
    level = moving & (found.values["xy_valid"] != 0)
    steps = steps_between(topics, found, level)
    if len(steps):
        yield Fact("distance", "distance", float(steps.sum()), f"{steps.sum():.0f} m", "m", note=note)
    upright = moving & (found.values["z_valid"] != 0)
    if upright.any():
        height = -found.values["z"][upright].astype(np.float64)
        height = height[np.isfinite(height)]
        if len(height):
            gain = float(height.max() - height.min())
            yield Fact("height", "height gained", gain, f"{gain:.1f} m", "m", note=note)
    yield from _speeds(topics, moving, note)


def steps_between(topics: Topics, found: Columns, valid: NDArray[np.bool_]) -> F64:
    """Return the horizontal distances in m between messages that follow each other, without jumps of the estimate."""
    both = valid[1:] & valid[:-1]
    if topics.has(POSITION, "xy_reset_counter"):
        resets = topics.columns(topics.log[POSITION], "xy_reset_counter").values["xy_reset_counter"]
        both &= resets[1:] == resets[:-1]
    x, y = (np.diff(found.values[axis].astype(np.float64)) for axis in "xy")
    steps = np.hypot(x, y)[both]
    return steps[np.isfinite(steps)]


def _speeds(topics: Topics, moving: NDArray[np.bool_], note: str) -> Iterator[Fact]:
    found = topics.first(POSITION, "vx", "vy", "vz", "v_xy_valid", "v_z_valid")
    if found is None:
        return
    values = {name: found.values[name].astype(np.float64) for name in ("vx", "vy", "vz")}
    level = np.hypot(values["vx"], values["vy"])[moving & (found.values["v_xy_valid"] != 0)]
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
    upright = -values["vz"][moving & (found.values["v_z_valid"] != 0)]
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
