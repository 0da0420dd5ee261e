import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
U32 = NDArray[np.uint32]
Buffer = NDArray[np.uint8]

def walk(
    buf: Buffer, state: I64, end: int, known: Buffer, key: U32, entry: U32, size: I64, time: I64, head: U32
) -> int: ...
def resync(buf: Buffer, pos: int, end: int, known: Buffer, need: int, last: int, tail: int) -> int: ...
def group(
    n: int,
    channel: NDArray[np.int32],
    key: U32,
    entry: U32,
    size: I64,
    time: I64,
    head: U32,
    start: I64,
    to_entry: U32,
    to_size: I64,
    to_time: I64,
    to_head: U32,
    used: int,
) -> int: ...
