"""What the standard messages mean: every lens on messages made for it."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from logreel.errors import UnsupportedError
from logreel.model.lenses import (
    Image,
    Imu,
    Joints,
    LaserScan,
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
from logreel.schemas.ros1msg import standard
from ros1 import channel, encoded, layout_of, log_of

S = 10**9


def header(frame: str = "map", stamp: int = 0) -> dict:
    return {"seq": 1, "stamp": stamp, "frame_id": frame}


def xyz(x: float, y: float = 0, z: float = 0) -> dict:
    return {"x": x, "y": y, "z": z}


def xyzw(w: float) -> dict:
    return {"x": 0, "y": 0, "z": 0, "w": w}


def pose(x: float) -> dict:
    return {"position": xyz(x, 2, 3), "orientation": xyzw(x)}


FRAME = "header.frame_id"


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
        *(
            (name, [Position(Scaled("latitude"), Scaled("longitude"), Scaled("altitude"))])
            for name in ("sensor_msgs/NavSatFix", "gps_common/GPSFix")
        ),
        ("sensor_msgs/CompressedImage", [Image("data", format="format")]),
        (
            "sensor_msgs/Image",
            [Image("data", encoding="encoding", width="width", height="height", big_endian="is_bigendian")],
        ),
        (
            "rosgraph_msgs/Log",
            [Text("msg", "level", "name", ((1, 7), (2, 6), (4, 4), (8, 3), (16, 2)))],
        ),
        ("std_msgs/String", []),
        ("std_msgs/Empty", []),
        ("geometry_msgs/Twist", []),
        ("geometry_msgs/Polygon", []),
        ("nav_msgs/OccupancyGrid", []),
        ("diagnostic_msgs/DiagnosticArray", []),
    ],
)
def test_what_a_type_means(name, expected):
    assert lenses(channel(name)) == expected


def test_every_lens_reads_a_channel_without_messages():
    readers = ("track", "clouds", "motion", "series", "pictures", "lines")
    seen = set()
    for name in standard().names():
        for lens in lenses(ch := channel(name)):
            read = next(getattr(lens, r) for r in readers if hasattr(lens, r))
            got = read(ch)
            if hasattr(got, "__next__") or isinstance(got, list | dict):
                assert not list(got), name
            else:
                assert not len(getattr(got, "position", got[0] if isinstance(got, tuple) else None)), name
            seen.add(type(lens))
    assert len(seen) == 10


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


def test_a_frame_told_once_counts_for_all_poses():
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


def cloud(fields, data, *, width, height=1, step, row_step=None, big=0):
    names = ("name", "offset", "datatype", "count")
    return {
        "header": header("lidar"),
        "height": height,
        "width": width,
        "fields": [dict(zip(names, f, strict=True)) for f in fields],
        "is_bigendian": big,
        "point_step": step,
        "row_step": step * width if row_step is None else row_step,
        "data": data,
    }


XYZI = [("x", 0, 7, 1), ("y", 4, 7, 1), ("z", 8, 7, 1), ("i", 12, 4, 1)]


def points(*rows, order="<"):
    return b"".join(struct.pack(order + "fffHxx", *row) for row in rows)


def test_packed_clouds():
    rows = [(1, 2, 3, 4), (5, 6, 7, 8)]
    ch = channel(
        "sensor_msgs/PointCloud2",
        cloud(XYZI, points(*rows), width=2, step=16),
        cloud(XYZI, points(*rows, order=">"), width=2, step=16, big=1),
        cloud(
            XYZI,
            points(rows[0]) + b"padd" + points(rows[1]) + b"ing.",
            width=1,
            height=2,
            step=16,
            row_step=20,
        ),
        cloud(XYZI, b"", width=0, step=16),
    )
    clouds = list(lenses(ch)[0].clouds(ch))
    assert [c.time for c in clouds] == [0, S, 2 * S, 3 * S]
    assert {c.frame for c in clouds} == {"lidar"}
    for found in clouds[:3]:
        assert found.xyz.tolist() == [[1, 2, 3], [5, 6, 7]]
        assert found.fields["i"].tolist() == [4, 8]
        assert found.fields["x"].dtype.itemsize == 4
    assert clouds[3].xyz.shape == (0, 3)


@pytest.mark.parametrize(
    "made",
    [
        cloud(
            [("x", 14, 7, 1), ("y", 2**32 - 1, 8, 2**32 - 1), ("z", 0, 99, 1)], bytes(64), width=4, step=16
        ),
        cloud(XYZI, b"", width=2**32 - 1, height=2**32 - 1, step=16, row_step=0),
        cloud(XYZI, bytes(5), width=4, height=4, step=0),
        cloud(XYZI, bytes(5), width=4, height=4, step=16, row_step=2**32 - 1),
        cloud([("x", 0, 7, 65536)], bytes(64), width=1, step=2**32 - 1),
        cloud([], bytes(64), width=4, step=16),
    ],
)
def test_a_cloud_that_fits_nothing_has_no_points(made):
    ch = channel("sensor_msgs/PointCloud2", made)
    (found,) = lenses(ch)[0].clouds(ch)
    assert found.xyz.shape == (0, 3)


def test_a_cloud_cut_short_has_the_points_that_are_there():
    ch = channel("sensor_msgs/PointCloud2", cloud(XYZI, points((1, 2, 3, 4)) + b"rest", width=9, step=16))
    (found,) = lenses(ch)[0].clouds(ch)
    assert found.xyz.tolist() == [[1, 2, 3]]


def test_fields_of_several_values():
    ch = channel("sensor_msgs/PointCloud2", cloud([("d", 0, 2, 3)], bytes(range(8)), width=2, step=4))
    (found,) = lenses(ch)[0].clouds(ch)
    assert found.fields["d"].tolist() == [[0, 1, 2], [4, 5, 6]]


def test_plain_clouds():
    ch = channel(
        "sensor_msgs/PointCloud",
        {
            "header": header("laser"),
            "points": [xyz(1, 2, 3), xyz(4, 5, 6)],
            "channels": [{"name": "rgb", "values": [0.5, 1]}, {"name": "short", "values": [1]}],
        },
        {"points": [xyz(7)]},
    )
    first, second = lenses(ch)[0].clouds(ch)
    assert (first.frame, second.frame) == ("laser", "")
    assert first.xyz.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert first.fields["rgb"].tolist() == [0.5, 1]
    assert list(first.fields) == ["x", "y", "z", "rgb"]
    assert second.xyz.tolist() == [[7, 0, 0]]


def test_scans():
    made = {
        "header": header("laser"),
        "angle_min": -np.pi / 2,
        "angle_increment": np.pi / 2,
        "range_min": 0.5,
        "range_max": 9,
        "ranges": [1, 2, float("inf"), float("nan"), 0.1],
        "intensities": [10, 20, 30, 40, 50],
    }
    ch = channel("sensor_msgs/LaserScan", made, {**made, "intensities": []})
    first, second = lenses(ch)[0].clouds(ch)
    assert np.allclose(first.xyz, [[0, -1, 0], [2, 0, 0]], atol=1e-6)
    assert first.fields["intensity"].tolist() == [10, 20]
    assert np.allclose(first.fields["angle"], [-np.pi / 2, 0], atol=1e-6)
    assert first.frame == "laser"
    assert "intensity" not in second.fields


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


@pytest.mark.parametrize("name", ["sensor_msgs/NavSatFix", "gps_common/GPSFix"])
def test_positions(name):
    ch = channel(name, {"latitude": 50.5, "longitude": 7.5, "altitude": 60})
    assert [a.tolist() for a in lenses(ch)[0].track(ch)] == [[50.5], [7.5], [60]]


def test_encoded_pictures():
    ch = channel("sensor_msgs/CompressedImage", {"format": "jpeg", "data": b"\xff\xd8"}, {"format": "png"})
    first, second = lenses(ch)[0].pictures(ch)
    assert (first.time, bytes(first.data), first.format) == (0, b"\xff\xd8", "jpeg")
    assert (second.time, bytes(second.data), second.format) == (S, b"", "png")
    with pytest.raises(UnsupportedError, match="jpeg"):
        first.array()


@pytest.mark.parametrize(
    ("encoding", "width", "data", "big", "expected"),
    [
        ("mono8", 2, bytes([1, 2, 3, 4]), 0, [[1, 2], [3, 4]]),
        ("8UC1", 1, bytes([1, 9, 3, 9]), 0, [[1], [3]]),
        ("rgb8", 1, bytes(range(6)), 0, [[[0, 1, 2]], [[3, 4, 5]]]),
        ("bgra8", 1, bytes(range(8)), 0, [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]),
        ("mono16", 1, b"\1\0\2\0", 0, [[1], [2]]),
        ("16UC1", 1, b"\0\1\0\2", 1, [[1], [2]]),
        ("bayer_rggb8", 2, bytes([1, 2, 3, 4]), 0, [[1, 2], [3, 4]]),
        ("32FC1", 1, struct.pack("<ff", 0.5, 2), 0, [[0.5], [2]]),
        ("yuv422", 1, bytes([1, 2, 3, 4]), 0, [[[1, 2]], [[3, 4]]]),
    ],
)
def test_raw_pictures(encoding, width, data, big, expected):
    ch = channel(
        "sensor_msgs/Image",
        {"height": 2, "width": width, "encoding": encoding, "is_bigendian": big, "step": 0, "data": data},
    )
    (one,) = lenses(ch)[0].pictures(ch)
    assert one.array().tolist() == expected


@pytest.mark.parametrize(
    ("encoding", "width", "height"),
    [("mono8", 5, 1), ("rgb8", 2, 1), ("h264", 1, 1), ("8FC1", 1, 1), ("mono8", 1, 0)],
)
def test_pixels_that_cannot_be(encoding, width, height):
    ch = channel(
        "sensor_msgs/Image", {"height": height, "width": width, "encoding": encoding, "data": bytes(4)}
    )
    (one,) = lenses(ch)[0].pictures(ch)
    with pytest.raises(UnsupportedError):
        one.array()


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
