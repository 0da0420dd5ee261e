"""Items produced ahead in a background thread, and shares of work in threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from logreel.io.arrays import ahead, run


def test_items_are_in_order_and_one_is_produced_ahead() -> None:
    made: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for n in range(5):
            made.append(n)
            if n == 1:
                second.set()
            yield n

    found = ahead(items())
    assert next(found) == 0
    # The next one is produced before it is requested.
    assert second.wait(30)
    assert list(found) == [1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]
    assert list(ahead([])) == []


@pytest.mark.parametrize("depth", [1, 2, 4, 9])
def test_depth_limits_the_items_produced_ahead(depth: int) -> None:
    made: list[int] = []
    enough = threading.Event()

    def items() -> Iterator[int]:
        for n in range(6):
            made.append(n)
            if n == min(depth, 5):
                enough.set()
            yield n

    found = ahead(items(), depth)
    assert next(found) == 0
    assert enough.wait(30)
    assert len(made) <= 1 + depth
    assert list(found) == [1, 2, 3, 4, 5]


def test_errors_are_raised_in_place_of_their_item() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)


def test_stopping_early_leaves_no_thread() -> None:
    before = threading.active_count()
    found = ahead(iter(range(100)))
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_nested_run_does_not_deadlock() -> None:
    def nested(i: int, share: slice) -> int:
        parts = [slice(k, k + 1) for k in range(share.start, share.stop)]
        return sum(run(lambda _, part: part.start, parts))

    shares = [slice(i * 10, i * 10 + 10) for i in range(20)]
    assert sum(run(nested, shares)) == sum(range(200))


def test_error_of_one_share_is_raised_after_the_others_ended() -> None:
    ended = []

    def work(i: int, share: slice) -> int:
        if i == 0:
            raise ValueError("the first share")
        time.sleep(0.05)
        ended.append(i)
        return i

    for _ in range(3):
        ended.clear()
        with pytest.raises(ValueError, match="the first share"):
            run(work, [slice(0, 1), slice(1, 2)])
        # It was never started, or has ended: nothing writes to the caller's memory any more.
        before = list(ended)
        time.sleep(0.1)
        assert ended == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_run_works_in_a_forked_child() -> None:
    def twice(i: int, share: slice) -> int:
        time.sleep(0.01)
        return 2 * share.start

    parts = [slice(i, i + 1) for i in range(4)]
    assert run(twice, parts) == [0, 2, 4, 6]
    pid = os.fork()
    if pid == 0:
        os._exit(0 if run(twice, parts) == [0, 2, 4, 6] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
