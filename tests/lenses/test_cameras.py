"""Calibrations map places to the pixels of the textbook, and boxes of all kinds of detections are found."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.lenses import Camera, Detections, Pose, lens_names, lenses
from logreel.lenses.image import BOXES, CameraCalibration, DetectedBox, read_calibration
from logreel.meaning.cameras import NO_CAMERA, overlay_at, overlay_sources
from logreel.meaning.scenes import scene_at, shade_of
from support.builders.ros1_messages import header, xyz
from support.oracles.ros1 import channel
from support.samples.rosbag.cart import FOCAL, HEIGHT, STRAIGHT, WALL, WIDTH, cart

S = 10**9
_LINE = "=" * 80
K = [500.0, 0.0, 320.0, 0.0, 510.0, 240.0, 0.0, 0.0, 1.0]
P = [400.0, 0.0, 300.0, -40.0, 0.0, 410.0, 200.0, 0.0, 0.0, 0.0, 1.0, 0.0]


def calibration(d: list[float], model: str = "plumb_bob", **more: Any) -> CameraCalibration:
    value = {"header": header("cam"), "width": 640, "height": 480, "distortion_model": model}
    ch = channel("sensor_msgs/CameraInfo", value | {"D": d, "K": K, "P": P} | more)
    (lens,) = lenses(ch)
    assert isinstance(lens, Camera)
    found = read_calibration(ch, lens, 0)
    assert found is not None
    return found


def plumb_bob(x: float, y: float, d: list[float]) -> tuple[float, float]:
    """Return the pixel of a direction, by the formula of OpenCV's documentation."""
    k1, k2, p1, p2, k3, k4, k5, k6 = [*d, *[0.0] * (8 - len(d))]
    r = math.hypot(x, y)
    radial = (1 + k1 * r**2 + k2 * r**4 + k3 * r**6) / (1 + k4 * r**2 + k5 * r**4 + k6 * r**6)
    u = x * radial + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2)
    v = y * radial + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y
    return 500 * u + 320, 510 * v + 240


@pytest.mark.parametrize(
    ("d", "model"),
    [
        ([], "plumb_bob"),
        ([-0.25, 0.08, 0.001, -0.002, 0.01], "plumb_bob"),
        ([0.3, -0.05, 0.001, 0.002, 0.01, 0.4, 0.02, 0.001], "rational_polynomial"),
    ],
)
def test_places_have_the_pixels_of_the_textbook(d: list[float], model: str) -> None:
    rng = np.random.default_rng(1)
    places = np.column_stack([rng.uniform(-0.5, 0.5, 200), rng.uniform(-0.4, 0.4, 200), np.ones(200)])
    places *= rng.uniform(0.5, 30, 200)[:, None]
    at, inside = calibration(d, model).pixels(places)
    want = [plumb_bob(x / z, y / z, d) for x, y, z in places]
    np.testing.assert_allclose(at, want, rtol=1e-9)
    assert inside.tolist() == [0 <= u < 640 and 0 <= v < 480 for u, v in want]
    assert inside.any()


def test_fisheye_cameras_bend_the_angle() -> None:
    d = [0.05, -0.01, 0.002, 0.0005]
    at, inside = calibration(d, "equidistant").pixels(np.array([[1.0, 0.5, 2.0], [0.0, 0.0, 1.0]]))
    angle = math.atan(math.hypot(0.5, 0.25))
    bent = angle * (1 + sum(k * angle ** (2 * n + 2) for n, k in enumerate(d))) / math.hypot(0.5, 0.25)
    np.testing.assert_allclose(
        at, [(500 * 0.5 * bent + 320, 510 * 0.25 * bent + 240), (320, 240)], rtol=1e-12
    )
    assert inside.all()


def test_rectified_pictures_have_the_pixels_of_the_projection() -> None:
    at, _ = calibration([-0.25, 0.1, 0, 0, 0]).pixels(np.array([[1.0, 2.0, 4.0]]), rectified=True)
    np.testing.assert_allclose(at, [[(400 * 1 + 300 * 4 - 40) / 4, (410 * 2 + 200 * 4) / 4]])


def test_pixels_are_those_of_the_region_of_the_sensor_and_of_pixels_that_are_put_together() -> None:
    d, places = [-0.25, 0.08, 0.001, -0.002, 0.01], np.array([[0.1, 0.05, 1.0], [-1.1, 0.0, 2.0]])
    region = {"x_offset": 100, "y_offset": 40, "width": 400, "height": 320, "do_rectify": False}
    whole, part = calibration(d), calibration(d, binning_x=2, binning_y=4, roi=region)
    assert (part.width, part.height) == (200, 80)
    for rectified in (False, True):
        (at, _), (moved, inside) = (camera.pixels(places, rectified) for camera in (whole, part))
        np.testing.assert_allclose(moved, (at - (100, 40)) / (2, 4), rtol=1e-12)
        assert inside.tolist() == [True, False]


def test_places_behind_the_camera_and_beyond_its_model_are_not_in_the_picture() -> None:
    camera = calibration([-0.5, 0, 0, 0, 0])
    # At 1.35 the polynomial has turned back, and would put the place near the middle.
    places = np.array([[0, 0, -1.0], [1.35, 0, 1], [0.2, 0, 1], [0, 0, 0], [np.nan, 0, 1]])
    at, inside = camera.pixels(places)
    assert 0 < at[1, 0] < 640
    assert inside.tolist() == [False, False, True, False, False]


def test_cameras_that_are_not_calibrated_have_none() -> None:
    for k in ([0.0] * 9, [math.nan, *K[1:]]):
        ch = channel("sensor_msgs/CameraInfo", {"width": 640, "height": 480, "K": k})
        (lens,) = lenses(ch)
        assert isinstance(lens, Camera)
        assert read_calibration(ch, lens, 0) is None


def test_points_are_drawn_where_they_were_when_the_picture_was_taken() -> None:
    with logreel.open(cart()) as log:
        (source,) = overlay_sources(log)
        assert (source.camera, source.clouds, source.detections) == (
            "/camera/camera_info",
            ["/points"],
            ["/detections"],
        )
        assert source.solids == ["/objects"]
        ch = log["/camera/image/compressed"]
        overlay = overlay_at(log, ch, log.start + 2 * S, ["/points"], ["/detections"])
        by_ring = overlay_at(log, ch, log.start + 2 * S, ["/points"], [], "ring")
        early = overlay_at(log, ch, log.start, ["/points"], [])
        ((solid, edges),) = overlay_at(log, ch, log.start + 2 * S, [], ["/objects"]).solids
    d, ahead = [-0.2, 0.03, 0.001, -0.002, 0.0], WALL - 2
    y, z = (axis.ravel() for axis in np.meshgrid(np.linspace(-3, 3, 25), np.linspace(0, 3, 13)))
    want = []
    for left, up in zip(y, z - 1.0, strict=True):
        u, v = plumb_bob(-left / ahead, -up / ahead, d)
        want.append(((u - 320) / 500 * FOCAL + WIDTH / 2, (v - 240) / 510 * FOCAL + HEIGHT / 2))
    np.testing.assert_allclose(overlay.at, want, atol=1e-3)
    np.testing.assert_allclose(overlay.value, np.sqrt(ahead**2 + y**2 + (z - 1) ** 2), rtol=1e-5)
    assert overlay.colour == "distance"
    assert by_ring.colour == "ring"
    np.testing.assert_allclose(by_ring.value, np.round(z / 0.25))
    assert len(early.at) > 0
    (box,) = overlay.boxes
    assert (box.label, box.score, box.position.tolist(), box.size.tolist()) == ("7", 0.85, [32, 24], [20, 10])
    # The edges of a box in space begin at its corners, where the lens shows them.
    assert (solid.label, solid.score) == ("3", 0.5)
    ends, seen = edges.reshape(-1, 2), 0
    for x, y, z in product((ahead - 0.25, ahead + 0.25), (0.5, 1.5), (-1, 1)):
        u, v = plumb_bob(-y / x, -z / x, d)
        pixel = np.array([(u - 320) / 500 * FOCAL + WIDTH / 2, (v - 240) / 510 * FOCAL + HEIGHT / 2])
        if (pixel >= 0).all() and (pixel < (WIDTH, HEIGHT)).all():
            seen += 1
            assert np.linalg.norm(ends - pixel, axis=1).min() < 1e-6
    assert seen >= 4
    assert (ends >= 0).all()
    assert (ends < (WIDTH, HEIGHT)).all()


def test_pictures_without_a_calibration_have_a_sentence() -> None:
    ch = channel("sensor_msgs/CompressedImage", {"format": "png", "data": b""})
    (source,) = overlay_sources(ch.log)
    assert (source.camera, source.clouds) == ("", [])
    assert overlay_at(ch.log, ch, 0, ["/x"], []).notes == [NO_CAMERA]


HEAD = f"{_LINE}\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"
DARKNET = f"""std_msgs/Header header
std_msgs/Header image_header
darknet_ros_msgs/BoundingBox[] bounding_boxes
{HEAD}{_LINE}
MSG: darknet_ros_msgs/BoundingBox
float64 probability
int64 xmin
int64 ymin
int64 xmax
int64 ymax
int16 id
string Class
"""
HYPOTHESES = f"""std_msgs/Header header
vision_msgs/Detection2D[] detections
{HEAD}{_LINE}
MSG: vision_msgs/Detection2D
std_msgs/Header header
vision_msgs/Result[] results
vision_msgs/BoundingBox2D bbox
{_LINE}
MSG: vision_msgs/Result
vision_msgs/Hypothesis hypothesis
{_LINE}
MSG: vision_msgs/Hypothesis
string class_id
float64 score
{_LINE}
MSG: vision_msgs/BoundingBox2D
vision_msgs/Pose2D center
float64 size_x
float64 size_y
{_LINE}
MSG: vision_msgs/Pose2D
vision_msgs/Point2D position
float64 theta
{_LINE}
MSG: vision_msgs/Point2D
float64 x
float64 y
"""
JSK = f"""std_msgs/Header header
jsk_recognition_msgs/BoundingBox[] boxes
{HEAD}{_LINE}
MSG: jsk_recognition_msgs/BoundingBox
std_msgs/Header header
geometry_msgs/Pose pose
geometry_msgs/Vector3 dimensions
float32 value
uint32 label
{_LINE}
MSG: geometry_msgs/Pose
geometry_msgs/Point position
geometry_msgs/Quaternion orientation
{_LINE}
MSG: geometry_msgs/Point
float64 x
float64 y
float64 z
{_LINE}
MSG: geometry_msgs/Quaternion
float64 x
float64 y
float64 z
float64 w
{_LINE}
MSG: geometry_msgs/Vector3
float64 x
float64 y
float64 z
"""


def boxes(
    path: Path, kind: str, text: str, value: dict[str, Any]
) -> tuple[logreel.Channel, Detections, list[DetectedBox]]:
    with logreel.create(path) as writer:
        writer.write(writer.add_channel("/x", logreel.Schema(kind, "ros1msg", text)), S, value)
    ch = logreel.open(path)["/x"]
    assert lens_names(ch)[0] == "detections"
    lens = next(one for one in lenses(ch) if isinstance(one, Detections))
    return ch, lens, lens.at(ch, 0)


def test_boxes_of_darknet(tmp_path: Path) -> None:
    one = {"probability": 0.5, "xmin": 10, "ymin": 20, "xmax": 30, "ymax": 60, "id": 3, "Class": "dog"}
    value = {"header": header(), "image_header": header("cam"), "bounding_boxes": [one]}
    _, lens, (box,) = boxes(tmp_path / "a.bag", "darknet_ros_msgs/BoundingBoxes", DARKNET, value)
    assert not lens.is_solid
    assert (box.label, box.score, *box.position, *box.size) == ("dog", 0.5, 20, 40, 20, 40)


def test_boxes_of_vision_messages_of_ros_2(tmp_path: Path) -> None:
    results = [
        {"hypothesis": {"class_id": name, "score": score}} for name, score in (("cat", 0.2), ("dog", 0.7))
    ]
    bbox = {"center": {"position": {"x": 5.0, "y": 6.0}, "theta": 0.5}, "size_x": 3.0, "size_y": 4.0}
    one = {"header": header("cam"), "results": results, "bbox": bbox}
    empty = {"header": header("cam"), "results": [], "bbox": bbox | {"size_x": math.nan}}
    value = {"header": header("cam"), "detections": [one, empty]}
    _, _, (box,) = boxes(tmp_path / "a.bag", "vision_msgs/Detection2DArray", HYPOTHESES, value)
    assert (box.label, box.score, box.angle, *box.position, *box.size) == ("dog", 0.7, 0.5, 5, 6, 3, 4)


def test_boxes_of_jsk_are_shown_in_space_and_bounded(tmp_path: Path) -> None:
    pose = {"position": xyz(1.0, 2.0, 3.0), "orientation": STRAIGHT}
    one = {"header": header("odd"), "pose": pose, "dimensions": xyz(4.0, 5.0, 6.0), "value": 0.25, "label": 9}
    value = {"header": header(), "boxes": [one] * (BOXES + 5)}
    ch, lens, (box, *others) = boxes(tmp_path / "a.bag", "jsk_recognition_msgs/BoundingBoxArray", JSK, value)
    assert lens.is_solid
    assert len(others) == BOXES - 1
    assert (box.label, box.score, box.frame) == ("9", 0.25, "odd")
    (item,) = scene_at(ch.log, 2 * S).items
    assert item.kind == "detections"
    assert item.labels[0] == "9 0.25"
    np.testing.assert_allclose(item.arrays["solid"][0], (1, 2, 3, 0, 0, 0, 1, 4, 5, 6))
    assert tuple(item.arrays["solid_colour"][0][:3]) == shade_of("9")
    assert not any(isinstance(own, Pose) for own in lenses(ch)[:1])
