"""Pictures, point clouds and positions of a channel as NumPy arrays."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import MissingDependencyError, UnsupportedError
from logreel.lenses import lenses
from logreel.outputs.media.pictures import png
from support.builders.sample_logs import short_flight
from support.oracles.ros1 import channel
from support.samples.rosbag.builder import drive

av: Any = pytest.importorskip("av")
Image: Any = pytest.importorskip("PIL.Image")


def raw_images(*images: dict[str, Any]) -> logreel.Channel:
    return channel("sensor_msgs/Image", *images)


def test_jpegs_are_decoded_as_pillow_decodes_them() -> None:
    log = logreel.open(drive())
    ch = log["/camera/compressed"]
    decoded = list(logreel.pictures(ch))
    assert [one.time for one in decoded] == ch.times.tolist()
    for one, message in zip(decoded, ch, strict=True):
        due = np.asarray(Image.open(io.BytesIO(message.decode()["data"])).convert("RGB"))
        assert (one.pixels.dtype, one.pixels.shape) == (np.uint8, due.shape)
        assert np.abs(one.pixels.astype(int) - due).max() <= 3


def test_raw_pixels_are_those_of_the_message_in_the_order_red_green_blue() -> None:
    depth = np.arange(6, dtype="<f4").reshape(2, 3)
    ch = raw_images(
        {"encoding": "bgr8", "height": 1, "width": 2, "step": 6, "data": bytes([1, 2, 3, 4, 5, 6])},
        {"encoding": "16UC1", "height": 1, "width": 2, "step": 4, "data": b"\1\0\0\1"},
        {"encoding": "32FC1", "height": 2, "width": 3, "step": 12, "data": depth.tobytes()},
    )
    colour, millimetres, metres = (one.pixels for one in logreel.pictures(ch))
    assert colour.tolist() == [[[3, 2, 1], [6, 5, 4]]]
    assert millimetres.tolist() == [[1, 256]]
    assert metres.tolist() == depth.tolist()


def test_a_png_of_16_bits_keeps_them() -> None:
    deep = np.array([[0, 1, 65535], [256, 7, 300]], np.uint16)
    ch = channel("sensor_msgs/CompressedImage", {"format": "16UC1; png", "data": png(deep)})
    (one,) = logreel.pictures(ch)
    assert (one.pixels.dtype, one.pixels.tolist()) == (np.uint16, deep.tolist())


def test_a_picture_that_cannot_be_decoded_is_left_out_and_noted() -> None:
    good = next(iter(logreel.open(drive())["/camera/compressed"])).decode()["data"]
    ch = channel(
        "sensor_msgs/CompressedImage",
        *({"format": "jpeg", "data": data} for data in (good, good[:200], b"", good)),
    )
    assert len(list(logreel.pictures(ch))) == 2
    texts = [problem.text for problem in ch.log.problems if problem.code == "picture"]
    assert len(texts) == 2
    assert all("is left out" in text for text in texts)


def test_the_interval_limits_pictures_clouds_and_positions() -> None:
    log = logreel.open(drive())
    ch = log["/camera/compressed"]
    half = [one.time for one in logreel.pictures(ch, start="+1s", end="+2s")]
    assert half == [t for t in ch.times.tolist() if log.start + 10**9 <= t < log.start + 2 * 10**9]
    assert half


def test_clouds_are_those_of_the_lens() -> None:
    log = logreel.open(drive())
    topics = [ch.topic for ch in log.match(None) if any(hasattr(lens, "clouds") for lens in lenses(ch))]
    assert topics
    for topic in topics:
        ch = log[topic]
        (lens,) = (lens for lens in lenses(ch) if hasattr(lens, "clouds"))
        for one, due in zip(logreel.clouds(ch), lens.clouds(ch), strict=True):
            assert one.time == due.time
            np.testing.assert_array_equal(one.xyz, due.xyz)


def test_positions_are_valid_and_in_order_of_time() -> None:
    ch = logreel.open(short_flight())["sensor_gps"]
    fixes = logreel.positions(ch)
    assert len(fixes) == len(ch)
    np.testing.assert_allclose(fixes.latitude, ch["latitude_deg"])
    assert (np.diff(fixes.time) >= 0).all()
    assert fixes.valid.all()


@pytest.mark.parametrize(
    ("read", "what"),
    [(logreel.pictures, "pictures"), (logreel.clouds, "point clouds"), (logreel.positions, "positions")],
)
def test_a_channel_without_them_is_refused(read: Any, what: str) -> None:
    with pytest.raises(UnsupportedError, match=f"'cpuload' has no {what}"):
        read(logreel.open(short_flight())["cpuload"])


def test_without_the_decoder_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"logreel\[video\]"):
        list(logreel.pictures(logreel.open(drive())["/camera/compressed"]))
