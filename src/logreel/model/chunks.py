"""The stretches of bytes that messages lie in: the file itself, and what must be made or unpacked first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from logreel.model.source import Source

#: Chunk number of the file itself.
FILE = -1
#: Chunk number of records that the reader made from content kept in another shape (text lines, parameters).
MADE = -2

Buffer = NDArray[np.uint8]


class Chunks:
    """Bytes by chunk number: FILE, MADE, or 0 … for what the format unpacks.

    unpack  turns a chunk number ≥ 0 into its bytes; only formats with compressed chunks have one
    sizes   how many bytes that will be, about
    places  where in the file what is unpacked begins
    """

    def __init__(
        self,
        source: Source,
        unpack: Callable[[int], Buffer] | None = None,
        sizes: Callable[[int], int] = lambda chunk: 1 << 20,
        places: Callable[[int], int] = lambda chunk: 0,
    ) -> None:
        self._source, self._unpack, self._sizes, self._places = source, unpack, sizes, places
        self.made: Buffer = np.zeros(0, np.uint8)

    def __getitem__(self, chunk: int) -> Buffer:
        if chunk == FILE:
            return self._source.data
        if chunk == MADE:
            return self.made
        if self._unpack is None:
            raise IndexError(f"this log has no chunk {chunk}")
        return self._unpack(chunk)

    def size_of(self, chunk: int) -> int:
        """Bytes of a chunk, without unpacking it where its size is known."""
        return self._sizes(chunk) if chunk >= 0 else len(self[chunk])

    def place_of(self, chunk: int) -> int:
        """Where in the file the stored bytes of a chunk begin."""
        return self._places(chunk) if chunk >= 0 else 0

    def view(self, chunk: int) -> memoryview:
        """The same bytes as a memoryview."""
        return self._source.view if chunk == FILE else memoryview(self[chunk])  # type: ignore[arg-type]
