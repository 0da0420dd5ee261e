import numpy as np
from numpy.typing import NDArray

ROOM: int

def write_columns(
    ops: NDArray[np.int64], columns: NDArray[np.uint64], start: NDArray[np.int64], out: NDArray[np.uint8]
) -> None: ...
def write_fixed(
    ops: NDArray[np.int32],
    first: NDArray[np.int64],
    kind: NDArray[np.int32],
    place: NDArray[np.uint64],
    start: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
