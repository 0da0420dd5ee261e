"""Writing of bags of version 2.0: other readers read the same messages, invalid input is refused."""

from __future__ import annotations

import pickle
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.formats.rosbag import writer as writer_v2
from logreel.schemas.ros1msg import full_text
from support.oracles import rosbag as bag_oracle
from support.oracles.genuine_rosbag import SYSTEM, genuine

START = 1_700_000_000 * 10**9
STRING = logreel.Schema("std_msgs/String", "ros1msg", "string data\n")
ODOM = logreel.Schema("nav_msgs/Odometry", "ros1msg", "")
IMU = logreel.Schema("sensor_msgs/Imu", "ros1msg", full_text("sensor_msgs/Imu"))
#: Not a standard type: there is a checksum and no definition.
SECRET = logreel.Schema("secret_msgs/Thing", "ros1msg", "")
MD5 = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba98765432100123456789abcdef"
PROGRAM = [SYSTEM, "-c", "import rosbag; rosbag.rosbagmain()"]
_SCRIPT = """
import pickle, sys
import rosbag
bag = rosbag.Bag(sys.argv[1])
rows = [(t, kind, md5, stamp.to_nsec(), bytes(data)) for t, (kind, data, md5, *_), stamp in bag.read_messages(raw=True)]
known = [(c.id, c.topic, {k: bytes(v) if isinstance(v, bytes) else v for k, v in c.header.items()})
         for c in bag._get_connections()]
sys.stdout.buffer.write(pickle.dumps((rows, known, bag.get_compression_info().compression), 2))
"""


def string(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


def given(n: int = 3000) -> list[tuple[int, int, bytes]]:
    """Return messages of channels 0 to 3, some with a time before that of the previous one."""
    rng = np.random.default_rng(5)
    payloads = [string("x" * 40), bytes(720), bytes(324), rng.bytes(100)]
    return [
        (k, START + i * 10**6 - 5 * 10**7 * (i % 7 == 3), payloads[k])
        for i, k in enumerate(rng.integers(0, 4, n).tolist())
    ]


TOPICS = ["/chatter", "/odom", "/a b//imu", "secret"]


def write(path: Path, **options: Any) -> list[tuple[str, str, str, int, bytes]]:
    """Write a bag of several chunks; return the messages as other readers report them."""
    with logreel.create(path, chunk_bytes=200_000, flush_every=None, **options) as w:
        w.add_channel("/chatter", STRING, {"callerids": ["/talker"], "latching": True})
        w.add_channel("/odom", ODOM)
        w.add_channel("/a b//imu", IMU)
        w.add_channel("secret", SECRET, {"md5sum": MD5})
        for k, time, data in given():
            w.write(k, time, data)
    md5 = {ch.topic: ch.metadata["md5sum"] for ch in logreel.open(path).channels.values()}
    kinds = [s.name for s in (STRING, ODOM, IMU, SECRET)]
    return [(TOPICS[k], kinds[k], md5[TOPICS[k]], time, data) for k, time, data in given()]


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_written_messages_are_read_by_logreel_and_rosbags(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.bag"
    due = write(path, compression=compression)
    log = logreel.open(path)
    assert not log.problems
    assert log.metadata["chunks"] > 3
    assert log.metadata["compression"] == [compression]
    assert log.metadata["indexed"]
    found = [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")]
    assert found == [(topic, time, data) for topic, _, _, time, data in due]
    plain = bag_oracle.read(path.read_bytes())
    assert not plain.lost
    assert [(m.topic, m.type, m.md5, m.time, m.payload) for m in plain.messages] == due
    rosbags = pytest.importorskip("rosbags.rosbag1", reason="rosbags is not installed")
    with rosbags.Reader(path) as reader:
        rows = [(c.topic, c.digest, time, bytes(data)) for c, time, data in reader.messages()]
    # That library tidies topic names.
    assert sorted(rows) == sorted((t.replace("//", "/"), md5, time, data) for t, _, md5, time, data in due)


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_genuine_rosbag_reads_and_checks_a_written_bag(tmp_path: Path, compression: str) -> None:
    genuine()
    path = tmp_path / "a.bag"
    due = write(path, compression=compression)
    done = subprocess.run([SYSTEM, "-c", _SCRIPT, str(path)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    rows, known, packed = pickle.loads(done.stdout)  # noqa: S301
    assert sorted(rows) == sorted(due)
    assert packed == compression
    assert [(number, topic) for number, topic, _ in known] == list(enumerate(TOPICS))
    assert known[0][2]["callerid"] in (b"/talker", "/talker")
    assert known[0][2]["latching"] in (b"1", "1")
    info = subprocess.run([*PROGRAM, "info", str(path)], capture_output=True, text=True, timeout=120)
    assert info.returncode == 0, info.stderr
    assert re.search(r"messages: +3000\n", info.stdout)
    assert info.stdout.count(": nav_msgs/Odometry") == 1


@pytest.mark.parametrize("kind", ["rosgraph_msgs/Log", "nav_msgs/Odometry"])
def test_genuine_rosbag_checks_a_written_bag(tmp_path: Path, kind: str) -> None:
    package, _, name = kind.partition("/")
    genuine(package)
    path = tmp_path / "own.bag"
    # Types are compared by their text, comments included.
    ask = [SYSTEM, "-c", f"from {package}.msg import {name} as o; print(o._full_text, end='')"]
    text = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    with logreel.create(path) as w:
        w.write(w.add_channel("/topic", logreel.Schema(kind, "ros1msg", text)), START, {})
    check = subprocess.run([*PROGRAM, "check", str(path)], capture_output=True, text=True, timeout=120)
    assert check.returncode == 0, check.stdout + check.stderr
    assert "does not need any migrations" in check.stdout


def test_single_messages_and_batches_give_the_same_bytes(tmp_path: Path) -> None:
    single, many = tmp_path / "single.bag", tmp_path / "many.bag"
    write(single)
    rows = given()
    size = np.array([len(data) for _, _, data in rows])
    with logreel.create(many, chunk_bytes=200_000, flush_every=None) as w:
        w.add_channel("/chatter", STRING, {"callerids": ["/talker"], "latching": True})
        w.add_channel("/odom", ODOM)
        w.add_channel("/a b//imu", IMU)
        w.add_channel("secret", SECRET, {"md5sum": MD5})
        w.write_many(
            np.array([k for k, _, _ in rows], np.int32),
            np.array([time for _, time, _ in rows]),
            np.frombuffer(b"".join(data for _, _, data in rows), np.uint8),
            np.cumsum(size) - size,
            size,
        )
    assert many.read_bytes() == single.read_bytes()


def test_small_and_large_messages_keep_their_order(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    texts = [str(i) * (1 if i % 3 else 700_000) for i in range(9)]
    with logreel.create(path, compression="lz4") as w:
        channel = w.add_channel("/chatter", STRING)
        for i, text in enumerate(texts):
            w.write(channel, START + i, string(text))
    assert [m.decode()["data"] for m in logreel.open(path).messages(order="file")] == texts


def test_chunk_is_closed_by_the_message_that_exceeds_its_size(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path, chunk_bytes=1) as w:
        channel = w.add_channel("/chatter", STRING)
        for i in range(5):
            w.write(channel, START + i, string("x"))
    assert logreel.open(path).metadata["chunks"] == 5


def test_channels_of_one_topic_are_written(tmp_path: Path) -> None:
    """A topic with two checksums, two latching publishers, and a channel without messages."""
    path, copy = tmp_path / "a.bag", tmp_path / "b.bag"
    with logreel.create(path) as w:
        one = w.add_channel("/tf", SECRET, {"md5sum": MD5, "callerids": ["/a", "/b"], "latching": True})
        two = w.add_channel("/tf[1]", SECRET, {"md5sum": OTHER, "topic": "/tf"})
        w.add_channel("/silent", STRING)
        literal = w.add_channel("/array[1]", STRING)
        for i in range(9):
            w.write((one, two, literal)[i % 3], START + i, b"12345678")
    log = logreel.open(path)
    assert list(log.channels) == ["/tf", "/tf[1]", "/silent", "/array[1]"]
    assert [len(ch) for ch in log.channels.values()] == [3, 3, 0, 3]
    metadata = log["/tf"].metadata
    assert (metadata["callerids"], metadata["latching"], metadata["connections"]) == (["/a", "/b"], True, 2)
    assert log["/tf[1]"].metadata["topic"] == "/tf"
    assert log["/tf[1]"].metadata["md5sum"] == OTHER
    assert {c.topic for c in bag_oracle.read(path.read_bytes()).connections} == {
        "/tf",
        "/silent",
        "/array[1]",
    }
    with logreel.create(copy) as w:
        for ch in log.channels.values():
            w.add_channel(ch.topic, ch.schema, ch.metadata)
        for m in log.messages():
            w.write(m.channel.number, m.time, m.data)
    assert copy.read_bytes() == path.read_bytes()
    with logreel.create(tmp_path / "c.bag") as w:
        w.write(w.add_channel("/renamed", SECRET, log["/tf[1]"].metadata), START, b"1")
    assert list(logreel.open(tmp_path / "c.bag").channels) == ["/renamed"]


def test_definitions_and_checksums_are_completed(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path) as w:
        w.write(w.add_channel("/standard", ODOM), START, {"child_frame_id": "base"})
        lying = w.add_channel("/lying", STRING, {"md5sum": MD5})
        w.write(lying, START, {"data": "stated checksums are kept"})
        raw = w.add_channel("/raw", SECRET, {"md5sum": MD5})
        w.write(raw, START, b"abc")
        with pytest.raises(logreel.DefinitionError, match="no definition"):
            w.write(raw, START, {"x": 1})
        with pytest.raises(logreel.DefinitionError, match="secret_msgs/Thing"):
            w.add_channel("/unknown", SECRET)
    log = logreel.open(path)
    assert log["/standard"].schema.text == full_text("nav_msgs/Odometry")
    assert log["/standard"].metadata["md5sum"] == "cd5e73d190d741a2f92e81eda573aca7"
    assert [m.decode() for m in log.messages("/lying")] == [{"data": "stated checksums are kept"}]
    assert log["/lying"].metadata["md5sum"] == log["/raw"].metadata["md5sum"] == MD5
    assert [bytes(m.data) for m in log.messages("/raw")] == [b"abc"]


BAD_CHANNELS = {
    "encoding": ("/a", logreel.Schema("std_msgs/String", "ulog", ""), {}, "ros1msg"),
    "empty": ("", STRING, {}, "printable"),
    "newline": ("/a\n/b", STRING, {}, "printable"),
    "surrogate": ("/\ud800", STRING, {}, "printable"),
    "type": ("/a", logreel.Schema("std_msgs/msg/String", "ros1msg", "string data"), {}, "package/Name"),
    "md5": ("/a", STRING, {"md5sum": "1234"}, "32 digits"),
    "header": ("/a", STRING, {"headers": [{"a=b": "c"}]}, "'='"),
    "header text": ("/a", STRING, {"callerids": ["\ud800"]}, "no text"),
    "headers": ("/a", STRING, {"headers": ["callerid"]}, "a dict"),
    "grammar": ("/a", logreel.Schema("a/B", "ros1msg", "nonsense\n"), {}, "nonsense"),
}


@pytest.mark.parametrize("version", ["2.0", "1.2", "1.1"])
def test_invalid_channels_and_messages_are_refused_and_the_file_stays_valid(
    tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logreel.formats.rosbag.writer.BagWriter.largest", 1000)
    path, times = tmp_path / "a.bag", np.array([START, -1])
    with logreel.create(path, version=version) as w:
        channel = w.add_channel("/chatter", STRING)
        w.write(channel, START, string("first"))
        for topic, schema, metadata, match in BAD_CHANNELS.values():
            with pytest.raises(logreel.LogError, match=match):
                w.add_channel(topic, schema, metadata)
        for time in (-1, 10**9 << 32, 1 << 70):
            with pytest.raises(logreel.UsageError, match="holds 0 to"):
                w.write(channel, time, string("bad"))
        with pytest.raises(logreel.UsageError, match="1001 bytes"):
            w.write(channel, START, bytes(1001))
        start = size = np.zeros(2, np.int64)
        with pytest.raises(logreel.UsageError, match="holds 0 to"):
            w.write_many(start.astype(np.int32), times, np.zeros(0, np.uint8), start, size)
        w.write(channel, 0xF0000000 * 10**9 + 10**9 - 1, string("last"))
    log = logreel.open(path)
    assert not log.problems
    assert [m.decode()["data"] for m in log.messages()] == ["first", "last"]


def test_invalid_options_are_refused(tmp_path: Path) -> None:
    bad = [
        {"version": "0.9"},
        {"version": "1.2", "compression": "bz2"},
        {"compression": "zip"},
        {"chunk_bytes": 0},
        {"chunk_bytes": writer_v2.LARGEST + 1},
    ]
    for options in bad:
        with pytest.raises(logreel.UsageError):
            logreel.create(tmp_path / "a.bag", **options)
    assert list(tmp_path.iterdir()) == []


def test_genuine_rosbag_reindexes_an_unfinished_bag(tmp_path: Path) -> None:
    genuine()
    path = tmp_path / "a.bag"
    with logreel.create(path, compression="lz4", flush_every=None) as w:
        channel = w.add_channel("/chatter", STRING)
        for i in range(300):
            w.write(channel, START + i, string(str(i)))
            if i % 100 == 99:
                w.flush()
        w.leave()
    unfinished = tmp_path / "b.bag"
    unfinished.write_bytes((tmp_path / "a.bag.active").read_bytes())
    program = [*PROGRAM, "reindex", "-q", str(unfinished)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    log = logreel.open(unfinished)
    assert log.metadata["indexed"]
    assert [m.decode()["data"] for m in log.messages()] == [str(i) for i in range(300)]
