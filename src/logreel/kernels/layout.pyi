import numpy as np
from numpy.typing import NDArray

FIXED: int
BLOB: int
SKIP: int
LIST: int
REPEAT: int
STRINGS: int
REST: int
ALIGN: int
EXPECT: int
OK: int
SHORT: int
LEFTOVER: int
TOO_MANY: int
SPARE: int

def count(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    ops: NDArray[np.int64],
    counts: NDArray[np.int64],
    status: NDArray[np.uint8],
) -> int: ...
def fill(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    ops: NDArray[np.int64],
    copies: NDArray[np.int64],
    arena: NDArray[np.uint8],
    data: NDArray[np.int64],
    limits: NDArray[np.int64],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> bool: ...
