"""BDDF files that are written: the plain reader finds in them what was given, byte by byte."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bddf_oracle as oracle
import logreel
from logreel.formats.bddf.sample import PODS, T0, Builder, number, raw, walk

LINE = logreel.Schema("line", "text/plain")
FLOAT = logreel.Schema("float64", "bddf")
POINT = logreel.Schema("float32[2]", "bddf")
NUMBERED = {"additional_indexes": ["pid", "n"]}
LOW, HIGH = -(1 << 63), (1 << 63) - 1


def closed(path: Path) -> oracle.Closed:
    return oracle.closed(path.read_bytes())


def rows(path: Path) -> list[tuple[int, int, bytes, list[int]]]:
    return [(row.series, row.ns, row.payload, row.numbers) for row in closed(path).rows]


def test_every_kind_of_series_is_declared_as_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    units = {"spec": {"client": "me", "varname": "x"}, "series_type": "bosdyn:logtick"}
    units |= {"annotations": {"units": "m"}, "description": "a place"}
    with logreel.create(path) as w:
        w.metadata("bosdyn:robot-serial-number", "spot-1")
        w.metadata("count", 3)
        w.add_channel("say", LINE, NUMBERED)
        w.add_channel(
            "bosdyn.api.Event", logreel.Schema("bosdyn.api.Event", "protobuf"), {"is_metadata": True}
        )
        w.add_channel("me/x", logreel.Schema("float64[2][3]", "bddf"), units)
        w.add_channel("joined", logreel.Schema("struct", "bddf"), {"members": {"x": "me/x"}})
        w.add_channel("picture", logreel.Schema("", "image/jpeg"))
        w.write(0, T0, {"text": "hello", "pid": 7, "n": -1})
        w.write(2, T0, struct.pack("<6d", *range(6)))
        late = w.add_channel("late", FLOAT)
        w.write(late, T0, struct.pack("<d", 2.5))
    found = closed(path)
    assert found.annotations == {"bosdyn:robot-serial-number": "spot-1", "count": "3"}
    said = [(one.series_type, one.spec, one.kind) for one in found.series]
    channel = "bosdyn:channel"
    assert said == [
        (channel, {channel: "say"}, (34, raw(1, "text/plain") + raw(2, "line"))),
        (
            channel,
            {channel: "bosdyn.api.Event"},
            (34, raw(1, "application/protobuf") + raw(2, "bosdyn.api.Event") + b"\x18\x01"),
        ),
        ("bosdyn:logtick", units["spec"], (42, b"\x08\x0a" + raw(2, b"\2\3"))),
        (channel, {channel: "joined"}, (50, raw(1, raw(1, "x") + b"\x10" + number(found.series[2].hash)))),
        (channel, {channel: "picture"}, (34, raw(1, "image/jpeg"))),
        (channel, {channel: "late"}, (42, b"\x08\x0a")),
    ]
    assert (found.series[0].names, found.series[2].annotations) == (["pid", "n"], {"units": "m"})
    assert found.series[2].description == "a place"
    assert rows(path) == [
        (0, T0, b"hello", [7, -1]),
        (2, T0, struct.pack("<6d", *range(6)), []),
        (5, T0, struct.pack("<d", 2.5), []),
    ]
    log = logreel.open(path)
    assert list(log) == ["say", "bosdyn.api.Event", "me/x", "joined", "picture", "late"]
    assert log["joined"]["x"].tolist() == log["me/x"]["value"].tolist() == [[[0, 1, 2], [3, 4, 5]]]
    assert not log.problems
    assert not log.verify()
    assert log.metadata["bosdyn:robot-serial-number"] == "spot-1"


def test_the_bytes_of_the_facts_sheet(tmp_path: Path) -> None:
    """The same content as the independent builder's, in the same order."""
    for checksum in ("sha1", "none"):
        made, path = Builder({"a": "b"}, 2 if checksum == "sha1" else 1), tmp_path / f"{checksum}.bddf"
        with logreel.create(path, checksum=checksum) as w:
            w.metadata("a", "b")
            for kind in PODS:
                made.pods({"varname": kind}, kind, [3], "m")
                meta = {
                    "spec": {"varname": kind},
                    "annotations": {"units": "m"},
                    "series_type": "bosdyn:logtick",
                }
                w.add_channel(kind, logreel.Schema(f"{kind}[3]", "bddf"), meta)
            made.messages("say", "text/plain", "line", names=["pid", "n"])
            w.add_channel("say", LINE, NUMBERED)
            for i, kind in enumerate(PODS):
                made.values(i, T0 + i, kind, [1, 2, 3])
                w.write(i, T0 + i, {"records": [{"sample": 0, "value": [1, 2, 3]}]})
            for i, pair in enumerate(((0, 0), (1, -1), (LOW, HIGH), (127, 128))):
                made.data(10, T0 * i, b"line", pair)
                w.write(10, T0 * i, {"text": "line", "pid": pair[0], "n": pair[1]})
            made.data(10, T0, b"as it is", (0, 0))
            w.write(10, T0, b"as it is")
        assert path.read_bytes() == made.bytes()


TIMES = [
    0,
    1,
    -1,
    10**9,
    -(10**9),
    -5,
    999_999_999,
    T0,
    T0 + 1,
    1 << 62,
    LOW,
    HIGH,
    -1_500_000_000,
    127 * 10**9,
]


def test_times_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path) as w:
        channel = w.add_channel("say", LINE)
        for time in TIMES:
            w.write(channel, time, str(time).encode())
        for time in (HIGH + 1, LOW - 1):
            with pytest.raises(logreel.UsageError, match="64 bits"):
                w.write(channel, time, b"")
            with pytest.raises(logreel.UsageError, match="64 bits"):
                w.write(w.add_channel(f"n{time}", LINE, NUMBERED), time, {"text": ""})
    assert [(ns, payload) for _, ns, payload, _ in rows(path)] == [(t, str(t).encode()) for t in TIMES]
    log = logreel.open(path)
    assert log["say"].times.tolist() == TIMES
    assert log.metadata["indexed"]


def test_tables_and_single_messages_are_one_file(tmp_path: Path) -> None:
    n = 2000
    times = T0 + np.arange(n) // 3 * 1_000_000
    values = np.arange(2 * n, dtype=np.float32)
    points = pa.FixedSizeListArray.from_arrays(values, 2)
    lines = pa.array([f"line {i}" for i in range(n)])
    paths = [tmp_path / name for name in ("table.bddf", "single.bddf", "many.bddf")]
    single = [struct.pack("<2f", *pair) for pair in values.reshape(n, 2).tolist()]
    with logreel.create(paths[0]) as w:
        point, say = w.add_channel("p", POINT), w.add_channel("say", LINE, NUMBERED)
        w.write_table(point, pa.table({"time": times, "value": points}))
        w.write_table(say, pa.table({"time": times, "n": np.arange(n), "text": lines}))
    with logreel.create(paths[1]) as w:
        point, say = w.add_channel("p", POINT), w.add_channel("say", LINE, NUMBERED)
        for lo in range(0, n, 3):
            w.write(point, int(times[lo]), b"".join(single[lo : lo + 3]))
        for i in range(n):
            w.write(say, int(times[i]), {"text": f"line {i}", "n": i})
    with logreel.create(paths[2]) as w:
        point, say = w.add_channel("p", POINT), w.add_channel("say", LINE, NUMBERED)
        size = np.full(n // 3 + 1, 24)
        size[-1] = 8 * (n % 3)
        w.write_many(
            np.full(len(size), point, np.int32),
            times[::3],
            values.view(np.uint8),
            np.cumsum(size) - size,
            size,
        )
        texts = [f"line {i}".encode() for i in range(n)]
        size = np.array([len(one) for one in texts])
        data = np.frombuffer(b"".join(texts), np.uint8)
        beside = np.stack([np.zeros(n, np.int64), np.arange(n)], axis=1)
        w.write_many(np.full(n, say, np.int32), times, data, np.cumsum(size) - size, size, beside)
    assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()
    log = logreel.open(paths[0])
    assert log["p"]["value"].tolist() == values.reshape(n, 2).tolist()
    assert log["say"]["n"].tolist() == list(range(n))
    assert log["say"]["pid"].tolist() == [0] * n
    # What was read as a table can be written as one.
    again = tmp_path / "again.bddf"
    with logreel.create(again) as w:
        for ch in log.channels.values():
            w.add_channel(ch.topic, ch.schema, ch.metadata)
        for ch in log.channels.values():
            w.write_table(ch.number, ch.to_arrow())
    assert again.read_bytes() == paths[0].read_bytes()


def test_samples_with_additional_indexes(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path) as w:
        channel = w.add_channel("v", logreel.Schema("int16", "bddf"), {"additional_indexes": ["sample", "n"]})
        records = [{"sample_2": -3, "n": 9, "sample": i, "value": i} for i in range(3)]
        w.write(channel, T0, {"records": records})
        w.write(channel, T0 + 1, {"records": []})
        w.write(channel, T0 + 2, b"\1\0\2\0")
    assert rows(path) == [
        (0, T0, b"\0\0\1\0\2\0", [-3, 9]),
        (0, T0 + 1, b"", [0, 0]),
        (0, T0 + 2, b"\1\0\2\0", [0, 0]),
    ]
    log = logreel.open(path)
    assert next(log.messages()).decode() == {"sample_2": -3, "n": 9} | {
        "records": [{"sample": i, "value": i} for i in range(3)]
    }


def test_messages_of_described_types_are_given_by_fields(tmp_path: Path) -> None:
    path, kinds = tmp_path / "a.bddf", ("TextMessage", "OperatorComment", "Event", "SignalSchema")
    log = logreel.open(walk(11))
    with logreel.create(path) as w:
        for kind in kinds:
            name = f"bosdyn.api.{kind}"
            w.add_channel(name, logreel.Schema(name, "protobuf"))
        for n, kind in enumerate(kinds):
            for message in log.messages(f"bosdyn.api.{kind}"):
                w.write(n, message.time, message.decode())
            w.write_table(n, log[f"bosdyn.api.{kind}"].to_arrow())
        with pytest.raises(logreel.UsageError, match="no field 'massage'"):
            w.write(0, T0, {"massage": "a"})
        with pytest.raises(logreel.UsageError, match="LOUD"):
            w.write(0, T0, {"message": "a", "level": "LOUD"})
        with pytest.raises(logreel.UsageError, match="does not fit"):
            w.write(0, T0, {"message": "a", "timestamp": "now"})
    for n, kind in enumerate(kinds):
        due = [(m.time, bytes(m.data)) for m in log.messages(f"bosdyn.api.{kind}")]
        assert [(ns, payload) for series, ns, payload, _ in rows(path) if series == n] == due * 2


def test_messages_that_the_users_descriptors_describe(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    (tmp_path / "mine.binpb").write_bytes(descriptor_set())
    fields = {
        "label": "a",
        "counts": [1, 2, 300],
        "inner": {"x": 1.5, "when": -1_500_000_000},
        "many": [{"x": 1.0, "when": 5}, {"x": 0.0, "when": 0}],
        "by_name": [{"key": "k", "value": {"x": 2.0, "when": 0}}],
        "numbers": [{"key": "n", "value": 7}],
        "color": "RED",
        "colors": ["RED", "7"],
        "raw": b"\0\1",
    }
    with logreel.create(path, definitions=[tmp_path / "mine.binpb"]) as w:
        mine = w.add_channel("mine", logreel.Schema("my.Thing", "protobuf"), {"additional_indexes": ["n"]})
        w.write(mine, T0, {**fields, "n": 5})
        w.write(mine, T0, {})
        other = w.add_channel(
            "other", logreel.Schema("my.Unknown", "protobuf"), {"additional_indexes": ["n"]}
        )
        w.write(other, T0, {"data": b"\x08\x01", "n": 6})
    log = logreel.open(path, definitions=[tmp_path / "mine.binpb"])
    first, second = log.messages("mine")
    # A part that is zero or empty, and one that is not there, are given in the same way.
    absent = {
        "many": [{"x": 1.0, "when": 5}, {"x": 0.0, "when": None}],
        "by_name": [{"key": "k", "value": {"x": 2.0, "when": None}}],
    }
    assert first.decode() == {"n": 5, **fields, **absent}
    assert bytes(second.data) == b""
    assert rows(path)[2] == (1, T0, b"\x08\x01", [6])


def descriptor_set() -> bytes:
    """A type with a field of every shape."""
    from google.protobuf import descriptor_pb2 as pb

    file = pb.FileDescriptorProto(name="mine.proto", package="my", syntax="proto3")
    file.dependency.append("google/protobuf/duration.proto")
    file.enum_type.add(name="Color").value.add(name="NONE", number=0)
    file.enum_type[0].value.add(name="RED", number=3)
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, label=1, type=1)
    inner.field.add(name="when", number=2, label=1, type=11, type_name=".google.protobuf.Duration")
    thing = file.message_type.add(name="Thing")
    for name, kind, message in (("ByName", 11, ".my.Inner"), ("Numbers", 3, "")):
        entry = thing.nested_type.add(name=f"{name}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=1, type=9)
        entry.field.add(name="value", number=2, label=1, type=kind, type_name=message or None)
    shapes = [
        ("label", 1, 9, ""),
        ("counts", 3, 13, ""),
        ("inner", 1, 11, ".my.Inner"),
        ("many", 3, 11, ".my.Inner"),
        ("by_name", 3, 11, ".my.Thing.ByNameEntry"),
        ("numbers", 3, 11, ".my.Thing.NumbersEntry"),
        ("color", 1, 14, ".my.Color"),
        ("colors", 3, 14, ".my.Color"),
        ("raw", 1, 12, ""),
    ]
    for n, (name, label, kind, message) in enumerate(shapes, 1):
        thing.field.add(name=name, number=n, label=label, type=kind, type_name=message or None)
    return pb.FileDescriptorSet(file=[file]).SerializeToString()


def test_no_series_and_series_without_data(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path):
        pass
    assert closed(path) == oracle.Closed({}, 2, [], [])
    assert path.read_bytes() == Builder().bytes()
    with logreel.create(path, force=True) as w:
        w.add_channel("say", LINE)
    assert [one.spec for one in closed(path).series] == [{"bosdyn:channel": "say"}]
    for one in (path,):
        assert not logreel.open(one).problems


def test_series_of_one_name(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.bddf", tmp_path / "b.bddf"
    named = {"spec": {"bosdyn:channel": "mixed"}}
    with logreel.create(path) as w:
        w.add_channel("mixed", LINE)
        w.add_channel("mixed[1]", FLOAT, named)
        w.add_channel("renamed", FLOAT, named)
        w.add_channel("other", FLOAT, {"spec": {"client": "a", "varname": "b"}})
        with pytest.raises(logreel.DefinitionError, match="was added before"):
            w.add_channel("mixed[2]", LINE, named)
    assert [one.spec for one in closed(path).series] == [
        {"bosdyn:channel": "mixed"},
        {"bosdyn:channel": "mixed"},
        {"bosdyn:channel": "renamed"},
        {"client": "a", "varname": "b", "bosdyn:channel": "other"},
    ]
    log = logreel.open(path)
    assert list(log) == ["mixed", "mixed[1]", "renamed", "other"]
    with logreel.create(copy) as w:
        for ch in log.channels.values():
            w.add_channel(ch.topic, ch.schema, ch.metadata)
    assert copy.read_bytes() == path.read_bytes()


BAD: dict[str, tuple[str, logreel.Schema, dict[str, Any], str]] = {
    "encoding": ("a", logreel.Schema("x", "martian"), {}, "content type"),
    "ros": ("a", logreel.Schema("std_msgs/String", "ros1msg", "string data"), {}, "content type"),
    "pod": ("a", logreel.Schema("float16", "bddf"), {}, "no type of plain values"),
    "dimension": ("a", logreel.Schema("float32[4294967296]", "bddf"), {}, "dimension"),
    "empty": ("", LINE, {}, "must not be empty"),
    "tilde": ("~text", LINE, {}, "begin with '~'"),
    "surrogate": ("\ud800", LINE, {}, "no text"),
    "large": ("a", LINE, {"description": "a" * (1 << 24)}, "at most 16777216"),
    "spec": ("a", LINE, {"spec": "a"}, "dict of texts"),
    "annotations": ("a", LINE, {"annotations": ["a"]}, "dict of texts"),
    "members": ("a", logreel.Schema("struct", "bddf"), {"members": {"x": "nowhere"}}, "added before"),
    "no members": ("a", logreel.Schema("struct", "bddf"), {"members": ["x"]}, "added before"),
}


def test_what_cannot_be_is_said_and_the_file_stays_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    with logreel.create(path) as w:
        value = w.add_channel("value", FLOAT)
        for topic, schema, metadata, match in BAD.values():
            with pytest.raises(logreel.LogError, match=match):
                w.add_channel(topic, schema, metadata)
        struct_ = w.add_channel("s", logreel.Schema("struct", "bddf"), {"members": {"x": "value"}})
        for fields, match in (
            ({"records": [{"w": 1}]}, "no field"),
            ({"records": [{"value": "a"}]}, "not fit"),
        ):
            with pytest.raises(logreel.UsageError, match=match):
                w.write(value, T0, fields)
        with pytest.raises(logreel.UsageError, match="no column 'value'"):
            w.write_table(value, pa.table({"time": [T0]}))
        with pytest.raises(logreel.DefinitionError, match="write those"):
            w.write(struct_, T0, {"records": []})
        one = np.zeros(1, np.int64)
        with pytest.raises(logreel.UsageError, match="additional indexes"):
            w.write_many(one.astype(np.int32), one, np.zeros(0, np.uint8), one, one, one[:, None])
        with pytest.raises(logreel.UsageError, match="a row for each"):
            w.write_many(one.astype(np.int32), one, np.zeros(0, np.uint8), one, one, one)
        for call in (lambda: w.parameter("a", 1), lambda: w.attachment("a", b""), lambda: w.text(T0, "a")):
            with pytest.raises(logreel.UnsupportedError, match="no place"):
                call()
        w.write(value, T0, struct.pack("<d", 1))
        # What is read of a struct is made of its members.
        w.write(struct_, T0, b"whatever was read")
        with pytest.raises(logreel.UsageError, match="before the first message"):
            w.metadata("late", "x")
    with logreel.create(tmp_path / "c.bddf") as w, pytest.raises(logreel.UsageError, match="is no text"):
        w.metadata("a", "\ud800")
    os.remove(tmp_path / "c.bddf")
    assert rows(path) == [(0, T0, struct.pack("<d", 1), [])]
    assert not logreel.open(path).problems
    with pytest.raises(logreel.UsageError, match="checksum"):
        logreel.create(tmp_path / "b.bddf", checksum="md5")
    assert os.listdir(tmp_path) == ["a.bddf"]


def recording(path: Path, flushed: int) -> bytes:
    """A recording that was left after *flushed* messages of four had been flushed, each time."""
    w = logreel.create(path, flush_every=None)
    say, speed = w.add_channel("say", LINE, NUMBERED), w.add_channel("speed", POINT)
    for i in range(flushed):
        w.write(say, T0 + i, {"text": f"line {i}", "n": i})
        w.write(speed, T0 + i, struct.pack("<2f", i, -i))
        if i % 4 == 3:
            w.flush()
    w.leave()
    return Path(f"{path}.active").read_bytes()


def test_every_cut_and_every_run_of_zeros_of_a_recording(tmp_path: Path) -> None:
    whole = recording(tmp_path / "a.bddf", 12)
    everything = oracle.walk(whole).rows
    assert len(everything) == 24
    for cut in range(4, len(whole)):
        due = [(row.ns, row.payload) for row in everything if row.end <= cut]
        assert _messages(whole[:cut]) == due
        # Nothing tells zeros at the end of a payload from what was to be written there.
        assert _messages(whole[:cut] + bytes(100))[: len(due)] == due


def _messages(data: bytes) -> list[tuple[int, bytes]]:
    return [(m.time, bytes(m.data)) for m in logreel.open(data).messages(order="file")]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_a_cut_recording_is_recovered(tmp_path: Path, share: float) -> None:
    whole = recording(tmp_path / "a.bddf", 40)
    cut = whole[: int(len(whole) * share)]
    (tmp_path / "a.bddf.active").write_bytes(cut)
    done = logreel.recover(tmp_path / "a.bddf.active")
    due = [row for row in oracle.walk(whole).rows if row.end <= len(cut)]
    assert done.messages == len(due)
    assert [(row.series, row.ns, row.payload, row.numbers) for row in due] == rows(tmp_path / "a.bddf")
    assert done.lost_bytes == (len(cut) - oracle.walk(cut).stop)


KILLED = """
    import struct, sys
    import logreel
    with logreel.create(sys.argv[1], flush_every=None) as w:
        say = w.add_channel("say", logreel.Schema("line", "text/plain"), {"additional_indexes": ["n"]})
        value = w.add_channel("value", logreel.Schema("float64", "bddf"))
        i = 0
        while True:
            for _ in range(7):
                w.write(say, 10**18 + i, {"text": str(i), "n": i})
                w.write(value, 10**18 + i, struct.pack("<d", i))
                i += 1
            w.flush()
            print(i, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 30])
def test_a_killed_recorder_loses_nothing_that_was_flushed(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "a.bddf"
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(acknowledged):
            due = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        due = max([due, *(int(line) for line in child.stdout if line.endswith("\n"))])
    assert os.listdir(tmp_path) == ["a.bddf.active"]
    log = logreel.open(f"{path}.active")
    found = log["say"]["n"].tolist()
    assert len(found) >= due
    assert found == list(range(len(found)))
    assert log["value"]["value"].tolist()[:due] == [float(i) for i in range(due)]


def test_a_full_disk_is_an_error_from_there_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, room = tmp_path / "a.bddf", os.write, [4000]

    def write(handle: int, data: memoryview) -> int:
        room[0] -= len(data)
        if room[0] < 0:
            raise OSError(28, "full")
        return real(handle, data)

    w = logreel.create(path, flush_every=None)
    channel = w.add_channel("say", LINE)
    monkeypatch.setattr(os, "write", write)
    sent = 0
    with pytest.raises(logreel.LogError, match="No space left"):  # noqa: PT012
        for sent in range(10_000):
            w.write(channel, T0 + sent, b"x" * 100)
            w.flush()
    for call in (w.flush, w.close):
        with pytest.raises(logreel.LogError, match="No space left"):
            call()
    assert not path.exists()
    assert logreel.open(f"{path}.active")["say"].times.tolist() == [T0 + i for i in range(sent)]


def test_an_index_that_does_not_fit_leaves_a_sound_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "a.bddf", os.write
    w = logreel.create(path, flush_every=None)
    channel = w.add_channel("say", LINE)
    for i in range(100):
        w.write(channel, T0 + i, b"x")
    w.flush()

    def write(handle: int, data: memoryview) -> int:
        return real(handle, data[:700]) if os.fstat(handle).st_size < 3500 else _full()

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(logreel.LogError, match="No space left"):
        w.close()
    assert len(logreel.open(f"{path}.active")["say"]) == 100
    assert not path.exists()


def _full() -> int:
    raise OSError(28, "full")
