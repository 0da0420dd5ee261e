"""Check for gaps in channels that are regular otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logreel.errors import Finding
from logreel.io.arrays import I64
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.meaning.gaps import regular_times
from logreel.ops.inspect.checks import jumps
from logreel.ops.inspect.checks.places import group_overlapping, offset_of, topics_text

#: Number of longest gaps of a channel that are compared with those of other channels.
COMPARED = 64
#: If all regular channels, at least this many, have a gap of this length, the recorder stalled.
CHANNELS, STALL_NS = 3, SECOND


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval (ns) without messages of *ch*."""

    ch: Channel
    start: int
    end: int

    @property
    def length(self) -> int:
        """Length in ns."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Regular:
    """Regular channel: first and last time, median period (ns), and longest gaps."""

    first: int
    last: int
    period: int
    gaps: list[Gap]


def gaps(log: Log) -> Iterator[Finding]:
    """Yield ``gap`` for gaps that several channels share, and one per channel for the other gaps."""
    channels = [ch for ch in log.match(None) if len(ch)]
    known = jumps.find_jumps(channels)
    regular = {ch: found for ch in channels if (found := _regular(ch, known)) is not None}
    span = np.array([(one.first, one.last) for one in regular.values()], np.int64).reshape(-1, 2)
    alone: dict[Channel, list[Gap]] = {}
    every = [gap for one in regular.values() for gap in one.gaps]
    for group in group_overlapping(every, lambda gap: gap.start, lambda gap: gap.end):
        if len({gap.ch.number for gap in group}) > 1:
            yield _shared(group, span)
        else:
            alone.setdefault(group[0].ch, []).extend(group)
    yield from (_own(ch, regular[ch].period, some) for ch, some in alone.items())


def _regular(ch: Channel, known: list[jumps.Jump]) -> Regular | None:
    """Return a channel with its longest gaps outside of *known* jumps; None if it is not regular."""
    times = _ordered(ch)
    regular = regular_times(times)
    if regular is None:
        return None
    rows = regular.gaps[np.argsort(regular.steps[regular.gaps], kind="stable")[-COMPARED:]]
    every = [Gap(ch, int(times[i]), int(times[i + 1])) for i in np.sort(rows)]
    found = [gap for gap in every if not any(j.start >= gap.start and j.end <= gap.end for j in known)]
    return Regular(int(times[0]), int(times[-1]), round(regular.period), found)


def _ordered(ch: Channel) -> I64:
    """Return the times of a channel, sorted, without those before the start or after the end of the log."""
    times = ch.times
    if (times[1:] < times[:-1]).any():
        times = np.sort(times)
    start, end = ch.log.start, ch.log.end
    if start is None or end is None:
        return times
    lo, hi = times.searchsorted(start), times.searchsorted(end, side="right")
    return times[lo:hi]


def _shared(group: list[Gap], span: I64) -> Finding:
    start, end = max(gap.start for gap in group), min(gap.end for gap in group)
    silent = len({gap.ch.number for gap in group})
    going_on = int(((span[:, 0] <= start) & (span[:, 1] >= end)).sum())
    stall = end - start >= STALL_NS and silent >= max(CHANNELS, going_on)
    text = f"{silent} of {going_on} regular channels are silent for {duration_text(end - start)} "
    text += f"at the same time ({topics_text(gap.ch.topic for gap in group)})"
    return Finding("gap", "warn" if stall else "note", _place(group[0]), 0, text, None, start)


def _own(ch: Channel, period: int, some: list[Gap]) -> Finding:
    worst, n = max(some, key=lambda gap: gap.length), len(some)
    text = f"silent for {duration_text(worst.length)}"
    text += f" and in {n - 1} more place{'s' * (n > 2)}" if n > 1 else ""
    text += f", though it comes every {duration_text(period)}"
    return Finding("gap", "note", _place(worst), 0, text, ch.topic, worst.start, n)


def _place(gap: Gap) -> int | None:
    return offset_of(gap.ch, int(np.flatnonzero(gap.ch.times == gap.end)[0]))
