"""The time index of a Koblenz log: for each second the position from which it can be read."""

from __future__ import annotations

import numpy as np

from logreel.errors import Problem
from logreel.formats.koblenz.records import read_head
from logreel.formats.koblenz.variant import Variant
from logreel.io.arrays import I64
from logreel.io.source import Source

#: Entries of an index, about 18 hours: one absurd stamp must not make an index larger than the log.
MAX_ENTRIES = 1 << 16
#: An entry may point to a message this much before its second, in ms.
SLACK_MS = 1.0
NS_PER_S = 10**9


def seconds_between(first: int, last: int) -> int:
    """Return the number of index entries of a log from *first*, the time of its first message, to *last* (ns)."""
    return min(max(0, last - first) // NS_PER_S + 1, MAX_ENTRIES)


def is_complete(entries: I64, seconds: int) -> bool:
    """Return whether an index has an entry for each of *seconds*; whether the last one has an entry is left open."""
    return len(entries) >= max(seconds - 1, min(seconds, 1))


def wrong_entries(source: Source, variant: Variant) -> list[Problem]:
    """Return a problem ``index`` if entries do not point to a message of their second."""
    entries, wrong = variant.entries[:MAX_ENTRIES].tolist(), []
    first = read_head(source, variant.first)
    for second, entry in enumerate(entries):
        head = read_head(source, entry) if entry >= 0 else None
        good = head is not None and head.mark == variant.mark and head.is_plausible(variant.size_reading)
        if not good or (head and first and head.ms < first.ms + 1000 * second - SLACK_MS):
            wrong.append(second)
    if not wrong:
        return []
    text = f"{len(wrong)} of {len(entries)} index entries do not point to the message of their second"
    return [Problem("index", 12 + 8 * wrong[0], 8, False, text)]


class TimeIndexBuilder:
    """Collects for each second, counted from the first message, the first message at or after it."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._latest = 0
        self._offsets: list[I64] = []
        self._count = 0

    def add(self, time: I64, offset: I64) -> None:
        """Add the next messages of the file: their times in ns and the positions where they begin."""
        if not len(time):
            return
        if self._first is None:
            self._first = self._latest = int(time[0])
        latest = np.maximum(np.maximum.accumulate(time), self._latest)
        self._latest = int(latest[-1])
        count = seconds_between(self._first, self._latest)
        due = self._first + NS_PER_S * np.arange(self._count, count, dtype=np.int64)
        self._offsets.append(offset[latest.searchsorted(due)])
        self._count = count

    @property
    def offsets(self) -> I64:
        """int64[n]: for each second the position of the first message to read."""
        return np.concatenate([np.zeros(0, np.int64), *self._offsets])
