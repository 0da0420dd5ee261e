"""NumPy array types used everywhere, and memory for columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]


def aligned(size: int) -> NDArray[np.uint8]:
    """Return uint8[size] with undefined content that begins at a multiple of 64 bytes."""
    room = np.empty(size + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct *values*, ascending; np.unique imports numpy.ma, as long as opening a small log takes."""
    found = np.sort(values)
    first = np.ones(len(found), np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first]


class GrowingArray:
    """Array to which rows are added one at a time, in constant time each."""

    __slots__ = ("_length", "_room")

    def __init__(self, dtype: Any, *width: int) -> None:
        self._room: NDArray[Any] = np.empty((16, *width), dtype)
        self._length = 0

    def append(self, row: Any) -> None:
        """Add a row."""
        if self._length == len(self._room):
            # Twice the room: to copy all rows for each new one would take time in the square of their number.
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._length] = row
        self._length += 1

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> NDArray[Any]:
        """All rows; a view, which is valid until the next one is added."""
        return self._room[: self._length]


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed arrays for the next ones, where it is glibc.

    It gives freed memory back to the system beyond a threshold, at first 128 kB, which rises with the largest block
    that was freed. Below it, arrays of some MB that are made piece after piece cost more time in page faults than to
    fill. The process keeps up to 48 MB more; no memory is touched here.
    """
    np.empty(24 << 20, np.uint8)
