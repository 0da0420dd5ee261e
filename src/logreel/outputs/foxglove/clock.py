"""The clock of times for other tools: UTC if it is known, unless chosen otherwise."""

from __future__ import annotations

from logreel.errors import UsageError

UTC, LOG = "utc", "log"


def checked_clock(clock: str | None) -> str | None:
    """Return *clock* if it is ``utc``, ``log`` or None; raises UsageError for other values."""
    if clock not in (None, UTC, LOG):
        raise UsageError(f"there is no clock {clock!r}: times are of the clock 'utc' or 'log'")
    return clock


def offset_for(clock: str | None, utc_offset: int | None, name: str) -> int:
    """Return ns to add to times of a log for *clock*; None: UTC if it is known.

    utc_offset  ns to add for UTC, 0 for logs with Unix time; None: unknown
    name        of the log, for the error

    Raises UsageError if *clock* is ``utc`` and UTC is not known.
    """
    if clock == UTC and utc_offset is None:
        text = "does not tell how its clock relates to UTC: take the clock 'log'"
        raise UsageError(text, path=name)
    return 0 if clock == LOG else utc_offset or 0
