"""Runs of messages that are made ready while those before them are played."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from logreel.ops.replay.run import Run


class RunPrefetcher:
    """Takes runs from an iterator; on request the next one is read and unpacked by a thread of its own."""

    def __init__(self, runs: Iterator[Run]) -> None:
        self._runs = runs
        self._pool: ThreadPoolExecutor | None = None
        self._coming: Future[Run | None] | None = None

    def take(self, ahead: bool) -> Run | None:
        """The next run, or None behind the last one.

        ahead  have the one behind it read now
        """
        run = self._next() if self._coming is None else self._coming.result()
        self._coming = None
        if ahead and run is not None:
            self._pool = self._pool or ThreadPoolExecutor(1, "logreel-ahead")
            self._coming = self._pool.submit(self._loaded)
        return run

    def _next(self) -> Run | None:
        return next(self._runs, None)

    def _loaded(self) -> Run | None:
        run = self._next()
        if run is not None:
            run.load()
        return run

    def close(self) -> None:
        """Let go of the thread; what it reads is dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
