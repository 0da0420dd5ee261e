from typing import Any

import numpy as np
from numpy.typing import NDArray

def encoded_sizes(
    ops: NDArray[np.int64],
    offsets: list[NDArray[np.int32]],
    size: NDArray[np.int64],
    largest: int,
) -> tuple[int, int]: ...
def encode(
    ops: NDArray[np.int64],
    copies: NDArray[np.int64],
    data: list[NDArray[Any]],
    offsets: list[NDArray[np.int32]],
    start: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
