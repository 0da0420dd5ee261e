import numpy as np
from numpy.typing import NDArray

NUMBER: int
NUMBERS: int
TEXT: int
WIDE: int
WCHAR: int
LIST: int
REPEAT: int
BLOCK: int
DELIMITED: int
PARAMETERS: int
MEMBER: int
OPTIONAL: int
BAD: int
FREE: int
FOR_EACH: int

def rewrite(
    source: NDArray[np.uint8],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    ops: NDArray[np.int64],
    how: tuple[bool, int, int, bool],
    out: NDArray[np.uint8],
    places: NDArray[np.int64],
    left: NDArray[np.int64],
) -> int: ...
