"""Public logs say neither who nor where nor when: identity, time and place, and what the closing list names."""

from __future__ import annotations

import io
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError
from logreel.lenses import Position, lenses
from logreel.ops.edit import coordinates, residue
from logreel.ops.edit.masks import IdentityMask, TimeMask
from logreel.ops.edit.meanings import Cells
from logreel.ops.edit.pictures import without_metadata
from logreel.ops.edit.place_mask import PlaceMask
from support.builders.contents import SAMPLES
from support.builders.hiding_places import (
    CHANNELS,
    COUNT,
    HOST,
    LAT,
    LON,
    PILOT,
    SECRETS,
    START,
    hiding_places,
)
from support.samples.mcap.builder import Builder as McapBuilder
from support.samples.ulog.builder import Builder

ALL = "place,identity,time"
REAL = Path(__file__).parents[4] / "shared" / "data"
UUID = "0006000000003535323734325116003d0021"


def everything(log: logreel.Log) -> dict[str, bytes]:
    """Return all bytes that a log gives: payloads, names, definitions, metadata, attachments, by where they are."""
    found = {}
    for topic, ch in log.channels.items():
        found[f"payloads of {topic}"] = b"\n".join(bytes(message.data) for message in ch)
        found[f"definition of {topic}"] = ch.schema.raw
        found[f"metadata of {topic}"] = repr(dict(ch.metadata)).encode()
        found[f"topic {topic}"] = topic.encode()
    found["metadata"] = repr(dict(log.metadata)).encode()
    found["parameters"] = repr({name: one.value for name, one in log.parameters.items()}).encode()
    for name, one in log.attachments.items():
        found[f"attachment {name}"] = name.encode() + b"\n" + one.read()
    return found


@pytest.fixture(scope="module")
def redacted(tmp_path_factory: pytest.TempPathFactory) -> tuple[logreel.Log, logreel.Log, Any]:
    pytest.importorskip("PIL")
    folder = tmp_path_factory.mktemp("hiding")
    (folder / "a.mcap").write_bytes(hiding_places())
    done = logreel.edit(folder / "a.mcap", folder / "b.mcap", redact=ALL)
    return logreel.open(folder / "a.mcap"), logreel.open(folder / "b.mcap"), done


def hits(data: bytes) -> list[tuple[str, bytes]]:
    return [(kind, one) for kind, some in SECRETS.items() for one in some if one in data]


def test_of_all_hiding_places_none_is_silent(redacted: tuple[logreel.Log, logreel.Log, Any]) -> None:
    old, new, done = redacted
    planted = {where for where, data in everything(old).items() if hits(data) or near(data)}
    assert len(planted) >= 30
    named = {one.where for one in done.may_identify}
    silent = {
        where: hits(data) or near(data)
        for where, data in everything(new).items()
        if (hits(data) or near(data)) and where.partition(" ")[2] not in named and where not in named
    }
    assert not silent
    # Here, all of it is removed.
    assert not named
    assert not any(hits(data) for data in everything(new).values())


def near(data: bytes) -> list[str]:
    """Return how positions next to each other are in bytes, at any offset."""
    found = []
    for kind, unit in (("<f8", 1.0), ("<f8", 180 / np.pi), ("<f4", 1.0), ("<i4", 1e-7)):
        width = int(kind[2])
        for shift in range(min(width, len(data))):
            with np.errstate(all="ignore"):
                values = np.frombuffer(data, kind, (len(data) - shift) // width, shift).astype(np.float64)
                lat, lon = np.abs(values * unit - LAT) < 0.01, np.abs(values * unit - LON) < 0.01
            if (lat[:-1] & lon[1:]).any() or (lon[:-1] & lat[1:]).any():
                found.append(f"{kind} {unit}")
    return found


def test_every_message_is_there_and_can_be_decoded(redacted: tuple[logreel.Log, logreel.Log, Any]) -> None:
    old, new, done = redacted
    assert not done.skipped
    assert len(new.channels) == len(old.channels) == len(CHANNELS) + 2
    for ch in new.channels.values():
        assert len(ch) == COUNT
        assert [bool(message.decode()) for message in ch] == [True] * COUNT
    assert [topic for topic in new.channels if "harmless" in topic] == ["/harmless"]


def test_numbers_that_only_pass_a_latitude_stay(redacted: tuple[logreel.Log, logreel.Log, Any]) -> None:
    old, new, _ = redacted
    mine = [bytes(message.data) for message in new["/harmless"]]
    assert mine == [bytes(message.data) for message in old["/harmless"]]


def test_times_keep_their_distances_in_fields_texts_and_names(
    redacted: tuple[logreel.Log, logreel.Log, Any],
) -> None:
    old, new, _ = redacted
    offset = (new.start or 0) - (old.start or 0)
    assert offset < -300 * 86400 * 10**9
    assert offset % 10**9 == 0
    np.testing.assert_array_equal(new["/fix"].times, old["/fix"].times + offset)
    stamps = [log["/fix"][3].decode()["header"]["stamp"] for log in (old, new)]
    assert stamps[1] - stamps[0] == offset
    moments = [log["/gps_time"]["time_utc_usec"].astype(np.int64) for log in (old, new)]
    np.testing.assert_array_equal(moments[1] - moments[0], offset // 1000)
    np.testing.assert_allclose(new["/unix_time"]["t"] - old["/unix_time"]["t"], offset / 1e9)
    said = str(new["/text_time"][0].decode()["data"])
    moment = np.datetime64((START + offset) // 10**9, "s")
    assert said == f"started {moment}Z, t={(START + offset) // 10**9}.25"
    assert any(str(moment)[:10] in name for name in new.attachments)
    assert {one.time for one in new.attachments.values()} == {START + offset}


def test_pseudonyms_are_equal_for_equal_values_and_new_for_each_output(
    redacted: tuple[logreel.Log, logreel.Log, Any], tmp_path: Path
) -> None:
    _, new, _ = redacted
    who = new["/who"][0].decode()
    assert re.fullmatch(r"person-[a-p]{8}", who["operator"])
    assert (
        new["/text_later"][0].decode()["data"] == f"{who['operator']} says thanks, bye from {who['hostname']}"
    )
    assert f"/{who['hostname']}/state" in new
    assert new.metadata["mission"]["operator"] == who["operator"]
    (tmp_path / "a.mcap").write_bytes(hiding_places())
    logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact="identity")
    assert logreel.open(tmp_path / "b.mcap")["/who"][0].decode()["operator"] != who["operator"]


def test_what_the_remover_misses_the_closing_list_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The detector shares no rules with the masks: without them, it finds what they would have removed."""
    pytest.importorskip("PIL")
    (tmp_path / "a.mcap").write_bytes(hiding_places())
    for mask in (PlaceMask, TimeMask, IdentityMask):
        monkeypatch.setattr(mask, "text", lambda self, text: text)
        monkeypatch.setattr(mask, "numbers", lambda self, values: values)
        monkeypatch.setattr(mask, "mapping", lambda self, entries: entries)
        if mask is not PlaceMask:
            monkeypatch.setattr(mask, "value", lambda self, name, value: value)
        if hasattr(mask, "name"):
            monkeypatch.setattr(mask, "name", lambda self, text: text)
    monkeypatch.setattr(PlaceMask, "rules", lambda self: [])
    monkeypatch.setattr("logreel.ops.edit.masks.without_metadata", lambda data: None)
    done = logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact=ALL)
    named = {one.where for one in done.may_identify}
    channels = {
        topic
        for topic in CHANNELS
        if hits(b"".join(bytes(m.data) for m in logreel.open(tmp_path / "b.mcap")[topic]))
    }
    channels |= {"/array_degrees", "/array_floats", "/array_e7", "/radians", "/odom_utm", "/earth", "/camera"}
    silent = channels - named
    # A name alone looks like any word.
    assert silent <= {"/text_later"}
    assert {
        "topic",
        "attachment photo.jpg",
        "definition of /commented",
        "metadata uuid",
    } <= named


def cdr(value: str) -> bytes:
    raw = value.encode() + b"\0"
    return struct.pack("<I", len(raw)) + raw


def test_aligned_messages_of_ros_2_are_redacted_and_stay_aligned(tmp_path: Path) -> None:
    head, b = b"\0\1\0\0", McapBuilder(profile="ros2")
    b.schema(1, "sensor_msgs/msg/NavSatFix", "ros2msg", b"float64 latitude\nfloat64 longitude\n")
    b.schema(2, "my/msg/Names", "ros2msg", b"string[] names\nfloat64 v\n")
    b.schema(3, "my/msg/Moment", "ros2msg", b"int32 sec\nuint32 nanosec\nstring frame_id\n")
    b.schema(4, "std_msgs/msg/Float64MultiArray", "ros2msg", b"float64[] data\n")
    for n, topic in enumerate(("/fix", "/names", "/moment", "/array"), 1):
        b.channel(n, n, topic, "cdr", {})
    names = struct.pack("<I", 2) + cdr("abc") + cdr(f"Pilot: {PILOT}")
    names += bytes(-len(names) % 8) + struct.pack("<d", 1.5)
    for i in range(10):
        b.message(1, START + i, head + struct.pack("<2d", LAT, LON))
        b.message(2, START + i, head + names)
        b.message(3, START + i, head + struct.pack("<iI", START // 10**9 + i, 5) + cdr("site_47.3977_8.5456"))
        b.message(4, START + i, head + struct.pack("<I4x2d", 2, LAT, LON))
    b.flush().metadata(
        "rosbag2", {"yaml": f"nanoseconds_since_epoch: {START}\npath: a_2021_05_22-19_36_57_0.mcap"}
    )
    (tmp_path / "a.mcap").write_bytes(b.bytes())
    done = logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact=ALL)
    assert not (done.may_identify)
    assert not (done.skipped)
    log = logreel.open(tmp_path / "b.mcap")
    texts = log["/names"][3].decode()
    assert texts["v"] == 1.5
    assert texts["names"][0] == "abc"
    assert re.fullmatch(r"Pilot: person-[a-p]{8}", texts["names"][1])
    assert log["/moment"][3].decode()["sec"] - 3 == (log.start or 0) // 10**9
    assert log["/array"][0].decode()["data"] == pytest.approx([0.01, 0.01])
    assert f"nanoseconds_since_epoch: {log.start}" in log.metadata["rosbag2"]["yaml"]
    assert not any(hits(data) or near(data) for data in everything(log).values())


def test_a_latitude_alone_under_another_name_is_named(tmp_path: Path) -> None:
    b = McapBuilder()
    b.schema(1, "my/Fix", "ros1msg", b"float64 latitude\nfloat64 longitude\n").channel(
        1, 1, "/fix", "ros1", {}
    )
    b.schema(2, "my/Value", "ros1msg", b"float64 v\n").channel(2, 2, "/a", "ros1", {}).channel(
        3, 2, "/volt", "ros1", {}
    )
    for i in range(20):
        b.message(1, START + i, struct.pack("<2d", LAT, LON + i * 1e-6), i)
        b.message(2, START + i, struct.pack("<d", LAT + i * 1e-6), i)
        b.message(3, START + i, struct.pack("<d", 47.4), i)
    (tmp_path / "a.mcap").write_bytes(b.bytes())
    done = logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact="place")
    assert [(one.where, one.count) for one in done.may_identify] == [("/a", 20)]


def test_frames_that_name_places_stay_different_and_match_in_all_messages(
    redacted: tuple[logreel.Log, logreel.Log, Any],
) -> None:
    _, new, _ = redacted
    frames = {topic: new[topic][0].decode()["header"]["frame_id"] for topic in ("/frames", "/frames_mgrs")}
    assert len(set(frames.values())) == 2
    assert all(re.fullmatch(r"place-[a-p]{8}", frame) for frame in frames.values())
    assert f"/{frames['/frames']}/imu" in new


def test_what_should_be_replaced_and_is_still_there_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "a.mcap").write_bytes(hiding_places())
    monkeypatch.setattr("logreel.ops.edit.place_mask.LogMasking.schema", lambda self, topic, schema: schema)
    with pytest.raises(LogError, match="still has what was to be replaced: definition of /commented"):
        logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact="identity")
    assert not (tmp_path / "b.mcap").exists()


def test_all_is_everything_and_several_kinds_stand_behind_commas(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    (tmp_path / "a.mcap").write_bytes(hiding_places())
    done = logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact=["all"])
    kinds = {one.kind for one in done.changes}
    assert {"redact place", "redact identity", "redact time", "redact text", "redact images"} <= kinds
    log = logreel.open(tmp_path / "b.mcap")
    assert log["/text_time"][0].decode()["data"] == "[redacted]"
    assert not any(hits(data) for data in everything(log).values())
    with pytest.raises(logreel.LogError, match="identity, time"):
        logreel.edit(tmp_path / "a.mcap", tmp_path / "c.mcap", redact="identity,names")


def flight() -> bytes:
    """Return a ULog with a serial number, device ids, calibrations of these devices, and the name of its file."""
    b = Builder(start_us=1_000_000).flags().info("sys_uuid", UUID).info("sys_name", "PX4")
    b.info_multiple("boot_console_output", f"PX4GUID: {UUID}\nHW type: V6C002001\n")
    b.parameter("CAL_ACC0_ID", 2_818_058).parameter("EKF2_MAG_DECL", 3.25).parameter("MPC_XY_CRUISE", 5.0)
    b.format("sensor_accel:uint64_t timestamp;uint32_t device_id;float x;")
    b.format(
        "vehicle_gps_position:uint64_t timestamp;uint64_t time_utc_usec;int32_t lat;int32_t lon;int32_t alt;"
    )
    b.subscribe("sensor_accel", 0).subscribe("vehicle_gps_position", 1)
    for i in range(20):
        t = 1_000_000 + i * 1000
        b.data(0, struct.pack("<QIf", t, 2_818_058, 9.8))
        b.data(1, struct.pack("<QQiii", t, START // 1000 + i, round(LAT * 1e7), round(LON * 1e7), 488_000))
    b.text(6, 1_010_000, "[logger] Opened full log file: /fs/microsd/log/2021-05-22/19_36_57.ulg")
    return bytes(b.bytes())


def test_the_serial_number_and_the_devices_of_a_flight_controller_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(flight())
    done = logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact=ALL)
    log, old = logreel.open(tmp_path / "b.ulg"), logreel.open(tmp_path / "a.ulg")
    assert not done.may_identify
    data = (tmp_path / "b.ulg").read_bytes()
    assert UUID.encode() not in data
    assert log.metadata["sys_uuid"].startswith("id-")
    assert log.metadata["sys_uuid"] in log.attachments["boot_console_output.txt"].read().decode()
    device = int(log["sensor_accel"]["device_id"][0])
    assert device != 2_818_058
    assert log.parameters["CAL_ACC0_ID"].value == device
    assert log.parameters["EKF2_MAG_DECL"].value == 0
    assert log.parameters["MPC_XY_CRUISE"].value == 5.0
    # Times since boot say no date; what says one moves.
    np.testing.assert_array_equal(log["sensor_accel"].times, old["sensor_accel"].times)
    moved = int(log["vehicle_gps_position"]["time_utc_usec"][0]) - START // 1000
    assert moved < 0
    assert (log.utc_offset or 0) - (old.utc_offset or 0) == moved * 1000
    assert "2021-05-22" not in log.text[0].text


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_samples_of_all_formats_can_be_redacted_and_read(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_bytes(SAMPLES[suffix]())
    logreel.edit(tmp_path / f"a{suffix}", tmp_path / f"b{suffix}", redact=ALL)
    old, new = logreel.open(tmp_path / f"a{suffix}"), logreel.open(tmp_path / f"b{suffix}")
    assert not [problem for problem in new.problems if problem.lost]
    assert old.duration == new.duration
    if old.epoch == "unix":
        assert old.start != new.start


REAL_LOGS = [
    "ulog/quadrotor_local.ulg",
    "ulog/battery_brownout.ulg",
    "ulog/sample_px4_events.ulg",
    "ulog/sample.ulg",
    "rosbag/v20_real_turtlesim.bag",
    "rosbag/v20_real_cturtle_2010.bag",
    "rosbag/v20_multi_connections.bag",
    "bddf/14_grpc_robot_id.bddf",
    "bddf/03_multi_series.bddf",
    "koblenz/k01_all_six.log",
    "carla/synthetic/syn_0.9.14.log",
]


@pytest.mark.parametrize("name", REAL_LOGS)
def test_a_search_of_all_bytes_of_real_logs_finds_no_residue(name: str, tmp_path: Path) -> None:
    path = REAL / name
    if not path.exists():
        pytest.skip("no real logs in ../shared/data")
    old = logreel.open(path)
    out = tmp_path / f"b{path.suffix}"
    logreel.edit(path, out, redact="all")
    new = logreel.open(out)
    texts = everything(new)
    for secret in secrets_of(old):
        where = [key for key, data in texts.items() if secret in data]
        assert not where, secret
    places = [p for ch in old.channels.values() for p in fixes(ch)]
    for lat, lon in places[:: max(1, len(places) // 10)]:
        packed = [
            struct.pack("<2d", lat, lon),
            struct.pack("<2i", round(lat * 1e7), round(lon * 1e7)),
            struct.pack("<i", round(lat * 1e7)),
            struct.pack("<d", lat),
            f"{lat:.5f}".encode(),
        ]
        assert not [key for key, data in texts.items() for one in packed if one in data]


def fixes(ch: logreel.Channel) -> list[tuple[float, float]]:
    for lens in lenses(ch):
        if isinstance(lens, Position) and len(ch):
            one = lens.fixes(ch)
            one = one.take(one.valid)
            return [
                p for p in zip(one.latitude.tolist(), one.longitude.tolist(), strict=True) if abs(p[0]) > 1
            ]
    return []


def secrets_of(log: logreel.Log) -> set[bytes]:
    found = {str(log.metadata[name]).encode() for name in ("sys_uuid",) if name in log.metadata}
    for ch in log.channels.values():
        found |= {str(one).encode() for one in ch.metadata.get("callerids", ()) if len(str(one)) > 5}
    if log.epoch == "unix" and log.start is not None and log.start > 10**17:
        day = np.datetime64(log.start, "ns").astype("datetime64[D]")
        found |= {str(day).encode(), str(day).replace("-", "_").encode(), str(log.start // 10**9).encode()}
    return found


# ------------------------------------------------------------------------------------------- coordinates

#: Latitude, longitude, zone, easting, northing, MGRS to 1 m, plus code: by pyproj, mgrs and openlocationcode.
KNOWN = [
    (47.397742, 8.545594, 32, 465710.759, 5249465.364, "32TMT6571049465", "8FVC9GXW+36"),
    (-33.8568, 151.2153, 56, 334900.570, 6252288.753, "56HLH3490052288", "4RRH46V8+74"),
    (60.39, 5.32, 32, 297270.0, 6700554.0, None, None),
]


@pytest.mark.parametrize(("lat", "lon", "zone", "east", "north", "grid", "code"), KNOWN)
def test_coordinates_are_those_of_other_libraries(
    lat: float, lon: float, zone: int, east: float, north: float, grid: str | None, code: str | None
) -> None:
    assert coordinates.zone_of(lat, lon) == zone
    x, y = coordinates.utm_of(lat, lon, zone)
    assert (float(x), float(y)) == pytest.approx((east, north), abs=0.01 if grid else 300)
    back = coordinates.degrees_of_utm(x, y, zone, lat < 0)
    assert [float(one) for one in back] == pytest.approx([lat, lon], abs=1e-7)
    assert [
        float(o) for o in coordinates.degrees_of_ecef(*coordinates.ecef_of(lat, lon, 100.0))
    ] == pytest.approx([lat, lon, 100])
    if grid and code:
        assert coordinates.mgrs_of(lat, lon) == grid
        assert coordinates.degrees_of_mgrs(grid) == pytest.approx((lat, lon), abs=2e-5)
        assert coordinates.plus_code_of(lat, lon) == code
        assert coordinates.degrees_of_plus_code(code) == pytest.approx((lat, lon), abs=2e-4)


def test_the_equator_at_greenwich_and_the_pole_are_where_the_ellipsoid_says() -> None:
    assert [float(o) for o in coordinates.ecef_of(0, 0)] == pytest.approx([6378137.0, 0, 0])
    assert [float(o) for o in coordinates.ecef_of(90, 0)] == pytest.approx([0, 0, 6356752.3142], abs=1e-3)
    assert [float(o) for o in coordinates.utm_of(0, 3, 31)] == pytest.approx([500000, 0], abs=1e-6)
    assert coordinates.degrees_of_geohash("u4pruydqqvj") == pytest.approx((57.64911, 10.40744), abs=1e-5)
    assert coordinates.degrees_of_mgrs("no grid") is None
    assert coordinates.degrees_of_plus_code("AAAA+BB") is None


def test_coordinates_agree_with_pyproj() -> None:
    pyproj = pytest.importorskip("pyproj")
    rng = np.random.default_rng(1)
    lat, lon = rng.uniform(-79, 83, 50), rng.uniform(-179, 179, 50)
    to_earth = pyproj.Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)
    np.testing.assert_allclose(
        coordinates.ecef_of(lat, lon, 50.0), to_earth.transform(lon, lat, 50 + 0 * lat), atol=1e-6
    )
    for one, other in zip(lat.tolist(), lon.tolist(), strict=True):
        zone = coordinates.zone_of(one, other)
        crs = f"EPSG:{32700 if one < 0 else 32600}"[:-2] + f"{zone:02d}"
        due = pyproj.Transformer.from_crs("EPSG:4326", crs, always_xy=True).transform(other, one)
        np.testing.assert_allclose([float(o) for o in coordinates.utm_of(one, other, zone)], due, atol=1e-2)


# ------------------------------------------------------------------------------------------------- masks


def place_mask() -> PlaceMask:
    mask = PlaceMask(Cells())
    mask.add(LAT, LON)
    return mask


@pytest.mark.parametrize(
    "text",
    [
        "47°23'51.9\"N 8°32'44.1\"E",
        "N 47° 23.865' E 8° 32.736'",
        "47 23 51.9 N, 8 32 44.1 E",
        "47.3977° N, 8.5456° E",
        "32T 465711 5249465",
        "zone 32T E 465711 N 5249465",
        "32TMT6571049465",
        "32T MT 65710 49465",
        "8FVC9GXW+36",
        "geo:47.39774,8.54559",
        "u0qjdkqxy",
        "465710.76, 5249465.36",
        "4277551.17 642764.68 4672168.69",
        "0.827247, 0.149149",
        "$GPGGA,193657.00,4723.86452,N,00832.73564,E,1,08,1.0,488.0,M,47.0,M,,*5B",
    ],
)
def test_a_place_in_a_text_is_hidden(text: str) -> None:
    new = place_mask().text(f"here: {text} ok".encode()).decode()
    digits = [one for one in re.findall(r"\d{4,}", text) if one in new and one not in ("193657", "488.0")]
    assert new.startswith("here: ")
    assert not digits or "GGA" in text
    assert new != f"here: {text} ok"
    assert "23" not in re.sub(r"GGA.*", "", new)


@pytest.mark.parametrize(
    "text", ["battery 15.25 V, 12.5 A", "IMU 32T ok", "commit 5249465", "C++ 8+2", "took 12 s", "v1.15.0"]
)
def test_a_text_without_a_place_stays(text: str) -> None:
    assert place_mask().text(text.encode()) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "2021-05-22 19:36:57",
        "20210522_193657",
        "22.05.2021",
        "May 22, 2021",
        "Sat May 22 19:36:57 2021",
        "log/2021-5-22/19_36_57.ulg",
        "1621712217123456789",
        "$GPRMC,193657.00,A,,,,,0.1,0.0,220521,,,A*7C",
        "$GPZDA,193657.00,22,05,2021,00,00*6A",
    ],
)
def test_a_time_in_a_text_moves_and_keeps_its_form(text: str) -> None:
    mask = TimeMask(-400 * 86400 * 10**9 - 3_605 * 10**9, START, START + 10**10)
    new = mask.text(text.encode()).decode()
    assert new != text
    assert re.sub(r"[A-Z]?[a-z]{2,}|\d|\*..", "", new) == re.sub(r"[A-Z]?[a-z]{2,}|\d|\*..", "", text)
    back = TimeMask(-mask.offset, START, START)
    if "19" in text and "GP" not in text and not text.isdigit():
        assert back.text(new.encode()).decode() == text


@pytest.mark.parametrize(
    "text", ["v1.16.0", "1.2.3", "12:34", "0.25 s", "3 of 97", "build 9.3.1", "00:01:30", "12345678"]
)
def test_a_text_without_a_time_stays(text: str) -> None:
    mask = TimeMask(-400 * 86400 * 10**9, START, START + 10**10)
    assert mask.text(text.encode()) == text.encode()


def test_names_that_are_learned_are_replaced_everywhere_and_words_stay() -> None:
    mask = IdentityMask()
    mask.learn_from(f"Pilot: {PILOT}, host={HOST}".encode())
    new = mask.text(f"{PILOT} on {HOST}; pilots and hosts, version 1.16.0.3, 127.0.0.1".encode()).decode()
    assert re.fullmatch(
        r"person-\w{8} on host-\w{8}; pilots and hosts, version 1\.16\.0\.3, 127\.0\.0\.1", new
    )
    assert mask.text(new.encode()) == new.encode()


def test_pictures_lose_their_details_and_keep_their_pixels() -> None:
    pillow = pytest.importorskip("PIL.Image")
    from PIL import PngImagePlugin

    picture = pillow.effect_noise((40, 30), 50).convert("RGB")
    exif = pillow.Exif()
    exif[0x010F] = "Maker"
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Author", PILOT)
    for kind, more in (
        ("JPEG", {"exif": exif, "comment": b"by me"}),
        ("PNG", {"exif": exif, "pnginfo": notes}),
        ("WEBP", {"exif": exif}),
    ):
        out = io.BytesIO()
        picture.save(out, kind, **more)
        bare = without_metadata(out.getvalue())
        assert bare is not None
        assert b"Maker" not in bare
        assert PILOT.encode() not in bare
        assert pillow.open(io.BytesIO(bare)).tobytes() == pillow.open(out).tobytes()
        assert without_metadata(bare) == bare
    assert without_metadata(b"no picture") is None
    for cut in range(0, 400, 7):
        without_metadata(out.getvalue()[:cut])


def test_the_detector_finds_numbers_at_any_byte() -> None:
    facts = residue.SourceFacts(np.array([[47.4, 8.55]]), START // 10**9, START // 10**9 + 10)
    for shift in range(8):
        raw = np.frombuffer(b"\x01" * shift + struct.pack("<2d", 8.5456, 47.3977) + b"\x02" * 5, np.uint8)
        assert sum(residue.numbers_like(raw, facts).values()) == 1
    assert not residue.numbers_like(np.frombuffer(struct.pack("<4d", 47.4, 1, 8.55, 3), np.uint8), facts)


@pytest.mark.parametrize(
    ("text", "is_reported"),
    [
        ("f Yaw d:deg B:9.999999974752427e-07", False),
        ("1.2345678901234567e+16", False),
        ("serial 9999999747524270e1", True),
        ("v1.9999999747524270e1", True),
        ("1.99999997475242e7-07", True),
        ("9999999974752427e-07", True),
        ("deadbeefdeadbeef", True),
        ("0a1b2c3d-0000-4000-8000-0123456789ab", True),
    ],
)
def test_decimals_of_small_numbers_are_no_serial_number(tmp_path: Path, text: str, is_reported: bool) -> None:
    """Such as a factor of a unit that a definition states."""
    (tmp_path / "a.ulg").write_bytes(
        bytes(Builder(start_us=1_000_000).flags().text(6, 1_010_000, text).bytes())
    )
    facts = residue.SourceFacts(np.zeros((0, 2)), None, None)
    findings = residue.Search.of(facts, ()).run(logreel.open(tmp_path / "a.ulg"))
    assert any("serial" in item.what for item in findings) == is_reported
