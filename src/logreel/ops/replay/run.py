"""Consecutive messages of a replay, as arrays and one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.log.log import Channel, Message

_new: Callable[[type[Message], tuple[Any, ...]], Message] = tuple.__new__


@dataclass(frozen=True)
class Run:
    """Messages in playing order; payloads are read on access.

    channels  channels of the replay
    view      function from log number and chunk to the bytes of the chunk
    channel   int32[n]  index in *channels*
    time      int64[n]  replay time, ns
    origin    int32[n]  number of the log
    chunk     int32[n]  chunk of that log
    offset    int64[n]  offset of the payload in the chunk
    size      int64[n]  bytes of the payload
    """

    channels: Sequence[Channel]
    view: Callable[[int, int], memoryview]
    channel: NDArray[np.int32]
    time: I64
    origin: NDArray[np.int32]
    chunk: NDArray[np.int32]
    offset: I64
    size: I64

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, some: slice) -> Run:
        return Run(
            self.channels,
            self.view,
            self.channel[some],
            self.time[some],
            self.origin[some],
            self.chunk[some],
            self.offset[some],
            self.size[some],
        )

    @cached_property
    def times(self) -> list[int]:
        """Times as list of int."""
        found: list[int] = self.time.tolist()
        return found

    @cached_property
    def _places(self) -> list[int]:
        found: list[int] = self.offset.tolist()
        return found

    @cached_property
    def _ends(self) -> list[int]:
        found: list[int] = (self.offset + self.size).tolist()
        return found

    @cached_property
    def _of(self) -> list[Channel]:
        return list(map(self.channels.__getitem__, self.channel.tolist()))

    @cached_property
    def _views(self) -> list[memoryview]:
        """The chunk of each message."""
        turns = self._turns
        edges = [*turns.tolist(), len(self)]
        known: dict[tuple[int, int], memoryview] = {}
        for place in zip(self.origin[turns].tolist(), self.chunk[turns].tolist(), strict=True):
            if place not in known:
                known[place] = self.view(*place)
        of = zip(self.origin[turns].tolist(), self.chunk[turns].tolist(), strict=True)
        some = map(itertools.repeat, map(known.__getitem__, of), map(int.__sub__, edges[1:], edges))
        return list(itertools.chain.from_iterable(some))

    @property
    def _turns(self) -> I64:
        """int64[k]: indices of the first message of each series in one chunk."""
        other = (np.diff(self.chunk) != 0) | (np.diff(self.origin) != 0)
        return np.concatenate([[0], np.flatnonzero(other) + 1])[: len(self)].astype(np.int64)

    @property
    def chunks(self) -> set[tuple[int, int]]:
        """Log number and chunk number of all chunks with messages."""
        turns = self._turns
        return set(zip(self.origin[turns].tolist(), self.chunk[turns].tolist(), strict=True))

    def load(self) -> None:
        """Read and decompress all chunks, so that ``messages`` does not wait for them."""
        _ = self.times, self._places, self._ends, self._of, self._views

    def payloads(self) -> Iterator[memoryview]:
        """Yield the payload of each message."""
        for view, start, end in zip(self._views, self._places, self._ends, strict=True):
            yield view[start:end]

    def messages(self, first: int = 0, last: int | None = None) -> Iterator[Message]:
        """Yield the messages from index *first* to *last*, exclusive."""
        some = slice(first, last)
        places = self._places[some]
        data = [
            view[start:end]
            for view, start, end in zip(self._views[some], places, self._ends[some], strict=True)
        ]
        rows = zip(self.times[some], self._of[some], data, places, strict=True)
        # As Message._make, without a Python call per message.
        return map(_new, itertools.repeat(Message), rows)
