"""Moments at which two runs are laid over each other: their start, their arming, or their time in UTC."""

from __future__ import annotations

from typing import Literal

from logreel.errors import UsageError
from logreel.log.log import Log
from logreel.log.times import utc_shift
from logreel.meaning.charts import bands

Align = Literal["start", "arming", "utc"]
ALIGNMENTS: tuple[Align, ...] = ("start", "arming", "utc")


def armed_at(log: Log) -> int | None:
    """Return when the vehicle was armed first, ns of the log's clock; None if the log does not tell."""
    return next((band.start for band in bands(log) if band.kind == "armed"), None)


def anchor(log: Log, align: Align) -> int:
    """Return the moment of a log (ns of its clock) that is laid over that of another one.

    Raises UsageError for a log that does not tell it, and for an unknown *align*.
    """
    if align == "start":
        return log.start or 0
    if align == "arming":
        armed = armed_at(log)
        if armed is None:
            raise UsageError(
                "the log does not tell when the vehicle was armed", path=log.name, hint="pass align=start"
            )
        return armed
    if align == "utc":
        shift = utc_shift(log)
        if shift is None:
            raise UsageError(
                "the log does not tell how its clock relates to UTC", path=log.name, hint="pass align=start"
            )
        return -shift
    raise UsageError(f"align is one of {', '.join(ALIGNMENTS)}, not {align!r}")


def shared_anchor(a: Log, b: Log) -> Align:
    """Return ``arming`` for two logs that tell it, else ``start``."""
    return "start" if armed_at(a) is None or armed_at(b) is None else "arming"
