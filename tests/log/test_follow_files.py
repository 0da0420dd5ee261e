"""Followed files that are renamed, replaced, truncated or appended to, and what refreshing costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.index.block_table import BlockBuilder
from support.builders.contents import SAMPLES
from support.harness.cli_runner import Spawn
from support.harness.following import Steps, growth

SCHEMA = logreel.Schema("wind", "ulog", "wind:uint64_t timestamp;uint64_t n;")
#: Formats whose readers go on where they stopped.
EXTENDED = [".rec", ".ulg", ".vel"]


class Recorder:
    """Writes numbered messages, in the file at each call; *begin* shifts their times."""

    def __init__(self, path: Path, begin: int = 0, mode: str = "x") -> None:
        self.n, self.begin = 0, begin
        self.writer = logreel.create(path, mode="a") if mode == "a" else logreel.create(path, force=True)
        self.channel = self.writer.add_channel("wind", SCHEMA)
        self.writer.flush()

    def __call__(self, count: int = 1) -> None:
        for _ in range(count):
            self.n += 1
            self.writer.write(self.channel, (self.begin + self.n) * 10**9, {"n": self.begin + self.n})
        self.writer.flush()


def numbers(log: logreel.Log, steps: list[Callable[[], object]], **options: object) -> list[int]:
    return [m.decode()["n"] for m in log.follow(stop=Steps(steps), **options)]


def recording(path: Path, begin: int, count: int) -> bytes:
    """Return the bytes of a complete log with these numbers."""
    w = Recorder(path.with_name("other.ulg"), begin)
    w(count)
    w.writer.close()
    return path.with_name("other.ulg").read_bytes()


def test_a_finished_recording_ends_the_iteration(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    w = Recorder(path)
    w(2)
    with logreel.open_growing(path) as log:
        assert not log.is_complete
        found = [
            m.decode()["n"] for m in log.follow(stop=Steps([w, lambda: (w(), w.writer.close())] + [id] * 9))
        ]
        assert found == [1, 2, 3, 4]
        assert log.is_complete
        assert log.refresh() == 0
        assert not log.problems


def test_a_file_that_is_completed_as_another_one_is_followed_from_its_start(tmp_path: Path) -> None:
    # Koblenz logs get their index in front, so that the complete file is another one, with the same messages.
    path = tmp_path / "x.ulg"
    w = Recorder(path)
    w(3)
    with logreel.open_growing(path) as log:
        messages = log.follow(stop=Steps([id] * 9))
        w.writer.close()
        copy = tmp_path / "copy"
        copy.write_bytes(path.read_bytes())
        os.replace(copy, path)
        assert [m.decode()["n"] for m in messages] == [1, 2, 3]


@pytest.mark.parametrize("name", ["x.ulg", "x.ulg.active"])
def test_both_names_of_an_unfinished_file_are_followed(name: str, tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    w(1)
    log = logreel.open_growing(tmp_path / name)
    assert numbers(log, [w, w.writer.close]) == [1, 2]


def test_opening_waits_until_the_file_has_begun(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    data, said = recording(path, 0, 3), list[str]()
    steps = Steps([path.touch, *growth_of(path, data, [3, 10, 2, len(data)])])
    log = logreel.open_growing(path, stop=steps, waiting=said.append)
    assert len(said) == 1
    assert "no such file yet" in said[0]
    assert log.message_count == 3
    assert logreel.open_growing(tmp_path / "never", stop=Steps([])) is None


def growth_of(path: Path, data: bytes, sizes: list[int]) -> Iterator[Callable[[], object]]:
    """Yield steps of growth of a file that is empty when they begin."""
    at = 0
    for size in sizes:
        yield lambda at=at, size=size: path.write_bytes(data[: at + size])
        at += size


def test_another_recording_under_the_name_is_followed_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(recording(path, 0, 5)[:-10])
    whole, other = recording(path, 0, 5), recording(path, 100, 2)
    log = logreel.open(path)
    wind = log["wind"]

    def rotate() -> None:
        # The last message is completed just before: it must not be lost.
        path.write_bytes(whole)
        path.rename(tmp_path / "old.ulg")
        path.write_bytes(other)

    def replace() -> None:
        (tmp_path / "new.ulg").write_bytes(recording(path, 200, 1))
        os.replace(tmp_path / "new.ulg", path)

    assert numbers(log, [rotate, replace]) == [1, 2, 3, 4, 5, 101, 102, 201]
    assert log.replacements == 2
    assert log["wind"] is wind
    assert wind["n"].tolist() == [201]


def test_a_file_that_is_truncated_yields_no_message_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    data = recording(path, 0, 9)
    path.write_bytes(data)
    log = logreel.open(path)
    # In the middle of the fifth message; then the rest comes again, and then nothing is left.
    cut = len(data) - 5 * (len(data) - len(recording(path, 0, 8))) + 3
    steps = [
        lambda: os.truncate(path, cut),
        lambda: path.write_bytes(data),
        lambda: os.truncate(path, 0),
        lambda: path.write_bytes(recording(path, 50, 1)),
    ]
    assert numbers(log, steps) == [*range(1, 10), *range(5, 10), 51]


def test_a_file_that_begins_with_the_same_messages_is_followed_from_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(recording(path, 0, 3))
    log = logreel.open(path)

    def replace(count: int) -> Callable[[], object]:
        def step() -> None:
            (tmp_path / "new.ulg").write_bytes(recording(path, 0, count))
            os.replace(tmp_path / "new.ulg", path)

        return step

    # A copy that has not all messages yet is waited for.
    assert numbers(log, [replace(1), replace(2), replace(5)]) == [1, 2, 3, 4, 5]
    assert log.replacements == 0


def test_messages_that_are_appended_to_a_complete_log_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(recording(path, 0, 3))
    log = logreel.open(path)
    writers = list[Recorder]()

    def begin() -> None:
        writers.append(Recorder(path, 3, "a"))

    steps = [begin, lambda: writers[0](2), lambda: writers[0].writer.close()]
    assert numbers(log, steps + [id] * 3) == [1, 2, 3, 4, 5]
    assert log.is_complete


def test_follow_takes_topics_times_and_only_new_messages(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    w = Recorder(path)
    w(3)

    def opened() -> logreel.Log:
        return logreel.open(tmp_path / "x.ulg.active")

    assert numbers(opened(), [w, w], existing=False) == [4, 5]
    assert numbers(opened(), [w], start="+2s", end="+5s") == [3, 4, 5]
    assert numbers(opened(), [w], topics=["gust", "w*"]) == [*range(1, 8)]
    # A channel that is not there yet may come.
    assert numbers(opened(), [w], topics="gust") == []
    assert numbers(opened(), [w], topics=lambda log: []) == []
    with pytest.raises(UsageError, match="poll is a positive number"):
        opened().follow(poll=0)
    with pytest.raises(UsageError, match="cannot read the time"):
        next(opened().follow(start="soon"))


def test_a_stopped_follower_ends_between_two_messages(tmp_path: Path) -> None:
    stop = Event()
    found = 0
    (tmp_path / "x.ulg").write_bytes(recording(tmp_path / "x.ulg", 0, 5))
    for _ in logreel.open(tmp_path / "x.ulg").follow(stop=stop):
        found += 1
        if found == 2:
            stop.set()
    assert found == 2


def test_refresh_counts_new_messages_and_keeps_what_was_read(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    w(2)
    log = logreel.open(tmp_path / "x.ulg.active")
    wind, before, index = log["wind"], log["wind"]["n"], log.index
    assert log.refresh() == 0
    w(3)
    assert log.refresh() == 3
    assert log["wind"] is wind
    assert wind["n"].tolist() == [1, 2, 3, 4, 5]
    assert (before.tolist(), index.counts.tolist(), log.end) == ([1, 2], [2], 5 * 10**9)
    log.close()
    with pytest.raises(LogError, match="closed"):
        log.refresh()


def test_messages_that_the_program_reads_by_refresh_are_yielded_by_follow(tmp_path: Path) -> None:
    w = Recorder(tmp_path / "x.ulg")
    w(1)
    log = logreel.open_growing(tmp_path / "x.ulg")
    found = []
    for message in log.follow(stop=Steps([w, int, int])):
        found.append(message.decode()["n"])
        if len(found) == 1:
            w(2)
            assert log.refresh() == 2
    assert found == [1, 2, 3, 4]
    assert list(log.changes(stop=Steps([lambda: (w(), log.refresh()), int]))) == [0, 1]


@pytest.mark.parametrize(
    ("begin", "count", "expected"),
    [
        # Other messages; the same ones and more.
        (100, 2, [1, 2, 3, 4, 5, 101, 102]),
        (0, 7, [1, 2, 3, 4, 5, 6, 7]),
    ],
)
def test_an_iteration_that_is_behind_gets_the_rest_of_a_file_that_was_replaced(
    begin: int, count: int, expected: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(recording(path, 0, 3))
    log = logreel.open(path)
    found = []
    idle = log.follow(stop=Steps([int] * 3))
    for message in log.follow(stop=Steps([int] * 3)):
        found.append(message.decode()["n"])
        if len(found) == 2:
            # It grows, which is read here, and then there is another file, which is read, too.
            path.write_bytes(recording(path, 0, 5))
            assert log.refresh() == 2
            (tmp_path / "new.ulg").write_bytes(recording(path, begin, count))
            os.replace(tmp_path / "new.ulg", path)
            assert log.refresh() == 2
    assert found == expected
    # One that has not begun yields the same.
    assert [m.decode()["n"] for m in idle] == expected


def test_an_iteration_that_is_behind_in_a_truncated_file_yields_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(recording(path, 0, 2))
    log, data = logreel.open(path), recording(path, 0, 4)
    messages = log.follow(stop=Steps([int] * 3))
    found = [next(messages).decode()["n"], next(messages).decode()["n"]]
    path.write_bytes(recording(path, 0, 6))
    assert log.refresh() == 4
    os.truncate(path, len(data))
    log.refresh()
    assert found + [m.decode()["n"] for m in messages] == [1, 2, 3, 4]


def test_logs_of_bytes_do_not_grow(tmp_path: Path) -> None:
    log = logreel.open(recording(tmp_path / "x.ulg", 0, 2))
    assert log.is_complete
    assert log.refresh() == 0
    assert numbers(log, [pytest.fail]) == [1, 2]


@pytest.mark.parametrize("suffix", EXTENDED)
def test_a_refresh_walks_only_new_bytes(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = SAMPLES[suffix]()
    path = tmp_path / f"x{suffix}"
    path.write_bytes(data[: len(data) // 2])
    log = logreel.open_growing(path)
    walked = list[int]()
    walk = BlockBuilder.walk

    def counted(self: BlockBuilder, pos: int, *rest: object) -> tuple[int, int]:
        why, end = walk(self, pos, *rest)
        walked.append(end - pos)
        return why, end

    monkeypatch.setattr(BlockBuilder, "walk", counted)
    steps = 40
    for step in growth(path, data, [len(data) // 2 // steps + 1] * (steps + 1)):
        step()
        log.refresh()
    # All of the second half once, and nothing else.
    assert sum(walked) == pytest.approx(len(data) - len(data) // 2, abs=len(data) // 20)
    assert log.message_count == logreel.open(data).message_count


def test_truncation_under_a_follower_does_not_end_the_process(tmp_path: Path, spawn: Spawn) -> None:
    path, script = tmp_path / "x.ulg", tmp_path / "run.py"
    path.write_bytes(SAMPLES[".ulg"]())
    tests = Path(__file__).resolve().parents[1]
    script.write_text(
        f"""
import os, sys
sys.path.insert(0, {str(tests)!r})
import logreel
from support.harness.following import Steps

path = {str(path)!r}
data = open(path, "rb").read()
log = logreel.open(path)
seen = 0
kept = []
for message in log.follow(stop=Steps([lambda: open(path, "ab").write(data[:0]), lambda: open(path, "wb").write(data)])):
    seen += 1
    kept.append(message.data)
    if seen == 100:
        os.truncate(path, 5000)
# The messages read before are copies: the pages that were mapped are gone.
print(seen, sum(sum(data) for data in kept) > 0, log.refresh())
"""
    )
    done = spawn(script)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.split()[1] == b"True"
