"""Places where a camera took pictures in KML, GPX and GeoJSON, compared with what was logged and with pyulog."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import logreel
from support.builders.ulog_camera import camera_log, shots

KML = "{http://www.opengis.net/kml/2.2}"


def placemarks(path: Path) -> dict[str, list[tuple[float, ...]]]:
    """Coordinates of the points by name of the placemark."""
    found = {}
    for one in ElementTree.parse(path).iter(f"{KML}Placemark"):
        text = one.findtext(f"{KML}Point/{KML}coordinates")
        if text is not None:
            found[one.findtext(f"{KML}name")] = [tuple(map(float, line.split(","))) for line in text.split()]
    return found


def test_each_picture_is_a_placemark_with_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(camera_log(shots()))
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.kml")
    found = placemarks(tmp_path / "a.kml")
    assert list(found) == [f"Camera Trigger {one.number}" for one in shots()]
    for one in shots():
        [place] = found[f"Camera Trigger {one.number}"]
        assert place == pytest.approx((one.longitude, one.latitude, one.altitude), abs=1e-9)
    # The vehicle's own track stays a track.
    text = (tmp_path / "a.kml").read_text()
    assert "<name>vehicle_global_position</name>" in text
    assert text.count("<LineString>") == 1


def test_the_points_are_those_that_pyulog_reads(tmp_path: Path) -> None:
    pyulog = pytest.importorskip("pyulog")
    path = tmp_path / "a.ulg"
    path.write_bytes(camera_log(shots(30)))
    logreel.convert(path, tmp_path / "a.kml", topics="camera_capture")
    data = pyulog.ULog(str(path)).get_dataset("camera_capture").data
    # The names and coordinates that pyulog's ulog2kml gives its placemarks.
    rows = zip(data["seq"], data["lon"], data["lat"], data["alt"], strict=True)
    expected = {f"Camera Trigger {seq}": (lon, lat, alt) for seq, lon, lat, alt in rows}
    found = placemarks(tmp_path / "a.kml")
    assert list(found) == list(expected)
    for name, [place] in found.items():
        np.testing.assert_allclose(place, expected[name], atol=1e-9)


def test_positions_of_other_messages_with_numbers_stay_tracks(tmp_path: Path) -> None:
    schema = logreel.Schema("x/Fix", "ros1msg", "uint32 seq\nfloat64 lat\nfloat64 lon\n")
    with logreel.create(tmp_path / "a.bag") as w:
        ch = w.add_channel("/fix", schema)
        for n in range(3):
            w.write(ch, 10**18 + n * 10**9, {"seq": n, "lat": 50.0 + n, "lon": 7.0})
    logreel.convert(tmp_path / "a.bag", tmp_path / "a.kml")
    assert placemarks(tmp_path / "a.kml") == {}
    assert "gx:Track" in (tmp_path / "a.kml").read_text()


def test_pictures_are_waypoints_in_gpx(tmp_path: Path) -> None:
    (tmp_path / "a.ulg").write_bytes(camera_log(shots()))
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.gpx")
    root = ElementTree.parse(tmp_path / "a.gpx").getroot()
    kinds = [one.tag.rpartition("}")[2] for one in root]
    # The order of the schema: waypoints before tracks.
    assert kinds == ["metadata", *["wpt"] * len(shots()), "trk"]
    ns = {"g": "http://www.topografix.com/GPX/1/1"}
    for one, shot in zip(root.findall("g:wpt", ns), shots(), strict=True):
        assert one.findtext("g:name", namespaces=ns) == f"Camera Trigger {shot.number}"
        place = float(one.get("lon", "")), float(one.get("lat", ""))
        assert place == pytest.approx((shot.longitude, shot.latitude), abs=1e-9)
        # The order of the schema within a point.
        assert [part.tag.rpartition("}")[2] for part in one][-1] == "name"


def test_pictures_are_points_in_geojson(tmp_path: Path) -> None:
    import json

    (tmp_path / "a.ulg").write_bytes(camera_log(shots()))
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.geojson")
    features = json.loads((tmp_path / "a.geojson").read_text())["features"]
    points = [one for one in features if one["geometry"]["type"] == "Point"]
    assert [one["properties"]["number"] for one in points] == [shot.number for shot in shots()]
    for one, shot in zip(points, shots(), strict=True):
        assert one["geometry"]["coordinates"][:2] == pytest.approx([shot.longitude, shot.latitude], abs=1e-9)
    assert [one["geometry"]["type"] for one in features].count("LineString") == 1
