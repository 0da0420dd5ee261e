"""Samples give the messages that a plain walk found in them, for each size reading."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
import pytest

import logreel
from conftest import SHARED
from logreel.lenses import Image, Position, lenses
from support.oracles import koblenz as oracle

SAMPLES = SHARED / "data/koblenz"
NAMES = sorted(path.stem for path in SAMPLES.glob("*.log")) or ["none"]
PROBLEMS = {
    "k03_truncated": [("truncated", 171572, 1781)],
    "k04_wrong_index": [("index", 12, 8)],
    "k08_unknown_type_version_mark": [("invalid", 508, 49)],
}

pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="no samples of Koblenz logs beside the repository (LOGREEL_SHARED)"
)


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SAMPLES / f"expected/{name}.json").read_text(encoding="utf-8"))
    return found


def sample(name: str) -> bytes:
    return (SAMPLES / f"{name}.log").read_bytes()


def content_of(message: logreel.Message) -> dict[str, Any]:
    """Return the content of a message in the notation of the expected files."""
    kind, got = message.channel.schema.name, message.decode()
    if kind in ("OBDDataM", "GPSDataM"):
        renamed = {"speed": "speed_kmh"}
        return {renamed.get(k, k): v for k, v in got.items() if k != "rest"}
    if kind == "ImageM":
        data = got.pop("data")
        return {**got, "nbytes": len(data), "sha1": hashlib.sha1(data).hexdigest()}
    if kind == "LaserRange2DDataM":
        ranges = got["ranges"]
        return {
            "sensor_type": got["sensor_type"],
            "sensor_name": got["sensor_name"],
            "n": len(ranges),
            "first": ranges[:5],
            "last": ranges[-5:],
            "sum": sum(ranges),
            "sha1": hashlib.sha1(struct.pack(f"<{len(ranges)}I", *ranges)).hexdigest(),
        }
    if kind == "VelodyneRawDataM":
        raw = bytes(message.data)
        packets = [raw[4 + 1206 * i : 1210 + 1206 * i] for i in range(len(got["records"]))]
        return {
            "packets": len(packets),
            "sha1": [hashlib.sha1(p).hexdigest() for p in packets],
            "first_rotation": [record["blocks"][0]["azimuth"] for record in got["records"]],
            "flags": [[f"{block['flag']:04X}" for block in record["blocks"]] for record in got["records"]][
                :1
            ],
            "trailer": [
                struct.pack("<IBB", r["clock"], r["status_type"], r["status_value"]).hex()
                for r in got["records"]
            ],
        }
    return got


@pytest.mark.parametrize("name", NAMES)
def test_messages_equal_expected(name: str) -> None:
    want, log = expected(name), logreel.open(sample(name))
    base = want["header_bytes_counted_in_size"]
    got = {m.offset - 21: m for m in log.messages(order="file")}
    rows = [row for row in want["messages"] if row["mark"] == 0x49]
    assert sorted(got) == [row["at"] for row in rows]
    for row in rows:
        message = got[row["at"]]
        payload = bytes(message.data)
        assert len(payload) == row["payload_bytes"] == row["size_field"] - base
        assert message.time == round(row["timestamp_ms"] * 1e6)
        assert message.channel.metadata["type_id"] == row["type"]
        assert message.channel.metadata["version"] == row["version"]
        assert message.channel.schema.name == (row["name"] or row["type"])
        if "data" in row:
            assert content_of(message) == row["data"]
        if "extra_payload_bytes" in row:
            assert len(message.decode()["rest"]) == row["extra_payload_bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_file_properties_equal_expected(name: str) -> None:
    want, log = expected(name), logreel.open(sample(name))
    assert log.version == ".".join(map(str, want["version"]))
    assert log.epoch == "start"
    assert log.metadata["size_reading"] == {17: "A", 21: "B"}[want["header_bytes_counted_in_size"]]
    assert log.metadata["index_entries"] == want["index_size"]
    assert log.metadata.get("end_mark") == (26944 if name == "k02_end_mark" else None)
    assert [(p.code, p.offset, p.size) for p in log.problems] == PROBLEMS.get(name, [])
    times = [row["timestamp_ms"] for row in want["messages"]]
    assert (log.start, log.end) == (round(min(times) * 1e6), round(max(times) * 1e6))


@pytest.mark.parametrize("name", NAMES)
def test_plain_reader_agrees(name: str) -> None:
    want, found = expected(name), oracle.walk(sample(name))
    assert [row.at for row in found.rows] == [r["at"] for r in want["messages"] if r["mark"] == 0x49]


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_all_rows(name: str) -> None:
    log = logreel.open(sample(name))
    for ch in log.channels.values():
        table = ch.to_arrow()
        table.validate(full=True)
        assert table.num_rows >= len(ch) > 0
        assert ch.to_arrow(explode=False).num_rows == len(ch)


def test_two_scanners_of_one_type_are_two_channels() -> None:
    log = logreel.open(sample("k06_two_sensors_same_type"))
    assert [t for t in log.channels if t.startswith("Laser")] == [
        "LaserRange2DDataM/left",
        "LaserRange2DDataM/right",
    ]
    left = log["LaserRange2DDataM/left"]
    assert left.metadata["sensor_name"] == "left"
    assert (left.times == log["LaserRange2DDataM/right"].times).all()


def test_fixes_give_utc_and_position() -> None:
    log = logreel.open(sample("k01_all_six"))
    # 12:34:50 on 17 June 2010 at 2.5 ms.
    assert log.utc_offset == 1276778090 * 10**9 - 2_500_000
    assert str(log.table("OBDDataM", utc=True)["time"][0]).startswith("2010-06-17 12:34:49.99875")
    ch = log["GPSDataM"]
    (lens,) = lenses(ch)
    assert isinstance(lens, Position)
    lat, lon, alt = lens.track(ch)
    assert np.allclose([lat[0], lon[0], alt[0]], [50.3629, 7.5586, 92.5])


def test_pictures_are_complete() -> None:
    log = logreel.open(sample("k01_all_six"))
    ch = log["ImageM/1"]
    (lens,) = lenses(ch)
    assert isinstance(lens, Image)
    for picture in lens.pictures(ch):
        assert (picture.format, picture.width, picture.height) == ("jpeg", 32, 24)
        assert bytes(picture.data[:3]) == b"\xff\xd8\xff"
    assert not log.problems
