"""Definitions of ROS releases before 2010 in MCAPs can be read by current parsers."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from conftest import SHARED
from logreel.schemas import ros1msg
from support.samples.rosbag.builder import START, Builder, version_2_0
from support.samples.rosbag.old import Topic

mcap_ros1 = pytest.importorskip("mcap_ros1.decoder", reason="needs mcap-ros1-support")
rosbags_typesys = pytest.importorskip("rosbags.typesys", reason="needs rosbags")

RULE = "\n" + "=" * 80 + "\n"
HEADER = "# of roslib\nuint32 seq\ntime stamp\nstring frame_id\n"
OLD = f"{RULE}MSG: roslib/Header\n{HEADER}"
#: Name, text, and a payload that begins with a header.
HEAD = struct.pack("<IIII", 7, 1, 2, 3) + b"map"
TEXTS = {
    "old_msgs/Bare": f"Header header\nint32 a{OLD}",
    "old_msgs/Spelt": f"roslib/Header header # why\nint32 a{OLD}",
    "old_msgs/Rostools": f"rostools/Header\theader\nint32 a{RULE}MSG: rostools/Header\n{HEADER}",
    "old_msgs/Nested": f"Inner inner\nint32 a{RULE}MSG: old_msgs/Inner\nHeader header{OLD}",
    "old_msgs/Both": f"Inner inner\nint32 a{RULE}MSG: old_msgs/Inner\nroslib/Header header{RULE}"
    f"MSG: roslib/Header\n{HEADER}{RULE}MSG: std_msgs/Header\n{HEADER}",
    "old_msgs/Missing": "Header header\nint32 a\n",
    "old_msgs/OtherPackage": f"Inner inner\nint32 a{RULE}MSG: strange_msgs/Inner\nHeader header{OLD}",
}
PAYLOAD = HEAD + struct.pack("<i", 5)


def _bag() -> bytes:
    messages = []
    for name, text in TEXTS.items():
        md5 = ros1msg.parse(text, name).md5
        messages.append((Topic(f"/{name.partition('/')[2]}", name, md5, text), START, PAYLOAD))
    return version_2_0(messages, Builder())


def _converted(tmp_path: Path, bag: bytes, **options: Any) -> Path:
    out = tmp_path / "x.mcap"
    logreel.convert(bag, out, force=True, **options)
    return out


def _theirs(path: Path) -> dict[str, Any]:
    """The first message in the file of each ROS 1 topic as the mcap library decodes it; every schema has to parse."""
    from mcap.reader import make_reader

    factory, found = mcap_ros1.DecoderFactory(), {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages(log_time_order=False):
            if channel.message_encoding == "ros1" and channel.topic not in found:
                found[channel.topic] = factory.decoder_for("ros1", schema)(message.data)
    return found


def test_definitions_with_roslib_header_are_read_by_parsers_of_today(tmp_path: Path) -> None:
    path = _converted(tmp_path, _bag())
    found = _theirs(path)
    with logreel.open(path) as log:
        for name, text in TEXTS.items():
            topic = f"/{name.partition('/')[2]}"
            one = getattr(found[topic], "inner", found[topic])
            assert (one.header.seq, one.header.frame_id, found[topic].a) == (7, "map", 5)
            ours = log[topic].schema.text
            assert "roslib/" not in ours, topic
            assert "rostools/" not in ours, topic
            # Fields and sum stay, comments too where the text had the definition.
            assert ros1msg.parse(ours, name).md5 == ros1msg.parse(text, name).md5
            assert "# of roslib" in ours or name == "old_msgs/Missing"
            types = rosbags_typesys.get_types_from_msg(ours, name.replace("/", "/msg/"))
            store = rosbags_typesys.get_typestore(rosbags_typesys.Stores.EMPTY)
            store.register(types)
            read = store.deserialize_ros1(PAYLOAD, name.replace("/", "/msg/"))
            assert (getattr(read, "inner", read).header.frame_id, read.a) == ("map", 5)


def test_raw_keeps_definitions_byte_for_byte(tmp_path: Path) -> None:
    with logreel.open(_converted(tmp_path, _bag(), raw=True)) as log:
        for name, text in TEXTS.items():
            assert log[f"/{name.partition('/')[2]}"].schema.text == text


def test_a_header_with_other_fields_stays_next_to_the_current_one() -> None:
    text = f"roslib/Header a\nstd_msgs/Header b{RULE}MSG: roslib/Header\nuint32 other\n"
    text += f"{RULE}MSG: std_msgs/Header\n{HEADER}"
    assert ros1msg.portable(text, "old_msgs/Two") == text


@pytest.mark.parametrize("name", ros1msg.standard().names())
def test_a_current_definition_stays_unchanged(name: str) -> None:
    text = ros1msg.full_text(name)
    if "roslib/Header" not in text:
        assert ros1msg.portable(text, name) == text


SAMPLES = sorted((SHARED / "data" / "rosbag").glob("v*.bag"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_converted_samples_have_schemas_that_the_mcap_library_reads(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.mcap"
    try:
        logreel.convert(path, out)
    except logreel.LogError:
        pytest.skip("nothing to convert")
    found = _theirs(out)
    with logreel.open(out) as log:
        ros = {t for t, ch in log.channels.items() if ch.schema.encoding == "ros1msg" and len(ch)}
    assert {t.partition("[")[0] for t in ros} == found.keys()
