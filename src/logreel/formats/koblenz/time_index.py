"""The index of a Koblenz log: where each of its seconds can be read from."""

from __future__ import annotations

import numpy as np

from logreel.io.arrays import I64

#: Seconds that an index has entries for, about 18 hours: one absurd stamp must not make an index larger than the log.
MOST = 1 << 16
SECOND = 10**9


def seconds_between(first: int, last: int) -> int:
    """Entries of the index of a log whose first message has the time *first* and that lasts until *last* (ns)."""
    return min(max(0, last - first) // SECOND + 1, MOST)


class Seconds:
    """Finds the first message that is as late as each second, counted from the first message of the file."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._latest = 0
        self._places: list[I64] = []
        self._count = 0

    def add(self, time: I64, place: I64) -> None:
        """The next messages of the file: their times in ns and where they begin."""
        if not len(time):
            return
        if self._first is None:
            self._first = self._latest = int(time[0])
        latest = np.maximum(np.maximum.accumulate(time), self._latest)
        self._latest = int(latest[-1])
        count = seconds_between(self._first, self._latest)
        due = self._first + SECOND * np.arange(self._count, count, dtype=np.int64)
        self._places.append(place[latest.searchsorted(due)])
        self._count = count

    @property
    def places(self) -> I64:
        """int64[n]: where a message begins from which each second can be read."""
        return np.concatenate([np.zeros(0, np.int64), *self._places])
