import numpy as np
from numpy.typing import NDArray

def find(buf: NDArray[np.uint8], pos: int, end: int, longest: int) -> int: ...
def walk(
    buf: NDArray[np.uint8],
    pos: int,
    end: int,
    key: NDArray[np.uint64],
    time: NDArray[np.int64],
    data: NDArray[np.int64],
    size: NDArray[np.int64],
    note: NDArray[np.int64],
    foreign: int,
    named: int,
) -> tuple[int, int, int, int]: ...
def locate(
    buf: NDArray[np.uint8],
    run: NDArray[np.int64],
    conn: NDArray[np.uint32],
    entry: NDArray[np.uint32],
    time: NDArray[np.int64],
    size: NDArray[np.uint32],
    good: NDArray[np.int64],
) -> None: ...
