"""Work shared among the processors."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def shares(n: int, least: int, threads: int | None = None) -> list[slice]:
    """range(n) cut into a share for each processor, none of less than *least*.

    threads  None: as many as there are processors
    """
    count = max(1, min(threads or os.cpu_count() or 1, n // least))
    cuts = [n * i // count for i in range(count + 1)]
    return [slice(lo, hi) for lo, hi in itertools.pairwise(cuts)]


def run(work: Callable[[int, slice], T], cut: list[slice]) -> list[T]:
    """``work(number, share)`` of every share, each in a thread of its own; a single one in this thread."""
    if len(cut) == 1:
        return [work(0, cut[0])]
    with ThreadPoolExecutor(len(cut)) as pool:
        return list(pool.map(work, range(len(cut)), cut))
