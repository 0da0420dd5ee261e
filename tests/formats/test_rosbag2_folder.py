"""Bags of ROS 2 written as folders: rosbags and logreel open them, and nothing else is replaced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import LogError, UsageError
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive, tiny


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    path = tmp_path / "drive.bag"
    path.write_bytes(drive(1.0))
    return path


@pytest.fixture
def walk(tmp_path: Path) -> Path:
    path = tmp_path / "walk.db3"
    logreel.convert(tiny(), path)
    return path


def read(folder: Path) -> list[tuple[str, int, bytes]]:
    """Return the messages as rosbags reads them."""
    reader = pytest.importorskip("rosbags.rosbag2").Reader
    with reader(folder) as found:
        return [(c.topic, time, bytes(data)) for c, time, data in found.messages()]


def rows(path: Path) -> list[tuple[str, int, bytes]]:
    return [(m.channel.topic, m.time, bytes(m.data)) for m in logreel.open(path).messages()]


def test_a_folder_is_a_bag_that_rosbags_reads(bag: Path, tmp_path: Path, run: Run) -> None:
    done = run("convert", bag, f"{tmp_path}/y/")
    assert "to " in done.err
    folder = tmp_path / "y"
    assert sorted(path.name for path in folder.iterdir()) == ["metadata.yaml", "y_0.db3"]
    assert sorted(read(folder)) == sorted(rows(folder))
    log = logreel.open(folder)
    assert (log.problems, log.verify()) == ((), ())
    assert log.message_count == logreel.open(bag).message_count
    # Nothing that was begun stays.
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drive.bag", "y"]


WRITERS: dict[str, Any] = {
    "slice": lambda source, dst, **more: logreel.slice(source, dst, **more),
    "sort": lambda source, dst, **more: logreel.sort(source, dst, **more),
    "merge": lambda source, dst, **more: logreel.merge([source], dst, **more),
    "recover": lambda source, dst, **more: logreel.recover(source, dst, **more),
    "convert": lambda source, dst, **more: logreel.convert(source, dst, **more),
    "edit": lambda source, dst, **more: logreel.edit(source, dst, rename={"/count": "/number"}, **more),
}


@pytest.mark.parametrize("name", WRITERS)
def test_all_that_writes_logs_writes_folders(walk: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "new"
    done = WRITERS[name](walk, f"{folder}/")
    assert done.path == f"{folder}/"
    due = [
        (topic if name != "edit" or topic != "/count" else "/number", *more) for topic, *more in rows(walk)
    ]
    assert sorted(read(folder)) == sorted(due)
    with pytest.raises(LogError, match="exists already"):
        WRITERS[name](walk, f"{folder}/")
    before = (folder / "metadata.yaml").stat().st_ino
    WRITERS[name](walk, f"{folder}/", force=True)
    assert (folder / "metadata.yaml").stat().st_ino != before
    (folder / "diary.txt").write_text("mine")
    with pytest.raises(LogError, match="not replaced"):
        WRITERS[name](walk, f"{folder}/", force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "walk.db3"]


@pytest.mark.parametrize("verb", ["slice", "sort", "merge", "recover"])
def test_verbs_write_folders_of_a_log_that_can_be_one(
    walk: Path, bag: Path, tmp_path: Path, verb: str, run: Run
) -> None:
    done = run(verb, walk, "-o", f"{tmp_path}/new/")
    assert done.code == 0, done.err
    assert sorted(read(tmp_path / "new")) == sorted(rows(walk))
    if verb != "merge":
        # A folder of a log that is a file holds that file.
        done = run(verb, bag, "-o", f"{tmp_path}/bags/")
        assert done.code == 0, done.err
        assert [path.name for path in (tmp_path / "bags").iterdir()] == ["drive.bag"]


def test_other_folders_stay_what_they_were(bag: Path, walk: Path, tmp_path: Path, run: Run) -> None:
    assert run("convert", walk, f"{tmp_path}/a.mcap/").code == 0
    assert [path.name for path in (tmp_path / "a.mcap").iterdir()] == ["walk.mcap"]
    assert run("convert", walk, f"{tmp_path}/b.db3/").code == 0
    assert [path.name for path in (tmp_path / "b.db3").iterdir()] == ["walk.db3"]
    assert run("convert", walk, f"{tmp_path}/c.parqet/").code == 2
    assert run("convert", walk, bag, f"{tmp_path}/d/").code == 2
    with pytest.raises(UsageError, match="leave out the slash"):
        logreel.slice(bag, f"{tmp_path}/e/")
    with pytest.raises(UsageError, match="leave out the slash"):
        logreel.convert(walk, f"{tmp_path}/e.mcap/")
    assert not [*tmp_path.glob("e*")]


def test_a_folder_that_holds_the_log_is_not_replaced(bag: Path, tmp_path: Path) -> None:
    logreel.convert(bag, f"{tmp_path}/y/")
    with pytest.raises(LogError, match="holds the log itself"):
        logreel.slice(tmp_path / "y", f"{tmp_path}/y/", force=True)


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(tiny())
    with pytest.raises(LogError) as failed:
        logreel.convert(path, f"{tmp_path}/y/", topics="/nothing")
    assert "logreel-" not in str(failed.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.bag"]
