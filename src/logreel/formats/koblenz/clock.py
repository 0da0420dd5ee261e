"""Times: milliseconds since the recorder started, and what fixes tell of UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import TIME_MAX
from logreel.index.gather import gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.chunks import FILE

NS_PER_MS = 1e6
#: Intervals of time end before their last moment, which is no time therefore.
LATEST = TIME_MAX - 1
#: From the payload back to the time in the header.
STAMP = -8
#: A stamp counts for the bounds of a log if another one is this near.
SUPPORT_NS = 600 * 10**9
#: Seen of each channel, at both ends.
FEW = 2

_FIX = np.dtype(
    [
        ("hour", "<i4"),
        ("minute", "<i4"),
        ("second", "<i4"),
        ("warning", "<i4"),
        ("", "V24"),
        ("day", "<i4"),
        ("month", "<i4"),
        ("year", "<i4"),
        ("quality", "<i4"),
    ]
)


def to_ns(ms: NDArray[np.float64]) -> I64:
    """int64[n]: ns; a stamp that is no number gets that of the message before, too great ones the limit."""
    bad = np.isnan(ms)
    if bad.any():
        at = np.maximum.accumulate(np.where(bad, 0, np.arange(len(ms))))
        ms = ms[at]
        ms[np.isnan(ms)] = 0
    # Beyond the limit, but not beyond what floats hold.
    ns = np.rint(np.clip(ms, -1e13, 1e13) * NS_PER_MS)
    # The greatest float below the limit is 1024 smaller.
    far = np.abs(ns) >= float(LATEST)
    out = np.where(far, 0, ns).astype(np.int64)
    out[far] = np.where(ns[far] > 0, LATEST, -LATEST)
    return out


def stamps(index: MessageIndex, offset: I64) -> I64:
    """int64[n]: ns of messages whose payloads begin at *offset*."""
    return to_ns(gather_bytes(index.chunks[FILE], offset, 8, STAMP).view(np.float64)[:, 0])


def bounds(index: MessageIndex) -> tuple[int | None, int | None]:
    """First and last time of a log by a few messages of each channel; one absurd stamp does not count."""
    b, seen = index.blocks, []
    for channel in range(len(index.rules)):
        ends = np.cumsum(b.start[:, channel + 1] - b.start[:, channel])
        n = int(ends[-1]) if len(ends) else 0
        for row in {*range(min(FEW, n)), *range(max(0, n - FEW), n)}:
            i = int(ends.searchsorted(row, side="right"))
            entry = int(b.start[i, channel + 1]) - (int(ends[i]) - row)
            seen.append(int(b.base[i]) + int(b.entry[entry]))
    times = np.sort(stamps(index, np.array(sorted(seen), np.int64)))
    if not len(times):
        return None, None
    # As numbers of Python: differences of extreme ones do not fit.
    known = times.tolist()
    near = [
        t
        for t, *others in zip(known, [None, *known[:-1]], [*known[1:], None], strict=True)
        if any(o is not None and abs(t - o) <= SUPPORT_NS for o in others)
    ]
    near = near or known
    return near[0], near[-1]


def utc_offset(index: MessageIndex, channel: int) -> int | None:
    """ns to add to get UTC, by the fixes of *channel*: the lower median of all that are valid and have a date."""
    offset = index.offsets(channel)
    rows = gather_bytes(index.chunks[FILE], offset, _FIX.itemsize).view(_FIX)[:, 0]
    valid = (rows["warning"] == 0) & (rows["quality"] > 0)
    times = index.times(channel)
    found = [
        utc - int(times[i])
        for i in np.flatnonzero(valid).tolist()
        if (
            utc := _utc(
                *(int(rows[name][i]) for name in ("year", "month", "day", "hour", "minute", "second"))
            )
        )
    ]
    return median_low(found) if found else None


def _utc(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    """ns since 1970, or None for what is no date."""
    if 0 <= year < 100:
        year += 2000 if year < 80 else 1900
    try:
        # A leap second is the first one of the next minute.
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return (int(moment.timestamp()) + (second == 60)) * 10**9 if moment.year >= 1980 else None
