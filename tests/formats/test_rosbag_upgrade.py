"""Bags of 2008 to 2010, written as version 2.0: genuine rosbag decodes them with their types."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.schemas import ros1msg
from support.oracles import genuine_rosbag
from support.oracles.ros1 import random_payload
from support.samples.rosbag import old
from support.samples.rosbag.old import Topic

START = 1_230_000_000 * 10**9
#: Types of 2008 to 2010 that bags recorded, with the version by which they were recorded.
TYPES = {
    "scan": ("laser_scan/LaserScan", None),
    "cloud": ("robot_msgs/PointCloud", None),
    "joints": ("mechanism_msgs/JointStates", None),
    "odom": ("deprecated_msgs/RobotBase2DOdom", None),
    "image": ("image_msgs/CompressedImage", None),
    "info": ("sensor_msgs/CameraInfo", "a48ffa77e74ab6901331e50745dff353"),
    "diagnostics": ("diagnostic_msgs/DiagnosticMessage", None),
    "log": ("roslib/Log", None),
    "tf": ("tf/tfMessage", None),
}


def definition(topic: str) -> ros1msg.Definition:
    return ros1msg.define(*(TYPES[topic][0], ""), TYPES[topic][1] or "*")


def messages(make: Callable[[str], Topic], topics: Iterable[str] = TYPES) -> list[old.Message]:
    """Return two messages of each topic, which *make* declares."""
    topics = list(topics)
    declared = {topic: make(topic) for topic in topics}
    found = []
    for i in range(2 * len(topics)):
        topic = topics[i % len(topics)]
        layout = ros1msg.layout(definition(topic))
        found.append((declared[topic], START + i * 10**8, random_payload(layout.root, random.Random(i))))
    return found


def current(topic: str) -> Topic:
    return Topic(topic, TYPES[topic][0], definition(topic).md5, "")


def nameless(topic: str) -> Topic:
    return Topic(topic, TYPES[topic][0], "*", "")


def first_checksum(topic: str) -> Topic:
    return Topic(topic, TYPES[topic][0], definition(topic).md5_v1, "")


BAGS: dict[str, Callable[[], bytes]] = {
    "0": lambda: old.version_0(messages(first_checksum, ["scan"])),
    "1.0": lambda: old.version_1_0(messages(first_checksum)),
    "1.1": lambda: old.version_1_1(messages(first_checksum)),
    "1.1 without checksums": lambda: old.version_1_1(messages(nameless)),
    "1.1 with checksums of today": lambda: old.version_1_1(messages(current)),
    "1.2 with empty definitions": lambda: old.version_1_2(messages(current)),
}
WAYS: dict[str, Callable[[Any, Path], Any]] = {
    "recover": logreel.recover,
    "slice": logreel.slice,
    "sort": logreel.sort,
    "convert": logreel.convert,
}


def same(ours: Any, theirs: Any) -> bool:
    """Return whether two values are equal; NaN equals NaN, and what is no UTF-8 equals any text."""
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list | tuple | bytes):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float) and math.isnan(ours):
        return math.isnan(theirs)
    return ours == theirs


def check(path: Path, log: logreel.Log) -> None:
    """Compare every message that genuine rosbag decodes from *path* with what logreel decodes from *log*."""
    theirs = genuine_rosbag.decoded(path)
    assert len(theirs) == log.message_count
    for ours, other in zip(log.messages(), theirs, strict=True):
        assert (other.topic, other.time) == (ours.channel.topic, ours.time)
        assert same(ours.decode(), other.data), other.topic
    for ch in logreel.open(path).channels.values():
        assert ch.metadata["md5sum"] == ros1msg.parse(ch.schema.text, ch.schema.name).md5
    assert logreel.open(path).problems == ()


@pytest.mark.parametrize(
    ("name", "way"),
    [*((name, "recover") for name in BAGS), *(("1.1", way) for way in WAYS if way != "recover")],
)
def test_genuine_rosbag_decodes_upgraded_bags_like_logreel(name: str, way: str, tmp_path: Path) -> None:
    genuine_rosbag.genuine()
    (tmp_path / "old.bag").write_bytes(BAGS[name]())
    with logreel.open(tmp_path / "old.bag") as log:
        assert log.problems == ()
        assert log.version == name.split()[0]
        WAYS[way](log, tmp_path / "new.bag")
        assert logreel.open(tmp_path / "new.bag").version == "2.0"
        check(tmp_path / "new.bag", log)


@pytest.mark.parametrize(
    "name",
    ["v11_real_ekf_test_2008", "v12_real_laser_scan_2010", "v20_real_cturtle_2010", "syn_v11_rosrecord_md5",
     "syn_v10_roslog_type_md5", "syn_v0_topic_type_md5", "syn_v12_unidx_pertype"],
)  # fmt: skip
def test_genuine_rosbag_decodes_upgraded_samples_like_logreel(
    name: str, shared: Path, tmp_path: Path
) -> None:
    genuine_rosbag.genuine()
    with logreel.open(shared / "data" / "rosbag" / f"{name}.bag") as log:
        logreel.recover(log, tmp_path / "new.bag")
        check(tmp_path / "new.bag", logreel.open(tmp_path / "new.bag"))
        check(tmp_path / "new.bag", log)


def test_the_definition_of_the_stated_version_is_taken(tmp_path: Path) -> None:
    (tmp_path / "old.bag").write_bytes(old.version_1_1(messages(current, ["info"])))
    logreel.recover(tmp_path / "old.bag", tmp_path / "new.bag")
    schema = logreel.open(tmp_path / "new.bag")["info"].schema
    assert ros1msg.parse(schema.text, schema.name).md5 == TYPES["info"][1]
    assert "roi" not in schema.text


def test_without_a_checksum_the_version_that_fits_the_messages_is_taken() -> None:
    log = logreel.open(old.version_1_1(messages(nameless, ["info"])))
    assert "roi" not in log["info"].schema.text
    assert next(log.messages()).decode().keys() == {"header", "height", "width", "D", "K", "R", "P"}
    current_version = ros1msg.layout(ros1msg.define("sensor_msgs/CameraInfo"))
    payload = random_payload(current_version.root, random.Random(1))
    now = logreel.open(old.version_1_1([(nameless("info"), START, payload)]))
    assert (now["info"].schema.text, "roi" in next(now.messages()).decode()) == ("", True)


def test_messages_that_fit_no_version_are_reported() -> None:
    log = logreel.open(old.version_1_1([(nameless("info"), START, b"too short")]))
    with pytest.raises(logreel.DamagedError):
        next(log.messages()).decode()
    assert log["info"].to_arrow()["height"][0].as_py() is None
    assert [problem.code for problem in log.problems] == ["payload"]


def test_an_unknown_version_stays_bytes_with_its_checksum(tmp_path: Path) -> None:
    data = old.version_1_1([(Topic("info", "sensor_msgs/CameraInfo", "0" * 32, ""), START, b"bytes")])
    log = logreel.open(data)
    assert next(log.messages()).decode() == {"data": b"bytes"}
    assert "only others than that of md5 0000" in log.problems[0].text
    logreel.recover(data, tmp_path / "new.bag")
    again = logreel.open(tmp_path / "new.bag")
    assert (again["info"].metadata["md5sum"], again["info"].schema.text) == ("0" * 32, "")


def test_bags_of_version_1_1_keep_their_checksums(tmp_path: Path) -> None:
    log = logreel.open(old.version_1_1(messages(first_checksum, ["scan"])))
    with logreel.create(tmp_path / "copy.bag", version="1.1") as w:
        ch = log["scan"]
        number = w.add_channel("scan", ch.schema, ch.metadata)
        for message in log.messages():
            w.write(number, message.time, message.data)
    assert logreel.open(tmp_path / "copy.bag")["scan"].metadata["md5sum"] == definition("scan").md5_v1
