"""Pictures as files: encoded ones byte for byte, raw ones as PNG, read back by a small decoder."""

from __future__ import annotations

import json
import random
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UnsupportedError, UsageError
from logreel.lenses import Picture
from logreel.outputs.media.pictures import png, write_picture
from support.builders.sample_logs import tiny
from support.harness.cli_runner import Run
from support.oracles.ros1 import channel, encoded, layout_of, log_of
from support.samples.rosbag.builder import drive

#: Of 128 × 96 pixels.
GREY: bytes = next(logreel.open(drive(1)).messages("/camera/compressed")).decode()["data"]
DOT = png(np.zeros((2, 3), np.uint8))


def pixels(data: bytes) -> np.ndarray:
    """A PNG as [height, width] or [height, width, samples]: no palettes, not interlaced, every filter but Paeth."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, []
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + size : at + 12 + size], "big")
        chunks.append((kind, body))
        at += 12 + size
    assert [chunks[0][0], chunks[-1]] == [b"IHDR", (b"IEND", b"")]
    width, height, bits, colour, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert rest == [0, 0, 0]
    samples = {0: 1, 2: 3, 6: 4}[colour]
    step = samples * bits // 8
    raw = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    lines, before = [], bytes(width * step)
    for y in range(height):
        kind, *line = raw[y * (width * step + 1) : (y + 1) * (width * step + 1)]
        for i in range(len(line)):
            left = line[i - step] if i >= step else 0
            line[i] = (line[i] + (0, left, before[i], (left + before[i]) // 2)[kind]) % 256
        before = bytes(line)
        lines.append(before)
    found = np.frombuffer(b"".join(lines), f">u{bits // 8}")
    return found.reshape((height, width) if samples == 1 else (height, width, samples))


def raw(encoding: str, width: int, height: int, data: bytes, big: bool = False) -> Picture:
    return Picture(0, memoryview(data), None, encoding, width, height, big)


def compressed(*data: bytes, kind: str = "jpeg") -> logreel.Log:
    return channel("sensor_msgs/CompressedImage", *({"format": kind, "data": d} for d in data)).log


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("encoding", "width", "data", "expected"),
    [
        ("mono8", 2, bytes([1, 2, 3, 4]), [[1, 2], [3, 4]]),
        ("8UC1", 2, bytes([1, 2, 3, 4]), [[1, 2], [3, 4]]),
        ("bayer_grbg8", 2, bytes([1, 2, 3, 4]), [[1, 2], [3, 4]]),
        ("mono8", 1, bytes([1, 99, 3, 99]), [[1], [3]]),
        ("mono16", 1, b"\1\2\3\4", [[0x201], [0x403]]),
        ("16UC1", 1, b"\1\2\3\4", [[0x201], [0x403]]),
        ("rgb8", 1, bytes(range(6)), [[[0, 1, 2]], [[3, 4, 5]]]),
        ("bgr8", 1, bytes(range(6)), [[[2, 1, 0]], [[5, 4, 3]]]),
        ("8UC3", 1, bytes(range(6)), [[[2, 1, 0]], [[5, 4, 3]]]),
        ("rgba8", 1, bytes(range(8)), [[[0, 1, 2, 3]], [[4, 5, 6, 7]]]),
        ("bgra8", 1, bytes(range(8)), [[[2, 1, 0, 3]], [[6, 5, 4, 7]]]),
        ("bgr16", 1, bytes(range(12)), [[[0x504, 0x302, 0x100]], [[0xB0A, 0x908, 0x706]]]),
        ("yuv422", 2, bytes([128, 16, 128, 235] * 2), [[[0] * 3, [255] * 3]] * 2),
        ("yuv422_yuy2", 2, bytes([16, 128, 235, 128] * 2), [[[0] * 3, [255] * 3]] * 2),
        # Red as ITU-R BT.601 has it: Y 81, Cb 90, Cr 240.
        ("yuv422_yuy2", 2, bytes([81, 90, 81, 240] * 2), [[[254, 0, 0]] * 2] * 2),
    ],
)
def test_raw_pixels_are_png(encoding: str, width: int, data: bytes, expected: Any) -> None:
    item = write_picture(raw(encoding, width, 2, data))
    assert item.suffix == ".png"
    assert pixels(item.parts[0]).tolist() == expected


def test_bytes_of_either_order_give_the_same_picture() -> None:
    little, big = (write_picture(raw("mono16", 2, 1, struct.pack(f"{o}HH", 1, 515), o == ">")) for o in "<>")
    assert pixels(little.parts[0]).tolist() == pixels(big.parts[0]).tolist() == [[1, 515]]


@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3, 4, 3), (5, 2, 4)])
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, ">u2"])
def test_png_is_without_loss(shape: tuple[int, ...], kind: Any) -> None:
    want = np.random.default_rng(1).integers(0, np.iinfo(kind).max, shape).astype(kind)
    assert np.array_equal(pixels(png(want)), want)


@pytest.mark.parametrize(
    ("picture", "why"),
    [
        (raw("mono8", 5, 1, bytes(4)), "no picture of 5 × 1"),
        (raw("rgb8", 2**32 - 1, 2**32 - 1, bytes(4)), "no picture of"),
        (raw("mono8", 0, 4, bytes(4)), "no picture of 0 × 4"),
        (raw("mono8", 4, 0, bytes(4)), "no picture of 4 × 0"),
        (raw("yuv422", 1, 1, bytes(2)), "no pairs"),
        (raw("32FC1", 1, 1, bytes(4)), "no picture file holds '32FC1'"),
        (raw("8UC2", 1, 1, bytes(4)), "no picture file holds '8UC2'"),
        (raw("x" * 1000, 1, 1, bytes(4)), "no picture file holds 'x{60}'$"),
        (Picture(0, memoryview(b""), "jpeg"), "empty"),
        (Picture(0, memoryview(b"\0\0\0\1\x67"), "h264"), "no picture file holds 'h264'"),
        (Picture(0, memoryview(b"text")), "content of unknown kind"),
        (Picture(0, memoryview(GREY[:-2]), "jpeg"), "JPEG is broken or cut off"),
        (Picture(0, memoryview(b"\xff\xd8" + b"\xff" * 100), "jpeg"), "JPEG is broken"),
        (Picture(0, memoryview(b"\xff\xd8" + b"\xff\xe0\0\2" * 5000), "jpeg"), "JPEG is broken"),
        (Picture(0, memoryview(b"\xff\xd8\xff\xda\0\2\xff\xd9"), "jpeg"), "JPEG is broken"),
        (Picture(0, memoryview(b"\xff\xd8\xff\xe0\0\0"), "jpeg"), "JPEG is broken"),
        (
            Picture(0, memoryview(GREY), width=128, height=97),
            "said to have 128 × 97 pixels, but has 128 × 96",
        ),
        (Picture(0, memoryview(DOT[:-1]), "png"), "PNG is broken or cut off"),
        (Picture(0, memoryview(DOT[:20] + b"\1" + DOT[21:]), "png"), "PNG is broken"),
        (Picture(0, memoryview(DOT[:8] + DOT[33:]), "png"), "PNG is broken"),
        (Picture(0, memoryview(DOT), width=2, height=3), "has 3 × 2"),
        (Picture(0, memoryview(GREY.replace(b"\0\x60\0\x80", b"\0\0\0\x80")), "jpeg"), "no pixels"),
    ],
)
def test_invalid_pictures_raise_an_error(picture: Picture, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        write_picture(picture)


@pytest.mark.parametrize(("data", "suffix"), [(GREY, ".jpg"), (DOT, ".png")])
def test_every_cut_of_an_encoded_picture_is_noticed(data: bytes, suffix: str) -> None:
    assert write_picture(Picture(0, memoryview(data), "what it says")).suffix == suffix
    for size in range(len(data)):
        with pytest.raises(UnsupportedError):
            write_picture(Picture(0, memoryview(data[:size])))


@pytest.mark.parametrize("data", [GREY, DOT])
def test_damaged_pictures_are_refused_or_written_unchanged(data: bytes) -> None:
    rng = random.Random(5)
    for _ in range(500):
        broken = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(3, len(broken))] = rng.choice((0, 1, 0xD8, 0xDA, 0xFF, rng.randrange(256)))
        with suppress(UnsupportedError):
            assert write_picture(Picture(0, memoryview(broken))).parts == [bytes(broken)]


def test_bytes_after_the_end_and_the_right_size_do_no_harm() -> None:
    for data in (GREY + bytes(9), GREY):
        assert write_picture(Picture(0, memoryview(data), width=128, height=96)).parts == [data]


def test_pictures_are_written_byte_for_byte(tmp_path: Path) -> None:
    log = logreel.open(drive(2))
    done = logreel.convert(log, f"{tmp_path}/x.jpg/")
    want = {m.time: bytes(m.decode()["data"]) for m in log.messages("/camera/compressed")}
    assert files(tmp_path / "x.jpg") == sorted(
        [*(f"camera.compressed/{time}.jpg" for time in want), "manifest.json"]
    )
    for time, data in want.items():
        assert (tmp_path / "x.jpg" / "camera.compressed" / f"{time}.jpg").read_bytes() == data
    assert [(one.topic, one.file, one.rows) for one in done.channels] == [
        ("/camera/compressed", "camera.compressed", len(want))
    ]
    assert done.skipped == done.notes == ()
    (told,) = json.loads((tmp_path / "x.jpg" / "manifest.json").read_text())["channels"]
    assert (told["file"], told["rows"]) == ("camera.compressed", len(want))


def test_only_pictures_of_the_interval_are_written(tmp_path: Path) -> None:
    log = logreel.open(drive(2))
    times = log["/camera/compressed"].times.tolist()
    done = logreel.convert(log, f"{tmp_path}/x.jpg/", start=times[2], end=times[5])
    assert [name[-23:-4] for name in files(tmp_path / "x.jpg")[:-1]] == [str(t) for t in times[2:5]]
    assert done.rows == 3
    nothing = logreel.convert(log, f"{tmp_path}/y.jpg/", start=times[-1] + 1)
    assert (nothing.rows, nothing.channels[0].file) == (0, None)
    assert files(tmp_path / "y.jpg") == ["manifest.json"]


def test_equal_times_and_times_before_zero_get_different_names(tmp_path: Path) -> None:
    log = compressed(*[GREY] * 5)
    log["/x"].log.index.times = lambda channel: np.array([7, 7, -3, 7, 8], np.int64)  # type: ignore[method-assign]
    logreel.convert(log, f"{tmp_path}/x.jpg/")
    zeros = "0" * 18
    assert files(tmp_path / "x.jpg" / "x") == [
        f"{zeros}7.jpg",
        f"{zeros}7_000001.jpg",
        f"{zeros}7_000002.jpg",
        f"{zeros}8.jpg",
        f"_{zeros}3.jpg",
    ]


def test_broken_pictures_are_left_out_and_counted(tmp_path: Path) -> None:
    log = compressed(GREY, GREY[:-2], DOT, b"")
    done = logreel.convert(log, f"{tmp_path}/x.jpg/")
    assert done.skipped == ("2 pictures of '/x' left out: its JPEG is broken or cut off",)
    assert files(tmp_path / "x.jpg") == [
        "manifest.json",
        "x/0000000000000000000.jpg",
        "x/0000000002000000000.png",
    ]
    with pytest.raises(LogError, match="nothing could be written: 1 picture of '/x' left out: it is empty"):
        logreel.convert(compressed(b""), f"{tmp_path}/y.jpg/")
    assert not (tmp_path / "y.jpg").exists()


def test_damaged_messages_do_not_stop_the_others(tmp_path: Path) -> None:
    root = layout_of("sensor_msgs/Image").root
    whole = [
        encoded(root, {"height": 1, "width": 1, "encoding": "mono8", "data": bytes([i])}) for i in range(3)
    ]
    log = log_of("sensor_msgs/Image", [whole[0], whole[1][:-1], whole[2]])
    assert logreel.convert(log, f"{tmp_path}/x.jpg/").rows == 2
    assert [p.code for p in log.problems] == ["payload"]
    assert pixels((tmp_path / "x.jpg" / "x" / "0000000002000000000.png").read_bytes()).tolist() == [[2]]


def test_the_verb_reports_skipped_pictures(tmp_path: Path, run: Run) -> None:
    data = bytearray(drive(2))
    at = data.index(b"\xff\xd8\xff\xe0")
    data[at + 3] = 0
    (tmp_path / "a.bag").write_bytes(data)
    done = run("convert", tmp_path / "a.bag", f"{tmp_path}/x.jpg/")
    assert done.code == 3
    assert "wrote 9 pictures of 1 channel" in done.err
    assert "1 picture of '/camera/compressed' left out: " in done.err
    done = run("convert", tmp_path / "a.bag", f"{tmp_path}/x.jpg/", "--force", "-E", "+0.1s")
    assert done.code == 1
    assert "nothing could be written" in done.err
    assert len(files(tmp_path / "x.jpg")) == 10


def test_wrong_options_raise_usage_errors(tmp_path: Path) -> None:
    log = logreel.open(drive(1))
    for name, topics, kind, why in (
        ("x.jpg", None, UsageError, "a folder with a file per picture: write .*x.jpg/"),
        (
            "x.jpg/",
            "/imu",
            LogError,
            "none of the channels chosen holds pictures; these do: '/camera/compressed'",
        ),
    ):
        with pytest.raises(kind, match=why):
            logreel.convert(log, f"{tmp_path}/{name}", topics=topics)
    with pytest.raises(LogError, match=r"the log has no channel that holds pictures$"):
        logreel.convert(tiny(), f"{tmp_path}/x.jpg/")
    assert list(tmp_path.iterdir()) == []


def test_folders_of_pictures_are_replaced_only_with_force(tmp_path: Path) -> None:
    log = logreel.open(drive(1))
    logreel.convert(log, f"{tmp_path}/x.jpg/")
    with pytest.raises(LogError, match="exists already"):
        logreel.convert(log, f"{tmp_path}/x.jpg/")
    logreel.convert(log, f"{tmp_path}/x.jpg/", force=True, end="+0.5s")
    assert len(files(tmp_path / "x.jpg")) == 3 + 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.jpg"]


def test_progress_reaches_its_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    log = compressed(GREY, b"", GREY)
    logreel.convert(log, f"{tmp_path}/x.jpg/", progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3, 3)
