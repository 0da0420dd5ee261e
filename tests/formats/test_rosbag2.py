"""Bags of ROS 2: databases and folders are read as SQLite and other libraries read them, and damage is told."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import DamagedError, LogError
from logreel.formats.rosbag2.yaml import parse
from logreel.registry.open import expand
from logreel.schemas import ros2msg
from support.samples.rosbag2.builder import (
    START,
    TOPICS,
    Message,
    Topic,
    add,
    metadata_yaml,
    text,
    walk,
    walked,
    write,
)

Row = tuple[str, int, bytes]


def rows(log: logreel.Log) -> list[Row]:
    """Return topic, time and payload of all messages in the order of the file."""
    return [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")]


def named(messages: list[Message]) -> list[Row]:
    return [(TOPICS[topic - 1].name, time, data) for topic, time, data in messages]


def bag(folder: Path, parts: int = 3) -> list[Message]:
    """Write a folder with a split bag, and return its messages."""
    messages = walk(90, 6000)
    folder.mkdir()
    size = len(messages) // parts
    names = [f"{folder.name}_{n}.db3" for n in range(parts)]
    for n, name in enumerate(names):
        write(folder / name, messages[n * size : (n + 1) * size]).close()
    counts = Counter(topic for topic, _, _ in messages)
    (folder / "metadata.yaml").write_text(metadata_yaml(names, [counts[1], counts[2]]))
    return messages


# ---------------------------------------------------------------------------------------------------------- databases


@pytest.mark.parametrize("page", [512, 1024, 4096, 65536])
def test_messages_are_those_of_the_database(tmp_path: Path, page: int) -> None:
    messages = [*walk(), (1, START, b""), (2, -5, bytes(100_000)), (1, 0, text("zero")), (1, 1, text("one"))]
    write(tmp_path / "a.db3", messages, page=page).close()
    log = logreel.open(tmp_path / "a.db3")
    assert (log.format, log.version, log.problems) == ("rosbag2", "4", ())
    assert rows(log) == named(messages)
    assert log["/foot"].metadata["offered_qos_profiles"].startswith("- history: 3")
    assert log["/foot"].metadata["topic_type_hash"] == "RIHS01_ab"
    assert log.metadata["ros_distro"] == "rolling"
    assert (log.start, log.end) == (-5, messages[199][1])


def test_fields_are_decoded_by_the_definitions_in_the_bag() -> None:
    log = logreel.open(walked())
    assert log["/chatter"][0].decode() == {"data": "step 1 " + "x" * 7}
    np.testing.assert_array_equal(log["/foot"]["force"], [n / 8 for n in range(0, 200, 3)])


def test_pages_in_any_order_are_read(tmp_path: Path) -> None:
    """Rows that were deleted leave free pages, which later messages use in any order."""
    database = write(tmp_path / "a.db3", walk(150))
    database.execute("DELETE FROM messages WHERE id % 4 = 1")
    add(database, walk(60))
    kept = [
        row[1:] for row in database.execute("SELECT id,topic_id,timestamp,data FROM messages ORDER BY id")
    ]
    database.close()
    log = logreel.open(tmp_path / "a.db3")
    assert rows(log) == named([(topic, time, bytes(data)) for topic, time, data in kept])
    assert log.problems == ()


@pytest.mark.parametrize("version", [1, 2])
def test_bags_without_definitions_take_known_ones(tmp_path: Path, version: int) -> None:
    topics = [*TOPICS, Topic("/none", "std_msgs/msg/Empty")]
    write(tmp_path / "a.db3", [*walk(20), (3, START, b"\0\1\0\0\0")], topics, version=version).close()
    log = logreel.open(tmp_path / "a.db3")
    assert log["/chatter"][0].decode() == {"data": "step 1 " + "x" * 7}
    assert log["/none"][0].decode() == {}
    assert list(log["/foot"][0].decode()) == ["data"]
    assert [problem.text for problem in log.problems] == [
        "/foot: nothing defines robot/msg/Foot; its messages are raw bytes"
    ]
    (tmp_path / "robot" / "msg").mkdir(parents=True)
    (tmp_path / "robot" / "msg" / "Foot.msg").write_text(TOPICS[1].definition)
    log = logreel.open(tmp_path / "a.db3", definitions=tmp_path / "robot")
    assert log["/foot"][1].decode()["force"] == 3 / 8


def test_only_tables_of_rosbag2_are_read(tmp_path: Path) -> None:
    """Views, triggers and further tables are named, and nothing in them is executed."""
    more = (
        "CREATE TABLE other(x)",
        "INSERT INTO other VALUES(1)",
        "CREATE VIEW all_messages AS SELECT * FROM messages",
        "CREATE TRIGGER t AFTER INSERT ON other BEGIN DELETE FROM messages; END",
    )
    write(tmp_path / "a.db3", walk(20), more=more).close()
    log = logreel.open(tmp_path / "a.db3")
    assert rows(log) == named(walk(20))
    assert {problem.code for problem in log.problems} == {"unknown"}
    assert "a trigger 't'" in " ".join(problem.text for problem in log.problems)
    database = write(tmp_path / "b.db3", walk(20))
    database.executescript("ALTER TABLE messages RENAME TO m; CREATE VIEW messages AS SELECT * FROM m")
    database.close()
    log = logreel.open(tmp_path / "b.db3")
    assert any(problem.lost and "no table 'messages'" in problem.text for problem in log.problems)


def test_other_databases_are_no_logs(tmp_path: Path) -> None:
    database = sqlite3.connect(tmp_path / "a.db3")
    database.execute("CREATE TABLE t(x)")
    database.close()
    with pytest.raises(logreel.UnknownFormatError):
        logreel.open(tmp_path / "a.db3")


def test_rows_and_problems_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.formats.rosbag2 import pages, reader

    topics = [
        Topic(f"/t{n}", "std_msgs/msg/String", "string data\n" + "#" * 500 * (n == 2)) for n in range(8)
    ]
    messages = [(n, START + n, text(str(n))) for n in range(1, 16)]
    write(tmp_path / "a.db3", messages, topics).close()
    monkeypatch.setattr(reader, "MAX_ROWS", 6)
    monkeypatch.setattr(reader, "MAX_ROW", 400)
    monkeypatch.setattr(reader, "MAX_UNKNOWN", 3)
    log = logreel.open(tmp_path / "a.db3")
    told = Counter(problem.code for problem in log.problems if problem.lost)
    assert told == {"rows": 2, "record": 1, "topic": 1}
    assert [*log] == [*(f"/t{n}" for n in range(6)), "topic_7", "topic_8", "topic_9"]
    monkeypatch.setattr(pages, "MAX_PROBLEMS", 2)
    assert len(logreel.open(tmp_path / "a.db3").problems) <= 4


# ------------------------------------------------------------------------------------------------ write-ahead log


def crashed(folder: Path) -> tuple[Path, list[Message]]:
    """Return a bag as a recorder that was killed leaves it, with most of its messages in the write-ahead log."""
    messages = walk(120)
    database = write(folder / "live.db3", messages[:40])
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA wal_autocheckpoint=0")
    for n in (40, 80):
        database.execute("BEGIN")
        add(database, messages[n : n + 40])
        database.execute("COMMIT")
    for suffix in ("", "-wal"):
        shutil.copy(f"{folder / 'live.db3'}{suffix}", f"{folder / 'a.db3'}{suffix}")
    database.close()
    return folder / "a.db3", messages


def test_committed_messages_of_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    path, messages = crashed(tmp_path)
    before = {file.name: file.stat().st_size for file in tmp_path.iterdir()}
    log = logreel.open(path)
    assert rows(log) == named(messages)
    assert [(problem.code, problem.lost) for problem in log.problems] == [("wal", False)]
    assert {file.name: file.stat().st_size for file in tmp_path.iterdir()} == before


def test_a_damaged_write_ahead_log_counts_up_to_its_last_whole_commit(tmp_path: Path) -> None:
    path, messages = crashed(tmp_path)
    wal = Path(f"{path}-wal")
    data = wal.read_bytes()
    wal.write_bytes(data[:-5000])
    log = logreel.open(path)
    assert rows(log) == named(messages[:80])
    assert any(problem.code == "wal" and problem.lost and problem.size > 5000 for problem in log.problems)
    wal.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    log = logreel.open(path)
    assert rows(log) == named(messages[:40])
    assert [(problem.code, problem.lost) for problem in log.problems] == [("wal", True)]
    wal.write_bytes(b"x" * 100)
    assert rows(logreel.open(path)) == named(messages[:40])


# ------------------------------------------------------------------------------------------------------------ folders


def test_a_split_bag_is_one_log(tmp_path: Path) -> None:
    messages = bag(tmp_path / "drive")
    log = logreel.open(tmp_path / "drive")
    assert rows(log) == named(messages)
    assert (log.problems, log.name, log.format) == ((), str(tmp_path / "drive"), "rosbag2")
    assert log.metadata["rosbag2"]["metadata_version"] == 5
    assert expand([str(tmp_path)]) == [str(tmp_path / "drive")]
    assert rows(logreel.open([tmp_path / "drive"])) == named(messages)


@pytest.mark.parametrize("version", range(1, 10))
def test_all_versions_of_the_metadata_are_read(tmp_path: Path, version: int) -> None:
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "x.db3", walk(10)).close()
    # Early versions had the folder in front of the names.
    name = "b/x.db3" if version < 4 else "x.db3"
    more = "  custom_data:\n    site: north\n  ros_distro: jazzy\n" if version > 7 else ""
    (tmp_path / "b" / "metadata.yaml").write_text(metadata_yaml([name], [6, 4], version, more))
    log = logreel.open(tmp_path / "b")
    assert rows(log) == named(walk(10))
    assert log.problems == ()
    if more:
        assert (log.metadata["custom_data"], log.metadata["ros_distro"]) == ({"site": "north"}, "jazzy")


def test_a_folder_without_usable_metadata_opens_with_a_problem(tmp_path: Path) -> None:
    messages = bag(tmp_path / "drive")
    metadata = tmp_path / "drive" / "metadata.yaml"
    for broken in ("rosbag2_bagfile_information: {", "rosbag2_bagfile_information: &a *a", ""):
        metadata.write_text(broken)
        log = logreel.open(tmp_path / "drive")
        assert rows(log) == named(messages)
        assert [problem.code for problem in log.problems] == ["metadata"]
    metadata.unlink()
    log = logreel.open(tmp_path / "drive")
    assert rows(log) == named(messages)
    assert [problem.text.partition(":")[0] for problem in log.problems] == ["there is no metadata.yaml"]
    with pytest.raises(DamagedError):
        logreel.open(tmp_path / "drive", strict=True)


def test_files_that_metadata_and_folder_do_not_share_are_told(tmp_path: Path) -> None:
    messages = bag(tmp_path / "drive")
    (tmp_path / "drive" / "drive_1.db3").unlink()
    write(tmp_path / "drive" / "other.db3", walk(5)).close()
    log = logreel.open(tmp_path / "drive")
    assert rows(log) == named(messages[:30] + messages[60:])
    told = [(problem.lost, problem.text) for problem in log.problems if problem.code == "metadata"]
    assert told == [
        (True, "'drive_1.db3', which metadata.yaml lists, is not in the folder"),
        (False, "metadata.yaml does not list other.db3: not read as a part"),
    ]


def test_other_folders_with_a_metadata_file_are_no_bags(tmp_path: Path) -> None:
    (tmp_path / "metadata.yaml").write_text("title: pictures\n")
    write(tmp_path / "a.db3", walk(5)).close()
    write(tmp_path / "b.db3", walk(5)).close()
    assert expand([str(tmp_path)]) == [str(tmp_path / "a.db3"), str(tmp_path / "b.db3")]


# ------------------------------------------------------------------------------------------------------------- peers


@pytest.mark.parametrize("mode", ["NONE", "FILE", "MESSAGE"])
def test_bags_of_rosbags_are_read(tmp_path: Path, mode: str) -> None:
    rosbag2 = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    string_type = store.types["std_msgs/msg/String"]
    writer = rosbag2.Writer(tmp_path / "b", version=9)
    if mode != "NONE":
        writer.set_compression(rosbag2.CompressionMode[mode], rosbag2.CompressionFormat.ZSTD)
    payloads = [
        bytes(store.serialize_cdr(string_type("x" * n), "std_msgs/msg/String")) for n in range(0, 9000, 500)
    ]
    with writer:
        topic = writer.add_connection("/a", "std_msgs/msg/String", typestore=store)
        for n, payload in enumerate(payloads):
            writer.write(topic, START + n, payload)
    log = logreel.open(tmp_path / "b")
    assert rows(log) == [("/a", START + n, payload) for n, payload in enumerate(payloads)]
    assert log["/a"][3].decode() == {"data": "x" * 1500}
    assert log.problems == ()


def test_a_cut_compressed_file_has_its_first_messages(tmp_path: Path) -> None:
    from logreel.io import zstd

    (tmp_path / "b").mkdir()
    packed = zstd.compressor(1)(walked())
    (tmp_path / "b" / "b_0.db3.zstd").write_bytes(packed)
    assert rows(logreel.open(tmp_path / "b")) == named(walk())
    (tmp_path / "b" / "b_0.db3.zstd").write_bytes(packed[: len(packed) * 2 // 3])
    log = logreel.open(tmp_path / "b")
    assert {"packed", "truncated"} <= {problem.code for problem in log.problems if problem.lost}
    assert 0 < len(rows(log)) < 200
    (tmp_path / "b" / "b_1.db3").write_bytes(walked())
    (tmp_path / "b" / "b_0.db3.zstd").write_bytes(packed[:20])
    log = logreel.open(tmp_path / "b")
    assert rows(log) == named(walk())
    assert [(problem.code, problem.lost) for problem in log.problems] == [("metadata", False), ("part", True)]


def test_a_damaged_compressed_message_is_told(tmp_path: Path) -> None:
    from logreel.io import zstd

    pack = zstd.compressor(3)
    messages = [(1, START + n, pack(text("y" * 500 + str(n)))) for n in range(4)]
    damaged = bytearray(messages[2][2])
    damaged[-4:] = b"\xff\xff\xff\xff"
    messages[2] = (1, START + 2, bytes(damaged))
    write(tmp_path / "a.db3", messages).close()
    log = logreel.open(tmp_path / "a.db3")
    assert [m.decode()["data"][500:] for m in log["/chatter"][:2]] == ["0", "1"]
    with pytest.raises(LogError):
        log["/chatter"][2].decode()
    assert [(problem.code, problem.lost) for problem in log.problems] == [("payload", True)]


def _same(ours: Any, theirs: Any, fields: dict[str, Any]) -> bool:
    if hasattr(theirs, "__msgtype__"):
        if theirs.__msgtype__ in ("builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration"):
            return bool(ours == theirs.sec * 10**9 + theirs.nanosec)
        names = [name for name, _ in fields[theirs.__msgtype__][1] if name in ours]
        return len(names) == len(ours) and all(
            _same(ours[name], getattr(theirs, name), fields) for name in names
        )
    if isinstance(theirs, np.ndarray):
        values = np.frombuffer(ours, np.uint8) if isinstance(ours, bytes) else np.array(ours)
        # A byte of ROS 2 is unsigned here.
        theirs = theirs.view(np.uint8) if theirs.dtype == np.int8 and (values >= 0).all() else theirs
        return np.array_equal(values, theirs, equal_nan=theirs.dtype.kind == "f")
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            _same(a, b, fields) for a, b in zip(ours, theirs, strict=True)
        )
    return bool(ours == theirs or (ours != ours and theirs != theirs))


@pytest.mark.parametrize("name", ["sqlite3_188_types", "sqlite3_cdr_test", "sqlite3_wbag", "mcap_wbag"])
def test_values_of_real_bags_are_those_of_rosbags(shared: Path, name: str) -> None:
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    folder = shared / "data" / "rosbag2" / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    log = logreel.open(folder)
    with AnyReader([folder], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        theirs = [(c, time, bytes(data)) for c, time, data in reader.messages()]
        ours = list(log.messages())
        assert [(m.channel.topic, m.time, bytes(m.data)) for m in ours] == [
            (c.topic, t, d) for c, t, d in theirs
        ]
        step = 1 + len(ours) // 500
        for message, (connection, _, data) in list(zip(ours, theirs, strict=True))[::step]:
            value = reader.deserialize(data, connection.msgtype)
            assert _same(message.decode(), value, reader.typestore.fielddefs), connection.msgtype
    assert log.problems == ()


def test_events_of_services_are_decoded(shared: Path) -> None:
    events = list[Any]()
    for storage in ("sqlite3", "mcap"):
        folder = shared / "data" / "rosbag2" / f"{storage}_bag_with_topics_and_service_events"
        if not folder.is_dir():
            pytest.skip(f"{folder} is not there")
        log = logreel.open(folder)
        assert log.problems == ()
        events.append([message.decode() for message in log["/test_service1/_service_event"]])
    for values in events:
        assert [value["info"]["event_type"] for value in values] == [0, 3, 0, 3]
        assert [len(value["request"]) + len(value["response"]) for value in values] == [1, 1, 1, 1]


def test_the_definition_of_events_is_made_of_that_of_the_service() -> None:
    definition = "int64 a\n---\nint64 sum\nstd_msgs/Empty e\n" + "=" * 80 + "\nMSG: std_msgs/Empty\n"
    messages = ros2msg.parse(definition, "pkg/srv/Add_Event")
    first = next(iter(messages.values()))
    assert [(f.name, f.type) for f in first.fields] == [
        ("info", "service_msgs/ServiceEventInfo"),
        ("request", "pkg/Add_Request"),
        ("response", "pkg/Add_Response"),
    ]
    assert ros2msg.layout("pkg/srv/Add_Event", definition)


# ------------------------------------------------------------------------------------------------------------- damage


def _read(data: bytes) -> tuple[logreel.Log, list[Row]]:
    log = logreel.open(data, format="rosbag2")
    return log, rows(log)


def test_a_cut_database_has_its_first_messages_and_tells_the_rest() -> None:
    data, every = walked(), rows(logreel.open(walked()))
    known = set(every)
    for size in (*range(1, len(data), len(data) // 25), len(data) - 1, 4096 * 40):
        log, got = _read(data[:size])
        assert {*got} <= known
        assert any(problem.lost for problem in log.problems)
    # A file of the front half has about half of the messages.
    assert len(_read(data[: len(data) // 2])[1]) > 0.4 * len(every)


def test_rows_behind_a_damaged_inner_page_are_found() -> None:
    data = bytearray(walked())
    every = rows(logreel.open(bytes(data)))
    inner = [page for page in range(1, len(data) // 4096) if data[page * 4096] == 5]
    assert inner
    for page in inner:
        data[page * 4096 : page * 4096 + 4096] = bytes(4096)
    log, got = _read(bytes(data))
    assert got == every
    assert {"page", "salvaged"} <= {problem.code for problem in log.problems}


def test_rows_are_found_without_a_schema() -> None:
    data = bytearray(walked())
    data[100:4096] = bytes(3996)
    log, got = _read(bytes(data))
    assert [row[1:] for row in got] == [row[1:] for row in rows(logreel.open(walked()))]
    assert [*log] == ["/chatter", "/foot"]


def test_no_mutation_loses_messages_silently() -> None:
    data, every = walked(), rows(logreel.open(walked()))
    numbers = Counter(topic for topic, _, _ in every)
    rng = random.Random(33)
    for _ in range(60):
        mutant = bytearray(data)
        # Half of the changes are in the heads of pages.
        at = (
            rng.randrange(len(data))
            if rng.random() < 0.3
            else rng.randrange(len(data) // 4096) * 4096 + rng.randrange(40)
        )
        mutant[at] ^= 1 << rng.randrange(8)
        try:
            log, got = _read(bytes(mutant))
        except LogError:
            continue
        if Counter(topic for topic, _, _ in got) != numbers:
            assert any(problem.lost for problem in log.problems), at


def test_check_compares_messages_with_the_index_of_times(tmp_path: Path) -> None:
    """SQLite writes each time twice, so a changed one is noticed although nothing has a checksum."""
    data = walked()
    assert tuple(logreel.open(data).verify()) == ()
    time = (START + 100 * 10**7).to_bytes(8, "big")
    places = [at for at in range(len(data)) if data.startswith(time, at)]
    assert len(places) == 2
    for place in places:
        mutant = bytearray(data)
        mutant[place + 6] ^= 0x40
        log = logreel.open(bytes(mutant))
        assert log.problems == ()
        findings = logreel.check(log).findings
        assert [(f.code, f.severity) for f in findings if f.severity == "error"] == [("index", "error")]
    database = write(tmp_path / "a.db3", walk(30))
    database.execute("DROP INDEX timestamp_idx")
    database.execute("CREATE INDEX timestamp_idx ON messages (timestamp ASC) WHERE id > 5")
    database.close()
    (finding,) = logreel.open(tmp_path / "a.db3").verify()
    assert finding.text == "5 messages are not in the index of times"
    database = sqlite3.connect(tmp_path / "b.db3")
    database.deserialize(data)
    database.execute("DROP INDEX timestamp_idx")
    (finding,) = logreel.open(database.serialize()).verify()
    database.close()
    assert finding.severity == "note"


def test_a_large_index_of_times_is_read_with_its_inner_pages(tmp_path: Path) -> None:
    messages = [(1, START + (n * 7919 % 5000), text("a")) for n in range(5000)]
    write(tmp_path / "a.db3", messages, page=512).close()
    log = logreel.open(tmp_path / "a.db3")
    assert rows(log) == named(messages)
    assert tuple(log.verify()) == ()


def test_a_damaged_bag_is_recovered_as_mcap(tmp_path: Path) -> None:
    data = bytearray(walked())
    data[40 * 4096 : 42 * 4096] = bytes(2 * 4096)
    (tmp_path / "a.db3").write_bytes(data)
    log = logreel.open(tmp_path / "a.db3")
    kept = rows(log)
    assert 150 < len(kept) < 200
    logreel.recover(tmp_path / "a.db3", tmp_path / "a.mcap")
    again = logreel.open(tmp_path / "a.mcap")
    assert Counter(rows(again)) >= Counter(kept)
    assert again["/foot"].metadata["offered_qos_profiles"] == log["/foot"].metadata["offered_qos_profiles"]


# --------------------------------------------------------------------------------------------------------------- YAML


def test_the_yaml_of_recorders_is_read() -> None:
    value = parse(
        "---\na: 'it''s\n\n  two'  # comment\nb: >-\n  x\n  y\nc: |\n  a\n    b\nd: [1, {e: f}, 'g, h']\ni: {}\n"
        'j: plain\n  more\nk: -5\nl: 1.5\nm: ~\nn:\n- 1\n- o: 2\n  p:\n  - 3\n- - 4\nq: "r \\\n  s\\x41\\n"\n'
    )
    assert value == {
        "a": "it's\ntwo",
        "b": "x y",
        "c": "a\n  b\n",
        "d": [1, {"e": "f"}, "g, h"],
        "i": {},
        "j": "plain more",
        "k": -5,
        "l": 1.5,
        "m": None,
        "n": [1, {"o": 2, "p": [3]}, [4]],
        "q": "r sA\n",
    }


@pytest.mark.parametrize(
    "broken",
    [
        "a: &b 1",
        "a: *b",
        "a: !!x 1",
        "a: 'b",
        "a: [1",
        "\ta: 1",
        "a: 1\na: 2",
        "- " * 40 + "a",
        "a: {b",
        "a\nb: 1",
    ],
)
def test_other_yaml_is_refused_with_its_line(broken: str) -> None:
    with pytest.raises(LogError, match="YAML line"):
        parse(broken)


def test_a_text_of_yaml_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.formats.rosbag2 import yaml

    for deep in ("- " * 40 + "a", "[" * 40 + "]" * 40, "\n".join(" " * n + "a:" for n in range(40))):
        with pytest.raises(LogError, match=f"more than {yaml.MAX_DEPTH} deep"):
            parse(deep)
    monkeypatch.setattr(yaml, "MAX_TEXT", 10)
    with pytest.raises(LogError, match="at most 10"):
        parse("a: 123456789")
