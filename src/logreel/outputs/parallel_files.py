"""Writing files in parallel, while their content is decoded by one thread at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import RLock
from typing import TypeVar

Item = TypeVar("Item")

#: Files written in parallel: writing takes about as long as decoding, and each file has a row group in memory.
FILES = 2


class Stopped(Exception):
    """Raised in a task after another one failed."""


class DecodeLock:
    """Lets one thread at a time decode, since logs are not thread-safe."""

    def __init__(self) -> None:
        self._lock = RLock()
        self.stopped = False

    def call(self, work: Callable[[], Item]) -> Item:
        """Return the result of *work*, called with the lock held; raises Stopped after a failure."""
        with self._lock:
            if self.stopped:
                raise Stopped
            return work()

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield *items*, each produced with the lock held."""
        left = iter(items)
        while (found := self.call(lambda: next(left, None))) is not None:
            yield found


def run_parallel(tasks: Sequence[Callable[[], Item]], decode_lock: DecodeLock) -> list[Item]:
    """Run *tasks* in threads and return their results in order; the first failure stops all and is raised."""
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
