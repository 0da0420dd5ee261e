"""Written BDDF files: the plain reader finds what was given, byte by byte."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import logreel
from support.builders.bddf_rows import FLOAT, LINE, NUMBERED, closed, rows
from support.oracles import bddf as oracle
from support.samples.bddf.builder import PODS, T0, Builder, number, raw

LOW, HIGH = -(1 << 63), (1 << 63) - 1


def test_every_type_of_series_is_declared(tmp_path: Path) -> None:
    path = tmp_path / "a.bddf"
    units = {"spec": {"client": "me", "varname": "x"}, "series_type": "bosdyn:logtick"}
    units |= {"annotations": {"units": "m"}, "description": "a place"}
    with logreel.create(path) as w:
        w.metadata("bosdyn:robot-serial-number", "spot-1")
        w.metadata("me:count", 3)
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
    assert found.annotations == {"bosdyn:robot-serial-number": "spot-1", "me:count": "3"}
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


def test_written_bytes_equal_the_worked_example(tmp_path: Path) -> None:
    """The bytes equal those of the independent builder, in the same order."""
    for checksum in ("sha1", "none"):
        made, path = Builder({"me:a": "b"}, 2 if checksum == "sha1" else 1), tmp_path / f"{checksum}.bddf"
        with logreel.create(path, checksum=checksum) as w:
            w.metadata("me:a", "b")
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


def test_extreme_times_are_written(tmp_path: Path) -> None:
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


def test_file_without_series_and_series_without_data(tmp_path: Path) -> None:
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


def test_series_with_the_same_name_are_written(tmp_path: Path) -> None:
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


def test_invalid_input_is_refused_and_the_file_stays_valid(tmp_path: Path) -> None:
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
        # The messages of a struct are joined from its members.
        w.write(struct_, T0, b"whatever was read")
        with pytest.raises(logreel.UsageError, match="before the first message"):
            w.metadata("late", "x")
    with logreel.create(tmp_path / "c.bddf") as w, pytest.raises(logreel.UsageError, match="is no text"):
        w.metadata("me:a", "\ud800")
    os.remove(tmp_path / "c.bddf")
    assert rows(path) == [(0, T0, struct.pack("<d", 1), [])]
    assert not logreel.open(path).problems
    with pytest.raises(logreel.UsageError, match="checksum"):
        logreel.create(tmp_path / "b.bddf", checksum="md5")
    assert os.listdir(tmp_path) == ["a.bddf"]
