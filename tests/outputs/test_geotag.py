"""Positions of a log as GPS tags of pictures: read back with a naive reader, and with Pillow where it is installed."""

from __future__ import annotations

import contextlib
import io
import json
import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import LogError
from logreel.outputs.media.geotag import GpsPlace, geotag, time_taken, with_place
from support.builders.ulog_camera import BOOT_US, PICTURE, POSITION, camera_log, shots
from support.harness.cli_runner import Run
from support.samples.ulog.builder import Builder


def tiff_of(picture: bytes) -> bytes:
    at = picture.index(b"Exif\0\0")
    return picture[at + 6 : at - 2 + struct.unpack_from(">H", picture, at - 2)[0]]


def gps_of(picture: bytes) -> dict[int, Any]:
    """A naive reader of GPS tags: texts, bytes, and rational numbers as floats."""
    tiff = tiff_of(picture)
    order = "<" if tiff[:2] == b"II" else ">"

    def read(what: str, at: int) -> Any:
        return struct.unpack_from(order + what, tiff, at)[0]

    def directory(at: int) -> dict[int, tuple[int, int, int]]:
        rows = [at + 2 + 12 * n for n in range(read("H", at))]
        tags = [read("H", row) for row in rows]
        assert tags == sorted(set(tags))
        return {read("H", row): (read("H", row + 2), read("I", row + 4), row + 8) for row in rows}

    found: dict[int, Any] = {}
    for tag, (kind, count, at) in directory(read("I", directory(read("I", 4))[0x8825][2])).items():
        size = {1: 1, 2: 1, 5: 8}[kind] * count
        place = at if size <= 4 else read("I", at)
        if kind == 5:
            found[tag] = [read("I", place + 8 * n) / read("I", place + 8 * n + 4) for n in range(count)]
        else:
            found[tag] = tiff[place : place + size]
    return found


def degrees(gps: dict[int, Any]) -> tuple[float, float]:
    lat, lon = (sum(part / 60**n for n, part in enumerate(gps[tag])) for tag in (2, 4))
    return (-lat if gps[1] == b"S\0" else lat), (-lon if gps[3] == b"W\0" else lon)


def exif_with_time(text: bytes, part: bytes = b"", order: str = "<") -> bytes:
    """An EXIF segment with the time of a picture, and a tag of the maker that points into the block."""
    begin = b"II*\0" if order == "<" else b"MM\0*"
    head = begin + struct.pack(order + "I", 8)
    ifd0 = struct.pack(order + "HHHII", 1, 0x8769, 4, 1, 26) + struct.pack(order + "I", 0)
    inner = struct.pack(order + "HHHII", 2, 0x9003, 2, 20, 56)
    inner += struct.pack(order + "HHI4s", 0x9291, 2, len(part) + 1, part.ljust(4, b"\0")) + struct.pack(
        order + "I", 0
    )
    block = b"Exif\0\0" + head + ifd0 + inner + text + b"\0" + b"maker"
    return b"\xff\xe1" + struct.pack(">H", len(block) + 2) + block


def picture_at(text: str, part: str = "", order: str = "<") -> bytes:
    return PICTURE[:2] + exif_with_time(text.encode(), part.encode(), order) + PICTURE[2:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five pictures, named so that the order of text is another one than that of numbers."""
    found = tmp_path / "DCIM"
    found.mkdir()
    for n in range(5):
        (found / f"IMG_{8 + n}.JPG").write_bytes(PICTURE + bytes([n]))
    return found


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    "place",
    [
        GpsPlace(-33.856784, 151.215297, 12.345, 1_700_000_000_123_000_000),
        GpsPlace(0.0000001, -179.9999999, -3.5),
        GpsPlace(89.9999999999, 0.0),
    ],
)
def test_tags_are_added_and_nothing_else_changes(place: GpsPlace, order: str) -> None:
    before = picture_at("2023:11:14 22:13:20", "5", order)
    after = with_place(before, place)
    gps = gps_of(after)
    assert degrees(gps) == pytest.approx(place[:2], abs=1e-8)
    assert (6 in gps) == (place.altitude is not None)
    if place.altitude is not None:
        assert gps[6] == [pytest.approx(abs(place.altitude), abs=5e-4)]
        assert gps[5] == (b"\1" if place.altitude < 0 else b"\0")
    if place.time is not None:
        assert (gps[7], gps[29]) == ([22.0, 13.0, pytest.approx(20.123)], b"2023:11:14\0")
    assert after.endswith(PICTURE[2:])
    # All earlier data keep their places, so that pointers of makers stay right.
    assert tiff_of(after)[8:].startswith(tiff_of(before)[8:])
    assert time_taken(after) == time_taken(before) == 1_700_000_000_500_000_000
    again = with_place(after, GpsPlace(1.0, 2.0))
    assert degrees(gps_of(again)) == pytest.approx((1.0, 2.0))
    assert again.count(b"Exif") == 1


def test_pillow_reads_the_tags_and_the_same_pixels() -> None:
    image = pytest.importorskip("PIL.Image")
    out = io.BytesIO()
    made = image.effect_noise((40, 30), 50)
    exif = made.getexif()
    exif[0x010F] = "Maker"
    made.save(out, "JPEG", exif=exif)
    tagged = image.open(io.BytesIO(with_place(out.getvalue(), GpsPlace(-33.5, 151.25, 50.5, 10**18))))
    assert tagged.getexif()[0x010F] == "Maker"
    gps = tagged.getexif().get_ifd(0x8825)
    assert (gps[1], gps[3]) == ("S", "E")
    assert [float(part) for part in gps[2]] == [33.0, 30.0, 0.0]
    assert [float(part) for part in gps[4]] == [151.0, 15.0, 0.0]
    assert float(gps[6]) == 50.5
    assert tagged.tobytes() == image.open(io.BytesIO(out.getvalue())).tobytes()


@pytest.mark.parametrize(
    "bad",
    [
        b"", b"\x89PNG", PICTURE[:2] + b"\xff\xe1\0\x0aExif\0\0II" + PICTURE[2:],
        PICTURE[:2] + b"\xff\xe1\0\x10Exif\0\0II*\0\xff\xff\xff\xff" + PICTURE[2:],
        PICTURE[:2] + b"\xff\xe1\0\x12Exif\0\0II*\0\x08\0\0\0\xff\xff" + PICTURE[2:],
        PICTURE[:2] + b"\xff\xe1\xff\xff" + b"Exif\0\0MM\0*\0\0\0\x08".ljust(0xFFFD, b"\0") + PICTURE[2:],
    ],
)  # fmt: skip
def test_what_cannot_be_tagged_is_refused(bad: bytes) -> None:
    with pytest.raises(LogError):
        with_place(bad, GpsPlace(1.0, 2.0))


def test_every_cut_or_changed_picture_gives_an_error_or_a_picture() -> None:
    whole = picture_at("2023:11:14 22:13:20", "123")
    for n in range(len(whole)):
        for changed in (whole[:n], whole[:n] + bytes([whole[n] ^ 0xFF]) + whole[n + 1 :]):
            for function in (time_taken, lambda picture: with_place(picture, GpsPlace(1.0, 2.0))):
                with contextlib.suppress(LogError):
                    function(changed)


def test_pictures_are_matched_by_their_order(folder: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(camera_log(shots()))
    done = run("geotag", path, "--pictures", folder, "-o", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["topic"] == "camera_capture"
    for n, (shot, one) in enumerate(zip(shots(), answer["pictures"], strict=True)):
        assert (one["name"], one["number"]) == (f"IMG_{8 + n}.JPG", shot.number)
        tagged = (tmp_path / "out" / one["name"]).read_bytes()
        assert degrees(gps_of(tagged)) == pytest.approx((shot.latitude, shot.longitude), abs=1e-8)
        assert gps_of(tagged)[6] == [shot.altitude]
        assert tagged.endswith(PICTURE[2:] + bytes([n]))
        assert (folder / one["name"]).read_bytes() == PICTURE + bytes([n])
    again = run("geotag", path, "--pictures", folder, "-o", tmp_path / "out")
    assert again.code == 1
    assert run("geotag", path, "--pictures", folder, "-o", tmp_path / "out", "--force").code == 0
    assert run("geotag", path, "--pictures", folder, "-o", folder).code == 2
    assert (folder / "IMG_8.JPG").read_bytes() == PICTURE + b"\0"


def test_different_counts_are_reported(folder: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(camera_log(shots(3)))
    done = run("geotag", path, "--pictures", folder, "-o", tmp_path / "out")
    assert done.code == 3
    assert "5 pictures, but 3 positions of 'camera_capture', and 2 more like this" in done.err
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["IMG_10.JPG", "IMG_8.JPG", "IMG_9.JPG"]


def positions(path: Path) -> logreel.Log:
    """A bag with a position per second, east along the equator; the times are UTC."""
    schema = logreel.Schema("x/Fix", "ros1msg", "float64 latitude\nfloat64 longitude\nfloat64 altitude\n")
    with logreel.create(path) as w:
        ch = w.add_channel("/fix", schema)
        for n in range(10):
            w.write(
                ch, (1_700_000_000 + n) * 10**9, {"latitude": 1.0, "longitude": 10.0 + n, "altitude": 5.0 * n}
            )
    return logreel.open(path)


def test_pictures_are_matched_by_their_time_between_two_positions(tmp_path: Path) -> None:
    log, folder = positions(tmp_path / "a.bag"), tmp_path / "in"
    folder.mkdir()
    for name, text, part in (
        ("a", "2023:11:14 22:13:23", "25"), ("b", "2023:11:14 22:13:29", ""), ("c", "2023:11:14 22:14:00", "")
    ):  # fmt: skip
        (folder / f"{name}.jpg").write_bytes(picture_at(text, part))
    (folder / "d.jpeg").write_bytes(PICTURE)
    (folder / "e.txt").write_text("no picture")
    done = geotag(log, folder, tmp_path / "out")
    assert [(one["name"], one["longitude"], one["altitude"]) for one in done.pictures] == [
        ("a.jpg", 13.25, 16.25), ("b.jpg", 19.0, 45.0)
    ]  # fmt: skip
    assert done.skipped == [
        "c.jpg was left out: no position within 1 s of its time", "d.jpeg was left out: it has no EXIF time"
    ]  # fmt: skip
    moved = geotag(log, folder, tmp_path / "moved", offset="-35s", tolerance="0.5s")
    assert [(one["name"], one["longitude"]) for one in moved.pictures] == [("c.jpg", 15.0)]
    ordered = geotag(log, folder, tmp_path / "ordered", by="order")
    assert [one["longitude"] for one in ordered.pictures] == [10.0, 11.0, 12.0, 13.0]


def test_wrong_input_is_refused(tmp_path: Path, folder: Path, run: Run) -> None:
    path = tmp_path / "a.ulg"
    path.write_bytes(camera_log(shots()))
    for args, code in (
        (["--pictures", tmp_path], 2),
        (["--pictures", tmp_path / "none"], 2),
        (["--pictures", folder, "--by", "size"], 2),
        (["--pictures", folder, "--positions", "nothing"], 2),
        (["--pictures", folder, "--by", "time"], 1),
    ):
        assert run("geotag", path, "-o", tmp_path / "out", *args).code == code, args
    b = Builder(start_us=1).flags().format(POSITION).subscribe("vehicle_global_position", 0)
    b.data(0, struct.pack("<Qddf", BOOT_US, float("nan"), 0.0, 0.0))
    with pytest.raises(LogError, match="no valid positions"):
        geotag(logreel.open(bytes(b.bytes())), folder, tmp_path / "out")
