"""Single messages, which are found without ordering any others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import FileChangedError
from logreel.index.merge import BATCH
from logreel.log import read_ahead
from support.builders.contents import SAMPLES


def parts(message: logreel.Message) -> tuple[int, str, bytes, int | None]:
    return message.time, message.channel.topic, bytes(message.data), message.offset


@pytest.mark.parametrize("is_fresh", [False, True])
@pytest.mark.parametrize("suffix", SAMPLES)
def test_each_single_message_is_that_of_the_iteration(suffix: str, is_fresh: bool, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    with logreel.open(path) as log:
        for topic, ch in log.channels.items():
            expected = [parts(message) for message in ch]
            assert len(expected) == len(ch)
            # Those of a log of which nothing else was read, or of one with gathered times and unpacked chunks.
            with logreel.open(path) as other:
                one = (other if is_fresh else log)[topic]
                rows = np.random.default_rng(1).permutation(len(ch))[:30].tolist()
                rows += [0, len(ch) - 1] if len(ch) else []
                for row in rows:
                    assert parts(one[row]) == expected[row]
                    assert parts(one[row - len(ch)]) == expected[row]
                for wrong in (len(ch), -len(ch) - 1):
                    with pytest.raises(IndexError):
                        one[wrong]


@pytest.mark.parametrize("suffix", SAMPLES)
def test_messages_one_after_another_are_those_of_the_iteration(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logreel.log.read_ahead.FEW", 3)
    monkeypatch.setattr("logreel.log.read_ahead.GROWTH", 2)
    monkeypatch.setattr("logreel.log.read_ahead.MOST", 12)
    path = tmp_path / f"x{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    asked = []
    monkeypatch.setattr(read_ahead, "places_ahead", _noted(read_ahead.places_ahead, asked))
    with logreel.open(path) as log:
        for ch in log.channels.values():
            expected = [parts(message) for message in ch]
            # From the front, from another place, and back and forth.
            rows = [
                *range(len(ch)),
                *range(len(ch) // 2, len(ch)),
                *range(len(ch))[:9:-2],
                *range(min(30, len(ch))),
            ]
            assert [parts(ch[row]) for row in rows] == [expected[row] for row in rows]
            with pytest.raises(IndexError):
                ch[len(ch)]
        longest = max(map(len, log.channels.values()))
    counts = [len(places or ()) for places in asked]
    if longest > 10:
        assert counts
    if longest > 60:
        assert {3, 6, 12} <= {*counts}
    assert max(counts, default=0) <= 12


def _noted(call: Callable[..., list[Any]], values: list[Any]) -> Callable[..., list[Any]]:
    def noted(*args: object) -> list[Any]:
        values.append(call(*args))
        return values[-1]

    return noted


def test_a_file_that_is_cut_while_messages_are_read_one_by_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.bag"
    with logreel.create(path, compression="none") as w:
        ch = w.add_channel("/n", logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n"))
        for k in range(100):
            w.write(ch, k * 10**9, {"data": k})
    with logreel.open(path) as log:
        numbers = log["/n"]
        assert [numbers[row].decode()["data"] for row in range(50)] == [*range(50)]
        os.truncate(path, 100)
        with pytest.raises(FileChangedError):
            numbers[50]


def test_messages_one_after_another_of_files_that_overlap_are_those_of_the_iteration(tmp_path: Path) -> None:
    paths = [tmp_path / "a.bag", tmp_path / "b.bag"]
    for n, path in enumerate(paths):
        with logreel.create(path, compression="none") as w:
            ch = w.add_channel("/n", logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n"))
            for k in range(50):
                w.write(ch, (2 * k + n) * 10**9, {"data": 2 * k + n})
    with logreel.open([*paths], anyway=True) as log:
        numbers = log["/n"]
        assert [numbers[row].decode()["data"] for row in range(100)] == [m.decode()["data"] for m in numbers]
        assert [parts(numbers[row]) for row in range(100)] == [parts(message) for message in numbers]


def test_single_messages_of_several_files_are_those_of_the_iteration(tmp_path: Path) -> None:
    for n in range(2):
        with logreel.create(tmp_path / f"x_{n}.bag") as w:
            ch = w.add_channel("/n", logreel.Schema("std_msgs/Int32", "ros1msg", "int32 data\n"))
            for k in range(5):
                w.write(ch, (10 * n + k) * 10**9, {"data": 10 * n + k})
    with logreel.open([tmp_path / "x_0.bag", tmp_path / "x_1.bag"]) as log:
        joined = log["/n"]
        assert [joined[row].decode()["data"] for row in range(len(joined))] == [
            0,
            1,
            2,
            3,
            4,
            10,
            11,
            12,
            13,
            14,
        ]


def test_a_few_messages_take_no_room_for_many(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An array of 65536 numbers for each message cost more than reading it."""
    path = tmp_path / "x.ulg"
    path.write_bytes(SAMPLES[".ulg"]())
    made, empty = [], np.empty

    def noted(shape: object, *args: object, **options: object) -> np.ndarray:
        made.append(shape)
        return empty(shape, *args, **options)

    with logreel.open(path) as log:
        ch = max(log.channels.values(), key=len)
        _ = ch[0], ch[:2]
        monkeypatch.setattr(np, "empty", noted)
        assert len(ch[3:8]) == 5
        assert parts(ch[3]) == parts(ch[3:8][0])
    assert not [shape for shape in made if isinstance(shape, int) and shape >= BATCH]
