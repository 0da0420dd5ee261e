"""Thousands of damaged logs, read in a separate process: only errors of logreel may occur."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from conftest import SHARED
from harness import ROOM_MIB, SANITIZED, Worker

#: Broken logs in all; ``make fuzz`` sets it.
CASES = int(os.environ.get("LOGREEL_FUZZ", "240"))
LANES = 4
#: Real flights are large: one case in so many.
REAL_SHARE = 20
REAL = sorted(str(p) for p in (SHARED / "data" / "ulog").glob("*.ulg") if p.stat().st_size < 1 << 20)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """A worker for all tests: its start takes as long as fifty cases."""
    with Worker() as found:
        yield found


def failures(worker: Worker, kind: str, name: str, seeds: range) -> list[str]:
    """Return a line or traceback for each failed case."""
    outcomes = ((seed, worker.run(kind, name, seed)) for seed in seeds)
    return [f"{kind} {name} {seed}: {outcome.bad}" for seed, outcome in outcomes if outcome.bad]


@pytest.mark.parametrize("lane", range(LANES))
@pytest.mark.parametrize(
    ("kind", "name", "share"), [("mutation", "tiny", 2), ("blocks", "tiny", 4), ("mutation", "flight", 4)]
)
def test_damaged_logs_are_readable(worker: Worker, kind: str, name: str, share: int, lane: int) -> None:
    """``blocks``: with blocks of a few records, so that every kind of damage is at their edges."""
    bad = failures(worker, kind, name, range(lane, CASES // share, LANES))
    assert not bad, "\n".join(bad[:5])


@pytest.mark.skipif(not REAL, reason="no samples of real logs beside the repository (LOGREEL_SHARED)")
def test_damaged_flights_are_readable(worker: Worker) -> None:
    bad = [
        line
        for number, name in enumerate(REAL)
        for line in failures(worker, "mutation", name, range(number, CASES // REAL_SHARE, len(REAL)))
    ]
    assert not bad, "\n".join(bad[:5])


@pytest.mark.skipif(SANITIZED, reason="sanitizers end the process where a fault is expected")
def test_harness_detects_crashes_and_hangs() -> None:
    """A worker that hangs or dies is reported, and the next case gets a new worker."""
    with Worker(seconds=0.5) as worker:
        assert worker.run("fault", "hang", 600).outcome == "hang"
        assert worker.run("fault", "die", 0).outcome == "crash"
        assert worker.run("fault", "raise", 0).bad.startswith("KeyError")
        assert worker.run("fault", "hoard", 100).bad.startswith("memory grew by")
        assert worker.run("fault", "hoard", ROOM_MIB + 1000).outcome == "MemoryError"
        assert worker.run("mutation", "tiny", 0).bad == ""
