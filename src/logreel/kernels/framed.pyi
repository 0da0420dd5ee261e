import numpy as np
from numpy.typing import NDArray

def walk(
    buf: NDArray[np.uint8],
    state: NDArray[np.int64],
    end: int,
    block: int,
    spec: NDArray[np.int64],
    tags: NDArray[np.int64],
    keys: NDArray[np.int64],
    record: NDArray[np.uint64],
    count: NDArray[np.int64],
    note: NDArray[np.int64],
    length: NDArray[np.uint32],
) -> int: ...
def resync(
    buf: NDArray[np.uint8],
    pos: int,
    end: int,
    need: int,
    spec: NDArray[np.int64],
    tags: NDArray[np.int64],
    keys: NDArray[np.int64],
    last: int,
) -> int: ...
