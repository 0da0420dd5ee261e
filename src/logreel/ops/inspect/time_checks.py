"""Checks of times and positions of messages: times that decrease, jumps of the clock, gaps.

They read no payloads, so they are fast, and serve the quick check of a log that is opened in a viewer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import Finding, Severity
from logreel.index.gather import places
from logreel.io.arrays import I64, without
from logreel.io.source import FILE, SYNTHETIC
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.meaning.gaps import regular_times

Item = TypeVar("Item")


def positions(ch: Channel, rows: I64) -> list[tuple[tuple[int, int], int]]:
    """Return file, chunk and offset of the messages at *rows* (ascending), as tuples that sort in file order."""
    chunk, offset, _ = places(ch.log.index, ch.number, rows)
    located = map(ch.log.index.chunks.locate, chunk.tolist())
    return list(zip(located, offset.tolist(), strict=True))


def offset_of(ch: Channel, row: int) -> int | None:
    """Return the file offset of a message, or of its compressed chunk.

    None for a synthetic message, and in a log of several files.
    """
    (((_, chunk), offset),) = positions(ch, np.array([row], np.int64))
    if chunk == SYNTHETIC or ch.members:
        return None
    return offset if chunk == FILE else ch.log.index.chunks.place_of(chunk)


def group_overlapping(
    items: Iterable[Item], first: Callable[[Item], Any], last: Callable[[Item], Any]
) -> Iterator[list[Item]]:
    """Yield the fewest groups of intervals with a common position: first(x) < position <= last(x)."""
    group: list[Item] = []
    for item in sorted(items, key=last):
        if group and not first(item) < last(group[0]):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def topics_text(topics: Iterable[str]) -> str:
    """Return up to three topics and the number of the others, as text."""
    names = list(dict.fromkeys(topics))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


#: Messages late by no more than this are a note only: recorders with several threads cause them.
LATE_NS = SECOND
#: Number of largest decreases of a channel that are compared with those of other channels.
COMPARED_FALLS = 64
#: Share of the active channels that have to decrease at one position for a clock reset.
RESET_SHARE = 1 / 3


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
        if len(falling) > 1 and len(falling) >= RESET_SHARE * going_on:
            yield _reset(group)
            for fall in group:
                explained[fall.ch.number].append(fall.row)
    for ch in channels:
        finding = _late(ch, explained[ch.number])
        if finding is not None:
            yield finding


def _deepest(ch: Channel) -> Iterator[Fall]:
    times = ch.times
    rows = np.flatnonzero(times[1:] < times[:-1]) + 1
    # As unsigned numbers, so that stamps from one end of int64 to the other cannot overflow.
    depth = times[rows - 1].view(np.uint64) - times[rows].view(np.uint64)
    if len(rows) > COMPARED_FALLS:
        deepest = np.sort(np.argpartition(depth, -COMPARED_FALLS)[-COMPARED_FALLS:])
        rows, depth = rows[deepest], depth[deepest]
    if len(rows):
        above, before, spot = times[rows - 1].tolist(), positions(ch, rows - 1), positions(ch, rows)
        for row, d, t, a, b in zip(rows.tolist(), depth.tolist(), above, before, spot, strict=True):
            yield Fall(ch, row, d, t, a, b)


def _reset(group: list[Fall]) -> Finding:
    depth, above = max(fall.depth for fall in group), max(fall.above for fall in group)
    names = topics_text(fall.ch.topic for fall in group)
    channels = len({fall.ch.number for fall in group})
    text = f"time falls back by {duration_text(depth)} in {channels} channels at once ({names}): "
    text += "the clock was set back, or logs were put one after another"
    return Finding("clock-reset", "warn", offset_of(group[0].ch, group[0].row), 0, text, None, above)


def _late(ch: Channel, explained: list[int]) -> Finding | None:
    """Return a finding for late messages, except those at rows *explained* by a clock reset; None if there are none."""
    times = ch.times
    late = without(np.flatnonzero(times[1:] < times[:-1]) + 1, np.array(explained, np.int64))
    if not len(late):
        return None
    worst = int((times[late - 1].view(np.uint64) - times[late].view(np.uint64)).max())
    n, first = len(late), int(late[0])
    text = f"{n} message{'s have' if n > 1 else ' has'} an earlier time than the message before, "
    text += f"by {'up to ' if n > 1 else ''}{duration_text(worst)}"
    severity: Severity = "note" if worst <= LATE_NS else "warn"
    return Finding("out-of-order", severity, offset_of(ch, first), 0, text, ch.topic, int(times[first]), n)


#: Least length of a jump.
JUMP_NS = 600 * SECOND
#: Least length of a jump, relative to the rest of the log.
JUMP_FACTOR = 10
#: Most jumps in a log.
MOST_JUMPS = 3
#: Jumps from this length on are warnings: a robot may wait for hours.
WRONG_NS = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class Jump:
    """No message has a time between *start* and *end* (ns)."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Length in ns."""
        return self.end - self.start


def jumps(log: Log) -> Iterator[Finding]:
    """Yield ``jump`` for each interval without messages that is much longer than the rest of the log."""
    channels = [ch for ch in log.match(None) if len(ch)]
    for jump in find_jumps(channels):
        yield _jump_finding(jump, channels)


def find_jumps(channels: list[Channel]) -> list[Jump]:
    """Return the jumps in the times of *channels*, longest first."""
    spans = [_activity(ch.times) for ch in channels]
    if not spans:
        return []
    start, end = (np.concatenate([span[i] for span in spans]) for i in (0, 1))
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    silent = np.flatnonzero(_steps(reach[:-1], start[1:]) > JUMP_NS)
    jumps = [Jump(a, b) for a, b in zip(reach[silent].tolist(), start[silent + 1].tolist(), strict=True)]
    jumps = sorted(jumps, key=lambda jump: -jump.length)
    rest, kept = int(reach[-1]) - int(start[0]), 0
    for n, jump in enumerate(jumps[:MOST_JUMPS], 1):
        rest -= jump.length
        if jump.length > JUMP_FACTOR * rest:
            kept = n
    return jumps[:kept]


def _activity(times: I64) -> tuple[I64, I64]:
    """Return first and last times of the intervals without a break longer than JUMP_NS."""
    if (times[1:] < times[:-1]).any():
        times = np.sort(times)
    cuts = np.flatnonzero(_steps(times[:-1], times[1:]) > JUMP_NS)
    return times[np.append(0, cuts + 1)], times[np.append(cuts, len(times) - 1)]


def _steps(a: I64, b: I64) -> NDArray[np.uint64]:
    """Return uint64[n]: b - a, or 0 if negative; cannot overflow."""
    return np.where(b > a, b.view(np.uint64) - a.view(np.uint64), np.uint64(0))


def _jump_finding(jump: Jump, channels: list[Channel]) -> Finding:
    before = {ch: int(np.count_nonzero(ch.times <= jump.start)) for ch in channels}
    after = {ch: len(ch) - n for ch, n in before.items()}
    few, where = min((before, "before"), (after, "after"), key=lambda side: sum(side[0].values()))
    active = [ch for ch, n in few.items() if n]
    count = sum(few.values())
    text = f"no message for {duration_text(jump.length)}, which is far longer than all else: the clock jumped, or the "
    text += f"{count} message{'s' * (count > 1)} {where} it ({topics_text(ch.topic for ch in active)}) "
    text += f"{'have' if count > 1 else 'has'} a wrong time"
    first = active[0]
    is_few = first.times <= jump.start if where == "before" else first.times >= jump.end
    place = offset_of(first, int(np.argmax(is_few)))
    severity: Severity = "warn" if jump.length >= WRONG_NS else "note"
    return Finding("jump", severity, place, 0, text, first.topic if len(active) == 1 else None, jump.start)


#: Number of longest gaps of a channel that are compared with those of other channels.
COMPARED_GAPS = 64
#: If all regular channels, at least this many, have a gap of this length, the recorder stalled.
CHANNELS, STALL_NS = 3, SECOND


@dataclass(frozen=True, slots=True)
class ChannelGap:
    """An interval (ns) without messages of *ch*."""

    ch: Channel
    start: int
    end: int

    @property
    def length(self) -> int:
        """Length in ns."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class RegularChannel:
    """RegularChannel channel: first and last time, median period (ns), and longest gaps."""

    first: int
    last: int
    period: int
    gaps: list[ChannelGap]


def gaps(log: Log) -> Iterator[Finding]:
    """Yield ``gap`` for gaps that several channels share, and one per channel for the other gaps."""
    channels = [ch for ch in log.match(None) if len(ch)]
    known = find_jumps(channels)
    regular = {ch: measured for ch in channels if (measured := _regular(ch, known)) is not None}
    span = np.array([(channel.first, channel.last) for channel in regular.values()], np.int64).reshape(-1, 2)
    alone: dict[Channel, list[ChannelGap]] = {}
    every = [gap for channel in regular.values() for gap in channel.gaps]
    for group in group_overlapping(every, lambda gap: gap.start, lambda gap: gap.end):
        if len({gap.ch.number for gap in group}) > 1:
            yield _shared(group, span)
        else:
            alone.setdefault(group[0].ch, []).extend(group)
    yield from (_own(ch, regular[ch].period, own) for ch, own in alone.items())


def _regular(ch: Channel, known: list[Jump]) -> RegularChannel | None:
    """Return a channel with its longest gaps outside of *known* jumps; None if it is not regular."""
    times = _ordered(ch)
    regular = regular_times(times)
    if regular is None:
        return None
    rows = regular.gaps[np.argsort(regular.steps[regular.gaps], kind="stable")[-COMPARED_GAPS:]]
    every = [ChannelGap(ch, int(times[i]), int(times[i + 1])) for i in np.sort(rows)]
    gaps = [gap for gap in every if not any(j.start >= gap.start and j.end <= gap.end for j in known)]
    return RegularChannel(int(times[0]), int(times[-1]), round(regular.period), gaps)


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


def _shared(group: list[ChannelGap], span: I64) -> Finding:
    start, end = max(gap.start for gap in group), min(gap.end for gap in group)
    silent = len({gap.ch.number for gap in group})
    going_on = int(((span[:, 0] <= start) & (span[:, 1] >= end)).sum())
    stall = end - start >= STALL_NS and silent >= max(CHANNELS, going_on)
    text = f"{silent} of {going_on} regular channels are silent for {duration_text(end - start)} "
    text += f"at the same time ({topics_text(gap.ch.topic for gap in group)})"
    return Finding("gap", "warn" if stall else "note", _place(group[0]), 0, text, None, start)


def _own(ch: Channel, period: int, gaps: list[ChannelGap]) -> Finding:
    worst, n = max(gaps, key=lambda gap: gap.length), len(gaps)
    text = f"silent for {duration_text(worst.length)}"
    text += f" and in {n - 1} more place{'s' * (n > 2)}" if n > 1 else ""
    text += f", usually every {duration_text(period)}"
    return Finding("gap", "note", _place(worst), 0, text, ch.topic, worst.start, n)


def _place(gap: ChannelGap) -> int | None:
    return offset_of(gap.ch, int(np.flatnonzero(gap.ch.times == gap.end)[0]))
