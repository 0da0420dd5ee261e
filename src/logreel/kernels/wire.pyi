import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Buffer = NDArray[np.uint8]

def walk(buf: Buffer, state: I64, end: int, known: I32, record: NDArray[np.uint64], count: I64) -> int: ...
def resync(buf: Buffer, pos: int, end: int, known: I32, need: int, last: int, tail: int) -> int: ...
