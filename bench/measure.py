"""What is measured, and how: jobs run alternately in fresh processes, and are compared within their group.

Machines drift, so no time here is an absolute claim. Every round runs all jobs of a group one after another; what
counts is the ratio to the yardstick, or to another library, in the same rounds: the median, the least and the greatest.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import bench_path  # noqa: F401 - before what it makes importable

ROOT = Path(__file__).resolve().parents[1]
#: A process that takes longer is ended, and shown as "more than".
PATIENCE = 120.0
_PRELUDE = """
import json, os, sys, threading, time
import numpy as np
path = sys.argv[1]
# A virtual machine's memory is there when the clock starts: touched and freed.
warm = np.ones(min(1 << 30, (64 << 20) + 3 * os.path.getsize(path)), np.uint8); del warm
def anonymous():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))
values = {{}}
{setup}
before, peak, done = anonymous(), [0], threading.Event()
def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())
if {watched}:
    watcher = threading.Thread(target=watch); watcher.start()
begin, used = time.perf_counter(), time.process_time()
{code}
wall, cpu = time.perf_counter() - begin, time.process_time() - used
done.set()
memory = max(peak[0], anonymous()) - before if {watched} else None
print(json.dumps(dict(values, wall=wall, cpu=cpu, **({{"memory": memory}} if {watched} else {{}}))))
"""


class Run(IntEnum):
    """How much is measured: the main workloads on small logs, every format and task, or also what differs little."""

    QUICK = 0
    FULL = 1
    LONG = 2


@dataclass(frozen=True)
class Job:
    """Something to measure, in a process of its own: a piece of Python after its *setup*, or a *command* as a whole.

    code     Python; ``path`` is the log. It may put figures of its own into the dictionary ``values``
    command  arguments, of which ``PATH`` is the log; its figures are those of the whole process
    rounds   of at most so many rounds: for slow libraries
    memory   also watch how much memory it takes besides mapped files
    needs    modules; without them the job is left out
    part_of  the shortest run that it is part of
    """

    name: str
    code: str = ""
    setup: str = ""
    command: tuple[str, ...] = ()
    rounds: int = 99
    memory: bool = False
    needs: tuple[str, ...] = ()
    part_of: Run = Run.QUICK

    def run(self, path: Path) -> dict[str, float]:
        """Return the figures of one run: wall and cpu, s; memory, bytes; and values of its own. Raises RuntimeError."""
        if self.command:
            return _run_command([word.replace("PATH", str(path)) for word in self.command])
        script = _PRELUDE.format(setup=self.setup, code=self.code, watched=self.memory)
        command = [sys.executable, "-c", script, str(path)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            start_new_session=True,
        ) as process:
            try:
                out, errors = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                # Servers and browsers that it started, too.
                os.killpg(process.pid, signal.SIGKILL)
                return {"wall": PATIENCE, "cpu": PATIENCE}
        if process.returncode:
            raise RuntimeError(f"{self.name}: {errors[-3000:]}")
        figures: dict[str, float] = json.loads(out.splitlines()[-1])
        return figures


def _run_command(command: list[str]) -> dict[str, float]:
    """Return wall and CPU seconds of a process and those that it waited for, and its peak memory."""
    with tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, cwd="/")
        timer = threading.Timer(PATIENCE, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, -9):
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)[:300]}: {errors.read()[-3000:].decode(errors='replace')}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "resident": used.ru_maxrss * 1024}


#: Figures of a group: by job, by measure, the values of all rounds.
Rows = dict[str, dict[str, list[float]]]


@dataclass(frozen=True)
class Bound:
    """What must hold for the medians of a group; *says* is a sentence with a place for the value."""

    says: str
    value: Callable[[Rows], float]
    most: float | None = None
    least: float | None = None

    def judge(self, rows: Rows) -> dict[str, Any] | None:
        """Return value, sentence and whether it holds; None if a job that it needs was left out."""
        try:
            value = self.value(rows)
        except KeyError:
            return None
        holds = (self.most is None or value <= self.most) and (self.least is None or value >= self.least)
        bound = f"at most {self.most:g}" if self.most is not None else f"at least {self.least:g}"
        return {"says": f"{self.says.format(value)} (bound: {bound})", "value": value, "holds": holds}


def figure(rows: Rows, job: str, measure: str) -> float:
    """Return the median of a measure of a job."""
    return statistics.median(rows[job][measure])


def ratio(job: str, over: str, measure: str = "wall") -> Callable[[Rows], float]:
    """Return the function that gives the ratio of two medians."""
    return lambda rows: figure(rows, job, measure) / figure(rows, over, measure)


def least_ratio(job: str, over: str, measure: str = "cpu") -> Callable[[Rows], float]:
    """Return the function that gives the ratio of the least values, which other programs disturb less."""
    return lambda rows: min(rows[job][measure]) / min(rows[over][measure])


@dataclass(frozen=True)
class Group:
    """Jobs on one log that are compared with the first one, the yardstick.

    log      makes the log in a folder; called once
    measure  of the ratios: wall, or cpu, which neighbours disturb less
    part_of  the shortest run that it is part of
    """

    name: str
    title: str
    log: Callable[[Path], Path]
    jobs: tuple[Job, ...]
    bounds: tuple[Bound, ...] = ()
    measure: str = "wall"
    part_of: Run = Run.QUICK


@dataclass
class Taken:
    """The figures of a group so far."""

    group: Group
    path: Path | None = None
    size: int = 0
    rows: Rows = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    #: Seconds that each job took with its set-up, and how many rounds there were.
    cost: dict[str, float] = field(default_factory=dict)
    rounds: int = 0

    def round(self, folder: Path, run: Run) -> None:
        """Run every job once."""
        if self.path is None:
            try:
                self.path = self.group.log(folder)
            except Exception as e:  # one log that cannot be made must not end the whole run
                self.failures = {job.name: f"its log cannot be made: {e!r}" for job in self.group.jobs}
                self.missing |= self.failures
                self.path = folder
            self.size = self.path.stat().st_size if self.path.suffix not in ("", ".so") else 0
        for job in self.group.jobs:
            if self.rounds >= job.rounds or job.part_of > run or job.name in self.missing:
                continue
            absent = [name for name in job.needs if find_spec(name) is None]
            if absent:
                self.missing[job.name] = f"needs {', '.join(absent)}"
                continue
            begin = time.perf_counter()
            try:
                figures = job.run(self.path)
            except (RuntimeError, ValueError, OSError) as e:
                self.failures[job.name] = f"it failed: {e}"
                self.missing[job.name] = f"it failed: {(str(e).splitlines() or [''])[-1]}"
                continue
            self.cost[job.name] = time.perf_counter() - begin
            for measure, value in figures.items():
                self.rows.setdefault(job.name, {}).setdefault(measure, []).append(value)
        self.rounds += 1

    def next_round(self) -> float:
        """Return how many seconds another round would take; zero if only the yardstick is left."""
        left = [job for job in self.group.jobs if job.rounds > self.rounds and job.name in self.cost]
        if left == [self.group.jobs[0]] and len(self.group.jobs) > 1:
            return 0.0
        return sum(self.cost[job.name] for job in left)

    def as_dict(self, judged: bool = True) -> dict[str, Any]:
        """Return the figures for JSON: least, median and greatest of every measure, and of the ratio.

        judged  whether bounds apply; they are for the usual sizes of logs
        """
        rows: dict[str, Any] = {}
        yardstick = self.group.jobs[0].name
        for name, measures in self.rows.items():
            rows[name] = {measure: _spread(values) for measure, values in measures.items()}
            base = self.rows.get(yardstick, {}).get(self.group.measure)
            if base and self.group.measure in measures:
                pairs = zip(measures[self.group.measure], base, strict=False)
                rows[name]["ratio"] = _spread([value / one for value, one in pairs])
        bounds = [verdict for bound in self.group.bounds if judged and (verdict := bound.judge(self.rows))]
        return {
            "title": self.group.title,
            "bytes": self.size,
            "measure": self.group.measure,
            "rounds": self.rounds,
            "yardstick": yardstick,
            "jobs": rows,
            "left out": self.missing,
            "bounds": bounds,
        }


def _spread(values: list[float]) -> list[float]:
    return [float(f"{value:.5g}") for value in (min(values), statistics.median(values), max(values))]


# Yardsticks.

COPY = Job("fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
MEMCPY = Job(
    "warm memcpy",
    "np.copyto(target, source)",
    "source = np.fromfile(path, np.uint8); target = np.empty_like(source); np.copyto(target, source)",
)
ZSTD = Job(
    "zstd alone",
    "for at in range(0, len(data), 1 << 20): pack(data[at : at + (1 << 20)])",
    "import zstandard; data = open(path, 'rb').read(); pack = zstandard.ZstdCompressor().compress",
)
READ = Job("read", "with open(path, 'rb', buffering=0) as file:\n    while file.read(1 << 20): pass")
CP_SYNC = Job(
    "cp and fsync",
    "subprocess.run(['cp', '--reflink=never', path, name], check=True); "
    "fd = os.open(name, os.O_RDONLY); os.fsync(fd)",
    "import subprocess, tempfile; folder = tempfile.TemporaryDirectory(); name = folder.name + '/copy'",
)
IMPORT_NUMPY = Job("import numpy", command=(sys.executable, "-c", "import numpy"))
IMPORT_PYARROW = Job("import pyarrow", command=(sys.executable, "-c", "import pyarrow"))


def plain_walk(log_format: str) -> Job:
    """Return the job of following the records only, in C: the least work of any reader."""
    setup = f"""
import ctypes
walk = ctypes.CDLL(os.environ["LOGREEL_BENCH_WALK"]).walk_{log_format}; walk.restype = ctypes.c_int64
data = np.memmap(path, np.uint8, mode="r"); np.add.reduce(data[::4096])
"""
    code = "walk(ctypes.c_void_p(data.ctypes.data), ctypes.c_int64(data.size))"
    return Job("plain walk in C", code, setup)


def compile_walk(folder: Path) -> None:
    """Compile the plain walks for ``plain_walk``."""
    library = folder / "walk.so"
    source = Path(__file__).with_name("walk.c")
    subprocess.run(["cc", "-O3", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    os.environ["LOGREEL_BENCH_WALK"] = str(library)


PACKAGES = [
    "numpy",
    "pyarrow",
    "zstandard",
    "lz4",
    "pandas",
    "polars",
    "duckdb",
    "pyulog",
    "rosbags",
    "mcap",
    "mcap-ros1-support",
    "mcap-ros2-support-fast",
    "mcap-protobuf-support",
    "av",
    "rerun-sdk",
    "ray",
]


def about(note: str) -> dict[str, Any]:
    """Return where and when figures are taken: machine, versions, commit, load; *note* says what is special."""
    versions = {"python": platform.python_version(), "cc": first_line("cc", "--version").removeprefix("cc ")}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    cpu = next((line for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "").partition(
        ": "
    )[2]
    memory = next((line for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0 0").split()[1]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "commit": first_line("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"),
        "machine": f"{cpu or platform.machine()}, {os.cpu_count()} cores, {round(int(memory) / 2**20)} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
        **({"note": note} if note else {}),
    }


def first_line(*command: str) -> str:
    """Return the first line that a command prints, nothing if it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0]


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
