"""Engines and faults for tests of fleets: a worker is killed, a disk fails once, a log is read forever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from logreel.fleet.jobs import Job, Result, do_job
from support.harness.cli_runner import environment

#: Executed by each worker at its start. What a marked file does, it does once: then the mark is gone.
SITE = """
import errno, os, signal, time
_open = os.open
def _faulty(path, *args, **options):
    name = os.path.basename(os.fsdecode(path)) if isinstance(path, (str, bytes)) else ""
    for kind in ("killed", "failing", "waiting"):
        mark = os.path.join({marks!r}, kind + "-" + name)
        if name and os.path.lexists(mark):
            with open(mark) as file:
                left = int(file.read())
            if left:
                with open(mark, "w") as file:
                    file.write(str(left - 1))
                continue
            os.unlink(mark)
            if kind == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if kind == "failing":
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
            _handle = _open(os.path.join({marks!r}, "waits"), os.O_CREAT | os.O_WRONLY)
            os.close(_handle)
            time.sleep(600)
    return _open(path, *args, **options)
os.open = _faulty
"""


class Inline:
    """An engine that does jobs in this process: faster for tests that are not about processes."""

    name = "inline"

    def run(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Result]]:
        for job in jobs:
            # Other engines send jobs and results as text, too.
            yield job, json.loads(json.dumps(do_job(json.loads(json.dumps(job)))))

    def close(self) -> None:
        pass


class Faults:
    """Marks of files that make trouble when a worker opens them, once each.

    folder  for PYTHONPATH of the workers
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._marks = folder / "site", folder / "marks"
        self.folder.mkdir(parents=True)
        self._marks.mkdir()
        (self.folder / "sitecustomize.py").write_text(SITE.format(marks=str(self._marks)))

    def mark(self, kind: str, name: str, after: int = 0) -> None:
        """Mark a file for a fault of this kind; *after*: how often it is opened before."""
        (self._marks / f"{kind}-{name}").write_text(str(after))

    @property
    def left(self) -> list[str]:
        """Marks whose fault has not happened yet."""
        return sorted(path.name for path in self._marks.glob("*-*"))

    @property
    def waits(self) -> Path:
        """File that exists as soon as a worker waits."""
        return self._marks / "waits"


def started_ingest(files: Path, dataset: Path, faults: Faults, engine: str) -> subprocess.Popen[bytes]:
    """Start an ingestion that stops at a log that is read forever; return it when it does so."""
    # The coordinating process opens it once, planning four times, then its messages are read.
    faults.mark("waiting", "log_5.vel", after=5)
    line = f"-m logreel fleet ingest {files} -o {dataset} --workers 2 --task-size 400000 --engine {engine}"
    child = subprocess.Popen(
        [sys.executable, *line.split()],
        env={**environment(), "PYTHONPATH": f"{faults.folder}{os.pathsep}{environment()['PYTHONPATH']}"},
        stderr=subprocess.PIPE,
    )
    while not faults.waits.exists():
        assert child.poll() is None, child.communicate()[1]
        time.sleep(0.02)
    return child
