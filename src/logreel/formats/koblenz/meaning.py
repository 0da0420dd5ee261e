"""What happened in a drive: how the car moved by its own instruments, and pictures that are missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses.facts import WARNING, Fact, Section, Topics
from logreel.log.log import Log
from logreel.log.times import duration_text

INSTRUMENTS = "OBDDataM"
#: Fields of the instruments, with names for people and units.
SPEED, ENGINE = ("speed", "speed", "km/h"), ("rpm", "engine", "1/min")
PICTURES = "ImageM"


def meaning(log: Log) -> Iterator[Section]:
    """Yield the sections of the summary of a Koblenz sensor log that lenses cannot give."""
    topics = Topics(log)
    yield Section("car", "Car", tuple(_car(topics)))
    yield Section("pictures", "Pictures", tuple(_pictures(log)))


def _car(topics: Topics) -> Iterator[Fact]:
    """Yield speed and revolutions as the car's instruments show them."""
    names = [
        name for name in topics.log.channels if name.partition("@")[0] == INSTRUMENTS and topics.has(name)
    ]
    for name in names:
        of = f", {name}" if len(names) > 1 else ""
        for field, label, unit in (SPEED, ENGINE):
            if (samples := topics.first(name, field)) is not None:
                values = samples.values[field].astype(np.float64)
                values = values[np.isfinite(values)]
                if len(values):
                    most, mean = float(values.max()), float(values.mean())
                    yield Fact(
                        f"{label}{of}",
                        f"{label}{of}",
                        {"max": most, "mean": mean},
                        f"{most:.0f} {unit} at most, {mean:.0f} {unit} on average",
                        unit,
                        note=f"{name}.{field}",
                    )


def _pictures(log: Log) -> Iterator[Fact]:
    """Yield how many pictures each camera should have taken at its median rate, and how many are missing."""
    for ch in log.channels.values():
        if not ch.topic.startswith(PICTURES) or len(ch) < 3:
            continue
        steps = np.diff(np.sort(ch.times))
        period = float(np.median(steps))
        if period <= 0:
            continue
        missing = int(np.maximum(np.rint(steps / period) - 1, 0).sum())
        text = f"{len(ch)} pictures, one every {duration_text(int(period))}, "
        text += (
            f"{missing} missing, the longest pause {duration_text(int(steps.max()))}"
            if missing
            else "none missing"
        )
        yield Fact(
            ch.topic,
            ch.topic,
            {"count": len(ch), "missing": missing, "period_ns": int(period)},
            text,
            level=WARNING if missing else None,
            note="by the median of the periods",
        )
