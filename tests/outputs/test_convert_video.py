"""Videos read by av have the pictures of the log at their times, byte for byte if encoded."""

from __future__ import annotations

import io
import json
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, MissingDependencyError, UsageError
from logreel.outputs.media.pictures import png
from support.harness.cli_runner import Run
from support.oracles.ros1 import channel
from support.samples.grey_jpeg import jpeg
from support.samples.koblenz.drive import drive as tour
from support.samples.rosbag.builder import drive

av = pytest.importorskip("av")

S = 10**9


def grey(level: int, wide: int = 32) -> bytes:
    return jpeg(np.full((16, wide), level, np.uint8))


def compressed(*data: bytes, kind: str = "jpeg") -> logreel.Log:
    return channel("sensor_msgs/CompressedImage", *({"format": kind, "data": d} for d in data)).log


def raw(encoding: str, width: int, height: int, *data: bytes) -> logreel.Log:
    told = {"encoding": encoding, "width": width, "height": height}
    return channel("sensor_msgs/Image", *({**told, "step": len(d) // height, "data": d} for d in data)).log


def at(log: logreel.Log, *times: int) -> logreel.Log:
    log.index.times = lambda channel: np.array(times, np.int64)  # type: ignore[method-assign]
    return log


def packets(path: Path) -> list[tuple[Fraction, bytes, Fraction]]:
    """Seconds, bytes and duration of every packet."""
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        base = stream.time_base
        return [(p.pts * base, bytes(p), p.duration * base) for p in file.demux(stream) if p.size]


def pictures(path: Path) -> list[tuple[float, Any]]:
    with av.open(str(path)) as file:
        return [(frame.time, frame.to_ndarray(format="rgb24")) for frame in file.decode(video=0)]


def test_jpegs_are_not_encoded_again(tmp_path: Path) -> None:
    log = logreel.open(drive(3))
    done = logreel.convert(log, tmp_path / "x.mp4")
    want = [(m.time, bytes(m.decode()["data"])) for m in log.messages("/camera/compressed")]
    found = packets(tmp_path / "x.mp4")
    assert [data for _, data, _ in found] == [data for _, data in want]
    first = want[0][0]
    assert [time for time, _, _ in found] == [
        Fraction((time - first + 500) // 1000, 10**6) for time, _ in want
    ]
    shown = [time for time, _ in pictures(tmp_path / "x.mp4")]
    assert shown == pytest.approx([(time - first) / S for time, _ in want], abs=1e-6)
    assert [one.rows for one in done.channels] == [done.rows] == [len(want)]
    assert (done.skipped, done.notes) == ((), ())
    with av.open(str(tmp_path / "x.mp4")) as file:
        stream = file.streams.video[0]
        assert (stream.codec_context.name, stream.width, stream.height) == ("mjpeg", 128, 96)
        assert stream.frames == len(want)
        assert file.metadata["title"] == "/camera/compressed"
        assert file.metadata["comment"].endswith(f"begins at {first} ns")
        assert file.metadata["creation_time"].startswith("2025-05-17T08:22:20")


def test_only_pictures_of_the_interval_are_in_the_video(tmp_path: Path) -> None:
    log = logreel.open(drive(2))
    times = log["/camera/compressed"].times.tolist()
    done = logreel.convert(log, tmp_path / "x.mp4", start=times[2], end=times[5])
    assert done.rows == len(packets(tmp_path / "x.mp4")) == 3


def test_a_folder_has_a_video_per_channel(tmp_path: Path) -> None:
    log = logreel.open(tour(0.5))
    with pytest.raises(
        UsageError, match=r"2 channels do not fit into one file; write the folder .*x.mp4/, or choose"
    ):
        logreel.convert(log, tmp_path / "x.mp4")
    done = logreel.convert(log, f"{tmp_path}/x.mp4/")
    assert [(one.topic, one.file) for one in done.channels] == [
        ("ImageM/0", "ImageM.0.mp4"),
        ("ImageM/1", "ImageM.1.mp4"),
    ]
    told = json.loads((tmp_path / "x.mp4" / "manifest.json").read_text())["channels"]
    for one in told:
        want = [bytes(m.decode()["data"]) for m in log.messages(one["topic"])]
        assert [data for _, data, _ in packets(tmp_path / "x.mp4" / one["file"])] == want
        assert one["rows"] == len(want) > 1
    logreel.convert(log, tmp_path / "one.mp4", topics="ImageM/1")
    assert len(packets(tmp_path / "one.mp4")) == told[1]["rows"]


def test_broken_pictures_and_others_are_left_out(tmp_path: Path) -> None:
    log = compressed(grey(9)[:-1], grey(1), grey(2, 64), grey(3), b"", png(np.zeros((16, 32), np.uint8)))
    done = logreel.convert(log, tmp_path / "x.mp4")
    assert done.rows == 2
    assert done.skipped == ("4 pictures of '/x' left out: its JPEG is broken or cut off",)
    assert [(time, data) for time, data, _ in packets(tmp_path / "x.mp4")] == [(0, grey(1)), (2, grey(3))]
    log = compressed(grey(1), grey(2, 64))
    (why,) = logreel.convert(log, tmp_path / "y.mp4").skipped
    assert why.endswith("it is mjpeg of 64 × 16 pixels, but the first one is mjpeg of 32 × 16 pixels")


def test_no_valid_picture_leaves_no_file(tmp_path: Path) -> None:
    for name in ("x.mp4", "x.mp4/"):
        with pytest.raises(
            LogError, match="nothing could be written: 1 picture of '/x' left out: it is empty"
        ):
            logreel.convert(compressed(b""), f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []


def test_the_verb_reports_skipped_pictures(tmp_path: Path, run: Run) -> None:
    data = bytearray(drive(2))
    data[data.index(b"\xff\xd8\xff\xe0") + 3] = 0
    (tmp_path / "a.bag").write_bytes(data)
    done = run("convert", tmp_path / "a.bag", tmp_path / "x.mp4", "-t", "/camera/compressed")
    assert done.code == 3
    assert f"wrote 9 pictures of 1 channel to {tmp_path}/x.mp4" in done.err
    assert "1 picture of '/camera/compressed' left out: " in done.err


@pytest.mark.parametrize(
    ("encoding", "pixel", "colour"),
    [
        ("bgr8", bytes([20, 100, 200]), (200, 100, 20)),
        ("rgba8", bytes([20, 100, 200, 7]), (20, 100, 200)),
        ("mono8", bytes([90]), (90, 90, 90)),
        ("yuv422_yuy2", bytes([81, 90, 81, 240]), (254, 0, 0)),
    ],
)
def test_raw_pixels_are_encoded(tmp_path: Path, encoding: str, pixel: bytes, colour: tuple[int, ...]) -> None:
    wide, high = 6 * (encoding[:3] != "yuv") or 12, 5
    data = pixel * (wide * high // (1 + (encoding[:3] == "yuv")))
    log = raw(encoding, wide, high, data, data)
    done = logreel.convert(log, tmp_path / "x.mp4")
    found = pictures(tmp_path / "x.mp4")
    assert done.rows == len(found) == 2
    assert [time for time, _ in found] == [0, 1]
    for _, image in found:
        # Rows come in pairs.
        assert image.shape == (6, wide, 3)
        assert np.abs(image.astype(int) - colour).max() <= 6


def test_png_is_encoded_and_16_bits_are_not(tmp_path: Path) -> None:
    shades = [np.full((4, 6, 3), level, np.uint8) for level in (10, 200)]
    done = logreel.convert(compressed(*map(png, shades), kind="png"), tmp_path / "x.mp4")
    assert done.rows == 2
    assert [round(image.mean() / 10) for _, image in pictures(tmp_path / "x.mp4")] == [1, 20]
    with pytest.raises(LogError, match="no video holds 16 bits of 16UC1"):
        logreel.convert(raw("16UC1", 2, 2, bytes(8)), tmp_path / "y.mp4")
    deep = png(np.zeros((2, 2), np.uint16))
    with pytest.raises(LogError, match="no video holds 16 bits of PNG"):
        logreel.convert(compressed(deep, kind="png"), tmp_path / "y.mp4")


@cache
def stream(codec: str, quiet: str) -> tuple[bytes, ...]:
    """Six pictures as packets, of which the first is a key frame."""
    encoder = av.CodecContext.create(codec, "w")
    encoder.width, encoder.height, encoder.pix_fmt = 64, 48, "yuv420p"
    encoder.time_base, encoder.max_b_frames = Fraction(1, 10), 0
    encoder.options = {"tune": "zerolatency", quiet: "log-level=none"} if quiet else {"tune": "zerolatency"}
    found = []
    for number in range(6):
        frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 30 * number, np.uint8), "rgb24")
        frame = frame.reformat(format="yuv420p")
        frame.pts = number
        found += encoder.encode(frame)
    return tuple(bytes(packet) for packet in [*found, *encoder.encode(None)])


@pytest.mark.parametrize(
    ("kind", "codec", "quiet"), [("h264", "libx264", ""), ("h265", "libx265", "x265-params")]
)
def test_packets_of_a_video_begin_with_a_key_frame(tmp_path: Path, kind: str, codec: str, quiet: str) -> None:
    if codec not in av.codecs_available:
        pytest.skip(f"this av has no {codec}")
    sent = stream(codec, quiet)
    log = compressed(*sent[1:3], *sent, b"none", kind=kind)
    done = logreel.convert(log, tmp_path / "x.mp4")
    assert done.skipped == ("3 pictures of '/x' left out: there is no key frame before it",)
    found = pictures(tmp_path / "x.mp4")
    assert [time for time, _ in found] == [0, 1, 2, 3, 4, 5]
    assert [image.mean() for _, image in found] == pytest.approx([30 * i for i in range(6)], abs=4)


@pytest.mark.parametrize(
    ("times", "shown", "jumps"),
    [
        ((0, S, S, 2 * S), (0, 1, 1.000001, 2), 1),
        ((0, 2 * S, S, 3 * S), (0, 2, 2.000001, 3), 1),
        # A stamp of another day changes the times of no other picture by more than it has to.
        ((0, S, 10**6 * S, 2 * S, 3 * S), (0, 1, 1.000001, 1.000002, 2.000002), 2),
        ((-(1 << 63), 0, (1 << 63) - 1), (0, 0.000001, 0.000002), 2),
        ((-7, 1493), (0, 0.000002), 0),
    ],
)
def test_pictures_with_decreasing_times_are_shown_in_order(
    tmp_path: Path, times: tuple[int, ...], shown: tuple[float, ...], jumps: int
) -> None:
    done = logreel.convert(at(compressed(*map(grey, range(len(times)))), *times), tmp_path / "x.mp4")
    found = packets(tmp_path / "x.mp4")
    assert [float(time) for time, _, _ in found] == list(shown)
    assert [data for _, data, _ in found] == [grey(level) for level in range(len(times))]
    assert sum(int(note.split()[0]) for note in done.notes) == jumps
    assert done.skipped == ()


def test_one_picture_is_shown(tmp_path: Path) -> None:
    logreel.convert(compressed(grey(7)), tmp_path / "x.mp4")
    assert [(time, duration) for time, _, duration in packets(tmp_path / "x.mp4")] == [(0, 1)]
    assert len(pictures(tmp_path / "x.mp4")) == 1


def test_long_logs_have_a_coarser_time_base(tmp_path: Path) -> None:
    log = compressed(grey(1), grey(2), grey(3))
    log.scan.end = 3600 * S
    logreel.convert(at(log, 0, 3_000_000 * 1000, 3599 * S), tmp_path / "x.mp4")
    assert [time for time, _, _ in packets(tmp_path / "x.mp4")] == [0, 3, 3599]
    with av.open(str(tmp_path / "x.mp4")) as file:
        assert file.streams.video[0].time_base == Fraction(1, 90_000)


def test_without_av_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingDependencyError, match=r"this needs av: pip install 'logreel\[video\]'"):
        logreel.convert(compressed(grey(1)), tmp_path / "x.mp4")
    assert list(tmp_path.iterdir()) == []


def test_progress_reaches_its_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    log = compressed(grey(1), b"", grey(2))
    logreel.convert(log, tmp_path / "x.mp4", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3, 3)


@pytest.mark.parametrize("data", [grey(1), png(np.zeros((3, 2), np.uint8))])
def test_damaged_pictures_still_give_a_complete_video(tmp_path: Path, data: bytes) -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        broken = bytearray(data)
        for place in rng.integers(3, len(broken), 2):
            broken[place] = rng.integers(256)
        log = compressed(bytes(broken), data)
        done = logreel.convert(log, tmp_path / "x.mp4", force=True)
        assert done.rows in (1, 2)
        with io.BytesIO((tmp_path / "x.mp4").read_bytes()) as file:
            assert b"moov" in file.read()


@pytest.mark.parametrize(("wide", "high"), [(1, 1), (3, 1), (1, 9)])
def test_odd_sizes_are_padded(tmp_path: Path, wide: int, high: int) -> None:
    logreel.convert(raw("mono8", wide, high, bytes([77]) * wide * high), tmp_path / "x.mp4")
    ((_, image),) = pictures(tmp_path / "x.mp4")
    assert image.shape == (high + high % 2, wide + wide % 2, 3)
    assert np.abs(image.astype(int) - 77).max() <= 3
