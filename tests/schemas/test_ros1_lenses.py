"""Lenses on standard messages."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from logreel.lenses import (
    Diagnostics,
    Image,
    Imu,
    Joints,
    KnownWhen,
    LaserScan,
    Markers,
    OccupancyGrid,
    PackedCloud,
    PlainCloud,
    Pose,
    Position,
    Scaled,
    Text,
    Transform,
    lenses,
    text_lines,
)
from logreel.lenses.base import Stamp
from logreel.lenses.position import QualityPaths
from logreel.schemas.ros1msg import standard
from support.builders.ros1_messages import header, pose, xyz, xyzw
from support.oracles.ros1 import channel, encoded, layout_of, log_of

S = 10**9


FRAME = "header.frame_id"
COVARIANCE = QualityPaths("position_covariance", "position_covariance_type")
FIX = KnownWhen("status.status", 0)
#: Syslog numbers of the levels of ROS 1, powers of two, and of those of ROS 2, tens: no number is in both.
ROS_LEVELS = ((1, 7), (2, 6), (4, 4), (8, 3), (16, 2), (10, 7), (20, 6), (30, 4), (40, 3), (50, 2))
#: Where the time of the data stands, if not in the header.
STAMPS = {
    "geometry_msgs/Pose": None,
    "geometry_msgs/Transform": None,
    "tf2_msgs/TFMessage": "transforms.header.stamp",
    "tf/tfMessage": "transforms.header.stamp",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("geometry_msgs/Pose", [Pose("position", "orientation")]),
        ("geometry_msgs/PoseStamped", [Pose("pose.position", "pose.orientation", FRAME)]),
        (
            "geometry_msgs/PoseWithCovarianceStamped",
            [Pose("pose.pose.position", "pose.pose.orientation", FRAME)],
        ),
        ("nav_msgs/Odometry", [Pose("pose.pose.position", "pose.pose.orientation", FRAME, "child_frame_id")]),
        (
            "nav_msgs/Path",
            [Pose("poses.pose.position", "poses.pose.orientation", "poses.header.frame_id", None, True)],
        ),
        ("geometry_msgs/PoseArray", [Pose("poses.position", "poses.orientation", FRAME, None, True)]),
        ("std_msgs/PoseWithRatesStamped", [Pose("pos.position", "pos.orientation", FRAME)]),
        ("geometry_msgs/Transform", [Transform("translation", "rotation")]),
        (
            "geometry_msgs/TransformStamped",
            [Transform("transform.translation", "transform.rotation", FRAME, "child_frame_id")],
        ),
        *(
            (
                name,
                [
                    Transform(
                        "transforms.transform.translation",
                        "transforms.transform.rotation",
                        "transforms.header.frame_id",
                        "transforms.child_frame_id",
                        True,
                    )
                ],
            )
            for name in ("tf2_msgs/TFMessage", "tf/tfMessage")
        ),
        ("sensor_msgs/PointCloud2", [PackedCloud(FRAME)]),
        ("sensor_msgs/PointCloud", [PlainCloud(FRAME)]),
        ("sensor_msgs/LaserScan", [LaserScan(FRAME)]),
        ("sensor_msgs/Imu", [Imu("angular_velocity", "linear_acceleration", "orientation")]),
        ("sensor_msgs/JointState", [Joints("name", "position", "velocity", "effort")]),
        (
            "sensor_msgs/NavSatFix",
            [Position(Scaled("latitude"), Scaled("longitude"), Scaled("altitude"), FIX, quality=COVARIANCE)],
        ),
        (
            "gps_common/GPSFix",
            [
                Position(
                    Scaled("latitude"),
                    Scaled("longitude"),
                    Scaled("altitude"),
                    FIX,
                    quality=replace(
                        COVARIANCE,
                        speed=Scaled("speed"),
                        course=Scaled("track", math.pi / 180),
                        hdop="hdop",
                        vdop="vdop",
                    ),
                )
            ],
        ),
        ("sensor_msgs/CompressedImage", [Image("data", format="format")]),
        (
            "sensor_msgs/Image",
            [Image("data", encoding="encoding", width="width", height="height", big_endian="is_bigendian")],
        ),
        (
            "rosgraph_msgs/Log",
            [Text("msg", "level", "name", ROS_LEVELS)],
        ),
        ("std_msgs/String", []),
        ("std_msgs/Empty", []),
        ("geometry_msgs/Twist", []),
        ("geometry_msgs/Polygon", []),
        ("nav_msgs/OccupancyGrid", [OccupancyGrid("header.frame_id")]),
        (
            "visualization_msgs/Marker",
            [Markers(False), Pose("pose.position", "pose.orientation", FRAME)],
        ),
        ("visualization_msgs/MarkerArray", [Markers(True)]),
        ("diagnostic_msgs/DiagnosticArray", [Diagnostics()]),
    ],
)
def test_types_have_their_lenses(name, expected):
    at = STAMPS.get(name, "header.stamp")
    stamp = Stamp(((at, 1),)) if at else None
    expected = [replace(lens, stamp=stamp) if hasattr(lens, "stamp") else lens for lens in expected]
    assert lenses(channel(name)) == expected


def test_every_lens_reads_a_channel_without_messages():
    readers = ("track", "clouds", "motion", "series", "pictures", "lines", "grids")
    seen = set()
    for name in standard().names():
        for lens in lenses(ch := channel(name)):
            if isinstance(lens, Markers):
                assert lens.standing(ch, 0) == ([], 0)
                continue
            read = next((getattr(lens, r) for r in readers if hasattr(lens, r)), None)
            if read is None:
                # What they say of one moment is tested with the scene.
                assert type(lens).__name__ in ("Camera", "Detections"), lens
                continue
            got = read(ch)
            if hasattr(got, "__next__") or isinstance(got, list | dict):
                assert not list(got), name
            else:
                assert not len(getattr(got, "position", got[0] if isinstance(got, tuple) else None)), name
            seen.add(type(lens))
    assert len(seen) == 14


def test_poses_of_odometry():
    made = [{"header": header(), "child_frame_id": "base", "pose": {"pose": pose(i)}} for i in range(3)]
    ch = channel("nav_msgs/Odometry", *made)
    (lens,) = lenses(ch)
    track = lens.track(ch)
    assert track.time.tolist() == [0, S, 2 * S]
    assert track.position.tolist() == [[0, 2, 3], [1, 2, 3], [2, 2, 3]]
    assert track.rotation.tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 2]]
    assert track.frame.tolist() == ["map"] * 3
    assert track.child.tolist() == ["base"] * 3


def test_poses_of_a_path_and_without_frames():
    stamped = [{"header": header(f"f{i}"), "pose": pose(i)} for i in range(3)]
    ch = channel("nav_msgs/Path", {"poses": stamped[:2]}, {}, {"poses": stamped[2:]})
    track = lenses(ch)[0].track(ch)
    assert track.time.tolist() == [0, 0, 2 * S]
    assert track.position[:, 0].tolist() == [0, 1, 2]
    assert track.frame.tolist() == ["f0", "f1", "f2"]
    ch = channel("geometry_msgs/Pose", pose(7))
    track = lenses(ch)[0].track(ch)
    assert track.rotation.tolist() == [[0, 0, 0, 7]]
    assert track.frame is None


def test_frame_of_the_message_holds_for_all_poses():
    ch = channel(
        "geometry_msgs/PoseArray",
        {"header": header("a"), "poses": [pose(0), pose(1)]},
        {"header": header("b")},
        {"header": header("c"), "poses": [pose(2)]},
    )
    track = lenses(ch)[0].track(ch)
    assert track.frame.tolist() == ["a", "a", "c"]
    assert track.time.tolist() == [0, 0, 2 * S]


def test_transforms():
    def one(i):
        return {
            "header": header("odom"),
            "child_frame_id": f"c{i}",
            "transform": {"translation": xyz(i), "rotation": xyzw(1)},
        }

    ch = channel("tf2_msgs/TFMessage", {"transforms": [one(0), one(1)]}, {"transforms": [one(2)]})
    track = lenses(ch)[0].track(ch)
    assert track.time.tolist() == [0, 0, S]
    assert track.position[:, 0].tolist() == [0, 1, 2]
    assert track.frame.tolist() == ["odom"] * 3
    assert track.child.tolist() == ["c0", "c1", "c2"]


def test_inertial_units():
    ch = channel(
        "sensor_msgs/Imu",
        {"orientation": xyzw(1), "angular_velocity": xyz(1, 2, 3), "linear_acceleration": xyz(4, 5, 6)},
    )
    time, rate, acceleration, turn = lenses(ch)[0].motion(ch)
    assert time.tolist() == [0]
    assert rate.tolist() == [[1, 2, 3]]
    assert acceleration.tolist() == [[4, 5, 6]]
    assert turn.tolist() == [[0, 0, 0, 1]]


def test_joints():
    ch = channel(
        "sensor_msgs/JointState",
        {"name": ["b", "a"], "position": [1, 2], "velocity": [3, 4]},
        {"name": [], "position": [9]},
        {"name": ["a", "c"], "position": [5], "effort": [6, 7]},
    )
    found = lenses(ch)[0].series(ch)
    assert list(found) == ["b", "a", "c"]
    assert found["a"].time.tolist() == [0, 2 * S]
    assert found["a"].position.tolist() == [2, 5]
    assert np.array_equal(found["a"].velocity, [4, np.nan], equal_nan=True)
    assert np.array_equal(found["a"].effort, [np.nan, 6], equal_nan=True)
    assert np.isnan(found["c"].position[0])
    assert found["c"].effort.tolist() == [7]


def test_joints_of_messages_that_cannot_be_decoded_are_left_out():
    root = layout_of("sensor_msgs/JointState").root
    payload = encoded(root, {"name": ["a"], "position": [1.5]})
    ch = log_of("sensor_msgs/JointState", [payload, payload[:-3], payload])["/x"]
    assert ch.to_arrow()["name"].to_pylist() == [["a"], None, ["a"]]
    found = lenses(ch)[0].series(ch)
    assert list(found) == ["a"]
    assert found["a"].time.tolist() == [0, 2 * S]
    assert found["a"].position.tolist() == [1.5, 1.5]


@pytest.mark.parametrize("name", ["sensor_msgs/NavSatFix", "gps_common/GPSFix"])
def test_positions(name):
    ch = channel(name, {"latitude": 50.5, "longitude": 7.5, "altitude": 60})
    assert [a.tolist() for a in lenses(ch)[0].track(ch)] == [[50.5], [7.5], [60]]


def test_positions_with_their_times_and_whether_they_are_known():
    made = [
        {"latitude": i, "longitude": -i, "status": {"status": status}} for i, status in enumerate((-1, 0, 2))
    ]
    ch = channel("sensor_msgs/NavSatFix", *made)
    found = lenses(ch)[0].fixes(ch)
    assert found.time.tolist() == [0, S, 2 * S]
    assert found.latitude.tolist() == [0, 1, 2]
    assert found.longitude.tolist() == [0, -1, -2]
    assert found.fixed.tolist() == [False, True, True]
    assert lenses(ch)[0].fixes(ch, S, 2 * S).latitude.tolist() == [1]
    assert len(found.take(found.fixed)) == 2


def test_log_lines_have_syslog_levels():
    made = [{"level": level, "name": "/node", "msg": f"m{level}"} for level in (1, 2, 4, 8, 16, 3)]
    ch = channel("rosgraph_msgs/Log", *made)
    lines = list(text_lines(ch.log))
    assert [(line.level, line.text) for line in lines] == [
        (7, "m1"),
        (6, "m2"),
        (4, "m4"),
        (3, "m8"),
        (2, "m16"),
        (None, "m3"),
    ]
    assert {line.source for line in lines} == {"/node"}
    assert [line.time for line in lines] == [i * S for i in range(6)]


def test_a_damaged_message_does_not_shift_the_others():
    root = layout_of("rosgraph_msgs/Log").root
    whole = [encoded(root, {"level": 2, "msg": f"m{i}"}) for i in range(3)]
    log = log_of("rosgraph_msgs/Log", [whole[0], whole[1][:20], whole[2]])
    assert [(line.time, line.text) for line in log.text] == [(0, "m0"), (2 * S, "m2")]


def test_diagnostics_are_lines_where_the_level_of_a_part_changes():
    def state(name, level, message):
        return {"name": name, "level": level, "message": message}

    ch = channel(
        "diagnostic_msgs/DiagnosticArray",
        {"status": [state("motor", 0, "running"), state("lidar", 1, "slow")]},
        {"status": [state("motor", 0, "running at 3 Hz"), state("lidar", 1, "slow, 8 Hz")]},
        {"status": [state("motor", 2, "no answer")]},
        {"status": []},
        {"status": [state("lidar", 0, "fine"), state("motor", 3, "stale"), state("arm", 7, "odd")]},
    )
    due = [
        (0, 4, "slow", "lidar"),
        (2, 3, "no answer", "motor"),
        (4, 6, "fine", "lidar"),
        (4, 4, "stale", "motor"),
        (4, None, "odd", "arm"),
    ]
    lines = [(line.time // 10**9, line.level, line.text, line.source) for line in text_lines(ch.log)]
    assert sorted(lines, key=str) == sorted(due, key=str)
    # What is the same as before the interval is no line of it.
    assert [line.source for line in Diagnostics().lines(ch, 10**9, 3 * 10**9)] == ["motor"]
