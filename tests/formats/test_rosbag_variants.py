"""Built bags of every version and variant, compared with the plain reader."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import logreel
from logreel.errors import UnsupportedError
from support.builders.bag_rows import fast_rows, plain_rows
from support.builders.bag_variants import CHANGED, ODD, SYNTHETIC, encrypted
from support.oracles import rosbag as bag_oracle
from support.samples.rosbag.builder import drive, tiny

ALL = {**SYNTHETIC, **ODD}
CODES = {
    "2.0 zeros before index": ["zeros"],
    "2.0 junk before index": ["garbage"],
    "2.0 unfinished": ["index", "unfinished"],
    "2.0 unfinished bz2": ["index", "unfinished"],
    "2.0 unfinished lz4": ["index", "unfinished"],
    "2.0 index_pos 0": ["index"],
    "2.0 index beyond": ["index"],
}


@pytest.mark.parametrize("name", ALL)
def test_messages_are_those_of_the_plain_reader(name: str) -> None:
    data = ALL[name]()
    want = plain_rows(bag_oracle.read(data))
    log = logreel.open(data)
    assert fast_rows(log) == want
    assert len(want) > 0 or name == "2.0 empty"
    assert log.version == name.partition(" ")[0]


@pytest.mark.parametrize("name", ALL)
def test_only_invalid_variants_have_problems(name: str) -> None:
    log = logreel.open(ALL[name]())
    fast_rows(log)
    assert sorted(p.code for p in log.problems) == CODES.get(name, [])


@pytest.mark.parametrize("name", [n for n in SYNTHETIC if n.startswith("2.0")])
def test_without_its_index_a_bag_is_the_same(name: str) -> None:
    data = bytearray(SYNTHETIC[name]())
    by_index = fast_rows(logreel.open(bytes(data)))
    at = data.index(b"index_pos=") + 10
    data[at : at + 8] = bytes(8)
    blind = logreel.open(bytes(data))
    assert fast_rows(blind) == by_index
    assert [p.code for p in blind.problems] == ["index"]


@pytest.mark.parametrize("name", ALL)
def test_definitions_are_those_of_the_file(name: str) -> None:
    data = ALL[name]()
    log = logreel.open(data)
    found = {(c.schema.name, c.metadata["md5sum"]): c.schema.text for c in log.channels.values()}
    for connection in bag_oracle.read(data).connections:
        if (connection.type, connection.md5) in found:
            assert found[connection.type, connection.md5] == connection.definition.decode()


@pytest.mark.parametrize("make", [tiny, drive])
def test_time_order_is_stable(make: Callable[[], bytes]) -> None:
    log = logreel.open(make())
    rows = fast_rows(log)
    by_time = [(m.time, bytes(m.data)) for m in log.messages()]
    assert by_time == [(r[3], r[4]) for r in sorted(rows, key=lambda row: row[3])]


def test_the_order_of_the_file_holds_across_compressions() -> None:
    """Uncompressed chunks are between compressed ones."""
    data = SYNTHETIC["2.0 mixed"]()
    assert [m.time for m in logreel.open(data).messages(order="file")] == [
        m.time for m in bag_oracle.read(data).messages
    ]


def test_connections_of_one_definition_are_one_channel() -> None:
    log = logreel.open(SYNTHETIC["2.0 connections"]())
    assert list(log.channels) == ["/chatter", "count", "/chatter[1]"]
    assert [len(ch) for ch in log.channels.values()] == [40, 0, 20]
    assert log["/chatter"].metadata["callerids"] == ["/a", "/b"]
    assert log["/chatter"].metadata["latching"] is True
    assert log["/chatter[1]"].metadata["md5sum"] == CHANGED.md5


@pytest.mark.parametrize("version", ["0", "1.0", "1.1", "1.2", "2.0"])
def test_tiny_bags_of_every_version_are_valid(version: str) -> None:
    data = tiny(version)
    log = logreel.open(data)
    assert len(data) < 2500
    assert (log.version, log.problems) == (version, ())
    assert log.message_count >= 3
    assert log.epoch == ("start" if version in ("0", "1.0") else "unix")
    assert fast_rows(log) == plain_rows(bag_oracle.read(data))


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_sample_drive_is_valid(compression: str) -> None:
    data = drive(4.0, compression)
    log = logreel.open(data)
    assert fast_rows(log) == plain_rows(bag_oracle.read(data))
    assert log.problems == ()
    assert {name: len(ch) for name, ch in log.channels.items()} == {
        "/imu": 400,
        "/map": 1,
        "/odom": 200,
        "/tf": 200,
        "/joint_states": 120,
        "/cmd_vel": 80,
        "/scan": 40,
        "/camera/compressed": 20,
        "/gps/fix": 4,
        "/rosout": 6,
    }


def test_an_encrypted_bag_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="rosbag/AesCbcEncryptor"):
        logreel.open(encrypted())


def test_unknown_minor_version_is_read() -> None:
    data = tiny().replace(b"#ROSBAG V2.0\n", b"#ROSBAG V2.1\n")
    assert fast_rows(logreel.open(data)) == plain_rows(bag_oracle.read(tiny()))
    with pytest.raises(UnsupportedError, match=r"3\.0"):
        logreel.open(tiny().replace(b"#ROSBAG V2.0\n", b"#ROSBAG V3.0\n"))
