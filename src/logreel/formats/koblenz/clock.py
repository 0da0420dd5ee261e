"""Times in ms since the recorder started, and the UTC offset from GPS fixes."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from logreel.index.block_table import TIME_MAX
from logreel.index.channel_index import Rule
from logreel.index.gather import gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE

NS_PER_MS = 1e6
#: The greatest time: an interval that contains it needs a greater end.
LATEST = TIME_MAX - 1
#: Offset of the time in the header from the start of the payload.
STAMP = -8
#: A stamp counts for the bounds of a log if another one is within this distance.
SUPPORT_NS = 600 * 10**9
#: Number of messages at each end of a channel that ``bounds`` looks at.
EDGE_MESSAGES = 2

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
    """Return int64[n] ns; NaN becomes the time of the message before, too great times become the limit."""
    bad = np.isnan(ms)
    if bad.any():
        at = np.maximum.accumulate(np.where(bad, 0, np.arange(len(ms))))
        ms = ms[at]
        ms[np.isnan(ms)] = 0
    # Beyond the limit, but within the range of float64.
    ns = np.rint(np.clip(ms, -1e13, 1e13) * NS_PER_MS)
    # The greatest float64 below the limit is 1024 smaller.
    far = np.abs(ns) >= float(LATEST)
    out = np.where(far, 0, ns).astype(np.int64)
    out[far] = np.where(ns[far] > 0, LATEST, -LATEST)
    return out


def stamps(index: MessageIndex, offset: I64) -> I64:
    """Return int64[n] ns of messages whose payloads begin at *offset*."""
    return to_ns(_read(index, offset))


class StampTimes(Rule):
    """The times of messages: the stamps in their headers."""

    reads_messages = True

    def values(self, index: MessageIndex, channel: int, rows: I64 | None = None) -> I64:  # type: ignore[override]
        """Read the stamps of all messages, or of those at *rows*."""
        if rows is not None:
            ms = _read(index, index.locate(channel, rows)[1])
            # The time of a message without one is that of the message before.
            if not np.isnan(ms).any():
                return to_ns(ms)
        times = stamps(index, index.offsets(channel))
        return times if rows is None else times[rows]


def _read(index: MessageIndex, offset: I64) -> NDArray[np.float64]:
    return gather_bytes(index.chunks[FILE], offset, 8, STAMP).view(np.float64)[:, 0]


def bounds(index: MessageIndex) -> tuple[int | None, int | None]:
    """Return first and last time of a log from a few messages of each channel; a lone absurd stamp does not count."""
    b, seen = index.blocks, []
    for channel in range(len(index.rules)):
        ends = np.cumsum(b.start[:, channel + 1] - b.start[:, channel])
        n = int(ends[-1]) if len(ends) else 0
        for row in {*range(min(EDGE_MESSAGES, n)), *range(max(0, n - EDGE_MESSAGES), n)}:
            i = int(ends.searchsorted(row, side="right"))
            entry = int(b.start[i, channel + 1]) - (int(ends[i]) - row)
            seen.append(int(b.base[i]) + int(b.entry[entry]))
    times = np.sort(stamps(index, np.array(sorted(seen), np.int64)))
    if not len(times):
        return None, None
    # As Python integers: differences of extreme times do not fit 64 bits.
    known = times.tolist()
    near = [
        t
        for t, *others in zip(known, [None, *known[:-1]], [*known[1:], None], strict=True)
        if any(o is not None and abs(t - o) <= SUPPORT_NS for o in others)
    ]
    near = near or known
    return near[0], near[-1]


def utc_offset(index: MessageIndex, channel: int) -> int | None:
    """Return the UTC offset in ns from the fixes of *channel*: the lower median over all valid fixes with a date."""
    offset = index.offsets(channel)
    rows = gather_bytes(index.chunks[FILE], offset, _FIX.itemsize).view(_FIX)[:, 0]
    valid = (rows["warning"] == 0) & (rows["quality"] > 0)
    times = index.times(channel)
    offsets = [
        utc - int(times[i])
        for i in np.flatnonzero(valid).tolist()
        if (
            utc := _utc(
                *(int(rows[name][i]) for name in ("year", "month", "day", "hour", "minute", "second"))
            )
        )
    ]
    return median_low(offsets) if offsets else None


def _utc(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int | None:
    """Return ns since 1970, or None for an invalid date."""
    if 0 <= year < 100:
        year += 2000 if year < 80 else 1900
    try:
        # A leap second counts as the first second of the next minute.
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except ValueError:
        return None
    return (int(moment.timestamp()) + (second == 60)) * 10**9 if moment.year >= 1980 else None
