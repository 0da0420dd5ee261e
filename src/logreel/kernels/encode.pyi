import numpy as np
from numpy.typing import NDArray

def sizes(
    ops: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    size: NDArray[np.int64],
    largest: int,
) -> tuple[int, int]: ...
def write(
    ops: NDArray[np.int64],
    copies: NDArray[np.int64],
    data: NDArray[np.uint64],
    offsets: NDArray[np.uint64],
    start: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
