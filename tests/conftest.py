"""Fixtures, the folder of real logs (not part of the repository), and settings of Hypothesis."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.harness.cli_runner import logs, run, spawn
from support.harness.decoding import decoding
from support.harness.forked import AT_START
from support.harness.time_limit import pytest_runtest_protocol

# A conftest.py of tests/cli would hide this one from those who import from it.
__all__ = ["SHARED", "decoding", "logs", "pytest_runtest_protocol", "run", "shared", "spawn"]
from hypothesis import HealthCheck, settings

# Definitions in the folder of the person who runs the tests would change results; tests name a folder of their own.
os.environ["LOGREEL_DATA"] = "off"

# A shared machine stalls at random: a deadline would test the machine.
settings.register_profile("logreel", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("logreel")

#: Folder of real samples beside the repository; LOGREEL_SHARED names another one. It may be missing.
SHARED = Path(os.environ.get("LOGREEL_SHARED") or Path(__file__).resolve().parents[2] / "shared")
#: Files whose tests take longest each: they begin, so that no worker has one of them left when the others have ended.
DEAREST = {
    "test_docs.py", "cli/test_without_libraries.py", "damage/test_failing_calls.py", "damage/test_killing.py",
    "damage/test_fuzz.py", "damage/test_carla_damage.py", "browser/test_space.py",
}  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the workers of ``-n auto``: half as many again as processors, since a quarter of all time is waiting."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (usable * 3 + 1) // 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    dearest = {here / name for name in DEAREST}
    items.sort(key=lambda item: item.path not in dearest)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect tests without the garbage collector, which finds little in what is made then, and all of it is kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Hide what was collected from the garbage collector: half a million objects, a third of a second each time.

    Followed logs and large indexes call for a collection, in the tests thousands of times.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of real logs; skip the test if there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"no samples of real logs at {SHARED}; set LOGREEL_SHARED")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def interrupt() -> None:
    """Let new processes receive SIGINT, which they would ignore if the tests were started in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def variables_of_starts() -> Iterator[None]:
    """Put back the variables that act when a process starts: with others, commands of later tests would be no forks."""
    before = {name: value for name, value in os.environ.items() if AT_START.match(name)}
    yield
    for name in [name for name in os.environ if AT_START.match(name)]:
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture
def hangup() -> Iterator[None]:
    """Let new processes receive SIGHUP, which they would ignore if the tests were started by nohup."""
    if not hasattr(signal, "SIGHUP"):
        yield
        return
    old = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, old)
