"""Bags of ROS 1 as bags of ROS 2 and back: each value is compared, by logreel, by rosbags, and after a mutation."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logreel
from logreel.errors import DefinitionError, LogError, UsageError
from logreel.log.scan import Schema
from logreel.ops.rewrite import proof
from logreel.schemas import ros1msg, ros1to2, ros2msg
from support.harness.cli_runner import Run
from support.oracles.ros1 import random_payload
from support.samples.rosbag.builder import drive

T0 = 1_700_000_000_000_000_000


def bag(path: Path, *channels: tuple[str, str, str, list[Any]]) -> Path:
    """Write channels (topic, type, definition, messages as dicts or bytes) to a bag of ROS 1."""
    with logreel.create(path) as w:
        for topic, name, text, messages in channels:
            number = w.add_channel(topic, Schema(name, "ros1msg", text))
            for n, message in enumerate(messages):
                w.write(number, T0 + n, message)
    return path


def ledgers(done: Any) -> dict[str, proof.Ledger]:
    return {entry.topic: entry for entry in done.ledger}


# ---------------------------------------------------------------------------------------------------------- real bags


def samples(shared: Path) -> list[Path]:
    return sorted((shared / "data" / "rosbag").glob("*.bag"))


def test_no_value_of_real_bags_is_unequal(shared: Path, tmp_path: Path) -> None:
    compared = topics = 0
    for path in samples(shared):
        there = tmp_path / path.stem
        try:
            done = logreel.convert(path, f"{there}/")
        except LogError:
            # Some have no message, or are no bag.
            continue
        for entry in done.ledger:
            assert entry.unequal == 0
            kinds = entry.changed.total() + entry.dropped.total() + entry.equal
            assert (kinds, entry.written) == (entry.values, len(entry.rows))
            assert {name.rpartition(".")[2] for name in entry.dropped} <= {"seq", "frame_id", "topics"}
            compared += entry.values
            topics += 1
        before, after = logreel.open(path), logreel.open(there)
        assert after.problems == ()
        told = [*done.skipped, *(problem.text for problem in before.problems)]
        assert after.message_count == before.message_count or told, path
        if path.stat().st_size > 300_000:
            continue
        back = logreel.convert(there, tmp_path / "back.bag", force=True)
        assert not any(entry.unequal or entry.dropped.total() for entry in back.ledger)
    assert compared > 500_000
    assert topics > 60


def plain(value: Any) -> Any:
    """Return a message of rosbags as dicts, lists and bytes, floats as their bits."""
    if dataclasses.is_dataclass(value):
        # Constants are fields, too.
        names = [f.name for f in dataclasses.fields(value) if f.name[0] != "_" and not f.name.isupper()]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, np.ndarray):
        return value.tobytes() if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, list):
        return [plain(item) for item in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


def by_rules(value: Any, name: str = "") -> Any:
    """Return what a message of ROS 1 is to be in ROS 2, written once more for this test."""
    if isinstance(value, list):
        return [by_rules(item) for item in value]
    if not isinstance(value, dict):
        return value
    if name.endswith("/Log"):
        level = {1: 10, 2: 20, 4: 30, 8: 40, 16: 50}[value["level"]]
        rest = {key: value[key] for key in ("name", "msg", "file", "function", "line")}
        return {"stamp": value["header"]["stamp"], "level": level, **rest}
    made = {key: by_rules(item) for key, item in value.items()}
    if made.keys() == {"seq", "stamp", "frame_id"}:
        del made["seq"]
    return made


def test_rosbags_reads_equal_values_on_both_sides(shared: Path, tmp_path: Path) -> None:
    reader = pytest.importorskip("rosbags.highlevel").AnyReader
    stores = pytest.importorskip("rosbags.typesys")
    humble = stores.get_typestore(stores.Stores.ROS2_HUMBLE)
    count = 0
    for path in samples(shared):
        if not path.name.startswith("v20_") or "dmg" in path.name or "invalid" in path.name:
            continue
        try:
            with reader([path]):
                pass
        except Exception:
            # Not every bag has sound definitions.
            continue
        logreel.convert(path, f"{tmp_path / path.stem}/", count=300)
        with reader([path]) as old, reader([tmp_path / path.stem], default_typestore=humble) as new:
            theirs: dict[tuple[str, int], list[Any]] = {}
            for connection, time, data in old.messages():
                theirs.setdefault((connection.topic.lstrip("/"), time), []).append((connection.msgtype, data))
            for connection, time, data in new.messages():
                name, before = theirs[connection.topic.lstrip("/"), time].pop(0)
                message = plain(new.deserialize(data, connection.msgtype))
                assert message == by_rules(plain(old.deserialize(before, name)), name), connection.topic
                count += 1
    assert count > 1500


# -------------------------------------------------------------------------------------------------------------- rules


IMU = """Header header
geometry_msgs/Quaternion orientation
float64[9] orientation_covariance
geometry_msgs/Vector3 angular_velocity
float64[9] angular_velocity_covariance
geometry_msgs/Vector3 linear_acceleration
float64[9] linear_acceleration_covariance
"""


def test_known_types_get_the_definition_of_ros_2() -> None:
    for name in ("sensor_msgs/Imu", "sensor_msgs/PointCloud2", "nav_msgs/Odometry", "std_msgs/String"):
        made = ros1to2.to_ros2(Schema(name, "ros1msg", ""))
        package, _, rest = name.partition("/")
        assert made.target == Schema(f"{package}/msg/{rest}", "ros2msg", ros2msg.full_text(name, {}))
    names = {
        "rosgraph_msgs/Log": "rcl_interfaces/msg/Log",
        "tf/tfMessage": "tf2_msgs/msg/TFMessage",
        "rosgraph_msgs/Clock": "rosgraph_msgs/msg/Clock",
        "std_msgs/Header": "std_msgs/msg/Header",
    }
    assert {name: ros1to2.to_ros2(Schema(name, "ros1msg", "")).target.name for name in names} == names
    # A standard name with other fields is another type.
    made = ros1to2.to_ros2(Schema("sensor_msgs/Imu", "ros1msg", "float32 x\n"))
    assert (made.target.name, made.target.text) == ("logreel/msg/SensorMsgsImu", "float32 x")


def test_every_known_type_of_ros_1_comes_back() -> None:
    """Types of both, there and back, have the fields that they had."""
    shared, count = set(ros1msg.standard().names()), 0
    for name in sorted(shared)[::5]:
        try:
            there = ros1to2.to_ros2(Schema(name, "ros1msg", ""))
        except DefinitionError:
            continue
        back = ros1to2.to_ros1(there.target)
        assert back.source_layout.root == there.target_layout.root, name
        lost = [pair.source for pair in back.leaves() if pair.target is None]
        if not any(pair.source is None for pair in there.leaves()):
            assert lost == [], name
        count += 1
    assert count > 30


OWN = """# A foot.
byte LEFT=-1
string NAME=it's "left" # not a comment
Header header
byte side
char letter
byte[] bytes
time at
duration[2] spans
Toe[] toes
bool[3] flags
================================================================================
MSG: robot/Toe
float32 force
string[] names
uint8[4] code
uint8[] raw
"""


def own(seq: int = 7) -> dict[str, Any]:
    toe = {"force": math.nan, "names": ["a", "é", ""], "code": [1, 2, 3, 4], "raw": b"\0\xff"}
    return {
        "header": {"seq": seq, "stamp": T0, "frame_id": "foot"},
        "side": -1,
        "letter": 200,
        "bytes": [-128, 0, 127],
        "at": 1_234_567_890,
        "spans": [-1_500_000_000, 2],
        "toes": [toe, {**toe, "names": [], "raw": b""}],
        "flags": [True, False, True],
    }


def test_types_of_others_keep_their_values(tmp_path: Path) -> None:
    path = bag(tmp_path / "a.bag", ("/foot", "robot/Foot", OWN, [own(), own(9)]))
    done = logreel.convert(path, f"{tmp_path}/y/")
    (entry,) = done.ledger
    assert (entry.type, entry.new_type) == ("robot/Foot", "robot/msg/Foot")
    assert (entry.unequal, dict(entry.dropped), dict(entry.changed)) == (0, {"header.seq": 2}, {})
    assert entry.values == entry.equal + 2
    channel = logreel.open(tmp_path / "y")["/foot"]
    text = channel.schema.text
    assert "int8 LEFT=-1" in text
    assert 'string NAME="it\'s \\"left\\" # not a comment"' in text
    assert "robot/Toe[] toes" in text
    message = channel[1].decode()
    assert (message["side"], message["letter"], list(message["bytes"])) == (-1, 200, [-128, 0, 127])
    assert "seq" not in message["header"]
    logreel.convert(tmp_path / "y", tmp_path / "b.bag")
    before, after = logreel.open(path)["/foot"], logreel.open(tmp_path / "b.bag")["/foot"]
    assert after.schema == before.schema
    assert after.metadata["md5sum"] == before.metadata["md5sum"]
    # All but the four bytes of seq.
    assert [bytes(m.data)[4:] for m in after] == [bytes(m.data)[4:] for m in before]
    assert [bytes(m.data)[:4] for m in after] == [bytes(4)] * 2


def test_bytes_and_levels_change_by_rule(tmp_path: Path) -> None:
    definition = "byte OK=0\nbyte level\nstring name\nstring message\nstring hardware_id\nKeyValue[] values\n"
    definition += f"{'=' * 80}\nMSG: diagnostic_msgs/KeyValue\nstring key\nstring value\n"
    status = {"name": "n", "message": "m", "hardware_id": "", "values": []}
    levels = [{"level": level, **status} for level in (-1, 0, 2)]
    log = {"name": "/n", "msg": "x", "file": "", "function": "", "line": 3}
    lines = [
        {"header": {"seq": n, "stamp": T0, "frame_id": ""}, "level": 1 << n, **log, "topics": []}
        for n in range(6)
    ]
    text = ros1msg.full_text("rosgraph_msgs/Log")
    path = bag(
        tmp_path / "a.bag",
        ("/status", "diagnostic_msgs/DiagnosticStatus", definition, levels),
        ("/rosout", "rosgraph_msgs/Log", text, lines),
    )
    done = logreel.convert(path, f"{tmp_path}/y/")
    found = ledgers(done)
    assert dict(found["/status"].changed) == {ros1to2.SIGN: 1}
    assert dict(found["/rosout"].changed) == {ros1to2.LEVEL: 5}
    # Empty fields are no loss.
    assert done.skipped == ()
    new = logreel.open(tmp_path / "y")
    assert [m.decode()["level"] for m in new["/status"]] == [255, 0, 2]
    assert [m.decode()["level"] for m in new["/rosout"]] == [10, 20, 30, 40, 50, 32]
    logreel.convert(tmp_path / "y", tmp_path / "b.bag")
    old = logreel.open(tmp_path / "b.bag")
    assert [m.decode()["level"] for m in old["/status"]] == [-1, 0, 2]
    assert [m.decode()["level"] for m in old["/rosout"]] == [1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("suffix", [".db3", ".bddf"])
def test_files_that_overlap_in_time_keep_their_values(tmp_path: Path, suffix: str) -> None:
    text = ros1msg.full_text("std_msgs/Int32")
    for n in (0, 1):
        with logreel.create(tmp_path / f"{n}.bag") as w:
            channel = w.add_channel("/n", Schema("std_msgs/Int32", "ros1msg", text))
            for i in range(n, 40, 2):
                w.write(channel, T0 + i, {"data": i})
    with logreel.open([tmp_path / "0.bag", tmp_path / "1.bag"], anyway=True) as log:
        logreel.convert(log, tmp_path / f"new{suffix}")
    new = next(ch for ch in logreel.open(tmp_path / f"new{suffix}").channels.values() if len(ch))
    assert new["data"].tolist() == (new.times - new.times[0]).tolist() == [*range(40)]


def test_camera_info_has_small_letters(tmp_path: Path) -> None:
    made = ros1to2.to_ros2(Schema("sensor_msgs/CameraInfo", "ros1msg", ""))
    renamed = {pair.source: pair.target for pair in made.leaves() if pair.source != pair.target}
    assert renamed == {
        ("D",): ("d",),
        ("K",): ("k",),
        ("R",): ("r",),
        ("P",): ("p",),
        ("header", "seq"): None,
    }
    rng = random.Random(1)
    payloads = [random_payload(made.source_layout.root, rng) for _ in range(3)]
    path = bag(tmp_path / "a.bag", ("/info", "sensor_msgs/CameraInfo", "", payloads))
    done = logreel.convert(path, f"{tmp_path}/y/")
    assert done.ledger[0].new_type == "sensor_msgs/msg/CameraInfo"
    before, after = logreel.open(path)["/info"], logreel.open(tmp_path / "y")["/info"]
    assert np.array_equal(before["K"].view(np.uint64), after["k"].view(np.uint64))


def test_latched_topics_are_transient_local(tmp_path: Path) -> None:
    schema = logreel.Schema("std_msgs/String", "ros1msg", "string data\n")
    with logreel.create(tmp_path / "a.bag") as w:
        for topic, latching in (("/map", True), ("/chat", False), ("/tf_static", False)):
            metadata = {"latching": latching, "callerids": ["/a", "/b"] if latching else []}
            w.write(w.add_channel(topic, schema, metadata), 10**18, {"data": topic})
    logreel.convert(tmp_path / "a.bag", f"{tmp_path}/y/")
    reader = pytest.importorskip("rosbags.rosbag2").Reader
    with reader(tmp_path / "y") as found:
        profiles = {c.topic: c.ext.offered_qos_profiles[0] for c in found.connections}
    said = {topic: (p.durability.name, p.reliability.name, p.depth) for topic, p in profiles.items()}
    assert said == {
        "/map": ("TRANSIENT_LOCAL", "RELIABLE", 2),
        "/chat": ("VOLATILE", "RELIABLE", 10),
        "/tf_static": ("TRANSIENT_LOCAL", "RELIABLE", 1),
    }
    logreel.convert(tmp_path / "y", tmp_path / "b.bag")
    log = logreel.open(tmp_path / "b.bag")
    assert [ch.metadata["latching"] for ch in log.channels.values()] == [True, False, False]


def test_text_that_is_not_utf_8_keeps_its_bytes(tmp_path: Path) -> None:
    data = struct.pack("<I", 3) + b"a\xe9\0"
    path = bag(tmp_path / "a.bag", ("/t", "std_msgs/String", "string data\n", [data]))
    done = logreel.convert(path, f"{tmp_path}/y/")
    assert (done.skipped, done.ledger[0].equal) == ((), 1)
    logreel.convert(tmp_path / "y", tmp_path / "b.bag")
    assert bytes(logreel.open(tmp_path / "b.bag")["/t"][0].data) == data


def test_lost_fields_are_told(tmp_path: Path) -> None:
    text = ros1msg.full_text("rosgraph_msgs/Log")
    log = {"name": "/n", "msg": "x", "file": "", "function": "", "line": 3, "topics": ["/a", "/b"]}
    line = {"header": {"seq": 0, "stamp": T0, "frame_id": ""}, "level": 2, **log}
    path = bag(tmp_path / "a.bag", ("/rosout", "rosgraph_msgs/Log", text, [line]))
    done = logreel.convert(path, f"{tmp_path}/y/")
    assert done.skipped == ("channel '/rosout': 2 values of 'topics' left out: ROS 2 has no such field",)
    assert done.ledger[0].dropped["topics"] == 2
    with pytest.raises(logreel.IncompleteOutputError):
        logreel.convert(path, f"{tmp_path}/z/", strict=True)


WORDS = ("bool", "byte", "char", "int8", "uint8", "int16", "uint32", "int64", "float32", "float64", "string")


@st.composite
def definitions(draw: st.DrawFn) -> str:
    """Return a definition of ROS 1 with one inner type."""
    words = st.sampled_from((*WORDS, "time", "duration", "Header", "Inner", "geometry_msgs/Point"))
    brackets = st.sampled_from(("", "", "[]", "[2]"))

    def lines(words: st.SearchStrategy[str]) -> str:
        fields = draw(st.lists(st.tuples(words, brackets), min_size=1, max_size=5))
        return "".join(f"{word}{more} f{n}\n" for n, (word, more) in enumerate(fields))

    head = f"{'=' * 80}\nMSG: "
    inner = lines(st.sampled_from((*WORDS, "time")))
    return (
        f"{lines(words)}{head}own/Inner\n{inner}{head}std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"
        f"{head}geometry_msgs/Point\nfloat64 x\nfloat64 y\nfloat64 z\n"
    )


def without_seq(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_seq(item) for name, item in value.items() if name != "seq"}
    return [without_seq(item) for item in value] if isinstance(value, list) else value


@settings(max_examples=8)
@given(text=definitions(), seed=st.integers(0, 2**32))
def test_generated_messages_come_back(text: str, seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("g")
    node, rng = ros1msg.layout(ros1msg.parse(text, "own/Outer")).root, random.Random(seed)
    path = bag(folder / "a.bag", ("/t", "own/Outer", text, [random_payload(node, rng) for _ in range(4)]))
    done = logreel.convert(path, f"{folder}/y/")
    again = logreel.convert(folder / "y", folder / "b.bag")
    for entry in (*done.ledger, *again.ledger):
        assert (entry.unequal, entry.messages) == (0, 4)
    before, after = logreel.open(path)["/t"], logreel.open(folder / "b.bag")["/t"]
    assert after.schema == before.schema
    pairs = [
        (repr(without_seq(a.decode())), repr(without_seq(b.decode())))
        for a, b in zip(before, after, strict=True)
    ]
    assert all(a == b for a, b in pairs)


# -------------------------------------------------------------------------------------------------- finding differences


def test_a_wrong_conversion_is_no_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever columns become on the way: the comparison does not use that code."""
    path = tmp_path / "a.bag"
    path.write_bytes(drive(1.0))
    right = ros1to2.Conversion.columns

    def wrong(self: ros1to2.Conversion, columns: Any) -> Any:
        made = right(self, columns)
        for n, column in enumerate(made):
            if column.type == "float64" or (
                column.data is not None and column.offsets is None and len(column)
            ):
                data = column.values.copy()
                data.view(np.uint8)[-1] ^= 1
                made[n] = (
                    dataclasses.replace(column, data=data) if dataclasses.is_dataclass(column) else column
                )
                break
        return made

    logreel.convert(path, f"{tmp_path}/right/")
    monkeypatch.setattr(ros1to2.Conversion, "columns", wrong)
    with pytest.raises(LogError, match="read differently from the new log"):
        logreel.convert(path, f"{tmp_path}/y/")
    assert not (tmp_path / "y").exists()
    logreel.convert(path, f"{tmp_path}/y/", verify=False)
    assert logreel.convert(path, f"{tmp_path}/z/", verify=False).ledger == ()


def mutants(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each payload of a database with one bit turned."""
    database = sqlite3.connect(path)
    for number, data in database.execute("SELECT id,data FROM messages").fetchall():
        for at in range(4, len(data), 5):
            yield number, data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
    database.close()


def test_each_changed_byte_is_found(tmp_path: Path, run: Run) -> None:
    point = {
        "header": {"seq": 1, "stamp": T0, "frame_id": "map"},
        "point": {"x": 1.5, "y": -0.0, "z": math.nan},
    }
    text = ros1msg.full_text("geometry_msgs/PointStamped")
    path = bag(tmp_path / "a.bag", ("/p", "geometry_msgs/PointStamped", text, [point, point]))
    logreel.convert(path, f"{tmp_path}/y/", manifest=tmp_path / "y.json")
    new = tmp_path / "y" / "y_0.db3"
    whole, count, missed = new.read_bytes(), 0, 0
    for number, data in mutants(new):
        database = sqlite3.connect(new)
        database.execute("UPDATE messages SET data=? WHERE id=?", (data, number))
        database.commit()
        database.close()
        done = logreel.verify(tmp_path / "y.json", values=True)
        assert [file.state for file in done.files] == ["same", "same", "changed"]
        # Bytes between two fields hold nothing.
        missed += not any(entry.unequal for entry in done.ledger)
        count += 1
        new.write_bytes(whole)
    assert count > 10
    assert missed <= count // 4
    assert logreel.verify(tmp_path / "y.json", values=True).is_good


# ------------------------------------------------------------------------------------------------------------ manifest


def test_a_manifest_says_what_happened(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(drive(1.0))
    manifest = tmp_path / "y.json"
    done = run("convert", path, f"{tmp_path}/y/", "--manifest", manifest, "-t", "/imu")
    assert done.code == 0, done.err
    assert "read back and compared" in done.err
    stated = json.loads(manifest.read_text())
    assert [file["path"] for file in stated["outputs"]] == ["y/metadata.yaml", "y/y_0.db3"]
    assert [file["path"] for file in stated["sources"]] == ["a.bag"]
    assert stated["ledger"][0]["topic"] == "/imu"
    assert run("verify", manifest).code == 0
    answer = json.loads(run("verify", manifest, "--values", "--json").out)
    assert (answer["good"], answer["ledger"][0]["unequal"]) == (True, 0)
    assert answer["ledger"][0]["values"] == stated["ledger"][0]["values"]
    with (tmp_path / "y" / "metadata.yaml").open("a") as file:
        file.write("# more\n")
    done = run("verify", manifest)
    assert (done.code, "changed" in done.out) == (4, True)
    path.unlink()
    done = run("verify", manifest, "--values")
    assert (done.code, "missing" in done.out) == (4, True)
    (tmp_path / "bad.json").write_text("{}")
    assert run("verify", tmp_path / "bad.json").code == 1


def test_a_manifest_of_tables_has_digests(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(drive(1.0))
    logreel.convert(path, f"{tmp_path}/x.csv/", manifest=tmp_path / "x.json")
    assert logreel.verify(tmp_path / "x.json").is_good
    with pytest.raises(LogError, match="exists already"):
        logreel.convert(path, f"{tmp_path}/z.csv/", manifest=tmp_path / "x.json")
    assert not (tmp_path / "z.csv").exists()
    with pytest.raises(UsageError, match="beside the output"):
        logreel.convert(path, f"{tmp_path}/z.csv/", manifest=tmp_path / "z.csv" / "x.json")


def test_the_answer_has_the_ledger(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(drive(1.0))
    answer = json.loads(run("convert", path, f"{tmp_path}/y/", "--json").out)
    (imu,) = [entry for entry in answer["ledger"] if entry["topic"] == "/imu"]
    assert imu["values"] == imu["equal"] + sum(imu["dropped"].values())
    answer = json.loads(run("convert", path, f"{tmp_path}/z/", "--json", "--no-verify").out)
    assert answer["ledger"] == []
