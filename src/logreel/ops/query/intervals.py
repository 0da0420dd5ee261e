"""Row numbers as slices, and overlapping intervals as one."""

from __future__ import annotations

from collections.abc import Iterable

from logreel.index.ranges import Rows
from logreel.io.arrays import I64


def merge_intervals(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge ascending half-open intervals that touch or overlap."""
    found: list[tuple[int, int]] = []
    for lo, hi in intervals:
        if found and lo <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], hi))
        else:
            found.append((lo, hi))
    return found


def as_slice(rows: I64) -> Rows:
    """Return ascending row numbers as a slice if they are consecutive, else unchanged."""
    if len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
