"""Notices of what takes long, such as a download: programs add a listener for them; the library prints nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Functions that are called with one sentence; the command line adds one that prints it.
listeners: list[Callable[[str], None]] = []


_local = threading.local()


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the sentences of this thread in a list, in place of passing them to the listeners."""
    outer: list[str] | None = getattr(_local, "heard", None)
    found: list[str] = []
    _local.heard = found
    try:
        yield found
    finally:
        _local.heard = outer


def notice(text: str) -> None:
    """Pass one sentence to all listeners, or to the block of ``heard`` that this thread is in."""
    if (found := getattr(_local, "heard", None)) is not None:
        found.append(text)
        return
    for listener in listeners:
        listener(text)
