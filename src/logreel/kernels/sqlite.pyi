import numpy as np
from numpy.typing import NDArray

COLUMNS: int

def leaves_below(
    source: NDArray[np.uint8],
    page: int,
    page_bytes: int,
    usable: int,
    used: NDArray[np.uint8],
    out: NDArray[np.int64],
) -> int: ...
def cells(
    source: NDArray[np.uint8],
    leaves: NDArray[np.int64],
    page_bytes: int,
    usable: int,
    out: NDArray[np.int64],
) -> int: ...
def message_rows(
    source: NDArray[np.uint8],
    leaves: NDArray[np.int64],
    page_bytes: int,
    usable: int,
    columns: int,
    topic: int,
    time: int,
    data: int,
    largest: int,
    magic: int,
    out: NDArray[np.int64],
) -> tuple[int, int]: ...
