"""Logs with shifted clocks."""

from __future__ import annotations

from dataclasses import replace

from logreel.log.log import Log


def shift_clock(log: Log, shift: int) -> Log:
    """Return *log* with *shift* ns added to start and end, and to the times of parameters and attachments.

    ``utc_offset`` is reduced by *shift*; if it becomes 0, the epoch becomes ``unix``. Messages keep their times: their
    writer adds the shift.
    """
    if not shift:
        return log
    moved = Log.__new__(Log)
    vars(moved).update(vars(log))
    # Cached properties: the values stored here are the ones returned.
    vars(moved)["_bounds"] = tuple(None if time is None else time + shift for time in (log.start, log.end))
    vars(moved)["parameters"] = {
        name: replace(one, changes=tuple(replace(c, time=c.time + shift) for c in one.changes))
        for name, one in log.parameters.items()
    }
    vars(moved)["attachments"] = {
        name: one if one.time is None else replace(one, time=one.time + shift)
        for name, one in log.attachments.items()
    }
    if log.utc_offset is not None:
        vars(moved)["utc_offset"] = log.utc_offset - shift
        moved.epoch = log.epoch if log.utc_offset != shift else "unix"
    return moved
