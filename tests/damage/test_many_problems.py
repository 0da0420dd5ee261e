"""Time does not grow with the square of the number of problems."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import logreel
from logreel.errors import Problem
from logreel.log.scan import Noted
from support.samples.rosbag.builder import Builder
from support.samples.rosbag.old import Topic

MANY = 400


def test_connections_with_wrong_md5_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Builder("none")
    for n in range(MANY):
        out.connection(Topic(f"/t{n}", "std_msgs/String", md5=f"{n:032x}"))
        out.message(n, 10**18 + n, b"\1\0\0\0a")
    compared = 0
    equal = Problem.__eq__

    def counted(self: Problem, other: object) -> bool:
        nonlocal compared
        compared += 1
        return equal(self, other)

    monkeypatch.setattr(Problem, "__eq__", counted)
    log = logreel.open(out.bytes())
    for ch in log.values():
        _ = ch.layout
    assert sum(problem.code == "md5" for problem in log.problems) == MANY
    assert compared <= 4 * MANY


def test_a_problem_is_noted_once_in_a_list_that_others_extend() -> None:
    one, two = (Problem("md5", 0, 0, False, text) for text in ("one", "two"))
    noted, problems = Noted(), list[Problem]()
    noted.add(problems, one)
    noted.add(problems, one)
    problems.append(two)
    noted.add(problems, two)
    assert problems == [one, two]
    problems.remove(one)
    noted.add(problems, one)
    assert problems == [two, one]
    other = [two]
    noted.add(other, one)
    assert other == [two, one]


def test_problems_that_others_replace_are_noted_again() -> None:
    one, two, three = (Problem("md5", 0, 0, False, text) for text in ("one", "two", "three"))
    noted, problems = Noted(), [one]
    noted.add(problems, two)
    problems[:] = [three, three, three]
    noted.add(problems, one)
    assert problems == [three, three, three, one]


def test_problems_are_not_hashed_again_for_each_that_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolving damaged chunks adds two problems for each of them, one of which is not noted here."""
    hashed = 0
    usual = Problem.__hash__

    def counted(self: Problem) -> int:
        nonlocal hashed
        hashed += 1
        return usual(self)

    monkeypatch.setattr(Problem, "__hash__", counted)
    noted, problems = Noted(), list[Problem]()
    for n in range(MANY):
        noted.add(problems, Problem("chunk", n, 1, True, "damaged"))
        problems.append(Problem("index", n, 1, True, "wrong"))
    assert len(problems) == 2 * MANY
    assert hashed <= 4 * MANY


def test_threads_note_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Problem.__hash__

    def slow(self: Problem) -> int:
        time.sleep(0.001)
        return usual(self)

    monkeypatch.setattr(Problem, "__hash__", slow)
    noted, problems = Noted(), list[Problem]()
    due = [Problem("chunk", n, 1, True, "damaged") for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(noted.add, problems), due * 2))
    assert sorted(problem.offset for problem in problems) == list(range(8))
