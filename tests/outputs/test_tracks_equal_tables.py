"""Coordinates of tracks equal those of the table, digit by digit, with times in UTC."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.lenses import Position, lenses
from logreel.log.times import utc_shift
from support.samples.koblenz.drive import drive as tour
from support.samples.rosbag.builder import drive

SUFFIXES = (".kml", ".gpx", ".geojson")
#: Longitude and latitude with 9 decimals, metres with 3, RFC 3339 with microseconds or nothing.
Row = tuple[float, float, float | None, str | None]


def local(node: ET.Element) -> str:
    return node.tag.rpartition("}")[2]


def from_kml(text: bytes) -> list[list[Row]]:
    tracks = []
    for mark in (n for n in ET.fromstring(text).iter() if local(n) == "Placemark"):
        modes = {n.text for n in mark.iter() if local(n) == "altitudeMode"}
        when = [n.text for n in mark.iter() if local(n) == "when"]
        places = [n.text.split(" ") for n in mark.iter() if local(n) == "coord" and n.text]
        for line in (n for n in mark.iter() if local(n) == "coordinates"):
            places += [place.split(",") for place in (line.text or "").split()]
        times: list[Any] = when or [None] * len(places)
        high = modes == {"absolute"}
        tracks.append(
            [
                (float(p[0]), float(p[1]), float(p[2]) if high else None, t)
                for p, t in zip(places, times, strict=True)
            ]
        )
    return tracks


def from_gpx(text: bytes) -> list[list[Row]]:
    def row(point: ET.Element) -> Row:
        inner = {local(child): child.text or "" for child in point}
        high = float(inner["ele"]) if "ele" in inner else None
        return float(point.attrib["lon"]), float(point.attrib["lat"]), high, inner.get("time")

    marks = [n for n in ET.fromstring(text).iter() if local(n) == "trk"]
    return [[row(point) for point in mark.iter() if local(point) == "trkpt"] for mark in marks]


def from_geojson(text: bytes) -> list[list[Row]]:
    tracks = []
    for feature in json.loads(text)["features"]:
        many = feature["geometry"]["type"] == "MultiLineString"
        lines, times = feature["geometry"]["coordinates"], feature["properties"].get("coordTimes")
        places = [place for line in (lines if many else [lines]) for place in line]
        when = (
            [time for part in (times if many else [times]) for time in part]
            if times
            else [None] * len(places)
        )
        tracks.append(
            [(p[0], p[1], p[2] if len(p) > 2 else None, t) for p, t in zip(places, when, strict=True)]
        )
    return tracks


READ = {".kml": from_kml, ".gpx": from_gpx, ".geojson": from_geojson}


def rows_of(ch: logreel.Channel) -> list[Row]:
    """The positions of a channel by its own table, in the units and digits of a track."""
    (lens,) = (lens for lens in lenses(ch) if isinstance(lens, Position))
    utc = utc_shift(ch.log) is not None
    names = [lens.longitude, lens.latitude, *([lens.altitude] if lens.altitude else [])]
    table = ch.to_arrow([name.path for name in names], utc=utc)
    columns = [np.asarray(table[name.path], np.float64) * name.factor for name in names]
    times = table["time"].cast("int64").to_pylist()
    found: list[Row] = []
    for i, time in enumerate(times):
        lon, lat, *high = (float(column[i]) for column in columns)
        wall = f"{np.datetime64(time // 10**9, 's')}.{time % 10**9 // 1000:06d}Z" if utc else None
        found.append((round(lon, 9), round(lat, 9), round(high[0], 3) if high else None, wall))
    return found


def logs_of(shared: Path) -> dict[str, tuple[Any, str]]:
    """A log of each kind and the channel whose fixes are all valid."""
    return {
        "real flight": (shared / "data" / "ulog" / "ekf_failure.ulg", "vehicle_gps_position"),
        "old flight": (shared / "data" / "ulog" / "sample_log_small.ulg", "vehicle_gps_position"),
        "bag": (drive(5), "/gps/fix"),
        "tour": (tour(3), "GPSDataM"),
        "tour of others": (shared / "data" / "koblenz" / "k01_all_six.log", "GPSDataM"),
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("which", ["real flight", "old flight", "bag", "tour", "tour of others"])
def test_a_track_is_the_table(shared: Path, tmp_path: Path, which: str, suffix: str) -> None:
    source, topic = logs_of(shared)[which]
    if isinstance(source, Path) and not source.exists():
        pytest.skip("no such log among the samples")
    log = logreel.open(source)
    done = logreel.convert(log, tmp_path / f"x{suffix}", topics=topic)
    (track,) = READ[suffix]((tmp_path / f"x{suffix}").read_bytes())
    want = rows_of(log[topic])
    assert done.rows == len(want) > 1
    assert [row[:2] for row in track] == [row[:2] for row in want]
    assert [row[3] for row in track] == [row[3] for row in want]
    np.testing.assert_allclose(
        np.array([row[2] for row in track], float), np.array([row[2] for row in want], float), atol=1e-9
    )


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_flight_without_gps_has_an_empty_track(shared: Path, tmp_path: Path, suffix: str) -> None:
    path = shared / "data" / "ulog" / "sample.ulg"
    if not path.exists():
        pytest.skip("no such log among the samples")
    assert len(logreel.open(path)["vehicle_gps_position"]) == 0
    assert logreel.convert(path, tmp_path / f"x{suffix}").rows == 0
    assert READ[suffix]((tmp_path / f"x{suffix}").read_bytes()) == []
