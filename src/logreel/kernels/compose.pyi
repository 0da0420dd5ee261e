import numpy as np
from numpy.typing import NDArray

def compose(
    data: NDArray[np.uint8],
    channel: NDArray[np.int32],
    time: NDArray[np.int64],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    heads: NDArray[np.uint8],
    shape: NDArray[np.int64],
    stamp: NDArray[np.int64],
    place: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
