"""Undo text mode on Windows, which writes 0D before every 0A.

According to their sources, some builds of the UE5 line opened the recording in text mode.
"""

from __future__ import annotations

import io
from typing import IO, cast

import numpy as np

from logreel.io.source import Source

_CR, _LF = 0x0D, 0x0A
_PIECE = 1 << 20


def is_text_mode(source: Source) -> bool:
    """Return True if there is an 0A and every 0A follows an 0D, which is very unlikely in long binary data."""
    data, found = source.data, False
    for at in range(0, source.size, _PIECE):
        feeds = np.flatnonzero(data[at : at + _PIECE] == _LF) + at
        if len(feeds) and (feeds[0] == 0 or (data[feeds - 1] != _CR).any()):
            return False
        found |= bool(len(feeds))
    return found


class _BinaryReader(io.RawIOBase):
    """The bytes of a source without each 0D that precedes an 0A."""

    def __init__(self, source: Source) -> None:
        self._source, self._at = source, 0

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, about *size*; b"" at the end."""
        while self._at < self._source.size:
            piece = self._source.data[self._at : self._at + size + 1]
            keep = np.append((piece[:-1] != _CR) | (piece[1:] != _LF), True)[:size]
            self._at += len(keep)
            kept: bytes = piece[: len(keep)][keep].tobytes()
            if kept:
                return kept
        return b""


def undo_text_mode(source: Source) -> Source:
    """Return the recording without the added bytes; a large one is stored in a temporary file."""
    binary = Source.open(cast(IO[bytes], _BinaryReader(source)))
    binary.name, binary.path = source.name, source.path
    return binary
