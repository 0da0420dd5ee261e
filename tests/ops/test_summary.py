"""Summaries of recordings: against other readers, naive computations, and logs with planted faults."""

from __future__ import annotations

import importlib
import io
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyulog import ULog

import logreel
from logreel.lenses.base import Columns, columns
from logreel.meaning.tracks import distances
from support.builders.contents import SAMPLES
from support.builders.vehicles import plane, rover
from support.formats import sample_log
from support.samples.ulog.builder import flight

SECOND = 10**9
#: Fields of the topics that the planted faults are in; each is written with these defaults.
TOPICS: dict[str, dict[str, tuple[str, float]]] = {
    "vehicle_status": {"arming_state": ("uint8_t", 2), "nav_state": ("uint8_t", 2), "failsafe": ("bool", 0)},
    "vehicle_land_detected": {"landed": ("bool", 0)},
    "battery_status": {
        "voltage_v": ("float", 16.0),
        "remaining": ("float", 0.9),
        "warning": ("uint8_t", 0),
        "cell_count": ("uint8_t", 4),
    },
    "sensor_gps": {
        "fix_type": ("uint8_t", 3),
        "satellites_used": ("uint8_t", 14),
        "jamming_state": ("uint8_t", 1),
    },
    "estimator_status": {"pos_test_ratio": ("float", 0.1), "vel_test_ratio": ("float", 0.1)},
    "estimator_status_flags": {"fs_bad_acc_vertical": ("bool", 0)},
    "vehicle_imu_status": {
        "accel_vibration_metric": ("float", 0.5),
        "delta_angle_coning_metric": ("float", 0.0),
    },
    "failsafe_flags": {"mode_req_attitude": ("bool", 1), "mission_failure": ("bool", 0)},
    "failure_detector_status": {"fd_roll": ("bool", 0)},
    "cpuload": {"load": ("float", 0.4)},
}
#: One change each, between second 5 and 8 of ten: topic, field, value, and section and key of the finding.
FAULTS = [
    ("vehicle_status", "failsafe", 1, "safety", "failsafe"),
    ("battery_status", "warning", 2, "power", "battery_warning"),
    ("sensor_gps", "fix_type", 0, "gnss", "fix"),
    ("sensor_gps", "jamming_state", 3, "gnss", "jamming"),
    ("estimator_status", "pos_test_ratio", 1.5, "estimator", "rejected"),
    ("estimator_status_flags", "fs_bad_acc_vertical", 1, "estimator", "faults"),
    ("vehicle_imu_status", "accel_vibration_metric", 50.0, "vibration", "accelerometer_0"),
    ("failsafe_flags", "mission_failure", 1, "safety", "conditions"),
    ("failure_detector_status", "fd_roll", 1, "safety", "failures"),
    ("cpuload", "load", 3.0, "safety", "load"),
]


def planted(path: Path, topic: str = "", field: str = "", value: float = 0) -> Path:
    """Write a flight of ten seconds at 10 Hz with one change in it."""
    with logreel.create(path) as writer:
        channels = {}
        for name, fields in TOPICS.items():
            text = "uint64_t timestamp;" + "".join(f"{kind} {one};" for one, (kind, _) in fields.items())
            channels[name] = writer.add_channel(name, logreel.Schema(name, "ulog", f"{name}:{text}"))
        for n in range(100):
            time = SECOND + n * SECOND // 10
            for name, fields in TOPICS.items():
                values: dict[str, Any] = {one: default for one, (_, default) in fields.items()}
                if name == topic and 50 <= n < 80:
                    values[field] = value
                writer.write(channels[name], time, {"timestamp": time // 1000, **values})
    return path


def test_a_sound_flight_has_no_finding(tmp_path: Path) -> None:
    found = logreel.summary(planted(tmp_path / "sound.ulg"))
    assert found.findings == []
    assert found["safety"]["failsafe"].text == "none"


@pytest.mark.parametrize(("topic", "field", "value", "section", "key"), FAULTS)
def test_a_planted_fault_is_found_and_nothing_else(
    tmp_path: Path, topic: str, field: str, value: float, section: str, key: str
) -> None:
    found = logreel.summary(planted(tmp_path / "fault.ulg", topic, field, value))
    assert [(one.key, fact.key) for one, fact in found.findings] == [(section, key)]


def test_facts_of_a_flight_are_those_of_a_plain_computation() -> None:
    found = logreel.summary(flight())
    peer = ULog(io.BytesIO(flight()))
    battery = peer.get_dataset("battery_status").data
    assert found["power"]["battery_voltage"].value["min"] == pytest.approx(float(battery["voltage_v"].min()))
    gnss = peer.get_dataset("sensor_gps").data["satellites_used"]
    assert found["gnss"]["satellites"].value == {"min": int(gnss.min()), "max": int(gnss.max())}

    status = peer.get_dataset("vehicle_status").data
    states = list(zip(status["timestamp"].tolist(), status["arming_state"].tolist(), strict=True))
    begin = next(time for time, state in states if state == 2)
    end = next(time for time, state in states if state != 2 and time > begin)
    assert found["flight"]["armed"].value == [[begin * 1000, end * 1000]]

    landed = peer.get_dataset("vehicle_land_detected").data
    places = peer.get_dataset("vehicle_local_position").data
    length, last = 0.0, None
    for time, x, y in zip(*(places[name].tolist() for name in ("timestamp", "x", "y")), strict=True):
        before = [n for n, moment in enumerate(landed["timestamp"].tolist()) if moment <= time]
        if not before or landed["landed"][before[-1]]:
            last = None
            continue
        if last is not None:
            length += math.hypot(x - last[0], y - last[1])
        last = x, y
    assert found["flight"]["distance"].value == pytest.approx(length, rel=1e-6)


def test_bands_and_fields_of_a_flight_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("logreel.formats.ulog.meaning.flight")
    fields, logs = Counter[str](), list[str]()

    def counted(ch: logreel.Channel, paths: tuple[str, ...]) -> Columns:
        fields.update(f"{ch.topic}.{path}" for path in paths)
        return columns(ch, paths)

    def noted(log: logreel.Log, read: Any = module._read_bands) -> Any:
        logs.append(log.name)
        return read(log)

    monkeypatch.setattr("logreel.lenses.facts.columns", counted)
    monkeypatch.setattr(module, "_read_bands", noted)
    with logreel.open(flight(10.0, 1)) as log:
        assert logreel.summary(log).bands
        assert [*module.bands(log)] == [*module.bands(log)]
    assert len(logs) == 1
    once = {
        name: n for name, n in fields.items() if name.startswith(("battery_status.", "estimator_status."))
    }
    assert len(once) > 2
    assert set(once.values()) == {1}


def test_modes_have_names_and_fill_the_flight() -> None:
    found = logreel.summary(flight())
    modes = found["flight"]["modes"].value
    assert set(modes) == {"Mission", "Position", "Land"}
    assert {band.label for band in found.bands if band.kind == "mode"} == set(modes)
    assert sum(modes.values()) == pytest.approx(found.end_ns - found.start_ns, rel=0.01)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_each_sample_has_a_summary_in_three_forms(name: str) -> None:
    with logreel.open(SAMPLES[name]()) as log:
        found = logreel.summary(log)
        assert found["recording"]["messages"].value == sum(
            len(ch) for ch in log.channels.values() if not ch.reserved
        )
    data = json.loads(json.dumps(found.as_dict()))
    assert [section["key"] for section in data["sections"]] == [section.key for section in found]
    table = found.table()
    assert table.num_rows == sum(len(section.facts) for section in found)
    assert len({section.key for section in found}) == len(found.sections)
    for section in found:
        assert len({fact.key for fact in section}) == len(section.facts)
        assert section.key in found
        for fact in section:
            assert fact.text
            assert fact.label
            assert section[fact.key] is fact
            assert fact.key in section


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_cut_log_has_a_summary_and_says_what_is_lost(name: str) -> None:
    data = SAMPLES[name]()
    for size in range(len(data) // 20, len(data), len(data) // 20):
        try:
            with logreel.open(data[:size]) as log:
                found = logreel.summary(log)
                assert ("problems" in found["recording"]) == bool(log.problems)
        except logreel.LogError:
            pass


def test_collisions_and_speeds_of_a_drive_are_those_of_the_simulator() -> None:
    with logreel.open(sample_log("carla")) as log:
        found = logreel.summary(log)
        answer = logreel.carla.collisions(log, correct=True)
        pairs = {
            (time, frozenset((one, other)))
            for time, one, other in zip(
                *(np.asarray(answer.columns[key]).tolist() for key in ("time_ns", "id1", "id2")), strict=True
            )
        }
        assert found["events"]["collisions"].value == len(pairs)
        metrics = logreel.carla.MetricsLog(log)
        for actor in log.actors.values():
            if actor.type == "vehicle" and f"vehicle_{actor.id}" in found["actors"]:
                velocity = metrics.get_all_actor_velocities(actor.id)
                speeds = np.sqrt((velocity**2).sum(axis=1))
                value = found["actors"][f"vehicle_{actor.id}"].value
                assert value["max_speed"] == pytest.approx(np.nanmax(speeds))


def test_a_vehicle_that_leaves_a_red_light_is_found() -> None:
    """The sample's hero waits; moved onto the light's area while it is red, it runs the light."""
    from logreel.formats.carla.meaning import _left_red

    class Track:
        unit = "m"
        location = np.array([[-5.0, 0, 0], [0, 0, 0], [5, 0, 0]])
        velocity = np.array([[5.0, 0, 0]] * 3)
        frame_row = np.arange(3)

    def columns(state: int) -> Any:
        class Columns:
            def __call__(self, topic: str, name: str) -> Any:
                return np.array([state] * 3)

            def rows(self, topic: str, light: int) -> Any:
                return np.arange(3)

            def frame_rows(self, topic: str) -> Any:
                return np.arange(3)

            def times(self, rows: Any) -> Any:
                return np.asarray(rows) * SECOND

        return Columns()

    area = np.zeros(3), np.array([2.0, 1.0, 1.0])
    assert _left_red(columns(0), Track(), 1, *area) == [SECOND]
    assert _left_red(columns(2), Track(), 1, *area) == []


def test_a_robot_is_known_by_its_description(tmp_path: Path) -> None:
    from logreel.schemas.ros1msg import define

    urdf = """<?xml version="1.0"?><robot xmlns:xacro="x" name="arm"><link name="base"/><link
      name='tip'><visual/></link><!-- <joint name="old" type="fixed"/> --><joint name="turn" type="revolute">
      <parent link="base"/><child link="tip"/></joint><transmission><joint name="turn"/></transmission></robot>"""
    with logreel.create(tmp_path / "arm.bag") as writer:
        kind = "std_msgs/String"
        for topic, text in (("/left/robot_description", urdf), ("/robot_description", "<robot><" * 100_000)):
            channel = writer.add_channel(topic, logreel.Schema(kind, "ros1msg", define(kind).text))
            writer.write(channel, SECOND, {"data": text})
    (fact,) = logreel.summary(tmp_path / "arm.bag")["robot"].facts
    assert (fact.value, fact.text) == ("arm", "arm: 2 links, 1 joint (1 revolute)")
    assert fact.label == "/left/robot_description"


def test_trees_of_frames_without_a_link_are_found(tmp_path: Path) -> None:
    from logreel.schemas.ros1msg import define

    kind = "tf2_msgs/TFMessage"
    with logreel.create(tmp_path / "tf.bag") as writer:
        channel = writer.add_channel("/tf", logreel.Schema(kind, "ros1msg", define(kind).text))
        for n in range(3):
            links = [("map", "odom"), ("base", "laser")] if n else [("map", "odom")]
            zero, turn = {"x": 0.0, "y": 0.0, "z": 0.0}, {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
            transforms = [
                {
                    "header": {"seq": 0, "stamp": n, "frame_id": parent},
                    "child_frame_id": child,
                    "transform": {"translation": zero, "rotation": turn},
                }
                for parent, child in links
            ]
            writer.write(channel, (n + 1) * SECOND, {"transforms": transforms})
    found = logreel.summary(tmp_path / "tf.bag")["transforms"]
    assert found["frames"].value == ["base", "laser", "map", "odom"]
    assert found["roots"].value == ["base", "map"]
    assert found["roots"].level == 4


def test_a_pause_of_all_channels_is_found(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.ulg") as writer:
        channel = writer.add_channel("x", logreel.Schema("x", "ulog", "x:uint64_t timestamp;"))
        for n in [*range(50), *range(120, 200)]:
            time = SECOND + n * SECOND // 10
            writer.write(channel, time, {"timestamp": time // 1000})
    (span,) = logreel.summary(tmp_path / "a.ulg")["pauses"]["pauses"].value
    assert span[0] == pytest.approx(SECOND + 4.9 * SECOND, abs=0.01 * SECOND)
    assert span[1] == pytest.approx(SECOND + 12 * SECOND, abs=0.01 * SECOND)


def test_lengths_between_positions_are_those_of_the_haversine_formula() -> None:
    lat, lon = np.array([50.0, 50.001, 50.001]), np.array([7.0, 7.0, 7.002])
    north, east = distances(lat, lon)
    assert north == pytest.approx(111.195, abs=0.01)
    assert east == pytest.approx(222.39 * math.cos(math.radians(50.001)), rel=1e-4)


def test_an_empty_log_has_a_summary(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "empty.bag"):
        pass
    found = logreel.summary(tmp_path / "empty.bag")
    assert found["recording"]["messages"].value == 0
    assert found.utc == ""


REAL = [
    ("ekf_failure", "estimator", "rejected"),
    ("ekf_failure", "safety", "failures"),
    ("ekf_failure", "vibration", "clipping_0"),
]


@pytest.mark.parametrize(("name", "section", "key"), REAL)
def test_real_flights_show_their_faults(shared: Path, name: str, section: str, key: str) -> None:
    found = logreel.summary(shared / f"data/ulog/{name}.ulg")
    assert found[section][key].level is not None


@pytest.mark.parametrize(("make", "kind", "flights"), [(plane, "fixed wing", 1), (rover, "ground rover", 0)])
def test_the_type_of_a_vehicle_is_told_and_whether_it_flew(make: Any, kind: str, flights: int) -> None:
    about = logreel.summary(make())
    facts = {(section.key, fact.key): fact for section in about for fact in section.facts}
    assert facts["vehicle", "type"].text == kind
    told = facts.get(("flight", "takeoffs"))
    assert (0 if told is None else told.value) == flights
    assert "Mission 45.0 s" in facts["flight", "modes"].text
    # Both drive circles around the place where they began.
    length = facts["track", "vehicle_global_position"].value["distance"]
    assert math.isclose(length, 1138 if flights else 167, rel_tol=0.01)
