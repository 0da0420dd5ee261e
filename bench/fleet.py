"""Ingest many logs with one and with two workers, more and more logs, and compare with ``read_mcap`` of Ray.

    python bench/fleet.py [full] [workers] [memory] [numbers] [ray]

Walls are those of this machine at this time: other programs on it make the ratio of one to two workers meaningless,
so the load before each part is printed, too. With Ray in the environment (``make test-fleet`` makes one), the same
columns of a subset of MCAP files are read through ``ray.data.read_mcap``, decoded by hand, and through logreel.
"""

from __future__ import annotations

import importlib.machinery
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
import biglog
from logreel.fleet import LocalEngine, ingest
from support.samples.ulog.builder import flight

MB = 1_000_000
BOUND = 1.7


@contextmanager
def folder(name: str) -> Iterator[Path]:
    """Make a folder for logs and datasets, and remove it."""
    path = Path(tempfile.mkdtemp(prefix=f"logreel-bench-{name}-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def write_logs(path: Path, count: int, size: int) -> Path:
    """Write *count* ULogs of about *size* bytes, each of another flight."""
    path.mkdir(parents=True)
    for number in range(count):
        base = flight(10.0, number % 4 + 1)
        (path / f"{number}.ulg").write_bytes(biglog.repeat(base, size) if size > len(base) else base)
    return path


class Memory(threading.Thread):
    """Samples the memory of the child processes: the highest of any, resident and unique to it, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.resident = self.unique = 0
        self._done = threading.Event()

    def run(self) -> None:
        """Sample until ``stop``."""
        while not self._done.wait(0.05):
            for pid in self._of_threads():
                self._sample(pid)

    def _of_threads(self) -> list[str]:
        found: list[str] = []
        for task in Path("/proc/self/task").iterdir():
            try:
                found += (task / "children").read_text().split()
            except OSError:
                continue
        return found

    def _sample(self, pid: str) -> None:
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            return
        rows = (line.split() for line in text.splitlines()[1:])
        sizes = {row[0]: int(row[1]) * 1024 for row in rows}
        self.resident = max(self.resident, sizes.get("Rss:", 0))
        # Pages of a mapped log can be dropped at any time; these cannot.
        self.unique = max(self.unique, sizes.get("Anonymous:", 0))

    def stop(self) -> None:
        """End sampling."""
        self._done.set()
        self.join()


def children_cpu() -> float:
    """Return the CPU seconds of all processes that have ended and been waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(logs: Path, out: Path, workers: int) -> tuple[float, float, float]:
    """Ingest into a new dataset; return wall, CPU of the workers, and CPU of the coordinating process, in s."""
    shutil.rmtree(out, ignore_errors=True)
    wall, cpu, own = time.perf_counter(), children_cpu(), time.process_time()
    ingest(logs, out, workers=workers)
    return time.perf_counter() - wall, children_cpu() - cpu, time.process_time() - own


def load() -> str:
    """Return the load of the machine as text."""
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def workers(count: int, size: int, rounds: int) -> None:
    """Print the time with one and with two workers."""
    with folder("workers") as path:
        logs = write_logs(path / "logs", count, size)
        total = sum(one.stat().st_size for one in logs.iterdir())
        print(
            f"\nOne and two workers: {count} logs of {size / MB:.0f} MB, median of {rounds} rounds; {load()}"
        )
        found: dict[int, list[tuple[float, float, float]]] = {1: [], 2: []}
        for _ in range(rounds):
            for number, times in found.items():
                times.append(timed(logs, path / "out", number))
        for number, times in found.items():
            wall, cpu, own = (statistics.median(column) for column in zip(*times, strict=True))
            print(
                f"  {number} worker{'s' * (number > 1):1} {wall:8.2f} s {total / MB / wall:8.1f} MB/s"
                f"   CPU of workers {cpu:6.2f} s, of the coordinating process {own:5.2f} s"
            )
        ratio = statistics.median(a[0] / b[0] for a, b in zip(found[1], found[2], strict=True))
        # Where both processors were free, two workers would take this long: what they compute, half each, and what
        # only one process does before and after.
        one, two = (statistics.median(t[1] + t[2] for t in times) for times in found.values())
        print(
            f"  two workers are {ratio:.2f} x as fast (bound {BOUND}); by CPU time alone at most {2 * one / two:.2f} x"
        )


def memory(sizes: list[int]) -> None:
    """Print the memory of a worker for logs of several sizes, read in tasks of the same size."""
    with folder("memory") as path:
        print("\nMemory of one worker, peak, by size of the log (tasks of 64 MiB)")
        for size in sizes:
            logs = write_logs(path / f"logs{size}", 1, size)
            shutil.rmtree(path / "out", ignore_errors=True)
            watch = Memory()
            watch.start()
            ingest(logs, path / "out", engine=(engine := LocalEngine(1)), target_bytes=64 << 20)
            watch.stop()
            engine.close()
            print(
                f"  {size / MB:6.0f} MB log: {watch.resident / MB:6.0f} MB resident, with pages of the mapped log;"
                f" {watch.unique / MB:6.0f} MB unique"
            )


def numbers(counts: list[int]) -> None:
    """Print the time for more and more logs: it should grow with their number, no faster."""
    with folder("numbers") as path:
        print(f"\nNumber of logs: 0.4 MB each, two workers; {load()}")
        base = None
        for count in counts:
            logs = write_logs(path / f"logs{count}", count, 1)
            wall, cpu, own = timed(logs, path / "out", 2)
            each = (cpu + own) / count
            base = base or each
            print(
                f"  {count:4} logs {wall:7.2f} s, CPU {cpu + own:7.2f} s, of which coordinating {own:5.2f} s:"
                f" {each * 1e3:6.1f} ms a log ({each / base:.2f} x that of {counts[0]})"
            )
            start = time.perf_counter()
            ingest(logs, path / "out", workers=1)
            print(f"       again, nothing new: {time.perf_counter() - start:6.2f} s")


def ray(count: int, rows: int, rounds: int) -> None:
    """Print how long Ray's own reader with decoding by hand, and logreel's datasource, take for the same columns."""
    print(f"\nRay: {count} MCAP files with 2 x {rows} messages, three fields of one topic; {load()}")
    for name, need in (("ray", "Ray"), ("mcap", "the package mcap, for read_mcap of Ray")):
        # bench/mcap.py has the name of that package.
        if importlib.machinery.PathFinder.find_spec(name, sys.path[1:]) is None:
            print(
                f"  left out: needs {need}; `make test-fleet` makes an environment with it: .venv-fleet/bin/python"
            )
            return
    script = Path(__file__).parent / "engines" / "ray_mcap.py"
    line = [sys.executable, str(script), *map(str, (count, rows, rounds))]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    print(done.stdout, end="")


def main() -> None:
    """Print all parts, or those that are named; with the argument ``full``, in the sizes that the bounds are for."""
    os.environ["LOGREEL_CACHE"] = "off"
    full = "full" in sys.argv
    parts: dict[str, Callable[[], None]] = {
        "workers": lambda: workers(*((24, 32 * MB, 5) if full else (8, 8 * MB, 2))),
        "memory": lambda: memory([32 * MB, 128 * MB, 512 * MB] if full else [16 * MB, 64 * MB]),
        "numbers": lambda: numbers([50, 100, 200, 400] if full else [10, 20, 40]),
        "ray": lambda: ray(*((16, 50_000, 3) if full else (4, 20_000, 2))),
    }
    for name, part in parts.items():
        if name in sys.argv or parts.keys().isdisjoint(sys.argv):
            part()


if __name__ == "__main__":
    main()
