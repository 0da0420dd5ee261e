"""Stretches of anything that is counted: rows, nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable


def joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ascending stretches, half-open, with those that touch or overlap made one."""
    found: list[tuple[int, int]] = []
    for lo, hi in spans:
        if found and lo <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], hi))
        else:
            found.append((lo, hi))
    return found
