"""The message of a channel at a moment, without reading the times of all messages of a large channel."""

from __future__ import annotations

import numpy as np

from logreel.log.log import Channel

#: Channels with more messages than this are searched by bisection.
FEW = 1 << 20


def row_at(ch: Channel, time: int) -> int | None:
    """Return the row of the latest message of *ch* with a time <= *time* (ns); None if there is none.

    A large channel is searched by bisection, which needs times in order: otherwise it may return another row with
    such a time.
    """
    index, number, n = ch.log.index, ch.number, len(ch)
    if n <= FEW or index.has_times(number):
        times = index.times(number)
        if np.all(times[1:] >= times[:-1]):
            row = int(times.searchsorted(time, side="right")) - 1
            return row if row >= 0 else None
        earlier = np.flatnonzero(times <= time)
        return int(earlier[np.argmax(times[earlier])]) if len(earlier) else None
    # All rows before lo are not later than the time, the one at hi and those behind it are.
    lo, hi = 0, n
    while lo < hi:
        step = np.unique(np.linspace(lo, hi - 1, 64).astype(np.int64))
        later = np.flatnonzero(index.times_at(number, step) > time)
        k = int(later[0]) if len(later) else len(step)
        lo, hi = (int(step[k - 1]) + 1 if k else lo), (int(step[k]) if k < len(step) else hi)
    return lo - 1 if lo else None
