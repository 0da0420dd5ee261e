"""Writers of all formats: written data read back equal, and crashes lose no flushed messages."""

from __future__ import annotations

import errno
import gc
import json
import os
import signal
import subprocess
import textwrap
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Struct
from support.formats import builtin_formats
from support.harness.cli_runner import environment
from support.harness.forked import forked_python

STAMP = 1_700_000_000 * 10**9
ROS = logreel.Schema("geometry_msgs/Vector3", "ros1msg", "float64 x\nfloat64 y\nfloat64 z\n")
PX4 = logreel.Schema("vector", "ulog", "vector:uint64_t timestamp;double x;double y;double z;")
ROS2 = logreel.Schema("geometry_msgs/msg/Vector3", "ros2msg", "float64 x\nfloat64 y\nfloat64 z\n")
KINDS = {"bag": ("/vector", ROS), "ulg": ("vector", PX4), "mcap": ("/vector", ROS), "db3": ("/vector", ROS2)}
#: The same formats with options.
OPTIONS: dict[str, dict[str, Any]] = {
    "bz2.bag": {"compression": "bz2"},
    "lz4.bag": {"compression": "lz4"},
    "12.bag": {"version": "1.2"},
    "unindexed.bag": {"version": "1.2", "indexed": False},
    "11.bag": {"version": "1.1"},
    "lz4.mcap": {"compression": "lz4"},
    "none.mcap": {"compression": "none", "chunk_bytes": 100},
}
KINDS |= {kind: KINDS[kind.rpartition(".")[2]] for kind in OPTIONS}
#: Formats without messages of three fields; separate tests check the same for them.
OTHERS = {"bddf", "vel", "rec"}


def test_every_writable_format_has_a_case() -> None:
    able = {f.suffixes[0].lstrip(".") for f in builtin_formats().values() if f.create is not None}
    assert able == {kind for kind in KINDS if kind not in OPTIONS} | OTHERS


def create(path: Path, kind: str, **more: Any) -> logreel.Writer:
    return logreel.create(path, **more, **OPTIONS.get(kind, {}))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(log: logreel.Log, topic: str) -> list[tuple[int, float, float, float]]:
    return [(m.time, *(m.decode()[k] for k in "xyz")) for m in log.messages(topic)]


def test_dicts_tables_and_payloads_read_back_equal(tmp_path: Path, kind: str) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    times = STAMP + np.arange(5) * 10**6
    with create(path, kind) as w:
        channel = w.add_channel(topic, schema)
        w.write(channel, STAMP, {"x": 1.0, "z": 3.0})
        columns = {"time": pa.array(times + 10**7, pa.timestamp("ns")), **{k: np.arange(5.0) for k in "xyz"}}
        w.write_table(channel, pa.table(columns))
    first = logreel.open(path)
    assert not first.problems
    due = [
        (STAMP, 1.0, 0.0, 3.0),
        *((int(t) + 10**7, float(i), float(i), float(i)) for i, t in enumerate(times)),
    ]
    assert rows(first, topic) == due
    copy = tmp_path / f"b.{kind}"
    with create(copy, kind) as w:
        channel = w.add_channel(topic, first[topic].schema, first[topic].metadata)
        for message in first.messages():
            w.write(channel, message.time, message.data)
    assert rows(logreel.open(copy), topic) == due
    bulk = tmp_path / f"c.{kind}"
    with create(bulk, kind) as w:
        channel = w.add_channel(topic, first[topic].schema, first[topic].metadata)
        for s in first.index.select_batches():
            for number in np.unique(s.chunk).tolist():
                here = s.chunk == number
                data = first.index.chunks[number]
                w.write_many(s.channel[here], s.time[here], data, s.offset[here], s.size[here])
    assert bulk.read_bytes() == copy.read_bytes()


def test_log_without_messages_is_valid(tmp_path: Path, kind: str) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    with create(path, kind):
        pass
    assert not logreel.open(path).problems
    with create(path, kind, force=True) as w:
        w.add_channel(topic, schema)
    assert not logreel.open(path).problems


def test_impossible_requests_raise_clear_errors(tmp_path: Path, kind: str) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    with create(path, kind) as w:
        channel = w.add_channel(topic, schema)
        with pytest.raises(logreel.UsageError, match="added before"):
            w.add_channel(topic, schema)
        with pytest.raises(logreel.TopicError):
            w.write(channel + 1, 0, b"")
        with pytest.raises(logreel.UsageError, match="no field 'w'"):
            w.write(channel, STAMP, {"w": 1.0})
        with pytest.raises(logreel.UsageError, match="x: 'one' does not fit"):
            w.write(channel, STAMP, {"x": "one"})
        with pytest.raises(logreel.UsageError, match="no column 'y'"):
            w.write_table(channel, pa.table({"time": [STAMP], "x": [1.0]}))
        with pytest.raises(logreel.UsageError, match="no column 'time'"):
            w.write_table(channel, pa.table({"x": [1.0]}))
        with pytest.raises(logreel.UsageError, match="missing"):
            w.write_table(channel, pa.table({"time": [STAMP], "x": [None], "y": [0.0], "z": [0.0]}))
        one = np.ones(1, np.int64)
        with pytest.raises(logreel.UsageError, match="outside"):
            w.write_many(np.zeros(1, np.int32), one, np.zeros(3, np.uint8), one, one * 3)
        if kind == "bag":
            with pytest.raises(logreel.UnsupportedError, match="no place for attachments"):
                w.attachment("a", b"")
        w.write(channel, STAMP, {"x": 1.0})
    with pytest.raises(logreel.LogError, match="closed"):
        w.write(channel, STAMP, {"x": 1.0})
    assert rows(logreel.open(path), topic) == [(STAMP, 1.0, 0.0, 0.0)]
    with pytest.raises(logreel.LogError, match="exists already"):
        create(path, kind)
    if not kind.endswith("mcap"):
        with pytest.raises(logreel.DefinitionError), create(tmp_path / f"b.{kind}", kind) as w:
            w.add_channel("x", logreel.Schema("x", "martian", ""))


def test_unknown_suffixes_formats_and_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match="names no format"):
        logreel.create(tmp_path / "a.txt")
    with pytest.raises(logreel.UsageError, match="no format 'martian'"):
        logreel.create(tmp_path / "a.bag", format="martian")
    with pytest.raises(logreel.UsageError, match="option"):
        logreel.create(tmp_path / "a.bag", speed=3)
    with pytest.raises(logreel.UsageError, match="compression"):
        logreel.create(tmp_path / "a.bag", compression="rar")
    with pytest.raises(logreel.UsageError, match=r"several formats; give one: 'carla' .* or 'koblenz'"):
        logreel.create(tmp_path / "a.log")
    assert os.listdir(tmp_path) == []
    with logreel.create(tmp_path / "a.txt", format="rosbag"):
        pass
    assert logreel.open(tmp_path / "a.txt").format == "rosbag"


def test_exception_keeps_the_active_file_readable(tmp_path: Path, kind: str) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]

    def fail() -> None:
        with create(path, kind) as w:
            w.write(w.add_channel(topic, schema), STAMP, {"x": 1.0})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == [f"a.{kind}.active"]
    assert rows(logreel.open(tmp_path / f"a.{kind}.active"), topic) == [(STAMP, 1.0, 0.0, 0.0)]


def test_numpy_integers_and_memoryviews_are_accepted(tmp_path: Path, kind: str) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    payload = (
        (STAMP // 1000).to_bytes(8, "little") * (schema is PX4) + b"\0\1\0\0" * (schema is ROS2) + bytes(24)
    )
    with create(path, kind) as w:
        channel = w.add_channel(topic, schema)
        w.write(channel, STAMP, payload)
        w.write(np.int64(channel), np.int64(STAMP), memoryview(np.frombuffer(payload, np.float32)))  # type: ignore[arg-type]
        w.write(channel, STAMP, bytearray(payload))
    assert rows(logreel.open(path), topic) == [(STAMP, 0.0, 0.0, 0.0)] * 3


def test_full_disk_raises_for_all_later_messages(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    w = create(path, kind, flush_every=None)
    channel = w.add_channel(topic, schema)
    w.write(channel, STAMP, {"x": 1.0})
    w.flush()

    def full(handle: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "write", full)
    w.write(channel, STAMP + 1, {"x": 2.0})
    for call in (w.flush, lambda: w.write(channel, STAMP, {}), lambda: w.metadata("a", "b"), w.close):
        with pytest.raises(logreel.LogError, match="No space left"):
            call()
    assert rows(logreel.open(tmp_path / f"a.{kind}.active"), topic) == [(STAMP, 1.0, 0.0, 0.0)]
    assert not path.exists()


def test_threads_share_a_writer(tmp_path: Path, kind: str) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    with create(path, kind, flush_every=0.001) as w:
        channel = w.add_channel(topic, schema)

        def work(number: int) -> None:
            for i in range(200):
                w.write(channel, STAMP + i, {"x": float(number), "y": float(i)})

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = [(m.decode()["x"], m.decode()["y"]) for m in logreel.open(path).messages(order="file")]
    for number in range(4):
        assert [y for x, y in found if x == number] == [float(i) for i in range(200)]


KILLED = """
    import json
    import sys
    import logreel
    topic, name, encoding, text, options = sys.argv[2:7]
    with logreel.create(sys.argv[1], flush_every=None, **json.loads(options)) as w:
        channel = w.add_channel(topic, logreel.Schema(name, encoding, text))
        i = 0
        while True:
            for _ in range(7):
                w.write(channel, 1_700_000_000 * 10**9 + i * 1000, {"x": float(i)})
                i += 1
            w.flush()
            print(i, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 40])
def test_killed_recorder_keeps_flushed_messages(tmp_path: Path, kind: str, acknowledged: int) -> None:
    path, (topic, schema) = tmp_path / f"a.{kind}", KINDS[kind]
    command = forked_python("-c", textwrap.dedent(KILLED), path)
    command += [topic, schema.name, schema.encoding, schema.text, json.dumps(OPTIONS.get(kind, {}))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as child:
        assert child.stdout is not None
        for _ in range(acknowledged):
            due = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        due = max([due, *(int(line) for line in child.stdout if line.endswith("\n"))])
    assert os.listdir(tmp_path) == [f"a.{kind}.active"]
    found = [x for _, x, _, _ in rows(logreel.open(tmp_path / f"a.{kind}.active"), topic)]
    assert found[:due] == [float(i) for i in range(due)]
    assert found == [float(i) for i in range(len(found))]


def test_unknown_fields_are_refused_with_similar_names(tmp_path: Path) -> None:
    layout = Layout(Struct((Field("voltage", Scalar("float32")), Field("current", Scalar("float32")))))
    with logreel.create(tmp_path / "x.bag") as w:
        channel = w.add_channel("/battery", layout)
        with pytest.raises(logreel.UsageError, match=r"'voltge'; nearest: voltage"):
            w.write(channel, 1, {"voltge": 1.0, "current": 2.0})
        with pytest.raises(logreel.UsageError, match="'q', 'z'; there are: current, voltage"):
            w.write(channel, 1, {"q": 1.0, "z": 2.0})


@pytest.mark.parametrize("end", ["close", "leave", "discard"])
def test_a_writer_that_is_over_keeps_no_buffers(end: str, tmp_path: Path) -> None:
    """It refers to itself, so that the collector decides when it goes: 1.2 MB for each, 90 windows had 100 MB."""
    gc.disable()
    tracemalloc.start(1)
    try:
        for n in range(21):
            w = logreel.create(tmp_path / f"{n}.mcap")
            w.write(w.add_channel("/vector", ROS), STAMP, {"x": 1.0, "y": 2.0, "z": 3.0})
            getattr(w, end)()
            if not n:
                known = tracemalloc.get_traced_memory()[0]
        assert tracemalloc.get_traced_memory()[0] < known + 20 * 200_000
    finally:
        tracemalloc.stop()
        gc.enable()
