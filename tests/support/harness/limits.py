"""Measure memory and processor time of work, independent of the load of the machine."""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: What a job may take on top of what the process has.
ROOM = 600 << 20
#: Seconds of a processor that a job may take; the longest one takes 2.
SECONDS = 30
#: Seconds until a child process has ended, which may wait for a lock that a thread of its parent had.
PATIENCE = 300.0


@contextmanager
def processor(seconds: float) -> Iterator[None]:
    """Fail if the block takes more than *seconds* of CPU time, at least ten times the usual time."""
    begin = time.process_time()
    yield
    used = time.process_time() - begin
    assert used < seconds, f"{used:.1f} s of a processor"


def limited(job: Callable[[], Any]) -> None:
    """Run *job* in a child process with at most ROOM more memory and SECONDS of CPU time; fail if it fails."""
    child = os.fork()
    if not child:
        status = 1
        try:
            with open("/proc/self/statm") as f:
                used = int(f.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
            # A child counts from 0; one that hangs is killed.
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            job()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(ended(child)) == 0


def ended(child: int, seconds: float = PATIENCE) -> int:
    """Return the wait status of a child process; one that does not end is aborted, and fails.

    SIGABRT lets Python write the stacks of a child that was forked from a test.
    """
    end, pause = time.monotonic() + seconds, 0.0001
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGABRT)
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"process {child} has not ended in {seconds:g} s")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return found[1]
