"""Check for intervals without messages much longer than the rest of the log: clock jumps or wrong times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding, Severity
from logreel.io.arrays import I64
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_text
from logreel.ops.inspect.checks.places import offset_of, topics_text

#: Least length of a jump.
LEAST_NS = 600 * SECOND
#: Least length of a jump, relative to the rest of the log.
FACTOR = 10
#: Most jumps in a log.
MOST = 3
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
    silent = np.flatnonzero(_steps(reach[:-1], start[1:]) > LEAST_NS)
    found = [Jump(a, b) for a, b in zip(reach[silent].tolist(), start[silent + 1].tolist(), strict=True)]
    found = sorted(found, key=lambda jump: -jump.length)
    rest, kept = int(reach[-1]) - int(start[0]), 0
    for n, jump in enumerate(found[:MOST], 1):
        rest -= jump.length
        if jump.length > FACTOR * rest:
            kept = n
    return found[:kept]


def _activity(times: I64) -> tuple[I64, I64]:
    """Return first and last times of the intervals without a break longer than LEAST_NS."""
    if (times[1:] < times[:-1]).any():
        times = np.sort(times)
    cuts = np.flatnonzero(_steps(times[:-1], times[1:]) > LEAST_NS)
    return times[np.append(0, cuts + 1)], times[np.append(cuts, len(times) - 1)]


def _steps(a: I64, b: I64) -> NDArray[np.uint64]:
    """Return uint64[n]: b - a, or 0 if negative; cannot overflow."""
    return np.where(b > a, b.view(np.uint64) - a.view(np.uint64), np.uint64(0))


def _jump_finding(jump: Jump, channels: list[Channel]) -> Finding:
    before = {ch: int(np.count_nonzero(ch.times <= jump.start)) for ch in channels}
    after = {ch: len(ch) - n for ch, n in before.items()}
    few, where = min((before, "before"), (after, "after"), key=lambda side: sum(side[0].values()))
    some = [ch for ch, n in few.items() if n]
    many = sum(few.values())
    text = f"no message for {duration_text(jump.length)}, which is far longer than all else: the clock jumped, or the "
    text += f"{many} message{'s' * (many > 1)} {where} it ({topics_text(ch.topic for ch in some)}) "
    text += f"{'have' if many > 1 else 'has'} a wrong time"
    first = some[0]
    is_few = first.times <= jump.start if where == "before" else first.times >= jump.end
    place = offset_of(first, int(np.argmax(is_few)))
    severity: Severity = "warn" if jump.length >= WRONG_NS else "note"
    return Finding("jump", severity, place, 0, text, first.topic if len(some) == 1 else None, jump.start)
