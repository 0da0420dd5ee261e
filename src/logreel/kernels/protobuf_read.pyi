from typing import Any

import numpy as np
from numpy.typing import NDArray

VARINT: int
FIXED: int
SPAN: int
MESSAGE: int
TIME: int

def count(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    bodies: NDArray[np.int64],
    fields: NDArray[np.int64],
    scopes: NDArray[np.int64],
    ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    marks: NDArray[np.int64],
    irregular: NDArray[np.uint8],
) -> int: ...
def fill(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    bodies: NDArray[np.int64],
    fields: NDArray[np.int64],
    scopes: NDArray[np.int64],
    ends: NDArray[np.int64],
    counts: NDArray[np.int64],
    marks: NDArray[np.int64],
    columns: list[NDArray[Any]],
) -> bool: ...
