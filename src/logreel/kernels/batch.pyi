from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        self,
    ) -> (
        tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]
        | None
    ): ...
