"""Batch: which messages it accepts, and what ``take`` returns."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from logreel.kernels.records import Batch, now


@pytest.fixture
def batch() -> Batch:
    made = Batch(4, 100)
    made.channels, made.earliest, made.latest, made.largest, made.due = 2, -5, 10**18, 60, float("inf")
    return made


def test_take_returns_added_messages_once(batch: Batch) -> None:
    assert batch.take() is None
    assert batch.add(0, 7, b"one")
    assert batch.add(1, -5, b"")
    assert batch.add(1, 10**18, b"three")
    found = batch.take()
    assert found is not None
    assert [part.tolist() for part in found] == [
        [0, 1, 1],
        [7, -5, 10**18],
        list(b"onethree"),
        [0, 3, 3],
        [3, 0, 5],
    ]
    assert [part.dtype for part in found] == [np.int32, np.int64, np.uint8, np.int64, np.int64]
    assert batch.add(0, 1, b"x")
    assert found[2].tobytes() == b"onethree"
    assert batch.take() is not None
    assert batch.take() is None


@pytest.mark.parametrize(
    "message",
    [
        (2, 0, b""),
        (-1, 0, b""),
        (1 << 70, 0, b""),
        (0, -6, b""),
        (0, 10**18 + 1, b""),
        (0, -(1 << 70), b""),
        (0, 0, bytes(61)),
        (0, 0, bytearray(1)),
        (0, 0, {}),
        (0, 0.0, b""),
        (True, 0, b""),
        (np.int64(0), 0, b""),
    ],
)
def test_messages_outside_of_the_limits_are_not_accepted(batch: Batch, message: tuple[Any, Any, Any]) -> None:
    assert not batch.add(*message)
    assert batch.take() is None


def test_a_full_batch_accepts_nothing(batch: Batch) -> None:
    assert batch.add(0, 0, bytes(60))
    assert not batch.add(0, 0, bytes(41))
    assert batch.add(0, 0, bytes(40))
    assert not batch.add(0, 0, b"x")
    assert batch.add(0, 0, b"")
    assert batch.add(0, 0, b"")
    assert not batch.add(0, 0, b"")


def test_a_due_batch_accepts_nothing(batch: Batch) -> None:
    batch.due = now()
    assert not batch.add(0, 0, b"")


def test_threads_can_add_while_others_take() -> None:
    batch, found = Batch(64, 1 << 10), []
    batch.channels, batch.latest, batch.largest, batch.due = 4, 1 << 40, 8, float("inf")
    lock = threading.Lock()

    def take() -> None:
        with lock:
            rows = batch.take()
            if rows is not None:
                found.extend(zip(rows[0].tolist(), rows[1].tolist(), rows[2].reshape(-1, 8), strict=True))

    def work(number: int) -> None:
        for i in range(3000):
            while not batch.add(number, i, bytes((number, i % 251)) * 4):
                take()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    take()
    for number in range(4):
        mine = [(i, data) for k, i, data in found if k == number]
        assert [i for i, _ in mine] == list(range(3000))
        assert all(data.tobytes() == bytes((number, i % 251)) * 4 for i, data in mine)


def test_nothing_is_kept_after_the_last_messages(batch: Batch) -> None:
    assert batch.add(1, 5, b"abc")
    assert batch.take(True)[1].tolist() == [5]
    for data in (b"", b"abc"):
        assert not batch.add(1, 6, data)
    assert batch.take(True) is None
    assert batch.take() is None
    assert not batch.add(1, 6, b"")


def test_the_last_messages_are_taken_while_threads_add() -> None:
    for _ in range(50):
        batch = Batch(64, 1 << 10)
        batch.channels, batch.latest, batch.largest, batch.due = 4, 1 << 40, 8, float("inf")
        counts = [0] * 3

        def work(number: int, batch: Batch = batch, counts: list[int] = counts) -> None:
            while batch.add(number, counts[number], b""[: number % 2]):
                counts[number] += 1

        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        rows = batch.take(True)
        for thread in threads:
            thread.join()
        assert (0 if rows is None else len(rows[0])) == sum(counts)
