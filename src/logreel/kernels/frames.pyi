from typing import Any

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
    offset: NDArray[np.uint32],
    channel: NDArray[np.uint32],
    note: NDArray[np.int64],
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
def group(
    offset: NDArray[np.uint32],
    channel: NDArray[np.uint32],
    n: int,
    start: NDArray[Any],
    entry: NDArray[np.uint32],
    used: int,
) -> int: ...
