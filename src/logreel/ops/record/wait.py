"""Waiting for data of a file or socket, and for the end of a recording."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from time import monotonic

#: Seconds for writing what has come when a recording is to end.
DRAIN_WITHIN = 3.0


def readable(file: int | socket.socket, seconds: float) -> bool:
    """Return whether reading *file* would not block, after waiting for at most *seconds*.

    The end of a file, a closed connection and an error count as readable. Unlike ``select.select``, this works for file
    descriptors above 1023, which programs with many open logs have.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class DrainLimit:
    """Function that returns whether writing takes too long for a recording that is to end.

    stop  whether the recording was asked to end
    ends  when it ends by itself, as ``time.monotonic`` has it; None: not
    """

    def __init__(self, stop: Callable[[], bool], ends: float | None = None) -> None:
        self._stop, self._ends = stop, ends
        self._late_at: float | None = None

    def __call__(self) -> bool:
        if self._late_at is None:
            now = monotonic()
            if self._stop() or (self._ends is not None and now >= self._ends):
                self._late_at = now + DRAIN_WITHIN
        return self._late_at is not None and monotonic() >= self._late_at
