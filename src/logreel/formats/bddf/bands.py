"""Events of the robot that last: bands of a BDDF log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from logreel.errors import LogError
from logreel.lenses.facts import Band

if TYPE_CHECKING:
    from logreel.log.log import Log

#: Type of the messages, and most of them that become bands.
EVENT, MOST = "bosdyn.api.Event", 500


def bands(log: Log) -> Iterator[Band]:
    """Yield the events of *log* that have a start and a later end, each after the end of the one before."""
    for ch in log.channels.values():
        if ch.schema.name != EVENT or not len(ch):
            continue
        try:
            table = ch.to_arrow(["type", "description", "start_time", "end_time"])
        except LogError:
            continue
        start, end = (
            table.column(n).to_numpy().astype("datetime64[ns]").astype(np.int64)
            for n in ("start_time", "end_time")
        )
        kinds, texts = (table.column(name).to_pylist() for name in ("type", "description"))
        last = -(2**63)
        for row in np.argsort(start, kind="stable")[:MOST].tolist():
            # A time of 0 means that it is unknown.
            if 0 < start[row] < end[row] and start[row] >= last:
                last = int(end[row])
                label = ": ".join(text for text in (kinds[row], texts[row]) if text)
                yield Band(int(start[row]), last, label or "event", "event", ch.topic)
