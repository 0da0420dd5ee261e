"""Kill processes that append to a log, and check the files that remain. Run as ``killing_append.py FORMAT RUNS SEED``.

Every run appends twice to a copy of the same log: a first process completes, which tells how long that takes and how
many calls of the system change files; a second one is killed at a random moment of this time, or in a random one of
these calls: before it, after it, or after half of its bytes. Both choices are uniform over the whole life: the old log
is copied, messages are written and flushed, the file is completed and renamed.

After a kill, the path names the old log, unchanged to the last byte, or the complete new one. While it is the old one,
``.active`` has all old messages and everything acknowledged, and can be recovered. Prints the number of kills in each
phase; ends with the failures.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from killing import SOAK, Replay, Simple, content_of, left, wrong

import logreel
from logreel.errors import LogError
from logreel.io import append_file as old_file
from support.formats import builtin_formats
from support.harness.limits import ended

#: Phase, messages in the file that were flushed, size and inode of the unfinished file, calls so far.
EVENT = struct.Struct("<QQQQQ")
PHASES = ("copying", "appending", "finishing", "finished")
COPYING, APPENDING, FINISHING, FINISHED = range(4)
#: Messages of the old log, at most half of those of a sample, and the most that are appended.
OLD, MOST = (300, 600) if SOAK else (100, 200)
#: Pieces in which the system copies the old log.
PIECES = 8
_write = os.write


def old_count(content: Simple | Replay) -> int:
    """Return the number of messages of the old log."""
    return min(OLD, len(content) // 2) if isinstance(content, Replay) else OLD


class Trap:
    """Counts the calls that change files; kills this process in call number *deadly*, 0: in none."""

    def __init__(self, deadly: int, rng: random.Random, clone: bool) -> None:
        self.calls, self._deadly, self._rng = 0, deadly, rng
        for name in (
            "open",
            "ftruncate",
            "fsync",
            "fdatasync",
            "replace",
            "rename",
            "link",
            "unlink",
            "fchmod",
        ):
            self._set(name, getattr(os, name))
        for name in ("write", "pwrite"):
            self._set(name, getattr(os, name), self._half_written)
        copy = os.copy_file_range

        def part(source: int, target: int, count: int, *places: int) -> int:
            return copy(source, target, max(1, min(count, os.fstat(source).st_size // PIECES)), *places)

        def half(source: int, target: int, count: int, *places: int) -> int:
            return part(source, target, count // 2 + 1, *places)

        def refused(*_: Any) -> int:
            raise OSError("not on this file system")

        self._set("copy_file_range", part if clone else refused, half)
        # Without this, blocks are shared where the file system can do that.
        fcntl.ioctl = fcntl.ioctl if clone else refused
        old_file._COPIED = 1 << 14

    def _set(self, name: str, call: Callable[..., Any], half: Callable[..., Any] | None = None) -> None:
        def trapped(*args: Any, **more: Any) -> Any:
            self.calls += 1
            if self.calls == self._deadly:
                how = self._rng.randrange(3)
                if how == 1 and half is not None:
                    half(*args)
                elif how:
                    call(*args, **more)
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **more)

        setattr(os, name, trapped)

    def _half_written(self, handle: int, data: Any, *place: int) -> None:
        half = bytes(data)[: len(data) // 2]
        for where in place:
            os.lseek(handle, where, os.SEEK_SET)
        _write(handle, half)


def append(path: Path, name: str, content: Simple | Replay, seed: int, deadly: int, pipe: int) -> None:
    """Append to the log, and complete it; announce every step."""
    rng = random.Random(seed)
    trap = Trap(deadly, random.Random(f"{seed} trap"), clone=seed % 3 > 0)
    active, old = Path(f"{path}.active"), old_count(content)
    n = old

    def announce(phase: int) -> None:
        found = active.stat() if phase < FINISHED else path.stat()
        _write(pipe, EVENT.pack(phase, n, found.st_size, found.st_ino, trap.calls))

    w = logreel.create(path, mode="a", format=name, flush_every=rng.choice((None, 0.0, 0.001)))
    announce(APPENDING)
    content.begin(w)
    most = old + rng.randrange(1, MOST)
    if isinstance(content, Replay):
        most = min(most, len(content))
    while n < most:
        for _ in range(min(most - n, rng.choice((1, 7, 300)))):
            content.write(w, n)
            n += 1
        w.flush(sync=rng.random() < 0.02)
        announce(APPENDING)
    announce(FINISHING)
    w.close()
    announce(FINISHED)


@dataclass
class Life:
    """What a process announced until it ended: phase, messages, size and inode of the file, calls; seconds it lived."""

    phase: int
    count: int
    size: int
    file: int
    calls: int
    seconds: float


def live(
    path: Path, name: str, content: Simple | Replay, seed: int, deadly: int, after: float | None
) -> Life:
    """Append in a process of its own; kill it *after* seconds, or in call number *deadly*."""
    read, write = os.pipe()
    begin = time.monotonic()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            os.close(read)
            append(path, name, content, seed, deadly, write)
            code = 0
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
        os._exit(code)
    os.close(write)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    with open(read, "rb") as pipe:
        announced = pipe.read()
    status = ended(pid)
    seconds = time.monotonic() - begin
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"appending failed: {status}"
    whole = len(announced) // EVENT.size * EVENT.size
    if not whole:
        return Life(COPYING, 0, 0, 0, 0, seconds)
    phase, count, size, file, calls = EVENT.unpack_from(announced, whole - EVENT.size)
    return Life(phase, count, size, file, calls, seconds)


def judge(path: Path, old: bytes, life: Life, most: int, content: Simple | Replay, seed: int) -> str:
    """Return a description of what is wrong after a kill, else an empty text."""
    if not path.exists():
        return f"the old log is gone, {PHASES[life.phase]}"
    data, active = path.read_bytes(), Path(f"{path}.active")
    saved = path.with_name(f"saved{path.suffix}")
    if data != old:
        if life.phase < FINISHING or active.exists():
            return f"the old log is another one, {PHASES[life.phase]}"
        log = logreel.open(data)
        if log.problems or content.found(log) != content.due(most):
            return f"the new log is not complete: {log.problems[:1]}"
        return ""
    if life.phase == FINISHED:
        return "the new log is missing"
    if life.phase == COPYING:
        # Nothing was acknowledged; the file may be cut anywhere, which must be said of it.
        if active.exists() and active.stat().st_size:
            with contextlib.suppress(LogError):
                logreel.open(active)
        return ""
    if not active.exists():
        return "the unfinished file is missing"
    for how, found in left(active, life.size, life.file, random.Random(seed)):
        text = wrong(found, content.due(life.count), content, saved)
        if text:
            return f"{how}: {text}"
    return ""


def again(path: Path, name: str, content: Simple | Replay) -> str:
    """Append to the log that the kill left; return a description of what is wrong, else an empty text."""
    before = content.found(logreel.open(path))
    with logreel.create(path, mode="a", format=name, force=True) as w:
        content.begin(w)
        content.write(w, before.total())
    found = content.found(logreel.open(path))
    return "" if found == content.due(before.total() + 1) else "it cannot be appended to again"


def main() -> None:
    """Kill processes that append to logs of one format."""
    name, runs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    bad: list[Any] = []
    phases = Counter[str]()
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        content = content_of(name, folder)
        old_path = folder / f"old{builtin_formats()[name].suffixes[0]}"
        with logreel.create(old_path, format=name) as w:
            content.begin(w)
            for n in range(old_count(content)):
                content.write(w, n)
        old = old_path.read_bytes()
        for run in range(seed, seed + runs):
            rng = random.Random(f"{run} kill")
            path = folder / f"{run}{old_path.suffix}"
            shutil.copy(old_path, path)
            whole = live(path, name, content, run, 0, None)
            text = judge(path, old, whole, whole.count, content, run)
            shutil.copy(old_path, path)
            deadly = rng.randint(1, whole.calls) if run % 2 else 0
            life = live(path, name, content, run, deadly, None if deadly else rng.random() * whole.seconds)
            phases[PHASES[life.phase]] += 1
            text = text or judge(path, old, life, whole.count, content, run)
            if not text and run % 8 < 2 and life.phase < FINISHING:
                text = again(path, name, content)
            bad += [(run, PHASES[life.phase], deadly, text)] if text else []
            for one in folder.glob(f"{path.name}*"):
                one.unlink()
    print(json.dumps({"format": name, "runs": runs, **phases}))  # noqa: T201
    if bad:
        sys.exit(f"{len(bad)} of {runs} runs: {bad[:5]}")
    # Completing is short: a few dozen kills may all miss it.
    due = PHASES[:3] if runs >= 100 else PHASES[:2]
    if runs >= 20 and min(phases[phase] for phase in due) == 0:
        sys.exit(f"no kill in some phase: {dict(phases)}")


if __name__ == "__main__":
    main()
