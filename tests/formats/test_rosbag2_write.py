"""Bags of ROS 2 that are written: SQLite, rosbags and logreel read the same, also of a file that was not finished."""

from __future__ import annotations

import json
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError
from logreel.formats.rosbag2 import folder as bag_folder
from logreel.formats.rosbag2 import page_writer
from logreel.formats.rosbag2.folder import FileSpan, file_text, metadata_text
from logreel.formats.rosbag2.page_writer import PAGE
from logreel.formats.rosbag2.reader import TopicRow
from logreel.formats.rosbag2.yaml import parse
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, Sequence, String, Struct, Time
from logreel.schemas import ros2msg
from support.harness.cli_runner import Run
from support.oracles.rosbags_folder import reader_of_any, reader_of_folders
from support.samples.rosbag2.builder import (
    FOOT,
    START,
    TOPICS,
    Message,
    Topic,
    foot,
    robot,
    text,
    walk,
    write,
)

QOS = """- history: keep_last
  depth: 5
  reliability: best_effort
  durability: transient_local
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: automatic
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
"""
STRING = logreel.Schema("std_msgs/msg/String", "ros2msg", "string data\n")


def rows(log: logreel.Log) -> list[tuple[str, int, bytes]]:
    return [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")]


def by_sqlite(path: Path) -> list[tuple[str, int, bytes]]:
    """Return the messages as SQLite reads them, which has to find the database sound."""
    database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    query = "SELECT name,timestamp,data FROM messages JOIN topics ON topics.id=topic_id ORDER BY messages.id"
    found = database.execute(query).fetchall()
    # Reads the index of times.
    ordered = database.execute("SELECT timestamp FROM messages ORDER BY timestamp").fetchall()
    database.close()
    assert [time for (time,) in ordered] == sorted(time for _, time, _ in found)
    return found


def record(path: Path, messages: Iterable[Message], flush: int = 0) -> logreel.Writer:
    """Write messages of TOPICS one by one, with a flush after each *flush* of them; return the open Writer."""
    w = logreel.create(path, flush_every=None)
    for topic in TOPICS:
        schema = logreel.Schema(topic.type, "ros2msg", topic.definition)
        w.add_channel(topic.name, schema, {"offered_qos_profiles": QOS, "topic_type_hash": "RIHS01_1"})
    for n, (number, time, data) in enumerate(messages, 1):
        w.write(number - 1, time, data)
        if flush and not n % flush:
            w.flush()
    return w


@pytest.mark.parametrize("flush", [0, 7])
def test_sqlite_reads_what_was_written(tmp_path: Path, flush: int) -> None:
    sizes = [0, 1, 100, *range(4030, 4062), *range(8120, 8150), 12_000, 100_000, 5_000_000]
    random.Random(1).shuffle(sizes)
    messages = [
        (1 + n % 2, START - n * 10**9, random.Random(n).randbytes(size)) for n, size in enumerate(sizes)
    ]
    path = tmp_path / "a.db3"
    record(path, messages, flush).close()
    due = [(TOPICS[topic - 1].name, time, data) for topic, time, data in messages]
    assert by_sqlite(path) == due
    log = logreel.open(path)
    assert (sorted(rows(log)), log.problems, log.verify()) == (sorted(due), (), ())
    assert [(ch.schema.name, ch.schema.text) for ch in log.channels.values()] == [
        (topic.type, topic.definition) for topic in TOPICS
    ]
    assert log["/foot"].metadata["topic_type_hash"] == "RIHS01_1"


def test_trees_of_many_pages(tmp_path: Path) -> None:
    n, data = 50_000, np.frombuffer(text("hello"), np.uint8)
    times = START + np.random.default_rng(2).integers(0, 10**12, n)
    with logreel.create(tmp_path / "a.db3") as w:
        channel = np.full(n, w.add_channel("/chatter", STRING), np.int32)
        w.write_many(channel, times, data, np.zeros(n, np.int64), np.full(n, len(data)))
    assert [time for _, time, _ in by_sqlite(tmp_path / "a.db3")] == times.tolist()
    log = logreel.open(tmp_path / "a.db3")
    assert (log.problems, log.verify()) == ((), ())
    assert np.array_equal(log["/chatter"].times, times)


def test_the_page_that_sqlite_locks_stays_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies behind the first gigabyte; here it is an early one."""
    messages = walk(150, 9000)
    for page in (3, 5, 6, 40, 41, 42, 60):
        monkeypatch.setattr(page_writer, "LOCK_PAGE", page)
        path = tmp_path / f"{page}.db3"
        record(path, messages, flush=page).close()
        assert path.read_bytes()[(page - 1) * PAGE : page * PAGE] == bytes(PAGE)
        log = logreel.open(path)
        assert rows(log) == [(TOPICS[topic - 1].name, time, data) for topic, time, data in messages]
        assert log.problems == ()


def test_empty_bags_and_channels(tmp_path: Path) -> None:
    for name, topics in (("none", ()), ("two", TOPICS)):
        with logreel.create(tmp_path / f"{name}.db3") as w:
            for topic in topics:
                w.add_channel(topic.name, logreel.Schema(topic.type, "ros2msg", topic.definition))
        assert by_sqlite(tmp_path / f"{name}.db3") == []
        log = logreel.open(tmp_path / f"{name}.db3")
        assert ([*log], log.problems) == ([topic.name for topic in topics], ())


def test_an_unfinished_bag_has_all_messages_that_were_flushed(tmp_path: Path) -> None:
    messages = walk(60, 9000)
    w = record(tmp_path / "a.db3", messages, flush=9)
    data = (tmp_path / "a.db3.active").read_bytes()
    due, before = [(TOPICS[topic - 1].name, time, data) for topic, time, data in messages], -1
    for size in range(PAGE, len(data) + 1, PAGE):
        log = logreel.open(data[:size])
        lost = [problem for problem in log.problems if problem.lost and problem.code != "record"]
        assert (rows(log), lost) == (due[: log.message_count], [])
        assert log.message_count >= before
        before = log.message_count
    assert before == 54
    assert log.version == "4"
    assert log["/foot"][3].decode()["force"] == messages[9][0] * 0 + 9 / 8
    assert [problem.code for problem in log.problems] == ["salvaged"]
    w.leave()
    done = logreel.recover(tmp_path / "a.db3.active")
    assert (done.messages, done.lost) == (60, ())
    assert by_sqlite(tmp_path / "a.db3") == due


def test_a_definition_of_many_pages_is_found_in_an_unfinished_bag(tmp_path: Path) -> None:
    long = logreel.Schema("robot/msg/Foot", "ros2msg", FOOT + "# " + "long " * 4000 + "\n")
    w = logreel.create(tmp_path / "a.db3")
    w.write(w.add_channel("/foot", long), START, foot(1, 2.5, b""))
    w.flush()
    log = logreel.open(tmp_path / "a.db3.active")
    assert (log["/foot"].schema, log["/foot"][0].decode()["force"]) == (long, 2.5)
    w.close()
    assert logreel.open(tmp_path / "a.db3")["/foot"].schema == long


def small(path: Path) -> bytes:
    """Return a bag of a few small pages, with overflow pages."""
    write(
        path,
        [(1, START, text("a")), (2, START + 1, foot(1, 2.0, bytes(900))), (1, START + 2, text("b"))],
        page=512,
    ).close()
    return path.read_bytes()


def test_a_bag_cut_at_any_byte_says_what_is_missing(tmp_path: Path) -> None:
    data = small(tmp_path / "a.db3")
    every = Counter(rows(logreel.open(data)))
    for size in {*range(512, len(data), 113), *range(1024, len(data), 1024), len(data) - 1}:
        log = logreel.open(data[:size], format="rosbag2")
        assert Counter(rows(log)) <= every
        (cut,) = [problem for problem in log.problems if problem.code == "truncated"]
        assert cut.lost
        assert f"{len(data) - size} bytes are missing" in cut.text
        # Missing pages are not told again one by one.
        assert not any(problem.code == "page" for problem in log.problems)
    for size in range(1, 512, 11):
        try:
            log = logreel.open(data[:size], format="rosbag2")
        except LogError:
            continue
        assert any(problem.lost for problem in log.problems)


def test_a_torn_bag_is_recovered_as_a_bag(tmp_path: Path) -> None:
    (tmp_path / "torn.db3").write_bytes(robot(90, 6000)[: -9 * PAGE])
    torn = logreel.open(tmp_path / "torn.db3")
    done = logreel.recover(torn, tmp_path / "whole.db3")
    assert "are missing" in done.lost[0].text
    assert sorted(by_sqlite(tmp_path / "whole.db3")) == sorted(rows(torn))
    assert len(rows(torn)) > 60
    stated = parse(stored_metadata(tmp_path / "whole.db3"))
    whole = logreel.open(tmp_path / "whole.db3")
    assert (stated["message_count"], stated["duration"]["nanoseconds"]) == (
        whole.message_count,
        (whole.end or 0) - (whole.start or 0),
    )
    assert stated["starting_time"]["nanoseconds_since_epoch"] == whole.start
    counts = {
        one["topic_metadata"]["name"]: one["message_count"] for one in stated["topics_with_message_count"]
    }
    assert counts == {topic: len(ch) for topic, ch in whole.channels.items()}


def stored_metadata(path: Path) -> str:
    database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    ((version, stated),) = database.execute("SELECT metadata_version,metadata FROM metadata").fetchall()
    database.close()
    assert parse(stated)["version"] == version
    return str(stated)


# ------------------------------------------------------------------------------------------------------- other readers


def test_rosbags_reads_a_written_bag(tmp_path: Path) -> None:
    """It reads folders: those with the metadata that the database holds."""
    reader = reader_of_any()
    stores = pytest.importorskip("rosbags.typesys")
    humble = stores.get_typestore(stores.Stores.ROS2_HUMBLE)
    (tmp_path / "source.db3").write_bytes(robot(60, 3000))
    for name in ("numbers", "words"):
        folder = tmp_path / name
        folder.mkdir()
        with logreel.create(folder / "a.db3") as w, logreel.open(tmp_path / "source.db3") as source:
            stated = QOS if name == "words" else bag_folder.qos_in(8, QOS)
            for ch in source.channels.values():
                w.add_channel(ch.topic, ch.schema, {"offered_qos_profiles": stated})
            for message in source.messages():
                w.write(message.channel.number, message.time, message.data)
        text = stored_metadata(folder / "a.db3")
        log = logreel.open(folder / "a.db3")
        span = FileSpan("a.db3", log.message_count, log.start, log.end)
        topics = [
            (TopicRow(1, ch.topic, ch.schema.name, "cdr", ch.metadata["offered_qos_profiles"], ""), len(ch))
            for ch in log.channels.values()
        ]
        text = metadata_text("sqlite3", [span], topics)
        (folder / "metadata.yaml").write_text(file_text(text))
        with reader([folder], default_typestore=humble) as found:
            assert found.message_count == log.message_count
            assert (found.start_time, found.end_time) == (log.start, (log.end or 0) + 1)
            theirs = [(c.topic, time, bytes(data)) for c, time, data in found.messages()]
            assert sorted(theirs) == sorted(rows(log))
            (profile,) = found.connections[0].ext.offered_qos_profiles
            assert (profile.depth, profile.reliability.name, profile.durability.name) == (
                5,
                "BEST_EFFORT",
                "TRANSIENT_LOCAL",
            )
            feet = [c for c in found.connections if c.topic == "/foot"]
            connection, _, data = next(found.messages(feet))
            assert found.deserialize(data, connection.msgtype).force == log["/foot"][0].decode()["force"]
        again = logreel.open(folder)
        assert (again.problems, rows(again)) == ((), rows(log))


def test_the_command_writes_the_metadata_of_a_folder(tmp_path: Path, run: Run) -> None:
    """A bag of ROS 1 becomes a folder of ROS 2 that rosbags opens; so do a split bag and one without its metadata."""
    reader = reader_of_folders()
    folder, messages = tmp_path / "drive", walk(60, 6000)
    folder.mkdir()
    for n in range(3):
        record(folder / f"drive_{n}.db3", messages[20 * n : 20 * n + 20]).close()
    assert any("there is no metadata.yaml" in problem.text for problem in logreel.open(folder).problems)
    for _ in range(2):
        done = run("rosbag2", "metadata", folder, "-o", folder / "metadata.yaml", "--force")
        assert done.code == 0, done.err
        log = logreel.open(folder)
        assert (log.problems, log.message_count) == ((), 60)
        with reader(folder) as found:
            theirs = [(c.topic, time, bytes(data)) for c, time, data in found.messages()]
            assert theirs == [(TOPICS[topic - 1].name, time, data) for topic, time, data in messages]
            assert (found.message_count, found.start_time) == (60, START)
            assert {c.topic: c.msgcount for c in found.connections} == {
                t: len(ch) for t, ch in log.channels.items()
            }
    answer = json.loads(run("rosbag2", "metadata", folder, "--json").out)
    assert answer["files"] == [f"drive_{n}.db3" for n in range(3)]
    assert (answer["messages"], answer["topics"], answer["start_ns"]) == (60, 2, START)
    # A folder of one file, which is torn, and recovered.
    (tmp_path / "torn").mkdir()
    data = (folder / "drive_1.db3").read_bytes()
    (tmp_path / "torn.db3").write_bytes(data[: len(data) * 2 // 3])
    run("recover", tmp_path / "torn.db3", "-o", tmp_path / "torn" / "torn_0.db3")
    assert run("rosbag2", "metadata", tmp_path / "torn", "-o", tmp_path / "torn" / "metadata.yaml").code == 0
    with reader(tmp_path / "torn") as found:
        assert 0 < found.message_count == len(list(found.messages())) < 20


# ------------------------------------------------------------------------------------------------- what else is kept


def test_metadata_and_foreign_ones_come_back(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.db3") as w:
        w.metadata("ros_distro", "jazzy")
        w.metadata("custom_data", {"site": 'no"rth\n'})
        w.metadata("robot", {"name": "spot", "legs": [1, 2, 3, 4]})
        with pytest.raises(logreel.UnsupportedError, match="JSON"):
            w.metadata("raw", b"bytes")
        w.add_channel("/chatter", STRING)
    for _ in range(2):
        log = logreel.open(tmp_path / "a.db3")
        del (facts := dict(log.metadata))["rosbag2"]
        assert facts == {
            "ros_distro": "jazzy",
            "custom_data": {"site": 'no"rth\n'},
            "robot": {"name": "spot", "legs": [1, 2, 3, 4]},
        }
        logreel.slice(tmp_path / "a.db3", tmp_path / "b.db3", force=True)
        (tmp_path / "b.db3").replace(tmp_path / "a.db3")


def test_one_type_has_one_definition_unless_hashes_differ(tmp_path: Path) -> None:
    for n, definition in enumerate((FOOT, FOOT + "uint8 toes\n")):
        topics = [Topic(f"/foot{n}", "robot/msg/Foot", definition)]
        write(tmp_path / f"{n}.db3", [(1, START + n, foot(1, 2.0, b"") + bytes(n))], topics).close()
    done = logreel.merge([tmp_path / "0.db3", tmp_path / "1.db3"], tmp_path / "x.db3")
    assert "another definition of 'robot/msg/Foot'" in done.skipped[0]
    assert [*logreel.open(tmp_path / "x.db3")] == ["/foot0"]
    with logreel.create(tmp_path / "y.db3") as w:
        for n, definition in enumerate((FOOT, FOOT + "uint8 toes\n")):
            schema = logreel.Schema("robot/msg/Foot", "ros2msg", definition)
            number = w.add_channel(f"/foot{n}", schema, {"topic_type_hash": f"RIHS01_{n}"})
            w.write(number, START, {"force": n})
    log = logreel.open(tmp_path / "y.db3")
    assert [list(log[f"/foot{n}"][0].decode()) for n in (0, 1)] == [
        ["leg", "down", "force", "skin"],
        ["leg", "down", "force", "skin", "toes"],
    ]


def test_what_no_definition_reads_is_copied(tmp_path: Path) -> None:
    topics = [Topic("/a", "x/msg/Unknown"), Topic("/b", "y/msg/Other", serialization="other_format")]
    write(tmp_path / "a.db3", [(1, START, b"one"), (2, START, b"two"), (9, START, b"three")], topics).close()
    logreel.slice(tmp_path / "a.db3", tmp_path / "b.db3")
    log = logreel.open(tmp_path / "b.db3")
    assert rows(log) == [("/a", START, b"one"), ("/b", START, b"two"), ("topic_9", START, b"three")]
    assert log["/b"].metadata["message_encoding"] == "other_format"


def test_events_of_services_keep_the_definition_of_the_service(tmp_path: Path) -> None:
    schema = logreel.Schema("pkg/srv/Add_Event", "ros2msg", "int64 a\n---\nint64 sum\n")
    with logreel.create(tmp_path / "a.db3") as w:
        w.add_channel("/add/_service_event", schema)
    database = sqlite3.connect(tmp_path / "a.db3")
    assert database.execute("SELECT type FROM topics").fetchall() == [("pkg/srv/Add_Event",)]
    assert database.execute("SELECT topic_type FROM message_definitions").fetchall() == [("pkg/srv/Add",)]
    database.close()
    assert logreel.open(tmp_path / "a.db3")["/add/_service_event"].schema == schema


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (logreel.Schema("Foot", "ros2msg", FOOT), "no type of ROS 2"),
        (logreel.Schema("std_msgs/String", "ros1msg", "string data\n"), "holds messages in 'cdr'"),
    ],
)
def test_channels_that_a_bag_cannot_hold_are_refused(
    tmp_path: Path, schema: logreel.Schema, said: str
) -> None:
    with logreel.create(tmp_path / "a.db3") as w, pytest.raises(logreel.DefinitionError, match=said):
        w.add_channel("/a", schema)


def test_other_encodings_in_mcap_are_written_as_cdr(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.mcap") as w:
        schema = logreel.Schema("a", "jsonschema", '{"type":"object","properties":{"x":{"type":"number"}}}')
        w.write(w.add_channel("/json", schema), START, b'{"x": 1.5}')
    logreel.convert(tmp_path / "a.mcap", tmp_path / "a.db3")
    assert logreel.open(tmp_path / "a.db3")["/json"][0].decode() == {"x": 1.5}
    with logreel.create(tmp_path / "b.mcap") as w:
        w.write(w.add_channel("/raw", logreel.Schema("a", "flatbuffer", "", b"\xff")), START, b"???")
    logreel.convert(tmp_path / "b.mcap", tmp_path / "b.db3")
    assert logreel.open(tmp_path / "b.db3")["/raw"][0].decode() == {"data": b"???"}


# --------------------------------------------------------------------------------------------------------- definitions


def test_definitions_are_made_of_fields() -> None:
    part = Struct((Field("x", Scalar("float64")), Field("at", Time())))
    layout = Layout(
        Struct(
            (
                Field("stamp", Time()),
                Field("spans", Sequence(Time(signed=True))),
                Field("name", String()),
                Field("parts", FixedArray(part, 2)),
                Field("bits", FixedArray(Scalar("bool"), 3)),
            )
        )
    )
    made = ros2msg.definition_from_layout(layout, ros2msg.type_name("/imu/data"))
    lines = made.splitlines()
    assert lines[:5] == [
        "builtin_interfaces/Time stamp",
        "builtin_interfaces/Duration[] spans",
        "string name",
        "logreel/ImuDataParts[2] parts",
        "bool[3] bits",
    ]
    assert [line for line in lines if line.startswith("MSG")] == [
        "MSG: logreel/ImuDataParts",
        "MSG: builtin_interfaces/Time",
        "MSG: builtin_interfaces/Duration",
    ]
    read = ros2msg.layout("logreel/msg/ImuData", made)
    assert [f.name for f in read.record.visible()] == ["stamp", "spans", "name", "parts", "bits"]


def test_a_bag_of_ros_1_becomes_one_of_ros_2_with_equal_values(tmp_path: Path) -> None:
    from support.samples.rosbag.builder import drive

    (tmp_path / "a.bag").write_bytes(drive(1.0))
    logreel.convert(tmp_path / "a.bag", tmp_path / "a.db3")
    before, after = logreel.open(tmp_path / "a.bag"), logreel.open(tmp_path / "a.db3")
    assert [*after] == [*before]
    for topic in before.channels.keys() - {"/rosout"}:
        # Headers of ROS 2 have no number.
        due = [re.sub(r"'seq': \d+, ", "", repr(m.decode())) for m in before[topic]]
        assert [repr(m.decode()) for m in after[topic]] == due, topic
        assert after[topic].schema.name.replace("/msg/", "/") == before[topic].schema.name
    # The levels of /rosout are those of ROS 2.
    levels = {1: 10, 2: 20, 4: 30, 8: 40, 16: 50}
    assert [(m.decode()["level"], m.decode()["msg"]) for m in after["/rosout"]] == [
        (levels[m.decode()["level"]], m.decode()["msg"]) for m in before["/rosout"]
    ]
    assert len(by_sqlite(tmp_path / "a.db3")) == before.message_count


# ------------------------------------------------------------------------------------------------------------ metadata


def test_qos_are_written_in_both_styles() -> None:
    words = "- history: keep_last\n  depth: 3\n  reliability: best_effort\n  durability: volatile"
    numbers = "- history: 1\n  depth: 3\n  reliability: 2\n  durability: 2"
    assert bag_folder.qos_in(8, words) == bag_folder.qos_in(8, numbers) == numbers
    assert bag_folder.qos_in(9, words) == bag_folder.qos_in(9, numbers) == words
    assert bag_folder.qos_in(9, "- history: 77") == "- history: 77"


def test_metadata_are_read_as_they_were_written() -> None:
    library = pytest.importorskip("ruamel.yaml").YAML(typ="safe", pure=True)
    topics: list[Any] = [(TopicRow(1, "/a b", 'x/msg/"A"', "cdr", "- history: 1\n  depth: 0", "h"), 3)]
    for files in (
        [],
        [FileSpan("a_0.db3", 3, 5, 9)],
        [FileSpan("a_0.db3", 0, None, None), FileSpan("a_1.db3", 2, 4, 4)],
    ):
        made = file_text(metadata_text("sqlite3", files, topics if files else [], "jazzy", {"k: 1": "v\n#"}))
        stated = parse(made)["rosbag2_bagfile_information"]
        assert library.load(made)["rosbag2_bagfile_information"] == stated
        assert stated["relative_file_paths"] == [file.path for file in files]
        assert stated["custom_data"] == {"k: 1": "v\n#"}
        assert stated["message_count"] == sum(file.messages for file in files)
    assert stated["starting_time"]["nanoseconds_since_epoch"] == 4


# ---------------------------------------------------------------------------------------------------------- continuing


@pytest.mark.parametrize(("version", "page"), [(1, 4096), (2, 512), (4, 4096), (4, 65536)])
def test_a_bag_of_ros_is_continued(tmp_path: Path, version: int, page: int) -> None:
    """Whatever its version and the size of its pages; SQLite finds the result sound, and rosbags reads it."""
    path, messages = tmp_path / "a" / "a_0.db3", walk(60, 6000)
    path.parent.mkdir()
    write(path, messages, version=version, page=page).close()
    before = rows(logreel.open(path))
    with logreel.create(path, mode="a") as w:
        chatter = w.add_channel("/chatter", logreel.Schema("std_msgs/msg/String", "ros2msg"))
        new = w.add_channel("/new", logreel.Schema("std_msgs/msg/String", "ros2msg"))
        w.write(chatter, START + 10**12, text("more"))
        w.write(new, START + 2 * 10**12, {"data": "new"})
        w.flush()
        active = logreel.open(path.with_name("a_0.db3.active"))
        assert len(rows(active)) == 62
        assert active["/new"][0].decode() == {"data": "new"}
        assert rows(logreel.open(path)) == before
    due = [*before, ("/chatter", START + 10**12, text("more")), ("/new", START + 2 * 10**12, text("new"))]
    assert by_sqlite(path) == due
    log = logreel.open(path)
    assert (log.problems, log.verify()) == ((), ())
    assert log["/chatter"].metadata["message_encoding"] == "cdr"
    stated = parse(stored_metadata(path))
    assert stated["message_count"] == 62
    if version == 4:
        assert log["/foot"].schema.text == FOOT
        assert log.metadata["ros_distro"] == "rolling"


def test_a_compressed_bag_is_continued_as_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db3"
    with logreel.create(path, compression="zstd") as w:
        w.metadata("custom_data", {"site": "north"})
        w.write(w.add_channel("/chatter", STRING), START, text("x" * 1000))
    for options, due in (({}, "message"), ({"compression": "none"}, "none")):
        with logreel.create(path, mode="a", **options) as w:
            w.write(w.add_channel("/chatter", STRING), START, text("y" * 1000))
        log = logreel.open(path)
        assert (log.metadata["rosbag2"]["compression"], log.metadata["custom_data"]) == (
            due,
            {"site": "north"},
        )
    assert [m.decode()["data"][0] for m in log["/chatter"]] == ["x", "y", "y"]


def test_a_bag_that_cannot_be_continued_stays(tmp_path: Path) -> None:
    """One that is damaged, also inside of a frame, and one with transactions beside it, which SQLite would mix in."""
    torn, wal, packed = (tmp_path / f"{name}.db3" for name in ("torn", "wal", "packed"))
    torn.write_bytes(robot(40, 3000)[: -2 * PAGE])
    database = write(wal, walk(5))
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("INSERT INTO messages(topic_id,timestamp,data) VALUES(1,7,x'0001')")
    with logreel.create(packed, compression="zstd") as w:
        w.write(w.add_channel("/chatter", STRING), START, random.Random(1).randbytes(2000))
    data = bytearray(packed.read_bytes())
    at = data.index(bytes.fromhex("28b52ffd"))
    data[at + 8 : at + 12] = b"\xff" * 4
    packed.write_bytes(data)
    for path, words in ((torn, "damaged"), (wal, "write-ahead log"), (packed, "damaged")):
        before = path.read_bytes()
        with pytest.raises(LogError, match=words):
            logreel.create(path, mode="a")
        assert path.read_bytes() == before
        assert not path.with_name(path.name + ".active").exists()
    database.close()


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_new_database_is_not_written_beside_transactions_of_an_older_one(tmp_path: Path, end: str) -> None:
    source, path = tmp_path / "walk.db3", tmp_path / "new.db3"
    write(source, walk()).close()
    beside = tmp_path / f"new.db3{end}"
    beside.write_bytes(b"transactions")
    for write_it in (
        lambda: logreel.slice(source, path, force=True),
        lambda: logreel.convert(source, path, force=True),
        lambda: logreel.create(path, force=True),
    ):
        with pytest.raises(LogError, match="belongs to an older database"):
            write_it()
        assert sorted(file.name for file in tmp_path.iterdir()) == [f"new.db3{end}", "walk.db3"]
    beside.write_bytes(b"")
    logreel.slice(source, path)
    assert logreel.open(path).message_count == logreel.open(source).message_count
