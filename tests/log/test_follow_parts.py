"""Followed recordings that are split: the next part is followed when one is over, and no message is lost or doubled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import logreel
from logreel.io.part_files import LaterParts
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from logreel.ops.record import Feed, record
from support.harness.following import Steps

#: Seconds until a thread has gone on: far more than it ever takes.
PATIENCE = 60.0
SCHEMA = logreel.Schema("wind", "ulog", "wind:uint64_t timestamp;uint64_t n;")
Step = Callable[[], object]


class Part:
    """Writes numbered messages to one part, in the file at each call."""

    def __init__(self, path: Path, begin: int = 0) -> None:
        self.path, self.n = path, begin
        self.writer = logreel.create(path)
        self.channel = self.writer.add_channel("wind", SCHEMA)
        self(1)

    def __call__(self, count: int = 1) -> None:
        for _ in range(count):
            self.n += 1
            self.writer.write(self.channel, self.n * 10**9, {"n": self.n})
        self.writer.flush()

    def close(self) -> None:
        self.writer.close()


def complete(path: Path, begin: int, count: int = 1, age: float = 0) -> Path:
    """Write a complete part that was last written *age* seconds ago."""
    part = Part(path, begin)
    part(count - 1)
    part.close()
    made_older(path, age)
    return path


def made_older(path: Path, age: float) -> None:
    os.utime(path, (time.time() - age,) * 2)


def numbers(log: logreel.Log, steps: Iterable[Step] = (), **options: object) -> list[int]:
    """Return the numbers of the messages until the steps are done."""
    return [m.decode()["n"] for m in log.follow(stop=Steps([*steps, *[int] * 3]), **options)]


def test_the_next_part_is_followed_when_the_present_one_is_complete(tmp_path: Path) -> None:
    parts = [Part(tmp_path / "x_0.ulg")]
    log = logreel.open_growing(tmp_path / "x_0.ulg")

    def begin() -> None:
        parts.append(Part(tmp_path / f"x_{len(parts)}.ulg", parts[-1].n + 10))

    steps = [
        lambda: parts[0](),
        # The next one has messages before this one is complete, which gets further ones meanwhile.
        begin,
        lambda: (parts[1](), parts[0]()),
        lambda: parts[0].close(),
        lambda: parts[1](2),
        # The next one comes after this one is complete, as rosbag record does it.
        lambda: parts[1].close(),
        begin,
        lambda: (parts[2](), parts[2].close()),
        lambda: None,
    ]
    assert numbers(log, steps) == [1, 2, 3, 13, 14, 15, 16, 27, 28]
    assert log.name == str(tmp_path / "x_2.ulg")
    assert log.is_complete
    assert log.replacements == 0


def test_following_ends_with_the_last_part(tmp_path: Path) -> None:
    first = Part(tmp_path / "x_8.ulg")
    log = logreel.open_growing(tmp_path / "x_8.ulg")
    messages = log.follow()
    assert next(messages).decode()["n"] == 1
    last = Part(tmp_path / "x_9.ulg", 1)
    first.close()
    assert next(messages).decode()["n"] == 2
    last.close()
    assert list(messages) == []
    assert log.is_complete


def test_following_ends_if_the_last_part_was_complete_before_it_was_reached(tmp_path: Path) -> None:
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    complete(tmp_path / "x_1.ulg", 10)
    first.close()
    assert [m.decode()["n"] for m in log.follow()] == [1, 11]
    assert log.is_complete


def test_parts_that_are_complete_already_are_read_one_after_the_other(tmp_path: Path) -> None:
    for n in range(11):
        complete(tmp_path / f"x_{n}.ulg", 10 * n, 2, age=60 - n)
    last = Part(tmp_path / "x_11.ulg", 110)
    assert numbers(logreel.open(tmp_path / "x_8.ulg"), [last]) == [81, 82, 91, 92, 101, 102, 111, 112]


def test_a_part_under_its_final_name_is_left_when_it_does_not_grow_for_a_while(tmp_path: Path) -> None:
    # Programs that write under the final name do not say that a part is complete.
    data = complete(tmp_path / "x_0.ulg", 0, 3).read_bytes()
    path = tmp_path / "y_0.ulg"
    path.write_bytes(data[:-20])
    log = logreel.open(path)
    steps = [
        lambda: complete(tmp_path / "y_1.ulg", 10),
        # Written to just now: it may get more.
        lambda: path.write_bytes(data),
        lambda: made_older(path, 5),
    ]
    assert numbers(log, steps) == [1, 2, 3, 11]


def test_an_unfinished_part_is_left_only_if_no_process_writes_it(tmp_path: Path) -> None:
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    complete(tmp_path / "x_1.ulg", 10)
    active = tmp_path / "x_0.ulg.active"
    seen, found = list[int](), list[int]()
    steps = Steps(
        [
            lambda: made_older(active, 5),
            lambda: None,
            # Locked: there was no other part so far.
            lambda: (seen.append(len(found)), first(), made_older(active, 5)),
            # As if the process were killed.
            lambda: (seen.append(len(found)), first.writer.leave(), made_older(active, 5)),
            int,
            int,
        ]
    )
    for message in log.follow(stop=steps):
        found.append(message.decode()["n"])
    assert seen == [1, 2]
    assert found == [1, 2, 11]


def test_parts_of_an_earlier_recording_are_not_followed(tmp_path: Path) -> None:
    complete(tmp_path / "x_1.ulg", 50, age=3600)
    part = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    assert numbers(log, [part, part.close]) == [1, 2]
    assert log.name == str(tmp_path / "x_0.ulg")


def test_a_new_part_that_replaces_one_of_an_earlier_recording_is_followed(tmp_path: Path) -> None:
    old = complete(tmp_path / "x_1.ulg", 50, age=3600)
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")

    def replace() -> None:
        old.unlink()
        complete(old, 10)

    assert numbers(log, [replace, first.close]) == [1, 11]


def test_parts_that_were_removed_are_passed_over(tmp_path: Path) -> None:
    # As with --max-splits, under a follower that is slower than the recorder.
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    steps = [
        lambda: (first(), first.close(), (tmp_path / "x_0.ulg").unlink()),
        lambda: complete(tmp_path / "x_3.ulg", 30),
        lambda: complete(tmp_path / "x_4.ulg", 40),
        lambda: made_older(tmp_path / "x_3.ulg", 5),
    ]
    assert numbers(log, steps) == [1, 2, 31, 41]


def test_a_part_whose_header_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    data = complete(tmp_path / "other.ulg", 10).read_bytes()
    first, path = Part(tmp_path / "x_0.ulg"), tmp_path / "x_1.ulg.active"
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    steps = [
        path.touch,
        first.close,
        int,
        lambda: path.write_bytes(data[:9]),
        int,
        lambda: path.write_bytes(data),
    ]
    assert numbers(log, steps) == [1, 11]


@pytest.mark.parametrize("name", ["x.ulg", "x_20260101.ulg", "x_01.ulg", "_0.ulg"])
def test_names_without_the_number_of_a_part_have_no_next_part(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for other in ("x_1.ulg", "x_20260102.ulg", "x_02.ulg", "_1.ulg"):
        complete(tmp_path / other, 10)
    part = Part(path)
    log = logreel.open_growing(path)
    # Returns although nothing ends it.
    part.close()
    assert [m.decode()["n"] for m in log.follow()] == [1]


def test_parts_of_rosbag_record_with_their_own_dates_follow_each_other(tmp_path: Path) -> None:
    for name in ("run_2026-11-22-10-00-00_0.bag", "run_2026-11-22-10-05-00_1.bag.active", "run_2_2.bag"):
        (tmp_path / name).touch()
    parts = LaterParts(tmp_path / "run_2026-11-22-10-00-00_0.bag")
    assert parts.next(0, all_numbers=False) is None
    assert parts.next(0, all_numbers=True) == tmp_path / "run_2026-11-22-10-05-00_1.bag"


def test_refresh_alone_stays_in_its_part(tmp_path: Path) -> None:
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    complete(tmp_path / "x_1.ulg", 10)
    first()
    first.close()
    assert [log.refresh(), log.refresh(), log.refresh()] == [1, 0, 0]
    assert log["wind"]["n"].tolist() == [1, 2]


def test_an_iteration_that_is_behind_gets_the_rest_of_a_part_that_another_one_left(tmp_path: Path) -> None:
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    slow = log.follow(stop=Steps([int] * 5))
    begun = [next(slow).decode()["n"]]
    idle = log.follow(stop=Steps([int] * 5))
    first(3)
    first.close()
    complete(tmp_path / "x_1.ulg", 10, 2)
    assert numbers(log) == [1, 2, 3, 4, 11, 12]
    assert [*begun, *(m.decode()["n"] for m in slow)] == [1, 2, 3, 4, 11, 12]
    assert [m.decode()["n"] for m in idle] == [1, 2, 3, 4, 11, 12]


def test_an_iteration_gets_what_others_have_read_in_several_steps(tmp_path: Path) -> None:
    """What the log was before was told by the address of an object, which the content after the next may have."""
    part = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    slow = log.follow(stop=Steps([int] * 1000))
    found = [next(slow).decode()["n"]]
    for steps in [2, 3, 2, 4, 2, 1] * 10:
        for _ in range(steps):
            part()
            log.refresh()
        found += [next(slow).decode()["n"] for _ in range(steps)]
    assert found == [*range(1, part.n + 1)]


def test_changes_shows_one_part_after_the_other(tmp_path: Path) -> None:
    first = Part(tmp_path / "x_0.ulg")
    log = logreel.open_growing(tmp_path / "x_0.ulg")
    steps = Steps([first, first.close, lambda: complete(tmp_path / "x_1.ulg", 10, 5), int, int])
    assert [(new, log.message_count) for new in log.changes(stop=steps)] == [(0, 1), (1, 2), (5, 5)]


class Numbers:
    """Live source of numbered messages, a ms apart; after 100 it waits until it is followed."""

    name = "numbers"

    def __init__(self, count: int) -> None:
        self._count, self.is_followed = count, threading.Event()

    def run(self, feed: Feed) -> None:
        layout = Layout(Struct((Field("n", Scalar("int64")), Field("x", Scalar("float64")))))
        channel = feed.channel("/n", layout)
        feed.settled = True
        for n in range(self._count):
            feed.put(channel, 1_700_000_000 * 10**9 + n * 10**6, {"n": n, "x": n / 2}, wait=True)
            if n % 100 == 0:
                time.sleep(0.005)
            if n == 100:
                assert self.is_followed.wait(PATIENCE)


@pytest.mark.parametrize("suffix", [".bag", ".bddf", ".mcap", ".ulg"])
def test_a_recorder_that_splits_is_followed_through_all_parts(suffix: str, tmp_path: Path) -> None:
    count = 2500
    path = str(tmp_path / f"x{suffix}")
    source, stop = Numbers(count), threading.Event()
    recorder = threading.Thread(
        target=record, args=(source, path), kwargs={"split_duration": "350ms", "flush_every": 0.02}
    )
    late = threading.Timer(2 * PATIENCE, stop.set)
    for thread in (recorder, late):
        thread.start()
    log = logreel.open_growing(tmp_path / f"x_0{suffix}")
    # Nobody can know of parts that were complete before that there are no more: they would be waited for.
    source.is_followed.set()
    found = [m.decode()["n"] for m in log.follow(stop=stop)]
    late.cancel()
    recorder.join(PATIENCE)
    assert not stop.is_set()
    assert found == [*range(count)]
    assert log.name == str(tmp_path / f"x_7{suffix}")
