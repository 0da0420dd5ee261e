"""Koblenz logs built message by message: size readings, sensors, versions, times, registered types, damage."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pytest

import logreel
from logreel.errors import DefinitionError, UnsupportedError
from logreel.formats.koblenz import FORMAT, definitions, register_type, registered_types, type_id
from logreel.formats.koblenz.scan_builder import MAX_SENSORS
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, Sequence, Struct
from support.samples.koblenz.builder import END, NAMES, Builder, number
from support.samples.koblenz.drive import drive

URG = "Hokuyo_URG-04LX"
POINT = Layout(Struct((Field("x", Scalar("float32")), Field("y", Scalar("float32")))), "MyDataM")


@pytest.fixture
def own_types() -> Iterator[None]:
    """Remove the types registered in a test after it."""
    before = dict(definitions._registered)
    yield
    definitions._registered.clear()
    definitions._registered.update(before)


def codes(log: logreel.Log) -> list[tuple[str, int, int, bool]]:
    return [(p.code, p.offset, p.size, p.lost) for p in log.problems]


def three(out: Builder | None = None) -> Builder:
    """Return a log with three messages at 0, 1 and 2 ms, of 49 bytes each under the usual size reading."""
    out = out or Builder()
    for i in range(3):
        out.obd(i, i, 1000 + i, 10.0)
    return out


def test_type_ids_are_sums_over_names() -> None:
    for name in (*NAMES, "MyDataM", "é"):
        assert type_id(name) == (
            number(name) if name.isascii() else sum(b * (119 + i) for i, b in enumerate(name.encode()))
        )
    assert [kind.name for kind in registered_types().values()][:2] == ["OBDDataM", "GPSDataM"]


@pytest.mark.parametrize(("counted", "reading"), [(17, "A"), (21, "B"), (0, "C")])
def test_size_reading_is_detected(counted: int, reading: str) -> None:
    for count in (1, 2, 3):
        out = Builder(counted)
        for i in range(count):
            out.laser(i, URG, "front", [1000 + i] * i)
        log = logreel.open(out.bytes())
        assert log.metadata["size_reading"] == reading
        assert [m.decode()["ranges"] for m in log.messages()] == [[1000 + i] * i for i in range(count)]
        assert not log.problems


def test_empty_log_has_no_problem() -> None:
    for data in (Builder().bytes(), Builder().bytes(tail=END), Builder().bytes(index=[0, 0, 0])):
        log = logreel.open(data)
        assert not log.channels
        assert (log.start, log.end, log.utc_offset) == (None, None, None)


def test_unknown_versions_are_refused_or_reported() -> None:
    with pytest.raises(UnsupportedError, match=r"version 2\.0"):
        logreel.open(three(Builder(version=(2, 0))).bytes())
    log = logreel.open(three(Builder(version=(1, 7))).bytes())
    assert log.version == "1.7"
    assert codes(log) == [("version", 4, 4, False)]
    with pytest.raises(UnsupportedError, match="inside its header"):
        logreel.open(b"\xa4VEL\x01\x00\x01\x00\x00")
    assert not FORMAT.sniff(logreel.io.source.Source.open(b"\xa4VAL"))


def test_wrong_index_is_reported_and_not_needed() -> None:
    good = three().bytes()
    assert codes(logreel.open(good)) == []
    assert codes(logreel.open(three().bytes(index=[21]))) == [("index", 12, 8, False)]
    assert codes(logreel.open(three().bytes(index=[-1, 1 << 62]))) == [("index", 12, 8, False)]
    assert codes(logreel.open(three().bytes(room=800))) == [("index", 20, 800, False)]
    # More entries than the file has room for, and fewer than it has: the messages are found all the same.
    for count in (1 << 31, 0, 5):
        log = logreel.open(good[:8] + struct.pack("<I", count) + good[12:])
        assert len(log["OBDDataM"]) == 3
        assert log.problems


def test_unused_index_room_is_skipped() -> None:
    out = three()
    data = out.bytes(index=[12 + 16, 0], room=0)
    assert len(logreel.open(data)["OBDDataM"]) == 3
    # Garbage instead of zeros in the reserved space: the index states where messages begin.
    body = b"".join(out.messages)
    data = struct.pack("<4sHHIq", b"\xa4VEL", 1, 1, 1, 20 + 300) + b"\x77" * 300 + body
    log = logreel.open(data)
    assert len(log["OBDDataM"]) == 3
    assert codes(log) == [("garbage", 20, 300, True)]


def test_end_mark_ends_log() -> None:
    data = three().bytes(tail=END + bytes(100))
    log = logreel.open(data)
    assert log.metadata["end_mark"] == len(data) - 104
    assert not log.problems
    more = three().bytes()[20:]
    log = logreel.open(three().bytes(tail=END + more))
    assert len(log["OBDDataM"]) == 3
    assert [p.code for p in log.problems] == ["after end"]


@pytest.mark.parametrize("zeros", [4, 21, 5000])
def test_zeros_at_end_are_reported(zeros: int) -> None:
    data = three().bytes(tail=bytes(zeros))
    assert codes(logreel.open(data)) == [("zeros", len(data) - zeros, zeros, True)]


def test_damaged_size_loses_one_message() -> None:
    for size in (0, 44, 46, 94, 1 << 20, 1 << 31):
        out = three()
        out.add("OBDDataM", 3, bytes(28), size=size)
        three(out)
        log = logreel.open(out.bytes())
        assert len(log["OBDDataM"]) == 6, size
        assert [(code, n) for code, _, n, _ in codes(log)] == [("garbage", 49)], size


def test_size_that_includes_other_messages_is_refused() -> None:
    out = three()
    out.laser(3, URG, "front", [1000] * 4)
    swallowed = len(out.messages[-1]) + 2 * 49
    out.messages[-1] = struct.pack("<I", swallowed - 4) + out.messages[-1][4:]
    three(out)
    log = logreel.open(out.bytes())
    assert len(log["OBDDataM"]) == 6
    assert "LaserRange2DDataM/front" not in log
    assert [p.code for p in log.problems] == ["garbage"]


def test_count_beyond_its_message_loses_that_message() -> None:
    out = three()
    out.laser(3, URG, "front", [1000] * 4)
    body = bytearray(out.messages[-1])
    body[-20:-16] = struct.pack("<I", 5)
    out.messages[-1] = bytes(body)
    three(out)
    log = logreel.open(out.bytes())
    assert list(log.channels) == ["OBDDataM"]
    assert [(p.code, p.size) for p in log.problems] == [("garbage", len(body))]


def test_longer_messages_give_known_fields() -> None:
    out = three()
    out.add("OBDDataM", 3, struct.pack("<iifiifi", 7, 0, 0, 0, 0, 0, 0) + b"more")
    out.velodyne(4, []).add("VelodyneRawDataM", 5, bytes(4) + b"rest")
    three(out)
    log = logreel.open(out.bytes())
    assert log["OBDDataM"]["speed"].tolist() == [0, 1, 2, 7, 0, 1, 2]
    assert [(p.code, p.lost) for p in log.problems] == [("longer", False)]
    assert log["VelodyneRawDataM"].to_arrow().num_rows == 0
    assert [p.code for p in log.problems] == ["leftover", "longer"]


def test_unknown_types_and_versions_stay_raw() -> None:
    out = three()
    out.add("MyDataM", 3, b"one").add("MyDataM", 4, b"twelve").add("MyDataM", 5, b"", 107)
    out.add("LaserRange2DDataM", 6, b"older", 100).add(
        "LaserRange2DDataM", 7, struct.pack("<IIII", 0, 0, 0, 9), 102
    )
    three(out)
    log = logreel.open(out.bytes())
    assert not log.problems
    assert [m.decode() for m in log.messages(["0x00013732"])] == [{"payload": b"one"}, {"payload": b"twelve"}]
    assert len(log["0x00013732@107"]) == 1
    assert [m.decode() for m in log.messages(["Laser*@100"])] == [{"payload": b"older"}]
    (newer,) = (m.decode() for m in log.messages(["Laser*@102"]))
    assert newer["rest"] == struct.pack("<I", 9)
    assert log["0x00013732"].metadata["type_id"] == "0x00013732"


def test_invalid_messages_are_skipped() -> None:
    out = three()
    for mark in (0, 0x31):
        out.add("OBDDataM", 3, bytes(28), mark=mark)
    three(out)
    log = logreel.open(out.bytes())
    assert len(log["OBDDataM"]) == 6
    assert [(p.code, p.size, p.lost) for p in log.problems] == [("invalid", 49, True)] * 2


def test_registered_type_is_decoded(own_types: None) -> None:
    data = three(Builder().add("MyDataM", 0.5, struct.pack("<ff", 1.5, -2))).bytes()
    assert "0x00013732" in logreel.open(data)
    assert register_type("MyDataM", POINT) == 0x13732
    assert register_type("MyDataM", POINT) == 0x13732
    log = logreel.open(data)
    assert log["MyDataM"]["y"].tolist() == [-2.0]
    assert log["MyDataM"].schema.name == "MyDataM"
    assert registered_types()[0x13732].layout == POINT


def test_registering_colliding_id_is_refused(own_types: None) -> None:
    register_type("MyDataM", POINT)
    with pytest.raises(DefinitionError, match="registered already"):
        register_type("MyDataM", Layout(Sequence(POINT.record), "MyDataM"))
    # One letter up by a place's weight, another one down: the sum stays.
    twin = next(
        name
        for a in range(32, 127)
        for b in range(32, 127)
        for c in range(32, 127)
        if (name := chr(a) + chr(b) + chr(c) + "ataM") != "MyDataM" and number(name) == 0x13732
    )
    with pytest.raises(DefinitionError, match="has the id of MyDataM"):
        register_type(twin, POINT)
    with pytest.raises(DefinitionError, match="registered already"):
        register_type("OBDDataM", POINT)
    for name in ("", "x" * 4000):
        with pytest.raises(DefinitionError, match="cannot be the name"):
            register_type(name, POINT)


def test_each_scanner_and_camera_is_a_channel() -> None:
    out = (
        Builder()
        .laser(0, URG, "left", [1])
        .laser(1, URG, b"r\xfcck", [2])
        .laser(2, "Hokuyo_UTM-30LX", "left", [3])
    )
    out.image(3, 7, 8, 8, b"").image(4, -1, 8, 8, b"").image(5, 7, 8, 8, b"xyz", compressed=0)
    out.laser(6, URG, "left", [4])
    log = logreel.open(out.bytes())
    assert not log.problems
    assert list(log.channels) == [
        "ImageM/7",
        "ImageM/-1",
        "ImageM/7@uncompressed",
        "LaserRange2DDataM/left",
        "LaserRange2DDataM/rück",
        "LaserRange2DDataM/left[1]",
    ]
    assert log["LaserRange2DDataM/left"].times.tolist() == [0, 6_000_000]
    assert log["LaserRange2DDataM/left[1]"].metadata["sensor_type"] == "Hokuyo_UTM-30LX"
    (raw,) = (m.decode() for m in log.messages(["*@uncompressed"]))
    assert raw["payload"].endswith(b"xyz")


def test_many_sensors_in_many_blocks() -> None:
    out, rng = Builder(), np.random.default_rng(0)
    names = [f"scanner {i}" for i in range(40)]
    picks = rng.integers(0, 40, 900)
    for i, pick in enumerate(picks.tolist()):
        out.laser(i, URG, names[pick], [i] * 682)
    data = out.bytes()
    assert len(data) > 2 << 20  # several blocks of the index
    log = logreel.open(data)
    for pick in range(40):
        ch = log[f"LaserRange2DDataM/{names[pick]}"]
        mine = np.flatnonzero(picks == pick)
        assert ch.times.tolist() == (mine * 1_000_000).tolist()
        assert [row[0] for row in ch.to_arrow(["ranges"])["ranges"].to_pylist()] == mine.tolist()


def test_sensors_after_limit_share_a_channel() -> None:
    out = Builder()
    for i in range(MAX_SENSORS + 5):
        out.laser(i, URG, f"{i}", [i])
    log = logreel.open(out.bytes())
    assert len(log.channels) == MAX_SENSORS + 1
    assert len(log["LaserRange2DDataM/others"]) == 5
    assert len(log["LaserRange2DDataM/others"].to_arrow()["payload"]) == 5


def test_invalid_times_do_no_harm() -> None:
    out = Builder()
    for i in range(20):
        out.pose(100.0 * i, (1, 0, 0, 0))
    for ms in (float("nan"), float("inf"), 1e300, -1e300):
        out.pose(ms, (1, 0, 0, 0))
    for i in range(20, 30):
        out.pose(100.0 * i, (1, 0, 0, 0))
    log = logreel.open(out.bytes(index=[]))
    assert not log.problems
    times = log["RobotPoseM"].times
    assert times[20] == times[19]  # not a number
    assert times[21] == times[22] == (1 << 63) - 2
    assert times[23] == 2 - (1 << 63)
    assert (log.start, log.end) == (0, 2_900_000_000)
    assert len(list(log.messages())) == 34


def test_utc_offset_is_median_of_valid_fixes() -> None:
    out = Builder()
    out.gps(0, (0, 0, 0), date=(0, 0, 0))
    out.gps(1000, (9, 0, 0), warning=1).gps(2000, (9, 0, 0), quality=0).gps(2500, (25, 0, 0))
    for i, late in enumerate((0, 3600, 0)):
        out.gps(3000 + 1000 * i, (12 + late // 3600, 0, 3 + i), date=(17, 6, 10))
    log = logreel.open(out.bytes())
    assert log.utc_offset == 1276776000 * 10**9
    assert logreel.open(three().bytes()).utc_offset is None
    old = logreel.open(Builder().gps(0, (0, 0, 0), date=(1, 1, 99)).bytes())
    assert old.utc_offset == 915148800 * 10**9
    leap = logreel.open(Builder().gps(0, (23, 59, 60), date=(31, 12, 2008)).bytes())
    assert leap.utc_offset == 1230768000 * 10**9


def test_pose_order_and_unit_are_guessed() -> None:
    def guessed(*args: tuple[float, ...]) -> tuple[str, str]:
        meta = logreel.open(Builder().pose(0, *args).bytes())["RobotPoseM"].metadata
        return meta["quaternion_order"], meta["acceleration_unit"]

    assert guessed((1, 0, 0, 0)) == ("w x y z", "m/s2")
    assert guessed((0, 0, 0, -0.99), (0, 0, 1.0)) == ("x y z w", "g")
    assert guessed((0, 0, 0, 1), (0, 0, 0)) == ("x y z w", "unknown")
    assert guessed((float("nan"),) * 4, (float("nan"),) * 3)[1] == "unknown"
    loud = Builder().add("RobotPoseM", 0, bytes.fromhex("0100807f") * 7)  # signalling NaN
    assert logreel.open(loud.bytes())["RobotPoseM"].metadata["acceleration_unit"] == "unknown"


def test_bundled_drive_has_all_types() -> None:
    log = logreel.open(drive(0.3))
    assert not log.problems
    assert log.utc_offset == 1276778090 * 10**9 - 2_500_000
    assert {ch.schema.name for ch in log.channels.values()} == set(NAMES)
    assert len(log.channels) == 8
    assert logreel.open(drive()).metadata["index_entries"] == 2
    assert logreel.open(drive(0.3)).table("VelodyneRawDataM", ["blocks.azimuth"]).num_rows > 500
