"""Files written side by side, while what goes into them is decoded by one after another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import RLock
from typing import TypeVar

Item = TypeVar("Item")

#: Files at once: writing takes about as long as decoding, and each file holds a row group in memory.
FILES = 2


class Stopped(Exception):
    """Another file could not be written, so this one is not wanted any more."""


class DecodeLock:
    """Who may decode: one at a time, as logs are not made for more."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.stopped = False

    def take(self, work: Callable[[], Item]) -> Item:
        """What *work* gives, when it is its turn."""
        with self._lock:
            if self.stopped:
                raise Stopped
            return work()

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """*items*, each of which is made when it is its turn."""
        left = iter(items)
        while (found := self.take(lambda: next(left, None))) is not None:
            yield found


def side_by_side(tasks: Sequence[Callable[[], Item]], decode_lock: DecodeLock) -> list[Item]:
    """What *tasks* give, in their order; the first that fails stops all of them."""
    pool = ThreadPoolExecutor(min(FILES, os.cpu_count() or 1))
    try:
        futures = [pool.submit(task) for task in tasks]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        errors = [error for future in done if (error := future.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
            raise error
        return [future.result() for future in futures]
    finally:
        decode_lock.stopped = True
        pool.shutdown(cancel_futures=True)
