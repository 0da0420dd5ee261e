"""Redacted logs keep neither positions nor pictures nor texts, and everything else."""

from __future__ import annotations

import io
import json
import math
import re
import struct
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Scalar, Struct
from logreel.lenses import Position, lenses
from logreel.meaning.tracks import distances
from logreel.ops.edit.field_edits import FieldEdit, LayoutEditor
from logreel.ops.edit.pictures import black
from support.builders.contents import content, sample
from support.builders.ulog_gps import gps_log, pieces
from support.samples.koblenz.builder import Builder as Koblenz
from support.samples.ulog.builder import Builder

#: A place that is found again in bytes: as numbers of several types and as text.
LATITUDE, LONGITUDE, ALTITUDE = 47.397742, 8.545594, 488.0
ZERO = (0.01, 0.01)


def fixes(log: logreel.Log) -> dict[str, Any]:
    """Return the valid positions by channel."""
    found = {}
    for name, ch in log.channels.items():
        for lens in lenses(ch):
            if isinstance(lens, Position) and len(ch):
                one = lens.fixes(ch)
                found[name] = one.take(one.valid)
    return found


def planted() -> bytes:
    """Return a ULog with positions in many places, each of them as it occurs in flight logs."""
    b = Builder(start_us=1_000_000).flags().info("sys_name", "PX4")
    b.info("launch", f"{LATITUDE}, {LONGITUDE}")
    b.format(
        "vehicle_gps_position:uint64_t timestamp;int32_t lat;int32_t lon;int32_t alt;int32_t alt_ellipsoid;"
        "uint8_t fix_type;"
    )
    b.format("vehicle_local_position:uint64_t timestamp;double ref_lat;double ref_lon;float x;float ref_alt;")
    b.format("position_setpoint:double lat;double lon;float alt;bool valid;uint8_t[3] _padding0;")
    b.format("position_setpoint_triplet:uint64_t timestamp;position_setpoint current;position_setpoint next;")
    b.format("vehicle_command:uint64_t timestamp;double param5;double param6;float param1;")
    b.format("battery_status:uint64_t timestamp;float voltage_v;float current_a;")
    b.format("estimator:uint64_t timestamp;float lat_vel;float lon_vel;")
    b.format("gps_dump:uint64_t timestamp;uint8_t len;uint8_t[79] data;")
    for n, name in enumerate(("vehicle_gps_position", "vehicle_local_position", "position_setpoint_triplet",
                              "vehicle_command", "battery_status", "estimator", "gps_dump")):  # fmt: skip
        b.subscribe(name, n)
    for i in range(20):
        t, lat, lon = 1_000_000 + i * 1000, LATITUDE + i * 1e-5, LONGITUDE + i * 2e-5
        e7 = [round(lat * 1e7), round(lon * 1e7)] if i else [0, 0]
        b.data(0, struct.pack("<QiiiiB", t, *e7, 488_000 + i, 535_000 + i, 3 if i else 0))
        b.data(1, struct.pack("<Qddff", t, LATITUDE, LONGITUDE, i, ALTITUDE))
        b.data(2, struct.pack("<Q" + 2 * "ddf?3x", t, lat, lon, 500, True, math.nan, math.nan, 0, False))
        b.data(3, struct.pack("<Qddf", t, *((lat, lon) if i % 2 else (0.0, 3.0)), i))
        b.data(4, struct.pack("<Qff", t, 16.1, 8.5))
        b.data(5, struct.pack("<Qff", t, 1.5, -2.5))
        b.data(6, struct.pack("<QB79s", t, 79, b"$GPGGA,1,4723.86,N,00832.73,E,1,8,1,488,M,47,M,,*00"))
        b.text(6, t, f"home: {lat:.7f}, {lon:.7f}, 488.0 at 15.25 V" if i % 3 else "armed")
    return bytes(b.bytes())


def test_positions_move_and_keep_their_shape(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(planted())
    done = logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact="position")
    changed = {one.topic: one.what for one in done.changes}
    assert changed == {
        "vehicle_gps_position": "lat, lon, alt, alt_ellipsoid",
        "vehicle_local_position": "ref_lat, ref_lon, ref_alt",
        "position_setpoint_triplet": "current.lat, current.lon, current.alt",
        "vehicle_command": "param5, param6",
        "gps_dump": "raw data of a receiver",
        "~text": "text",
        "": "launch",
    }
    old, new = logreel.open(tmp_path / "a.ulg"), logreel.open(tmp_path / "b.ulg")
    assert "gps_dump" not in new
    assert "launch" not in new.metadata
    for topic in ("battery_status", "estimator"):
        assert content(new)[topic] == content(old)[topic]
    before, after = old["vehicle_gps_position"], new["vehicle_gps_position"]
    assert (after["lat"][0], after["lon"][0]) == (0, 0)
    lat, lon = (after[name][1:] * 1e-7 for name in ("lat", "lon"))
    assert abs(lat[0] - ZERO[0]) + abs(lon[0] - ZERO[1]) < 1e-2
    np.testing.assert_array_equal(np.diff(after["alt"][1:]), np.diff(before["alt"][1:]))
    # The difference between the two altitudes depends on the place.
    assert (after["alt"][1:] == after["alt_ellipsoid"][1:]).all()
    was = fixes(old)["vehicle_gps_position"]
    far, now = distances(was.latitude, was.longitude), distances(lat, lon)
    np.testing.assert_allclose(now, far, atol=0.02)
    command = new["vehicle_command"]
    np.testing.assert_array_equal(command["param6"][::2], old["vehicle_command"]["param6"][::2])
    assert np.abs(command["param5"]).max() < 0.1
    lines = [line.text for line in new.text]
    assert lines[0] == "armed"
    assert lines[1].startswith("home: x")
    assert lines[1].endswith(", 488.0 at 15.25 V")
    assert not remains((tmp_path / "b.ulg").read_bytes())
    assert remains((tmp_path / "a.ulg").read_bytes())


def remains(data: bytes) -> list[str]:
    """Return how the first positions still occur in *data*."""
    found = []
    for i in range(1, 20):
        lat, lon = LATITUDE + i * 1e-5, LONGITUDE + i * 2e-5
        for angle in (lat, lon):
            packed = [
                struct.pack("<d", angle),
                struct.pack("<f", angle),
                struct.pack("<i", round(angle * 1e7)),
            ]
            packed += [f"{angle:.5f}"[:7].encode()]
            found += [repr(angle) for one in packed if one in data]
    return found


@pytest.mark.parametrize("way", ["remove", "drop"])
def test_positions_are_removed_or_dropped(way: str, tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(planted())
    logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact=f"position={way}")
    log = logreel.open(tmp_path / "b.ulg")
    assert not any(len(one) for one in fixes(log).values())
    assert not remains((tmp_path / "b.ulg").read_bytes())
    assert ("vehicle_gps_position" in log) == (way == "remove")
    if way == "remove":
        assert np.isnan(log["vehicle_local_position"]["ref_lat"]).all()
        assert not log["vehicle_gps_position"]["lat"].any()
    assert len(log["battery_status"]) == 20


@pytest.mark.parametrize("suffix", [".bag", ".mcap", ".ulg", ".vel"])
def test_positions_of_samples_move(suffix: str, tmp_path: Path) -> None:
    source, out = sample(tmp_path, suffix), tmp_path / f"out{suffix}"
    old, to = fixes(logreel.open(source)), (10.0, 20.0, 30.0)
    done = logreel.edit(source, out, redact=["position"], origin=to)
    new = fixes(logreel.open(out))
    assert set(old) == set(new)
    assert old
    first = max(old, key=lambda name: len(old[name]))
    assert (new[first].latitude[0], new[first].longitude[0]) == pytest.approx(to[:2], abs=1e-6)
    for name, was in old.items():
        assert len(new[name]) == len(was)
        step = np.diff(was.latitude)
        np.testing.assert_allclose(np.diff(new[name].latitude), step, atol=2e-7)
    edited = {one.topic for one in done.changes}
    before, after = content(source, "file"), content(out, "file")
    assert {name: rows for name, rows in after.items() if name not in edited} == {
        name: rows for name, rows in before.items() if name not in edited
    }


def test_a_log_at_the_neutral_place_can_be_redacted_again(tmp_path: Path) -> None:
    source, once, twice = sample(tmp_path, ".ulg"), tmp_path / "once.ulg", tmp_path / "twice.ulg"
    logreel.edit(source, once, redact="position")
    done = logreel.edit(once, twice, redact="position")
    assert done.skipped == ()
    before, after = content(once), content(twice)
    edited = {"sensor_gps", "vehicle_global_position", "vehicle_local_position"}
    assert {name for name in before if before[name] != after[name]} <= edited


def test_degrees_and_minutes_stay_degrees_and_minutes(tmp_path: Path) -> None:
    b = Koblenz()
    for i in range(5):
        b.gps(i * 1000, place=(5021.78 + i * 0.01, 733.54), height=92.5 + i)
    (tmp_path / "a.log").write_bytes(b.bytes())
    logreel.edit(tmp_path / "a.log", tmp_path / "b.log", redact="position", origin="45,5,0")
    ch = logreel.open(tmp_path / "b.log")["GPSDataM"]
    np.testing.assert_allclose(ch["latitude"], 4500 + 0.01 * np.arange(5), atol=1e-6)
    np.testing.assert_allclose(ch["longitude"], 500, atol=1e-6)
    np.testing.assert_allclose(ch["height"], np.arange(5), atol=1e-4)
    assert not ch["geoid_height"].any()


def test_sentences_of_nmea_lose_their_positions_and_stay_valid(tmp_path: Path) -> None:
    sentence = "$GPRMC,120000,A,4723.8645,N,00832.7356,E,0.0,0.0,170610,,"
    checked = f"{sentence}*{reduce(lambda a, b: a ^ b, sentence[1:].encode()):02X}"
    text = (
        "Header header\nstring sentence\n"
        + "=" * 80
        + "\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"
    )
    with logreel.create(tmp_path / "a.bag") as w:
        n = w.add_channel("/nmea", logreel.Schema("nmea_msgs/Sentence", "ros1msg", text))
        w.write(n, 10**18, {"header": {"seq": 0, "stamp": 0, "frame_id": "gps"}, "sentence": checked})
    logreel.edit(tmp_path / "a.bag", tmp_path / "b.bag", redact="position")
    found = logreel.open(tmp_path / "b.bag")["/nmea"][0].decode()["sentence"]
    body, _, checksum = found[1:].partition("*")
    assert body == "GPRMC,120000,A,,,,,0.0,0.0,170610,,"
    assert int(checksum, 16) == reduce(lambda a, b: a ^ b, body.encode())


def test_positions_move_in_protobuf_and_json(tmp_path: Path) -> None:
    source = sample(tmp_path, ".ulg")
    logreel.convert(source, tmp_path / "a.mcap")
    log = logreel.open(tmp_path / "a.mcap")
    old = fixes(log)
    protobuf = [name for name in old if log[name].schema.encoding == "protobuf"]
    assert protobuf
    logreel.edit(log, tmp_path / "b.mcap", redact="position")
    new = fixes(logreel.open(tmp_path / "b.mcap"))
    for name in protobuf:
        assert len(new[name]) == len(old[name])
        assert np.abs(new[name].latitude).max() < 1
    schema = {"type": "object", "properties": {
        "name": {"type": "string"}, "lat": {"type": "number"}, "lon": {"type": "number"}}}  # fmt: skip
    with logreel.create(tmp_path / "c.mcap") as w:
        n = w.add_channel("/place", logreel.Schema("place", "jsonschema", json.dumps(schema)))
        for i in range(3):
            w.write(
                n, i, json.dumps({"name": "x", "lat": 48 + i / 1000, "lon": 11, "more": [1, "é"]}).encode()
            )
    logreel.edit(tmp_path / "c.mcap", tmp_path / "d.mcap", redact="position", origin="1,2")
    rows = [m.decode() for m in logreel.open(tmp_path / "d.mcap")["/place"]]
    assert [row["lat"] for row in rows] == pytest.approx([1.0, 1.001, 1.002])
    assert [row["lon"] for row in rows] == pytest.approx([2.0] * 3)
    assert all(row["more"] == [1, "é"] for row in rows)
    logreel.edit(tmp_path / "c.mcap", tmp_path / "e.mcap", redact="position=remove")
    assert json.loads(bytes(logreel.open(tmp_path / "e.mcap")["/place"][0].data))["lat"] is None


def test_the_raw_data_of_receivers_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(gps_log(pieces(20)))
    with pytest.raises(logreel.LogError):
        logreel.open(logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact="position").path)["gps_dump"]


def test_positions_that_cannot_be_redacted_are_reported(tmp_path: Path) -> None:
    b = Builder(start_us=1_000_000).flags().parameter("LPE_LAT", LATITUDE)
    b.format("home_position:uint64_t timestamp;double lat;double lon;float alt;").subscribe(
        "home_position", 0
    )
    b.data(0, struct.pack("<Qddf", 1_000_000, LATITUDE, LONGITUDE, ALTITUDE))
    (tmp_path / "a.ulg").write_bytes(bytes(b.bytes()))
    done = logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact="position")
    assert done.skipped == ("the parameter 'LPE_LAT' holds a position, and stays",)
    assert str(LATITUDE)[:6] not in repr(done)


def test_pictures_become_black_ones_of_the_same_size(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".vel"), tmp_path / "out.vel"
    done = logreel.edit(source, out, redact="images")
    assert {one.topic for one in done.changes} == {"ImageM/0", "ImageM/1"}
    old, new = logreel.open(source), logreel.open(out)
    assert not new.problems
    for topic in ("ImageM/0", "ImageM/1"):
        for m, n in zip(old[topic], new[topic], strict=True):
            before, after = m.decode(), n.decode()
            assert after.pop("data") != before.pop("data")
            assert before == after
    source, out = sample(tmp_path, ".bag"), tmp_path / "out.bag"
    logreel.edit(source, out, redact="images")
    assert len(logreel.open(out)["/camera/compressed"]) == len(logreel.open(source)["/camera/compressed"])


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "I;16", "1"])
@pytest.mark.parametrize("size", [(1, 1), (17, 33)])
def test_pillow_reads_black_pictures(mode: str, size: tuple[int, int]) -> None:
    image = pytest.importorskip("PIL.Image")
    for kind in ("PNG", "JPEG"):
        if kind == "JPEG" and mode not in ("L", "RGB"):
            continue
        out = io.BytesIO()
        image.new(mode, size, 1).save(out, kind)
        made = black(out.getvalue(), None)
        assert made is not None
        found = image.open(io.BytesIO(made))
        found.load()
        assert (found.size, found.mode, found.format) == (size, mode, kind)
        assert not any(np.asarray(found).ravel())
        assert black(made, None) == made


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff\xd8", b"\xff\xd8\xff\xc0\x00", b"\x89PNG\r\n\x1a\n" + bytes(8), b"GIF89a", bytes(100)],
)
def test_damaged_and_unknown_pictures_have_no_black_one(data: bytes) -> None:
    assert black(data, None) in (None, b"")
    assert black(data, "rgb8") == bytes(len(data))


def test_channels_with_other_pictures_are_dropped(tmp_path: Path) -> None:
    text = (
        "Header header\nstring format\nuint8[] data\n"
        + "=" * 80
        + "\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"
    )
    with logreel.create(tmp_path / "a.bag") as w:
        n = w.add_channel("/video", logreel.Schema("sensor_msgs/CompressedImage", "ros1msg", text))
        m = w.add_channel("/other", logreel.Schema("std_msgs/String", "ros1msg", "string data\n"))
        head = {"seq": 0, "stamp": 0, "frame_id": "c"}
        w.write(n, 10**18, {"header": head, "format": "h264", "data": b"\0\0\0\1abc"})
        w.write(m, 10**18, {"data": "x"})
    done = logreel.edit(tmp_path / "a.bag", tmp_path / "b.bag", redact="images")
    assert [(one.kind, one.topic) for one in done.changes] == [("redact images", "/video")]
    assert "h264" in done.changes[0].what
    assert list(logreel.open(tmp_path / "b.bag")) == ["/other"]


@pytest.mark.parametrize(("suffix", "topics"), [(".bag", ["/rosout"]), (".ulg", ["mavlink_log", "~text"])])
def test_texts_are_replaced(suffix: str, topics: list[str], tmp_path: Path) -> None:
    source, out = sample(tmp_path, suffix), tmp_path / f"out{suffix}"
    done = logreel.edit(source, out, redact="text")
    assert [one.topic for one in done.changes] == topics
    old, new = logreel.open(source), logreel.open(out)
    for topic in topics:
        field = "msg" if topic == "/rosout" else "text"
        for m, n in zip(old[topic], new[topic], strict=True):
            before, after = m.decode(), n.decode()
            assert before.pop(field)
            assert after.pop(field) == "[redacted]"
            assert (m.time, before) == (n.time, after)
    logreel.edit(source, out, redact="text=drop", force=True)
    assert not set(topics) & {name for name, ch in logreel.open(out).channels.items() if len(ch)}


def test_nothing_to_redact_is_noted(tmp_path: Path) -> None:
    done = logreel.edit(sample(tmp_path, ".bddf"), tmp_path / "b.bddf", redact="position")
    assert done.notes == ("no field with a position was found",)


def test_positions_are_found_in_arrays_and_integers_without_names(tmp_path: Path) -> None:
    b = Builder(start_us=1_000_000).flags()
    b.format("fix:uint64_t timestamp;double lat;double lon;").subscribe("fix", 0)
    b.format("item:uint64_t timestamp;int32_t x;int32_t y;float[3] p;float[2] size;").subscribe("item", 1)
    for i in range(5):
        b.data(0, struct.pack("<Qdd", 1_000_000 + i, LATITUDE + i * 1e-4, LONGITUDE))
        lat, lon = round(LATITUDE * 1e7) + i, round(LONGITUDE * 1e7)
        b.data(1, struct.pack("<Qii5f", 1_000_000 + i, lat, lon, LONGITUDE, LATITUDE, 500, 47.25, -3))
    (tmp_path / "a.ulg").write_bytes(bytes(b.bytes()))
    logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact="position", origin="1,2")
    ch = logreel.open(tmp_path / "b.ulg")["item"]
    np.testing.assert_allclose(ch["x"] * 1e-7, 1, atol=1e-5)
    np.testing.assert_allclose(ch["y"] * 1e-7, 2, atol=1e-5)
    np.testing.assert_allclose(ch["p"], [[2, 1, 500]] * 5, atol=1e-4)
    np.testing.assert_array_equal(ch["size"], [[47.25, -3]] * 5)


def test_json_without_a_schema_is_dropped_if_it_names_positions(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.mcap") as w:
        for topic, text in (
            ("/gps", b'{"fix": {"lat": 48.1, "lon": 11.5}}'),
            ("/flat", b'{"platform": 1.25}'),
        ):
            w.write(w.add_channel(topic, logreel.Schema("", ""), {"message_encoding": "json"}), 5, text)
    done = logreel.edit(tmp_path / "a.mcap", tmp_path / "b.mcap", redact="position")
    assert [(one.topic, one.what) for one in done.changes] == [("/gps", "positions in JSON without a schema")]
    assert done.notes == ("'/flat' was not searched for positions: JSON without a schema",)
    assert list(logreel.open(tmp_path / "b.mcap")) == ["/flat"]


def test_samples_named_after_positions_are_dropped(tmp_path: Path) -> None:
    from support.samples.bddf.builder import T0
    from support.samples.bddf.builder import Builder as Bddf

    out = Bddf()
    names = ["gps.latitude", "gps.longitude", "gps.satellites"]
    numbers = [out.pods({"client": "body", "varname": name}, "float64") for name in names]
    for number in numbers:
        out.values(number, T0, "float64", [LATITUDE])
    (tmp_path / "a.bddf").write_bytes(out.bytes())
    topics = list(logreel.open(tmp_path / "a.bddf"))
    done = logreel.edit(tmp_path / "a.bddf", tmp_path / "b.bddf", redact="position")
    assert [one.topic for one in done.changes] == topics[:2]
    assert list(logreel.open(tmp_path / "b.bddf")) == topics[2:]


def test_a_position_that_remains_is_noticed_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("logreel.ops.edit.redact._Origin.moved", lambda self, lat, lon: (lat, lon))
    for suffix, topic in ((".ulg", "sensor_gps"), (".bag", "/gps/fix")):
        with pytest.raises(logreel.LogError, match=f"'{topic}' still has what was to be changed"):
            logreel.edit(sample(tmp_path, suffix), tmp_path / f"b{suffix}", redact="position")
        assert not list(tmp_path.glob("b.*"))


def test_pyulog_reads_moved_positions(tmp_path: Path) -> None:
    pyulog = pytest.importorskip("pyulog")
    (tmp_path / "a.ulg").write_bytes(planted())
    logreel.edit(tmp_path / "a.ulg", tmp_path / "b.ulg", redact="position", origin="1,2,3")
    found = {one.name: one.data for one in pyulog.ULog(str(tmp_path / "b.ulg")).data_list}
    assert "gps_dump" not in found
    lat, lon = (found["vehicle_gps_position"][name] * 1e-7 for name in ("lat", "lon"))
    assert not lat[0]
    np.testing.assert_allclose(lat[1:], 1, atol=1e-3)
    np.testing.assert_allclose(lon[1:], 2, atol=1e-3)
    np.testing.assert_allclose(found["vehicle_local_position"]["ref_lat"], 1, atol=1e-3)
    np.testing.assert_array_equal(found["battery_status"]["voltage_v"], np.float32(16.1))


def test_a_text_that_is_cut_to_its_field_ends_in_no_word_that_is_replaced() -> None:
    layout = Layout(Struct((Field("text", FixedArray(Scalar("char"), 12)), Field("after", Scalar("uint32")))))

    def replaced(text: bytes, _: Any) -> bytes:
        return re.sub(rb"\b(abc|KIM)\b", b"12345678", text)

    editor = LayoutEditor(layout, [FieldEdit("text", ("text",), content=replaced)])
    rows = [
        b"abc KIMONO  \x01\0\0\0",
        b"KIM         \x02\0\0\0",
        b"abc         \x03\0\0\0",
        b"other KIMONO\x04\0\0\0",
    ]
    data = np.frombuffer(b"".join(rows), np.uint8).copy()
    start, size = np.arange(4) * 16, np.full(4, 16)
    made = editor.apply(data, start, size, np.zeros(4, np.int64))
    # "12345678 KIM" is what the first text would be cut to.
    texts = [made.data[at : at + 12].tobytes() for at in start]
    assert texts == [b"12345678 123", b"12345678    ", b"12345678    ", b"other KIMONO"]
    assert editor.remaining(made.data, start, size) == []
