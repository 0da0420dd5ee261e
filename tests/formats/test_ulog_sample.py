"""The ULog builder and its two logs, against pyulog and the oracle."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
from pathlib import Path

import numpy as np
import pytest

from support.oracles import ulog as ulog_oracle
from support.oracles.pyulog_values import assert_same, load
from support.samples.ulog import builder, tables
from support.samples.ulog import rows as sample_rows
from support.samples.ulog.builder import Builder


@pytest.fixture(scope="module")
def flight() -> bytes:
    return builder.flight()


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (Builder().raw("z", b"ab"), "02 00 7a 61 62"),
        (Builder().raw("D", b"ab", size=9), "09 00 44 61 62"),
        (Builder().junk(b"\xfe"), "fe"),
        (Builder().format("a:int8_t b;"), "0b 00 46 61 3a 69 6e 74 38 5f 74 20 62 3b"),
        (Builder().info("k", "ab"), "0c 00 49 09 63 68 61 72 5b 32 5d 20 6b 61 62"),
        (Builder().info("k", "µ"), "0c 00 49 09 63 68 61 72 5b 32 5d 20 6b c2 b5"),
        (Builder().info("k", b"\x05"), "0e 00 49 0c 75 69 6e 74 38 5f 74 5b 31 5d 20 6b 05"),
        (Builder().info("bool k", b"\x01"), "08 00 49 06 62 6f 6f 6c 20 6b 01"),
        (Builder().info_multiple("k", "a", True), "0c 00 4d 01 09 63 68 61 72 5b 31 5d 20 6b 61"),
        (Builder().parameter("k", -2), "0e 00 50 09 69 6e 74 33 32 5f 74 20 6b fe ff ff ff"),
        (Builder().parameter("k", 0.5), "0c 00 50 07 66 6c 6f 61 74 20 6b 00 00 00 3f"),
        (Builder().default_parameter("k", 0.5, 2), "0d 00 51 02 07 66 6c 6f 61 74 20 6b 00 00 00 3f"),
        (Builder().subscribe("ab", 258, 3), "05 00 41 03 02 01 61 62"),
        (Builder().unsubscribe(258), "02 00 52 02 01"),
        (Builder().data(258, b"\x07"), "03 00 44 02 01 07"),
        (Builder().text(6, 1, "a"), "0a 00 4c 36 01 00 00 00 00 00 00 00 61"),
        (Builder().tagged(3, 258, 1, "a"), "0c 00 43 33 02 01 01 00 00 00 00 00 00 00 61"),
        (Builder().sync(), "08 00 53 2f 73 13 20 25 0c bb 12"),
        (Builder().dropout(258), "02 00 4f 02 01"),
    ],
)
def test_builder_records_are_byte_exact(built: Builder, expected: str) -> None:
    header = bytes.fromhex("55 4c 6f 67 01 12 35 01") + bytes(8)
    assert built.bytes() == header + bytes.fromhex(expected)


def test_builder_flags_and_appended_offsets() -> None:
    out = Builder(start_us=7).flags(compat=1, extra=b"\xaa").append_part().sync().append_part()
    data = out.bytes()
    assert data[8:19] == bytes.fromhex("07 00 00 00 00 00 00 00 29 00 42")
    assert (data[19], data[27]) == (1, 1)
    assert [int.from_bytes(data[at : at + 8], "little") for at in (35, 43, 51)] == [60, 71, 0]
    assert data[59] == 0xAA
    with pytest.raises(ValueError, match="three offsets"):
        out.append_part().append_part()


def test_tiny_log_contains_every_kind() -> None:
    data = builder.tiny()
    log = ulog_oracle.read(data)
    assert len(data) < 2500
    assert set(log.types) == set("BFIMPQARDLCSO")
    assert not log.lost
    assert log.counts == {
        "pair": 8,
        "rate": 8,
        "rate[1]": 8,
        "note": 1,
    }
    assert log.topics["pair"][2] == {
        "timestamp": 1_020_000,
        "flag": 1,
        "cells[0].volt": 4.0,
        "cells[0].id": 1,
        "cells[1].volt": 4.125,
        "cells[1].id": 2,
    }
    assert log.topics["note"][0]["text"] == "hi"
    assert log.info_multiple["console"] == [[b"first part, ", b"second part", b"third part"]]
    assert log.defaults == {0: {"GAIN": 0.25, "MODE": 1}, 1: {"GAIN": 0.25}}
    assert log.changes == [(1_040_007, "MODE", 4)]
    assert log.texts[1] == (4, 7, 1_020_009, "check the belt")


@pytest.mark.parametrize("seconds", [0, 0.5, 7, 60])
def test_oracle_and_pyulog_read_the_same(seconds: float) -> None:
    data = builder.flight(seconds) if seconds else builder.tiny()
    peer = load(data)
    assert not peer.file_corruption
    assert_same(ulog_oracle.read(data), peer)


def test_flight_depends_on_seed_only(flight: bytes) -> None:
    assert builder.flight() == flight
    assert builder.flight(2, seed=2) != builder.flight(2)
    assert 1_000_000 < len(flight) < 4_000_000


def test_flight_has_topics_of_full_log(flight: bytes) -> None:
    log = ulog_oracle.read(flight)
    assert not log.lost
    assert log.compat == 1
    assert [ms for _, ms in log.dropouts] == [ms for _, ms in sample_rows.DROPOUTS]
    rates = {topic: count / 60 for topic, count in log.counts.items()}
    assert rates["sensor_combined"] == max(rates.values()) == pytest.approx(250, rel=0.01)
    assert rates["cpuload"] == pytest.approx(1, rel=0.05)
    assert {"sensor_accel", "sensor_accel[1]", "camera_trigger"} <= set(log.counts)
    assert "vehicle_command_ack" not in log.counts  # subscribed, never written
    assert len(log.parameters) >= 60
    assert set(log.defaults[0]) & set(log.defaults[1])
    assert {level for level, *_ in log.texts} == {3, 4, 5, 6, 7}
    assert sum(tag is not None for _, tag, _, _ in log.texts) == 1
    assert log.types["S"] == 120
    assert [rows[0].time < log.start_us for topic, rows in log.segments[0].records.items()].count(True) == 1
    assert flight.rfind(b"perf_counter_postflight") > len(flight) - 200


def test_flight_records_omit_trailing_padding_only(flight: bytes) -> None:
    log = ulog_oracle.read(flight)
    for topic, rows in log.segments[0].records.items():
        name = topic.partition("[")[0]
        kind = sample_rows.record_type(name, tables.FORMATS)
        last = (kind.names or ())[-1]
        dropped = kind[last].itemsize if last.startswith("_padding") else 0
        assert {len(row.payload) for row in rows} == {kind.itemsize - dropped}


def test_flight_formats_are_aligned_as_in_c() -> None:
    def alignment(kind: np.dtype[np.void]) -> int:
        if kind.subdtype:
            return alignment(kind.subdtype[0])
        if kind.names:
            return max(alignment(kind[name]) for name in kind.names)
        return 1 if kind.kind == "S" else kind.itemsize

    for name in tables.FORMATS:
        kind = sample_rows.record_type(name, tables.FORMATS)
        assert kind.itemsize % 8 == 0, name
        for field in kind.names or ():
            assert kind.fields is not None
            assert kind.fields[field][1] % alignment(kind[field]) == 0, (name, field)


def test_flight_motion_is_physical(flight: bytes) -> None:
    topics = ulog_oracle.read(flight).topics
    q = np.array([[row[f"q[{i}]"] for i in range(4)] for row in topics["vehicle_attitude"]])
    assert np.allclose(np.linalg.norm(q, axis=1), 1, atol=1e-6)
    tilt = np.degrees(np.arccos(1 - 2 * (q[:, 1] ** 2 + q[:, 2] ** 2)))
    assert 15 < tilt.max() < 40
    height = np.array([-row["z"] for row in topics["vehicle_local_position"]])
    assert 11.5 < height.max() < 12.5
    assert abs(height[0]) < 0.2
    assert abs(height[-1]) < 0.2
    still = np.array([row["accelerometer_m_s2[2]"] for row in topics["sensor_combined"][:200]])
    assert still.mean() == pytest.approx(-9.80665, abs=0.01)
    place = topics["vehicle_global_position"]
    assert {round(row["lat"], 2) for row in place} == {47.90}
    charge = [row["remaining"] for row in topics["battery_status"]]
    assert charge == sorted(charge, reverse=True)


def test_flight_gps_gives_utc(flight: bytes) -> None:
    rows = ulog_oracle.read(flight).topics["sensor_gps"]
    assert {row["time_utc_usec"] - row["timestamp"] for row in rows} == {sample_rows.BOOT_UTC_US}
    assert all(row["fix_type"] == 3 for row in rows)


def test_flight_console_part_cuts_character(flight: bytes) -> None:
    (parts,) = ulog_oracle.read(flight).info_multiple["boot_console_output"]
    assert b"".join(parts).decode() == tables.BOOT_CONSOLE
    with pytest.raises(UnicodeDecodeError):
        [part.decode() for part in parts]


def test_flight_events_have_definitions(flight: bytes) -> None:
    log = ulog_oracle.read(flight)
    (parts,) = log.info_multiple["metadata_events"]
    packed = b"".join(parts)
    assert len(parts) > 1
    assert hashlib.sha256(packed).hexdigest() == log.infos["metadata_events_sha256"]
    component = json.loads(lzma.decompress(packed))["components"]["1"]
    known = {int(n) for group in component["event_groups"].values() for n in group["events"]}
    assert {row["id"] & 0xFFFFFF for row in log.topics["event"]} <= known

    events = pytest.importorskip("pyulog.px4_events")
    said = [(str(level), text) for _, level, text in events.PX4Events().get_logged_events(load(flight))]
    assert said[:3] == [
        ("INFO", "Writing log 2025-5-17/8_42_20.ulg"),
        ("INFO", "Motors armed by remote control switch"),
        ("INFO", "Climbing to 12.0 m above the ground"),
    ]
    assert ("WARNING", "Battery at 89% after 0.51 minutes; BAT_LOW_THR warns") in said


def test_sample_builder_needs_only_numpy() -> None:
    folder = Path(builder.__file__).parent
    for path in folder.glob("sample*.py"):
        for line in path.read_text().splitlines():
            if line.startswith(("import logreel", "from logreel")):
                assert line.split()[1].startswith("logreel.formats.ulog"), (path.name, line)
                assert "sample" in line, (path.name, line)


def test_pyulog_copy_of_flight_has_same_values() -> None:
    out = io.BytesIO()
    load(builder.tiny()).write_ulog(out)
    again, first = ulog_oracle.read(out.getvalue()), ulog_oracle.read(builder.tiny())
    assert again.topics["pair"] == first.topics["pair"]
    assert again.parameters == first.parameters
