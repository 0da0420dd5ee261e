"""Lenses of clouds, scans and pictures on messages of cameras, lasers and depth cameras."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from logreel.errors import UnsupportedError
from logreel.lenses import base, lenses
from logreel.log.columns import ColumnReader
from support.builders.ros1_messages import XYZI, cloud, header, points, xyz
from support.oracles.ros1 import channel, encoded, layout_of, log_of

S = 10**9


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
    assert found.lost == 8


def test_invalid_point_fields_do_not_multiply_the_message():
    shared = [(f"f{i}", 0, 8, 1) for i in range(100)]
    ch = channel("sensor_msgs/PointCloud2", cloud(shared, bytes(32), width=4, step=8))
    (found,) = lenses(ch)[0].clouds(ch)
    assert list(found.fields) == ["f0", "f1", "f2", "f3"]
    ch = channel(
        "sensor_msgs/PointCloud2", cloud([("n", 0, 0, 1)] * 1024 + XYZI, bytes(64), width=4, step=16)
    )
    (found,) = lenses(ch)[0].clouds(ch)
    assert found.fields == {}


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


def test_scans_of_odd_numbers():
    made = {"angle_increment": float("inf"), "range_max": float("inf"), "ranges": [1.0, float("inf"), 0.0]}
    payload = encoded(layout_of("sensor_msgs/LaserScan").root, made)
    at = payload.index(struct.pack("<I3f", 3, *made["ranges"]))
    # This NaN makes arithmetic complain.
    payload = payload[: at + 4] + b"\1\0\xa0\x7f" + payload[at + 8 :]
    ch = log_of("sensor_msgs/LaserScan", [payload])["/x"]
    (found,) = lenses(ch)[0].clouds(ch)
    assert np.isnan(found.fields["x"]).all()
    assert found.fields["range"].tolist() == [float("inf"), 0]


@pytest.mark.parametrize(("room", "batches"), [(1, [1] * 6), (2500, [1, 2, 2, 1]), (10**6, [1, 5])])
def test_large_messages_are_decoded_a_few_at_a_time(room, batches, monkeypatch):
    made = [{"format": "jpeg", "data": bytes([i] * 1000)} for i in range(6)]
    ch = channel("sensor_msgs/CompressedImage", *made)
    (lens,) = lenses(ch)
    sizes = []

    def counted(reader, rows):
        sizes.append(rows.stop - rows.start)
        return read(reader, rows)

    read = ColumnReader.read
    monkeypatch.setattr(ColumnReader, "read", counted)
    monkeypatch.setattr(base, "FEW_BYTES", room)
    assert [bytes(one.data) for one in lens.pictures(ch)] == [one["data"] for one in made]
    assert sizes == batches
    assert [one.time for one in lens.pictures(ch, 2 * S, 4 * S)] == [2 * S, 3 * S]


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
def test_impossible_pixels_are_refused(encoding, width, height):
    ch = channel(
        "sensor_msgs/Image", {"height": height, "width": width, "encoding": encoding, "data": bytes(4)}
    )
    (one,) = lenses(ch)[0].pictures(ch)
    with pytest.raises(UnsupportedError):
        one.array()
