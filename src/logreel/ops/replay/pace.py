"""When messages are due, and waiting for that."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Condition

#: From here on the rest is not slept but waited for, so that what the system adds to a sleep does not count; ns.
TAIL = 100_000
#: One sleep, at most; ns.
LONGEST = 60 * 10**9
#: Seconds after which whoever sleeps looks whether a signal came that another thread was woken for.
LOOK = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """A straight line between the clock of the replay and that of the machine, so that nothing adds up.

    wall  ns of the machine's clock at which the replay is at *log* ns
    rate  how much faster the replay goes than the machine; negative: backwards
    """

    wall: int
    log: int
    rate: float

    def due(self, log: int) -> int:
        """When a moment of the replay has come, ns of the machine's clock."""
        return self.wall + round((log - self.log) / self.rate)

    def at(self, wall: int) -> int:
        """The moment of the replay at *wall*."""
        return self.log + round((wall - self.wall) * self.rate)


class Timer:
    """The machine's clock; tests have one of their own."""

    def now(self) -> int:
        """ns since some moment; never set back."""
        return time.monotonic_ns()

    def sleep(self, changed: Condition, ns: int) -> None:
        """Sleep so long or less, at the longest until *changed*, whose lock is held, is notified."""
        changed.wait(min(ns / 1e9, LOOK))

    def nap(self) -> None:
        """Let other threads run for a moment."""
        time.sleep(0)
