"""Findings of ``verify`` that only Koblenz logs have."""

from __future__ import annotations

from logreel.errors import Finding


def verify(entries: int, seconds: int, is_complete: bool) -> list[Finding]:
    """Return a finding ``index`` if the time index is not complete.

    entries  number of entries that the index has
    seconds  number of seconds of the log
    """
    if is_complete:
        return []
    text = (
        f"the index has {entries} entries for a log of {seconds} seconds; recover makes a new one"
        if entries
        else "the index is empty; recover makes one"
    )
    return [Finding("index", "warn", 8, 4, text)]
