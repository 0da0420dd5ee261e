"""Satellite navigation: fix, satellites, accuracy, interference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, since_start

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
        if share and (found := topics.first(name, path)) is not None:
            values = found.values[path].astype(np.float64)[kinds >= FIX_3D]
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
        if (found := topics.first(name, path)) is None:
            continue
        for state, (text, level) in sorted(states.items(), reverse=True):
            if len(rows := np.flatnonzero(found.values[path] == state)):
                at = since_start(int(found.time[rows[0]]), topics.log)
                yield Fact(label, label, text, f"{text} from {at} on", level=level, note=f"{name}.{path}")
                break
    for path, label in (("jamming_indicator", "jamming indicator"), ("noise_per_ms", "noise per ms")):
        if (found := topics.first(name, path)) is not None and len(values := found.values[path]):
            most = int(values.max())
            if most > 0:
                yield Fact(path, label, most, f"{most} at most", note=f"{name}.{path}")
