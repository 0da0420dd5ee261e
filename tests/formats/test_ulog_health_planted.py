"""Detectors for flights of PX4: each fault planted into a sound flight is found where it is, the sound one has none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from support.harness.cli_runner import Run

SECOND = 10**9
#: A flight of 30 s at 20 Hz: armed from 2 s on, in the air from 4 to 27 s, disarmed at 29 s.
LENGTH, RATE = 30, 20
#: Topics and their fields, each with its type and its value in a sound flight; a tuple is noise: mean and deviation.
SOUND: dict[str, dict[str, tuple[str, Any]]] = {
    "vehicle_status": {
        "arming_state": ("uint8_t", 2),
        "nav_state": ("uint8_t", 2),
        "failsafe": ("bool", 0),
        "rc_signal_lost": ("bool", 0),
    },
    "vehicle_land_detected": {"landed": ("bool", 0)},
    "battery_status": {"voltage_v": ("float", (15.6, 0.05)), "cell_count": ("uint8_t", 4)},
    "system_power": {"voltage5v_v": ("float", (5.0, 0.01))},
    "sensor_gps": {
        "fix_type": ("uint8_t", 3),
        "jamming_state": ("uint8_t", 1),
        "spoofing_state": ("uint8_t", 1),
        "jamming_indicator": ("int32_t", 40),
    },
    "estimator_status": {"pos_test_ratio": ("float", (0.2, 0.05)), "vel_test_ratio": ("float", (0.1, 0.02))},
    "estimator_status_flags": {"fs_bad_acc_vertical": ("bool", 0)},
    "vehicle_imu_status": {
        "accel_vibration_metric": ("float", (1.0, 0.1)),
        "delta_angle_coning_metric": ("float", 0.0),
    },
    "failure_detector_status": {"fd_motor": ("bool", 0)},
    "sensor_accel": {"x": ("float", (0, 0.3)), "y": ("float", (0, 0.3)), "z": ("float", (-9.8, 0.3))},
    "sensor_baro": {"pressure": ("float", (101325, 3))},
    "sensor_combined": {"gyro_rad": ("float[3]", (0, 0.1)), "accelerometer_m_s2": ("float[3]", (0, 0.3))},
}
#: Topic, field, value, first and last second, detector, severity; None as value: what was measured at first.
FAULTS = [
    ("battery_status", "voltage_v", 12.4, 10, 14, "brown-out", "error"),
    ("battery_status", "voltage_v", 0.1, 0, 30, "brown-out", "error"),
    ("system_power", "voltage5v_v", 4.5, 10, 14, "brown-out", "error"),
    ("system_power", "voltage5v_v", 4.5, 0, 1.5, "brown-out", "warn"),
    ("sensor_gps", "fix_type", 0, 10, 14, "gnss-interference", "error"),
    ("sensor_gps", "jamming_state", 2, 10, 14, "gnss-interference", "warn"),
    ("sensor_gps", "spoofing_state", 3, 10, 14, "gnss-interference", "warn"),
    ("sensor_gps", "jamming_indicator", 120, 10, 14, "gnss-interference", "warn"),
    ("estimator_status", "pos_test_ratio", 1.7, 10, 14, "estimator", "warn"),
    ("estimator_status_flags", "fs_bad_acc_vertical", 1, 10, 14, "estimator", "error"),
    ("vehicle_imu_status", "accel_vibration_metric", 6.0, 10, 15, "vibration", "warn"),
    ("vehicle_imu_status", "accel_vibration_metric", 15.0, 10, 15, "vibration", "error"),
    ("failure_detector_status", "fd_motor", 1, 10, 14, "motor-loss", "error"),
    ("vehicle_status", "rc_signal_lost", 1, 10, 14, "rc-loss", "warn"),
    ("vehicle_status", "failsafe", 1, 10, 14, "failsafe", "error"),
    ("sensor_accel", "", None, 10, 14, "frozen-sensor", "error"),
    ("sensor_baro", "", None, 10, 14, "frozen-sensor", "error"),
    ("sensor_combined", "gyro_rad", [0.1, 0.2, 0.3], 10, 14, "frozen-sensor", "error"),
    ("vehicle_land_detected", "landed", 0, 27, 30, "brown-out", "warn"),
]
#: Faults that are too short, too small, or outside of the flight.
NO_FAULTS = [
    ("battery_status", "voltage_v", 13.4, 10, 14),
    ("vehicle_imu_status", "accel_vibration_metric", 15.0, 27.2, 29),
    ("vehicle_imu_status", "accel_vibration_metric", 15.0, 10, 12),
    ("vehicle_status", "rc_signal_lost", 1, 0, 1.5),
    ("sensor_gps", "fix_type", 0, 0, 3),
    ("sensor_gps", "jamming_indicator", 70, 10, 14),
    ("estimator_status", "pos_test_ratio", 0.99, 10, 14),
    ("sensor_accel", "", None, 10, 10.6),
]


def _noise(random: np.random.Generator, kind: str, usual: tuple[float, float]) -> Any:
    return random.normal(*usual, size=3).tolist() if kind.endswith("]") else random.normal(*usual)


def written(
    path: Path, topic: str = "", field: str = "", value: Any = None, first: float = 0, last: float = 0
) -> Path:
    """Write a flight with one fault; an empty *field* stands for all of the topic."""
    random = np.random.default_rng(7)
    kept: dict[str, Any] = {}
    with logreel.create(path) as writer:
        channels = {}
        for name, fields in SOUND.items():
            text = "uint64_t timestamp;" + "".join(f"{kind} {one};" for one, (kind, _) in fields.items())
            channels[name] = writer.add_channel(name, logreel.Schema(name, "ulog", f"{name}:{text}"))
        for n in range(LENGTH * RATE + 1):
            seconds = n / RATE
            time = SECOND + n * SECOND // RATE
            for name, fields in SOUND.items():
                values: dict[str, Any] = {
                    one: _noise(random, kind, usual) if isinstance(usual, tuple) else usual
                    for one, (kind, usual) in fields.items()
                }
                if name == "vehicle_status" and not 2 <= seconds < 29:
                    values["arming_state"] = 1
                if name == "vehicle_land_detected" and not 4 <= seconds < 27:
                    values["landed"] = 1
                if name == "vehicle_status" and topic == "vehicle_land_detected" and seconds >= 2:
                    # The vehicle stays armed in a log that ends in the air.
                    values["arming_state"] = 2
                if name == topic and first <= seconds < last + (last == LENGTH):
                    kept = kept or values
                    values = dict(kept) if not field else {**values, field: value}
                writer.write(channels[name], time, {"timestamp": time // 1000, **values})
    return path


def test_a_sound_flight_has_no_finding_and_every_detector_for_flights_looked(tmp_path: Path) -> None:
    found = logreel.health(written(tmp_path / "sound.ulg"))
    assert found.detections == ()
    looked = {name for name, _ in found.clean}
    assert looked >= {detector for *_, detector, _ in FAULTS}
    assert all(text for _, text in (*found.clean, *found.not_assessed))


@pytest.mark.parametrize(
    ("topic", "field", "value", "first", "last", "detector", "severity"),
    FAULTS,
    ids=lambda value: str(value).replace(" ", "_"),
)
def test_a_planted_fault_of_a_flight_is_found_where_it_is(
    tmp_path: Path,
    topic: str,
    field: str,
    value: Any,
    first: float,
    last: float,
    detector: str,
    severity: str,
) -> None:
    found = logreel.health(written(tmp_path / "fault.ulg", topic, field, value, first, last))
    serious = found.worse("warn")
    assert [(one.detector, one.severity) for one in serious] == [(detector, severity)]
    (one,) = serious
    start, end = (SECOND + round(seconds * SECOND) for seconds in (first, last))
    if topic == "vehicle_land_detected":
        start = end
    if value == 0.1:
        # No battery: what counts is the time in the air.
        start, end = SECOND + 4 * SECOND, SECOND + 27 * SECOND
    assert one.start == pytest.approx(start, abs=0.2 * SECOND)
    assert one.end == pytest.approx(end, abs=0.2 * SECOND)
    assert one.topics == (topic,)
    assert one.evidence
    assert one.threshold
    assert one.source


@pytest.mark.parametrize(
    ("topic", "field", "value", "first", "last"), NO_FAULTS, ids=lambda value: str(value).replace(" ", "_")
)
def test_what_is_no_fault_of_a_flight_is_not_found(
    tmp_path: Path, topic: str, field: str, value: Any, first: float, last: float
) -> None:
    found = logreel.health(written(tmp_path / "sound.ulg", topic, field, value, first, last))
    assert found.worse("warn") == []


def esc(path: Path, still: Callable[[float, int], bool], count: int = 4) -> Path:
    """Write a flight with speeds of four motors, of which some stand still; *count* are said to report."""
    parts = "uint64_t timestamp;uint8_t esc_count;esc_report[8] esc;"
    with logreel.create(path) as writer:
        text = f"esc_status:{parts}\nesc_report:int32_t esc_rpm;float esc_voltage;"
        motors = writer.add_channel("esc_status", logreel.Schema("esc_status", "ulog", text))
        land = writer.add_channel(
            "vehicle_land_detected",
            logreel.Schema(
                "vehicle_land_detected", "ulog", "vehicle_land_detected:uint64_t timestamp;bool landed;"
            ),
        )
        for n in range(LENGTH * RATE):
            seconds, time = n / RATE, SECOND + n * SECOND // RATE
            rpm = [0 if k >= 4 or still(seconds, k) else 4000 + 10 * k for k in range(8)]
            report = [{"esc_rpm": one, "esc_voltage": 15.0} for one in rpm]
            writer.write(motors, time, {"timestamp": time // 1000, "esc_count": count, "esc": report})
            writer.write(land, time, {"timestamp": time // 1000, "landed": int(not 4 <= seconds < 27)})
    return path


def test_a_motor_that_stops_in_the_air_is_found_and_one_on_the_ground_is_not(tmp_path: Path) -> None:
    (one,) = logreel.health(
        esc(tmp_path / "a.ulg", lambda s, k: k == 2 and 10 <= s < 12), "motor-loss"
    ).detections
    assert one.text.startswith("motor 3 stands still")
    assert (one.start, one.end) == (
        pytest.approx(SECOND + 10 * SECOND, abs=0.1 * SECOND),
        pytest.approx(SECOND + 12 * SECOND, abs=0.1 * SECOND),
    )
    found = logreel.health(esc(tmp_path / "b.ulg", lambda s, k: k == 2 and s < 3), "motor-loss")
    assert found.detections == ()
    assert [name for name, _ in found.clean] == ["motor-loss"]


def test_outputs_without_telemetry_leave_motors_unassessed(tmp_path: Path) -> None:
    found = logreel.health(esc(tmp_path / "pwm.ulg", lambda s, k: False, count=0))
    assert found.failed == ()
    assert "motor-loss" in dict(found.not_assessed)


def test_interference_is_not_assessed_where_no_fix_was_ever_there(tmp_path: Path) -> None:
    found = logreel.health(written(tmp_path / "indoors.ulg", "sensor_gps", "fix_type", 0, 0, LENGTH))
    assert "never has a 3D fix" in dict(found.not_assessed)["gnss-interference"]
    assert "gnss-interference" not in dict(found.clean)


def test_a_real_flight_indoors_has_no_sound_satellites(shared: Path) -> None:
    found = logreel.health(shared / "data/ulog/quadrotor_local.ulg", "gnss-interference")
    assert [name for name, _ in found.not_assessed] == ["gnss-interference"]


def test_topics_that_end_with_the_flight_are_no_silent_sensors(tmp_path: Path, shared: Path) -> None:
    found = logreel.health(shared / "data/ulog/ekf_failure.ulg", "silent-sensor")
    assert found.detections == ()
    for last, count in ((27, 0), (20, 1)):
        path = tmp_path / f"{last}.ulg"
        with logreel.create(path) as writer:
            texts = {"vehicle_land_detected": "bool landed", "hover_thrust_estimate": "float hover_thrust"}
            channels = {
                name: writer.add_channel(
                    name, logreel.Schema(name, "ulog", f"{name}:uint64_t timestamp;{text};")
                )
                for name, text in texts.items()
            }
            for n in range(LENGTH * RATE):
                seconds, time = n / RATE, SECOND + n * SECOND // RATE
                stamp = {"timestamp": time // 1000}
                land = {**stamp, "landed": int(not 4 <= seconds < 27)}
                writer.write(channels["vehicle_land_detected"], time, land)
                if 4 <= seconds < last:
                    writer.write(channels["hover_thrust_estimate"], time, {**stamp, "hover_thrust": n / 1000})
        assert len(logreel.health(path, "silent-sensor").detections) == count


def test_other_aircraft_and_a_home_that_is_set_anew_are_no_jumps(tmp_path: Path) -> None:
    path = tmp_path / "traffic.ulg"
    kinds = {
        "transponder_report": "uint64_t timestamp;uint32_t icao_address;double lat;double lon;",
        "home_position": "uint64_t timestamp;double lat;double lon;",
        "vehicle_global_position": "uint64_t timestamp;double lat;double lon;",
    }
    with logreel.create(path) as writer:
        channels = {
            name: writer.add_channel(name, logreel.Schema(name, "ulog", f"{name}:{text}"))
            for name, text in kinds.items()
        }
        for n in range(100):
            time = SECOND + n * SECOND // 10
            place = {"timestamp": time // 1000, "lat": 47.0 + n * 1e-6, "lon": 8.0}
            other = {**place, "icao_address": n % 3, "lat": 47.0 + n % 3}
            writer.write(channels["vehicle_global_position"], time, place)
            writer.write(channels["transponder_report"], time, other)
            if n % 50 == 0:
                writer.write(channels["home_position"], time, {**place, "lat": 46.0 + n})
    assert logreel.health(path, "position-jumps").worse("note") == []
    assert "transponder_report" not in logreel.report(path).html.split("What happened")[0]


def test_slice_lines_of_planted_faults_work_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    path = written(tmp_path / "fault.ulg", "sensor_gps", "fix_type", 0, 10, 14)
    monkeypatch.chdir(tmp_path)
    (line,) = [row.strip() for row in run("health", path).out.splitlines() if "logreel slice" in row]
    words = line.split()
    assert run(*words[1:]).code == 0
    with logreel.open(words[-1]) as part:
        assert (part.start or 0) / SECOND == pytest.approx(1 + 10 - 2, abs=0.3)
        assert (part.end or 0) / SECOND == pytest.approx(1 + 14 + 2, abs=0.3)
        assert not part["sensor_gps"]["fix_type"].all()
