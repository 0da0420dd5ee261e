"""Items that are made in a thread while the one before is used."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from logreel.io.parallel import ahead


def test_items_come_in_order_and_one_is_made_ahead() -> None:
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
    # The next one is made though nobody has asked for it.
    assert second.wait(30)
    assert list(found) == [1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]
    assert list(ahead([])) == []


@pytest.mark.parametrize("depth", [1, 2, 4, 9])
def test_so_many_are_made_before_they_are_asked_for(depth: int) -> None:
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


def test_errors_come_where_their_item_would() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)


def test_who_stops_early_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    found = ahead(iter(range(100)))
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
