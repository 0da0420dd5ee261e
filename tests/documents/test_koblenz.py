"""What the public description of the Koblenz sensor log says, one test for each capability, by its sections."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.formats.koblenz import type_id
from logreel.lenses import lenses
from support.harness.cli_runner import Run
from support.samples.koblenz.builder import Builder
from support.samples.koblenz.drive import drive


def obd(count: int = 3) -> Builder:
    builder = Builder()
    for n in range(count):
        builder.obd(1000.0 * n, 10 + n, 900, 12.5)
    return builder


# Header


def test_the_file_is_recognised_by_its_first_bytes(tmp_path: Path) -> None:
    """Header: magic A4 "VEL", then the version in two numbers."""
    (tmp_path / "any.name").write_bytes(obd().bytes())
    log = logreel.open(tmp_path / "any.name")
    assert (log.format, log.version) == ("koblenz", "1.1")


def test_numbers_are_little_endian_without_padding() -> None:
    """Data types: all numbers little-endian, int four bytes, double eight, strings with their length."""
    payload = struct.pack("<iifiifi", 50, 2000, 0.0, 0, 0, 33.5, 0)
    log = logreel.open(Builder().add("OBDDataM", 1.0, payload).add("OBDDataM", 2.0, payload).bytes())
    assert next(log.messages()).decode()["rpm"] == 2000


# Index


def test_the_index_leads_to_each_second_of_the_log() -> None:
    """Index: an entry for each second, with the place of its first message."""
    builder = obd(4)
    log = logreel.open(builder.bytes())
    assert log.problems == ()
    assert log["OBDDataM"].to_arrow(start="+1s", end="+3s").num_rows == 2


def test_a_log_without_a_valid_index_is_read_all_the_same(tmp_path: Path) -> None:
    """Index: a help for jumping; the messages say themselves where they end."""
    wrong = obd().bytes(index=[0, 1, 2])
    assert len(logreel.open(wrong)["OBDDataM"]) == 3
    logreel.recover(wrong, tmp_path / "new.vel")
    assert logreel.open(tmp_path / "new.vel").problems == ()


# Messages


def test_messages_carry_type_version_and_time() -> None:
    """Message header: size, mark, type, version and time in milliseconds since the program started."""
    log = logreel.open(obd().bytes())
    assert log.epoch == "start"
    assert log["OBDDataM"].times.tolist() == [0, 10**9, 2 * 10**9]


def test_messages_of_unknown_types_are_skipped_and_kept(tmp_path: Path) -> None:
    """Message header: by its size a message of an unknown type is skipped."""
    data = obd(2).add("OtherM", 2500.0, b"anything").obd(3000.0, 13, 900, 1.0).bytes()
    log = logreel.open(data)
    assert len(log["OBDDataM"]) == 3
    assert bytes(next(log.messages(f"0x{type_id('OtherM'):08X}")).data) == b"anything"
    logreel.slice(data, tmp_path / "new.vel")
    assert logreel.open(tmp_path / "new.vel").message_count == 4


def test_messages_of_later_versions_are_read_as_far_as_known() -> None:
    """Message header, version: a later version adds fields behind the known ones."""
    payload = struct.pack("<iifiifi", 50, 2000, 0.0, 0, 0, 33.5, 0) + b"more"
    builder = Builder()
    for n in range(3):
        builder.add("OBDDataM", float(n), payload, version=101)
    found = next(logreel.open(builder.bytes()).messages()).decode()
    assert (found["speed"], found["rest"]) == (50, b"more")


def test_type_numbers_follow_from_class_names() -> None:
    """Message types: a hash of the class name; the six numbers of the description."""
    names = ["OBDDataM", "GPSDataM", "ImageM", "RobotPoseM", "VelodyneRawDataM", "LaserRange2DDataM"]
    assert [type_id(name) for name in names] == [0x14043, 0x14A32, 0x109C9, 0x1E342, 0x3112B, 0x30910]


# End of file


def test_an_end_mark_ends_the_log_whatever_follows() -> None:
    """End of file: a size of FF FF FF FF, in a file that was allocated in advance."""
    log = logreel.open(obd().bytes(tail=b"\xff" * 4 + b"left over" * 100))
    assert (len(log["OBDDataM"]), log.problems) == (3, ())


def test_a_message_that_is_not_complete_ends_the_log() -> None:
    """End of file: fewer bytes are left than the message needs, as after a crash."""
    log = logreel.open(obd().bytes()[:-5])
    assert len(log["OBDDataM"]) == 2
    assert log.problems[0].code == "truncated"


# Message types


def test_speed_and_engine_of_the_car_are_columns() -> None:
    """OBDDataM: speed in km/h, engine in 1/min, throttle."""
    log = logreel.open(drive())
    assert set(log["OBDDataM"]["speed"]) == {3, 4}
    assert {f.name: f.unit for f in log["OBDDataM"].layout.record.visible()}["speed"] == "km/h"


def test_fixes_become_a_track(run: Run, tmp_path: Path) -> None:
    """GPSDataM: position, time and date in UTC, quality."""
    (tmp_path / "a.vel").write_bytes(drive(3.0))
    assert run("convert", tmp_path / "a.vel", tmp_path / "a.gpx").code == 0
    assert "50.36" in (tmp_path / "a.gpx").read_text()
    assert logreel.open(tmp_path / "a.vel").utc_offset is not None


def test_pictures_are_jpeg_files(run: Run, tmp_path: Path) -> None:
    """ImageM: camera, size, and a JPEG."""
    (tmp_path / "a.vel").write_bytes(drive())
    assert run("convert", tmp_path / "a.vel", f"{tmp_path}/a.jpg/").code == 0
    files = list((tmp_path / "a.jpg").rglob("*.jpg"))
    assert files
    assert all(file.read_bytes()[:3] == b"\xff\xd8\xff" for file in files)


def test_poses_are_quaternion_and_acceleration() -> None:
    """RobotPoseM: a quaternion and an acceleration, no position."""
    found = logreel.open(drive())["RobotPoseM"]
    assert np.linalg.norm(found["quaternion"], axis=1) == pytest.approx(1, abs=1e-6)
    assert found["acceleration"].shape[1] == 3


def test_packets_of_the_velodyne_become_points(run: Run, tmp_path: Path) -> None:
    """VelodyneRawDataM: packets of 1206 bytes as the sensor sent them."""
    (tmp_path / "a.vel").write_bytes(drive())
    assert run("convert", tmp_path / "a.vel", f"{tmp_path}/a.ply/", "-t", "VelodyneRawDataM").code == 0
    assert len(list((tmp_path / "a.ply").rglob("*.ply"))) > 1


def test_ranges_of_each_scanner_are_a_channel() -> None:
    """LaserRange2DDataM: type and name of the scanner, then ranges in mm."""
    log = logreel.open(drive())
    assert {"LaserRange2DDataM/front", "LaserRange2DDataM/rear"} <= {*log.channels}
    assert lenses(log["LaserRange2DDataM/front"])
