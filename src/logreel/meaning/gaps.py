"""Gaps: steps between messages, positions or transforms that are much longer than the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.io.arrays import I64

#: A gap is longer than this number of median periods, and than twice the 90th percentile of the periods, so that
#: messages in bursts have no gaps.
GAP_FACTOR = 5
#: A regular series has at least PERIODS periods; 10th and 90th percentile are within NEAR and FAR medians.
PERIODS = 50
NEAR, FAR = 0.5, 1.5
#: A gap of a regular series is longer than FACTOR median periods; a larger share of gaps than PART means bursts.
FACTOR = 10
PART = 0.01


@dataclass(frozen=True, slots=True)
class RegularTimes:
    """Times that are regular but for gaps.

    period  median period in ns
    steps   uint64[n - 1] ns
    gaps    int64[g]: rows of the times before a gap
    """

    period: float
    steps: NDArray[np.uint64]
    gaps: I64


def steps_of(times: I64) -> NDArray[np.uint64]:
    """Return uint64[n - 1] ns between *times*, int64[n] in order; steps over all of int64 do not overflow."""
    return times[1:].view(np.uint64) - times[:-1].view(np.uint64)


def median_of(steps: NDArray[np.uint64]) -> float:
    """Return the median of *steps*; 0 if there are none."""
    return float(np.median(steps)) if len(steps) else 0.0


def gap_limit(steps: NDArray[np.uint64] | I64, least: int = 0) -> float:
    """Return the length in ns from which on one of *steps* is a gap, at least *least*."""
    if not len(steps):
        return float(least)
    return max(least, GAP_FACTOR * float(np.median(steps)), 2 * float(np.percentile(steps, 90)))


def regular_times(times: I64) -> RegularTimes | None:
    """Return period and gaps of *times*, int64[n] ns in order; None if they are not regular."""
    if len(times) <= PERIODS:
        return None
    steps = steps_of(times)
    low, median, high = np.percentile(steps, [10, 50, 90]).tolist()
    if not median or low < NEAR * median or high > FAR * median:
        return None
    rows = np.flatnonzero(steps > FACTOR * median)
    if len(rows) > max(1, PART * len(steps)):
        return None
    return RegularTimes(median, steps, rows)
