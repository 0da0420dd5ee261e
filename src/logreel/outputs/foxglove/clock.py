"""Which clock times have that go to other tools: UTC where it is known, unless somebody wants another."""

from __future__ import annotations

from logreel.errors import UsageError

UTC, LOG = "utc", "log"


def checked_clock(clock: str | None) -> str | None:
    """*clock*, which is ``utc``, ``log`` or None; raises UsageError for anything else."""
    if clock not in (None, UTC, LOG):
        raise UsageError(f"there is no clock {clock!r}: times are of the clock 'utc' or 'log'")
    return clock


def offset_for(clock: str | None, utc_offset: int | None, name: str) -> int:
    """ns to add to times of a log for *clock*, None: UTC where it is known.

    utc_offset  ns to add to have UTC, 0 for a log whose times count from 1970; None where the log does not tell

    Raises UsageError, which names the log, where UTC is asked for and not known.
    """
    if clock == UTC and utc_offset is None:
        text = "does not tell how its clock relates to UTC: take the clock 'log'"
        raise UsageError(text, path=name)
    return 0 if clock == LOG else utc_offset or 0
