import numpy as np
from numpy.typing import NDArray

OK: int
SHORT: int
LEFTOVER: int
TOO_MANY: int
SPARE: int

def count(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    ops: NDArray[np.int64],
    counts: NDArray[np.int64],
    status: NDArray[np.uint8],
) -> int: ...
