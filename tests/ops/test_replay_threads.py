"""Replays by the clock of the machine: controls from other threads, and real time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import logreel
from support.harness.replaying import BASE, MS, Numbered, bag, number

SECOND = 10**9


@pytest.fixture
def log(tmp_path: Path) -> logreel.Log:
    """Messages 0 … 9, ten milliseconds apart."""
    return bag(tmp_path / "a.bag", [Numbered("/a", 10 * MS * n, n) for n in range(10)])


def test_another_thread_can_control_the_replay(log: logreel.Log) -> None:
    here, go_on = threading.Event(), threading.Event()

    def wait(message: logreel.Message) -> None:
        found.append(number(message))
        if len(found) == 3:
            here.set()
            assert go_on.wait(60)

    found: list[int] = []
    with logreel.Player(log, rate=0, on_message=wait).start() as player:
        assert here.wait(60)
        player.pause()
        go_on.set()
        # It stops behind the message that it was at.
        player.step(2)
        while len(found) < 5:
            assert not player.join(0.01)
        assert found == [0, 1, 2, 3, 4]
        player.seek("+80ms")
        player.resume()
        assert player.join(60)
    assert found == [0, 1, 2, 3, 4, 8, 9]
    assert player.finished


def test_stop_ends_a_sleep(tmp_path: Path) -> None:
    log = bag(tmp_path / "a.bag", [Numbered("/a", 0, 0), Numbered("/a", 3600 * SECOND, 1)])
    player = logreel.Player(log, on_message=lambda message: here.set())
    here = threading.Event()
    with player.start():
        assert here.wait(60)
        assert player.position >= BASE
        player.stop()
        assert player.join(60)
    assert player.tally.messages == 1


def test_real_time_is_kept(log: logreel.Log) -> None:
    import time

    begin = time.monotonic_ns()
    player = logreel.Player(log, rate=1.0)
    arrived = [time.monotonic_ns() - begin for _ in player]
    assert len(arrived) == 10
    assert all(at >= 10 * MS * n for n, at in enumerate(arrived))
    assert arrived[-1] < 60 * SECOND
    assert player.tally.timed == 10
