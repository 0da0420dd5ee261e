"""Grow files step by step under a follower, without threads or waiting."""

from __future__ import annotations

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
    """Write the least beginning of *data* that can be opened, and open it."""
    with path.open("wb", buffering=0) as file:
        for at in range(len(data)):
            file.write(data[at : at + 1])
            try:
                return logreel.open(path)
            except logreel.LogError:
                continue
    raise AssertionError("cannot be opened")
