"""Clock of a replay, and waiting."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Condition

#: The last ns before a message is due are waited for in a loop, since sleeping is less precise.
TAIL = 100_000
#: Longest sleep, ns.
LONGEST = 60 * 10**9
#: Longest wait in seconds, after which Python handles signals that arrived in another thread.
LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """Linear relation between replay time and machine time; rounding errors do not add up.

    wall  ns of the machine's clock when the replay time is *log* ns
    rate  replay time per machine time; negative: backwards
    """

    wall: int
    log: int
    rate: float

    def due(self, log: int) -> int:
        """Return the machine time of the replay time *log*, ns."""
        return self.wall + round((log - self.log) / self.rate)

    def at(self, wall: int) -> int:
        """Return the replay time at machine time *wall*, ns."""
        return self.log + round((wall - self.wall) * self.rate)


class Timer:
    """Clock of the machine; tests replace it."""

    def now(self) -> int:
        """Return the time of a monotonic clock, ns."""
        return time.monotonic_ns()

    def sleep(self, changed: Condition, ns: int) -> None:
        """Sleep at most *ns*, or until *changed*, whose lock is held, is notified."""
        changed.wait(min(ns / 1e9, LOOK))

    def nap(self) -> None:
        """Let other threads run."""
        time.sleep(0)
