"""Waiting for data of a file or socket."""

from __future__ import annotations

import select
import socket


def readable(file: int | socket.socket, seconds: float) -> bool:
    """Return whether reading *file* would not block, after waiting for at most *seconds*.

    The end of a file, a closed connection and an error count as readable. Unlike ``select.select``, this works for file
    descriptors above 1023, which programs with many open logs have.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
