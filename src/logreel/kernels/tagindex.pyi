import numpy as np
from numpy.typing import NDArray

OK: int
NO_CHUNK: int
CUT: int
NO_INDEX: int
COMPRESSIONS: tuple[str, ...]

def follow(
    buf: NDArray[np.uint8],
    pos: NDArray[np.int64],
    many: NDArray[np.int64],
    chunk: NDArray[np.int64],
    run: NDArray[np.int64],
) -> tuple[int, int]: ...
def entries(
    buf: NDArray[np.uint8],
    run: NDArray[np.int64],
    time: NDArray[np.int64],
    place: NDArray[np.uint32],
) -> int: ...
