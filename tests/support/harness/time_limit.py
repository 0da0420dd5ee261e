"""Limit the time of each test: one that waits without an end fails with its name, all stacks and its processes.

The limit is 60 s below ``faulthandler_timeout`` in pyproject.toml; 0: none. At that second time pytest itself prints
all stacks and ends the process, which is for tests that no signal reaches: a lock in C.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

#: Seconds between this limit and that of pytest, and between signals to a test that goes on after the first.
LATER = 60.0
#: Seconds in which a child process may write its stacks before it is killed.
GRACE = 1.0
#: The clock of start times of processes, which counts in ticks of so many seconds.
CLOCK, TICK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC), 0.01


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    seconds = float(item.config.getini("faulthandler_timeout") or 0) - LATER
    if seconds <= 0 or not hasattr(signal, "setitimer"):
        return (yield)
    begin = time.clock_gettime(CLOCK)

    def end(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(f"{item.nodeid} has not ended in {seconds:g} s\n{described(begin)}")

    old = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, LATER)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def children(pid: int | str = "self") -> set[int]:
    """Return the child processes of all threads of a process; none where the system does not tell."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for task in tasks for child in read(task).split()}


def read(path: Path) -> str:
    """Return the text of a file of /proc; empty if the process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def started(pid: int) -> float:
    """Return when a process was started, by CLOCK."""
    words = read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return int(words[19]) / os.sysconf("SC_CLK_TCK") if words else 0.0


def described(begin: float) -> str:
    """Return the stacks of the other threads, and all processes below this one; end those started since *begin*.

    SIGABRT lets Python, if it was forked from a test, write its stacks. A child that is left would keep pipes open.
    """
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    text = [
        f"\nThread {names.get(ident, ident)}:\n" + "".join(traceback.format_stack(frame))
        for ident, frame in sys._current_frames().items()
        if ident != threading.get_ident()
    ]
    todo = [(child, 0) for child in sorted(children(), reverse=True)]
    text.append("\nProcesses:\n")
    while todo:
        pid, depth = todo.pop()
        folder = Path(f"/proc/{pid}")
        state = read(folder / "stat").rpartition(")")[2].split()[:1]
        words = read(folder / "cmdline").replace("\0", " ")[:200]
        text.append(f"{'  ' * depth}{pid} {''.join(state)} {read(folder / 'wchan')} {words}\n")
        todo += ((child, depth + 1) for child in sorted(children(pid), reverse=True))
    left = {pid for pid in children() if started(pid) > begin - TICK}
    for number in (signal.SIGABRT, signal.SIGKILL):
        for pid in left & children():
            os.kill(pid, number)
        time.sleep(GRACE if left else 0)
    return "".join(text)
