import numpy as np
from numpy.typing import NDArray

END: int
CUT: int
BAD: int
STOP: int
FULL: int

def walk(
    buf: NDArray[np.uint8],
    pos: int,
    end: int,
    key: NDArray[np.int64],
    time: NDArray[np.int64],
    data: NDArray[np.int64],
    size: NDArray[np.int64],
    note: NDArray[np.int64],
    stop: int,
) -> tuple[int, int, int, int]: ...
def find_records(buf: NDArray[np.uint8], pos: int, end: int) -> int: ...
def read_index_entries(
    buf: NDArray[np.uint8],
    run: NDArray[np.int64],
    time: NDArray[np.int64],
    place: NDArray[np.uint32],
    good: NDArray[np.uint8],
) -> None: ...
def count_messages(
    buf: NDArray[np.uint8], place: NDArray[np.int64], count: NDArray[np.int64]
) -> tuple[int, int]: ...
def write_index(
    buf: NDArray[np.uint8],
    place: NDArray[np.int64],
    count: NDArray[np.int64],
    begin: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
def locate_messages(
    buf: NDArray[np.uint8],
    run: NDArray[np.int64],
    entry: NDArray[np.uint32],
    time: NDArray[np.int64],
    size: NDArray[np.uint32],
    good: NDArray[np.int64],
) -> None: ...
