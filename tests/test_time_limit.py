"""A test that waits without an end fails, and says what waits for what; see support/harness/time_limit.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent

WAITING = """
import os, subprocess, sys, threading, time

def wait_in_a_child():
    time.sleep(100)

def test_waits():
    threading.Thread(target=threading.Event().wait, args=(100,), name="bystander", daemon=True).start()
    command = [sys.executable, "-c", "import time; time.sleep(100)  # started"]
    started = subprocess.Popen(command)
    pid = os.fork()
    if not pid:
        wait_in_a_child()
    os.waitpid(pid, 0)

def test_goes_on():
    pass
"""
#: Waits where no signal handler of Python runs.
DEAF = """
import ctypes, signal

def test_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    ctypes.CDLL(None).sleep(100)
"""


def limited(folder: Path, text: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """Run pytest with a limit of time on a file of tests."""
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text(
        f"[pytest]\nfaulthandler_timeout = {seconds}\nfaulthandler_exit_on_timeout = true\n"
    )
    options = ["-p", "support.harness.time_limit", "-p", "no:cacheprovider", "-W", "ignore"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *options, "test_it.py"],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="/proc tells of processes")
def test_a_test_that_waits_fails_with_all_stacks_and_processes(tmp_path: Path) -> None:
    done = limited(tmp_path, WAITING, 61)
    assert done.returncode == 1
    assert "test_it.py::test_waits has not ended in 1 s" in done.stdout
    assert "os.waitpid(pid, 0)" in done.stdout
    assert "Thread bystander" in done.stdout
    assert "time.sleep(100)  # started" in done.stdout
    assert "in wait_in_a_child" in done.stderr
    assert "1 failed, 1 passed" in done.stdout


def test_a_test_that_no_signal_reaches_ends_the_process_with_all_stacks(tmp_path: Path) -> None:
    done = limited(tmp_path, DEAF, 1)
    assert done.returncode == 1
    assert "in test_deaf" in done.stderr
