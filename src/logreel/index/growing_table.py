"""Block table of a log that grows: messages are added part by part, and earlier tables stay valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.index.block_table import Blocks
from logreel.io.source import FILE

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

#: So many small blocks in a row, each made of one part, become one block; so many of these become one again.
JOINED = 32
#: A block with more messages is not joined, nor one whose starts could exceed 32 bits.
LARGE, MAX_SPAN = 8192, 1 << 31
#: Rows and columns with room at first.
_ROOM = 64


class GrowingTable:
    """Messages of parts of a file in file order; a table of all of them costs little more than the new ones.

    columns  type of each number that is kept with a message, by name

    Arrays that ``blocks`` and ``column`` return are views of arrays with room for more. Later parts are written
    behind them, also those that join small blocks; room that these leave unused is freed when the arrays grow.
    """

    def __init__(self, **columns: DTypeLike) -> None:
        self._values: dict[str, NDArray[Any]] = {
            name: np.empty(0, dtype) for name, dtype in {"entry": np.uint32, **columns}.items()
        }
        self._used = self._live = 0
        self._base, self._chunk = list[int](), list[int]()
        self._level = list[int]()
        #: int64[rows, channels + 1]: starts of the runs of each channel; the last column is repeated for later ones.
        self._start = np.zeros((_ROOM, 2), np.int64)

    def __len__(self) -> int:
        return self._live

    def declare(self, channels: int) -> None:
        """Make room for channel numbers below *channels*."""
        have = self._start.shape[1]
        if channels < have:
            return
        wide = np.empty((len(self._start), max(channels + 1, 2 * have)), np.int64)
        wide[:, :have] = self._start
        wide[:, have:] = self._start[:, -1:]
        self._start = wide

    def add(
        self, base: int, chunk: int, channel: NDArray[Any], entry: NDArray[np.uint32], **values: NDArray[Any]
    ) -> None:
        """Add the messages of a part behind those so far.

        base     start of the part in its chunk
        channel  int[n], below the number declared
        entry    uint32[n], start of each message relative to *base*, ascending
        values   number of each message for every column
        """
        n = len(channel)
        if not n:
            return
        self._put(base, chunk, channel, {"entry": entry, **values}, 0)
        self._live += n
        level = 0
        while self._joinable(level):
            self._join(level)
            level += 1

    def _put(
        self, base: int, chunk: int, channel: NDArray[Any], values: dict[str, NDArray[Any]], level: int
    ) -> None:
        n = len(channel)
        if self._used + n > len(self._values["entry"]):
            self._grow(n)
        order = np.argsort(channel, kind="stable")
        at = slice(self._used, self._used + n)
        for name, array in self._values.items():
            array[at] = values[name][order]
        row = len(self._base)
        if row == len(self._start):
            self._start = np.concatenate([self._start, np.empty_like(self._start)])
        counts = np.bincount(channel, minlength=self._start.shape[1] - 1)
        self._start[row, 0] = self._used
        self._start[row, 1:] = self._used + np.cumsum(counts)
        self._used += n
        self._base.append(base)
        self._chunk.append(chunk)
        self._level.append(level)

    def _grow(self, n: int) -> None:
        """Move the messages to larger arrays, one block behind the other."""
        rows = len(self._base)
        first, last = self._start[:rows, 0], self._start[:rows, -1]
        counts = last - first
        target = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        room = max(2 * (self._live + n), 4096)
        where = np.repeat(first - target[:-1], counts) + np.arange(int(target[-1]))
        for name, array in self._values.items():
            grown = np.empty(room, array.dtype)
            grown[: len(where)] = array[where]
            self._values[name] = grown
        # A new array: the present one may be in use by a table.
        self._start = self._start.copy()
        self._start[:rows] += (target[:-1] - first)[:, None]
        self._used = int(target[-1])

    def _joinable(self, level: int) -> bool:
        """Return whether the last JOINED blocks are small ones of *level* in the file itself, and near each other."""
        if level > 1 or len(self._level) < JOINED or self._chunk[-1] != FILE:
            return False
        rows = slice(len(self._base) - JOINED, len(self._base))
        if any(n != level for n in self._level[rows]) or any(chunk != FILE for chunk in self._chunk[rows]):
            return False
        first, last = self._start[rows.start, 0], self._start[rows.stop - 1, -1]
        near = (
            self._base[-1] + int(self._values["entry"][first:last].max()) - self._base[rows.start] < MAX_SPAN
        )
        return near and int((self._start[rows, -1] - self._start[rows, 0]).sum()) < LARGE

    def _join(self, level: int) -> None:
        """Replace the last JOINED blocks by one."""
        begin, end = len(self._base) - JOINED, len(self._base)
        base = self._base[begin]
        channels: list[NDArray[Any]] = []
        parts: list[dict[str, NDArray[Any]]] = []
        for row in range(begin, end):
            start = self._start[row]
            at = slice(int(start[0]), int(start[-1]))
            channel = np.repeat(np.arange(len(start) - 1), np.diff(start))
            values = {name: array[at] for name, array in self._values.items()}
            # Back in file order.
            order = np.argsort(values["entry"], kind="stable")
            values = {name: array[order] for name, array in values.items()}
            values["entry"] = (values["entry"].astype(np.int64) + self._base[row] - base).astype(np.uint32)
            channels.append(channel[order])
            parts.append(values)
        del self._base[begin:], self._chunk[begin:], self._level[begin:]
        joined = {name: np.concatenate([values[name] for values in parts]) for name in self._values}
        self._put(base, FILE, np.concatenate(channels), joined, level + 1)

    def blocks(self, channels: int) -> Blocks:
        """Return the table of all messages so far, for *channels* channels."""
        rows = len(self._base)
        return Blocks(
            np.array(self._base, np.int64),
            np.array(self._chunk, np.int32),
            np.array(self._start[:rows, : channels + 1]),
            self._values["entry"][: self._used],
        )

    def column(self, name: str) -> NDArray[Any]:
        """Return a number of each message so far, in the order of the table's entries."""
        return self._values[name][: self._used]
