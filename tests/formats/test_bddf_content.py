"""Plain values, additional indexes, structs, protobuf payloads, signals and text of BDDF files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

import logreel
from cli_runner import Run
from logreel.errors import DamagedError
from logreel.formats.bddf.messages import Identifier
from logreel.formats.bddf.sample import PODS, T0, Builder, hash_of, num, raw, schema, stamp, tick, walk
from logreel.formats.bddf.verify import verify
from logreel.model.source import Source

KIND = descriptor_pb2.FieldDescriptorProto


def test_the_sample_is_sound_by_index_and_by_scan() -> None:
    data = walk(3)
    assert verify(Source.open(data)) is None
    indexed, scanned = logreel.open(data), logreel.open(data[:-40])
    assert (indexed.metadata["indexed"], scanned.metadata["indexed"]) == (True, False)
    assert not indexed.problems
    assert list(indexed.channels) == list(scanned.channels)
    for topic in indexed:
        a, b = indexed[topic].to_arrow(), scanned[topic].to_arrow()
        assert a.equals(b), topic


def test_a_flipped_bit_is_seen_by_the_checksum_alone() -> None:
    data = bytearray(walk(1))
    data[data.index(b"start of the patrol")] ^= 1
    assert not logreel.open(bytes(data)).problems
    problem = verify(Source.open(bytes(data)))
    assert problem is not None
    assert (problem.code, problem.lost) == ("checksum", True)


# --------------------------------------------------------------------------------------------- plain values


@pytest.mark.parametrize("kind", PODS)
@pytest.mark.parametrize("dimension", [(), (1,), (3,), (2, 3), (2, 1, 4)])
def test_every_type_and_dimension(kind: str, dimension: Sequence[int]) -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, kind, dimension, "m/s2")
    values = np.arange(2 * 3 * int(np.prod(dimension))).astype(kind)
    half = len(values) // 2
    out.data(series, T0, values[:half].tobytes()).data(series, T0 + 10, values[half:].tobytes())
    ch = logreel.open(out.bytes())["v"]
    assert np.array_equal(ch["value"], values.reshape(-1, *dimension))
    assert ch["value"].dtype == np.dtype(kind)
    table = ch.to_arrow()
    assert table.column_names == ["time", "sample", "value"]
    assert table["sample"].to_pylist() == [0, 1, 2, 0, 1, 2]
    assert table.schema.field("value").metadata == {b"unit": b"m/s2"}
    lists = ch.to_arrow(explode=False)
    assert lists["sample"].to_pylist() == [[0, 1, 2]] * 2
    (first, _) = ch.log.messages(["v"])
    assert first.decode()["records"][2]["value"] == values.reshape(-1, *dimension)[2].tolist()


def test_times_are_those_of_blocks_or_spread_and_the_schema_says_so() -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, "float32")
    for ns, n in ((T0, 4), (T0 + 100, 1), (T0 + 200, 2), (T0 + 200, 2), (T0 + 150, 3), (T0 + 450, 3)):
        out.values(series, ns, "float32", [0] * n)
    ch = logreel.open(out.bytes())["v"]

    def times(table: pa.Table) -> list[int]:
        return [t - T0 for t in np.asarray(table["time"].cast("int64")).tolist()]

    plain, spread = ch.to_arrow(), ch.to_arrow(interpolate=True)
    assert times(plain) == [0] * 4 + [100] + [200] * 4 + [150] * 3 + [450] * 3
    assert times(spread) == [0, 25, 50, 75, 100, 200, 200, 200, 200, 150, 250, 350, 450, 550, 650]
    assert b"first record" in plain.schema.field("time").metadata[b"meaning"]
    assert b"spread evenly" in spread.schema.field("time").metadata[b"meaning"]
    # In pieces, and from the middle, the next block is still the one that follows.
    parts = pa.Table.from_batches(list(ch.batches(2, interpolate=True)))
    assert times(parts) == times(spread)
    assert times(ch.to_arrow(start=T0 + 100, end=T0 + 101, interpolate=True)) == [100]
    assert "that of its first sample" in ch.schema.text


def test_a_block_with_a_part_of_a_sample_stays_raw() -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, "int32", names=["n"])
    out.data(series, T0, bytes(8), [1]).data(series, T0 + 1, bytes(7), [2]).data(series, T0 + 2, b"", [3])
    log = logreel.open(out.data(series, T0 + 3, bytes(4), [4]).bytes())
    assert log["v"].to_arrow().to_pydict()["n"] == [1, 1, 4]
    assert [p.code for p in log.problems] == ["payload"]
    messages = list(log.messages())
    assert [len(m.data) for m in messages] == [8, 7, 0, 4]
    with pytest.raises(DamagedError):
        messages[1].decode()


@pytest.mark.parametrize("dimension", [(0,), (1 << 31, 1 << 31), (1,) * 200])
def test_dimensions_that_no_sample_has_stay_raw(dimension: Sequence[int]) -> None:
    out = Builder()
    series = out.pods({"varname": "v"}, "float64", dimension)
    log = logreel.open(out.data(series, T0, b"12345678").bytes())
    assert log["v"].to_arrow()["data"].to_pylist() == [b"12345678"]


def test_additional_indexes_are_columns_under_names_that_fit() -> None:
    out = Builder()
    series = out.messages("say", "text/plain", "line", names=["pid", "", "text", "pid"])
    low, high = -(1 << 63), (1 << 63) - 1
    out.data(series, T0, b"one", [1, low, high, 4]).data(series, T0 + 1, b"two", [5, 6])
    log = logreel.open(out.bytes())
    assert log["say"].to_arrow().to_pydict() | {"time": None} == {
        "time": None,
        "pid": [1, 5],
        "index_1": [low, 6],
        "text_2": [high, 0],
        "pid_2": [4, 0],
        "text": ["one", "two"],
    }
    assert log["say"].to_arrow(["text_2"]).column_names == ["time", "text_2"]
    first, _ = log.messages()
    assert first.decode() == {"pid": 1, "index_1": low, "text_2": high, "pid_2": 4, "text": "one"}
    assert log["say"].decode(memoryview(b"by itself")) == {"text": "by itself"}


# -------------------------------------------------------------------------------------------------- series


def test_series_of_one_name_and_several_types_are_told_apart() -> None:
    out = Builder()
    out.messages("mixed", "application/protobuf", "a.B")
    out.messages("mixed", "text/plain", "line")
    out.messages("mixed[1]", "text/plain", "line")
    out.pods({"bosdyn:channel": "mixed"}, "int8")
    out.pods({}, "int8")
    log = logreel.open(out.bytes())
    assert len(log.channels) == 5
    assert list(log)[:2] == ["mixed", "mixed[1]"]
    assert [ch.schema.name for ch in log.channels.values()] == ["a.B", "line", "line", "int8", "int8"]


def test_the_hash_has_no_separators_so_it_collides() -> None:
    told = Identifier("bosdyn:message-channel", {"bosdyn:channel": "a"})
    assert told.hash == hash_of(told.type, told.spec) == 0x727781938A7FE37F
    assert Identifier("t", {"ab": "c"}).hash == Identifier("t", {"a": "bc"}).hash
    out = Builder()
    a = out.pods({"ab": "c"}, "int8")
    b = out.pods({"a": "bc"}, "int8")
    out.values(a, T0, "int8", [1]).values(b, T0, "int8", [2])
    out.struct({"s": "joined"}, {"x": a})
    log = logreel.open(out.bytes())
    assert (log["c"]["value"].tolist(), log["bc"]["value"].tolist()) == ([1], [2])
    assert log["joined"]["x"].tolist() == [1]
    assert any("2 series have the hash" in p.text for p in log.problems)


def joined(cuts: Sequence[Sequence[int]], missing: Sequence[int] = ()) -> logreel.Channel:
    """A struct of as many members as there are *cuts*, each with blocks of these sample counts."""
    out = Builder()
    kinds = ["float64", "int16", "uint8"]
    members = {f"m{i}": out.pods({"varname": f"m{i}"}, kinds[i]) for i in range(len(cuts))}
    for i, cut in enumerate(cuts):
        at = 0
        for n in cut:
            if (i, at) != tuple(missing):
                out.values(i, T0 + 10 * at, kinds[i], range(100 * i + at, 100 * i + at + n))
            at += n
    out.struct({"schema": "all"}, members)
    return logreel.open(out.bytes())["all"]


def test_struct_series_are_joined_by_sample() -> None:
    ch = joined([(4, 4), (4, 4), (4, 4)])
    assert len(ch) == 2
    assert ch["m0"].tolist() == list(range(8))
    assert ch["m1"].tolist() == list(range(100, 108))
    assert ch["sample"].tolist() == [0, 1, 2, 3] * 2
    assert ch.times.tolist() == [T0, T0 + 40]
    # Blocks of bytes and blocks of doubles are not cut at the same samples.
    other = joined([(4, 4), (8,), (2, 2, 2, 2)])
    assert other["m2"].tolist() == list(range(200, 208))
    assert len(other) == 2


def test_struct_members_with_gaps_are_joined_by_time() -> None:
    ch = joined([(4, 4, 4), (4, 4, 4)], missing=(1, 4))
    assert ch["m0"].tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    assert ch["m1"].tolist() == [100, 101, 102, 103, 108, 109, 110, 111]


def test_structs_nest_and_hold_messages_and_never_themselves() -> None:
    out = Builder()
    x = out.pods({"v": "x"}, "float32", [2], "m")
    note = out.messages("note", "text/plain", "line")
    inner = out.struct({"s": "inner"}, {"x": x})
    outer = out.struct({"s": "outer"}, {"inner": inner, "note": note})
    out._hashes.append(hash_of("bosdyn:logtick-struct", {"s": "loop"}))
    out.struct({"s": "loop"}, {"me": outer + 1, "x": x})
    for i in range(3):
        out.values(x, T0 + i, "float32", [i, -i]).data(note, T0 + i, b"n" * i)
    log = logreel.open(out.killed())
    rows = log["outer"].to_arrow().to_pydict()
    assert [row["x"] for row in rows["inner"]] == [[0, 0], [1, -1], [2, -2]]
    assert rows["note"] == [b"", b"n", b"nn"]
    assert log["loop"].fields == ["sample", "x"]


# ------------------------------------------------------------------------------------------------ protobuf


def described() -> descriptor_pb2.FileDescriptorProto:
    """A file with every kind of field that a message can have."""
    out = descriptor_pb2.FileDescriptorProto(name="t.proto", package="t", syntax="proto3")
    out.dependency.append("google/protobuf/timestamp.proto")
    enum = out.enum_type.add(name="Colour")
    for number, name in enumerate(("NONE", "RED", "BLUE")):
        enum.value.add(name=name, number=number)
    inner = out.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=KIND.TYPE_DOUBLE, label=1)
    inner.field.add(name="again", number=2, type=KIND.TYPE_MESSAGE, type_name=".t.Inner", label=1)
    all_ = out.message_type.add(name="All")
    scalars = [k for k in range(1, 19) if k not in (KIND.TYPE_GROUP, KIND.TYPE_MESSAGE, KIND.TYPE_ENUM)]
    for k in scalars:
        all_.field.add(name=f"f{k}", number=k, type=k, label=1)
        all_.field.add(name=f"r{k}", number=k + 100, type=k, label=3)
    all_.field.add(name="colour", number=20, type=KIND.TYPE_ENUM, type_name=".t.Colour", label=1)
    all_.field.add(name="inner", number=21, type=KIND.TYPE_MESSAGE, type_name=".t.Inner", label=1)
    all_.field.add(name="many", number=22, type=KIND.TYPE_MESSAGE, type_name=".t.Inner", label=3)
    all_.field.add(
        name="when", number=23, type=KIND.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=1
    )
    entry = all_.nested_type.add(name="NotesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=KIND.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=KIND.TYPE_INT32, label=1)
    all_.field.add(name="notes", number=24, type=KIND.TYPE_MESSAGE, type_name=".t.All.NotesEntry", label=3)
    return out


def class_of(name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(described())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def file_of(*payloads: bytes, name: str = "t.All") -> bytes:
    out = Builder()
    series = out.messages("p", name=name)
    for i, payload in enumerate(payloads):
        out.data(series, T0 + i, payload)
    return out.bytes()


@pytest.fixture
def descriptors(tmp_path: Path) -> Path:
    path = tmp_path / "t.binpb"
    # Without the library's own files, as people often make them.
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[described()]).SerializeToString())
    return path


def filled() -> Any:
    message = class_of("t.All")()
    for field in message.DESCRIPTOR.fields:
        kind = field.type
        if field.number < 19:
            value = b"\x00\xff" if kind == 12 else "ü" if kind == 9 else True if kind == 8 else 7
            setattr(message, field.name, value)
            getattr(message, f"r{field.number}").extend([value, value])
    message.colour = 2
    message.inner.x = 1.5
    message.inner.again.x = 2.5
    message.many.add(x=3)
    message.many.add()
    message.when.seconds = -1
    message.when.nanos = 999999995
    message.notes["a"] = 1
    return message


def test_payloads_are_decoded_by_descriptors_as_the_library_decodes_them(descriptors: Path) -> None:
    message = filled()
    log = logreel.open(file_of(message.SerializeToString(), b""), definitions=[descriptors])
    assert not log.problems
    first, second = log["p"].to_arrow().to_pylist()
    for field in message.DESCRIPTOR.fields:
        if field.number < 19:
            assert first[field.name] == getattr(message, field.name)
            assert first[f"r{field.number}"] == list(getattr(message, f"r{field.number}"))
    assert first["colour"] == "BLUE"
    assert first["inner"]["x"] == 1.5
    # A type inside itself stays as its bytes.
    assert first["inner"]["again"] == message.inner.again.SerializeToString()
    assert [m["x"] for m in first["many"]] == [3, 0]
    assert first["when"].value == -5
    assert first["notes"] == [{"key": "a", "value": 1}]
    assert (second["f9"], second["inner"], second["many"], second["when"]) == ("", None, [], None)
    decoded = next(log.messages()).decode()
    assert decoded["inner"]["x"] == 1.5
    assert decoded["when"] == -5
    assert log["p"].to_arrow(["inner.x", "f1"]).to_pydict()["inner.x"] == [1.5, None]


def test_payloads_that_are_no_such_message_are_left_out_and_told(descriptors: Path) -> None:
    good = filled().SerializeToString()
    log = logreel.open(file_of(good, b"\xff\xff", good), definitions=[descriptors])
    assert log["p"].to_arrow().num_rows == 2
    assert [p.code for p in log.problems] == ["payload"]
    with pytest.raises(DamagedError):
        list(log.messages())[1].decode()


def test_without_a_description_fields_are_shown_by_number() -> None:
    log = logreel.open(file_of(num(1, 5) + raw(2, b"ab") + b"\x1d\x01\x00\x00\x00", b"\xff", name="x.Y"))
    first, second = log["p"].to_arrow()["fields"].to_pylist()
    assert [(f["number"], f["wire"], f["value"], f["data"]) for f in first] == [
        (1, "varint", 5, None),
        (2, "bytes", None, b"ab"),
        (3, "fixed32", 1, None),
    ]
    assert second == [{"number": 0, "wire": "raw", "value": None, "data": b"\xff"}]
    assert [p.code for p in log.problems] == ["definition"]


def test_descriptors_that_are_none_are_told(tmp_path: Path) -> None:
    bad = tmp_path / "bad.binpb"
    bad.write_bytes(b"\xff\xff\xff")
    log = logreel.open(file_of(num(1, 5), name="x.Y"), definitions=[bad])
    assert log["p"].to_arrow().num_rows == 1
    assert any("no set of descriptors" in p.text for p in log.problems)


def test_the_command_line_takes_descriptors(run: Run, descriptors: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.bddf"
    path.write_bytes(file_of(filled().SerializeToString()))
    done = run("cat", path, "--descriptors", descriptors)
    assert done.code == 0
    assert 'colour="BLUE"' in done.out


def test_plain_opening_needs_no_protobuf_library() -> None:
    code = (
        "import sys; sys.modules['google.protobuf'] = None\n"
        "import logreel; from logreel.formats.bddf.sample import walk\n"
        "log = logreel.open(walk(2)); log['mission'].to_arrow(); log['body'].to_arrow(); log.text; log.start\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------------------------------- signals and text


def test_signals_become_columns() -> None:
    log = logreel.open(walk(2))
    table = log["bosdyn.api.SignalTick"].to_arrow(["sequence", "motor.torque", "motor.temperature"])
    assert table["motor.temperature"].to_pylist() == [40 + i % 5 for i in range(20)]
    assert table["sequence"].to_pylist() == list(range(20))


def test_ticks_that_fit_no_schema_or_several_keep_their_bytes() -> None:
    out = Builder()
    shapes = out.messages("bosdyn.api.SignalSchema")
    ticks = out.messages("bosdyn.api.SignalTick")
    for name, parts in (
        ("a", {"t": "int64", "v": "int8"}),
        ("b", {"t": "int64", "v": "uint8"}),
        ("message", {"t": "int64", "v": "float32"}),
    ):
        out.data(shapes, T0, schema(name, parts))
    for data in (bytes(9), bytes(12), b"?"):
        out.data(ticks, T0 + len(data), tick(1, T0, data))
    log = logreel.open(out.bytes())
    assert log["bosdyn.api.SignalTick"].to_arrow(["message"]).to_pydict()["message"] == [
        None,
        {"t": 0, "v": 0.0},
        None,
    ]
    assert [len(m.decode()["data"]) for m in log.messages("bosdyn.api.SignalTick", order="file")] == [
        9,
        12,
        1,
    ]


def test_text_is_what_people_wrote_with_levels() -> None:
    lines = logreel.open(walk(20)).text
    assert [(line.level, line.source) for line in lines[:3]] == [
        (None, "operator"),
        (7, "locomotion"),
        (None, "patrol"),
    ]
    assert lines[2].text == "stairs: flight 1"
    out = Builder()
    comment = out.messages("bosdyn.api.OperatorComment")
    out.data(comment, T0, b"\xff").data(comment, T0 + 1, raw(1, "fine") + raw(2, stamp(T0)))
    assert [line.text for line in logreel.open(out.bytes()).text] == ["fine"]
