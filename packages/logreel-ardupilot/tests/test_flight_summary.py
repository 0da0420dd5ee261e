"""What is said of a flight: summary, bands, charts and faults, of DataFlash logs, text logs and telemetry logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tlogs
from dataflash_logs import Builder, flight, troubled
from text_logs import as_lines

import logreel
from logreel_ardupilot import DATAFLASH, TLOG

SECOND = 10**9


def summary_of(data: bytes) -> dict[str, dict[str, str]]:
    return {
        section.key: {fact.key: fact.text for fact in section}
        for section in logreel.summary(logreel.open(data)).sections
    }


@pytest.fixture(scope="module", params=["records", "lines"])
def log(request: pytest.FixtureRequest) -> logreel.Log:
    return logreel.open(troubled() if request.param == "records" else as_lines(troubled()))


def test_the_summary_of_a_flight(log: logreel.Log) -> None:
    sections = {s.key: {f.key: f for f in s} for s in logreel.summary(log).sections}
    texts = {key: {name: fact.text for name, fact in facts.items()} for key, facts in sections.items()}
    assert texts["vehicle"] == {"vehicle": "ArduCopter", "firmware": "ArduCopter V4.5.1 (abcdef01)"}
    assert texts["flight"] == {
        "armed": "30.0 s, 1 time",
        "air": "26.0 s",
        "modes": "RTL 19.9 s, LOITER 15.0 s, STABILIZE 5.0 s",
        # 390 steps of 1e-4 degrees; those between fixes that are lost are joined.
        "distance": "4.34 km",
        "speed": "up to 3.5 m/s",
        "height": "0.0 to 19.5 m above home",
        "load": "load up to 95 %",
    }
    assert sections["flight"]["load"].level == 4
    assert texts["failsafes"] == {
        "FAILSAFE_RADIO: triggered": "triggered at +20.0 s",
        "FAILSAFE_BATT: triggered": "triggered at +22.0 s",
        "FLIGHT_MODE: POSHOLD refused": "POSHOLD refused at +24.0 s",
    }
    assert [fact.level for fact in sections["failsafes"].values()] == [3, 3, 4]
    ratios = "highest test ratios: velocity 1.20, position 0.10, height 0.20, compass 0.40, airspeed 0.00"
    assert texts["estimator"] == {"XKF4[0]": ratios, "lanes": "to 1 at +18.0 s"}
    assert sections["estimator"]["XKF4[0]"].level == 3
    # What shook and clipped after disarming does not count.
    assert texts["vibration"] == {
        "VIBE[0]": "x 70.0 y 2.0 z 3.0 m/s/s at most, 7% of the time above 30, 3 clips",
        "VIBE[1]": "x 1.0 y 2.0 z 3.0 m/s/s at most, no clips",
    }
    assert texts["battery"] == {
        "BAT[0]": "16.00 V at first, 13.40 V at least, 13.40 V at last, up to 12.5 A, 780 mAh used, 61 % left"
    }
    assert texts["gps"] == {"GPS[0]": "3D fix 94% of the time, 4 to 12 satellites, HDOP up to 0.80"}
    assert texts["parameters"] == {
        "count": "2",
        "set": "1: BATT_LOW_VOLT",
        "changed": "1: WPNAV_SPEED",
    }


def test_bands_of_a_flight(log: logreel.Log) -> None:
    assert DATAFLASH.bands is not None
    read = [
        (band.kind, band.label, (band.start - SECOND) / SECOND, (band.end - SECOND) / SECOND)
        for band in DATAFLASH.bands(log)
    ]
    assert read == [
        ("mode", "STABILIZE", 0.0, 5.0),
        ("mode", "LOITER", 5.0, 20.0),
        ("mode", "RTL", 20.0, 39.9),
        ("armed", "Armed", 5.0, 35.0),
        ("air", "In the air", 6.0, 32.0),
        ("failsafe", "FAILSAFE_RADIO", 20.0, 22.0),
        ("failsafe", "FAILSAFE_BATT", 22.0, 39.9),
    ]


def faults(log: logreel.Log) -> dict[str, list[tuple[str, str, float]]]:
    found: dict[str, list[tuple[str, str, float]]] = {}
    for detection in logreel.health(log).detections:
        start = round((detection.start - (log.start or 0)) / SECOND, 1)
        found.setdefault(detection.detector, []).append((detection.severity, detection.text, start))
    return found


def test_faults_of_a_flight(log: logreel.Log) -> None:
    read = faults(log)
    assert read["failsafe"] == [
        ("error", "FAILSAFE_RADIO: triggered at +20.0 s", 20.0),
        ("error", "FAILSAFE_BATT: triggered at +22.0 s", 22.0),
        ("warn", "FLIGHT_MODE: POSHOLD refused at +24.0 s", 24.0),
    ]
    assert read["vibration"] == [("error", "VIBE[0]: vibration of 70 m/s/s at +10.0 s for 1.9 s", 10.0)]
    assert read["clipping"] == [("warn", "VIBE[0]: accelerometers clipped 3 times at +11.0 s", 11.0)]
    assert read["estimator"] == [
        ("error", "XKF4[0]: test ratio of velocity at 1.20 at +14.0 s for 4.9 s", 14.0),
        ("warn", "estimator 1 became the primary one at +18.0 s", 18.0),
    ]
    assert [(severity, start) for severity, _, start in read["battery"]] == [("error", 31.0)]
    assert read["satellites"] == [
        ("error", "GPS[0]: no 3D fix at +25.0 s for 1.0 s", 25.0),
        ("warn", "GPS[0]: 4 satellites, HDOP 0.8 at +29.0 s", 29.0),
    ]


def test_a_flight_without_trouble_has_no_faults() -> None:
    read = faults(logreel.open(troubled()[: len(troubled()) // 4]))
    assert set(read) <= {"gaps"}
    assert summary_of(flight())["failsafes"] == {"FAILSAFE_RADIO: triggered": "triggered at +0.7 s"}


def test_charts_name_fields_that_there_are(log: logreel.Log) -> None:
    assert DATAFLASH.charts is not None
    series = {(one.topic, one.field) for chart in DATAFLASH.charts(log) for one in chart.series}
    assert {("BAT", "Volt"), ("VIBE", "VibeZ"), ("XKF4", "SV"), ("POS", "RelHomeAlt")} <= series


def test_the_summary_of_a_telemetry_log() -> None:
    log = logreel.open(tlogs.flight())
    assert log.problems == ()
    texts = summary_of(tlogs.flight())
    assert texts["vehicle"] == {"vehicle": "ArduCopter", "firmware": "ArduCopter V4.5.1 (abcdef01)"}
    assert texts["flight"] == {
        "armed": "18.0 s, 1 time",
        "modes": "RTL 10.0 s, LOITER 8.0 s, STABILIZE 2.0 s",
        "distance": "2.21 km",
        "speed": "up to 3.5 m/s",
        "height": "0.0 to 19.9 m above home",
        "load": "load up to 30 %",
    }
    assert texts["failsafes"] == {"messages": "Radio Failsafe at +20.0 s"}
    assert texts["battery"]["1/1/SYS_STATUS"] == (
        "16.00 V at first, 14.01 V at least, 14.01 V at last, up to 12.5 A, 81 % left"
    )
    assert texts["gps"] == {"1/1/GPS_RAW_INT": "3D fix 89% of the time, 11 to 11 satellites, HDOP up to 1.21"}
    assert texts["vibration"] == {
        "1/1/VIBRATION": "x 40.0 y 2.0 z 1.0 m/s/s at most, 1% of the time above 30, 3 clips"
    }
    assert {name: p.value for name, p in log.parameters.items()} == {
        "BATT_LOW_VOLT": 13.5,
        "WPNAV_SPEED": 500.0,
    }
    assert [change.value for change in log.parameters["WPNAV_SPEED"].changes] == [600.0]
    assert TLOG.bands is not None
    assert [(band.kind, band.label) for band in TLOG.bands(log)] == [
        ("mode", "STABILIZE"),
        ("mode", "LOITER"),
        ("mode", "RTL"),
        ("armed", "Armed"),
    ]
    read: dict[str, Any] = faults(log)
    assert {name: [(s, at) for s, _, at in each] for name, each in read.items() if name != "gaps"} == {
        "failsafe": [("warn", 20.0)],
        "vibration": [("warn", 5.0)],
        "clipping": [("warn", 7.1)],
        "estimator": [("error", 6.0)],
        "satellites": [("error", 12.0)],
    }


@pytest.mark.parametrize(
    ("line", "vehicle"),
    [
        ("ArduCopter V4.5.1 (x)", "ArduCopter"),
        ("APM:Plane V3.5 (x)", "ArduPlane"),
        ("Rover V4.2", "ArduRover"),
        ("ArduSub V4.1", "ArduSub"),
        ("AntennaTracker V1.0", "AntennaTracker"),
        ("Compass cal", None),
    ],
)
def test_vehicles_are_named_by_their_firmware(line: str, vehicle: str | None) -> None:
    from logreel_ardupilot.meaning import firmware

    assert firmware([line]).get("vehicle") == vehicle


def test_modes_are_those_of_pymavlink() -> None:
    mavutil = pytest.importorskip("pymavlink.mavutil", reason="pymavlink is not installed")
    from logreel_ardupilot.meaning import MODES

    peers = {
        "ArduCopter": mavutil.mode_mapping_acm,
        "ArduPlane": mavutil.mode_mapping_apm,
        "ArduRover": mavutil.mode_mapping_rover,
        "ArduSub": mavutil.mode_mapping_sub,
        "AntennaTracker": mavutil.mode_mapping_tracker,
        "Blimp": mavutil.mode_mapping_blimp,
    }
    for vehicle, names in peers.items():
        ours = {number: name.replace("_", "") for number, name in MODES[vehicle].items()}
        assert ours.items() >= {number: name.replace("_", "") for number, name in names.items()}.items(), (
            vehicle
        )


@pytest.mark.parametrize("suffix", ["bin", "log"])
def test_what_is_redacted_is_gone(suffix: str, tmp_path: Path) -> None:
    path, out = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    builder = Builder()
    builder.add("MSG", 1_000_000, b"pilot: Jane Doe")
    path.write_bytes(troubled() + bytes(builder.out))
    if suffix == "log":
        path.write_bytes(as_lines(troubled() + bytes(builder.out)))
    logreel.edit(path, out, redact="all")
    old, new = logreel.open(path), logreel.open(out)
    assert (new.format, new.problems) == (old.format, ())
    assert old.utc_offset is not None
    assert new.utc_offset is None
    for topic in ("GPS", "POS"):
        assert abs(new[topic]["Lat"] - old[topic]["Lat"]).min() > 10**7
    assert b"Jane" in path.read_bytes()
    assert b"Jane" not in out.read_bytes()
    np.testing.assert_array_equal(new["VIBE"]["VibeX"], old["VIBE"]["VibeX"])


def test_factors_of_units_are_no_serial_numbers(tmp_path: Path) -> None:
    """Firmware writes factors that are float32 numbers, which have many decimals as float64."""
    builder = Builder()
    builder.add("MULT", 1_000_000, ord("F"), float(np.float32(1e-6)))
    path, out = tmp_path / "a.bin", tmp_path / "b.bin"
    path.write_bytes(bytes(builder.out) + troubled())
    done = logreel.edit(path, out, redact="all")
    assert "9.999999974752427e-07" in logreel.open(out)["GPS"].schema.text
    assert not any("serial" in item.what for item in done.may_identify)


def test_frames_with_positions_are_left_out_where_they_are_redacted(tmp_path: Path) -> None:
    path, out = tmp_path / "a.tlog", tmp_path / "b.tlog"
    path.write_bytes(tlogs.flight())
    logreel.edit(path, out, redact="position")
    assert {"1/1/GPS_RAW_INT", "1/1/GLOBAL_POSITION_INT"} == set(logreel.open(path).channels) - set(
        logreel.open(out).channels
    )
