import numpy as np
from numpy.typing import NDArray

ROOM: int
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
