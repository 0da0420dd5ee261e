import numpy as np
from numpy.typing import NDArray

def tally(channel: NDArray[np.int32], counts: NDArray[np.int64]) -> None: ...
def inside(
    rooms: NDArray[np.int64], which: NDArray[np.int32], start: NDArray[np.int64], size: NDArray[np.int64]
) -> bool: ...
def places(
    channel: NDArray[np.int32], size: NDArray[np.int64], shape: NDArray[np.int64], place: NDArray[np.int64]
) -> None: ...
def compose(
    buffers: NDArray[np.int64],
    which: NDArray[np.int32],
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
