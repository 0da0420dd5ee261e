"""Check for times that decrease: single late messages, and clocks that were set back."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from logreel.errors import Finding, Severity
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.ops.inspect.checks.places import group_overlapping, offset_of, positions, topics_text

#: Messages late by no more than this are a note only: recorders with several threads cause them.
LATE_NS = SECOND
#: Number of largest decreases of a channel that are compared with those of other channels.
COMPARED = 64
#: Share of the active channels that have to decrease at one position for a clock reset.
PART = 1 / 3


@dataclass(frozen=True, slots=True)
class Fall:
    """A decrease: the message of *ch* at *row* has a time *depth* ns before that of the previous one, *above* ns.

    before, spot  positions of the previous and of this message in the log
    """

    ch: Channel
    row: int
    depth: int
    above: int
    before: tuple[tuple[int, int], int]
    spot: tuple[tuple[int, int], int]


def backwards(log: Log) -> Iterator[Finding]:
    """Yield ``clock-reset`` if times of many channels decrease at one position, else ``out-of-order`` per channel."""
    channels = [ch for ch in log.match(None) if len(ch) > 1]
    explained: dict[int, list[int]] = {ch.number: [] for ch in channels}
    falls = [fall for ch in channels for fall in _deepest(ch)]
    ends = [positions(ch, np.array([0, len(ch) - 1], np.int64)) for ch in channels] if falls else []
    firsts, lasts = sorted(first for first, _ in ends), sorted(last for _, last in ends)
    for group in group_overlapping(falls, lambda fall: fall.before, lambda fall: fall.spot):
        falling, place = {fall.ch.number for fall in group}, group[0].spot
        going_on = bisect_left(firsts, place) - bisect_left(lasts, place)
        if len(falling) > 1 and len(falling) >= PART * going_on:
            yield _reset(group)
            for fall in group:
                explained[fall.ch.number].append(fall.row)
    for ch in channels:
        found = _late(ch, explained[ch.number])
        if found is not None:
            yield found


def _deepest(ch: Channel) -> Iterator[Fall]:
    times = ch.times
    rows = np.flatnonzero(times[1:] < times[:-1]) + 1
    # As unsigned numbers, so that stamps from one end of int64 to the other cannot overflow.
    depth = times[rows - 1].view(np.uint64) - times[rows].view(np.uint64)
    if len(rows) > COMPARED:
        deepest = np.sort(np.argpartition(depth, -COMPARED)[-COMPARED:])
        rows, depth = rows[deepest], depth[deepest]
    if len(rows):
        above, before, spot = times[rows - 1].tolist(), positions(ch, rows - 1), positions(ch, rows)
        for row, d, t, a, b in zip(rows.tolist(), depth.tolist(), above, before, spot, strict=True):
            yield Fall(ch, row, d, t, a, b)


def _reset(group: list[Fall]) -> Finding:
    depth, above = max(fall.depth for fall in group), max(fall.above for fall in group)
    names = topics_text(fall.ch.topic for fall in group)
    many = len({fall.ch.number for fall in group})
    text = f"time falls back by {duration_text(depth)} in {many} channels at once ({names}): "
    text += "the clock was set back, or logs were put one after another"
    return Finding("clock-reset", "warn", offset_of(group[0].ch, group[0].row), 0, text, None, above)


def _late(ch: Channel, explained: list[int]) -> Finding | None:
    """Return a finding for late messages, except those at rows *explained* by a clock reset; None if there are none."""
    times = ch.times
    late = np.setdiff1d(np.flatnonzero(times[1:] < times[:-1]) + 1, explained)
    if not len(late):
        return None
    worst = int((times[late - 1].view(np.uint64) - times[late].view(np.uint64)).max())
    n, first = len(late), int(late[0])
    text = f"{n} message{'s have' if n > 1 else ' has'} an earlier time than the message before, "
    text += f"by {'up to ' if n > 1 else ''}{duration_text(worst)}"
    severity: Severity = "note" if worst <= LATE_NS else "warn"
    return Finding("out-of-order", severity, offset_of(ch, first), 0, text, ch.topic, int(times[first]), n)
