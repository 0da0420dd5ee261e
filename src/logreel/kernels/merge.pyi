from typing import Any

import numpy as np
from numpy.typing import NDArray

class Queues:
    def __init__(self, up: NDArray[np.int64], by_time: bool, reverse: bool) -> None: ...
    def add(
        self,
        times: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        first_row: int,
        shift: int,
        rank: int,
        entries: NDArray[np.uint32],
        begins: NDArray[np.int64],
        ends: NDArray[np.int64],
        bases: NDArray[np.int64],
        chunks: NDArray[np.int32],
        ready: NDArray[np.uint8] | None,
    ) -> None: ...
    def add_starts(
        self,
        times: NDArray[np.int64],
        rows: NDArray[np.int64] | None,
        first_row: int,
        shift: int,
        rank: int,
        starts: NDArray[np.int64],
    ) -> None: ...
    def waiting(self) -> list[tuple[int, int]]: ...
    def merge(
        self,
        time: NDArray[np.int64],
        queue: NDArray[np.int32],
        chunk: NDArray[np.int32],
        start: NDArray[np.int64],
        at: NDArray[np.int64],
        n: int,
    ) -> int: ...

class SizeRules:
    def __init__(self, count: int) -> None: ...
    def add_unknown(self) -> None: ...
    def add_constant(self, size: int) -> None: ...
    def add_field(self, data: NDArray[np.uint8], offset: int, width: int, mul: int, add: int) -> None: ...
    def add_stored(self, values: NDArray[Any], width: int) -> None: ...
    def measure(
        self,
        queue: NDArray[np.int32],
        start: NDArray[np.int64],
        at: NDArray[np.int64],
        size: NDArray[np.int64],
    ) -> int: ...
