"""Lenses for the sensors of Koblenz logs, and for Velodyne packets in ROS bags."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.errors import DefinitionError
from logreel.lenses import Image, PacketCloud, Points, Pose, Position, RangeScan, lenses
from logreel.lenses.velodyne import HDL32E, HDL64E
from support.builders.calibrations import UNIT, status, xml
from support.harness.cli_runner import Run
from support.oracles import velodyne as oracle
from support.oracles.ros1 import channel
from support.samples.koblenz.builder import Builder
from support.samples.koblenz.drive import URG, UTM, drive, picture
from support.samples.koblenz.scene import FIRING_US, Scene, hdl32e, plane

MS = 10**6


def lens_of(ch: logreel.Channel, kind: type) -> object:
    (found,) = (lens for lens in lenses(ch) if isinstance(lens, kind))
    return found


def clouds(ch: logreel.Channel, **options: object) -> list[Points]:
    lens = lens_of(ch, PacketCloud)
    return list(lens.clouds(ch, **options))  # type: ignore[attr-defined]


def hdl64e(count: int, sends: np.ndarray | None = None) -> list[bytes]:
    """Return packets of a turning HDL-64E whose lasers all measure 10 m."""
    out = []
    for i in range(count):
        blocks = b"".join(
            struct.pack("<HH", (0xEEFF, 0xDDFF)[k % 2], (i * 108 + k // 2 * 18) % 36000)
            + struct.pack("<HB", 5000, 9) * 32
            for k in range(12)
        )
        kind, value = (0, 0) if sends is None else sends[i].tolist()
        out.append(blocks + struct.pack("<IBB", i * 288, kind, value))
    return out


def log_of(packets: list[bytes], each: int, ms: float = 5.0) -> logreel.Log:
    out = Builder()
    for i in range(0, len(packets), each):
        out.velodyne(ms * (i // each), packets[i : i + each])
    return logreel.open(out.bytes())


def test_each_turn_is_one_cloud() -> None:
    ch = logreel.open(drive(0.3))["VelodyneRawDataM"]
    found = clouds(ch)
    # 20 turns a second, of which one has begun at 0.
    assert len(found) == 6
    assert np.allclose(np.diff([c.time for c in found]), 50 * MS, atol=3 * MS)
    for cloud in found:
        assert list(cloud.fields) == ["x", "y", "z", "intensity", "ring", "azimuth", "time"]
        kinds = [values.dtype.name for values in cloud.fields.values()]
        assert kinds == ["float32"] * 3 + ["uint8"] * 2 + ["float32", "int64"]
        assert (np.diff(cloud.fields["time"]) >= -MS).all()
        x, y, z = cloud.xyz.T
        scene = Scene()
        wall, ground = np.abs(x - scene.wall), np.abs(z - scene.ground)
        pillar = np.abs(np.hypot(x - scene.cylinder[0], y - scene.cylinder[1]) - scene.radius)
        assert np.minimum(np.minimum(wall, ground), pillar / 5).max() < 0.0011
    azimuth = found[1].fields["azimuth"]
    # To a packet, which turns by 4 degrees.
    assert azimuth[0] < 4
    assert azimuth.max() > 359


def test_clouds_of_an_interval_have_only_its_points() -> None:
    ch = logreel.open(drive(0.3))["VelodyneRawDataM"]
    some = clouds(ch, start=100 * MS, end=160 * MS)
    times = np.concatenate([c.fields["time"] for c in some])
    assert 100 * MS <= times.min() <= times.max() < 160 * MS + 18 * 12 * FIRING_US * 1000


def test_points_equal_plain_decoder() -> None:
    packets = hdl32e(Scene(), 0, 10)
    (cloud,) = clouds(log_of(packets, 3)["VelodyneRawDataM"])
    wanted = [p for one in packets for p in oracle.decode(one, oracle.HDL32E)]
    assert np.allclose(cloud.xyz, [[p.x, p.y, p.z] for p in wanted], atol=4e-5)
    # Three packets share the time of their message, and are spread by their clocks.
    clock = [struct.unpack_from("<I", one, 1200)[0] for one in packets]
    stamps = [5 * MS * (i // 3) + (clock[i] - clock[i - i % 3]) * 1000 for i in range(10)]
    times = [
        stamp + round(p.us * 1000)
        for stamp, one in zip(stamps, packets, strict=True)
        for p in oracle.decode(one, oracle.HDL32E)
    ]
    assert cloud.fields["time"].tolist() == times


def test_model_is_detected_from_packets() -> None:
    lens = PacketCloud()
    assert lens.calibration(log_of(hdl32e(Scene(), 0, 3), 3)["VelodyneRawDataM"]) is HDL32E
    assert lens.calibration(log_of(hdl64e(3), 3)["VelodyneRawDataM"]) is HDL64E
    assert lens.calibration(_no_packets()) is HDL32E


def _no_packets() -> logreel.Channel:
    return logreel.open(Builder().velodyne(0, []).bytes())["VelodyneRawDataM"]


def test_no_packets_give_no_clouds() -> None:
    assert clouds(_no_packets()) == []


def test_calibration_from_packets() -> None:
    sends = np.concatenate([status(), status()])[100:]
    ch = log_of(hdl64e(len(sends), sends), 40)["VelodyneRawDataM"]
    found = PacketCloud().calibration(ch)
    assert found.origin.startswith("the unit's own")
    assert np.allclose(found.elevation, [row[0] / 100 for row in UNIT])
    first = clouds(ch)[0]
    lasers = [oracle.Laser(a / 100, b / 100, c / 1000, f / 1000, g / 1000) for a, b, c, _, _, f, g in UNIT]
    wanted = oracle.decode(hdl64e(1)[0], lasers)
    assert np.allclose(first.xyz[: len(wanted)], [[p.x, p.y, p.z] for p in wanted], atol=4e-5)


def test_calibration_from_user(tmp_path: Path) -> None:
    path = tmp_path / "db.xml"
    path.write_bytes(xml())
    out = Builder().velodyne(0, hdl64e(4)).bytes()
    log = logreel.open(out, definitions=[path])
    assert log.definitions == (path,)
    found = PacketCloud().calibration(log["VelodyneRawDataM"])
    assert found.origin == str(path)
    mine = clouds(log["VelodyneRawDataM"])[0]
    theirs = clouds(logreel.open(out)["VelodyneRawDataM"], calibration=found)[0]
    assert np.array_equal(mine.xyz, theirs.xyz)
    path.write_bytes(b"<no/>")
    with pytest.raises(DefinitionError):
        clouds(logreel.open(out, definitions=[path])["VelodyneRawDataM"])


def bag_of(packets: list[bytes], each: int, stamped: bool = True) -> logreel.Channel:
    """Return a bag of velodyne_msgs/VelodyneScan messages, one per second."""
    messages = []
    for i in range(0, len(packets), each):
        items = [
            {"stamp": (i + k) * 553_000 if stamped else 0, "data": list(one)}
            for k, one in enumerate(packets[i : i + each])
        ]
        messages.append({"header": {"seq": 0, "stamp": 0, "frame_id": "velodyne"}, "packets": items})
    return channel("velodyne_msgs/VelodyneScan", *messages)


def test_packets_in_bag_give_same_points() -> None:
    packets = hdl32e(Scene(), 0, 150)
    bag = bag_of(packets, 20)
    lens = lens_of(bag, PacketCloud)
    assert lens == PacketCloud("packets.data", "packets.stamp", "header.frame_id")
    one, other = clouds(bag), clouds(log_of(packets, 20)["VelodyneRawDataM"])
    assert len(one) == len(other) == 2
    for a, b in zip(one, other, strict=True):
        assert a.frame == "velodyne"
        assert np.array_equal(a.xyz, b.xyz)
        assert np.array_equal(a.fields["ring"], b.fields["ring"])
    # Packets of bags have stamps of their own; where they are missing, the message's time counts.
    assert one[0].fields["time"][-1] > 89 * 553_000
    bare = clouds(bag_of(packets, 20, stamped=False))
    assert bare[0].fields["time"][-1] >= 4 * 10**9


def scans(model: str, ranges: list[int]) -> tuple[logreel.Log, list]:
    log = logreel.open(Builder().laser(0, model, "x", ranges).bytes())
    ch = log["LaserRange2DDataM/x"]
    lens = lens_of(ch, RangeScan)
    return log, [*lens.scans(ch), *lens.clouds(ch)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("model", "angles", "longest"), [("Hokuyo_URG-04LX", URG, 5.6), ("Hokuyo_UTM-30LX", UTM, 30.0)]
)
def test_scan_points_lie_on_scene_surfaces(model: str, angles: np.ndarray, longest: float) -> None:
    scene = Scene(wall=2.5, half=6.0, cylinder=(-1.0, 1.5), radius=0.3)
    log, (scan, cloud) = scans(model, plane(scene, angles, longest))
    assert not log.problems
    assert np.allclose(scan.angles, angles, atol=1e-12)
    x, y, z = cloud.xyz.T
    pillar = np.abs(np.hypot(x + 1.0, y - 1.5) - 0.3)
    assert np.minimum(np.abs(x - 2.5), pillar / 10).max() < 0.00051
    assert (z == 0).all()
    assert np.count_nonzero(pillar < 0.0006) > 10
    assert len(x) == np.count_nonzero(~np.isnan(scan.ranges)) < len(angles)
    assert (scan.codes[np.isnan(scan.ranges)] == 1).all()


def test_unusual_scan_lengths_and_models_are_reported() -> None:
    log, (scan, _) = scans("Hokuyo_URG-04LX", [1000] * 11)
    assert scan.angles[5] == 0
    assert "centred" in log.problems[0].text
    log, found = scans("Sick_LMS", [1000] * 11)
    assert found == []
    assert "not known" in log.problems[0].text


def fixes(*messages: dict[str, object]) -> Iterator[tuple[float, float, bool]]:
    out = Builder()
    for i, message in enumerate(messages):
        out.gps(1000.0 * i, **message)  # type: ignore[arg-type]
    ch = logreel.open(out.bytes())["GPSDataM"]
    found = lens_of(ch, Position).fixes(ch)  # type: ignore[attr-defined]
    return zip(found.latitude.tolist(), found.longitude.tolist(), found.fixed.tolist(), strict=True)


def test_invalid_fixes_are_marked() -> None:
    found = list(fixes({"warning": 1}, {"quality": 0}, {"quality": 2}))
    assert [fixed for *_, fixed in found] == [False, False, True]


def test_nmea_degrees_and_minutes_are_converted() -> None:
    rows = [
        {"place": (5021.774, 733.516)},
        {"place": (-5021.774, -733.516)},
        {"place": (1.0, 2.0), "warning": 1},
    ]
    found = list(fixes(*rows))
    assert np.allclose(found[0][:2], [50 + 21.774 / 60, 7 + 33.516 / 60])
    assert np.allclose(found[1][:2], [-50 - 21.774 / 60, -7 - 33.516 / 60])
    # One wild value among degrees changes nothing.
    assert np.allclose(
        [r[:2] for r in fixes({}, {"place": (5e3, 7.0)}, {})], [(50.363, 7.559), (5e3, 7), (50.363, 7.559)]
    )


def test_picture_with_wrong_size_is_reported() -> None:
    data = picture(0, 0)
    log = logreel.open(
        Builder().image(0, 0, 64, 48, data).image(1, 0, 32, 24, data).image(2, 0, 1, 1, b"xy").bytes()
    )
    ch = log["ImageM/0"]
    found = list(lens_of(ch, Image).pictures(ch))  # type: ignore[attr-defined]
    assert [p.format for p in found] == ["jpeg", "jpeg", None]
    texts = [p.text for p in log.problems]
    assert [p.code for p in log.problems] == ["picture"] * 2
    assert "32 × 24 pixels has 64 × 48" in texts[0]
    assert "no whole JPEG" in texts[1]


@pytest.mark.parametrize("verb", [["info"], ["stats"], ["cat", "-n", "30"], ["schema", "{}", "GPSDataM"]])
def test_verbs_show_gps_channel(verb: list[str], tmp_path: Path, run: Run) -> None:
    path = tmp_path / "drive.log"
    path.write_bytes(drive(0.3))
    args = [part.format(path) for part in verb]
    found = run(*(args if str(path) in args else [args[0], str(path), *args[1:]]))
    assert found.code == 0
    assert "GPSDataM" in found.out


@pytest.mark.parametrize("suffix", [".parquet/", ".csv/", ".arrow/", ".ndjson", ".jpg/", ".ply/", ".kml"])
def test_convert_to_every_output(suffix: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "drive.log"
    path.write_bytes(drive(0.1))
    assert run("convert", str(path), f"{tmp_path}/out{suffix}").code == 0
    assert (tmp_path / f"out{suffix.rstrip('/')}").exists()


@pytest.mark.parametrize(
    ("order", "turn"),
    [("wxyz", (0.9, 0.1, 0.2, 0.3)), ("xyzw", (0.1, 0.2, 0.3, 0.9))],
    ids=["w first", "w last"],
)
def test_a_robot_pose_is_a_pose_at_the_origin(order: str, turn: tuple[float, ...], tmp_path: Path) -> None:
    out = Builder()
    for n in range(3):
        out.pose(10.0 * n, turn, (0.0, 0.0, 9.81))
    (tmp_path / "a.log").write_bytes(out.bytes())
    log = logreel.open(tmp_path / "a.log")
    ch = log["RobotPoseM"]
    assert ch.metadata["quaternion_order"] == " ".join(order)
    places = lens_of(ch, Pose).track(ch)  # type: ignore[attr-defined]
    assert places.time.tolist() == ch.times.tolist()
    np.testing.assert_allclose(places.rotation, np.full((3, 4), (0.1, 0.2, 0.3, 0.9)), rtol=1e-6)
    assert not places.position.any()
    # Tools that know Foxglove's schemas see it, too.
    logreel.convert(tmp_path / "a.log", tmp_path / "a.mcap")
    assert logreel.open(tmp_path / "a.mcap")["RobotPoseM/PoseInFrame"].schema.name == "foxglove.PoseInFrame"
