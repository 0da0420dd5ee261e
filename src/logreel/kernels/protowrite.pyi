import numpy as np
from numpy.typing import NDArray

def write(
    ops: NDArray[np.int64], columns: NDArray[np.uint64], start: NDArray[np.int64], out: NDArray[np.uint8]
) -> None: ...
