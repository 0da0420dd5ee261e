import numpy as np
from numpy.typing import NDArray

def merge(
    queues: NDArray[np.int64],
    state: NDArray[np.int64],
    tree: NDArray[np.int64],
    up: NDArray[np.int64],
    by_time: bool,
    reverse: bool,
    time: NDArray[np.int64],
    queue: NDArray[np.int32],
    chunk: NDArray[np.int32],
    start: NDArray[np.int64],
    at: NDArray[np.int64],
    n: int,
) -> int: ...
def measure_sizes(
    rules: NDArray[np.int64],
    queue: NDArray[np.int32],
    start: NDArray[np.int64],
    at: NDArray[np.int64],
    size: NDArray[np.int64],
) -> int: ...
