"""Items produced ahead in a background thread, and shares of work in threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from logreel.io import arrays, platform
from logreel.io.arrays import ahead, run, run_many
from support.harness.limits import ended


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


@pytest.mark.parametrize("can_thread", [True, False])
def test_nested_run_does_not_deadlock(can_thread: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "CAN_THREAD", can_thread and platform.CAN_THREAD)
    monkeypatch.setattr(arrays, "_helpers", arrays._Helpers())

    def nested(first: int) -> int:
        return sum(run([partial(int, number) for number in range(first, first + 10)]))

    assert sum(run([partial(nested, first) for first in range(0, 200, 10)])) == sum(range(200))


@pytest.mark.parametrize("n", [0, 1, 5, 64, 1000])
def test_many_calls_give_their_values_in_order(n: int) -> None:
    assert run_many([partial(int, number) for number in range(n)], 16) == list(range(n))


def test_error_of_one_share_is_raised_after_the_others_ended() -> None:
    ended = []

    def work(i: int) -> int:
        if i == 0:
            raise ValueError("the first share")
        time.sleep(0.05)
        ended.append(i)
        return i

    for _ in range(3):
        ended.clear()
        with pytest.raises(ValueError, match="the first share"):
            run([partial(work, 0), partial(work, 1)])
        # It was never started, or has ended: nothing writes to the caller's memory any more.
        before = list(ended)
        time.sleep(0.1)
        assert ended == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_run_works_in_a_forked_child() -> None:
    def twice(number: int) -> int:
        time.sleep(0.01)
        return 2 * number

    calls = [partial(twice, number) for number in range(4)]
    assert run(calls) == [0, 2, 4, 6]
    pid = os.fork()
    if pid == 0:
        os._exit(0 if run(calls) == [0, 2, 4, 6] else 1)
    assert os.waitstatus_to_exitcode(ended(pid)) == 0
