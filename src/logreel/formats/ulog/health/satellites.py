"""Interference with satellite navigation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.satellites import FIX_3D, RECEIVERS
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

#: Least values of ``jamming_state`` and ``spoofing_state`` that are a warning; and of the indicator, of 255.
STATE, INDICATOR = 2, 80
_SOURCES = {
    "jamming_state": "PX4 sensor_gps: 1 is OK",
    "spoofing_state": "PX4 sensor_gps: 1 is OK",
    "jamming_indicator": "PX4 guide, flight review: about 40 is normal",
}


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for jamming, spoofing, and a fix that was lost; without any fix, nothing can be lost."""
    topics = Topics(log)
    name = next((name for name in RECEIVERS if topics.has(name, "fix_type")), None)
    if name is None:
        yield NotAssessed("the log has no messages of a receiver")
        return
    for field, word, least in (
        ("jamming_state", "jamming", STATE),
        ("spoofing_state", "spoofing", STATE),
        ("jamming_indicator", "jamming", INDICATOR),
    ):
        if (found := topics.first(name, field)) is None:
            continue
        values = found.values[field]
        for start, end in runs(found.time, values >= least, 5 * SECOND):
            worst = int(values[(found.time >= start) & (found.time <= end)].max())
            yield Detection(
                f"{word}: {field} is {worst} at {since_start(start, log)}, for {duration_text(end - start)}",
                "warn",
                start,
                end,
                (name,),
                {field: worst},
                f"{field} of {least}",
                _SOURCES[field],
            )
    fix = topics.columns(log[name], "fix_type")
    kinds = fix.values["fix_type"]
    if not (kinds >= FIX_3D).any():
        best = int(kinds.max())
        yield NotAssessed(f"{name} never has a 3D fix (fix_type at most {best}), so none can be lost")
        return
    had = np.maximum.accumulate(kinds >= FIX_3D)
    for start, end in runs(fix.time, had & (kinds < FIX_3D), SECOND):
        yield Detection(
            f"the fix is lost at {since_start(start, log)}, for {duration_text(end - start)}",
            "error",
            start,
            end,
            (name,),
            {"fix_type": int(kinds[(fix.time >= start) & (fix.time <= end)].min())},
            "fix_type of 3 after the first fix",
            "MAVLink GPS_FIX_TYPE",
        )


INTERFERENCE = Detector(
    "gnss-interference", "jamming and spoofing that a receiver reports, and fixes that are lost", detect
)
