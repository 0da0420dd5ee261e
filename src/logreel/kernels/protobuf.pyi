from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOM: int
KIND: list[tuple[str, str]]
COLUMN_VARINT: int
COLUMN_FIXED: int
COLUMN_SPAN: int
COLUMN_PACKED: int
COLUMN_MESSAGE: int
COLUMN_MESSAGES: int
COLUMN_SPANS: int
COLUMN_TIME: int
FIXED_WORDS: int
FIXED_LONGS: int
FIXED_VARINTS: int
FIXED_SPAN: int
FIXED_PACKED: int
FIXED_MESSAGE: int
FIXED_MESSAGES: int
FIXED_TIME: int

def write_columns(
    ops: NDArray[np.int64], columns: list[NDArray[Any]], start: NDArray[np.int64], out: NDArray[np.uint8]
) -> None: ...
def write_fixed(
    ops: NDArray[np.int32],
    kinds: NDArray[np.void],
    kind: NDArray[np.int32],
    buffers: list[NDArray[np.uint8]],
    which: NDArray[np.int32],
    place: NDArray[np.int64],
    start: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
