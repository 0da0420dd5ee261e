"""Datasets of LeRobot: layout, content, and what a second run writes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import logreel
from logreel.errors import LogError, UsageError
from support.builders.training_logs import number_of, robot_spec, write_robot
from support.oracles.lerobot_layout import check

pytest.importorskip("av")
FRONT = "observation.images.front"
SECOND = 10**9


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("bags")
    return [write_robot(folder / f"{i}.bag", 2.0, seed=i) for i in range(3)]


def content(root: Path) -> dict[str, bytes]:
    """Return all files by name."""
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def inodes(root: Path, pattern: str) -> dict[str, int]:
    return {str(p.relative_to(root)): p.stat().st_ino for p in sorted(root.glob(pattern))}


def expected(log: logreel.Log, topic: str, at: int, method: str) -> tuple[dict[str, Any] | None, int]:
    """Return the message for a time, by looking at all of them, and its distance in ns."""
    every = [(m.time, m.decode()) for m in log.messages(topics=[topic])]
    before = [one for one in every if one[0] <= at]
    after = [one for one in every if one[0] >= at]
    if method == "previous":
        return (before[-1][1], at - before[-1][0]) if before else (None, 10**18)
    nearest = min(every, key=lambda one: abs(one[0] - at))
    assert before or after
    return nearest[1], abs(nearest[0] - at)


def test_frames_are_the_messages_around_their_times(bags: list[Path], tmp_path: Path) -> None:
    done = logreel.dataset(bags[0], tmp_path / "out", robot_spec(), to="lerobot")
    found = check(tmp_path / "out")
    (episode,) = done.episodes
    state, action = found.column("observation.state"), found.column("action")
    pictures = found.pictures(0, FRONT)
    errors = {"action": [], FRONT: []}
    with logreel.open(bags[0]) as log:
        states = [(m.time, m.decode()) for m in log.messages(topics=["/state"])]
        shown = {m.time: i for i, m in enumerate(log.messages(topics=["/camera"]))}
        for i in range(done.frames):
            at = episode["start_ns"] + i * SECOND // 10
            # A linear mixture of x, which is the time itself.
            before, after = [s for s in states if s[0] <= at][-1], next(s for s in states if s[0] >= at)
            part = (at - before[0]) / max(1, after[0] - before[0])
            for k, name in enumerate("xy"):
                wanted = before[1][name] + part * (after[1][name] - before[1][name])
                assert state[i, k] == pytest.approx(wanted, abs=1e-5)
            data, error = expected(log, "/command", at, "previous")
            errors["action"].append(error)
            assert action[i, 0] == np.float32(data["x"])
            time = min(shown, key=lambda t: abs(t - at))
            errors[FRONT].append(abs(time - at))
            assert number_of(pictures[i]) == shown[time]
    for name, some in errors.items():
        assert episode["sync"][name]["max_ns"] == max(some)
        assert episode["sync"][name]["mean_ns"] == pytest.approx(np.mean(some), abs=1)
    assert done.skipped == ()
    assert found.info["features"]["observation.state"]["names"] == ["x", "y"]
    assert found.info["robot_type"] == "cart"
    assert found.tasks == {0: "move"}


def test_same_input_gives_same_bytes(bags: list[Path], tmp_path: Path) -> None:
    for name in ("a", "b"):
        logreel.dataset(bags[:2], tmp_path / name, robot_spec())
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_second_run_writes_nothing(bags: list[Path], tmp_path: Path) -> None:
    first = logreel.dataset(bags, tmp_path / "out", robot_spec())
    before = inodes(tmp_path / "out", "**/*")
    again = logreel.dataset(bags, tmp_path / "out", robot_spec())
    assert inodes(tmp_path / "out", "**/*") == before
    assert (again.reused, again.episodes) == (3, first.episodes)


def test_one_more_log_is_appended(bags: list[Path], tmp_path: Path) -> None:
    logreel.dataset(bags[:2], tmp_path / "out", robot_spec())
    before = inodes(tmp_path / "out", "data/*/*") | inodes(tmp_path / "out", "videos/*/*/*")
    done = logreel.dataset(bags, tmp_path / "out", robot_spec())
    after = inodes(tmp_path / "out", "data/*/*") | inodes(tmp_path / "out", "videos/*/*/*")
    assert {name: after[name] for name in before} == before
    assert (done.reused, len(done.episodes)) == (2, 3)
    logreel.dataset(bags, tmp_path / "whole", robot_spec())
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    check(tmp_path / "out")


def test_log_in_front_moves_episodes_and_keeps_their_videos(bags: list[Path], tmp_path: Path) -> None:
    logreel.dataset(bags[1:], tmp_path / "out", robot_spec())
    videos = set(inodes(tmp_path / "out", "videos/*/*/*").values())
    done = logreel.dataset(bags, tmp_path / "out", robot_spec())
    assert done.reused == 2
    assert videos < set(inodes(tmp_path / "out", "videos/*/*/*").values())
    logreel.dataset(bags, tmp_path / "whole", robot_spec())
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_log_less_takes_its_episodes_away(bags: list[Path], tmp_path: Path) -> None:
    logreel.dataset(bags, tmp_path / "out", robot_spec())
    logreel.dataset([bags[0], bags[2]], tmp_path / "out", robot_spec())
    logreel.dataset([bags[0], bags[2]], tmp_path / "whole", robot_spec())
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_changed_vector_reuses_the_videos(bags: list[Path], tmp_path: Path) -> None:
    logreel.dataset(bags, tmp_path / "out", robot_spec())
    videos = inodes(tmp_path / "out", "videos/*/*/*")
    spec = robot_spec()
    spec["features"]["action"] = {"fields": ["/command.x", "/command.y"], "method": "previous"}
    done = logreel.dataset(bags, tmp_path / "out", spec)
    assert inodes(tmp_path / "out", "videos/*/*/*") == videos
    assert (done.reused, done.reused_videos) == (0, 3)
    assert check(tmp_path / "out").column("action").shape[1] == 2
    logreel.dataset(bags, tmp_path / "whole", spec)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_changed_log_is_written_again(bags: list[Path], tmp_path: Path) -> None:
    logs = [tmp_path / "a.bag", tmp_path / "b.bag"]
    for path, bag in zip(logs, bags, strict=False):
        path.write_bytes(bag.read_bytes())
    logreel.dataset(logs, tmp_path / "out", robot_spec())
    write_robot(logs[0].with_suffix(".new.bag"), 1.0, seed=9)
    os.replace(logs[0].with_suffix(".new.bag"), logs[0])
    done = logreel.dataset(logs, tmp_path / "out", robot_spec())
    assert done.reused == 1
    found = check(tmp_path / "out")
    assert found.episodes[0]["length"] < found.episodes[1]["length"]


def test_silence_splits_an_episode(tmp_path: Path) -> None:
    bag = write_robot(tmp_path / "x.bag", 3.0, gap=(1.0, 2.0))
    done = logreel.dataset(bag, tmp_path / "out", robot_spec())
    first, second = done.episodes
    assert first["end_ns"] < second["start_ns"] - SECOND // 2
    assert "observation.state has no value within 60 ms" in done.notes[0]
    check(tmp_path / "out")


def test_frames_without_values_are_dropped(tmp_path: Path) -> None:
    bag = write_robot(tmp_path / "x.bag", 3.0, gap=(1.0, 2.0))
    (whole,) = logreel.dataset(
        bag, tmp_path / "out", robot_spec(sync={"max_error": "60ms", "beyond": "drop"})
    ).episodes
    assert 9 <= whole["dropped"] <= 11
    assert whole["frames"] + whole["dropped"] <= 30
    check(tmp_path / "out")


def test_episode_beyond_its_bound_fails(tmp_path: Path) -> None:
    bags = [write_robot(tmp_path / "a.bag", 3.0, gap=(1.0, 2.0)), write_robot(tmp_path / "b.bag", 3.0)]
    spec = robot_spec(
        sync={"max_error": "60ms", "beyond": "fail"}, episodes={"start": "+0.2s", "end": "-0.3s"}
    )
    done = logreel.dataset(bags, tmp_path / "out", spec)
    (episode,) = done.episodes
    assert episode["log"] == str(bags[1])
    assert any("all frames left out" in text for text in done.skipped)


def test_broken_picture_leaves_its_frame_out(tmp_path: Path) -> None:
    bag = write_robot(tmp_path / "x.bag", 3.0, broken=(12,))
    done = logreel.dataset(bag, tmp_path / "out", robot_spec())
    found = check(tmp_path / "out")
    shown = [number_of(p) for i in range(len(done.episodes)) for p in found.pictures(i, FRONT)]
    assert 12 not in shown
    assert {11, 13} <= set(shown)
    assert len(done.episodes) == 2
    assert "1 picture of '/camera' cannot be used" in done.skipped[0]
    before = inodes(tmp_path / "out", "**/*")
    assert logreel.dataset(bag, tmp_path / "out", robot_spec()).skipped == done.skipped
    assert inodes(tmp_path / "out", "**/*") == before


def test_pictures_are_scaled(tmp_path: Path) -> None:
    bag = write_robot(tmp_path / "x.bag", 1.0, encoding="rgb8")
    spec = robot_spec()
    spec["features"][FRONT]["size"] = [32, 24]
    logreel.dataset(bag, tmp_path / "out", spec)
    found = check(tmp_path / "out")
    assert found.info["features"][FRONT]["shape"] == [24, 32, 3]


def test_intervals_of_conditions_and_lists_are_episodes(bags: list[Path], tmp_path: Path) -> None:
    spec = robot_spec(episodes={"where": ['"/state".x >= 0.5', '"/state".x < 1.25']})
    (one,) = logreel.dataset(bags[0], tmp_path / "a", spec).episodes
    with logreel.open(bags[0]) as log:
        met = [m.time for m in log.messages(topics=["/state"]) if 0.5 <= m.decode()["x"] < 1.25]
    assert met[0] <= one["start_ns"] < met[0] + SECOND // 10
    assert one["end_ns"] <= met[-1] + SECOND // 40
    entries = [
        {"log": "0.bag", "start": "+0.2s", "end": "+0.7s", "task": "left"},
        {"log": "1.*", "task": "right"},
    ]
    done = logreel.dataset(bags, tmp_path / "b", robot_spec(episodes={"list": entries}))
    assert [one["task"] for one in done.episodes] == ["left", "right"]
    assert done.episodes[0]["frames"] == 5
    assert check(tmp_path / "b").tasks == {0: "left", 1: "right"}


def test_unusable_log_is_left_out(bags: list[Path], tmp_path: Path) -> None:
    (tmp_path / "no.bag").write_bytes(b"nothing of the kind")
    done = logreel.dataset(
        [bags[0], tmp_path / "no.bag", tmp_path / "gone.bag"], tmp_path / "out", robot_spec()
    )
    assert len(done.episodes) == 1
    assert len(done.skipped) == 2
    check(tmp_path / "out")
    with pytest.raises(LogError, match="not a log of a known format"):
        logreel.dataset(tmp_path / "no.bag", tmp_path / "other", robot_spec())


def test_other_folders_are_not_touched(bags: list[Path], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/x").write_text("x")
    with pytest.raises(LogError, match="exists already"):
        logreel.dataset(bags, tmp_path / "mine", robot_spec())
    assert (tmp_path / "mine/x").read_text() == "x"
    logreel.dataset(bags[0], tmp_path / "out", robot_spec())
    with pytest.raises(UsageError, match="written for lerobot, not hdf5"):
        logreel.dataset(bags[0], tmp_path / "out", robot_spec(), to="hdf5")


def test_unknown_names_are_answered_with_near_ones(bags: list[Path], tmp_path: Path) -> None:
    spec = robot_spec()
    spec["features"]["action"] = {"fields": ["/comand.x"]}
    with pytest.raises(LogError, match="/command"):
        logreel.dataset(bags[0], tmp_path / "a", spec)
    spec["features"]["action"] = {"fields": ["/command.w"]}
    with pytest.raises(LogError, match="no field 'w'"):
        logreel.dataset(bags[0], tmp_path / "b", spec)


def test_rate_of_lerobot_is_whole(bags: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="whole number of frames per second"):
        logreel.dataset(bags[0], tmp_path / "a", robot_spec(rate="2.5Hz"))


def test_integers_and_single_values_keep_their_types(bags: list[Path], tmp_path: Path) -> None:
    spec = robot_spec()
    spec["features"] = {
        "action": {"fields": ["/command.x"], "dtype": "int64"},
        "moving": {"fields": ["/state.z"], "dtype": "bool"},
    }
    logreel.dataset(bags[0], tmp_path / "a", spec)
    schema = pq.ParquetFile(next((tmp_path / "a/data").glob("*/*"))).schema_arrow
    assert [str(schema.field(name).type) for name in ("action", "moving")] == ["int64", "bool"]
    check(tmp_path / "a")
