import numpy as np
from numpy.typing import NDArray

def fill(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    ops: NDArray[np.int64],
    copies: NDArray[np.int64],
    data: NDArray[np.uint64],
    limits: NDArray[np.uint64],
    offsets: NDArray[np.uint64],
) -> None: ...
