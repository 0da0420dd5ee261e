"""Lines of a pipe, with a timeout for each."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Protocol

from logreel.ops.record.wait import readable

#: Bytes read at once.
PIECE = 1 << 16
#: Shortest wait for a line in seconds.
LEAST_PATIENCE = 0.01
#: Longer lines are cut.
LONGEST = 1 << 28


class Pipe(Protocol):
    """A file object with a file descriptor."""

    def fileno(self) -> int:
        """Return the file descriptor."""


def read_lines(source: Pipe | Iterable[bytes | str], patience: float) -> Iterator[bytes | str | None]:
    """Yield the lines of *source*, and None after each *patience* seconds without the end of a line.

    source  a file with a file descriptor, from which nothing else reads, or any iterable of lines

    Lines longer than LONGEST bytes are cut.
    """
    number = _number(source)
    if number is not None:
        yield from _from_system(number, patience)
    else:
        yield from source  # type: ignore[misc] # without a file descriptor it is an iterable of lines


def _number(source: object) -> int | None:
    try:
        number: int = source.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    return number


def _from_system(number: int, patience: float) -> Iterator[bytes | None]:
    begun, last = bytearray(), monotonic()
    while True:
        if monotonic() - last >= patience or not readable(number, patience):
            # Also within a line that does not end.
            yield None
            last = monotonic()
            continue
        piece = os.read(number, PIECE)
        if not piece:
            break
        first, *others = piece.split(b"\n")
        begun += first[: LONGEST - len(begun)]
        for part in others:
            yield bytes(begun)
            begun, last = bytearray(part), monotonic()
    if begun:
        yield bytes(begun)
