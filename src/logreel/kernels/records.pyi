from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEBUG: bool
MICROSECONDS_INSIDE: int
HEADER: list[tuple[str, str]]

def count_channels(channel: NDArray[np.int32], counts: NDArray[np.int64]) -> None: ...
def payloads_inside(
    rooms: NDArray[np.int64], which: NDArray[np.int32], start: NDArray[np.int64], size: NDArray[np.int64]
) -> bool: ...
def record_offsets(
    channel: NDArray[np.int32], size: NDArray[np.int64], headers: NDArray[np.void], place: NDArray[np.int64]
) -> None: ...
def write_records(
    buffers: list[NDArray[np.uint8]],
    which: NDArray[np.int32],
    channel: NDArray[np.int32],
    time: NDArray[np.int64],
    start: NDArray[np.int64],
    size: NDArray[np.int64],
    heads: NDArray[np.uint8],
    headers: NDArray[np.void],
    place: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None: ...
def now() -> float: ...

class Batch:
    channels: int
    earliest: int
    latest: int
    largest: int
    due: float
    def __init__(
        self, rows: int, room: int, other: Callable[[Any, Any, Any], None] | None = None
    ) -> None: ...
    def write(self, channel: Any, time: Any, data: Any) -> None: ...
    def add(self, channel: object, time: object, data: object) -> bool: ...
    def take(
        self, last: bool = False
    ) -> (
        tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
        | None
    ): ...
