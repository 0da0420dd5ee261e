"""Continuing of bags: old records stay byte for byte, other readers find old and new messages, the rest is refused."""

from __future__ import annotations

import hashlib
import pickle
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from logreel.formats.rosbag.records import read_record
from logreel.formats.rosbag.writer import MAGIC
from logreel.io.source import Source
from logreel.schemas.ros1msg import full_text
from support.builders.bag_variants import ODD, SYNTHETIC
from support.oracles import rosbag as bag_oracle
from support.oracles.genuine_rosbag import SYSTEM, genuine
from support.samples.rosbag.builder import Builder, few, version_2_0

START = 1_700_000_000 * 10**9
STRING = logreel.Schema("std_msgs/String", "ros1msg", "string data\n")
ODOM = logreel.Schema("nav_msgs/Odometry", "ros1msg", "")
IMU = logreel.Schema("sensor_msgs/Imu", "ros1msg", full_text("sensor_msgs/Imu"))
FOLDER = SHARED / "data" / "rosbag"
VARIANTS = SYNTHETIC | ODD
SAMPLES = sorted(path.name for path in FOLDER.glob("*.bag"))
Row = tuple[str, int, bytes]

_READ = """
import pickle, sys
import rosbag
def read(path):
    try:
        bag = rosbag.Bag(path)
        rows = [(t, kind, md5, stamp.to_nsec(), bytes(data))
                for t, (kind, data, md5, *_), stamp in bag.read_messages(raw=True)]
        return rows, [(c.id, c.topic, c.datatype) for c in bag._get_connections()], bag.get_message_count()
    except Exception as error:
        return repr(error)
sys.stdout.buffer.write(pickle.dumps([read(path) for path in sys.argv[1:]], 2))
"""
_APPEND = """
import sys
import genpy, rosbag
from std_msgs.msg import String
with rosbag.Bag(sys.argv[1], "a") as bag:
    for i in range(50):
        for topic in ("/chatter", "/new"):
            bag.write(topic, String("more %d" % i), genpy.Time(1700001000 + i))
"""


def rows(path: Path) -> list[Row]:
    return [(m.channel.topic, m.time, bytes(m.data)) for m in logreel.open(path).messages(order="file")]


def write(path: Path, n: int = 2000, **options: Any) -> None:
    """Write a bag with several chunks; the channel ``/unused`` has no messages."""
    with logreel.create(path, flush_every=None, **options) as w:
        chatter = w.add_channel("/chatter", STRING, {"callerids": ["/talker"], "latching": True})
        w.add_channel("/unused", IMU)
        odom = w.add_channel("/odom", ODOM)
        for i in range(n):
            w.write(odom if i % 3 else chatter, START + i * 10**6, {} if i % 3 else {"data": f"old {i}"})


def extend(path: Path, n: int = 100, **options: Any) -> list[Row]:
    """Append to channels of the bag and to a new one; return the new messages."""
    new = []
    with logreel.create(path, mode="a", flush_every=None, **options) as w:
        for topic in ("/new", "/chatter", "/unused"):
            number = w.add_channel(topic, IMU if topic == "/unused" else STRING)
            for i in range(n):
                time = START + 10**12 + i * 10**9
                w.write(number, time, bytes(324) if topic == "/unused" else {"data": f"{topic} {i}"})
                new.append((topic, time, bytes(324) if topic == "/unused" else _string(f"{topic} {i}")))
    return new


def _string(text: str) -> bytes:
    return len(text).to_bytes(4, "little") + text.encode()


def by_genuine(*paths: Path) -> list[Any]:
    """Return messages, connections and number of messages of each bag, or a text if it cannot be read."""
    done = subprocess.run([SYSTEM, "-c", _READ, *map(str, paths)], capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    return pickle.loads(done.stdout)  # type: ignore[no-any-return]  # noqa: S301


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_old_chunks_stay_and_new_ones_have_their_compression(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.bag"
    write(path, compression=compression, chunk_bytes=200_000)
    old, log, data = rows(path), logreel.open(path), path.read_bytes()
    summary = read_record(Source.open(data), len(MAGIC), len(data)).u32(b"index_pos")
    new = extend(path)
    after = logreel.open(path)
    assert not after.problems
    assert after.metadata["indexed"]
    assert after.metadata["compression"] == [compression]
    assert after.metadata["chunks"] == log.metadata["chunks"] + 1
    assert rows(path) == old + new
    assert not after.verify()
    # Everything but the header is where it was.
    begin = len(MAGIC) + 4096
    assert path.read_bytes()[begin:summary] == data[begin:summary]
    plain = bag_oracle.read(path.read_bytes())
    assert not plain.lost
    assert [(m.topic, m.time, m.payload) for m in plain.messages] == old + new


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_genuine_rosbag_and_rosbags_read_a_continued_bag(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.bag"
    write(path, compression=compression, chunk_bytes=200_000)
    old = rows(path)
    due = sorted(old + extend(path) + extend(path, 10))
    rosbags = pytest.importorskip("rosbags.rosbag1", reason="rosbags is not installed")
    with rosbags.Reader(path) as reader:
        assert sorted((c.topic, time, bytes(data)) for c, time, data in reader.messages()) == due
        assert len(reader.connections) == 4
    genuine()
    ((found, known, count),) = by_genuine(path)
    assert sorted((topic, time, data) for topic, _, _, time, data in found) == due
    assert count == len(due)
    assert [(number, topic) for number, topic, _ in known] == list(
        enumerate(["/chatter", "/unused", "/odom", "/new"])
    )
    info = subprocess.run(
        [SYSTEM, "-c", "import rosbag; rosbag.rosbagmain()", "info", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert info.returncode == 0, info.stderr
    assert re.search(rf"messages: +{len(due)}\n", info.stdout)


def test_genuine_check_accepts_a_continued_bag(tmp_path: Path) -> None:
    genuine("rosgraph_msgs")
    path = tmp_path / "a.bag"
    ask = [SYSTEM, "-c", "from rosgraph_msgs.msg import Log as o; print(o._full_text, end='')"]
    text = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    schema = logreel.Schema("rosgraph_msgs/Log", "ros1msg", text)
    for mode in ("w", "a"):
        with logreel.create(path, mode=mode) as w:
            w.write(w.add_channel("/rosout", schema), START, {"msg": mode})
    check = subprocess.run(
        [SYSTEM, "-c", "import rosbag; rosbag.rosbagmain()", "check", str(path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert check.returncode == 0, check.stdout + check.stderr
    assert len(logreel.open(path)["/rosout"]) == 2


def test_content_is_that_of_genuine_append(tmp_path: Path) -> None:
    genuine("std_msgs")
    mine, theirs = tmp_path / "mine.bag", tmp_path / "theirs.bag"
    # With a connection that has no messages, genuine rosbag gives the next one the number of another.
    with logreel.create(mine, compression="lz4") as w:
        for topic in ("/odom", "/chatter"):
            number = w.add_channel(topic, ODOM if topic == "/odom" else STRING)
            for i in range(100):
                w.write(number, START + i, {})
    theirs.write_bytes(mine.read_bytes())
    done = subprocess.run([SYSTEM, "-c", _APPEND, str(theirs)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    with logreel.create(mine, mode="a") as w:
        known = [w.add_channel(topic, STRING) for topic in ("/chatter", "/new")]
        for i in range(50):
            for number in known:
                w.write(number, (1700001000 + i) * 10**9, {"data": f"more {i}"})
    assert rows(mine) == rows(theirs)
    ours, genuine_log = logreel.open(mine), logreel.open(theirs)
    assert ours.metadata["compression"] == ["lz4"]
    # Genuine rosbag appends without compression unless it is told to compress.
    for topic, ch in ours.channels.items():
        assert (ch.schema.name, ch.metadata["md5sum"]) == (
            genuine_log[topic].schema.name,
            genuine_log[topic].metadata["md5sum"],
        )
    (found, known, _), (other, known_there, _) = by_genuine(mine, theirs)
    assert sorted(found) == sorted(other)
    # Genuine rosbag adds a connection, since it does not remember those of the bag.
    assert {one[1:] for one in known} == {one[1:] for one in known_there}
    assert [number for number, *_ in known] == [0, 1, 2]


def test_bag_of_genuine_append_is_continued(tmp_path: Path) -> None:
    genuine("std_msgs")
    path = tmp_path / "a.bag"
    write(path)
    subprocess.run([SYSTEM, "-c", _APPEND, str(path)], check=True, capture_output=True, timeout=120)
    old = rows(path)
    due = old + extend(path)
    assert rows(path) == due
    assert sorted(due) == sorted((topic, time, data) for topic, _, _, time, data in by_genuine(path)[0][0])


def test_each_message_keeps_its_connection(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    callers = [f"/node{n}" for n in range(3)]
    with logreel.create(path) as w:
        w.add_channel("/first", STRING)
        number = w.add_channel("/many", STRING, {"callerids": callers})
        _write_turns(w, number, [2, 0, 1, 1])
    with logreel.create(path, mode="a") as w:
        _write_turns(w, w.add_channel("/many", STRING), [1, 2, 0, 0, 2])
    log = logreel.open(path)
    ch = log["/many"]
    assert log.index.side_column(ch.number, "connection").tolist() == [2, 0, 1, 1, 1, 2, 0, 0, 2]
    assert [one["callerid"] for one in ch.metadata["headers"]] == callers


def _write_turns(w: logreel.Writer, number: int, turns: list[int]) -> None:
    import numpy as np

    n = len(turns)
    data = np.frombuffer(_string("x") * n, np.uint8)
    start, size = np.arange(n) * 5, np.full(n, 5)
    side = np.array(turns, np.int64).reshape(-1, 1)
    w.write_many(np.full(n, number, np.int32), np.full(n, START), data, start, size, side)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_variant_is_continued_or_refused_unchanged(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(VARIANTS[name]())
    continue_or_refuse(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_is_continued_or_refused_unchanged(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes((FOLDER / name).read_bytes())
    continued = continue_or_refuse(path)
    log = logreel.open(FOLDER / name)
    assert continued == (
        log.version in ("1.1", "1.2", "2.0") and not any(p.lost or p.code == "index" for p in log.problems)
    )


def test_other_readers_read_continued_samples(tmp_path: Path) -> None:
    names = [
        name
        for name in SAMPLES
        if name.startswith("v20_") and not any(p.lost for p in logreel.open(FOLDER / name).problems)
    ]
    if not names:
        pytest.skip(f"no sample bags at {FOLDER}; set LOGREEL_SHARED")
    rosbags = pytest.importorskip("rosbags.rosbag1", reason="rosbags is not installed")
    new, due = [], []
    for name in names:
        (tmp_path / name).mkdir()
        new.append(tmp_path / name / name)
        new[-1].write_bytes((FOLDER / name).read_bytes())
        assert continue_or_refuse(new[-1])
        due.append(sorted((topic.partition("[")[0], time, data) for topic, time, data in rows(new[-1])))
    read = 0
    for path, name, messages in zip(new, names, due, strict=True):
        try:
            _by_rosbags(rosbags, FOLDER / name)
        except Exception:
            continue
        assert sorted(_by_rosbags(rosbags, path)) == messages, name
        read += 1
    assert read > len(names) // 2
    genuine()
    before, after = by_genuine(*(FOLDER / name for name in names)), by_genuine(*new)
    for name, old, found, messages in zip(names, before, after, due, strict=True):
        if not isinstance(old, str):
            assert not isinstance(found, str), (name, found)
            assert sorted((topic, time, data) for topic, _, _, time, data in found[0]) == messages, name
    assert sum(isinstance(old, str) for old in before) < len(names) // 2


def continue_or_refuse(path: Path) -> bool:
    """Append to a bag and compare old messages, or check that it stays as it is; return whether it was continued."""
    data, log, old = path.read_bytes(), logreel.open(path), rows(path)
    end = max(log.end or 0, START) + 10**9
    refused = ""
    try:
        with logreel.create(path, mode="a") as w:
            for ch in list(log.channels.values()):
                number = w.add_channel(ch.topic, ch.schema, ch.metadata)
                w.write(number, end, b"\x01\0\0\0x")
            w.write(w.add_channel("/appended", STRING), end + 1, {"data": "new"})
    except logreel.LogError as error:
        refused = str(error)
    if refused:
        assert re.search(r"logreel\.(recover|slice)", refused), refused
        assert path.read_bytes() == data
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        return False
    after = logreel.open(path)
    assert digest(rows(path)[: len(old)]) == digest(old)
    assert rows(path)[len(old) :] == [
        *((topic, end, b"\x01\0\0\0x") for topic in log.channels),
        ("/appended", end + 1, _string("new")),
    ]
    before = {(p.code, p.text) for p in log.problems if p.code != "zeros"}
    assert {(p.code, p.text) for p in after.problems} == before
    assert not after.verify()
    assert after.version == log.version
    for topic, ch in log.channels.items():
        assert after[topic].schema.name == ch.schema.name
        # A second type of a topic, or a missing definition, is declared with its standard definition.
        assert after[topic].schema.text == (ch.schema.text or after[topic].schema.text)
        assert after[topic].metadata == ch.metadata
    return True


def digest(found: list[Row]) -> str:
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _by_rosbags(rosbags: Any, path: Path) -> list[Row]:
    with rosbags.Reader(path) as reader:
        return [(c.topic, time, bytes(data)) for c, time, data in reader.messages()]


@pytest.mark.parametrize(
    "options", [{"version": "1.1"}, {"version": "1.2"}, {"version": "1.2", "indexed": False}]
)
def test_old_versions_are_continued(tmp_path: Path, options: dict[str, Any]) -> None:
    path, whole = tmp_path / "a.bag", tmp_path / "whole.bag"

    def give(w: logreel.Writer, numbers: range) -> None:
        known = {t: w.add_channel(t, STRING) for t in ("/a", "/b", *(("/c",) if numbers.stop > 300 else ()))}
        for i in numbers:
            topic = ("/a", "/b", "/c")[i % 3] if i >= 300 else "/a"
            w.write(known[topic], START + i * 10**6, {"data": f"{topic} {i}"})

    with logreel.create(path, **options) as w:
        give(w, range(300))
    old, data = rows(path), path.read_bytes()
    with logreel.create(path, mode="a") as w:
        give(w, range(300, 600))
    with logreel.create(whole, **options) as w:
        give(w, range(300))
        give_more(w, range(300, 600))
    log = logreel.open(path)
    assert (log.version, log.problems, list(log.verify())) == (options["version"], (), [])
    assert rows(path)[:300] == old
    assert rows(path) == rows(whole)
    if options["version"] == "1.1":
        assert path.read_bytes()[: len(data)] == data
    if "indexed" not in options:
        assert path.read_bytes() == whole.read_bytes()


def give_more(w: logreel.Writer, numbers: range) -> None:
    w.add_channel("/c", STRING)
    for i in numbers:
        topic = ("/a", "/b", "/c")[i % 3]
        w.write(i % 3, START + i * 10**6, {"data": f"{topic} {i}"})


def test_genuine_rosbag_reads_a_continued_1_2(tmp_path: Path) -> None:
    genuine()
    path = tmp_path / "a.bag"
    write(path, 300, version="1.2", indexed=False)
    due = sorted(rows(path) + extend(path, 20))
    ((found, _, _),) = by_genuine(path)
    assert sorted((topic, time, data) for topic, _, _, time, data in found) == due


@pytest.mark.parametrize("finished", [True, False])
def test_bag_without_index_is_refused(tmp_path: Path, finished: bool) -> None:
    path = tmp_path / "a.bag"
    path.write_bytes(version_2_0(few(), Builder(finished=finished)))
    assert continue_or_refuse(path) == finished


def test_options_that_the_bag_contradicts_are_refused(tmp_path: Path) -> None:
    two, old = tmp_path / "a.bag", tmp_path / "b.bag"
    write(two, 10)
    write(old, 10, version="1.2")
    for path, options in (
        (two, {"version": "1.2"}),
        (two, {"compression": "zip"}),
        (two, {"chunk_bytes": 0}),
        (old, {"compression": "bz2"}),
        (old, {"chunk_bytes": 1000}),
        (old, {"indexed": False}),
        (old, {"version": "2.0"}),
    ):
        data = path.read_bytes()
        with pytest.raises(logreel.UsageError):
            logreel.create(path, mode="a", **options)
        assert path.read_bytes() == data
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.bag", "b.bag"]


def test_compression_of_new_chunks_can_differ(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    write(path, compression="bz2")
    due = rows(path) + extend(path, compression="lz4")
    assert rows(path) == due
    assert logreel.open(path).metadata["compression"] == ["bz2", "lz4"]


def test_definition_with_other_comments_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    write(path, 10)
    with logreel.create(path, mode="a") as w:
        assert (
            w.add_channel("/chatter", logreel.Schema("std_msgs/String", "ros1msg", "# text\nstring data\n"))
            == 0
        )
        with pytest.raises(logreel.UsageError, match="another definition"):
            w.add_channel("/chatter", logreel.Schema("std_msgs/String", "ros1msg", "string text\n"))
    assert len(rows(path)) == 10


def test_header_without_room_for_a_large_offset_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    write(path, 10)
    data = path.read_bytes()
    wide = (18).to_bytes(4, "little") + b"index_pos=" + data[data.index(b"index_pos=") + 10 :][:8]
    narrow = (14).to_bytes(4, "little") + wide[4:18]
    record = read_record(Source.open(data), len(MAGIC), len(data))
    head = data[len(MAGIC) + 4 : record.data - 4].replace(wide, narrow)
    sizes = [size.to_bytes(4, "little") for size in (len(head), record.size + 4)]
    new = b"".join((MAGIC, sizes[0], head, sizes[1], b" " * 4, data[record.data :]))
    assert len(new) == len(data)
    path.write_bytes(new)
    assert logreel.open(path).metadata["indexed"]
    with pytest.raises(
        logreel.LogError, match=r"only 4 bytes for the offset of the index; .*logreel\.recover"
    ):
        logreel.create(path, mode="a")


def test_newer_minor_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    write(path, 10, compression="lz4")
    path.write_bytes(path.read_bytes().replace(b"V2.0", b"V2.1", 1))
    with pytest.raises(logreel.UnsupportedError, match=r"version 2\.1 cannot be continued"):
        logreel.create(path, mode="a")
