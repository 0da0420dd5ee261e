"""Small files that need much time or memory are read completely within seconds and bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from bombs import BOMBS, sparse_zeros

import logreel
from harness import SANITIZED, Worker

#: Name, size, and what comes of it.
CASES = [
    ("nested_arrays", 1000, "problems"),
    ("arrays_of_arrays", 1000, "problems"),
    ("circle", 1, "problems"),
    ("circle", 3000, "problems"),
    ("deep", 60, "clean"),
    ("deep", 1100, "problems"),
    ("doubling", 12, "clean"),
    ("doubling", 60, "problems"),
    ("empty_doubling", 60, "problems"),
    ("many_fields", 4, "clean"),
    ("subscriptions", 65_536, "clean"),
    ("xz_events", 100, "clean"),
    ("huge_text", 999_999_999, "problems"),
    ("huge_text", 65_000, "clean"),
    ("glued_headers", 1000, "problems"),
    ("random_bytes", 1, "problems"),
    ("only_unknown", 1024, "problems"),
    ("sparse_zeros", 64, "problems"),
]
#: Name and size of what must take time in proportion to its size.
LINEAR = [
    ("subscribed_topics", 432),
    ("strange_clocks", 160),
    ("changing_ids", 3000),
    ("resyncs", 1848),
    ("near_chains", 20_000),
    ("lying_sizes", 1848),
    ("tolerated_chains", 512),
    ("undeclared_ids", 6160),
    ("only_sync", 1280),
    ("dropouts", 640),
    ("short_clock", 24),
    ("keys", 16),
    ("random_bytes", 8),
]
#: So many times the size, and the time that it may take: a square would take 64 times as long. Seconds of each run that
#: are there whatever the size is.
TIMES, MOST, ALWAYS = 8, 12, 0.003


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker() as one:
        yield one


@pytest.mark.parametrize(("name", "size", "outcome"), CASES)
def test_bomb_is_read_in_bounded_time_and_memory(worker: Worker, name: str, size: int, outcome: str) -> None:
    found = worker.run("bomb", name, size)
    assert not found.bad
    assert found.outcome == outcome


@pytest.mark.skipif(SANITIZED, reason="times and memory of sanitized code say nothing")
@pytest.mark.parametrize(("name", "size"), LINEAR)
def test_reading_time_is_linear_in_size(worker: Worker, name: str, size: int) -> None:
    """A file of eight times the size takes at most 12 times as long; the best of several runs counts."""
    ratios = []
    for _ in range(5):
        small, large = (worker.run("bomb", name, n) for n in (size // TIMES, size))
        assert not small.bad
        assert not large.bad
        ratios.append((large.seconds + ALWAYS) / (small.seconds + ALWAYS))
        if ratios[-1] < MOST:
            return
    pytest.fail(f"{TIMES} times the size takes {min(ratios):.1f} times as long")


def test_every_bomb_is_tested() -> None:
    assert {name for name, *_ in CASES + LINEAR} == set(BOMBS)


def test_zero_tail_is_one_problem() -> None:
    path = sparse_zeros(64)
    try:
        log = logreel.open(path)
        assert len(log["tick"]) == 100
        (problem,) = log.problems
        assert (problem.code, problem.offset + problem.size, problem.lost) == ("zeros", 64 << 20, True)
        assert problem.size > (64 << 20) - 3000
    finally:
        os.unlink(path)


@pytest.mark.skipif(SANITIZED, reason="times and memory of sanitized code say nothing")
def test_lost_bytes_need_constant_memory(worker: Worker) -> None:
    """The mapped file counts as resident memory; copies of it would count twice."""
    small, large = (worker.run("bomb", "sparse_zeros", n) for n in (1, 100))
    assert not large.bad
    assert large.grown - small.grown < (100 << 20) + (16 << 20)
