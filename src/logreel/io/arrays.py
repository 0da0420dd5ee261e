"""NumPy array types used everywhere, and memory for columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed arrays for the next ones, where it is glibc.

    It gives freed memory back to the system beyond a threshold, at first 128 kB, which rises with the largest block
    that was freed. Below it, arrays of some MB that are made piece after piece cost more time in page faults than to
    fill. The process keeps up to 48 MB more; no memory is touched here.
    """
    np.empty(24 << 20, np.uint8)
