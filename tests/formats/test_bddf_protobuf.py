"""Protobuf payloads, signals and text of BDDF files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

import logreel
from logreel.errors import DamagedError
from support.harness.cli_runner import Run
from support.samples.bddf.builder import T0, Builder, num, raw, schema, stamp, tick, walk

KIND = descriptor_pb2.FieldDescriptorProto


def described() -> descriptor_pb2.FileDescriptorProto:
    """Return a descriptor file with every kind of field."""
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
    # Without the files of the protobuf library, which users often omit.
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


def test_payloads_are_decoded_as_the_protobuf_library_decodes_them(descriptors: Path) -> None:
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
    # A recursive type is shown as bytes.
    assert first["inner"]["again"] == message.inner.again.SerializeToString()
    assert [m["x"] for m in first["many"]] == [3, 0]
    assert first["when"].value == -5
    assert first["notes"] == [{"key": "a", "value": 1}]
    assert (second["f9"], second["inner"], second["many"], second["when"]) == ("", None, [], None)
    decoded = next(log.messages()).decode()
    assert decoded["inner"]["x"] == 1.5
    assert decoded["when"] == -5
    assert log["p"].to_arrow(["inner.x", "f1"]).to_pydict()["inner.x"] == [1.5, None]


def test_payloads_of_another_type_are_null_and_reported(descriptors: Path) -> None:
    good = filled().SerializeToString()
    log = logreel.open(file_of(good, b"\xff\xff", good), definitions=[descriptors])
    assert log["p"].to_arrow()["f1"].is_null().to_pylist() == [False, True, False]
    assert [p.code for p in log.problems] == ["payload"]
    with pytest.raises(DamagedError):
        list(log.messages())[1].decode()


def test_undescribed_types_show_fields_by_number() -> None:
    log = logreel.open(file_of(num(1, 5) + raw(2, b"ab") + b"\x1d\x01\x00\x00\x00", b"\xff", name="x.Y"))
    first, second = log["p"].to_arrow()["fields"].to_pylist()
    assert [(f["number"], f["wire"], f["value"], f["data"]) for f in first] == [
        (1, "varint", 5, None),
        (2, "bytes", None, b"ab"),
        (3, "fixed32", 1, None),
    ]
    assert second == [{"number": 0, "wire": "raw", "value": None, "data": b"\xff"}]
    assert [p.code for p in log.problems] == ["definition"]


def test_invalid_descriptor_files_are_reported(tmp_path: Path) -> None:
    bad = tmp_path / "bad.binpb"
    bad.write_bytes(b"\xff\xff\xff")
    log = logreel.open(file_of(num(1, 5), name="x.Y"), definitions=[bad])
    assert log["p"].to_arrow().num_rows == 1
    assert any("no set of descriptors" in p.text for p in log.problems)


def test_command_line_accepts_descriptors(run: Run, descriptors: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.bddf"
    path.write_bytes(file_of(filled().SerializeToString()))
    done = run("cat", path, "--descriptors", descriptors)
    assert done.code == 0
    assert 'colour="BLUE"' in done.out


def test_message_classes_of_a_named_module_are_used(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names must be unique, since the protobuf library keeps all types."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    out = descriptor_pb2.FileDescriptorProto(name="installed.proto", package="installed", syntax="proto3")
    out.message_type.add(name="Pair").field.add(name="left", number=1, type=KIND.TYPE_INT32, label=1)
    package = Path("lib/installed")
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "pair_pb2.py").write_text(
        "from google.protobuf import descriptor_pool\n"
        f"descriptor_pool.Default().AddSerializedFile({out.SerializeToString()!r})\n"
    )
    Path("p.bddf").write_bytes(file_of(num(1, 7), name="installed.Pair"))
    assert "number=1" in run("cat", "p.bddf").out
    done = run("cat", "p.bddf", "--descriptors", "installed")
    assert (done.code, done.out.split()[2:]) == (0, ["left=7"])
    assert [f["path"] for f in run("schema", "p.bddf", "--json").json["schemas"][0]["fields"]] == ["left"]
    absent = run("cat", "p.bddf", "--descriptors", "absent.classes")
    assert "absent.classes: neither a file nor a module" in absent.err


def test_every_verb_accepts_a_bddf_log(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.bddf").write_bytes(walk(1))
    for verb in (
        ["info"],
        ["schema"],
        ["text"],
        ["stats", "--fields"],
        ["cat"],
        ["cat", "--format", "ndjson"],
        ["cat", "-t", "patrol/*/speed", "--format", "csv"],
        ["check"],
    ):
        done = run(verb[0], "w.bddf", *verb[1:])
        assert (done.code, bool(done.out)) == (0, True), (verb, done.err, done.out)
    for out in ("w.parquet/", "w.csv/", "w.arrow/", "w.ndjson"):
        assert run("convert", "w.bddf", out).code == 0, out


def test_opening_does_not_import_protobuf() -> None:
    code = (
        "import sys; sys.modules['google.protobuf'] = None\n"
        "import logreel; from support.samples.bddf.builder import walk\n"
        "log = logreel.open(walk(2)); log['mission'].to_arrow(); log['body'].to_arrow(); log.text; log.start\n"
    )
    tests = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": tests})


def test_signals_become_columns() -> None:
    log = logreel.open(walk(2))
    table = log["bosdyn.api.SignalTick"].to_arrow(["sequence", "motor.torque", "motor.temperature"])
    assert table["motor.temperature"].to_pylist() == [40 + i % 5 for i in range(20)]
    assert table["sequence"].to_pylist() == list(range(20))


def test_ticks_that_match_no_schema_or_several_keep_their_bytes() -> None:
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


def test_text_lines_have_levels_and_sources() -> None:
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
