"""Messages told apart by their bytes, without holding more than some megabytes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.model.index import I64
from logreel.model.log import Log
from logreel.model.pieces import Rows
from logreel.ops.parts import Part
from logreel.ops.streams import in_file_order


@dataclass(frozen=True, slots=True)
class Digests:
    """Messages of a channel in file order.

    time    int64[n]  ns
    size    int64[n]  bytes
    digest  int64[n]  of the bytes; equal bytes have equal ones, others one in 2**64, in this process only
    """

    time: I64
    size: I64
    digest: I64


def digests(log: Log, rows: Mapping[int, Rows]) -> dict[int, Digests]:
    """The messages at *rows* of each channel, by its number; read in one pass over the log."""
    found: dict[int, list[tuple[I64, I64, I64]]] = {number: [] for number in rows}
    for batch in in_file_order(Part(log, rows)):
        digest = _digest(memoryview(batch.data), batch.start, batch.size)  # type: ignore[arg-type]
        order = np.argsort(batch.channel, kind="stable")
        numbers, first = np.unique(batch.channel[order], return_index=True)
        for number, some in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
            found[number].append((batch.time[some], batch.size[some], digest[some]))
    empty = np.zeros(0, np.int64)
    return {
        number: Digests(*map(np.concatenate, zip(*parts, strict=True)))
        if parts
        else Digests(empty, empty, empty)
        for number, parts in found.items()
    }


def _digest(view: memoryview, start: I64, size: I64) -> NDArray[np.int64]:
    """int64[n]: Python's own hash of bytes, keyed anew in each process."""
    ends = (start + size).tolist()
    return np.fromiter(
        (hash(view[a:b].tobytes()) for a, b in zip(start.tolist(), ends, strict=True)), np.int64, len(ends)
    )
