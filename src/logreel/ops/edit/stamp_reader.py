"""Stamps read from payloads while a log is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.lenses.base import Stamp
from logreel.log.log import Channel
from logreel.log.side_columns import payload_layout
from logreel.ops.edit.field_edits import read_numbers
from logreel.ops.edit.places import Finder, target
from logreel.write.payloads import Payloads


class StampReader:
    """Reads the first stamp of each message of a channel."""

    def __init__(self, ch: Channel, stamp: Stamp) -> None:
        self._channel, self._stamp = ch, stamp
        layout = payload_layout(ch)
        self._targets = [] if layout is None else [target(layout, path, scalars=True) for path in stamp.paths]
        self._finder = None if layout is None else Finder(layout, self._targets)

    def read(self, payloads: Payloads) -> I64:
        """Return int64[n] ns; 0 for messages without a stamp."""
        data, size = payloads.joined(), payloads.size
        start = np.cumsum(size) - size
        if self._finder is None:
            view = memoryview(data.data)
            ends = (start + size).tolist()
            return np.array(
                [self._decoded(view[a:b]) for a, b in zip(start.tolist(), ends, strict=True)], np.int64
            )
        found = np.zeros(len(size), np.int64)
        places, _ = self._finder.find(data, start, size)
        if not len(places[0].row):
            return found
        values = {
            path: read_numbers(data, one.node, where)
            for path, one, where in zip(self._stamp.paths, self._targets, places, strict=True)
        }
        ns = self._stamp.of(values)
        rows, first = np.unique(places[0].row, return_index=True)
        found[rows] = ns[first]
        return found

    def _decoded(self, data: memoryview) -> int:
        try:
            message: Any = self._channel.decode(data)
        except LogError:
            return 0
        total = 0
        for path, unit in self._stamp.parts:
            value: Any = message
            for name in path.split("."):
                if isinstance(value, list):
                    value = value[0] if value else None
                value = value.get(name) if isinstance(value, dict) else None
            if not isinstance(value, int):
                return 0
            total += value * unit
        return total if -(1 << 63) <= total < 1 << 63 else 0
