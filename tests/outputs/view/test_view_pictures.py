"""Pictures at a moment are those of the log, in encodings that browsers show."""

from __future__ import annotations

import io
import struct
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import UnsupportedError
from logreel.lenses import Picture
from logreel.outputs.media.pictures import png
from logreel.outputs.view.spatial import browser_picture, picture_at, picture_sources, video_packets
from logreel.outputs.view.view_log import ViewLog
from support.harness.viewing import viewing
from support.oracles.ros1 import channel
from support.samples.koblenz.drive import drive as koblenz_drive
from support.samples.rosbag.builder import drive

S = 10**9
Image = pytest.importorskip("PIL.Image")


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)))


def raw(encoding: str, array: Any) -> Picture:
    array = np.ascontiguousarray(array)
    return Picture(0, memoryview(array.tobytes()), None, encoding, array.shape[1], array.shape[0])


def compressed(kind: str, *data: bytes) -> logreel.Channel:
    return channel("sensor_msgs/CompressedImage", *({"format": kind, "data": d} for d in data))


@pytest.mark.parametrize("after", [0, 1, S, 2 * S + 1])
def test_picture_is_the_last_one_before_the_moment(after: int) -> None:
    with logreel.open(drive(3)) as log:
        ch = log["/camera/compressed"]
        found = picture_at(ch, ch.start + after)
        rows = [i for i, t in enumerate(ch.times) if t <= ch.start + after]
        assert found.data == ch[rows[-1]].decode()["data"]
        assert (found.row, found.time, found.following) == (
            rows[-1],
            ch.times[rows[-1]],
            ch.times[rows[-1] + 1],
        )
    assert found.media == "image/jpeg"


def test_before_the_first_and_after_the_last_picture() -> None:
    with logreel.open(drive(1)) as log:
        ch = log["/camera/compressed"]
        assert picture_at(ch, ch.start - 1) is None
        assert picture_at(ch, ch.end + S).following is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (drive(1), {("/camera/compressed", "picture", "jpeg")}),
        (koblenz_drive(1), {("ImageM/0", "picture", "jpeg"), ("ImageM/1", "picture", "jpeg")}),
    ],
)
def test_channels_with_pictures_of_each_format(data: bytes, expected: set[tuple[str, str, str]]) -> None:
    with logreel.open(data) as log:
        assert {(one.topic, one.kind, one.codec) for one in picture_sources(log)} == expected


def test_raw_colours_keep_their_order() -> None:
    want = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    assert pixels(browser_picture(raw("rgb8", want))[0]).tolist() == want.tolist()
    assert pixels(browser_picture(raw("bgr8", want))[0]).tolist() == want[..., ::-1].tolist()


def test_sixteen_bits_become_eight() -> None:
    data, media, *_ = browser_picture(raw("rgb16", np.full((2, 2, 3), 0xAB12, "<u2")))
    assert media == "image/png"
    assert (pixels(data) == 0xAB).all()


def test_squares_behind_a_colour_filter_become_colours() -> None:
    mosaic = np.array([[10, 20], [30, 40]], np.uint8)
    for name, want in {
        "rggb": [10, 25, 40],
        "bggr": [40, 25, 10],
        "gbrg": [30, 25, 20],
        "grbg": [20, 25, 30],
    }.items():
        assert pixels(browser_picture(raw(f"bayer_{name}8", mosaic))[0]).tolist() == [[want]]


def test_distances_are_scaled_and_their_range_is_told() -> None:
    depth = np.linspace(500, 4500, 101 * 10).reshape(10, 101).astype("<u2")
    depth[0, 0] = 0
    data, _, width, height, note = browser_picture(raw("16UC1", depth))
    grey = pixels(data)
    assert (width, height) == (101, 10)
    assert note == "Dark to bright: 0.543 to 4.46 m."
    assert grey[0, 0] == 0  # unknown
    assert grey[0, 1] == 40
    assert grey[-1, -1] == 255
    assert (np.diff(grey.ravel()[1:].astype(int)) >= 0).all()


def test_float_distances_without_values_are_black() -> None:
    data, _, _, _, note = browser_picture(raw("32FC1", np.full((2, 2), np.nan, "<f4")))
    assert pixels(data).max() == 0
    assert note == "No pixel has a value."


def test_large_raw_pictures_lose_rows_and_columns_but_not_their_stated_size() -> None:
    want = np.random.default_rng(1).integers(0, 255, (40, 60, 3), np.uint8)
    data, _, width, height, _ = browser_picture(raw("rgb8", want), width=20)
    assert (width, height) == (60, 40)
    assert pixels(data).tolist() == want[::3, ::3].tolist()


def test_compressed_depth_is_decoded() -> None:
    pytest.importorskip("av")
    depth = np.linspace(1000, 3000, 60).reshape(6, 10).astype(np.uint16)
    plain = struct.pack("<iff", 0, 0.0, 0.0) + png(depth)
    ch = compressed("16UC1; compressedDepth png", plain)
    found = picture_at(ch, S)
    assert found.note == "Dark to bright: 1.02 to 2.98 m."
    assert (np.diff(pixels(found.data).ravel().astype(int)) >= 0).all()
    # With 32 bits the value is quantised as a / depth + b.
    a, b = 2000.0, 7.0
    packed = struct.pack("<iff", 0, a, b) + png(np.round(a / (depth / 1000) + b).astype(np.uint16))
    found = picture_at(compressed("32FC1; compressedDepth png", packed), S)
    assert found.note == "Dark to bright: 1.02 to 2.98 m."


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (Picture(0, memoryview(b""), "jpeg"), "is empty"),
        (Picture(0, memoryview(b"<svg onload=alert(1)>"), "image/svg+xml"), "no browser shows"),
        (Picture(0, memoryview(b"xx"), None, "nonsense", 1, 1), "cannot be shown"),
        (Picture(0, memoryview(b"xx"), None, "rgb8", 10**6, 10**6), "too many"),
        (Picture(0, memoryview(b"xx"), "16UC1; compressedDepth png"), "no PNG"),
    ],
)
def test_what_cannot_be_shown_is_refused_with_the_reason(picture: Picture, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        browser_picture(picture)


def video(codec: str, frames: int = 8, every: int = 4) -> list[bytes]:
    """Encode grey pictures that get brighter, with a key frame at every fourth."""
    av = pytest.importorskip("av")
    if codec not in av.codecs_available:
        pytest.skip(f"this av has no {codec}")
    encoder = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt = 64, 48, "yuv420p"
    encoder.time_base = Fraction(1, 25)
    quiet = "log-level=none:" if codec == "libx265" else ""
    encoder.options = {
        "tune": "zerolatency",
        ("x265-params" if quiet else "x264-params"): f"{quiet}keyint={every}:min-keyint={every}:bframes=0",
    }
    found = []
    for number in range(frames):
        frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 20 + 25 * number, np.uint8), "rgb24")
        frame = frame.reformat(format="yuv420p")
        frame.pts = number
        found += encoder.encode(frame)
    return [bytes(packet) for packet in [*found, *encoder.encode(None)]]


@pytest.mark.parametrize(("kind", "codec"), [("h264", "libx264"), ("h265", "libx265")])
def test_frames_of_a_video_are_decoded_from_the_key_frame_before(kind: str, codec: str) -> None:
    ch = compressed(kind, *video(codec))
    assert picture_sources(ch.log)[0].kind == "video"
    for number in (0, 3, 4, 6):
        found = picture_at(ch, number * S + 1)
        assert pixels(found.data).mean() == pytest.approx(20 + 25 * number, abs=4)
        name, packets = video_packets(ch, number * S, number * S + 1)
        assert (name, [p.time // S for p in packets]) == (kind, list(range(number // 4 * 4, number + 1)))
        assert [p.key for p in packets] == [True] + [False] * (number % 4)


def test_video_without_a_key_frame_is_refused() -> None:
    packets = video("libx264")
    ch = compressed("h264", *packets[1:3])
    with pytest.raises(UnsupportedError, match="no key frame"):
        picture_at(ch, S)


def test_channel_without_pictures_has_none(tmp_path: Path) -> None:
    with logreel.open(drive(1)) as log:
        assert picture_at(log["/imu"], log.end) is None
        with pytest.raises(UnsupportedError, match="has no pictures"):
            video_packets(log["/imu"], 0, 1)


@pytest.mark.parametrize(("what", "given"), [("picture", {"at": 0}), ("video", {"from": 0, "to": S})])
def test_pictures_that_are_asked_for_before_the_log_is_open_wait_for_it(
    what: str, given: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = tmp_path / "x.bag", threading.Event()
    path.write_bytes(drive(1))
    adopt, wait = ViewLog._adopt, ViewLog.open

    def adopt_later(opened: ViewLog, log: logreel.Log) -> None:
        assert asked.wait(60)
        adopt(opened, log)

    def open_when_asked(opened: ViewLog, request: Any = None) -> Any:
        asked.set()
        return wait(opened, request)

    monkeypatch.setattr(ViewLog, "_adopt", adopt_later)
    monkeypatch.setattr(ViewLog, "open", open_when_asked)
    with viewing(path) as page:
        reply = page.get(what, topic="/camera/compressed", **given)
        assert reply.status in (200, 204), reply.body
