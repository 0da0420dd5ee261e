"""Undo what a writer in text mode does on Windows: 0D before every 0A.

Some builds of the UE5 line opened their output that way, as their sources show.
"""

from __future__ import annotations

import io
from typing import IO, cast

import numpy as np

from logreel.io.source import Source

_CR, _LF = 0x0D, 0x0A
_PIECE = 1 << 20


def is_text_mode(source: Source) -> bool:
    """Whether there is an 0A and each one has an 0D before it, which binary data of some length never has."""
    data, found = source.data, False
    for at in range(0, source.size, _PIECE):
        feeds = np.flatnonzero(data[at : at + _PIECE] == _LF) + at
        if len(feeds) and (feeds[0] == 0 or (data[feeds - 1] != _CR).any()):
            return False
        found |= bool(len(feeds))
    return found


class _Undone(io.RawIOBase):
    """The bytes of a source without each 0D that stands before an 0A."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def read(self, size: int = -1) -> bytes:
        """The next piece, of about *size* bytes; none at the end."""
        while self._at < self._source.size:
            piece = self._source.data[self._at : self._at + size + 1]
            keep = np.append((piece[:-1] != _CR) | (piece[1:] != _LF), True)[:size]
            self._at += len(keep)
            kept: bytes = piece[: len(keep)][keep].tobytes()
            if kept:
                return kept
        return b""


def undo_text_mode(source: Source) -> Source:
    """The recording as it was before; large ones lie in a temporary file."""
    whole = Source.open(cast(IO[bytes], _Undone(source)))
    whole.name, whole.path = source.name, source.path
    return whole
