"""NumPy array types used everywhere, and memory for columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]


def aligned(size: int) -> NDArray[np.uint8]:
    """Return uint8[size] with undefined content that begins at a multiple of 64 bytes."""
    room = np.empty(size + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]
