"""Run cases in worker processes, and check how these end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import logreel
from logreel.io.platform import readable

#: Address space that a case may take beyond what the idle worker has. The allocator of a Python without a global lock
#: reserves a GiB at once.
ROOM_MIB = 3072 if sysconfig.get_config_var("Py_GIL_DISABLED") else 1024
#: Of a processor: ten times what the slowest case takes here, or nearly; growth has tests of its own.
SECONDS = 30.0
#: Growth of resident memory that is fine: a constant, which is the heap of a worker that has just started, and a
#: multiple of the file.
GROWTH, GROWTH_FACTOR = 80 << 20, 4
GOOD = {"clean", "problems", "refused"}
#: Sanitizers reserve terabytes of address space, keep what is freed, and are slow: they judge other things.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")


@dataclass(frozen=True)
class Outcome:
    """Result of a case: ``clean``, ``problems``, ``refused``, ``hang``, ``crash`` or the name of an exception."""

    outcome: str
    text: str
    seconds: float
    size: int
    grown: int

    @property
    def bad(self) -> str:
        """Return a description of the failure; empty if there is none."""
        if self.outcome not in GOOD:
            return f"{self.outcome}: {self.text}"
        if not SANITIZED and self.grown > GROWTH + GROWTH_FACTOR * self.size:
            return f"memory grew by {self.grown >> 20} MiB for {self.size} bytes"
        return ""


class Worker:
    """One worker process, which is started again after a case killed it."""

    def __init__(self, room_mib: int = ROOM_MIB, seconds: float = SECONDS) -> None:
        self._room, self._seconds = (0, 10 * seconds) if SANITIZED else (room_mib, seconds)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("worker.py")), str(self._room)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={
                    **os.environ,
                    "LOGREEL_CACHE": "off",
                    "PYTHONPATH": str(Path(logreel.__file__).parents[1]),
                },
            )
        assert self._process.stdin
        assert self._process.stdout
        return self._process.stdin, self._process.stdout

    def run(self, kind: str, name: str, seed: int) -> Outcome:
        """Return the outcome of one case."""
        stdin, stdout = self._start()
        stdin.write(json.dumps([kind, name, seed]).encode() + b"\n")
        stdin.flush()
        # Generous for the start of the worker, whose own clock judges the case.
        ready = readable(stdout, self._seconds + 30)
        answer = stdout.readline() if ready else b""
        if answer:
            found = Outcome(**json.loads(answer))
            slow = found.seconds > self._seconds
            return Outcome("hang", "", found.seconds, found.size, found.grown) if slow else found
        assert self._process is not None
        if not ready:
            self._stop()
            return Outcome("hang", "", self._seconds + 30, 0, 0)
        _, stderr = self._process.communicate()
        code, self._process = self._process.returncode, None
        return Outcome("crash", f"exit code {code}: {stderr[-3000:].decode(errors='replace')}", 0.0, 0, 0)
