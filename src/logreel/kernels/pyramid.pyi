import numpy as np
from numpy.typing import NDArray

FACTOR: int
NONE: int
MOST_LEVELS: int

def fold(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    least: NDArray[np.float64],
    most: NDArray[np.float64],
    least_at: NDArray[np.uint8],
    most_at: NDArray[np.uint8],
) -> int: ...
def extrema(
    edge: NDArray[np.int64],
    group: NDArray[np.int64],
    raw: NDArray[np.float64],
    begin: NDArray[np.int64],
    least: NDArray[np.float64],
    most: NDArray[np.float64],
    least_at: NDArray[np.uint8],
    most_at: NDArray[np.uint8],
    rows: int,
    out: NDArray[np.int64],
) -> int: ...
