"""Tracks as KML, GPX and GeoJSON have the positions of the log."""

from __future__ import annotations

import json
import struct
import xml.etree.ElementTree as ET
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.outputs.tracks import degrees, metres, xml_text
from support.builders.sample_logs import short_flight
from support.harness.cli_runner import Run
from support.oracles.ros1 import channel, encoded, layout_of, log_of
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder

KML, GX, GPX = (
    "{http://www.opengis.net/kml/2.2}",
    "{http://www.google.com/kml/ext/2.2}",
    "{http://www.topografix.com/GPX/1/1}",
)
SUFFIXES = (".kml", ".gpx", ".geojson")
S = 10**9
#: Longitude, latitude, altitude or None, ns since 1970 or None.
Row = tuple[float, float, float | None, int | None]
Tracks = dict[str, list[list[Row]]]


def ns(text: str | None) -> int | None:
    """RFC 3339 with six decimals."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return int(moment.replace(microsecond=0).timestamp()) * S + moment.microsecond * 1000


def texts(node: ET.Element, path: str) -> list[str]:
    return [one.text or "" for one in node.findall(path)]


def from_gpx(data: bytes) -> Tracks:
    root, found = ET.fromstring(data), {}
    assert (root.tag, root.get("version")) == (f"{GPX}gpx", "1.1")
    for track in root.findall(f"{GPX}trk"):
        (name,) = texts(track, f"{GPX}name")
        found[name] = [
            list(map(from_trkpt, part.findall(f"{GPX}trkpt"))) for part in track.findall(f"{GPX}trkseg")
        ]
    return found


def from_trkpt(point: ET.Element) -> Row:
    lat, lon = float(point.attrib["lat"]), float(point.attrib["lon"])
    assert -90 <= lat <= 90
    assert -180 <= lon < 180
    assert [child.tag for child in point] == [
        t for t in (f"{GPX}{name}" for name in ("ele", "time", "hdop", "vdop")) if point.find(t) is not None
    ]
    height = point.findtext(f"{GPX}ele")
    return lon, lat, None if height is None else float(height), ns(point.findtext(f"{GPX}time"))


def from_kml(data: bytes) -> Tracks:
    found = {}
    for mark in ET.fromstring(data).iter(f"{KML}Placemark"):
        (name,) = texts(mark, f"{KML}name")
        timed = [from_gx_track(track) for track in mark.iter(f"{GX}Track")]
        parts = (one for one in mark.iter() if one.tag in (f"{KML}LineString", f"{KML}Point"))
        found[name] = timed or [from_line(one) for one in parts]
    return found


def high(node: ET.Element) -> bool:
    (mode,) = texts(node, f"{KML}altitudeMode")
    assert mode in ("absolute", "clampToGround")
    return mode == "absolute"


def from_gx_track(track: ET.Element) -> list[Row]:
    when, places = texts(track, f"{KML}when"), texts(track, f"{GX}coord")
    assert len(when) == len(places)
    rows = [(*map(float, place.split(" ")), ns(time)) for place, time in zip(places, when, strict=True)]
    return [(lon, lat, alt if high(track) else None, time) for lon, lat, alt, time in rows]


def from_line(line: ET.Element) -> list[Row]:
    rows = [tuple(map(float, place.split(","))) for place in texts(line, f"{KML}coordinates")[0].split()]
    assert len(rows) >= 2 if line.tag == f"{KML}LineString" else len(rows) == 1
    return [(lon, lat, alt if high(line) else None, None) for lon, lat, alt in rows]


def from_geojson(data: bytes) -> Tracks:
    root, found = json.loads(data), {}
    assert root["type"] == "FeatureCollection"
    for one in root["features"]:
        assert one["type"] == "Feature"
        kind, lines = one["geometry"]["type"], one["geometry"]["coordinates"]
        times = one["properties"].get("coordTimes")
        assert kind in ("Point", "MultiPoint", "LineString", "MultiLineString")
        if not kind.startswith("Multi"):
            lines, times = [lines], times and [times]
        if kind.endswith("Point"):
            lines, times = [[place] for place in lines], times and [[time] for time in times]
        times = times or [[None] * len(line) for line in lines]
        found[one["properties"]["topic"]] = [
            [
                (*place[:2], place[2] if len(place) > 2 else None, ns(time))
                for place, time in zip(*two, strict=True)
            ]
            for two in zip(lines, times, strict=True)
        ]
        assert kind.endswith("Point") or all(len(line) >= 2 for line in lines)
    return found


READ = {".kml": from_kml, ".gpx": from_gpx, ".geojson": from_geojson}


def written(log: Any, folder: Path, suffix: str, **options: Any) -> tuple[Tracks, logreel.Converted]:
    done = logreel.convert(log, folder / f"x{suffix}", **options)
    return READ[suffix]((folder / f"x{suffix}").read_bytes()), done


def fixes(
    *rows: tuple[float, float, float], status: tuple[int, ...] = (), epoch: str = "unix"
) -> logreel.Log:
    """A log of positions (latitude, longitude, altitude), one a second."""
    root = layout_of("sensor_msgs/NavSatFix").root
    names = ("latitude", "longitude", "altitude")
    made = [{**dict(zip(names, row, strict=True)), "status": {"status": 0}} for row in rows]
    for one, code in zip(made, status, strict=False):
        one["status"] = {"status": code}
    return log_of("sensor_msgs/NavSatFix", [encoded(root, one) for one in made], epoch)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_tracks_of_a_flight_have_all_positions(tmp_path: Path, suffix: str) -> None:
    log = logreel.open(short_flight())
    found, done = written(log, tmp_path, suffix)
    assert list(found) == [one.topic for one in done.channels] == ["sensor_gps", "vehicle_global_position"]
    lost = {
        ".kml": ("KML has no place for hdop, vdop, accuracy, speed, course of positions",),
        ".gpx": ("GPX has no place for accuracy, speed, course of positions",),
    }
    assert (done.skipped, done.notes) == ((), lost.get(suffix, ()))
    for topic, (track,) in found.items():
        names = (
            ("lat", "lon", "alt") if topic[0] == "v" else ("latitude_deg", "longitude_deg", "altitude_msl_m")
        )
        lat, lon, alt = (log[topic][name].tolist() for name in names)
        times = [(t + (log.utc_offset or 0)) // 1000 * 1000 for t in log[topic].times.tolist()]
        assert [row[3] for row in track] == times
        np.testing.assert_allclose([row[:2] for row in track], np.stack([lon, lat], 1), atol=1e-9, rtol=0)
        np.testing.assert_allclose([row[2] for row in track], alt, atol=6e-4)
    assert done.rows == sum(len(track) for (track,) in found.values())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_interval_limits_the_track(tmp_path: Path, suffix: str) -> None:
    log = logreel.open(drive(6))
    found, done = written(log, tmp_path, suffix)
    assert list(found) == ["/gps/fix"]
    assert len(found["/gps/fix"][0]) == done.rows == 6
    assert found["/gps/fix"][0][0][2:] == (67.5, int(log["/gps/fix"].times[0]))
    part, done = written(log, tmp_path, suffix, start="+2s", end="+4s", force=True)
    assert part["/gps/fix"] == [found["/gps/fix"][0][2:4]]


def test_old_receivers_count_ten_millionths_of_a_degree(tmp_path: Path) -> None:
    out = (
        Builder(1)
        .flags()
        .format("g:uint64_t timestamp;int32_t lat;int32_t lon;int32_t alt;")
        .subscribe("g", 0)
    )
    for i in range(3):
        out.data(0, struct.pack("<Q3i", i * 10**6, 474000000 + i, -85000000, 488123))
    found, done = written(out.bytes(), tmp_path, ".gpx")
    assert found == {"g": [[(-8.5, 47.4 + i * 1e-7, 488.123, None) for i in range(3)]]}
    assert done.notes == ("the tracks have no times, as the log does not tell how its clock relates to UTC",)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_without_utc_there_are_no_times(tmp_path: Path, suffix: str) -> None:
    log = fixes((1, 2, 3), (4, 5, 6), epoch="boot")
    found, done = written(log, tmp_path, suffix)
    assert found == {"/x": [[(2, 1, 3, None), (5, 4, 6, None)]]}
    assert "no times" in done.notes[0]
    with pytest.raises(UsageError, match="does not tell how its clock"):
        logreel.convert(log, tmp_path / f"y{suffix}", utc=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_invalid_positions_are_left_out_and_counted(tmp_path: Path, suffix: str) -> None:
    nan, inf = float("nan"), float("inf")
    rows = [(0, 0, 1), (nan, 1, 1), (1, inf, 1), (91, 1, 1), (1, -181, 1), (1, 1, 1), (90, 180, 1), (2, 2, 2)]
    found, done = written(fixes(*rows, status=(0,) * 7 + (-1,)), tmp_path, suffix)
    (track,) = found["/x"]
    assert [row[1] for row in track] == [1, 90]
    assert [abs(row[0]) for row in track] == [1, 180]
    assert done.skipped == ()
    assert done.notes == (
        "1 position of '/x' left out: no fix",
        "2 positions of '/x' left out: not a number",
        "1 position of '/x' left out: latitude and longitude are both 0",
        "2 positions of '/x' left out: beyond 90° or 180°",
    )
    with pytest.raises(LogError, match="no position is valid: 1 position of '/x' left out: not a number"):
        logreel.convert(fixes((nan, 1, 1)), tmp_path / f"y{suffix}")
    assert not (tmp_path / f"y{suffix}").exists()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_tracks_are_cut_at_gaps(tmp_path: Path, suffix: str) -> None:
    # Without those that have no fix there are 11 s between the second and the third.
    rows = [(1, i, 5) for i in range(1, 20)]
    log = fixes(*rows, status=(0, 0, *[-1] * 10, 0))
    found, _ = written(log, tmp_path, suffix)
    assert [[row[0] for row in part] for part in found["/x"]] == [[1, 2], [*range(13, 20)]]
    # 10 s are no gap, nor is crossing the meridian of Greenwich, but that of 180 degrees is.
    rows = [(1, lon, 5) for lon in (-0.001, *[0.5] * 9, 0.001)]
    found, _ = written(fixes(*rows, status=(0, *[-1] * 9, 0)), tmp_path, suffix, force=True)
    assert [[row[0] for row in part] for part in found["/x"]] == [[-0.001, 0.001]]
    rows = [(1, lon, 5) for lon in (179.999, -179.999, -179.998)]
    found, _ = written(fixes(*rows), tmp_path, suffix, force=True)
    # A single position is the two ends of a line in some forms.
    assert [{row[0] for row in part} for part in found["/x"]] == [{179.999}, {-179.999, -179.998}]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_jump_breaks_a_track_and_is_told(tmp_path: Path, suffix: str) -> None:
    rows = [(47 + n * 1e-4 + (10 if 20 <= n < 30 else 0), 8, 5) for n in range(40)]
    found, done = written(fixes(*rows), tmp_path, suffix)
    assert [len(part) for part in found["/x"]] == [20, 10, 10]
    assert "the track of '/x' is cut at 2 jumps of up to 1112 km" in done.notes


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_part_may_be_one_position(tmp_path: Path, suffix: str) -> None:
    for epoch in ("unix", "boot"):
        found, done = written(fixes((1, 2, 3), epoch=epoch), tmp_path, suffix, force=True)
        ((first, *more),) = found["/x"]
        assert first[:3] == (2, 1, 3)
        assert more in ([], [first])
        assert done.rows == 1


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_altitudes_are_left_out(tmp_path: Path, suffix: str) -> None:
    nan = float("nan")
    found, _ = written(fixes((1, 2, nan), (1, 3, nan)), tmp_path, suffix)
    assert [row[2] for row in found["/x"][0]] == [None, None]
    found, _ = written(fixes((1, 2, nan), (1, 3, 7)), tmp_path, suffix, force=True)
    assert [row[2] for row in found["/x"][0]] == [None, None if suffix == ".kml" else 7]


def test_one_position_is_a_point(tmp_path: Path) -> None:
    for n, (rows, kind, times) in enumerate(
        [([(48.0, 8.0, 7.0)], "Point", str), ([(48.0, 179.0, 7.0), (48.0, -179.0, 7.0)], "MultiPoint", list)]
    ):
        for epoch in ("unix", "boot"):
            name = tmp_path / f"{n}{epoch}.geojson"
            logreel.convert(fixes(*rows, epoch=epoch), name)
            (feature,) = json.loads(name.read_bytes())["features"]
            places = [[row[1], row[0], row[2]] for row in rows]
            assert feature["geometry"] == {"type": kind, "coordinates": places if n else places[0]}
            assert ("coordTimes" in feature["properties"]) == (epoch == "unix")
            assert epoch == "boot" or type(feature["properties"]["coordTimes"]) is times
    name = tmp_path / "a.kml"
    logreel.convert(fixes((48.0, 8.0, 7.0), epoch="boot"), name)
    assert b"<Point><altitudeMode>absolute</altitudeMode><coordinates>\n8,48,7\n" in name.read_bytes()


def test_invalid_positions_are_left_out_for_foxglove(tmp_path: Path) -> None:
    """One rule for tracks and for the LocationFix of an MCAP."""
    rows = [(48.0, 8.0, 3), (0.0, 0.0, 3), (91.0, 8.0, 3), (48.5, 8.5, 0), (float("nan"), 8.0, 3)]
    out = Builder(1).flags().format("g:uint64_t timestamp;double lat;double lon;uint8_t fix_type;")
    out.subscribe("g", 0)
    for n, row in enumerate(rows):
        out.data(0, struct.pack("<QddB", 10**6 + n, *row))
    log = logreel.open(out.bytes())
    logreel.convert(log, tmp_path / "a.mcap")
    found = logreel.open(tmp_path / "a.mcap")["g/LocationFix"]
    assert (found["latitude"].tolist(), found["longitude"].tolist()) == ([48.0], [8.0])
    assert [len(part) for part in next(iter(written(log, tmp_path, ".gpx")[0].values()))] == [1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_positions_are_sorted_by_time(tmp_path: Path, suffix: str) -> None:
    log = fixes((1, 1, 0), (1, 2, 0), (1, 3, 0))
    log.index.times = lambda channel: np.array([5, 3, 4], np.int64) * S  # type: ignore[method-assign]
    found, _ = written(log, tmp_path, suffix)
    assert [row[0] for row in found["/x"][0]] == [2, 3, 1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_extreme_times_do_not_overflow(tmp_path: Path, suffix: str) -> None:
    log = fixes((1, 1, 0), (1, 2, 0), (1, 3, 0))
    ends = [-(1 << 63), 0, (1 << 63) - 1]
    log.index.times = lambda channel: np.array(ends, np.int64)  # type: ignore[method-assign]
    found, done = written(log, tmp_path, suffix)
    assert sum(map(len, found["/x"])) >= done.rows == 3


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hostile_names_stay_text(tmp_path: Path, suffix: str) -> None:
    name = "</name><x>&\"'\x01]]>\u202e"
    out = Builder(1).flags().format(f"{'a'}:uint64_t timestamp;double lat;double lon;").subscribe("a", 0)
    out.data(0, struct.pack("<Qdd", 5, 1, 2)).data(0, struct.pack("<Qdd", 6, 1, 2))
    log = logreel.open(out.bytes())
    log["a"].topic = name
    found, _ = written(log, tmp_path, suffix)
    assert list(found) == [name if suffix == ".geojson" else name.replace("\x01", "\ufffd")]


def test_a_nan_that_complains_is_left_out(tmp_path: Path) -> None:
    out = Builder(1).flags().format("g:uint64_t timestamp;float lat;float lon;double alt;").subscribe("g", 0)
    odd = bytes.fromhex("0100a07f"), bytes.fromhex("010000000000f47f")
    out.data(0, struct.pack("<Q4s4s8s", 5, odd[0], odd[0], odd[1]))
    out.data(0, struct.pack("<Qff8s", 6, 1, 2, odd[1]))
    found, done = written(out.bytes(), tmp_path, ".gpx")
    assert found == {"g": [[(2, 1, None, None)]]}
    assert done.notes[0] == "1 position of 'g' left out: not a number"


def test_text_is_escaped_and_numbers_have_no_exponent() -> None:
    assert (
        xml_text('a<b>&"\x00\x1b\ud800\uffff\n\U0001f600')
        == "a&lt;b&gt;&amp;&quot;\ufffd\ufffd\ufffd\ufffd\n\U0001f600"
    )
    assert [degrees(v) for v in (47.5, -1e-7, 1e-12, -1e-12, 180.0, 100.0)] == [
        "47.5", "-0.0000001", "0", "0", "180", "100",
    ]  # fmt: skip
    assert metres(1e20) == "100000000000000000000"


def test_a_log_without_positions_raises_an_error(tmp_path: Path) -> None:
    log = logreel.open(drive(1))
    with pytest.raises(
        LogError, match="none of the channels chosen holds latitude and longitude; these do: '/gps/fix'"
    ):
        logreel.convert(log, tmp_path / "x.kml", topics="/odom")
    ch = channel("nav_msgs/Odometry", {})
    with pytest.raises(LogError, match=r"the log has no channel that holds latitude and longitude$"):
        logreel.convert(ch.log, tmp_path / "x.kml")
    with pytest.raises(UsageError, match="leave out the slash"):
        logreel.convert(log, f"{tmp_path}/x.kml/")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_nothing_in_an_interval_is_a_file_without_tracks(tmp_path: Path, suffix: str) -> None:
    found, done = written(fixes((1, 2, 3), (4, 5, 6)), tmp_path, suffix, start=S // 4, end=S // 2)
    assert found == {}
    assert done.channels[0].file is None


def test_convert_reports_written_and_skipped_positions(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.bag").write_bytes(drive(3))
    done = run("convert", tmp_path / "a.bag", tmp_path / "x.gpx")
    wrote = f"logreel: wrote 3 positions of 1 channel to {tmp_path}/x.gpx\n"
    assert (done.code, done.err) == (0, f"{wrote}logreel: GPX has no place for accuracy of positions\n")
    assert run("convert", tmp_path / "a.bag", tmp_path / "x.gpx").code == 1
    out = Builder(1).flags().format("g:uint64_t timestamp;double lat;double lon;").subscribe("g", 0)
    out.data(0, struct.pack("<Qdd", 5, 0, 0)).data(0, struct.pack("<Qdd", 6, 1, 2))
    (tmp_path / "a.ulg").write_bytes(out.bytes())
    done = run("convert", tmp_path / "a.ulg", tmp_path / "x.kml")
    assert done.code == 0
    assert "wrote 1 position of 1 channel" in done.err
    assert "1 position of 'g' left out: latitude and longitude are both 0" in done.err
    found = run("convert", tmp_path / "a.ulg", tmp_path / "x.kml", "--force", "--json").json
    assert len(found["notes"]) == 2


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("sample_log_small", {"vehicle_gps_position": 32}),
        ("esc_status_log", {"vehicle_global_position": 95, "vehicle_gps_position": 179}),
        (
            "ekf_failure",
            {
                "home_position": 5,
                "vehicle_global_position": 399,
                "vehicle_gps_position": 397,
                "sensor_gps": 79,
            },
        ),
    ],
)
def test_tracks_of_real_flights_equal_their_positions(
    shared: Path, tmp_path: Path, name: str, counts: dict[str, int]
) -> None:
    path = shared / "data" / "ulog" / f"{name}.ulg"
    if not path.exists():
        pytest.skip("no such flight among the samples")
    found = {suffix: written(path, tmp_path, suffix)[0] for suffix in SUFFIXES}
    want = found[".gpx"]
    assert {topic: sum(map(len, parts)) for topic, parts in want.items()} == counts
    log = logreel.open(path)
    for topic, parts in want.items():
        rows = [row for part in parts for row in part]
        names = next(
            n for n in (("lat", "lon"), ("latitude_deg", "longitude_deg")) if n[0] in log[topic].fields
        )
        lat, lon = (log[topic][n] * (1e-7 if log[topic][n].dtype.kind == "i" else 1) for n in names)
        np.testing.assert_allclose([row[:2] for row in rows], np.stack([lon, lat], 1), atol=1e-9, rtol=0)
        for suffix in (".kml", ".geojson"):
            # A single position is the two ends of a line there.
            got = [
                part[:1] if len(part) == 2 and part[0] == part[1] else part for part in found[suffix][topic]
            ]
            assert got == parts
