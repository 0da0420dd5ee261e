"""Writing of bags of versions 1.1 and 1.2."""

from __future__ import annotations

import pickle
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from support.oracles import rosbag as bag_oracle
from support.oracles.genuine_rosbag import SYSTEM, genuine

START = 1_260_000_000 * 10**9
STRING = logreel.Schema("std_msgs/String", "ros1msg", "string data\n")
POINT = logreel.Schema("geometry_msgs/Point", "ros1msg", "")
VERSIONS: dict[str, dict[str, Any]] = {
    "1.1": {"version": "1.1"},
    "1.2": {"version": "1.2", "indexed": False},
    "1.2 indexed": {"version": "1.2"},
}


def string(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


def write(path: Path, n: int = 500, **options: Any) -> list[tuple[str, int, bytes]]:
    with logreel.create(path, flush_every=None, **options) as w:
        b = w.add_channel("b", STRING, {"callerids": ["/n"], "latching": True})
        a = w.add_channel("/a", POINT)
        w.add_channel("/silent", STRING)
        rows = [(b if i % 3 else a, START + i * 10**8 - 10**9 * (i % 11 == 5)) for i in range(n)]
        found = [(k, time, string(f"{i}") if k == b else bytes(24)) for i, (k, time) in enumerate(rows)]
        for k, time, data in found:
            w.write(k, time, data)
    return [(("b", "/a")[k], time, data) for k, time, data in found]


@pytest.mark.parametrize("version", VERSIONS)
def test_written_messages_are_read(version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    due = write(path, **VERSIONS[version])
    log = logreel.open(path)
    assert (log.version, log.problems) == (version[:3], ())
    assert [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")] == due
    assert log["b"].metadata["latching"] == (version != "1.1")
    assert log["b"].metadata["callerids"] == (["/n"] if version != "1.1" else [])
    assert next(log.messages("/a")).decode() == {"x": 0.0, "y": 0.0, "z": 0.0}
    plain = bag_oracle.read(path.read_bytes())
    assert not plain.lost
    assert [(m.topic, m.time, m.payload) for m in plain.messages] == due
    assert {m.md5 for m in plain.messages} == {
        "992ce8a1687cec8c8bd883ec73ca41d1",
        "4a842b65f413084dc2b10fb484ea7f17",
    }


def test_bytes_of_version_1_1(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path, version="1.1") as w:
        w.write(w.add_channel("/chatter", STRING), START + 7, string("x"))
    head = b"#ROSRECORD V1.1\n/chatter\n992ce8a1687cec8c8bd883ec73ca41d1\nstd_msgs/String\n"
    assert path.read_bytes() == head + struct.pack("<IIII", 1_260_000_000, 7, 5, 1) + b"x"


def test_index_of_version_1_2(tmp_path: Path) -> None:
    """One entry per message in file order; the first of a topic has the offset of its definition."""
    path = tmp_path / "a.bag"
    due = write(path, 50, version="1.2")
    data = path.read_bytes()
    start = data.index(b"index_pos=") + 10
    assert data[:16] == b"#ROSRECORD V1.2\n"
    assert struct.unpack_from("<I", data, start + 8 + 8) == (4066,)
    (at,) = struct.unpack_from("<Q", data, start)
    topics = []
    while at < len(data):
        record = bag_oracle.record_of(data, at, len(data), ())
        topic, count = record.fields[b"topic"].decode(), struct.unpack("<I", record.fields[b"count"])[0]
        assert (record.op, record.fields[b"ver"]) == (4, bytes(4))
        topics.append(topic)
        entries = [struct.unpack_from("<IIQ", data, record.data + 16 * i) for i in range(count)]
        times = [time for name, time, _ in due if name == topic]
        assert [sec * 10**9 + nsec for sec, nsec, _ in entries] == times
        for i, (sec, nsec, pos) in enumerate(entries):
            found = bag_oracle.record_of(data, pos, len(data), ())
            assert (found.op, found.fields[b"topic"].decode()) == (1 if i == 0 else 2, topic)
            if i:
                assert found.fields[b"sec"] + found.fields[b"nsec"] == struct.pack("<II", sec, nsec)
        at = record.data + record.size
    assert topics == ["/a", "b"]


def test_batches_give_the_same_bytes_as_single_messages(tmp_path: Path) -> None:
    """With more than one batch."""
    path, n = tmp_path / "a.bag", 20_000
    with logreel.create(path, version="1.2") as w:
        channel = w.add_channel("/a", POINT)
        times, size = START + np.arange(n) * 1_000_003, np.full(n, 24)
        data = np.arange(3.0 * n).view(np.uint8)
        w.write_many(np.full(n, channel, np.int32), times, data, np.arange(n) * 24, size)
    log = logreel.open(path)
    assert (log["/a"].times == times).all()
    assert (log["/a"]["y"] == np.arange(3.0 * n)[1::3]).all()


def test_topics_that_version_1_1_cannot_contain_are_refused(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag", version="1.1") as w:
        for topic in ("/é", " /a", "/a ", "/" + "a" * 256):
            with pytest.raises(logreel.UsageError, match=r"version 1\.1"):
                w.add_channel(topic, STRING)
        w.write(w.add_channel("/a b", STRING), START, string("x"))
    assert list(logreel.open(tmp_path / "a.bag").channels) == ["/a b"]


_SCRIPT = """
import pickle, sys
import rosbag
bag = rosbag.Bag(sys.argv[1], allow_unindexed=True)
rows = [(t, stamp.to_nsec(), bytes(data)) for t, (_, data, *_), stamp in bag.read_messages(raw=True)]
sys.stdout.buffer.write(pickle.dumps(rows, 2))
"""


def test_genuine_rosbag_reads_1_2_without_index(tmp_path: Path) -> None:
    genuine()
    path = tmp_path / "a.bag"
    due = write(path, version="1.2", indexed=False)
    done = subprocess.run([SYSTEM, "-c", _SCRIPT, str(path)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert pickle.loads(done.stdout) == due  # noqa: S301
