"""Pages of SQLite by the kernels against the plain reader, on sound and damaged databases up to a forbidden page."""

from __future__ import annotations

import random
from dataclasses import astuple
from typing import Any
from unittest import mock

import numpy as np
import pytest

from logreel.formats.rosbag2 import pages as plain
from logreel.formats.rosbag2 import reader
from logreel.kernels import sqlite
from support.formats import sample_log
from support.harness.examples import examples
from support.harness.guard import guarded
from support.samples.rosbag2.builder import robot


class Nothing:
    """The kernels of a machine where no page is as they want it."""

    COLUMNS = sqlite.COLUMNS

    def __init__(self) -> None:
        self.calls = set[str]()

    def leaves_below(self, *_: Any) -> int:
        self.calls.add("leaves_below")
        return -1

    def cells(self, *_: Any) -> int:
        self.calls.add("cells")
        return -1

    def message_rows(self, *_: Any) -> tuple[int, int]:
        self.calls.add("message_rows")
        return -1, 0


def content(data: np.ndarray) -> list[Any]:
    """Everything that is read of a database."""
    with mock.patch.object(reader, "with_wal", lambda source, _: source):
        file = reader.DatabaseReader(data).read()  # type: ignore[arg-type]
    columns = [column.tolist() for column in astuple(file.messages)]
    return [
        columns,
        file.topics,
        file.definitions,
        file.problems,
        file.pages.used.tolist(),
        file.schema_version,
    ]


def plainly(data: np.ndarray) -> list[Any]:
    nothing = Nothing()
    with mock.patch.object(plain, "kernel", nothing), mock.patch.object(reader, "kernel", nothing):
        got = content(data)
    assert nothing.calls >= {"cells", "message_rows"} or not got[0][0]
    return got


SAMPLES = {
    "robot": lambda: sample_log("rosbag2"),
    "small": lambda: robot(2000, 60),
    "one": lambda: robot(1, 60),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_sound_databases_are_read_by_the_kernels_as_plainly(name: str) -> None:
    data = guarded(SAMPLES[name]())
    with (
        mock.patch.object(plain.Pages, "_note_page", side_effect=AssertionError),
        mock.patch.object(reader.DatabaseReader, "_some_messages", side_effect=AssertionError),
    ):
        got = content(data)
    assert got == plainly(data)
    assert got[0][0]


@pytest.mark.parametrize("name", ["robot", "small"])
def test_damaged_databases_are_read_as_plainly(name: str) -> None:
    sound, dice = SAMPLES[name](), random.Random(5)
    heads = range(0, len(sound), 4096)
    for _ in range(examples(60)):
        data = bytearray(sound)
        for _ in range(dice.choice((1, 1, 2, 20))):
            # Half of them where pages say what is in them.
            near = dice.choice(heads) + dice.randrange(40)
            data[near if dice.random() < 0.5 else dice.randrange(len(data))] = dice.choice(
                (0, 1, 5, 13, 127, 255)
            )
        if dice.random() < 0.3:
            del data[dice.randrange(len(data)) :]
        view = guarded(bytes(data))
        assert content(view) == plainly(view)


def args(pages: np.ndarray, **changes: Any) -> list[Any]:
    values: dict[str, Any] = {
        "source": pages,
        "leaves": np.array([len(pages) // 4096], np.int64),
        "page_bytes": 4096,
        "usable": 4096,
        "columns": 4,
        "topic": 1,
        "time": 2,
        "data": 3,
        "largest": 1 << 31,
        "magic": 0,
        "out": np.zeros((7, 9), np.int64),
    }
    return list({**values, **changes}.values())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"leaves": np.array([0], np.int64)}, IndexError),
        ({"leaves": np.array([3], np.int64)}, IndexError),
        ({"page_bytes": 1 << 17}, ValueError),
        ({"usable": 4097}, ValueError),
        ({"usable": 100}, ValueError),
        ({"columns": 17}, ValueError),
        ({"topic": 4}, ValueError),
        ({"data": -1}, ValueError),
        ({"out": np.zeros((4, 9), np.int64)}, ValueError),
    ],
)
def test_what_lies_outside_of_the_pages_is_refused(change: dict[str, Any], error: type[Exception]) -> None:
    data = guarded(bytes(8192))
    assert sqlite.message_rows(*args(data)) == (-1, 0)
    with pytest.raises(error):
        sqlite.message_rows(*args(data, **change))
    if {"leaves", "page_bytes", "usable"} & change.keys():
        source, leaves, page_bytes, usable, *_ = args(data, **change)
        with pytest.raises(error):
            sqlite.cells(source, leaves, page_bytes, usable, np.zeros((4, 9), np.int64))


@pytest.mark.parametrize(("page", "used"), [(0, 3), (3, 3), (1, 4)])
def test_pages_that_are_not_there_are_refused(page: int, used: int) -> None:
    with pytest.raises((IndexError, ValueError)):
        sqlite.leaves_below(
            guarded(bytes(8192)), page, 4096, 4096, np.zeros(used, np.uint8), np.zeros(2048, np.int64)
        )
