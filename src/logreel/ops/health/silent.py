"""Sensors that stop before the end of the log."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.lenses.detection import Detection, Detector, NotAssessed
from logreel.lenses.meaning import since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text
from logreel.meaning.charts import bands
from logreel.ops.health.sensors import regular, severity_of

#: A sensor is silent if its last message comes this long before the end, and this number of periods.
LEAST_NS, PERIODS = 2 * SECOND, 20
#: Kinds of bands of a log that are a flight or drive, with which topics may end.
FLIGHT = ("armed", "air")


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each steady channel that ends long before the log."""
    looked = False
    end = log.end or 0
    # Estimates and wanted values come while the robot is armed or in the air, and end with that.
    ended = [band.end for band in bands(log) if band.kind in FLIGHT and band.end < end]
    for ch, times, period in regular(log):
        looked = True
        last = int(times[-1])
        bound = max(LEAST_NS, PERIODS * period)
        if end - last > bound:
            severity = severity_of(ch, "error")
            stops_with_flight = any(abs(last - time) <= max(SECOND, 2 * period) for time in ended)
            if stops_with_flight and severity == "note":
                continue
            yield Detection(
                f"{ch.topic} ends with the flight at {since_start(last, log)}"
                if stops_with_flight
                else f"{ch.topic} is silent from {since_start(last, log)} to the end, {duration_text(end - last)}",
                "note" if stops_with_flight else severity,
                last,
                end,
                (ch.topic,),
                {"silent_ns": end - last, "period_ns": period},
                f"{PERIODS} periods and {duration_text(LEAST_NS)}",
                "logreel",
            )
    if not looked:
        yield NotAssessed("no channel has a steady rate")


SILENT = Detector(
    "silent-sensor",
    f"channels with a steady rate that end {PERIODS} periods and {duration_text(LEAST_NS)} before the log,"
    " and not with the flight",
    detect,
)
