"""Point clouds and scans as PLY, read back by a small reader."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UnsupportedError
from logreel.lenses import Points, lenses
from logreel.log.log import Channel
from logreel.outputs import registry
from logreel.outputs.media.clouds import write_ply
from support.builders.ros1_messages import XYZI, cloud, points
from support.harness.cli_runner import Run
from support.oracles.ros1 import channel
from support.samples.rosbag.builder import drive

CODES = {
    "char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "float": "f", "double": "d",
}  # fmt: skip
NAN = float("nan")


def read(data: bytes) -> tuple[dict[str, tuple[str, list[Any]]], list[str]]:
    """A PLY with nothing but vertices: type and values by property, and the comments."""
    head, _, body = data.partition(b"end_header\n")
    lines = head.decode("ascii").splitlines()
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    comments = [line.removeprefix("comment ") for line in lines if line.startswith("comment ")]
    first = 2 + len(comments)
    assert lines[first].startswith("element vertex ")
    count = int(lines[first].split()[2])
    kinds = [line.split() for line in lines[first + 1 :]]
    assert all(word == "property" for word, _, _ in kinds)
    row = "<" + "".join(CODES[kind] for _, kind, _ in kinds)
    assert len(body) == count * struct.calcsize(row)
    columns = [list(values) for values in zip(*struct.iter_unpack(row, body), strict=True)] or [
        [] for _ in kinds
    ]
    return {name: (kind, values) for (_, kind, name), values in zip(kinds, columns, strict=True)}, comments


def written(fields: dict[str, Any], frame: str = "") -> dict[str, tuple[str, list[Any]]]:
    item = write_ply(Points(5, frame, fields))
    assert item.suffix == ".ply"
    return read(b"".join(item.parts))[0]


def f4(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_every_value_of_a_point_keeps_its_type() -> None:
    kinds = {"i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint"}
    kinds |= {"f4": "float", "f8": "double", "i8": "double", "u8": "double", "?": "uchar"}
    fields = {kind: np.array([1, 0]).astype(kind) for kind in kinds}
    found = written({"intensity": f4(7, 8), "z": f4(5, 6), "x": f4(1, 2), "y": f4(3, 4), **fields})
    assert list(found) == ["x", "y", "z", "intensity", *(k.replace("?", "_") for k in fields)]
    assert [found[axis] for axis in "xyz"] == [("float", [1, 2]), ("float", [3, 4]), ("float", [5, 6])]
    for kind, name in kinds.items():
        assert found[kind.replace("?", "_")] == (name, [1, 0])


def test_coordinates_stay_double_where_the_log_has_doubles() -> None:
    found = written({"x": np.array([5_580_123.456]), "y": np.array([1.0]), "z": np.array([2.0])})
    assert found["x"] == ("double", [5_580_123.456])


def test_big_endian_values_are_converted() -> None:
    found = written({"x": np.array([1.5], ">f4"), "n": np.array([258], ">u2")})
    assert (found["x"], found["n"]) == (("float", [1.5]), ("ushort", [258]))


def test_points_without_coordinates_are_left_out() -> None:
    fields = {"x": f4(1, NAN, 3, 4), "y": f4(1, 2, np.inf, 4), "n": np.arange(4, dtype=np.uint8)}
    item = write_ply(Points(5, "map", fields))
    found, comments = read(b"".join(item.parts))
    assert found["x"] == ("float", [1, 4])
    assert found["z"] == ("float", [0, 0])
    assert found["n"] == ("uchar", [0, 3])
    assert comments[1:] == ["time_ns 5", "frame map", "points without coordinates left out 2"]


def test_a_cloud_without_points_is_a_file_without_points() -> None:
    assert written({"x": f4(), "y": f4(), "z": f4()}) == {axis: ("float", []) for axis in "xyz"}


@pytest.mark.parametrize("kind", ["<f4", ">f4", "<u4", "<i4"])
def test_packed_colours_are_unpacked(kind: str) -> None:
    packed = np.array([0x7F112233, 0x00FF0001], kind[0] + "u4").view(kind)
    found = written({"x": f4(1, 2), "rgb": packed})
    assert list(found) == ["x", "y", "z", "red", "green", "blue"]
    assert [found[name] for name in ("red", "green", "blue")] == [
        ("uchar", [0x11, 0xFF]),
        ("uchar", [0x22, 0]),
        ("uchar", [0x33, 1]),
    ]
    assert written({"x": f4(1, 2), "rgba": packed})["alpha"] == ("uchar", [0x7F, 0])
    assert "rgb" in written({"x": f4(1), "rgb": np.array([1.0])})


def test_several_values_of_a_name_become_separate_properties() -> None:
    found = written({"x": f4(1, 2), "d": np.array([[1, 2, 3], [4, 5, 6]], np.uint8)})
    assert [found[f"d_{i}"][1] for i in range(3)] == [[1, 4], [2, 5], [3, 6]]


def test_names_out_of_a_log_cannot_break_the_header() -> None:
    hostile = ["a b", "a\nelement face 5", "a_b", "", "x y", "\ud800", "日本", "end_header\n"]
    item = write_ply(Points(5, "f\nend_header\n\ud800" + "x" * 500, {n: f4(1) for n in ["x", *hostile]}))
    found, comments = read(b"".join(item.parts))
    assert len(found) == 3 + len(hostile)
    assert all(name.replace("_", "a").isalnum() and name.isascii() for name in found)
    assert comments[2].startswith("frame f?end_header??xxx")
    assert len(comments[2]) < 220


def test_clouds_without_coordinates_or_with_too_many_values_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no coordinates"):
        write_ply(Points(5, "", {"range": f4(1)}))
    with pytest.raises(UnsupportedError, match="no coordinates"):
        write_ply(Points(5, "", {"x": np.zeros((2, 3), np.float32)}))
    with pytest.raises(UnsupportedError, match="more than 4096 values"):
        write_ply(Points(5, "", {"x": f4(), "d": np.zeros((0, 4094), np.uint8)}))


def test_scans_are_clouds(tmp_path: Path) -> None:
    log = logreel.open(drive(1))
    done = logreel.convert(log, f"{tmp_path}/x.ply/")
    scans = list(log.messages("/scan"))
    assert [(one.topic, one.file, one.rows) for one in done.channels] == [("/scan", "scan", len(scans))]
    for message in scans:
        data = message.decode()
        found, _ = read((tmp_path / "x.ply" / "scan" / f"{message.time}.ply").read_bytes())
        assert list(found) == ["x", "y", "z", "range", "angle", "intensity"]
        assert {kind for kind, _ in found.values()} == {"float"}
        seen = [
            (r, data["angle_min"] + i * data["angle_increment"], light)
            for i, (r, light) in enumerate(zip(data["ranges"], data["intensities"], strict=True))
            if data["range_min"] <= r <= data["range_max"]
        ]
        assert 0 < len(seen) < len(data["ranges"])
        want = [(r * np.cos(a), r * np.sin(a), 0, r, a, light) for r, a, light in seen]
        got = np.array([values for _, values in found.values()]).T
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_truncated_clouds_keep_their_complete_points(tmp_path: Path) -> None:
    rows = points((1, 2, 3, 4), (5, 6, 7, 8))
    ch = channel(
        "sensor_msgs/PointCloud2",
        cloud(XYZI, rows, width=2, step=16),
        cloud(XYZI, rows + b"rest", width=2**32 - 1, height=2**32 - 1, step=16, row_step=0),
        cloud([("x", 2**32 - 1, 7, 1), ("y", 13, 7, 2**32 - 1)], rows, width=2, step=16),
        cloud([], b"", width=0, step=0),
    )
    done = logreel.convert(ch.log, f"{tmp_path}/x.ply/")
    files = sorted((tmp_path / "x.ply" / "x").iterdir())
    assert [path.name for path in files] == [f"{i * 10**9:019d}.ply" for i in range(2)]
    for path in files:
        found, _ = read(path.read_bytes())
        assert found["x"] == ("float", [1, 5])
        assert found["i"] == ("ushort", [4, 8])
    lost = (2**32 - 1) ** 2 - 2
    assert done.skipped == (
        "2 clouds of '/x' left out: its points have no coordinates",
        f"1 cloud of '/x' not whole: it lacks {lost} of its points",
    )
    with pytest.raises(LogError, match="nothing could be written"):
        logreel.convert(ch.log, f"{tmp_path}/y.ply/", start=2 * 10**9)


def test_a_lens_may_make_clouds_of_several_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sweeps:
        def clouds(self, ch: Channel, start: int | None = None, end: int | None = None) -> Any:
            times = ch.times.tolist()
            for first in range(0, len(times), 2):
                yield Points(times[first], "lidar", {"x": f4(first)})

    ch = channel("std_msgs/String", *[{"data": "packet"}] * 5)
    assert not lenses(ch)
    monkeypatch.setattr(registry, "lenses", lambda ch: [Sweeps()])
    calls: list[tuple[int, int]] = []
    done = logreel.convert(
        ch.log, f"{tmp_path}/x.ply/", progress=lambda done, total: calls.append((done, total))
    )
    assert done.rows == 3
    assert calls[-1] == (5, 5)


def test_convert_writes_clouds_and_names_channels_with_clouds(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.bag").write_bytes(drive(1))
    done = run("convert", tmp_path / "a.bag", f"{tmp_path}/x.ply/", "-t", "/sc*", "-E", "+0.25s")
    assert done.code == 0
    assert "wrote 3 clouds of 1 channel" in done.err
    assert "no channel that holds points or scans" not in done.err
    done = run("convert", tmp_path / "a.bag", f"{tmp_path}/y.ply/", "-t", "/imu")
    assert done.code == 1
    assert "none of the channels chosen holds points or scans; these do: '/scan'" in done.err


def test_ranges_of_a_real_scanner_match_its_points(shared: Path, tmp_path: Path) -> None:
    path = shared / "data" / "rosbag" / "v12_real_laser_scan_2010.bag"
    if not path.exists():
        pytest.skip("no real scans among the samples")
    log = logreel.open(path)
    done = logreel.convert(log, f"{tmp_path}/x.ply/")
    (one,) = done.channels
    assert (one.rows, done.skipped) == (len(log[one.topic]), ())
    for file in sorted((tmp_path / "x.ply" / str(one.file)).iterdir())[:5]:
        found, _ = read(file.read_bytes())
        np.testing.assert_allclose(np.hypot(found["x"][1], found["y"][1]), found["range"][1], rtol=1e-5)
