"""Figures of summaries of real flights against the rules of PX4's Flight Review, computed by pyulog and NumPy.

The rules are those of the page of a log there. The differences are explained in docs/howto/what-happened.md: Flight
Review takes the whole log where a summary takes the time in the air, and counts height in distances and speeds.
"""

from __future__ import annotations

import contextlib
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyulog import ULog

import logreel
from support.oracles.pyulog_values import flight

#: Logs with an estimated position, for collection without the folder.
LOGS = (
    "battery_brownout",
    "ekf_failure",
    "esc_status_log",
    "mcap_test_ulog",
    "quadrotor_local",
    "sample_log_small",
    "sample_px4_events",
)
Data = dict[str, Any]


@pytest.fixture(params=LOGS, scope="module")
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def peer(name: str, shared: Path) -> Any:
    return flight(shared / f"data/ulog/{name}.ulg")


@pytest.fixture(scope="module")
def found(name: str, shared: Path) -> logreel.Summary:
    return logreel.summary(shared / f"data/ulog/{name}.ulg")


def data_of(peer: Any, topic: str) -> Data:
    return dict(peer.get_dataset(topic).data)


def in_the_air(found: logreel.Summary, times_us: Any) -> Any:
    """Return bool[n]: whether each time is in one of the intervals that the summary states."""
    mask = np.zeros(len(times_us), bool)
    for start, end in found["flight"]["air"].value:
        mask |= (times_us.astype(np.int64) * 1000 >= start) & (times_us.astype(np.int64) * 1000 < end)
    return mask


def path_length(data: Data, valid: Any, axes: str, counter: Any = None) -> float:
    """Return the sum of the steps between messages that follow each other and are valid."""
    total = 0.0
    rows = np.flatnonzero(valid)
    for before, after in zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True):
        if after == before + 1 and (counter is None or counter[before] == counter[after]):
            total += math.sqrt(sum((float(data[a][after]) - float(data[a][before])) ** 2 for a in axes))
    return total


def test_distance_is_a_part_of_that_of_flight_review(found: logreel.Summary, peer: Any) -> None:
    data = data_of(peer, "vehicle_local_position")
    mask = in_the_air(found, data["timestamp"])
    level = mask & (data["xy_valid"] > 0)
    if not level.any():
        assert found["flight"]["distance"].value is None
        return
    if "distance" not in found["flight"]:
        assert np.count_nonzero(level) < 2
        return
    same_rule = path_length(data, level, "xy", data["xy_reset_counter"])
    assert found["flight"]["distance"].value == pytest.approx(same_rule, rel=1e-5, abs=1e-4)
    # With height, over the whole log, and with the jumps of resets it is longer.
    assert path_length(data, (data["xy_valid"] > 0) & (data["z_valid"] > 0), "xyz") >= same_rule - 1e-3


def test_height_is_at_most_that_of_flight_review(found: logreel.Summary, peer: Any) -> None:
    data = data_of(peer, "vehicle_local_position")
    mask = in_the_air(found, data["timestamp"]) & (data["z_valid"] > 0)
    if not mask.any():
        assert "height" not in found["flight"]
        return
    height = found["flight"]["height"].value
    assert height == pytest.approx(float(data["z"][mask].max() - data["z"][mask].min()), abs=1e-4)
    assert height <= float(data["z"].max() - data["z"].min()) + 1e-4


def test_speeds_are_those_of_flight_review_in_the_air(found: logreel.Summary, peer: Any) -> None:
    data = data_of(peer, "vehicle_local_position")
    air = in_the_air(found, data["timestamp"])
    level, upright = air & (data["v_xy_valid"] > 0), air & (data["v_z_valid"] > 0)
    speed = np.hypot(data["vx"].astype(float), data["vy"].astype(float))
    if level.any():
        value = found["flight"]["speed"].value
        assert value["max"] == pytest.approx(speed[level].max(), rel=1e-6)
        assert value["mean"] == pytest.approx(speed[level].mean(), rel=1e-6)
    else:
        assert "speed" not in found["flight"]
    if upright.any():
        value = found["flight"]["climb"].value
        assert value["up"] == pytest.approx(max(float(-data["vz"][upright].min()), 0), rel=1e-6)
        assert value["down"] == pytest.approx(max(float(data["vz"][upright].max()), 0), rel=1e-6)
    both = (data["v_xy_valid"] > 0) & (data["v_z_valid"] > 0)
    if level.any() and both.any():
        assert found["flight"]["speed"].value["max"] <= speed[data["v_xy_valid"] > 0].max() * (1 + 1e-9)


def test_tilt_is_that_of_flight_review_in_the_air(found: logreel.Summary, peer: Any) -> None:
    data = data_of(peer, "vehicle_attitude")
    if "q[0]" not in data:
        assert "tilt" not in found["flight"]
        return
    w, x, y, z = (data[f"q[{n}]"].astype(float) for n in range(4))
    roll = np.arctan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = np.arcsin(np.clip(2 * (w * y - z * x), -1, 1))
    tilt = np.degrees(np.arccos(np.clip(np.cos(roll) * np.cos(pitch), -1, 1)))
    air = in_the_air(found, data["timestamp"])
    assert found["flight"]["tilt"].value == pytest.approx(float(tilt[air].max()), abs=0.2)
    assert found["flight"]["tilt"].value <= tilt.max() + 0.2


def test_currents_are_those_of_flight_review(found: logreel.Summary, peer: Any) -> None:
    data = data_of(peer, "battery_status")
    current = data["current_a"].astype(float)
    if not (data["voltage_v"] >= 1).any():
        # A monitor without a battery; Flight Review leaves it out if the current is below 0.1 A.
        assert "battery_current" not in found["power"]
        assert current.max() < 0.1 or (data["voltage_v"] < 1).all()
        return
    key = "battery_1_current" if "battery_1_current" in found["power"] else "battery_current"
    if not (current > 0).any():
        # Not measured: in the simulator, the current is -1 A. Flight Review leaves it out below 0.1 A.
        assert key not in found["power"]
        return
    value = found["power"][key].value
    assert value["max"] == pytest.approx(current.max(), rel=1e-6)
    # Flight Review counts messages before the first measurement, -1 A or 0 A, in its mean.
    assert value["mean"] == pytest.approx(current[current > 0].mean(), rel=1e-6)


def test_the_time_flown_before_is_that_of_flight_review(found: logreel.Summary, peer: Any) -> None:
    high, low = (peer.initial_parameters.get(f"LND_FLIGHT_T_{part}") for part in ("HI", "LO"))
    if not high and not low:
        assert "life" not in found["vehicle"]
        return
    assert found["vehicle"]["life"].value == ((int(high) << 32) | (int(low) & 0xFFFFFFFF)) * 1000


def test_bounds_of_vibration_are_those_of_flight_review(shared: Path) -> None:
    """Flight Review draws bands in its plot: good below half of the acceleration of gravity, bad above all of it."""
    found = logreel.health(shared / "data/ulog/ekf_failure.ulg", "vibration")
    assert {one.threshold for one in found.detections} == {"4.9 m/s² for 3.0 s; above 9.8 m/s² an error"}
    with contextlib.redirect_stdout(io.StringIO()):
        peer = ULog(str(shared / "data/ulog/ekf_failure.ulg"), ["vehicle_imu_status"])
    worst = {one.topics[0]: one.evidence["metric"] for one in found.worse("error")}
    for number, topic in enumerate(("vehicle_imu_status", "vehicle_imu_status[1]")):
        metric = peer.get_dataset("vehicle_imu_status", number).data["accel_vibration_metric"]
        assert (metric.max() > 2 * 4.905) == (topic in worst)
