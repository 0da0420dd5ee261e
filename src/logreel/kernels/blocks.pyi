from typing import Any

import numpy as np
from numpy.typing import NDArray

def group(
    record: NDArray[np.uint64],
    n: int,
    count: NDArray[np.int64],
    start: NDArray[Any],
    entry: NDArray[np.uint32],
    used: int,
    length: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
) -> int: ...
def touch(buf: NDArray[np.uint8], start: int, end: int) -> int: ...
def unroll(
    values: NDArray[np.uint32],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    base: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int: ...
def repeat(values: NDArray[np.int64], count: NDArray[np.int64], out: NDArray[np.int64]) -> int: ...
def latest(
    buf: NDArray[np.uint8],
    base: int,
    start: NDArray[np.int64],
    entry: NDArray[np.uint32],
    words: NDArray[np.int64],
    end: int,
    places: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None: ...
