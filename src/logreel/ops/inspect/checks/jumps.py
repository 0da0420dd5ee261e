"""Silences of the whole log that are much longer than the rest of it: a clock jumped, or some times are wrong."""

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

#: Shorter silences are never jumps.
LEAST_NS = 600 * SECOND
#: A jump is longer than so many times the rest of the log.
FACTOR = 10
#: More of them, and long silences are the way of this log.
MOST = 3
#: A robot may have waited for some hours; what is longer is a wrong clock.
WRONG_NS = 24 * 3600 * SECOND


@dataclass(frozen=True, slots=True)
class Jump:
    """No message has a time between *start* and *end* (ns)."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """ns."""
        return self.end - self.start


def jumps(log: Log) -> Iterator[Finding]:
    """``jump`` for each silence of the whole log that is far longer than all the rest."""
    channels = [ch for ch in log.match(None) if len(ch)]
    for jump in find_jumps(channels):
        yield _jump_finding(jump, channels)


def find_jumps(channels: list[Channel]) -> list[Jump]:
    """The jumps in the times of these channels, the longest first."""
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
    """Where stretches without a long silence begin and end."""
    if (times[1:] < times[:-1]).any():
        times = np.sort(times)
    cuts = np.flatnonzero(_steps(times[:-1], times[1:]) > LEAST_NS)
    return times[np.append(0, cuts + 1)], times[np.append(cuts, len(times) - 1)]


def _steps(a: I64, b: I64) -> NDArray[np.uint64]:
    """b - a where that is positive, else 0; without overflow."""
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
