"""Digests of messages, computed with a few megabytes of payloads in memory at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.kernels import block_table as kernel
from logreel.log.log import Log
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import in_file_order


@dataclass(frozen=True, slots=True)
class Digests:
    """Digests of the messages of a channel in file order.

    time    int64[n]  ns
    size    int64[n]  bytes
    digest  uint64[n, 2]  128-bit digests of the payloads
    """

    time: I64
    size: I64
    digest: NDArray[np.uint64]

    def keys(self) -> tuple[NDArray[Any], ...]:
        """Return columns that are equal for messages of equal size and bytes."""
        return self.size, self.digest[:, 0], self.digest[:, 1]


def digests(log: Log, rows: Mapping[int, Rows]) -> dict[int, Digests]:
    """Return the digests of the messages at *rows* of each channel, by channel number, in one pass over the log."""
    parts_by_channel: dict[int, list[Digests]] = {number: [] for number in rows}
    for batch in in_file_order(Part(log, rows)):
        payloads, channel = batch.payloads.in_one(), batch.channel
        out = np.empty((len(channel), 2), np.uint64)
        kernel.digest_payloads(payloads.data, payloads.start, payloads.size, out)
        order = np.argsort(channel, kind="stable")
        numbers, first = np.unique(channel[order], return_index=True)
        for number, rows_of_channel in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
            parts_by_channel[number].append(
                Digests(batch.time[rows_of_channel], payloads.size[rows_of_channel], out[rows_of_channel])
            )
    return {number: _joined(parts) for number, parts in parts_by_channel.items()}


def _joined(parts: list[Digests]) -> Digests:
    none = np.zeros(0, np.int64)
    parts = parts or [Digests(none, none, np.zeros((0, 2), np.uint64))]
    return Digests(
        *(np.concatenate([getattr(p, name) for p in parts]) for name in ("time", "size", "digest"))
    )
