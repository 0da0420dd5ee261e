"""Failsafes, failure detection, load of the processor, and what the logger lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, since_start, total
from logreel.log.times import duration_text

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
        yield Fact("conditions", "failed in flight", list(raised), text, level=WARNING, note=note)


def _failures(topics: Topics) -> Iterator[Fact]:
    flags = [name for name in topics.fields(DETECTOR) if name.startswith(FAILURE)]
    if raised := topics.rises(DETECTOR, flags):
        failures = {name.removeprefix(FAILURE).replace("_", " "): at for name, at in raised.items()}
        text = ", ".join(f"{name} at {since_start(at, topics.log)}" for name, at in failures.items())
        yield Fact(
            "failures", "detected failures", list(failures), text, level=ERROR, note=f"{DETECTOR}.{FAILURE}*"
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
    found = topics.first("cpuload", "load")
    if found is None:
        return
    values = found.values["load"].astype(np.float64)
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
    found = topics.first("~dropout", "duration")
    if found is not None:
        lost = found.values["duration"].astype(np.int64) * NS_PER_MS
        yield Fact(
            "dropouts",
            "dropouts",
            {"count": len(lost), "ns": int(lost.sum()), "longest_ns": int(lost.max())},
            f"{len(lost)}, {duration_text(int(lost.sum()))} in all, the longest {duration_text(int(lost.max()))}",
            level=WARNING,
            note="dropouts of the logger",
        )
    elif topics.log.start is not None:
        yield Fact("dropouts", "dropouts", {"count": 0, "ns": 0, "longest_ns": 0}, "none")
