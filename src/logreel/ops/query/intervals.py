"""Row numbers as slices, and intervals merged and intersected."""

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


def intersect_intervals(
    a: Iterable[tuple[int | None, int | None]], b: Iterable[tuple[int | None, int | None]]
) -> list[tuple[int | None, int | None]]:
    """Return the intervals that are in both; each half-open, ascending and without overlaps, None: unbounded."""
    found: list[tuple[int | None, int | None]] = []
    one, two = list(a), list(b)
    i = j = 0
    while i < len(one) and j < len(two):
        (lo, hi), (first, last) = one[i], two[j]
        start = max((t for t in (lo, first) if t is not None), default=None)
        end = min((t for t in (hi, last) if t is not None), default=None)
        if start is None or end is None or start < end:
            found.append((start, end))
        # The one that ends first has no more in common with the others.
        if last is None or (hi is not None and hi <= last):
            i += 1
        else:
            j += 1
    return found
