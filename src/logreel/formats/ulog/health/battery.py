"""Brown-outs: batteries that break down, supplies that sink, and logs that end in the air."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, inside, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

#: Volts of a cell below which a lithium polymer battery is empty, and volts of the 5 V supply that are too low.
CELL, SUPPLY = 3.3, 4.7
#: Volts below which nothing is connected.
NOTHING = 1.0


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for low cells, a low supply, and a log that ends while the vehicle is in the air."""
    topics, phases = Topics(log), Phases.of(log)
    looked = False
    for name in topics.instances("battery_status", "voltage_v", "cell_count"):
        found = topics.columns(log[name], "voltage_v", "cell_count")
        volts, cells = (np.asarray(found.values[field], np.float64) for field in ("voltage_v", "cell_count"))
        known = (cells > 0) & (volts > NOTHING)
        if not known.any():
            continue
        looked = True
        low = known & (volts < CELL * cells)
        for start, end in runs(found.time, low, 2 * SECOND):
            worst = float((volts / np.maximum(cells, 1))[(found.time >= start) & (found.time <= end)].min())
            yield Detection(
                f"{name}: {worst:.2f} V a cell at {since_start(start, log)}, for {duration_text(end - start)}",
                "error",
                start,
                end,
                (name,),
                {"volts_per_cell": worst},
                f"{CELL} V a cell",
                "discharge limit of lithium polymer cells under load",
            )
    yield from _not_measured(log, topics, phases)
    supply = topics.first("system_power", "voltage5v_v") or topics.first("system_power", "voltage5V_v")
    if supply is not None:
        volts = next(iter(supply.values.values())).astype(np.float64)
        if (volts > NOTHING).any():
            looked = True
            for start, end in runs(supply.time, (volts < SUPPLY) & (volts > NOTHING), 2 * SECOND):
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
                )
    landed = topics.first("vehicle_land_detected", "landed")
    if landed is not None and log.end is not None:
        looked = True
        flying = (
            inside(np.array([log.end - 1]), phases.air)[0]
            and inside(np.array([log.end - 1]), phases.armed)[0]
        )
        if flying:
            yield Detection(
                "the log ends while the vehicle is armed and in the air: it lost its power, or the log was cut",
                "warn",
                log.end,
                log.end,
                ("vehicle_land_detected",),
                {"in_air_since_ns": phases.air[-1].start},
                "landed before the end",
                "a loss of power ends a log so",
            )
    if not looked:
        yield NotAssessed("the log has no battery voltage, supply voltage or landing detection")


def _not_measured(log: Log, topics: Topics, phases: Phases) -> Iterator[Detection]:
    """Yield a detection if no battery has a voltage while the vehicle is in the air."""
    names = topics.instances("battery_status", "voltage_v")
    volts = [topics.columns(log[name], "voltage_v") for name in names]
    if not phases.air or not volts:
        return
    most = max(
        float(np.max(found.values["voltage_v"][inside(found.time, phases.air)], initial=0)) for found in volts
    )
    if most < NOTHING:
        yield Detection(
            f"no battery is measured in the air: {most:.2f} V at most",
            "error",
            phases.air[0].start,
            phases.air[-1].end,
            tuple(names),
            {"volts": most},
            f"{NOTHING} V",
            "no low-battery warning or failsafe can work",
        )


BROWN_OUT = Detector(
    "brown-out", f"cells below {CELL} V, the 5 V supply below {SUPPLY} V, a log that ends in the air", detect
)
