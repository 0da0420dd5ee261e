"""Bags of ROS 2 written as folders: rosbags and logreel open them, and nothing else is replaced."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.formats.rosbag2.yaml import parse
from support.harness.cli_runner import Run
from support.harness.examples import half
from support.oracles.rosbags_folder import reader_of_any, reader_of_folders
from support.samples.rosbag.builder import drive, tiny
from support.samples.rosbag2 import builder
from support.samples.rosbag2.builder import START, TOPICS, Message, add, write
from support.samples.rosbag2.builder import walk as walked_messages


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
    reader = reader_of_folders()
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


# ------------------------------------------------------------------------------------------- several files, compression


LATCHED = """- history: 1
  depth: 1
  reliability: 1
  durability: 1
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: 1
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
"""


@pytest.fixture(scope="module")
def latched_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bag with a static transform, once at the start, and a plain topic."""
    path = tmp_path_factory.mktemp("latched") / "latched.db3"
    with logreel.create(path) as w:
        static = w.add_channel(
            "/tf_static",
            logreel.Schema("tf2_msgs/msg/TFMessage", "ros2msg"),
            {"offered_qos_profiles": LATCHED},
        )
        count = w.add_channel("/count", logreel.Schema("std_msgs/msg/UInt32", "ros2msg", "uint32 data\n"))
        step = {"header": {"stamp": 5 * 10**9, "frame_id": "map"}, "child_frame_id": "odom"}
        w.write(static, START, {"transforms": [step]})
        for n in range(1000):
            w.write(count, START + n * 10**7, {"data": n})
    return path


@pytest.fixture
def latched(latched_once: Path, tmp_path: Path) -> Path:
    """Return a copy of the bag in the folder of the test."""
    return shutil.copy(latched_once, tmp_path / "latched.db3")


@pytest.fixture(scope="module")
def counted(latched_once: Path) -> list[tuple[str, int, str]]:
    """Return the messages of the plain topic with their values, as rosbags reads them of a folder of one file."""
    return [value for value in typed(plain(latched_once, latched_once.parent)) if value[0] == "/count"]


def typed(folder: Path) -> list[tuple[str, int, str]]:
    """Return the messages with their values, by rosbags with the definitions of the bag."""
    reader = reader_of_any()
    with reader([folder]) as found:
        return sorted(
            (c.topic, time, repr(found.deserialize(data, c.msgtype))) for c, time, data in found.messages()
        )


SHAPES: dict[str, tuple[dict[str, Any], str, int]] = {
    "size": ({"max_bag_size": 70_000}, "none", 2),
    "duration": ({"max_bag_duration": 3}, "none", 4),
    "message": ({"compression_mode": "message"}, "zstd message", 1),
    "file": ({"compression_mode": "file"}, "zstd file", 1),
    "both": ({"compression_mode": "file", "max_bag_duration": 3}, "zstd file", 4),
    "messages of parts": ({"compression_mode": "message", "max_bag_duration": 3}, "zstd message", 4),
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_bag_duration": 3},
        {"max_bag_size": 70_000},
        {"max_bag_duration": 3, "compression_mode": "file"},
    ],
    ids=["one", "duration", "size", "packed"],
)
def test_files_of_a_folder_in_mcap(latched: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    """``storage=mcap`` has the messages, files, QoS and metadata of databases; rosbags reads equal values."""
    for name, storage in (("a", "sqlite3"), ("b", "mcap")):
        logreel.slice(latched, f"{tmp_path}/{name}/", options={**options, "storage": storage})
    suffix = ".mcap.zstd" if "compression_mode" in options else ".mcap"
    databases, files = (sorted((tmp_path / name).glob(f"{name}_*")) for name in "ab")
    assert [path.name for path in files] == [f"b_{n}{suffix}" for n in range(len(databases))]
    stated = [
        parse((tmp_path / name / "metadata.yaml").read_text())["rosbag2_bagfile_information"] for name in "ab"
    ]
    assert stated[1]["relative_file_paths"] == [path.name for path in files]
    assert [s["storage_identifier"] for s in stated] == ["sqlite3", "mcap"]
    for key in ("version", "message_count", "starting_time", "duration", "topics_with_message_count"):
        assert stated[0][key] == stated[1][key]
    assert rows(tmp_path / "a") == rows(tmp_path / "b")
    log = logreel.open(tmp_path / "b")
    assert (log.problems, log.verify()) == ((), ())
    of_database = logreel.open(tmp_path / "a")
    for ch in of_database.channels.values():
        new = log[ch.topic]
        assert (new.schema, new.metadata) == (ch.schema, ch.metadata)
    if "compression_mode" not in options:
        assert typed(tmp_path / "a") == typed(tmp_path / "b")
    # It is written again over itself, and back.
    logreel.convert(tmp_path / "b", f"{tmp_path}/c/", force=True)
    assert rows(tmp_path / "c") == rows(tmp_path / "a")
    logreel.slice(latched, f"{tmp_path}/b/", options={"storage": "mcap"}, force=True)
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["b_0.mcap", "metadata.yaml"]


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_a_folder_is_created(tmp_path: Path, storage: str) -> None:
    text = logreel.Schema("std_msgs/msg/String", "ros2msg", "string data\n")
    with logreel.create(f"{tmp_path}/drive/", storage=storage) as w:
        channel = w.add_channel("/a", text)
        for n in range(100):
            w.write(channel, START + n, {"data": str(n)})
        w.flush()
        # As a recorder that crashed leaves it.
        assert len(rows(tmp_path / "drive")) == 100
    folder = tmp_path / "drive"
    suffix = "db3" if storage == "sqlite3" else "mcap"
    assert sorted(path.name for path in folder.iterdir()) == [f"drive_0.{suffix}", "metadata.yaml"]
    log = logreel.open(folder)
    assert (log.problems, log["/a"]["data"].tolist()[-1]) == ((), "99")
    assert read(folder) == rows(folder)
    for options, words in (
        ({}, "not replaced"),
        ({"mode": "a"}, "continued by another file"),
    ):
        with pytest.raises(LogError, match=words):
            logreel.create(f"{tmp_path}/drive/", **options)  # type: ignore[arg-type]
    for name, options, words in (
        ("other", {"max_bag_size": 1000}, "is one file of its folder"),
        ("other", {"storage": "zip"}, "sqlite3 or mcap"),
        ("other", {"format": "ulog"}, "leave out the slash"),
        ("other.db3", {}, "leave out the slash"),
        ("other", {"wrong": 1}, "no option 'wrong'"),
    ):
        with pytest.raises(UsageError, match=words):
            logreel.create(f"{tmp_path}/{name}/", **options)  # type: ignore[arg-type]
        assert not (tmp_path / name).exists()


def test_a_folder_whose_writing_fails_has_what_was_written(tmp_path: Path) -> None:
    text = logreel.Schema("std_msgs/msg/String", "ros2msg", "string data\n")

    def failing() -> None:
        with logreel.create(f"{tmp_path}/drive/") as w:
            w.write(w.add_channel("/a", text), START, {"data": "x"})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert [path.name for path in (tmp_path / "drive").iterdir()] == ["drive_0.db3.active"]
    assert len(rows(tmp_path / "drive")) == 1


@pytest.mark.parametrize("name", SHAPES)
def test_several_files_and_compression(
    latched: Path, counted: list[tuple[str, int, str]], tmp_path: Path, name: str
) -> None:
    """Each file begins with the static transform; rosbags and logreel read equal values."""
    options, compression, files = SHAPES[name]
    done = logreel.slice(latched, f"{tmp_path}/y/", options=options)
    folder, suffix = tmp_path / "y", ".db3.zstd" if "file" in compression else ".db3"
    paths = sorted(folder.glob("y_*"))
    assert [path.name for path in paths] == [f"y_{n}{suffix}" for n in range(max(files, len(paths)))]
    stated = parse((folder / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert stated["relative_file_paths"] == [path.name for path in paths]
    assert [file["path"] for file in stated["files"]] == [path.name for path in paths]
    mode = compression.removeprefix("zstd ").upper() if compression != "none" else ""
    assert (stated["compression_format"], stated["compression_mode"]) == ("zstd" if mode else "", mode)
    log = logreel.open(folder)
    assert (log.problems, log.verify()) == ((), ())
    assert log.metadata["rosbag2"].get("compression", "none") == compression
    assert (done.messages, done.size) == (1001, sum(entry.stat().st_size for entry in folder.iterdir()))
    # What is plain is there once, what is latched once in each file, at its start.
    assert log["/count"]["data"].tolist() == [*range(1000)]
    begins = [logreel.open(path).start for path in paths]
    assert log["/tf_static"].times.tolist() == begins
    assert [file["message_count"] for file in stated["files"]] == [
        logreel.open(path).message_count for path in paths
    ]
    assert sorted(read(folder)) == sorted(rows(folder))
    values = typed(folder)
    assert len(values) == log.message_count == stated["message_count"]
    assert [value for value in values if value[0] == "/count"] == counted
    if "max_bag_duration" in options:
        assert begins == [START + n * 3 * 10**9 for n in range(4)]
    if name == "size":
        assert len(paths) > 1
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.name not in ("plain", "y")) == [
        "latched.db3"
    ]


def plain(path: Path, tmp_path: Path) -> Path:
    """Return the bag as a folder of one file."""
    logreel.slice(path, f"{tmp_path}/plain/", force=True)
    return tmp_path / "plain"


def test_files_have_at_most_their_size(bag: Path, tmp_path: Path) -> None:
    logreel.convert(bag, f"{tmp_path}/y/", options={"max_bag_size": 100_000})
    sizes = [path.stat().st_size for path in (tmp_path / "y").glob("*.db3")]
    # A file ends with the message with which it gets its size; the largest one is a picture.
    assert len(sizes) > 1
    assert max(sizes) < 120_000
    assert sorted(read(tmp_path / "y")) == sorted(rows(tmp_path / "y"))


def test_a_conversion_from_ros_1_is_compared_before_it_is_divided(
    bag: Path, tmp_path: Path, run: Run
) -> None:
    """What convert says on the command line, and the manifest, are of the folder with its files."""
    manifest = tmp_path / "proof.json"
    options = ("--option", "max_bag_duration=1", "--option", "compression_mode=file", "-x", "/rosout")
    done = run("convert", bag, f"{tmp_path}/y/", *options, "--manifest", manifest)
    assert done.code == 0, done.err
    assert "read back and compared" in done.err
    assert run("verify", manifest).code == 0
    (tmp_path / "y" / "y_0.db3.zstd").write_bytes(b"other")
    assert run("verify", manifest).code == 4


def test_compressed_messages_stay_compressed_until_told_otherwise(latched: Path, tmp_path: Path) -> None:
    logreel.slice(latched, tmp_path / "packed.db3", compression="zstd")
    logreel.slice(tmp_path / "packed.db3", tmp_path / "again.db3")
    logreel.slice(tmp_path / "packed.db3", tmp_path / "open.db3", compression="none")
    logreel.slice(tmp_path / "packed.db3", f"{tmp_path}/y/", options={"compression_mode": "file"})
    for name, due in (("packed.db3", "message"), ("again.db3", "message"), ("open.db3", "none")):
        log = logreel.open(tmp_path / name)
        assert log.metadata["rosbag2"]["compression"] == due
        assert rows(tmp_path / name) == rows(latched)
        assert log.verify() == ()
    assert read(tmp_path / "y") == read(plain(latched, tmp_path))


def test_messages_of_all_sizes_and_encodings_are_packed(tmp_path: Path) -> None:
    """Also those that begin as a frame does, and those whose encoding nothing reads."""
    frame = bytes.fromhex("28b52ffd") + bytes(range(256))
    payloads = [b"", b"x", frame, bytes(3_000_000), bytes(range(256)) * 20]
    for flush in (False, True):
        path = tmp_path / f"{flush}.db3"
        with logreel.create(path, compression="zstd", flush_every=None) as w:
            made = [
                w.add_channel(
                    f"/{encoding}",
                    logreel.Schema("a/b", encoding),
                    {"message_encoding": encoding},
                    copied=True,
                )
                for encoding in ("json", "cdr")
            ]
            for n, data in enumerate(payloads):
                for number in made:
                    w.write(number, START + n, data)
                if flush:
                    w.flush()
        log = logreel.open(path)
        for encoding in ("json", "cdr"):
            assert [bytes(m.data) for m in log[f"/{encoding}"]] == payloads
        assert log.verify() == ()
        assert path.stat().st_size < 100_000


def test_options_of_folders_that_are_none(latched: Path, tmp_path: Path, run: Run) -> None:
    for options, words in (
        ({"compression_mode": "zip"}, "file or message"),
        ({"max_bag_size": 0}, "bytes above 0"),
        ({"max_bag_size": "1GB"}, "bytes above 0"),
        ({"max_bag_duration": True}, "seconds above 0"),
        ({"max_bag_duration": 1e-6}, "more than 10000 files"),
        ({"max_bag": 3}, "no option 'max_bag'"),
        ({"storage": "rocksdb"}, "sqlite3 or mcap"),
        ({"storage": "mcap", "compression_mode": "message"}, "leave out compression_mode"),
    ):
        if "more than" in words:
            options, source = {"max_bag_duration": 1e-9}, tmp_path / "fast.db3"
            with logreel.create(source) as w:
                count = w.add_channel("/count", logreel.Schema("std_msgs/msg/Empty", "ros2msg"))
                for n in range(10_002):
                    w.write(count, START + 2 * n, b"\0\1\0\0\0")
        else:
            source = latched
        with pytest.raises(UsageError, match=words):
            logreel.slice(source, f"{tmp_path}/y/", options=options)
        assert not (tmp_path / "y").exists()
    with pytest.raises(UsageError, match="no option 'compression_mode'"):
        logreel.slice(latched, tmp_path / "y.db3", options={"compression_mode": "file"})
    with pytest.raises(UsageError, match="none, zstd"):
        logreel.create(tmp_path / "y.db3", compression="lz4")
    for option in ("max_bag_size=-1", "storage=zip", "storage=3"):
        done = run("slice", latched, "-o", f"{tmp_path}/y/", "--option", option)
        assert (done.code, (tmp_path / "y").exists()) == (2, False)


@pytest.mark.parametrize("name", ["file", "message", "duration"])
def test_cut_and_changed_folders(latched: Path, tmp_path: Path, name: str) -> None:
    """What is left of a cut file is what was there, with the loss named; changed bytes raise nothing but LogErrors."""
    logreel.slice(latched, f"{tmp_path}/y/", options=SHAPES[name][0])
    folder = tmp_path / "y"
    every, path = Counter(rows(folder)), sorted(folder.glob("y_*"))[-1]
    data = path.read_bytes()
    for size in range(len(data) - 1, 0, -max(1, len(data) // 25)):
        path.write_bytes(data[:size])
        try:
            log = logreel.open(folder)
        except LogError:
            continue
        left = Counter((m.channel.topic, m.time, bytes(m.data)) for m in log.messages())
        assert left <= every
        assert any(problem.lost for problem in log.problems)
    random_bytes = random.Random(name)
    for _ in range(half(60)):
        changed = bytearray(data)
        for _ in range(random_bytes.randint(1, 4)):
            changed[random_bytes.randrange(len(data))] = random_bytes.randrange(256)
        path.write_bytes(changed)
        try:
            log = logreel.open(folder)
            log.verify()
            for message in log.messages():
                bytes(message.data)
        except LogError:
            continue


# ------------------------------------------------------------------------------------------------------------ recovery


def crashed(folder: Path) -> list[Message]:
    """Write what a killed recorder leaves: no metadata, a torn file, a write-ahead log; return the messages."""
    messages, live = walked_messages(90, 6000), folder.with_name("live")
    live.mkdir()
    for n in range(3):
        database = write(live / f"{folder.name}_{n}.db3", messages[30 * n : 30 * n + 20])
        if n == 2:
            database.execute("PRAGMA journal_mode=WAL")
        database.execute("BEGIN")
        add(database, messages[30 * n + 20 : 30 * n + 30])
        database.execute("COMMIT")
        if n < 2:
            database.close()
    shutil.copytree(live, folder)
    database.close()
    shutil.rmtree(live)
    torn = folder / f"{folder.name}_1.db3"
    torn.write_bytes(torn.read_bytes()[:-20_000])
    return messages


def test_a_folder_of_a_killed_recorder_is_recovered_as_a_folder(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With metadata, the transactions of the write-ahead log, and what is left of the torn file; the rest is named."""
    # rosbags reads QoS only if all of them are there.
    monkeypatch.setattr(builder, "QOS", LATCHED)
    folder = tmp_path / "drive"
    due = Counter((TOPICS[topic - 1].name, time, data) for topic, time, data in crashed(folder))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done = run("recover", folder, "-o", f"{tmp_path}/new/", "--json")
    assert done.code == 3, done.err
    answer = json.loads(done.out)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    new = tmp_path / "new"
    assert sorted(path.name for path in new.iterdir()) == [
        "metadata.yaml",
        *(f"new_{n}.db3" for n in range(3)),
    ]
    log = logreel.open(new)
    assert (log.problems, log.verify()) == ((), ())
    left = Counter(rows(new))
    assert left <= due
    assert (answer["messages"], sum(left.values())) == (log.message_count, log.message_count)
    assert log.message_count > 70
    assert sorted(read(new)) == sorted(left.elements())
    # The files without damage have all of their messages.
    for n in (0, 2):
        assert logreel.open(new / f"new_{n}.db3").message_count == 30
    assert all("drive_1.db3" in loss["text"] for loss in answer["lost"])
    assert {loss["code"] for loss in answer["lost"]} >= {"truncated"}
    assert {loss["start_ns"] for loss in answer["lost"]} != {None}


def test_a_folder_of_one_file_and_one_that_lacks_a_file(tmp_path: Path) -> None:
    crashed(tmp_path / "drive")
    single = tmp_path / "single"
    single.mkdir()
    shutil.copy(tmp_path / "drive" / "drive_1.db3", single / "single_0.db3")
    done = logreel.recover(single, f"{tmp_path}/a/")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["a_0.db3", "metadata.yaml"]
    assert done.lost
    logreel.recover(tmp_path / "drive", f"{tmp_path}/b/")
    (tmp_path / "b" / "b_1.db3").unlink()
    done = logreel.recover(tmp_path / "b", f"{tmp_path}/c/")
    assert ["b_1.db3" in loss.text for loss in done.lost] == [True]
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["c_0.db3", "c_1.db3", "metadata.yaml"]
    for options in ({"topics": "/foot"}, {"options": {"max_bag_size": 1000}}):
        with pytest.raises(UsageError):
            logreel.recover(tmp_path / "b", f"{tmp_path}/d/", **options)
    with pytest.raises(LogError, match="exists already"):
        logreel.recover(tmp_path / "b", f"{tmp_path}/c/")
    logreel.recover(tmp_path / "b", f"{tmp_path}/c/", force=True, compression="zstd")
    assert logreel.open(tmp_path / "c").metadata["rosbag2"]["compression"] == "zstd message"
    assert not [*tmp_path.glob("d*/d_*")]
