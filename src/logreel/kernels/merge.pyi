import numpy as np
from numpy.typing import NDArray

QUEUE: list[tuple[str, str]]
STATE: list[tuple[str, str]]
RULE: list[tuple[str, str]]

def merge(
    queues: NDArray[np.void],
    state: NDArray[np.void],
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
    rules: NDArray[np.void],
    queue: NDArray[np.int32],
    start: NDArray[np.int64],
    at: NDArray[np.int64],
    size: NDArray[np.int64],
) -> int: ...
