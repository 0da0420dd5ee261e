import numpy as np
from numpy.typing import NDArray

REFUSE: int
DATA: int
NOTE: int
STOP: int
TOLERATE: int
UNDECLARED: int
TOLERATED: int
END: int
STOPPED: int
BAD: int
CUT: int
FULL: int
SPEC: list[tuple[str, str]]
TAG: list[tuple[str, str]]
KEY: list[tuple[str, str]]

def walk(
    buf: NDArray[np.uint8],
    state: NDArray[np.int64],
    end: int,
    block: int,
    spec: NDArray[np.void],
    tags: NDArray[np.void],
    keys: NDArray[np.void],
    record: NDArray[np.uint64],
    count: NDArray[np.int64],
    note: NDArray[np.int64],
    length: NDArray[np.uint32],
) -> int: ...
def resync(
    buf: NDArray[np.uint8],
    pos: int,
    end: int,
    need: int,
    spec: NDArray[np.void],
    tags: NDArray[np.void],
    keys: NDArray[np.void],
    last: int,
) -> int: ...
def latest_before(
    base: NDArray[np.int64],
    start: NDArray[np.int64],
    entry: NDArray[np.uint32],
    among: NDArray[np.int64],
    channel: int,
    out: NDArray[np.int64],
) -> int: ...
