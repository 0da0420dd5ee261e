"""Recording into a folder of ROS 2: complete, in parts, continued, and left by a recorder that was killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError, UsageError
from support.harness.cli_runner import Run
from support.samples.rosbag2.builder import START


def lines(first: int, count: int = 5) -> list[str]:
    return [
        json.dumps({"topic": "/count", "time_ns": START + n * 10**9, "data": {"data": n}})
        for n in range(first, first + count)
    ]


def read(folder: Path) -> list[tuple[str, int, bytes]]:
    """Return the messages as rosbags reads them."""
    reader = pytest.importorskip("rosbags.rosbag2").Reader
    with reader(folder) as found:
        return [(c.topic, time, bytes(data)) for c, time, data in found.messages()]


def test_a_recording_is_a_folder_that_is_continued(tmp_path: Path) -> None:
    folder = tmp_path / "drive"
    for n in range(3):
        done = logreel.record(lines(5 * n), f"{folder}/", mode="a" if n else "w", ahead=0)
        assert (done.path, done.messages) == (f"{folder}/", 5)
        assert sorted(path.name for path in folder.iterdir()) == [
            *(f"drive_{k}.db3" for k in range(n + 1)),
            "metadata.yaml",
        ]
        log = logreel.open(folder)
        assert [problem.code for problem in log.problems if problem.code != "part-gap"] == []
        assert log["/count"]["data"].tolist() == [*range(5 * n + 5)]
        assert read(folder) == [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages()]
    with pytest.raises(LogError, match="not empty"):
        logreel.record(lines(0), f"{folder}/")
    with pytest.raises(UsageError, match="is one file"):
        logreel.record(lines(0), f"{folder}/", mode="a", split_duration="1s")
    # A folder of packed files stays one.
    logreel.slice(folder, f"{tmp_path}/packed/", options={"compression_mode": "file"})
    logreel.record(lines(15), f"{tmp_path}/packed/", mode="a")
    names = sorted(path.name for path in (tmp_path / "packed").iterdir())
    assert names == ["metadata.yaml", "packed_0.db3.zstd", "packed_1.db3.zstd"]
    assert len(read(tmp_path / "packed")) == 20
    assert logreel.open(tmp_path / "packed")["/count"]["data"].tolist() == [*range(20)]


def test_a_continued_folder_keeps_its_types(tmp_path: Path) -> None:
    schema = tmp_path / "Count.msg"
    schema.write_text("uint8 data\n")
    logreel.record(lines(0), f"{tmp_path}/drive/", schemas={"/count": schema})
    done = logreel.record([*lines(5), *lines(400, 1)], f"{tmp_path}/drive/", mode="a")
    assert done.messages == 5
    assert "400" in " ".join(done.skipped)
    log = logreel.open(tmp_path / "drive")
    assert log["/count"]["data"].dtype == "uint8"
    assert [*log.channels] == ["/count"]


def test_a_recording_in_parts(tmp_path: Path, run: Run) -> None:
    (tmp_path / "lines").write_text("\n".join(lines(0, 10)) + "\n")
    done = run("record", f"{tmp_path}/drive/", "--from", tmp_path / "lines", "--split-duration", "4s")
    assert done.code == 0, done.err
    names = sorted(path.name for path in (tmp_path / "drive").iterdir())
    assert names == ["drive_0.db3", "drive_1.db3", "drive_2.db3", "metadata.yaml"]
    assert len(read(tmp_path / "drive")) == 10
    assert logreel.open(tmp_path / "drive").problems == ()
    more = ("record", f"{tmp_path}/drive/", "--from", tmp_path / "lines", "--append")
    refused = run(*more, "--compression", "zstd")
    assert (refused.code, "--compression" in refused.err) == (2, True)
    assert run(*more).code == 0
    assert len(read(tmp_path / "drive")) == 20


def test_a_compressed_recording_stays_compressed(tmp_path: Path) -> None:
    for mode in ("w", "a"):
        options = {"compression": "zstd"} if mode == "w" else {}
        logreel.record(lines(5 * (mode == "a")), f"{tmp_path}/drive/", mode=mode, **options)
    assert len(read(tmp_path / "drive")) == 10
    assert logreel.open(tmp_path / "drive").metadata["rosbag2"]["compression"] == "zstd message"


def test_what_is_no_folder_for_a_recording(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "diary.txt").write_text("mine")
    with pytest.raises(LogError, match="is a folder, but not"):
        logreel.record(lines(0), f"{tmp_path}/other/", mode="a")
    logreel.record(lines(0), tmp_path / "mcap.mcap")
    (tmp_path / "m").mkdir()
    (tmp_path / "mcap.mcap").rename(tmp_path / "m" / "m_0.mcap")
    with pytest.raises(LogError, match="not continued"):
        logreel.record(lines(5), f"{tmp_path}/m/", mode="a")
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["m_0.mcap"]
    for name in ("x.bag/", "x.db3/"):
        with pytest.raises(UsageError, match="leave out the slash"):
            logreel.record(lines(0), f"{tmp_path}/{name}")
    with pytest.raises(UsageError, match="compression"):
        logreel.record(lines(0), f"{tmp_path}/new/", compression="lz4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "other"]


def test_a_folder_whose_recorder_was_killed(tmp_path: Path) -> None:
    """It opens with all that was flushed; recover and metadata make a bag of it that others read."""
    folder = tmp_path / "drive"

    def broken() -> object:
        yield from lines(0, 5)
        raise OSError("unplugged")

    with pytest.raises(OSError, match="unplugged"):
        logreel.record(broken(), f"{folder}/", ahead=0)
    assert [path.name for path in folder.iterdir()] == ["drive_0.db3.active"]
    log = logreel.open(folder)
    assert log["/count"]["data"].tolist() == [*range(5)]
    assert "was not closed" in log.problems[0].text
    assert logreel.recover(folder / "drive_0.db3.active").messages == 5
    logreel.record(lines(5), f"{folder}/", mode="a")
    assert len(read(folder)) == 10


def test_a_recording_in_files_of_mcap(tmp_path: Path, run: Run) -> None:
    """They are written as databases, and become MCAP when the recording is complete; further files do as well."""
    folder = tmp_path / "drive"
    (tmp_path / "lines").write_text("\n".join(lines(0, 10)) + "\n")
    more = ("--from", tmp_path / "lines", "--option", "storage=mcap")
    done = run("record", f"{folder}/", *more, "--split-duration", "4s", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["parts"] == [f"{folder}/drive_{n}.mcap" for n in range(3)]
    for n in range(3, 5):
        assert sorted(path.name for path in folder.iterdir()) == [
            *(f"drive_{k}.mcap" for k in range(n)),
            "metadata.yaml",
        ]
        log = logreel.open(folder)
        assert log.metadata["rosbag2"]["storage"] == "mcap"
        assert log["/count"].schema.encoding == "ros2msg"
        assert read(folder) == [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages()]
        assert log["/count"]["data"].tolist() == [*range(10), *range(10, 10 + 5 * (n - 3))]
        again = logreel.record(lines(10 + 5 * (n - 3)), f"{folder}/", mode="a")
        assert again.parts == (f"{folder}/drive_{n}.mcap",)
    # Metadata that only the folder has stay.
    file = folder / "metadata.yaml"
    file.write_text(file.read_text().replace("custom_data: ~", "custom_data:\n    site: north"))
    logreel.record(lines(20), f"{folder}/", mode="a")
    assert logreel.open(folder).metadata["custom_data"] == {"site": "north"}
    assert len(read(folder)) == 25
    refused = run("record", f"{folder}/", *more, "--append")
    assert (refused.code, "keeps its storage" in refused.err) == (2, True)
    assert len(read(folder)) == 25


def test_options_of_a_folder_that_is_recorded(tmp_path: Path) -> None:
    done = logreel.record(lines(0), f"{tmp_path}/packed/", compression_mode="file")
    assert done.parts == (f"{tmp_path}/packed/packed_0.db3.zstd",)
    assert done.size == (tmp_path / "packed" / "packed_0.db3.zstd").stat().st_size
    assert len(read(tmp_path / "packed")) == 5
    for options, words in (
        ({"storage": "zip"}, "sqlite3 or mcap"),
        ({"max_bag_size": 1000}, "split_size"),
        ({"storage": "mcap", "compression_mode": "message"}, "leave out compression_mode"),
    ):
        with pytest.raises(UsageError, match=words):
            logreel.record(lines(0), f"{tmp_path}/new/", **options)
    assert not (tmp_path / "new").exists()
