"""CDR2 in bags, whose values are those of CDR; types that ROS 2 lacks."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import logreel
from support.samples.rosbag2.builder import START

TEXT = """bool flag
float64 d
string name
int64 big
Pose one
Pose[] poses
Pose[2] fixed
string[] texts
string[2] two
float64[] doubles
uint16[3] nums
uint8 after
float64 last
================================================================================
MSG: x/Pose
float64 x
uint8 id
"""
#: Two messages of this type as Eclipse Cyclone DDS 11.0.1 writes them, in CDR2 and in CDR.
CDR2 = tuple(
    map(
        bytes.fromhex,
        (
            "000700000100000000000000000004400300000061620000fdffffffffffffff000000000000f83f07000000190000000200000000"
            "0000000000004001000000000000000000084002000000150000000000000000001040030000000000000000001440040000001900"
            "000003000000020000007800000003000000797a000001000000000000001000000002000000710000000400000072737400020000"
            "000000000000001a400000000000001e4001000200030009000000000000002140",
            "0007000000000000000000000000e03f01000000000000000400000000000000000000000000f83f07000000040000000000000015"
            "000000000000000000f83f07000000000000000000f83f0700000004000000000000000d0000000100000000000000010000000000"
            "0000000000000000000000000100000000000000f03f",
        ),
    )
)
CDR = tuple(
    map(
        bytes.fromhex,
        (
            "00010000010000000000000000000000000004400300000061620000fdffffffffffffff000000000000f83f070000000200000000"
            "000000000000400100000000000000000000000000084002000000000000000000000000001040030000000000000000000000000014"
            "400400000003000000020000007800000003000000797a000001000000000000000200000071000000040000007273740002000000"
            "000000000000000000001a400000000000001e4001000200030009000000000000002140",
            "000100000000000000000000000000000000e03f01000000000000000400000000000000000000000000f83f070000000000000000"
            "0000000000f83f0700000000000000000000000000f83f070000000000000001000000000000000100000000000000000000000000"
            "00000000010000000000000000000000f03f",
        ),
    )
)
POSE = {"x": 1.5, "id": 7}
VALUES = (
    {
        "flag": True,
        "d": 2.5,
        "name": "ab",
        "big": -3,
        "one": POSE,
        "poses": [{"x": 2.0, "id": 1}, {"x": 3.0, "id": 2}],
        "fixed": [{"x": 4.0, "id": 3}, {"x": 5.0, "id": 4}],
        "texts": ["x", "yz", ""],
        "two": ["q", "rst"],
        "doubles": [6.5, 7.5],
        "nums": [1, 2, 3],
        "after": 9,
        "last": 8.5,
    },
    {
        "flag": False,
        "d": 0.5,
        "name": "",
        "big": 4,
        "one": POSE,
        "poses": [],
        "fixed": [POSE, POSE],
        "texts": [],
        "two": ["", ""],
        "doubles": [],
        "nums": [0, 0, 0],
        "after": 1,
        "last": 1.0,
    },
)


def bag(path: Path, payloads: list[bytes], **options: str) -> logreel.Log:
    with logreel.create(path, **options) as w:
        channel = w.add_channel("/all", logreel.Schema("x/msg/All", "ros2msg", TEXT))
        for n, data in enumerate(payloads):
            w.write(channel, START + n, data)
    return logreel.open(path)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_messages_in_cdr2_have_the_values_of_cdr(tmp_path: Path, compression: str) -> None:
    for name, payloads in (("one", CDR), ("two", CDR2)):
        log = bag(tmp_path / f"{name}.db3", list(payloads), compression=compression)
        assert [m.decode() for m in log.messages()] == list(VALUES)
        assert log["/all"]["last"].tolist() == [8.5, 1.0]
        assert log.table("/all").to_pylist()[0]["poses"] == VALUES[0]["poses"]
        assert log.problems == ()
    # They become messages of ROS 1 with equal values.
    done = logreel.convert(tmp_path / "two.db3", tmp_path / "two.bag")
    (entry,) = done.ledger
    assert (entry.values, entry.equal, done.skipped) == (entry.equal, entry.equal, ())
    assert [m.decode() for m in logreel.open(tmp_path / "two.bag").messages()] == list(VALUES)


def test_rosbags_reads_the_messages_in_cdr(tmp_path: Path) -> None:
    """So the values that the test compares with are not ours alone."""
    stores = pytest.importorskip("rosbags.typesys")
    store = stores.get_typestore(stores.Stores.EMPTY)
    store.register(stores.get_types_from_msg(TEXT, "x/msg/All"))
    for data, due in zip(CDR, VALUES, strict=True):
        message = store.deserialize_cdr(data, "x/msg/All")
        assert (message.name, message.last, message.texts) == (due["name"], due["last"], due["texts"])
        assert np.array_equal(message.nums, np.array(due["nums"]))


def test_a_damaged_message_does_not_change_the_encoding(tmp_path: Path) -> None:
    for damaged in (b"\0\x0b", b"\xff\xff"):
        path = tmp_path / f"{damaged.hex()}.db3"
        log = bag(path, [damaged + CDR2[0][2:], CDR2[0], b"", CDR2[1], CDR2[0]])
        assert log["/all"]["last"].tolist()[1::2] == [8.5, 1.0]
        assert [problem.code for problem in log.problems] == ["payload"]


def test_times_of_std_msgs_are_types_of_their_own(tmp_path: Path) -> None:
    """ROS 2 has no ``std_msgs/Time`` and ``Duration``: they keep their definitions, alone and as members."""
    highlevel = pytest.importorskip("rosbags.highlevel")
    line = "=" * 80
    text = (
        "std_msgs/Time t\nstd_msgs/Duration[] list\ntime own\nuint8 after\n"
        f"{line}\nMSG: std_msgs/Time\ntime data\n{line}\nMSG: std_msgs/Duration\nduration data\n"
    )
    with logreel.create(tmp_path / "a.bag") as w:
        both = w.add_channel("/a", logreel.Schema("x/A", "ros1msg", text))
        alone = w.add_channel("/d", logreel.Schema("std_msgs/Duration", "ros1msg", "duration data\n"))
        w.write(both, START, struct.pack("<IIIiiiiIIB", 1, 2, 2, 5, 6, -7, 8, 9, 10, 11))
        w.write(alone, START, struct.pack("<ii", -1, 2))
    before = [m.decode() for m in logreel.open(tmp_path / "a.bag").messages()]
    done = logreel.convert(tmp_path / "a.bag", f"{tmp_path}/y/")
    assert [(entry.values, entry.equal) for entry in done.ledger] == [(5, 5), (1, 1)]
    assert [m.decode() for m in logreel.open(tmp_path / "y").messages()] == before
    with highlevel.AnyReader([tmp_path / "y"]) as reader:
        found = {c.topic: reader.deserialize(data, c.msgtype) for c, _, data in reader.messages()}
    moments = [(found["/a"].t.data.sec, found["/a"].t.data.nanosec)]
    moments += [(item.data.sec, item.data.nanosec) for item in found["/a"].list]
    assert (moments, found["/a"].after, found["/d"].data.sec) == ([(1, 2), (5, 6), (-7, 8)], 11, -1)
    logreel.convert(tmp_path / "y", tmp_path / "b.bag")
    assert [m.decode() for m in logreel.open(tmp_path / "b.bag").messages()] == before
