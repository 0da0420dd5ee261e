import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
Buffer = NDArray[np.uint8]

def sizes(channel: NDArray[np.int32], time: I64, size: I64, series: I64, numbers: I64, out: I64) -> None: ...
def compose(
    data: Buffer,
    channel: NDArray[np.int32],
    time: I64,
    start: I64,
    size: I64,
    series: I64,
    numbers: I64,
    head: I64,
    place: I64,
    out: Buffer,
) -> None: ...
def entries(buf: Buffer, place: I64, out: Buffer, base: int = 0) -> tuple[int, int]: ...
