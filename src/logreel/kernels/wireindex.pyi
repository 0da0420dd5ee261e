import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Buffer = NDArray[np.uint8]

def entries(buf: Buffer, pos: int, end: int, time: I64, place: I64) -> tuple[int, int, int, int]: ...
def locate(
    buf: Buffer, end: int, key: int, place: I64, time: I64, payload: I64, size: I64, head: U32
) -> int: ...
def numbers(buf: Buffer, payload: I64, head: U32, out: I64) -> int: ...
