"""Time small jobs alternately in fresh processes, and print their ratios.

Machines drift, so nothing here is an absolute claim: every round runs all jobs one after another, and what is printed
is the median over rounds of the ratio to the yardstick of the same round. Each job first touches and frees a gigabyte,
so that a virtual machine's memory is there when the clock starts, and starts after its imports.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass

_PRELUDE = """
import json, os, sys, threading, time
import numpy as np
os.environ.setdefault("LOGREEL_CACHE", "off")
warm = np.ones(1 << 30, np.uint8); del warm
def anonymous():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon"))
path = sys.argv[1]
{setup}
before, peak, done = anonymous(), [0], threading.Event()
def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())
if {watched}:
    watcher = threading.Thread(target=watch); watcher.start()
start, cpu = time.perf_counter(), time.process_time()
{job}
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
done.set()
print(json.dumps([wall, cpu, max(peak[0], anonymous()) - before]))
"""


@dataclass(frozen=True)
class Job:
    """A piece of Python to time; *setup* runs before the time is measured."""

    name: str
    job: str
    setup: str = ""
    rounds: int | None = None
    bound: str = ""


def run(job: Job, path: str, memory: bool = False) -> tuple[float, float, float]:
    """Return wall s, CPU s and (with *memory*) peak bytes of anonymous memory of one run in a fresh process."""
    script = _PRELUDE.format(setup=job.setup, job=job.job, watched=memory)
    out = subprocess.run(
        [sys.executable, "-c", script, path], check=True, capture_output=True, text=True, env=os.environ
    )
    wall, cpu, peak = json.loads(out.stdout.splitlines()[-1])
    return wall, cpu, peak


def compare(
    title: str,
    path: str,
    yardstick: Job,
    jobs: list[Job],
    rounds: int = 7,
    unit: str = "copy",
    cpu: bool = False,
) -> dict[str, float]:
    """Print each job's median ratio to *yardstick*, called *unit*, both taken in the same round.

    Returns the median time of each job over that of *yardstick*, so that slow jobs of one round compare with others.

    cpu  compare processor time, which neighbours disturb less, for jobs of one thread
    """
    times: dict[str, list[float]] = {}
    ratios: dict[str, list[float]] = {}
    for k in range(rounds):
        one = run(yardstick, path)[cpu]
        times.setdefault(yardstick.name, []).append(one)
        for job in jobs:
            if job.rounds is None or k < job.rounds:
                wall = run(job, path)[cpu]
                times.setdefault(job.name, []).append(wall)
                ratios.setdefault(job.name, []).append(wall / one)
    print(f"\n{title} ({os.path.getsize(path) / 1e6:.0f} MB, median of {rounds} rounds{', CPU' * cpu})")
    print(f"  {'':44} {'ms':>9} {'x ' + unit:>8}   {'range':<14} bound")
    print(f"  {yardstick.name:44} {statistics.median(times[yardstick.name]) * 1e3:9.1f} {1:8.2f}")
    for job in jobs:
        r = ratios[job.name]
        ms = statistics.median(times[job.name]) * 1e3
        spread = f"{min(r):.2f} … {max(r):.2f}"
        print(f"  {job.name:44} {ms:9.1f} {statistics.median(r):8.2f}   {spread:<14} {job.bound}")
    base = statistics.median(times[yardstick.name])
    return {name: statistics.median(t) / base for name, t in times.items()}
