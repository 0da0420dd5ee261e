"""Accuracy, velocity and heading of positions, and what other tools get of them."""

from __future__ import annotations

import json
import math
import struct
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.lenses import Position, lenses
from logreel.lenses.position import DIAGONAL, UNKNOWN, Quality
from support.builders.recordings import entities
from support.samples.koblenz.drive import drive as koblenz
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder

NAN = float("nan")
#: eph, epv, hdop, north, east, down, whether the velocity is known, heading in rad.
ROWS = (
    (0.5, 0.8, 0.7, 3.0, 4.0, -1.0, True, 0.0),
    (2.0, 3.0, 0.0, 0.0, 0.0, 0.0, True, NAN),
    (NAN, 3.0, 0.9, -1.0, 0.0, 0.5, False, math.pi / 2),
)


def receiver() -> bytes:
    """Return a ULog of a GPS receiver, as PX4 since 2023 logs it."""
    out = Builder(1).flags()
    out.format(
        "sensor_gps:uint64_t timestamp;double latitude_deg;double longitude_deg;double altitude_msl_m;float eph;"
        "float epv;float hdop;"
        "float vdop;float vel_n_m_s;float vel_e_m_s;float vel_d_m_s;bool vel_ned_valid;float heading;"
        "uint8_t fix_type;"
    )
    out.subscribe("sensor_gps", 0)
    for n, (eph, epv, hdop, north, east, down, known, heading) in enumerate(ROWS):
        row = (
            n * 10**6,
            47.0 + n * 1e-5,
            8.0,
            400.0,
            eph,
            epv,
            hdop,
            1.1,
            north,
            east,
            down,
            known,
            heading,
            3,
        )
        out.data(0, struct.pack("<Q3d7f?fB", *row))
    return out.bytes()


def quality_of(log: logreel.Log, topic: str) -> Quality:
    (lens,) = (one for one in lenses(log[topic]) if isinstance(one, Position))
    found = lens.fixes(log[topic], quality=True).quality
    assert lens.fixes(log[topic]).quality is None
    assert found is not None
    return found


def test_receiver_of_a_flight_controller() -> None:
    found = quality_of(logreel.open(receiver()), "sensor_gps")
    assert found.kind.tolist() == [DIAGONAL, DIAGONAL, UNKNOWN]
    np.testing.assert_allclose(found.covariance[0], [0.25, 0, 0, 0, 0.25, 0, 0, 0, 0.64], rtol=1e-6)
    assert np.isnan(found.covariance[2]).all()
    np.testing.assert_allclose(found.accuracy, [0.5, 2, NAN])
    # East, north, up.
    np.testing.assert_allclose(found.velocity, [[4, 3, 1], [0, 0, 0], [NAN] * 3])
    np.testing.assert_allclose(found.speed, [5, 0, NAN])
    np.testing.assert_allclose(found.course, [math.degrees(math.atan2(4, 3)), NAN, NAN])
    np.testing.assert_allclose(found.heading, [0, NAN, math.pi / 2], rtol=1e-6)
    np.testing.assert_allclose(found.hdop, [0.7, NAN, 0.9], rtol=1e-6)


def test_covariance_of_ros_is_taken_with_its_kind() -> None:
    log = logreel.open(drive(3))
    found = quality_of(log, "/gps/fix")
    for n, message in enumerate(log["/gps/fix"]):
        one = message.decode()
        assert found.kind[n] == one["position_covariance_type"]
        assert found.covariance[n].tolist() == list(one["position_covariance"])


def test_speed_and_course_of_nmea_are_a_velocity() -> None:
    log = logreel.open(koblenz(2.0, packets=2))
    found = quality_of(log, "GPSDataM")
    for n, message in enumerate(log["GPSDataM"]):
        one = message.decode()
        assert found.speed[n] == pytest.approx(one["speed"] / 3.6)
        assert found.course[n] == pytest.approx(one["course"] % 360, abs=1e-3)
        assert found.hdop[n] == pytest.approx(one["hdop"])
    assert np.isnan(found.velocity[:, 2]).all()
    assert not found.kind.any()


def test_real_receivers_as_plain_python_says(shared: Path) -> None:
    seen = 0
    for name in ("sample_log_small", "ekf_failure", "esc_status_log", "sample_px4_events"):
        log = logreel.open(shared / "data" / "ulog" / f"{name}.ulg")
        found = quality_of(log, "vehicle_gps_position")
        for n, message in enumerate(log["vehicle_gps_position"]):
            one = message.decode()
            assert found.covariance[n, 0] == pytest.approx(one["eph"] ** 2)
            assert found.covariance[n, 8] == pytest.approx(one["epv"] ** 2)
            wanted = [one["vel_e_m_s"], one["vel_n_m_s"], -one["vel_d_m_s"]]
            assert found.velocity[n].tolist() == pytest.approx(wanted)
            seen += 1
    assert seen > 100


def test_foxglove_gets_covariance_velocity_and_heading(tmp_path: Path) -> None:
    pytest.importorskip("mcap_protobuf.decoder", reason="needs mcap-protobuf-support")
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    (tmp_path / "a.ulg").write_bytes(receiver())
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.mcap")
    with (tmp_path / "a.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        fixes = [m for _, ch, _, m in reader.iter_decoded_messages() if ch.topic == "sensor_gps/LocationFix"]
    first, _, third = fixes
    np.testing.assert_allclose(first.position_covariance, [0.25, 0, 0, 0, 0.25, 0, 0, 0, 0.64], rtol=1e-6)
    assert [one.position_covariance_type for one in fixes] == [2, 2, 0]
    assert list(third.position_covariance) == []
    assert (first.velocity.x, first.velocity.y, first.velocity.z) == (4, 3, 1)
    # Standing still is not the same as an unknown velocity, and north is not the same as an unknown heading.
    assert [one.HasField("velocity") for one in fixes] == [True, True, False]
    assert [one.HasField("heading") for one in fixes] == [True, False, True]
    assert first.heading == 0
    assert third.heading == pytest.approx(math.pi / 2)


def test_foxglove_sdk_has_the_same_fields() -> None:
    messages = pytest.importorskip("foxglove.messages", reason="needs foxglove-sdk")
    from google.protobuf import descriptor_pb2

    from logreel.outputs.foxglove.messages import wellknown
    from logreel.schemas.protobuf.types import descriptor_set

    def fields(data: bytes) -> dict[str, Any]:
        files = descriptor_pb2.FileDescriptorSet.FromString(data).file
        (found,) = (m for f in files for m in f.message_type if m.name == "LocationFix")
        return {f.name: (f.number, f.label, f.type, f.type_name, f.proto3_optional) for f in found.field}

    theirs = fields(messages.LocationFix.get_schema().data)
    ours = fields(descriptor_set(wellknown("LocationFix")))
    if "heading" not in theirs:
        pytest.skip("this release of foxglove-sdk has no heading")
    assert ours.items() <= theirs.items()


def test_tracks_keep_what_their_format_holds(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(receiver())
    done = logreel.convert(tmp_path / "a.ulg", tmp_path / "a.gpx")
    points = list(ET.parse(tmp_path / "a.gpx").getroot().iter("{http://www.topografix.com/GPX/1/1}trkpt"))
    assert [one.findtext("{http://www.topografix.com/GPX/1/1}hdop") for one in points] == ["0.7", None, "0.9"]
    assert "GPX has no place for accuracy, speed, course, heading of positions" in done.notes
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.geojson")
    (feature,) = json.loads((tmp_path / "a.geojson").read_text())["features"]
    properties = feature["properties"]
    assert properties["accuracy"] == [0.5, 2, None]
    assert properties["speed"] == [5, 0, None]
    assert properties["course"] == [53.13, None, None]
    assert properties["heading"] == [0, None, 90]
    assert len(properties["vdop"]) == len(feature["geometry"]["coordinates"])


def test_rerun_gets_curves_below_the_position(tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="needs rerun-sdk")
    (tmp_path / "a.ulg").write_bytes(receiver())
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.rrd")
    found = entities(tmp_path / "a.rrd")

    def values(name: str) -> list[list[float]]:
        return [np.ravel(row).tolist() for row in found[f"/sensor_gps/{name}"].values["Scalars:scalars"]]

    assert values("accuracy") == [[0.5], [2]]
    assert values("velocity") == [[4, 3, 1], [0, 0, 0]]
    np.testing.assert_allclose(found["/sensor_gps/accuracy"].times, [0, 10**9])
