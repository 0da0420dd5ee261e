"""Gaps: steps between messages, positions or transforms that are much longer than the others."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.layout.nodes import Sequence as Records
from logreel.layout.nodes import Struct
from logreel.log.scan import until_next

if TYPE_CHECKING:
    from logreel.log.log import Channel

#: A gap is longer than this number of median periods, and than twice the 90th percentile of the periods, so that
#: messages in bursts have no gaps.
GAP_FACTOR = 5
#: Fewer steps than this say nothing about gaps.
LEAST_STEPS = 10
#: A regular series has at least PERIODS periods; 10th and 90th percentile are within NEAR and FAR medians, and a larger
#: share of gaps than PART means bursts.
PERIODS = 50
NEAR, FAR = 0.5, 1.5
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


def gaps_of(steps: NDArray[np.uint64]) -> I64:
    """Return int64[g]: rows of the *steps* that are gaps; none if there are too few steps to tell."""
    if len(steps) < LEAST_STEPS:
        return np.zeros(0, np.int64)
    return np.flatnonzero(steps > gap_limit(steps))


def regular_times(times: I64) -> RegularTimes | None:
    """Return period and gaps of *times*, int64[n] ns in order; None if they are not regular."""
    if len(times) <= PERIODS:
        return None
    steps = steps_of(times)
    low, median, high = np.percentile(steps, [10, 50, 90]).tolist()
    if not median or low < NEAR * median or high > FAR * median:
        return None
    rows = gaps_of(steps)
    if len(rows) > max(1, PART * len(steps)):
        return None
    return RegularTimes(median, steps, rows)


#: Times of a channel that are looked at if not all are known, evenly spread over the file.
SAMPLES = 1 << 16
#: Most gaps of one channel, the longest ones.
MOST = 1000


def sampled_times(ch: Channel) -> I64:
    """Return int64[n] ns: times of messages of a channel; at most SAMPLES of them, evenly spread over the file."""
    n = len(ch)
    index = ch.log.index
    if n <= SAMPLES or index.has_times(ch.number):
        return index.times(ch.number)
    return index.times_at(ch.number, np.linspace(0, n - 1, SAMPLES).astype(np.int64))


def gaps_between(times: I64, stepped: bool = False) -> list[tuple[int, int]]:
    """Return the intervals (ns) in which nothing was measured, by time: from the message before to the one after.

    times    int64[n] ns in any order
    stepped  values that are sent when they change: only a pause of messages that are otherwise regular is a gap
    """
    ordered = times if np.all(times[1:] >= times[:-1]) else np.sort(times)
    if stepped:
        regular = regular_times(ordered)
        rows = np.zeros(0, np.int64) if regular is None else regular.gaps
    else:
        rows = gaps_of(steps_of(ordered))
    if len(rows) > MOST:
        rows = np.sort(rows[np.argsort(steps_of(ordered)[rows], kind="stable")[-MOST:]])
    return list(zip(ordered[rows].tolist(), ordered[rows + 1].tolist(), strict=True))


def channel_gaps(ch: Channel, stepped: bool = False) -> list[tuple[int, int]]:
    """Return the intervals (ns) without messages in a channel; see ``gaps_between``.

    Where messages hold samples, a gap begins behind the last sample of a message.
    """
    times = sampled_times(ch)
    gaps = gaps_between(times, stepped)
    if gaps and holds_samples(ch):
        period = round(median_of(steps_of(np.sort(times))))
        gaps = [(begin + period, end) for begin, end in gaps]
    return gaps


#: Name of the field with the number of a sample in its message.
SAMPLE = "sample"


def holds_samples(ch: Channel) -> bool:
    """Return whether messages of a channel are blocks of numbered samples, which come one after another in time."""
    with suppress(LogError):
        root = ch.layout.root
        if isinstance(root, Records) and isinstance(root.item, Struct):
            return any(field.name == SAMPLE for field in root.item.fields)
    return False


def block_lengths(times: I64) -> I64:
    """Return int64[n]: ns over which the samples of each message spread, to the next one or, in a gap, a period.

    times  int64[n] of the messages, ns
    """
    steps = until_next(times)
    forward = steps[steps > 0]
    if len(forward):
        steps[steps > gap_limit(forward)] = round(float(np.median(forward)))
    return steps
