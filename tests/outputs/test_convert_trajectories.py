"""Trajectories as TUM, KITTI and EuRoC write them have the poses of the log; plain readers, and evo, read them."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, NotFoundError, UsageError
from logreel.meaning.trajectories import east_north_up
from logreel.outputs.trajectories import seconds
from support.builders import frames as transforms
from support.builders.px4_poses import px4, wanted
from support.harness.cli_runner import Run
from support.oracles.frames import Oracle
from support.oracles.ros1 import encoded, layout_of, log_of
from support.samples.carla.drive import drive as carla_drive
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder, flight

SUFFIXES = (".tum", ".kitti", ".euroc")


class Poses(NamedTuple):
    """What a plain reader finds: times in ns, matrices 4 x 4, and lines of comments."""

    times: list[int]
    matrices: np.ndarray
    comments: list[str]


def matrix(place: list[float], turn: list[float]) -> np.ndarray:
    """Return the matrix of a position and a quaternion x, y, z, w, by rotating the axes with Hamilton's product."""
    x, y, z, w = turn
    assert abs(x * x + y * y + z * z + w * w - 1) < 1e-5
    out = np.eye(4)
    # The product of the vector with each axis.
    crossed = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    out[:3, :3] += 2 * (w * crossed + crossed @ crossed)
    out[:3, 3] = place
    return out


def exact_ns(text: str) -> int:
    whole, _, rest = text.partition(".")
    assert len(rest) == 9
    return int(whole) * 10**9 + int(rest) * (-1 if text.startswith("-") else 1)


def from_tum(text: str) -> Poses:
    lines = text.splitlines()
    comments = [line for line in lines if line.startswith("#")]
    rows = [line.split(" ") for line in lines[len(comments) :]]
    assert all(len(row) == 8 for row in rows)
    numbers = [[float(number) for number in row[1:]] for row in rows]
    return Poses(
        [exact_ns(row[0]) for row in rows],
        np.array([matrix(row[:3], row[3:]) for row in numbers]),
        comments,
    )


def from_kitti(text: str) -> Poses:
    rows = [[float(number) for number in line.split(" ")] for line in text.splitlines()]
    upper = np.array(rows).reshape(-1, 3, 4)
    return Poses([], np.concatenate([upper, np.broadcast_to([[[0.0, 0, 0, 1]]], (len(upper), 1, 4))], 1), [])


def from_euroc(text: str) -> Poses:
    head, *lines = text.splitlines()
    names = [name.split(" ")[0] for name in head.split(", ")]
    assert names[0] == "#timestamp"
    assert [name[:4] for name in names[4:8]] == ["q_RS"] * 4
    assert len(names) == 17
    rows = [dict(zip(names, line.split(","), strict=True)) for line in lines]
    assert all(row[name] == "0" for row in rows for name in names[8:])
    places = [[float(row[f"p_RS_R_{axis}"]) for axis in "xyz"] for row in rows]
    turns = [[float(row[f"q_RS_{axis}"]) for axis in "xyzw"] for row in rows]
    matrices = np.array([matrix(*pair) for pair in zip(places, turns, strict=True)])
    return Poses([int(row["#timestamp"]) for row in rows], matrices, [head])


READ = {".tum": from_tum, ".kitti": from_kitti, ".euroc": from_euroc}


def written(log: Any, folder: Path, suffix: str, **options: Any) -> tuple[Poses, logreel.Converted]:
    done = logreel.convert(log, folder / f"x{suffix}", force=True, **options)
    return READ[suffix]((folder / f"x{suffix}").read_text()), done


@pytest.fixture(scope="module")
def bag() -> logreel.Log:
    return logreel.open(drive())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_odometry_is_the_best_of_a_drive_and_every_number_survives(
    bag: logreel.Log, tmp_path: Path, suffix: str
) -> None:
    found, done = written(bag, tmp_path, suffix)
    ch = bag["/odom"]
    want = np.stack([ch[f"pose.pose.position.{axis}"] for axis in "xyz"], axis=-1)
    assert np.array_equal(found.matrices[:, :3, 3], want)
    turns = np.stack([ch[f"pose.pose.orientation.{axis}"] for axis in "xyzw"], axis=-1)
    expected = [matrix([0, 0, 0], turn)[:3, :3] for turn in turns.tolist()]
    assert np.allclose(found.matrices[:, :3, :3], expected, atol=1e-15)
    if suffix != ".kitti":
        stamps = ch["header.stamp"]
        assert found.times == np.asarray(stamps).tolist()
    assert [(one.topic, one.rows) for one in done.channels if one.rows] == [("/odom", len(ch))]
    assert done.notes[0] == "the trajectory is that of '/odom' (base_footprint in odom)"
    assert done.notes[1] == (
        "the log also has --frames map:base_footprint (transforms), '/gps/fix' (satellite positions)"
    )


def test_numbers_of_tum_are_those_of_the_log_bit_by_bit(bag: logreel.Log, tmp_path: Path) -> None:
    logreel.convert(bag, tmp_path / "x.tum")
    rows = np.loadtxt(tmp_path / "x.tum")
    names = [f"pose.pose.position.{a}" for a in "xyz"] + [f"pose.pose.orientation.{a}" for a in "xyzw"]
    for column, name in enumerate(names, 1):
        assert np.array_equal(rows[:, column], bag["/odom"][name])


def test_topics_and_intervals_choose(bag: logreel.Log, tmp_path: Path) -> None:
    whole, _ = written(bag, tmp_path, ".tum")
    part, done = written(bag, tmp_path, ".tum", start="+2s", end="+4s")
    first = whole.times.index(part.times[0])
    assert 90 < len(part.times) < 110
    assert whole.times[first : first + len(part.times)] == part.times
    _, done = written(bag, tmp_path, ".tum", topics="/gps/*")
    assert "'/gps/fix'" in done.notes[0]
    assert not any("also has" in note for note in done.notes)
    with pytest.raises(LogError, match=r"no channel holds poses.*frames='map:base_link'"):
        written(bag, tmp_path, ".tum", topics="/imu")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("old", [False, True])
def test_aerospace_poses_become_east_north_up(tmp_path: Path, suffix: str, old: bool) -> None:
    log = logreel.open(px4(old=old))
    found, done = written(log, tmp_path, suffix)
    times = written(log, tmp_path, ".euroc")[0].times
    # Position is interpolated between messages, linearly as the vehicle moves.
    last = max(log["vehicle_local_position"].times.tolist())
    rows = [row for row, time in enumerate(times) if time <= last]
    assert len(rows) > 150
    for row in rows:
        assert np.allclose(found.matrices[row], wanted(times[row] // 1000), atol=1e-5)
    assert "'vehicle_local_position' + 'vehicle_attitude' (base_link in map)" in done.notes[0]
    if suffix == ".tum":
        assert "from NED and FRD" in found.comments[1]
        assert found.comments[2] == "# clock: seconds since boot"


def test_resets_of_an_estimator_are_told(tmp_path: Path) -> None:
    _, done = written(px4(reset_at=2.0), tmp_path, ".tum")
    assert "the estimator was reset 1 time, where the trajectory may jump" in done.notes
    with pytest.raises(LogError, match="horizontal position of the vehicle is never known"):
        written(px4(never=True), tmp_path, ".tum")


def test_what_is_never_known_is_passed_over(tmp_path: Path) -> None:
    out = Builder(start_us=5_000_000).flags()
    out.format("vehicle_attitude:uint64_t timestamp;float[4] q;")
    out.format(
        "vehicle_local_position:uint64_t timestamp;float x;float y;float z;float vx;float vy;float vz;bool xy_valid;"
    )
    out.format(
        "vehicle_gps_position:uint64_t timestamp;int32_t lat;int32_t lon;int32_t alt;uint8_t fix_type;"
    )
    for number, name in enumerate(("vehicle_attitude", "vehicle_local_position", "vehicle_gps_position")):
        out.subscribe(name, number)
    for n in range(10):
        time = 5_000_000 + n * 100_000
        out.data(0, struct.pack("<Q4f", time, 1, 0, 0, 0))
        out.data(1, struct.pack("<Q6f?", time, 0, 0, 0, 0, 0, 0, False))
        out.data(2, struct.pack("<QiiiB", time, 474_000_000 + n, 85_000_000, 500_000, 3))
    found, done = written(out.bytes(), tmp_path, ".tum")
    assert len(found.times) == 10
    assert "is not used: the horizontal position of the vehicle is never known" in done.notes[0]
    assert done.notes[1] == "the trajectory is that of 'vehicle_gps_position' (satellite positions)"


def test_frames_are_looked_up_at_the_times_of_the_link_sent_most(tmp_path: Path) -> None:
    sent = transforms.robot()
    oracle = Oracle(sent)
    path = transforms.bag(tmp_path / "a.bag", sent)
    found, done = written(path, tmp_path, ".euroc", frames="map:hand")
    sent_most = sorted(one.time for one in sent if one.child == "base_link")
    known = [time for time in sent_most if oracle.lookup("map", "hand", time) is not None]
    assert found.times == known
    for time, got in zip(found.times, found.matrices, strict=True):
        assert np.allclose(got, oracle.lookup("map", "hand", time), atol=1e-9)
    assert done.notes[0].endswith("hand in map (transforms: hand → arm → base_link → odom → map)")
    back, _ = written(path, tmp_path, ".euroc", frames="/hand:/map")
    assert np.allclose(back.matrices @ found.matrices, np.eye(4), atol=1e-9)
    best, _ = written(path, tmp_path, ".euroc")
    again, _ = written(path, tmp_path, ".euroc", frames="map:base_link")
    assert np.array_equal(best.matrices, again.matrices)


def test_frames_that_cannot_be_used(tmp_path: Path) -> None:
    path = transforms.bag(tmp_path / "a.bag", transforms.robot())
    for frames, kind, why in (
        ("map", UsageError, "names no two frames"),
        ("map:hook", NotFoundError, "no frame 'hook'"),
        ("base_link:lidar", LogError, "never moves in 'base_link'"),
    ):
        with pytest.raises(kind, match=why):
            written(path, tmp_path, ".tum", frames=frames)
    with pytest.raises(UsageError, match="is no trajectory"):
        logreel.convert(path, tmp_path / "x.csv/", frames="map:hand")
    assert not (tmp_path / "x.tum").exists()


def test_actors_are_chosen_by_frames(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(carla_drive(5.0).bytes())
    log = logreel.open(tmp_path / "a.log")
    _, done = written(log, tmp_path, ".tum")
    assert "--frames world:" in done.notes[1]
    name = done.notes[1].partition("--frames ")[2].split(" ")[0]
    found, _ = written(log, tmp_path, ".tum", frames=name)
    # The simulator has centimetres, and y to the right.
    rows = log["position"]["id"] == int(name.rpartition("_")[2])
    first = [float(log["position"][f"location.{axis}"][rows][0]) / 100 for axis in "xyz"]
    assert np.allclose(found.matrices[0, :3, 3], np.array(first) * (1, -1, 1), atol=1e-4)
    assert len(found.times) == np.count_nonzero(rows)


def fixes(*rows: tuple[float, float, float]) -> logreel.Log:
    root = layout_of("sensor_msgs/NavSatFix").root
    names = ("latitude", "longitude", "altitude")
    made = [{**dict(zip(names, row, strict=True)), "status": {"status": 0}} for row in rows]
    return log_of("sensor_msgs/NavSatFix", [encoded(root, one) for one in made])


def test_satellite_positions_become_metres_around_the_first(tmp_path: Path) -> None:
    lat, lon, high = 47.9, 11.25, 600.0
    rows = [(math.nan, 0.0, 0.0), (lat, lon, high), (lat + 1e-4, lon, high), (lat, lon + 1e-4, high + 2)]
    found, done = written(fixes(*rows), tmp_path, ".tum")
    places = found.matrices[:, :3, 3]
    # Radii of curvature at the place, from the textbook.
    a, squared = 6378137.0, 0.00669437999014
    sin = math.sin(math.radians(lat))
    normal = a / math.sqrt(1 - squared * sin**2)
    meridian = normal * (1 - squared) / (1 - squared * sin**2)
    step = math.radians(1e-4)
    north = step * (meridian + high)
    east = step * (normal + high) * math.cos(math.radians(lat))
    assert np.allclose(places, [[0, 0, 0], [0, north, 0], [east, 0, 2]], atol=2e-4)
    assert f"its origin is at latitude {lat!r}, longitude {lon!r} (WGS 84), altitude {high!r} m" in done.notes
    assert "1 position left out: not a number" in done.notes
    assert any("no attitude" in note for note in done.notes)
    assert any(line.startswith("# origin: latitude 47.9,") for line in found.comments)
    assert np.array_equal(found.matrices[:, :3, :3], np.broadcast_to(np.eye(3), (3, 3, 3)))


def test_east_north_up_keeps_distances() -> None:
    random = np.random.default_rng(1)
    place = np.stack(
        [random.uniform(-90, 90, 50), random.uniform(-180, 180, 50), random.uniform(-100, 9000, 50)], -1
    )
    one, other = (east_north_up(place, origin) for origin in ((10.0, 20.0, 30.0), (-80.0, 170.0, 0.0)))
    assert np.allclose(np.linalg.norm(one - one[:1], axis=1), np.linalg.norm(other - other[:1], axis=1))
    # At the equator, up is away from the middle of the Earth.
    assert np.allclose(east_north_up(np.array([[0.0, 0, 7]]), (0.0, 0.0, 5.0)), [[0, 0, 2]], atol=1e-6)


def poses(*rows: tuple[float, ...]) -> logreel.Log:
    """A log of PoseStamped: seconds of the stamp, x, and the quaternion x, y, z, w."""
    root = layout_of("geometry_msgs/PoseStamped").root
    made = [
        {
            "header": {"stamp": int(row[0] * 1e9), "frame_id": "map"},
            "pose": {
                "position": {"x": row[1], "y": 0.0, "z": 0.0},
                "orientation": dict(zip("xyzw", row[2:], strict=True)),
            },
        }
        for row in rows
    ]
    return log_of("geometry_msgs/PoseStamped", [encoded(root, one) for one in made])


def test_unknown_and_repeated_poses_are_left_out_and_counted(tmp_path: Path) -> None:
    same = (0.0, 0.0, 0.0, 1.0)
    log = poses(
        (2, 1.0, *same), (1, 2.0, *same), (3, math.nan, *same), (4, 4.0, 0, 0, 0, 0), (2, 5.0, *same),
        (6, 6.0, 0.0, 0.0, 0.0, 2.0),
    )  # fmt: skip
    found, done = written(log, tmp_path, ".tum")
    assert found.times == [10**9, 2 * 10**9, 6 * 10**9]
    assert found.matrices[:, 0, 3].tolist() == [2.0, 1.0, 6.0]
    assert "2 poses left out: not known, or the rotation is none" in done.notes
    assert "1 pose left out: of the same time as another one" in done.notes


def test_stamps_of_another_clock_are_not_used(tmp_path: Path) -> None:
    found, done = written(poses(*((5e6 + n, n, 0, 0, 0, 1) for n in range(3))), tmp_path, ".tum")
    assert found.times == [0, 10**9, 2 * 10**9]
    assert (
        "the stamps of the poses are of another clock than the log: times of logging are used" in done.notes
    )


def test_seconds_have_nine_decimals() -> None:
    assert [seconds(ns) for ns in (0, 1, -1, 1_700_000_000_123_456_789)] == [
        "0.000000000", "0.000000001", "-0.000000001", "1700000000.123456789",
    ]  # fmt: skip


def test_utc(tmp_path: Path, bag: logreel.Log) -> None:
    log = logreel.open(flight())
    boot, _ = written(log, tmp_path, ".tum", end="+1s")
    utc, _ = written(log, tmp_path, ".tum", end="+1s", utc=True)
    assert {b - a for a, b in zip(boot.times, utc.times, strict=True)} == {log.utc_offset}
    assert "# clock: Unix time" in utc.comments


def test_the_command_says_what_it_chose(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.bag").write_bytes(drive())
    done = run("convert", tmp_path / "a.bag", tmp_path / "a.tum", "--frames", "map:base_footprint")
    assert done.code == 0
    assert "poses of 1 channel to" in done.err
    assert "the trajectory is that of base_footprint in map (transforms:" in done.err
    assert run("convert", tmp_path / "a.bag", "-o", "-", "--format", "kitti").out.count("\n") == 600
    assert run("convert", tmp_path / "a.bag", tmp_path / "b.tum", "--frames", "map").code == 2


def test_evo_reads_the_same_poses(bag: logreel.Log, tmp_path: Path) -> None:
    interface: Any = pytest.importorskip("evo.tools.file_interface", reason="needs evo")
    for suffix in SUFFIXES:
        logreel.convert(bag, tmp_path / f"x{suffix}")
    tum = interface.read_tum_trajectory_file(tmp_path / "x.tum")
    euroc = interface.read_euroc_csv_trajectory(tmp_path / "x.euroc")
    kitti = interface.read_kitti_poses_file(tmp_path / "x.kitti")
    want = np.stack([bag["/odom"][f"pose.pose.position.{axis}"] for axis in "xyz"], axis=-1)
    for read in (tum, euroc, kitti):
        valid, _ = read.check()
        assert valid
        assert np.array_equal(read.positions_xyz, want)
        assert np.allclose(read.poses_se3, tum.poses_se3, atol=1e-12)
    assert np.allclose(euroc.timestamps, tum.timestamps, atol=1e-6)
    logreel.convert(px4(), tmp_path / "y.tum")
    flown = interface.read_tum_trajectory_file(tmp_path / "y.tum")
    for time, pose in zip(flown.timestamps[:150], flown.poses_se3, strict=False):
        assert np.allclose(pose, wanted(round(time * 1e6)), atol=1e-5)
