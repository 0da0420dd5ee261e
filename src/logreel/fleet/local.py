"""The engine of one machine: processes that do jobs, and are replaced when they die."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from logreel.fleet.jobs import Job, Result

#: How often a job is tried whose process dies.
TRIES = 3
#: Jobs that are prepared ahead for each worker.
AHEAD = 4
#: Variables of the environment with which memory that was freed goes back to the system, unless they are set already:
#: the pools of Arrow, and of glibc for each thread, would keep the memory of every topic until the process ends.
#: OpenBLAS starts no threads, of which every process would have as many as there are processors.
ALLOCATION = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(4 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(16 << 20),
}


class LocalEngine:
    """Does jobs in processes of this machine, started with a new interpreter, so that nothing is inherited.

    workers  number of processes; None: one per processor
    """

    name = "local"

    def __init__(self, workers: int | None = None) -> None:
        self.workers = max(1, workers or os.cpu_count() or 1)
        #: Processes that died while they did a job.
        self.died = 0
        #: Processes that wait for the next run.
        self.idle: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End the processes, which otherwise wait for another run."""
        while self.idle:
            _end(self.idle.pop())

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        """Yield each job with its result, in order of completion; *jobs* are taken when they are needed.

        A result without other keys than ``error`` says why a job could not be done: its process died TRIES times, or
        a defect. When the iteration ends early, as after Ctrl-C, all processes are ended.
        """
        todo: queue.Queue[Job | None] = queue.Queue()
        done: queue.Queue[tuple[Job, Result]] = queue.Queue()
        source, open_jobs, workers = iter(jobs), 0, list[_Worker]()
        try:
            while True:
                while open_jobs < self.workers * AHEAD and (job := next(source, None)) is not None:
                    todo.put(job)
                    open_jobs += 1
                    if len(workers) < min(self.workers, open_jobs):
                        workers.append(_Worker(self, todo, done))
                if not open_jobs:
                    break
                yield done.get()
                open_jobs -= 1
        finally:
            if open_jobs:
                for worker in workers:
                    worker.end()
            for _ in workers:
                todo.put(None)
            for worker in workers:
                worker.join()
                if (process := worker.process) is not None:
                    self.idle.append(process) if process.poll() is None else _end(process)


class _Worker(threading.Thread):
    """A thread that passes jobs to a process of its own."""

    def __init__(
        self, engine: LocalEngine, todo: queue.Queue[Job | None], done: queue.Queue[tuple[Job, Result]]
    ) -> None:
        super().__init__(name="logreel-fleet", daemon=True)
        self._engine, self._todo, self._done = engine, todo, done
        self.process: subprocess.Popen[bytes] | None = engine.idle.pop() if engine.idle else None
        self._ended, self._changing = False, threading.Lock()
        self.start()

    def run(self) -> None:
        """Do jobs until there is None."""
        while not self._ended and (job := self._todo.get()) is not None:
            self._done.put((job, self._do(job)))

    def _do(self, job: Job) -> Result:
        line = json.dumps(job).encode() + b"\n"
        why = ""
        for _ in range(TRIES):
            process = self._running()
            if process is None or process.stdin is None or process.stdout is None:
                return {"error": "interrupted"}
            try:
                process.stdin.write(line)
                process.stdin.flush()
                answer = process.stdout.readline()
            except OSError:
                answer = b""
            if answer.endswith(b"\n"):
                reply: Any = json.loads(answer)
                result: Result = reply["result"] if "result" in reply else {"error": reply["error"]}
                return result
            code = process.wait()
            if self._ended:
                return {"error": "interrupted"}
            self._engine.died += 1
            why = f"its process died {TRIES} times, with " + (
                f"signal {-code}" if code < 0 else f"code {code}"
            )
        return {"error": why}

    def _running(self) -> subprocess.Popen[bytes] | None:
        """Return the process, started if it does not run; None after ``end``."""
        with self._changing:
            if self._ended:
                return None
            if self.process is None or self.process.poll() is not None:
                if self.process is not None:
                    _end(self.process)
                self.process = _start()
            return self.process

    def end(self) -> None:
        """End the process at once."""
        with self._changing:
            self._ended = True
            if self.process is not None:
                self.process.kill()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, and close what connects it."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        # What was not written is of no use to a process that has ended.
        with contextlib.suppress(OSError):
            if pipe is not None:
                pipe.close()
    process.wait()


def _start() -> subprocess.Popen[bytes]:
    """Return a new process of the worker, which finds the same logreel as this one."""
    here = os.fspath(Path(__file__).resolve().parents[2])
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "logreel.fleet.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**ALLOCATION, **os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
