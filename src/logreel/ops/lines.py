"""Lines of a pipe as they come, without waiting for ever for the next one."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable, Iterator
from typing import Protocol

#: Bytes asked for at once.
PIECE = 1 << 16
#: No message is longer; what goes on after so many bytes is no line.
LONGEST = 1 << 28


class Pipe(Protocol):
    """A binary file of the system."""

    def fileno(self) -> int:
        """Its number."""


def lines_of(source: Pipe | Iterable[bytes | str], patience: float) -> Iterator[bytes | str | None]:
    """The lines of *source*; None whenever none came for *patience* seconds. Those of more than LONGEST bytes are cut.

    source  a binary file of the system, which nobody else reads, or any lines
    """
    number = _number(source)
    if number is not None:
        yield from _from_system(number, patience)
    else:
        yield from source  # type: ignore[misc] # what has no number is lines


def _number(source: object) -> int | None:
    try:
        number: int = source.fileno()  # type: ignore[attr-defined]
    except (AttributeError, OSError):
        return None
    return number


def _from_system(number: int, patience: float) -> Iterator[bytes | None]:
    begun = bytearray()
    while True:
        if not select.select([number], [], [], patience)[0]:
            yield None
            continue
        piece = os.read(number, PIECE)
        if not piece:
            break
        first, *others = piece.split(b"\n")
        begun += first[: LONGEST - len(begun)]
        for part in others:
            yield bytes(begun)
            begun = bytearray(part)
    if begun:
        yield bytes(begun)
