"""Rerun recordings, read by Rerun's own reader, have the content of the log."""

from __future__ import annotations

import struct
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import DefinitionError, LogError, MissingDependencyError, UsageError
from logreel.outputs import rerun as scene
from logreel.outputs.media.pictures import png
from logreel.outputs.registry import readers
from support.builders.recordings import Entity, entities, names
from support.builders.sample_logs import short_flight, tiny
from support.harness.cli_runner import Run
from support.oracles.ros1 import channel
from support.samples.carla.drive import drive as ride
from support.samples.koblenz.drive import drive as tour
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder

pytest.importorskip("rerun")

#: Half the digits of a float32.
NEAR = {"rtol": 1e-6, "atol": 1e-6}


def written(log: Any, folder: Path, **options: Any) -> tuple[dict[str, Entity], logreel.Converted]:
    done = logreel.convert(log, folder / "x.rrd", force=True, **options)
    return entities(folder / "x.rrd"), done


def one(
    folder: Path, type: str, *messages: dict[str, Any], **options: Any
) -> tuple[Entity, logreel.Converted]:
    """The entity of the only channel."""
    found, done = written(channel(type, *messages).log, folder, **options)
    return found["/x"], done


@cache
def bag() -> bytes:
    return drive(3)


def first(values: list[list[Any]]) -> list[Any]:
    """Return the only value of each row."""
    assert all(len(row) == 1 for row in values)
    return [row[0] for row in values]


def test_every_number_of_a_flight_is_a_curve(tmp_path: Path) -> None:
    log = logreel.open(short_flight())
    found, done = written(log, tmp_path)
    assert (done.skipped, done.notes) == ((), ())
    assert {c.topic: c.rows for c in done.channels} == {
        ch.topic: len(ch) for ch in log.channels.values() if len(ch) or not ch.reserved
    }
    for topic, field, path in (
        ("vehicle_attitude", "q", "/vehicle_attitude/q"),
        ("battery_status", "voltage_v", "/battery_status/voltage_v"),
        ("sensor_accel[1]", "x", r"/sensor_accel\[1\]/x"),
        ("esc_status", "esc[2].esc_rpm", r"/esc_status/esc\[2\]/esc_rpm"),
    ):
        entity, want = found[path], log[topic][field].astype(np.float64)
        assert (entity.times, entity.wall) == (log[topic].times.tolist(), False)
        assert entity.counts == list(range(len(want)))
        assert entity.values["Scalars:scalars"] == want.reshape(len(want), -1).tolist()
    numbers = [p for p in log["vehicle_attitude"].fields if not p.startswith("_")]
    assert {p for p in found if p.startswith("/vehicle_attitude/")} == {
        f"/vehicle_attitude/{p}" for p in numbers
    }


def test_utc_converts_times(tmp_path: Path) -> None:
    log = logreel.open(short_flight())
    found, _ = written(log, tmp_path, utc=True)
    entity, shift = found["/battery_status/voltage_v"], log.utc_offset
    assert shift is not None
    assert entity.wall
    assert entity.times == (log["battery_status"].times + shift).tolist()
    assert written(bag(), tmp_path)[0]["/gps/fix"].wall


def test_positions_are_points_and_a_track(tmp_path: Path) -> None:
    log = logreel.open(bag())
    found, _ = written(log, tmp_path)
    lat, lon = (log["/gps/fix"][name] for name in ("latitude", "longitude"))
    want = np.stack([lat, lon], 1).tolist()
    assert found["/gps/fix"].times == log["/gps/fix"].times.tolist()
    assert first(found["/gps/fix"].values["GeoPoints:positions"]) == want
    track = found["/gps/fix/track"]
    assert track.static
    assert track.values["GeoLineStrings:line_strings"] == [[want]]


def test_frames_keep_their_names(tmp_path: Path) -> None:
    log = logreel.open(bag())
    found, _ = written(log, tmp_path)
    (lens,) = readers(log["/tf"], "track")
    places = lens(log["/tf"])
    for child in ("odom", "base_footprint"):
        mine = places.child == child
        got = found[f"/tf/{child}"]
        assert got.times == places.time[mine].tolist()
        assert got.counts == list(range(int(mine.sum())))
        assert set(first(got.values["Transform3D:child_frame"])) == {child}
        assert first(got.values["Transform3D:parent_frame"]) == places.frame[mine].tolist()
        np.testing.assert_allclose(
            first(got.values["Transform3D:translation"]), places.position[mine], **NEAR
        )
        np.testing.assert_allclose(first(got.values["Transform3D:quaternion"]), places.rotation[mine], **NEAR)
    odometry = found["/odom"].values
    assert "Transform3D:child_frame" not in odometry
    assert set(first(odometry["Transform3D:parent_frame"])) == {"odom"}
    assert set(first(found["/scan"].values["CoordinateFrame:frame"])) == {"base_scan"}


def test_scans_pictures_and_text_become_archetypes(tmp_path: Path) -> None:
    log = logreel.open(bag())
    found, done = written(log, tmp_path)
    (clouds,) = readers(log["/scan"], "clouds")
    want = [cloud.xyz.astype(np.float32).tolist() for cloud in clouds(log["/scan"])]
    assert found["/scan"].values["Points3D:positions"] == want
    assert "/scan/angle_min" not in found
    pictures = found["/camera/compressed"]
    data = [bytes(m.decode()["data"]) for m in log.messages("/camera/compressed")]
    assert [bytes(blob) for blob in first(pictures.values["EncodedImage:blob"])] == data
    assert set(first(pictures.values["EncodedImage:media_type"])) == {"image/jpeg"}
    assert pictures.times == log["/camera/compressed"].times.tolist()
    (lines,) = readers(log["/rosout"], "lines")
    text = found["/rosout"].values
    assert first(text["TextLog:text"]) == [f"{x.source}: {x.text}" for x in lines(log["/rosout"])]
    assert set(first(text["TextLog:level"])) <= {"INFO", "WARN", "ERROR", "DEBUG"}
    assert done.rows == sum(c.rows for c in done.channels)


def test_actors_are_boxes(tmp_path: Path) -> None:
    log = logreel.open(ride(2).bytes())
    found, _ = written(log, tmp_path)
    (states,) = readers(log["position"], "states")
    want = states(log["position"])
    boxes = found["/position"]
    assert boxes.times == np.unique(want.time).tolist()
    labels = [label for row in boxes.values["Boxes3D:labels"] for label in row]
    assert labels == [f"{i} {m}".rstrip() for i, m in zip(want.id, want.model, strict=True)]
    half = np.concatenate([np.array(row) for row in boxes.values["Boxes3D:half_sizes"]])
    np.testing.assert_allclose(half, np.nan_to_num(want.size) / 2, **NEAR)
    middle = np.concatenate([np.array(row) for row in boxes.values["Boxes3D:centers"]])
    told = ~np.isnan(want.centre).any(1)
    assert told.any()
    # A turn changes no distance.
    away = np.linalg.norm(middle - want.position, axis=1)
    np.testing.assert_allclose(away[told], np.linalg.norm(want.centre[told], axis=1), rtol=1e-3, atol=1e-3)
    assert not away[~told].max(initial=0) > 1e-3


def test_a_log_without_frames_is_placed_by_entity_paths(tmp_path: Path) -> None:
    log = logreel.open(tour(0.5))
    found, done = written(log, tmp_path)
    assert done.skipped == ()
    assert not any("CoordinateFrame:frame" in entity.values for entity in found.values())
    (turns,) = readers(log["VelodyneRawDataM"], "clouds")
    clouds = found["/VelodyneRawDataM"].values["Points3D:positions"]
    assert [len(row) for row in clouds] == [len(cloud.xyz) for cloud in turns(log["VelodyneRawDataM"])]
    assert not found["/VelodyneRawDataM"].wall
    assert {"/ImageM/0", "/ImageM/1", "/LaserRange2DDataM/front", "/GPSDataM"} <= set(found)


def test_raw_pictures_become_images(tmp_path: Path) -> None:
    def image(encoding: str, *data: bytes) -> tuple[Entity, logreel.Converted]:
        told = {"encoding": encoding, "width": 2, "height": 1}
        return one(tmp_path, "sensor_msgs/Image", *({**told, "step": len(d), "data": d} for d in data))

    entity, _ = image("bgr8", bytes([1, 2, 3, 4, 5, 6]), bytes(6))
    assert [bytes(blob) for blob in first(entity.values["Image:buffer"])] == [b"\3\2\1\6\5\4", bytes(6)]
    assert entity.counts == [0, 1]
    kind = first(entity.values["Image:format"])[0]
    assert (kind["width"], kind["height"]) == (2, 1)
    deep, _ = image("mono16", struct.pack("<2H", 513, 7))
    assert bytes(first(deep.values["Image:buffer"])[0]) == struct.pack("<2H", 513, 7)
    assert first(deep.values["Image:format"])[0]["channel_datatype"] != kind["channel_datatype"]
    entity, _ = image("mono8", b"\7\10")
    assert bytes(first(entity.values["Image:buffer"])[0]) == b"\7\10"
    for encoding, data, meter in (("16UC1", "<2H", 1000.0), ("32FC1", "<2f", 1.0)):
        entity, _ = image(encoding, struct.pack(data, 1, 2))
        assert bytes(first(entity.values["DepthImage:buffer"])[0]) == struct.pack(data, 1, 2)
        assert first(entity.values["DepthImage:meter"]) == [meter]
    with pytest.raises(
        LogError, match="nothing could be written: 1 picture of '/x' left out: 3 bytes are no"
    ):
        image("rgb8", b"abc")


def test_video_packets_and_pictures_of_one_channel_are_separated(tmp_path: Path) -> None:
    key, other = b"\0\0\0\1\x65key", b"\0\0\0\1\x41other"
    dot = png(np.zeros((2, 3), np.uint8))
    rows = [("h264", key), ("h264", other), ("png", dot), ("h264", other), ("jpeg", b"\xff\xd8\xff")]
    messages = [{"format": kind, "data": data} for kind, data in rows]
    entity, done = one(tmp_path, "sensor_msgs/CompressedImage", *messages)
    assert [bytes(x[0]) for x in entity.values["VideoStream:sample"] if x] == [key, other, other]
    assert [bytes(x[0]) for x in entity.values["EncodedImage:blob"] if x] == [dot]
    assert sorted(entity.counts) == [0, 1, 2, 3]
    assert done.skipped == ("1 picture of '/x' left out: its JPEG is broken or cut off",)


def test_clouds_keep_their_colours(tmp_path: Path) -> None:
    fields = [
        {"name": n, "offset": 4 * i, "datatype": 7, "count": 1} for i, n in enumerate(("x", "y", "z", "rgb"))
    ]
    colours = struct.unpack("<2f", struct.pack("<2I", 0x0A0B0C, 0x010203))
    data = struct.pack("<12f", 1, 2, 3, colours[0], float("nan"), 0, 0, 0, 4, 5, 6, colours[1])
    told = {"height": 1, "fields": fields, "point_step": 16}
    whole = {**told, "width": 3, "row_step": 48, "data": data}
    lacks = {**told, "width": 9, "row_step": 144, "data": data[:16]}
    entity, done = one(tmp_path, "sensor_msgs/PointCloud2", whole, lacks)
    assert entity.values["Points3D:positions"] == [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3]]]
    assert entity.values["Points3D:colors"] == [[0x0A0B0CFF, 0x010203FF], [0x0A0B0CFF]]
    assert done.skipped == ("1 cloud of '/x' not whole: it lacks 8 of its points",)


def test_pose_arrays_become_points_and_joints_become_scalars(tmp_path: Path) -> None:
    poses = [{"position": {"x": float(i), "y": 0.0, "z": 0.0}} for i in range(3)]
    entity, _ = one(tmp_path, "geometry_msgs/PoseArray", {"poses": poses}, {"poses": poses[:1]})
    assert entity.values["Points3D:positions"] == [[[0, 0, 0], [1, 0, 0], [2, 0, 0]], [[0, 0, 0]]]
    joints = {"name": ["a", "b"], "position": [1.0, 2.0], "velocity": [3.0, 4.0], "effort": []}
    log = channel("sensor_msgs/JointState", joints, joints).log
    found, _ = written(log, tmp_path)
    assert found["/x/b/velocity"].values["Scalars:scalars"] == [[4.0], [4.0]]
    assert not any(path.endswith("effort") for path in found)


def test_an_interval_is_sent_in_several_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene, "ROWS", 7)
    log = logreel.open(bag())
    start, end = log["/odom"].times[[20, 90]].tolist()
    found, _ = written(log, tmp_path, start=start, end=end)
    assert found["/odom"].times == log["/odom"].times[20:90].tolist()
    assert found["/odom"].counts == list(range(70))
    assert found["/odom/header/seq"].times == log["/odom"].times[20:90].tolist()
    for path, entity in found.items():
        if not entity.static:
            assert start <= min(entity.times) <= max(entity.times) < end, path


def test_skipped_content_is_reported(tmp_path: Path) -> None:
    log = channel("std_msgs/String", {"data": "x"}).log
    _, done = written(log, tmp_path)
    assert (done.rows, done.skipped) == (0, ())
    assert done.notes == ("channel '/x' holds nothing that Rerun shows",)
    log = logreel.open(tiny())

    def unknown() -> Any:
        raise DefinitionError("no such type")

    log["pair"]._info = replace(log["pair"]._info, layout=unknown)
    found, done = written(log, tmp_path)
    assert found
    assert not any(path.startswith("/pair") for path in found)
    assert done.skipped == ("channel 'pair' was left out: no such type",)
    with pytest.raises(LogError, match="nothing could be written: channel 'pair' was left out: no such type"):
        logreel.convert(log, tmp_path / "y.rrd", topics="pair")
    assert not (tmp_path / "y.rrd").exists()


def test_unusual_names_and_times_are_written(tmp_path: Path) -> None:
    out = Builder().flags().format("g:uint64_t timestamp;float y;bool[2] on;uint8_t[65] many;")
    out.subscribe("g", 0).data(0, struct.pack("<Qf2?65B", 5, float("nan"), True, False, *bytes(65)))
    log = logreel.open(out.text(6, 9, "hello").bytes())
    log.channels["g"].topic = "//a b/~é[1]/"
    log.index.times = lambda channel: np.array([-(1 << 63)], np.int64)  # type: ignore[method-assign]
    found, _ = written(log, tmp_path)
    assert {path.rpartition("/")[2] for path in found} == {"timestamp", "y", "on", r"\~text", "level", "tag"}
    (y,) = (entity for path, entity in found.items() if path.endswith("/y"))
    assert np.isnan(y.values["Scalars:scalars"][0][0])
    (on,) = (entity for path, entity in found.items() if path.endswith("/on"))
    assert on.values["Scalars:scalars"] == [[1.0, 0.0]]


def test_convert_writes_the_chosen_topics(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.bag").write_bytes(bag())
    done = run("convert", tmp_path / "a.bag", tmp_path / "x.rrd", "-t", "/imu", "-t", "/gps/*")
    assert done.code == 0, done.err
    assert "rows of 2 channels" in done.err
    assert {path.split("/")[1] for path in entities(tmp_path / "x.rrd")} == {"imu", "gps"}
    assert names(tmp_path / "x.rrd")[0] == "logreel"
    assert run("convert", tmp_path / "a.bag", tmp_path / "x.rrd").code == 1
    with pytest.raises(UsageError, match="leave out the slash"):
        logreel.convert(bag(), f"{tmp_path}/y.rrd/")


def test_without_rerun_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingDependencyError, match=r"this needs rerun-sdk: pip install 'logreel\[rerun\]'"):
        logreel.convert(short_flight(), tmp_path / "x.rrd")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_recording_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr("rerun.RecordingStream.flush", full)
    with pytest.raises(LogError, match="Rerun cannot write the recording: disk full"):
        logreel.convert(short_flight(), tmp_path / "x.rrd")
    assert list(tmp_path.iterdir()) == []


def test_progress_reaches_its_end(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    log = logreel.open(bag())
    logreel.convert(log, tmp_path / "x.rrd", progress=lambda done, total: calls.append((done, total)))
    total = sum(len(ch) for ch in log.channels.values() if len(ch))
    assert calls[-1][0] >= total
    assert calls == sorted(calls)


def test_scans_without_valid_ranges_have_no_points(tmp_path: Path) -> None:
    told = {"angle_increment": 0.1, "range_min": 1.0, "range_max": 2.0}
    entity, done = one(tmp_path, "sensor_msgs/LaserScan", {**told, "ranges": []}, {**told, "ranges": [9.0]})
    assert entity.values["Points3D:positions"] == [[], []]
    assert done.rows == 2
