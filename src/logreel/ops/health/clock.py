"""Clocks of sensors: offset, drift, jitter and jumps between times in messages and times of logging."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.lenses.base import columns, find_stamp, members
from logreel.lenses.facts import Detection, Detector, NotAssessed, since_start
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text

#: Least number of messages, and least length of a channel.
MESSAGES, LEAST_NS = 30, 5 * SECOND
#: Bounds: a step of the difference, parts per million of drift, standard deviation, offset between clocks.
JUMP_NS, DRIFT_PPM, JITTER_NS, OFFSET_NS = SECOND // 10, 200.0, SECOND // 20, SECOND
#: Messages on both sides of a step whose medians are compared, so that single late messages are no jumps.
SIDE = 10
#: Share of messages with the stamp of the one before from which on it is not their own.
REPEATED = 0.05
#: With more jumps than this, the time in the messages is another one, such as that of the latest event.
MOST_JUMPS = 8


@dataclass(frozen=True, slots=True)
class ClockDifference:
    """Times at which messages were logged minus those in the messages.

    offset  median in ns
    drift   parts per million by which it grows
    jitter  standard deviation of what remains, in ns
    jumps   times in ns and sizes in ns of lasting steps
    """

    offset: int
    drift: float
    jitter: float
    jumps: tuple[tuple[int, int], ...]


def difference(times: I64, stamps: I64) -> ClockDifference:
    """Return offset, drift, jitter and jumps of *times* - *stamps*, both int64[n] ns in the order of *times*."""
    late = times - stamps
    jumps = _jumps(times, late)
    level = late.astype(np.float64)
    for at, size in jumps:
        level[times >= at] -= size
    seconds = (times - times[0]) / 1e9
    # The middle slope between the thirds of the channel: single late messages do not move it.
    third = len(level) // 3
    ends = np.median(level[-third:]), np.median(level[:third])
    middles = np.median(seconds[-third:]), np.median(seconds[:third])
    slope = (ends[0] - ends[1]) / (middles[0] - middles[1]) if middles[0] > middles[1] else 0.0
    rest = level - slope * seconds
    jitter = float(np.std(rest - np.median(rest)))
    return ClockDifference(int(np.median(late)), float(slope) / 1e3, jitter, tuple(jumps))


def _jumps(times: I64, late: I64) -> list[tuple[int, int]]:
    steps = np.flatnonzero(np.abs(np.diff(late)) > JUMP_NS) + 1
    jumps: list[tuple[int, int]] = []
    last = -SIDE - 1
    for row in steps.tolist():
        before, after = late[max(row - SIDE, 0) : row], late[row : row + SIDE]
        size = int(np.median(after) - np.median(before))
        # Messages that are now and then logged late have no step that lasts.
        if max(_spread(before), _spread(after)) > abs(size) / 2:
            continue
        if abs(size) > JUMP_NS and len(after) >= SIDE // 2 and row >= SIDE // 2 and row - last > SIDE:
            jumps.append((int(times[row]), size))
            last = row
    return jumps


def _spread(late: I64) -> float:
    """Return the difference between high and low values, without a single odd one of each."""
    low, high = np.percentile(late, [15, 85]).tolist() if len(late) else (0.0, 0.0)
    return float(high - low)


def clock_faults(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for jumps, drift, jitter and offset of each channel whose messages have a time of their own."""
    looked = False
    for ch in log.channels.values():
        if len(ch) < MESSAGES or ch.reserved:
            continue
        stamp = find_stamp(members(ch))
        if stamp is None:
            continue
        try:
            stamped = columns(ch, stamp.paths, stamp=stamp)
        except LogError:
            continue
        order = np.argsort(stamped.time, kind="stable")
        times, stamps = stamped.time[order], stamped.stamp[order]
        known = stamps != 0
        times, stamps = times[known], stamps[known]
        if len(times) < MESSAGES or int(times[-1] - times[0]) < LEAST_NS:
            continue
        if not _goes_on(times, stamps):
            continue
        result = difference(times, stamps)
        if len(result.jumps) <= MOST_JUMPS:
            looked = True
            yield from _of_channel(ch, times, result)
    if not looked:
        yield NotAssessed(f"no channel with times in its messages is {duration_text(LEAST_NS)} long")


def _goes_on(times: I64, stamps: I64) -> bool:
    """Return whether stamps go on with the messages, unlike the time of the latest event."""
    steps, own = np.diff(times), np.diff(stamps)
    if np.median(np.abs(own - steps)) <= np.median(steps) / 2:
        return True
    # With much jitter, single steps say nothing, but all of them together do.
    is_as_long = abs(int(stamps[-1] - stamps[0]) - int(times[-1] - times[0])) < (times[-1] - times[0]) / 10
    return bool(is_as_long and np.mean(own == 0) < REPEATED)


def _of_channel(ch: Channel, times: I64, measured: ClockDifference) -> Iterator[Detection]:
    start, end = int(times[0]), int(times[-1])
    evidence = {
        "offset_ns": measured.offset,
        "drift_ppm": measured.drift,
        "jitter_ns": measured.jitter,
        "jumps": [list(jump) for jump in measured.jumps],
    }
    for at, size in measured.jumps:
        text = f"the clock of {ch.topic} jumps by {duration_text(size)} at {since_start(at, ch.log)}"
        yield Detection(text, "error", at, at, (ch.topic,), evidence, duration_text(JUMP_NS), "logreel")
    if abs(measured.drift) > DRIFT_PPM and abs(measured.drift) * (end - start) / 1e6 > JITTER_NS:
        text = f"the clock of {ch.topic} drifts by {measured.drift:.0f} parts per million against the log"
        bound = f"{DRIFT_PPM:.0f} parts per million, {duration_text(JITTER_NS)} in all: quartz clocks are within 100"
        yield Detection(text, "warn", start, end, (ch.topic,), evidence, bound, "logreel")
    if measured.jitter > JITTER_NS:
        text = f"messages of {ch.topic} are logged with a jitter of {duration_text(int(measured.jitter))}"
        bound = duration_text(JITTER_NS)
        yield Detection(text, "note", start, end, (ch.topic,), evidence, bound, "logreel")
    if abs(measured.offset) > OFFSET_NS:
        text = f"times in {ch.topic} differ from the times of logging by {duration_text(measured.offset)}"
        bound = duration_text(OFFSET_NS)
        yield Detection(text, "note", start, end, (ch.topic,), evidence, bound, "logreel")


CLOCK = Detector(
    "clock",
    f"times in messages against times of logging: jumps of {duration_text(JUMP_NS)}, drift of {DRIFT_PPM:.0f} ppm,"
    f" jitter of {duration_text(JITTER_NS)}, offset of {duration_text(OFFSET_NS)}",
    clock_faults,
)
