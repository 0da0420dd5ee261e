"""Compare ``logreel.summary`` of a large ULog with opening it and reading the same columns, by CPU time."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import biglog
import logreel
from logreel.log import tables
from logreel.log.log import Channel

BOUND = 1.5
Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def columns_read(path: str) -> list[Call]:
    """Return the calls by which the summary of a log reads columns, each once, and those of events and text."""
    calls: list[Call] = []
    genuine = tables.table

    def recorded(ch: Channel, *args: Any, **more: Any) -> Any:
        call = (ch.topic, args, more)
        if call not in calls:
            calls.append(call)
        return genuine(ch, *args, **more)

    with mock.patch.object(tables, "table", recorded):
        logreel.summary(path)
    with logreel.open(path) as log:
        calls += [
            (topic, (None, None, None, tables.DENSE), {})
            for topic in ("event", "~text")
            if topic in log.channels
        ]
    return calls


def read(path: str, calls: list[Call]) -> list[Any]:
    """Open a log and read columns from it."""
    log = logreel.open(path)
    return [tables.table(log[topic], *args, **more) for topic, args, more in calls]


def cpu_of(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of *work*, of all threads."""
    start = time.process_time()
    kept = work()
    found = time.process_time() - start
    del kept
    return found


def main() -> None:
    """Print both, alternating, so that other load affects both equally; arguments: megabytes and rounds."""
    os.environ["LOGREEL_CACHE"] = "off"
    path = str(biglog.make(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    calls = columns_read(path)
    pairs = []
    for _ in range(rounds + 1):
        pairs.append((cpu_of(lambda: read(path, calls)), cpu_of(lambda: logreel.summary(path))))
    reads, summaries = (min(column) for column in zip(*pairs[1:], strict=True))
    middle = statistics.median(ours / base for base, ours in pairs[1:])
    print(f"\nSummary of a ULog (least CPU time of {rounds} rounds)")
    print(f"  opening and reading {len(calls)} sets of columns {reads * 1e3:14.1f} ms")
    print(f"  logreel.summary {summaries * 1e3:37.1f} ms")
    print(
        f"  the summary takes {summaries / reads:.2f} x the CPU time"
        f" (median of the rounds {middle:.2f}, bound {BOUND})"
    )


if __name__ == "__main__":
    main()
