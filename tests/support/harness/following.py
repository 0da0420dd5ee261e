"""Grow files step by step under a follower, without threads or waiting."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import logreel

Row = tuple[str, int, bytes]


class Steps(Event):
    """An Event for ``Log.follow`` that does the next step whenever the follower would wait, and is set after the last.

    done  number of steps done
    """

    def __init__(self, steps: Iterable[Callable[[], Any]]) -> None:
        super().__init__()
        self._steps = iter(steps)
        self.done = 0

    def wait(self, timeout: float | None = None) -> bool:
        step = next(self._steps, None)
        if step is None:
            self.set()
        else:
            step()
            self.done += 1
        return self.is_set()


def row(message: logreel.Message) -> Row:
    return message.channel.topic, message.time, bytes(message.data)


def rows(messages: Iterator[logreel.Message]) -> list[Row]:
    return [row(message) for message in messages]


def growth(path: Path, data: bytes, sizes: Iterable[int]) -> Iterator[Callable[[], Any]]:
    """Yield steps that append *data* to the file in pieces of these sizes, as far as it is not there yet."""
    at = path.stat().st_size
    for size in sizes:
        piece, at = data[at : at + size], at + size

        def append(piece: bytes = piece) -> None:
            with path.open("ab") as out:
                out.write(piece)

        yield append
        if at >= len(data):
            return


def first_opened(path: Path, data: bytes) -> logreel.Log:
    """Write a beginning of *data* that can be opened, where one byte less cannot, and open it."""

    def opens(size: int) -> bool:
        path.write_bytes(data[:size])
        try:
            logreel.open(path).close()
        except logreel.LogError:
            return False
        return True

    some = 1
    while not opens(some):
        assert some < len(data), "cannot be opened"
        some *= 2
    least = bisect_left(range(some), True, lo=some // 2, key=opens)
    path.write_bytes(data[:least])
    return logreel.open(path)
