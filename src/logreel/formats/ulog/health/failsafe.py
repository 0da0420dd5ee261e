"""Failsafes that were active."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, since_start
from logreel.log.log import Log
from logreel.log.times import duration_text


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
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
        )


FAILSAFE = Detector("failsafe", "the failsafe flag of the vehicle's state", detect)
