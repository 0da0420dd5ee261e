"""BDDF messages written by fields and by tables are read back unchanged."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import logreel
from support.builders.bddf_rows import LINE, NUMBERED, POINT, rows
from support.samples.bddf.builder import T0, Builder, walk


def test_tables_and_single_messages_give_the_same_file(tmp_path: Path) -> None:
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
        side_columns = np.stack([np.zeros(n, np.int64), np.arange(n)], axis=1)
        w.write_many(np.full(n, say, np.int32), times, data, np.cumsum(size) - size, size, side_columns)
    assert paths[0].read_bytes() == paths[1].read_bytes() == paths[2].read_bytes()
    log = logreel.open(paths[0])
    assert log["p"]["value"].tolist() == values.reshape(n, 2).tolist()
    assert log["say"]["n"].tolist() == list(range(n))
    assert log["say"]["pid"].tolist() == [0] * n
    # A table that was read can be written.
    again = tmp_path / "again.bddf"
    with logreel.create(again) as w:
        for ch in log.channels.values():
            w.add_channel(ch.topic, ch.schema, ch.metadata)
        for ch in log.channels.values():
            w.write_table(ch.number, ch.to_arrow())
    assert again.read_bytes() == paths[0].read_bytes()


def test_samples_with_additional_indexes_are_written(tmp_path: Path) -> None:
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


def test_described_protobuf_messages_are_written_by_fields(tmp_path: Path) -> None:
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


def test_messages_of_user_descriptors_are_written_by_fields(tmp_path: Path) -> None:
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
    # Fields that are zero or empty are written like missing ones.
    absent = {
        "many": [{"x": 1.0, "when": 5}, {"x": 0.0, "when": None}],
        "by_name": [{"key": "k", "value": {"x": 2.0, "when": None}}],
    }
    assert first.decode() == {"n": 5, **fields, **absent}
    assert bytes(second.data) == b""
    assert rows(path)[2] == (1, T0, b"\x08\x01", [6])


def descriptor_set() -> bytes:
    """Return a type with a field of every shape."""
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


def test_decoded_pods_with_additional_indexes_can_be_written_again(tmp_path: Path) -> None:
    path, again, third = (tmp_path / f"{name}.bddf" for name in "abc")
    with logreel.create(path) as w:
        point = w.add_channel("p", POINT, NUMBERED)
        for i, samples in enumerate((1, 3, 0, 2)):
            records = [{"value": [i, k]} for k in range(samples)]
            w.write(point, T0 + i, {"pid": 10 + i, "n": -i, "records": records})
    due = [(0, T0 + i, struct.pack(f"<{2 * n}f", *(x for k in range(n) for x in (i, k))), [10 + i, -i])
           for i, n in enumerate((1, 3, 0, 2))]  # fmt: skip
    assert rows(path) == due
    log = logreel.open(path)
    with logreel.create(again) as w:
        point = w.add_channel("p", log["p"].schema, log["p"].metadata)
        for m in log.messages():
            w.write(point, m.time, m.decode())
    assert rows(again) == due
    lines = [json.dumps({"topic": "p", "time_ns": m.time, "data": m.decode()}) for m in log.messages()]
    done = logreel.record(lines, third, like=path)
    assert (done.messages, list(done.skipped)) == (4, [])
    assert rows(third) == due


def test_unknown_fields_next_to_records_are_refused(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bddf") as w:
        value = w.add_channel("v", logreel.Schema("float64", "bddf"))
        point = w.add_channel("p", POINT, NUMBERED)
        for channel, fields, match in (
            (value, {"records": [{"value": 1}], "pid": 3}, "no field 'pid' next to 'records'"),
            (value, {"value": 1.5}, "no field 'value' next to 'records'"),
            (point, {"records": [], "pid": 3, "x": 1, "y": 2}, "no field 'x', 'y' next to"),
            (point, {"records": [], "pid": 1.5}, "pid: 1.5 is no whole number"),
            (point, {"records": [], "pid": 1 << 63}, "is no whole number of 64 bits"),
        ):
            with pytest.raises(logreel.UsageError, match=match):
                w.write(channel, T0, fields)
    with logreel.create(tmp_path / "a.rec") as w:
        position = w.add_channel("position", logreel.Schema("position", "carla"))
        with pytest.raises(logreel.UsageError, match="no field 'actor' next to 'records'"):
            w.write(position, 0, {"records": [], "actor": 5})
        # The frame number follows from the position in the file.
        w.write(position, 0, {"records": [], "frame": 5})


def test_reserved_annotation_keys_are_refused(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bddf") as w:
        for name in ("count", ":count", ""):
            with pytest.raises(logreel.UsageError, match="are reserved by the format: call it 'ORG"):
                w.metadata(name, 3)
        with pytest.raises(logreel.UsageError, match="annotation 'unit'"):
            w.add_channel("a", POINT, {"annotations": {"unit": "m"}})
        w.metadata("me:count", 3)
        w.add_channel("a", POINT, {"annotations": {"units": "m", "me:x": "1"}})
    # Files with such keys keep them.
    made = Builder({"note": "made"})
    made.data(made.messages("say", "text/plain", "line"), T0, b"hello")
    for verb in (logreel.slice, logreel.recover, logreel.sort):
        verb(made.bytes(), tmp_path / "b.bddf", force=True)
        assert logreel.open(tmp_path / "b.bddf").metadata["note"] == "made"
    logreel.convert(made.bytes(), tmp_path / "b.mcap")
    logreel.convert(tmp_path / "b.mcap", tmp_path / "c.bddf")
    assert logreel.open(tmp_path / "c.bddf").metadata["note"] == "made"


def test_imported_metadata_gets_the_format_as_organization(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.mcap") as w:
        w.metadata("robot", {"name": "walker"})
        say = w.add_channel("say", logreel.Schema("line", "text/plain"))
        w.write(say, T0, b"hello")
    logreel.convert(tmp_path / "a.mcap", tmp_path / "a.bddf")
    assert "walker" in str(logreel.open(tmp_path / "a.bddf").metadata["mcap:robot"])
