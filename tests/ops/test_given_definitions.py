"""Definitions and types given by the user are included in every log written from the log."""

from __future__ import annotations

import inspect
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import logreel
from logreel.cli.app import logreel as group
from logreel.cli.help import VERBS
from logreel.schemas import ros1msg
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import START, Builder, version_2_0
from support.samples.rosbag.old import Topic, version_1_1
from support.samples.rosbag.types import definition, md5

PAIR = "int32 a\nint32 b\n"
OWN = "Pair[] pairs\nint32 n\n"
OWN_MD5 = ros1msg.parse(f"{OWN}\n{'=' * 80}\nMSG: own_msgs/Pair\n{PAIR}", "own_msgs/Own").md5
PAYLOAD = struct.pack("<Iiiiii", 2, 1, 2, 3, 4, 9)
DECODED = {"pairs": [{"a": 1, "b": 2}, {"a": 3, "b": 4}], "n": 9}
TEXT = struct.pack("<I", 2) + b"hi"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    there = tmp_path / "share" / "own_msgs" / "msg"
    there.mkdir(parents=True)
    (there / "Own.msg").write_text(OWN)
    (there / "Pair.msg").write_text(PAIR)
    return tmp_path / "share"


def _bag(text: str = "") -> bytes:
    own = Topic("/own", "own_msgs/Own", OWN_MD5, text)
    known = Topic("/text", "std_msgs/String", md5("std_msgs/String"), "")
    return version_2_0([(own, START, PAYLOAD), (known, START + 1, TEXT)], Builder())


def _old() -> bytes:
    own = Topic("/own", "own_msgs/Own", OWN_MD5)
    return version_1_1([(own, START, PAYLOAD), (Topic("/text", "std_msgs/String"), START + 1, TEXT)])


def _starred() -> bytes:
    return version_1_1([(Topic("/own", "*", "*"), START, PAYLOAD), (Topic("/text", "*", "*"), START, TEXT)])


WAYS: dict[str, Callable[[bytes, Path, Any], Any]] = {
    "slice": lambda log, out, given: logreel.slice(log, out, definitions=given),
    "sort": lambda log, out, given: logreel.sort(log, out, definitions=given),
    "merge": lambda log, out, given: logreel.merge([log], out, definitions=given),
    "recover": lambda log, out, given: logreel.recover(log, out, definitions=given),
    "convert": lambda log, out, given: logreel.convert(log, out, definitions=given),
    "convert raw": lambda log, out, given: logreel.convert(log, out, raw=True, definitions=given),
    "mcap": lambda log, out, given: logreel.convert(log, out.with_suffix(".mcap"), definitions=given),
    "mcap raw": lambda log, out, given: logreel.convert(
        log, out.with_suffix(".mcap"), raw=True, definitions=given
    ),
}


def _written(how: str, log: bytes, tmp_path: Path, given: Any) -> Path:
    out = tmp_path / "out.bag"
    WAYS[how](log, out, given)
    return out.with_suffix(".mcap") if how.startswith("mcap") else out


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("make", [_bag, _old, lambda: _bag(OWN)], ids=["2.0", "1.1", "half a text"])
def test_definitions_given_by_hand_are_carried(
    how: str, make: Callable[[], bytes], tmp_path: Path, folder: Path
) -> None:
    path = _written(how, make(), tmp_path, [folder])
    with logreel.open(path) as log:
        assert not log.problems
        assert next(log.messages("/own")).decode() == DECODED
        assert "MSG: own_msgs/Pair" in log["/own"].schema.text
        assert next(log.messages("/text")).decode() == {"data": "hi"}


@pytest.mark.parametrize("how", [way for way in WAYS if "raw" not in way])
def test_standard_types_need_no_option(how: str, tmp_path: Path) -> None:
    log = version_1_1([(Topic("/text", "std_msgs/String"), START, TEXT)])
    path = _written(how, log, tmp_path, ())
    found = path.read_bytes() if path.suffix == ".bag" else b"string data"
    assert b"string data" in found
    with logreel.open(path) as written:
        assert next(written.messages("/text")).decode() == {"data": "hi"}


def test_a_text_that_leaves_out_standard_types_is_completed_in_a_bag(tmp_path: Path) -> None:
    kind = "geometry_msgs/PointStamped"
    text = "Header header\nPoint point\n"
    topic = Topic("/point", kind, md5(kind), text)
    log = version_2_0([(topic, START, struct.pack("<IIII3d", 1, 2, 3, 0, 1, 2, 3))], Builder())
    logreel.slice(log, tmp_path / "out.bag")
    with logreel.open(tmp_path / "out.bag") as written:
        assert ros1msg.parse(
            written["/point"].schema.text, kind, ros1msg.DefinitionRegistry(known=False)
        ).md5 == md5(kind)


def test_split_carries_definitions(tmp_path: Path, folder: Path) -> None:
    parts = logreel.split(_old(), tmp_path / "parts", by_topic=True, definitions=folder)
    with logreel.open(parts[0].path) as log:
        assert next(log.messages("/own")).decode() == DECODED


def test_record_takes_definitions_of_the_log_it_is_like(tmp_path: Path, folder: Path) -> None:
    line = json.dumps({"topic": "/own", "time_ns": START, "data": DECODED})
    logreel.record([line], tmp_path / "out.bag", like=_bag(), definitions=[folder])
    with logreel.open(tmp_path / "out.bag") as log:
        assert log["/own"].metadata["md5sum"] == OWN_MD5
        assert [bytes(m.data) for m in log.messages("/own")] == [PAYLOAD]


@pytest.mark.parametrize("how", WAYS)
def test_types_given_by_hand_are_carried(how: str, tmp_path: Path, folder: Path) -> None:
    given = [folder, {"/own": "own_msgs/Own", "/text": "std_msgs/String"}]
    with logreel.open(_written(how, _starred(), tmp_path, given)) as log:
        assert [ch.schema.name for ch in log.channels.values()] == ["own_msgs/Own", "std_msgs/String"]
        assert [ch.metadata["md5sum"] for ch in log.channels.values()] == [OWN_MD5, md5("std_msgs/String")]
        assert next(log.messages("/own")).decode() == DECODED
        assert next(log.messages("/text")).decode() == {"data": "hi"}


def test_a_type_of_no_topic_or_of_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(logreel.TopicError, match="/text"):
        logreel.open(_starred(), definitions={"/test": "std_msgs/String"})
    with pytest.raises(logreel.UsageError, match="no type of ROS 1"):
        logreel.open(_starred(), definitions={"/text": "std_msgs String"})
    from support.samples.ulog.builder import tiny

    topic = next(iter(logreel.open(tiny())))
    with pytest.raises(logreel.UsageError, match="ROS 1"):
        logreel.open(tiny(), definitions={topic: "std_msgs/String"})
    with pytest.raises(logreel.UsageError, match="open already"):
        logreel.slice(logreel.open(_old()), tmp_path / "out.bag", definitions={"/text": "std_msgs/String"})


def test_a_type_of_a_topic_of_one_of_several_logs_is_taken(tmp_path: Path) -> None:
    other = version_1_1([(Topic("/more", "*", "*"), START, TEXT)])
    logreel.merge([_starred(), other], tmp_path / "out.bag", definitions={"/more": "std_msgs/String"})
    with logreel.open(tmp_path / "out.bag") as log:
        assert next(log.messages("/more")).decode() == {"data": "hi"}
    with pytest.raises(logreel.TopicError):
        logreel.merge([_starred(), other], tmp_path / "no.bag", definitions={"/none": "std_msgs/String"})


def test_an_mcap_without_schemas_takes_definitions_and_types(tmp_path: Path, folder: Path) -> None:
    from mcap.writer import Writer

    path = tmp_path / "bare.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        named = writer.register_schema("own_msgs/Own", "ros1msg", b"")
        for topic, schema in (("/own", named), ("/bare", 0)):
            channel = writer.register_channel(topic, "ros1", schema)
            writer.add_message(channel, START, PAYLOAD, START)
        writer.finish()
    given = [folder, {"/bare": "own_msgs/Own"}]
    for out in ("raw.mcap", "new.mcap"):
        logreel.convert(path, tmp_path / out, raw=out == "raw.mcap", definitions=given)
        with logreel.open(tmp_path / out) as log:
            assert [m.decode() for m in log.messages()] == [DECODED, DECODED]


def test_descriptors_given_by_hand_are_carried_into_an_mcap(tmp_path: Path) -> None:
    from google.protobuf import descriptor_pb2
    from mcap.writer import Writer

    file = descriptor_pb2.FileDescriptorProto(name="own.proto", package="own", syntax="proto3")
    field = file.message_type.add(name="Number").field.add(name="x", number=1, type=5, label=1)
    assert field.name == "x"
    descriptors = tmp_path / "own.binpb"
    descriptors.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    path = tmp_path / "bare.mcap"
    with path.open("wb") as out:
        writer = Writer(out)
        writer.start()
        schema = writer.register_schema("own.Number", "protobuf", b"")
        channel = writer.register_channel("/x", "protobuf", schema)
        writer.add_message(channel, START, b"\x08\x05", START)
        writer.finish()
    logreel.convert(path, tmp_path / "new.mcap", definitions=[descriptors])
    with logreel.open(tmp_path / "new.mcap") as log:
        assert next(log.messages("/x")).decode() == {"x": 5}


def test_the_command_line_carries_definitions_and_types(tmp_path: Path, folder: Path, run: Run) -> None:
    old, out = tmp_path / "old.bag", tmp_path / "new.bag"
    old.write_bytes(_starred())
    given = ["--msgdef", str(folder), "--type", "/own=own_msgs/Own", "--type", "/text=std_msgs/String"]
    assert run("convert", old, out, *given).code == 0
    assert run("cat", out, "-t", "/own", "--format", "ndjson").json["data"] == DECODED
    refused = run("info", old, "--type", "/own")
    assert refused.code == 2
    assert "TOPIC=TYPE" in refused.err


#: They ask nothing that a definition could answer, or, as fleet, open logs in other processes.
WITHOUT = {
    "definitions", "add", "index", "demo", "formats", "new-format", "completion", "du", "fleet", "verify",
}  # fmt: skip


def test_every_verb_that_opens_a_log_takes_definitions_and_types() -> None:
    for verb in (verb for verbs in VERBS.values() for verb in verbs if verb not in WITHOUT):
        command = group.get_command(click.Context(group), verb)
        assert command is not None
        options = {name for one in command.params for name in one.opts}
        assert {"--msgdef", "--descriptors", "--type"} <= options, verb


def test_every_function_that_opens_a_log_takes_definitions() -> None:
    for name in ("align", "check", "convert", "diff", "info", "merge", "open", "record", "recover"):
        assert "definitions" in inspect.signature(getattr(logreel, name)).parameters, name
    for name in ("scan_polars", "slice", "sort", "split", "sql", "Player", "Service"):
        assert "definitions" in inspect.signature(getattr(logreel, name)).parameters, name


def test_definition_is_that_of_the_sample() -> None:
    # The builder's own definitions are what the tests above lean on.
    assert ros1msg.parse(definition("std_msgs/String"), "std_msgs/String").md5 == md5("std_msgs/String")
