"""Batteries and power supply."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.io.arrays import F64
from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, since_start

#: ``warning`` of ``battery_status``: the states that need attention, and their syslog level.
WARNINGS = {1: ("low", WARNING), 2: ("critical", ERROR), 3: ("emergency", ERROR), 4: ("failed", ERROR)}


#: Voltage below which no battery is connected, V; monitors without one report some hundredths.
LEAST_VOLTAGE = 1.0


def power(topics: Topics) -> Section:
    """Return voltage, charge, current and warnings of each battery."""
    names = [
        name
        for name in topics.instances("battery_status", "voltage_v")
        if np.any(topics.columns(topics.log[name], "voltage_v").values["voltage_v"] >= LEAST_VOLTAGE)
    ]
    if not names and topics.instances("battery_status", "voltage_v"):
        text = f"not measured: below {LEAST_VOLTAGE:.0f} V throughout"
        return Section(
            "power", "Power", (Fact("battery", "battery", None, text, note="battery_status.voltage_v"),)
        )
    facts = [
        fact
        for number, name in enumerate(names, 1)
        for fact in _battery(topics, name, "battery" if len(names) == 1 else f"battery {number}")
    ]
    return Section("power", "Power", tuple(facts))


def _battery(topics: Topics, name: str, label: str) -> Iterator[Fact]:
    key = label.replace(" ", "_")

    def field(path: str) -> F64 | None:
        found = topics.first(name, path)
        return None if found is None else np.asarray(found.values[path], np.float64)

    measured = topics.columns(topics.log[name], "voltage_v")
    times, voltage = measured.time, np.asarray(measured.values["voltage_v"], np.float64)
    known = np.flatnonzero(voltage >= LEAST_VOLTAGE)
    first, last, least = known[0], known[-1], known[np.argmin(voltage[known])]
    cells = field("cell_count")
    count = int(cells.max()) if cells is not None else 0
    per_cell = f", {voltage[least] / count:.2f} V a cell" if 0 < count < 100 else ""
    yield Fact(
        f"{key}_voltage",
        f"{label}",
        {"start": float(voltage[first]), "end": float(voltage[last]), "min": float(voltage[least])},
        f"{voltage[first]:.2f} V to {voltage[last]:.2f} V; least {voltage[least]:.2f} V{per_cell}"
        f" at {since_start(int(times[least]), topics.log)}",
        "V",
        note=f"{name}.voltage_v",
    )
    if 0 < count < 100:
        yield Fact(f"{key}_cells", "cells", count, str(count), note=f"{name}.cell_count")
    remaining = field("remaining")
    if remaining is not None and len(shown := remaining[(remaining >= 0) & (remaining <= 1)]):
        yield Fact(
            f"{key}_remaining",
            "charge",
            {"start": float(shown[0]), "end": float(shown[-1])},
            f"{shown[0]:.0%} to {shown[-1]:.0%}",
            note=f"{name}.remaining",
        )
    used = field("discharged_mah")
    if used is not None and len(used := used[np.isfinite(used) & (used >= 0)]) and used.max() > 0:
        spent = float(used.max() - used[0])
        yield Fact(f"{key}_used", "used", spent, f"{spent:.0f} mAh", "mAh", note=f"{name}.discharged_mah")
    current = field("current_a")
    if current is not None and len(current := current[np.isfinite(current) & (current > 0)]):
        yield Fact(
            f"{key}_current",
            "current",
            {"max": float(current.max()), "mean": float(current.mean())},
            f"{current.max():.1f} A at most, {current.mean():.1f} A on average",
            "A",
            note=f"{name}.current_a",
        )
    warning = field("warning")
    if warning is not None:
        for state, (text, level) in sorted(WARNINGS.items(), reverse=True):
            if len(rows := np.flatnonzero(warning == state)):
                at = since_start(int(times[rows[0]]), topics.log)
                yield Fact(
                    f"{key}_warning",
                    "warning",
                    text,
                    f"{text} from {at} on",
                    level=level,
                    note=f"{name}.warning",
                )
                break
