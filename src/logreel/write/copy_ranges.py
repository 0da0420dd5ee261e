"""Byte ranges of a log, copied unchanged."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from logreel.io.arrays import I64
from logreel.io.chunks import Buffer
from logreel.write.payloads import joined

#: Takes bytes of the new file.
Write = Callable[[memoryview], object]
#: Mean length below which ranges are joined before they are written, else they are written one by one.
SHORT = 4096
#: Bytes written at once.
STEP = 4 << 20


def joined_ranges(start: I64, end: I64) -> tuple[I64, I64]:
    """Return ranges in ascending order, adjacent ones joined; int64[n] starts and ends."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    cut = np.flatnonzero(start[1:] != end[:-1])
    return start[np.concatenate([[0], cut + 1])], end[np.concatenate([cut, [len(end) - 1]])]


def write_ranges(write: Write, data: Buffer, start: I64, end: I64) -> None:
    """Pass the ranges data[start[i]:end[i]] to *write*, one after another."""
    if int((end - start).sum()) < SHORT * len(start):
        _in_steps(write, joined(data, start, end - start))
        return
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        _in_steps(write, data[a:b])


def _in_steps(write: Write, piece: Buffer) -> None:
    for at in range(0, len(piece), STEP):
        write(memoryview(piece[at : at + STEP]))  # type: ignore[arg-type]
