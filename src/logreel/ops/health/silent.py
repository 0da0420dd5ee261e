"""Sensors that stop before the end of the log."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.lenses.detection import Detection, Detector, NotAssessed
from logreel.lenses.meaning import since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text
from logreel.ops.health.sensors import regular, severity_of

#: A sensor is silent if its last message comes this long before the end, and this number of periods.
LEAST_NS, PERIODS = 2 * SECOND, 20


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each steady channel that ends long before the log."""
    looked = False
    end = log.end or 0
    for ch, times, period in regular(log):
        looked = True
        last = int(times[-1])
        bound = max(LEAST_NS, PERIODS * period)
        if end - last > bound:
            yield Detection(
                f"{ch.topic} is silent from {since_start(last, log)} to the end, {duration_text(end - last)}",
                severity_of(ch, "error"),
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
    f"channels with a steady rate that end {PERIODS} periods and {duration_text(LEAST_NS)} before the log",
    detect,
)
