"""The index of all messages of a log: those of several channels in one order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.index.block_table import Selection
from logreel.index.channel_index import ChannelIndex
from logreel.index.nanoseconds import whole_ns
from logreel.index.order import by_file, by_time
from logreel.io.arrays import I64


class MessageIndex(ChannelIndex):
    """The places of all messages of a log, in one order; see ``ChannelIndex``."""

    def select(
        self,
        channels: Iterable[int] | None = None,
        start: int | None = None,
        end: int | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> Selection:
        """Messages of *channels* (None: all) with start <= time < end, by ``time`` (ties in file order) or ``file``."""
        parts = list(self.select_batches(channels, start, end, order, reverse))
        columns: list[Any] = [
            np.concatenate([getattr(p, name) for p in parts]) if parts else np.zeros(0, kind)
            for name, kind in Selection.KINDS
        ]
        return Selection(*columns)

    def select_batches(
        self,
        channels: Iterable[int] | None = None,
        start: int | None = None,
        end: int | None = None,
        order: str = "time",
        reverse: bool = False,
    ) -> Iterator[Selection]:
        """The same in pieces of some ten thousand messages, so that none is a list of all of them."""
        for bound in (start, end):
            _ = bound is None or whole_ns(bound)
        if order not in ("time", "file"):
            raise UsageError(f"order is 'time' or 'file', not {order!r}")
        numbers = range(len(self.rules)) if channels is None else channels
        if order == "time":
            return by_time(self, numbers, start, end, reverse)
        return by_file(self, numbers, start, end, reverse)

    @cached_property
    def _all(self) -> Selection:
        return self.select(order="file")

    @property
    def time(self) -> I64:
        """int64[n]: ns, of all messages in file order."""
        return self._all.time

    @property
    def channel(self) -> NDArray[np.int32]:
        """int32[n]: channel number of all messages in file order."""
        return self._all.channel

    @property
    def chunk(self) -> NDArray[np.int32]:
        """int32[n]: chunk of all messages in file order."""
        return self._all.chunk

    @property
    def offset(self) -> I64:
        """int64[n]: payload start in its chunk, of all messages in file order."""
        return self._all.offset

    @property
    def size(self) -> I64:
        """int64[n]: payload bytes, of all messages in file order."""
        return self._all.size
