import numpy as np
from numpy.typing import NDArray

def gather_blocks(
    buf: NDArray[np.uint8],
    base: NDArray[np.int64],
    start: NDArray[np.int64],
    entry: NDArray[np.uint32],
    first: int,
    last: int,
    channels: NDArray[np.int64],
    rows: NDArray[np.int64],
    split: NDArray[np.int64],
    fields: NDArray[np.int64],
    warm: bool,
) -> None: ...
def gather_at(buf: NDArray[np.uint8], offset: NDArray[np.int64], fields: NDArray[np.int64]) -> None: ...
def verify(
    start: NDArray[np.int64],
    base: NDArray[np.int64],
    entry: NDArray[np.uint32],
    least: NDArray[np.int64],
    before: int,
    limit: int,
) -> bool: ...
