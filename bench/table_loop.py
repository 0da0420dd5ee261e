"""Compare the loop that most users write, ``ch.to_arrow()`` for every channel, with ``log.tables()`` on a ULog."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import biglog
import logreel

BOUND = 1.5


def loop(log: logreel.Log) -> list[Any]:
    """Return the tables of all channels, read one by one."""
    return [ch.to_arrow() for ch in log.channels.values()]


def measure(path: str, work: Callable[[logreel.Log], Any]) -> tuple[float, float]:
    """Return wall and CPU seconds of *work* on a log that was just opened."""
    log = logreel.open(path)
    wall, cpu = time.perf_counter(), time.process_time()
    kept = work(log)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    del kept
    return wall, cpu


def main() -> None:
    """Print both, alternating, so that other load affects both equally; arguments: megabytes and rounds."""
    os.environ["LOGREEL_CACHE"] = "off"
    path = str(biglog.make(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    jobs = {"log.tables()": logreel.Log.tables, "for ch in log.values(): ch.to_arrow()": loop}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for _ in range(rounds + 1):
        for name, job in jobs.items():
            times[name].append(measure(path, job))
    print(f"\nAll channels of a ULog as tables (least of {rounds} rounds)")
    for name, found in times.items():
        wall, cpu = (min(column) for column in zip(*found[1:], strict=True))
        print(f"  {name:44} {wall * 1e3:9.1f} ms, {cpu * 1e3:9.1f} ms of CPU")
    one, other = (found[1:] for found in times.values())
    least = min(wall for wall, _ in other) / min(wall for wall, _ in one)
    middle = statistics.median(b[0] / a[0] for a, b in zip(one, other, strict=True))
    print(f"  the loop takes {least:.2f} x the time (median of the rounds {middle:.2f}, bound {BOUND})")


if __name__ == "__main__":
    main()
