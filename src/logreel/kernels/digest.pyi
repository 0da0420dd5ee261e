import numpy as np
from numpy.typing import NDArray

def digest(
    data: NDArray[np.uint8], start: NDArray[np.int64], size: NDArray[np.int64], out: NDArray[np.uint64]
) -> int: ...
