"""The estimator: rejected measurements, resets, faults."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.lenses.facts import ERROR, WARNING, Fact, Section, Topics, since_start

STATUS = "estimator_status"
#: Ratios of innovation and gate: measurements above 1 are rejected.
RATIOS = {
    "vel_test_ratio": "velocity",
    "pos_test_ratio": "position",
    "hgt_test_ratio": "height",
    "mag_test_ratio": "magnetometer",
    "hdg_test_ratio": "heading",
    "tas_test_ratio": "airspeed",
    "hagl_test_ratio": "height above ground",
    "beta_test_ratio": "sideslip",
}
#: Counters of jumps of the estimate, in ``vehicle_local_position``.
RESETS = {
    "xy_reset_counter": "position",
    "z_reset_counter": "height",
    "vxy_reset_counter": "velocity",
    "vz_reset_counter": "vertical velocity",
    "heading_reset_counter": "heading",
}
#: The topic of the flags, and how the names of faults begin.
FLAGS, FAULT = "estimator_status_flags", "fs_"
COUNTER = 256


def estimator(topics: Topics) -> Section:
    """Return what went wrong in the estimation of attitude and position."""
    return Section(
        "estimator", "Estimator", (*_rejected(topics), *_flags(topics), *_resets(topics), *_faults(topics))
    )


def _rejected(topics: Topics) -> Iterator[Fact]:
    present = [name for name in RATIOS if topics.has(STATUS, name)]
    if not present:
        return
    shares = {}
    firsts = {}
    for name in present:
        found = topics.columns(topics.log[STATUS], name)
        over = found.values[name] > 1
        if over.any():
            shares[RATIOS[name]] = float(over.mean())
            firsts[RATIOS[name]] = int(found.time[np.argmax(over)])
    if not shares:
        yield Fact("rejected", "rejected", {}, "no measurement", note=f"{STATUS}.*_test_ratio > 1")
        return
    text = ", ".join(
        f"{name} {share:.1%} of the time from {since_start(firsts[name], topics.log)} on"
        for name, share in shares.items()
    )
    yield Fact("rejected", "rejected", shares, text, level=WARNING, note=f"{STATUS}.*_test_ratio > 1")


def _flags(topics: Topics) -> Iterator[Fact]:
    flags = [field for field in topics.fields(FLAGS) if field.startswith(FAULT)]
    if raised := topics.rises(FLAGS, flags):
        faults = {name.removeprefix(FAULT).replace("_", " "): at for name, at in raised.items()}
        text = ", ".join(f"{name} from {since_start(at, topics.log)} on" for name, at in faults.items())
        yield Fact("faults", "faults", list(faults), text, level=ERROR, note=f"{FLAGS}.{FAULT}*")


def _resets(topics: Topics) -> Iterator[Fact]:
    name = "vehicle_local_position"
    counts = {}
    for field, label in RESETS.items():
        if (found := topics.first(name, field)) is not None:
            steps = np.mod(np.diff(found.values[field].astype(np.int64)), COUNTER)
            if steps.any():
                counts[label] = int(steps.sum())
    if counts:
        text = ", ".join(f"{label} {count} x" for label, count in counts.items())
        yield Fact("resets", "resets", counts, text, note=f"{name}.*_reset_counter")


def _faults(topics: Topics) -> Iterator[Fact]:
    found = topics.first(STATUS, "filter_fault_flags")
    if found is None or topics.has(FLAGS):
        return
    flags = found.values["filter_fault_flags"]
    if (on := flags != 0).any():
        at = since_start(int(found.time[np.argmax(on)]), topics.log)
        value = int(np.bitwise_or.reduce(flags.astype(np.int64)))
        yield Fact(
            "faults",
            "faults",
            value,
            f"flags {value:#x} from {at} on",
            level=ERROR,
            note=f"{STATUS}.filter_fault_flags",
        )
