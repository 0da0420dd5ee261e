from typing import Any

import numpy as np
from numpy.typing import NDArray

PACKET: int
BLOCK: int
BLOCKS: int
LASERS: int
UPPER: int
LOWER: int

def points(
    buf: NDArray[np.uint8],
    offset: NDArray[np.int64],
    stamp: NDArray[np.int64],
    turn: NDArray[np.float32],
    laser: NDArray[np.float32],
    delay: NDArray[np.int64],
    ring_of: NDArray[np.uint8],
    two_banks: bool,
    xyz: NDArray[np.float32],
    intensity: NDArray[np.uint8],
    ring: NDArray[np.uint8],
    azimuth: NDArray[np.float32],
    time: NDArray[Any],
    count: NDArray[np.int64],
) -> int: ...
