"""Chunks of several files under numbers of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.chunks import FILE, SYNTHETIC, Buffer, Chunks


class JoinedChunks(Chunks):
    """Buffers of several files: -1, -3, -5 … are the files themselves, -2, -4, -6 … their synthetic chunks.

    Chunk c of part p of n, where it is unpacked, is c * n + p.
    """

    def __init__(self, parts: Sequence[Chunks]) -> None:
        self._parts = list(parts)

    def number(self, part: int, chunk: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return int32[n]: the numbers here of chunks of *part*."""
        found: NDArray[Any] = np.where(chunk < 0, chunk - 2 * part, chunk * len(self._parts) + part)
        return found.astype(np.int32)

    def locate(self, chunk: int) -> tuple[int, int]:
        """Return the part of a chunk, and its number there."""
        if chunk < 0:
            return (-chunk - 1) // 2, FILE if chunk % 2 else SYNTHETIC
        return chunk % len(self._parts), chunk // len(self._parts)

    def __getitem__(self, chunk: int) -> Buffer:
        part, number = self.locate(chunk)
        return self._parts[part][number]

    def check(self) -> None:
        """Raise FileChangedError if one of the files was found changed, see ``Chunks.check``."""
        for part in self._parts:
            part.check()

    def check_pages(self) -> None:
        """Do what ``check`` does if pages of any file were lost, see ``Chunks.check_pages``."""
        for part in self._parts:
            part.check_pages()

    def size_of(self, chunk: int) -> int:
        """Return the bytes of a chunk, see ``Chunks.size_of``."""
        part, number = self.locate(chunk)
        return self._parts[part].size_of(number)

    def place_of(self, chunk: int) -> int:
        """Return the offset in its file of the stored bytes of a chunk."""
        part, number = self.locate(chunk)
        return self._parts[part].place_of(number)

    def view(self, chunk: int) -> memoryview:
        """Return the buffer of a chunk as a memoryview."""
        part, number = self.locate(chunk)
        return self._parts[part].view(number)
