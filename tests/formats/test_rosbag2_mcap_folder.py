"""Folders of ROS 2 whose files are in MCAP: they stay what they are, and rosbags reads what is written."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from logreel.formats.rosbag2.yaml import parse
from support.harness.cli_runner import Run
from support.oracles.rosbags_folder import reader_of_folders
from support.samples.rosbag.builder import drive

Rows = list[tuple[str, int, bytes]]


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of three files, whose metadata have the distribution and custom data."""
    place = tmp_path_factory.mktemp("drives")
    (place / "drive.bag").write_bytes(drive(1.0))
    options = {"storage": "mcap", "max_bag_duration": 0.4}
    logreel.convert(place / "drive.bag", f"{place}/drive/", options=options)
    file = place / "drive" / "metadata.yaml"
    text = file.read_text().replace("custom_data: ~", "custom_data:\n    site: north")
    file.write_text(text.replace('ros_distro: ""', "ros_distro: jazzy"))
    return place / "drive"


def rows(path: Path) -> Rows:
    return rows_of(logreel.open(path))


def rows_of(log: logreel.Log) -> Rows:
    return sorted((m.channel.topic, m.time, bytes(m.data)) for m in log.messages())


def stated(folder: Path) -> dict[str, Any]:
    root: dict[str, Any] = parse((folder / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    return root


def check(folder: Path, storage: str = "mcap") -> Rows:
    """Compare a folder with its metadata, and with what rosbags reads; return its rows."""
    log, facts = logreel.open(folder), stated(folder)
    assert (log.problems, log.verify()) == ((), ())
    suffix = ".db3" if storage == "sqlite3" else ".mcap"
    files = [f"{folder.name}_{n}{suffix}" for n in range(len(log.parts))]
    assert sorted(path.name for path in folder.iterdir()) == sorted(["metadata.yaml", *files])
    assert (facts["storage_identifier"], facts["relative_file_paths"]) == (storage, files)
    counts = {t["topic_metadata"]["name"]: t["message_count"] for t in facts["topics_with_message_count"]}
    assert counts == {ch.topic: len(ch) for ch in log.channels.values()}
    assert [file["message_count"] for file in facts["files"]] == [part.message_count for part in log.parts]
    due = rows_of(log)
    with reader_of_folders()(folder) as bag:
        # It refuses metadata that do not fit the files.
        assert sorted((c.topic, time, bytes(data)) for c, time, data in bag.messages()) == due
        assert not bag.message_count or (bag.start_time, bag.end_time) == (log.start, (log.end or 0) + 1)
    return due


def test_verbs_keep_the_storage(drives: Path, tmp_path: Path, run: Run) -> None:
    begin = logreel.open(drives).start
    assert begin is not None
    due = rows(drives)
    assert run("slice", f"{drives}/", "-o", f"{tmp_path}/part/", "-S", "+0.3s").code == 0
    assert rows(tmp_path / "part") == [row for row in due if row[1] >= begin + 300_000_000]
    assert run("sort", drives, "-o", f"{tmp_path}/sorted/").code == 0
    assert rows(tmp_path / "sorted") == due
    assert run("merge", drives, tmp_path / "part", "-o", f"{tmp_path}/merged/").code == 0
    assert rows(tmp_path / "merged") == sorted([*due, *rows(tmp_path / "part")])
    assert run("recover", drives, "-o", f"{tmp_path}/whole/").code == 0
    assert rows(tmp_path / "whole") == due
    for name in ("part", "sorted", "merged", "whole"):
        check(tmp_path / name)
        for key, value in (("custom_data", {"site": "north"}), ("ros_distro", "jazzy")):
            assert logreel.open(tmp_path / name).metadata[key] == value, name
    old, new = logreel.open(drives), logreel.open(tmp_path / "part")
    for topic, ch in new.channels.items():
        assert (ch.schema, ch.metadata) == (old[topic].schema, old[topic].metadata)
    # A folder is replaced by its successor.
    logreel.slice(drives, f"{tmp_path}/part/", force=True)
    assert rows(tmp_path / "part") == due


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("options", [{"max_bag_duration": 0.3}, {"max_bag_size": 40_000}, {}], ids=str)
def test_a_folder_is_divided_and_changes_its_storage(
    drives: Path, tmp_path: Path, storage: str, options: dict[str, Any]
) -> None:
    logreel.slice(drives, f"{tmp_path}/new/", options={"storage": storage, **options})
    check(tmp_path / "new", storage)
    # What is latched is at the beginning of each file.
    assert not Counter(rows(drives)) - Counter(rows(tmp_path / "new"))
    log = logreel.open(tmp_path / "new")
    assert (len(log.parts) > 1) == bool(options)
    assert log.metadata["custom_data"] == {"site": "north"}
    for part in log.parts if "max_bag_duration" in options else ():
        assert (part.end or 0) - (part.start or 0) < 300_000_000
    for part in log.parts if "max_bag_size" in options and storage == "mcap" else ():
        assert part.size < 50_000


def test_packed_files(drives: Path, tmp_path: Path) -> None:
    logreel.slice(drives, f"{tmp_path}/new/", options={"compression_mode": "file"})
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["metadata.yaml", "new_0.mcap.zstd"]
    assert rows(tmp_path / "new") == rows(drives)
    assert stated(tmp_path / "new")["compression_mode"] == "FILE"
    with pytest.raises(UsageError, match="leave out compression_mode"):
        logreel.slice(drives, f"{tmp_path}/x/", options={"compression_mode": "message"})


def test_metadata_beside_the_files_are_not_kept_by_changes(drives: Path, tmp_path: Path) -> None:
    """A change may hide what the metadata of the folder say, so they are left out, and named."""
    logreel.slice(drives, f"{tmp_path}/part/")
    done = logreel.edit(tmp_path / "part", f"{tmp_path}/new/", rename={"/odom": "/pose"})
    assert done.skipped == ("metadata of the folder: ros_distro, custom_data",)
    assert "custom_data" not in logreel.open(tmp_path / "new").metadata
    check(tmp_path / "new")


def test_logs_of_others_are_no_folders_of_ros_2(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "x.mcap") as w:
        w.write(
            w.add_channel(
                "/a", logreel.Schema("A", "jsonschema", '{"properties": {"data": {"type": "integer"}}}')
            ),
            1,
            {"data": 1},
        )
    with pytest.raises(UsageError, match="leave out the slash"):
        logreel.slice(tmp_path / "x.mcap", f"{tmp_path}/x/")
    assert [path.name for path in tmp_path.iterdir()] == ["x.mcap"]


def complete_messages(data: bytes) -> int:
    """Return the number of messages that the reader of the mcap project gets of a file that ends early."""
    reader = pytest.importorskip("mcap.stream_reader")
    count = 0
    try:
        for record in reader.StreamReader(io.BytesIO(data)).records:
            count += type(record).__name__ == "Message"
    except Exception:
        return count
    return count


@pytest.mark.parametrize("first", [0, 2], ids=["only", "last"])
def test_a_killed_recorder(drives: Path, tmp_path: Path, first: int) -> None:
    """The last file is cut anywhere, and there are no metadata: what is readable is in the new folder."""
    with (
        logreel.open(drives / "drive_2.mcap") as log,
        logreel.create(tmp_path / "last.mcap", profile="ros2", chunk_bytes=4096) as w,
    ):
        numbers = {ch.topic: w.add_channel(ch.topic, ch.schema, ch.metadata) for ch in log.match(None)}
        for m in log.messages():
            w.write(numbers[m.channel.topic], m.time, bytes(m.data))
    last, folder, new = (tmp_path / "last.mcap").read_bytes(), tmp_path / "killed", tmp_path / "new"
    complete, before = rows(tmp_path / "last.mcap"), Rows()
    folder.mkdir()
    for n in range(first):
        # A twentieth of a second, as it is recovered again with every cut of the last one.
        begin = logreel.open(drives / f"drive_{n}.mcap").start or 0
        logreel.slice(drives / f"drive_{n}.mcap", folder / f"killed_{n}.mcap", end=begin + 50_000_000)
        before += rows(folder / f"killed_{n}.mcap")
        assert len({topic for topic, _, _ in before}) > 2
    counts = list[int]()
    for cut in [0 if first else 8, 30, 60, *range(100, len(last), len(last) // 25)]:
        (folder / f"killed_{first}.mcap").write_bytes(last[:cut])
        logreel.recover(folder, f"{new}/", force=True)
        got = Counter(check(new))
        assert not Counter(before) - got
        counts.append(sum(got.values()) - len(before))
        assert not got - Counter([*before, *complete])
        assert complete_messages(last[:cut]) <= counts[-1]
    assert counts == sorted(counts)
    assert counts[-1] > 0.8 * len(complete)


def test_the_metadata_of_a_folder(drives: Path, tmp_path: Path, run: Run) -> None:
    """What the command writes is what was there, but for what only that said."""
    folder = tmp_path / "drive"
    shutil.copytree(drives, folder)
    was = stated(folder)
    (folder / "metadata.yaml").unlink()
    assert run("rosbag2", "metadata", folder, "-o", folder / "metadata.yaml").code == 0
    assert {**stated(folder), "custom_data": was["custom_data"], "ros_distro": "jazzy"} == was
    check(folder)
