from typing import Any

import numpy as np
from numpy.typing import NDArray

FIELD: list[tuple[str, str]]

def group_records(
    record: NDArray[np.uint64],
    n: int,
    count: NDArray[np.int64],
    start: NDArray[Any],
    entry: NDArray[np.uint32],
    used: int,
    length: NDArray[np.uint32],
    lengths: NDArray[np.uint32],
) -> int: ...
def touch_pages(buf: NDArray[np.uint8], start: int, end: int) -> int: ...
def unroll(
    values: NDArray[np.uint32],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    base: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int: ...
def repeat(values: NDArray[np.int64], count: NDArray[np.int64], out: NDArray[np.int64]) -> int: ...
def latest_times(
    buf: NDArray[np.uint8],
    base: int,
    start: NDArray[np.int64],
    entry: NDArray[np.uint32],
    words: NDArray[np.int64],
    end: int,
    window: int,
    places: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None: ...
def text_lengths(chars: NDArray[np.uint8], out: NDArray[np.int64]) -> None: ...
def join_rows(chars: NDArray[np.uint8], length: NDArray[np.int64], out: NDArray[np.uint8]) -> int: ...
def gather_blocks(
    buf: NDArray[np.uint8],
    base: NDArray[np.int64],
    start: NDArray[np.int64],
    entry: NDArray[np.uint32],
    first: int,
    last: int,
    channels: NDArray[np.int64],
    rows: NDArray[np.int64],
    split: NDArray[np.int64],
    fields: NDArray[np.void],
    out: NDArray[np.uint8],
    warm: bool,
) -> None: ...
def gather_at(
    buf: NDArray[np.uint8],
    offset: NDArray[np.int64],
    fields: NDArray[np.void],
    out: NDArray[np.uint8],
    row: int = 0,
) -> None: ...
def is_valid_table(
    start: NDArray[np.int64],
    base: NDArray[np.int64],
    entry: NDArray[np.uint32],
    least: NDArray[np.int64],
    before: int,
    limit: int,
) -> bool: ...
def digest_payloads(
    data: NDArray[np.uint8], start: NDArray[np.int64], size: NDArray[np.int64], out: NDArray[np.uint64]
) -> int: ...
