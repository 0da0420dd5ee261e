"""Kill recorders: a child process writes and flushes until it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import textwrap
from pathlib import Path

from support.harness.cli_runner import environment
from support.harness.forked import forked_python

_BODY = """
import sys
import logreel
{setup}
with logreel.create(sys.argv[1], flush_every=None) as w:
{channels}
    i = 0
    while True:
        for _ in range(7):
{write}
            i += 1
        w.flush()
        print(i, flush=True)
"""


def killed(path: Path, setup: str, channels: str, write: str, acknowledged: int) -> tuple[Path, int]:
    """Return the unfinished file of a killed recorder, and the number of *write*s whose flush it confirmed."""
    script = _BODY.format(
        setup=textwrap.dedent(setup),
        channels=textwrap.indent(textwrap.dedent(channels), " " * 4),
        write=textwrap.indent(textwrap.dedent(write), " " * 12),
    )
    command = forked_python("-c", script, path)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as child:
        assert child.stdout is not None
        for _ in range(acknowledged):
            due = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        due = max([due, *(int(line) for line in child.stdout if line.endswith("\n"))])
    assert os.listdir(path.parent) == [f"{path.name}.active"]
    return path.with_name(f"{path.name}.active"), due
