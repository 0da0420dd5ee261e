import numpy as np
from numpy.typing import NDArray

OK: int
NO_CHUNK: int
CUT: int
NO_INDEX: int
COMPRESSIONS: tuple[str, ...]

def find_record(buf: NDArray[np.uint8], pos: int, end: int, longest: int) -> int: ...
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
def locate_messages(
    buf: NDArray[np.uint8],
    run: NDArray[np.int64],
    conn: NDArray[np.uint32],
    entry: NDArray[np.uint32],
    time: NDArray[np.int64],
    size: NDArray[np.uint32],
    good: NDArray[np.int64],
) -> None: ...
def read_chunk_headers(
    buf: NDArray[np.uint8],
    pos: NDArray[np.int64],
    many: NDArray[np.int64],
    chunk: NDArray[np.int64],
    run: NDArray[np.int64],
) -> tuple[int, int]: ...
def read_index_entries(
    buf: NDArray[np.uint8],
    run: NDArray[np.int64],
    time: NDArray[np.int64],
    place: NDArray[np.uint32],
) -> int: ...
