from typing import Any

import numpy as np
from numpy.typing import NDArray

VELODYNE_PACKET: int
VELODYNE_BLOCK: int
VELODYNE_BLOCKS: int
VELODYNE_LASERS: int
VELODYNE_UPPER: int
VELODYNE_LOWER: int

def velodyne_points(
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
