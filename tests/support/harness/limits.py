"""Measure memory and processor time of work, independent of the load of the machine."""

from __future__ import annotations

import os
import resource
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: What a job may take on top of what the process has.
ROOM = 600 << 20
#: Seconds of a processor that a job may take; the longest one takes 2.
SECONDS = 30


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
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
