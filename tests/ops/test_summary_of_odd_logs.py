"""Summaries of logs in which a plain computation would say something absurd."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.meaning.tracks import read_track, track_sources
from logreel.schemas.ros1msg import define
from support.harness.cli_runner import Run

SECOND = 10**9
START = 1_600_000_000 * SECOND
FIX, POSE, STRING, JOINTS = (
    "sensor_msgs/NavSatFix",
    "geometry_msgs/PoseStamped",
    "std_msgs/String",
    "sensor_msgs/JointState",
)
Row = tuple[str, int, dict[str, Any]]


def bag(path: Path, kinds: dict[str, str], rows: list[Row]) -> logreel.Summary:
    with logreel.create(path) as writer:
        channels = {
            topic: writer.add_channel(topic, logreel.Schema(kind, "ros1msg", define(kind).text))
            for topic, kind in kinds.items()
        }
        for topic, time, data in rows:
            writer.write(channels[topic], START + time, data)
    return logreel.summary(path)


def header(n: int) -> dict[str, Any]:
    return {"seq": n, "stamp": START + n * SECOND, "frame_id": "map"}


def fix(n: int, latitude: float, longitude: float) -> Row:
    status = {"status": 0, "service": 1}
    data = {
        "header": header(n),
        "status": status,
        "latitude": latitude,
        "longitude": longitude,
        "altitude": 100.0,
        "position_covariance": [0.0] * 9,
        "position_covariance_type": 0,
    }
    return "/fix", n * SECOND, data


def pose(n: int, x: float, y: float) -> Row:
    turn = {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}
    return (
        "/pose",
        n * SECOND // 10,
        {"header": header(n), "pose": {"position": {"x": x, "y": y, "z": 0.0}, "orientation": turn}},
    )


def test_a_receiver_that_stands_still_drives_no_distance(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    rows = [fix(n, 47.0 + random.normal() * 1e-5, 8.0 + random.normal() * 1e-5) for n in range(600)]
    fact = bag(tmp_path / "still.bag", {"/fix": FIX}, rows)["track"]["/fix"]
    assert fact.value["still"]
    assert fact.value["distance"] == 0
    assert fact.value["path"] > 500
    assert fact.value["extent"] < 10
    assert fact.text.startswith("stays within ")
    assert fact.text.endswith("m, in 600 positions, height 100.0 m")


def test_a_receiver_that_drives_has_the_length_of_its_way(tmp_path: Path) -> None:
    # One degree of latitude is 111.2 km.
    rows = [fix(n, 47.0 + n * 1e-4, 8.0) for n in range(101)]
    fact = bag(tmp_path / "drive.bag", {"/fix": FIX}, rows)["track"]["/fix"]
    assert not fact.value["still"]
    assert fact.value["distance"] == pytest.approx(1112, rel=1e-3)
    assert fact.text == "1.11 km in 101 positions, height 100.0 m"


def test_jumps_are_told_and_do_not_count_into_lengths_of_summary_report_and_viewer(tmp_path: Path) -> None:
    rows = [fix(n, 47.0 + n * 1e-5 + (10 if 40 <= n < 60 else 0), 8.0) for n in range(101)]
    path = tmp_path / "jump.bag"
    fact = bag(path, {"/fix": FIX}, rows)["track"]["/fix"]
    assert fact.value["distance"] == pytest.approx(98 * 1.112, rel=1e-3)
    assert [round(one["metres"], -4) for one in fact.value["jumps"]] == [1_110_000, 1_110_000]
    assert fact.level == 4
    told = "109.0 m in 101 positions, without 2 jumps of up to 1112 km"
    assert fact.text.startswith(told)
    (finding,) = logreel.health(path, "position-jumps").detections
    assert (finding.start - START, finding.end - START) in (
        (39 * SECOND, 40 * SECOND),
        (59 * SECOND, 60 * SECOND),
    )
    page = logreel.report(path).html
    assert page.count("<polyline") == 3
    assert f"/fix: {told}." in page
    assert "Places far behind a jump lie outside of the drawing" in page
    with logreel.open(path) as log:
        (source,) = track_sources(log)
        shown = read_track(log, source)
    assert shown.about == told
    assert np.flatnonzero(np.isnan(shown.time)).tolist() == [40, 61]
    # The map begins with most of the track.
    assert shown.near is not None
    assert shown.near[1][0] < 48


def test_poses_have_the_length_of_their_way_unless_the_robot_stands_still(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    circle = [pose(n, 5 * np.cos(n / 20), 5 * np.sin(n / 20)) for n in range(127)]
    fact = bag(tmp_path / "a.bag", {"/pose": POSE}, circle)["track"]["/pose"]
    assert fact.value["distance"] == pytest.approx(126 * 2 * 5 * np.sin(1 / 40), rel=1e-6)
    still = [pose(n, random.normal() * 0.01, random.normal() * 0.01) for n in range(500)]
    fact = bag(tmp_path / "b.bag", {"/pose": POSE}, still)["track"]["/pose"]
    assert (fact.value["distance"], fact.value["still"]) == (0, True)


JOINT = {"name": ["a"], "position": [1.0], "velocity": [], "effort": []}


def test_messages_in_bursts_have_their_mean_rate_and_no_gaps(tmp_path: Path) -> None:
    rows: list[Row] = []
    for n in range(400):
        data = {"header": header(n), "name": ["a"], "position": [float(n)], "velocity": [], "effort": []}
        # Ten messages at once, ten times a second.
        rows.append(("/joints", n // 10 * SECOND // 10 + n % 10 * 1000, data))
    found = bag(tmp_path / "a.bag", {"/joints": JOINTS}, rows)
    fact = found["sensors"]["/joints"]
    assert fact.text == "joints, 400 messages, 102 Hz in bursts"
    assert fact.level is None
    assert [one.detector for one in logreel.health(tmp_path / "a.bag").detections] == []


def test_rates_of_a_summary_are_the_mean_ones_of_info_and_stats(tmp_path: Path) -> None:
    # 200 Hz for the first 2.5 s, then 67 Hz: half of the time between messages is 5 ms, the mean is 100 Hz.
    times = [*range(0, 2500, 5), *range(2500, 10_000, 15)]
    rows: list[Row] = [("/j", t * 1_000_000, {"header": header(t), **JOINT}) for t in times]
    path = tmp_path / "a.bag"
    fact = bag(path, {"/j": JOINTS}, rows)["sensors"]["/j"]
    (info,) = (one for one in logreel.info(path).channels if one.topic == "/j")
    (stats,) = logreel.stats(path)
    assert fact.value["rate"] == stats.rate == info.rate == pytest.approx(100, rel=1e-2)
    assert "1000 messages, 100 Hz" in fact.text


def test_messages_that_lie_within_a_moment_have_no_rate(tmp_path: Path, run: Run) -> None:
    rows: list[Row] = [("/b", SECOND + n, {"data": "x"}) for n in range(5)]
    rows += [("/joints", SECOND + n, {"header": header(0), **JOINT}) for n in range(12)]
    rows += [("/later", 2 * SECOND + n * 1000, {"data": "x"}) for n in range(5)]
    found = bag(tmp_path / "a.bag", {"/b": STRING, "/joints": JOINTS, "/later": STRING}, rows)
    assert found["topics"]["/b"].text == "std_msgs/String, 5 messages"
    assert found["topics"]["/later"].text == "std_msgs/String, 5 messages, 1e+06 Hz"
    assert found["sensors"]["/joints"].text == "joints, 12 messages"
    log = logreel.open(tmp_path / "a.bag")
    assert [log[topic].rate for topic in ("/b", "/joints")] == [None, None]
    assert [one.rate for one in logreel.stats(log)][:2] == [None, None]
    for verb in ("summary", "info", "stats"):
        shown = [line for line in run(verb, tmp_path / "a.bag").out.splitlines() if "/later" not in line]
        assert not [line for line in shown if "e+" in line or "000000 Hz" in line]


def test_topics_without_a_known_meaning_are_listed_by_number_of_messages(tmp_path: Path) -> None:
    rows: list[Row] = [("/a", n * SECOND, {"data": "x"}) for n in range(3)]
    rows += [("/b", n * SECOND // 10, {"data": "x"}) for n in range(30)]
    found = bag(tmp_path / "a.bag", {"/a": STRING, "/b": STRING}, rows)["topics"]
    assert [(fact.label, fact.text) for fact in found] == [
        ("/b", "std_msgs/String, 30 messages, 10 Hz"),
        ("/a", "std_msgs/String, 3 messages, 1 Hz"),
    ]


def test_a_log_with_few_messages_has_no_pause_but_one_that_stops_for_a_while_has(tmp_path: Path) -> None:
    few: list[Row] = [("/a", n * 2 * SECOND, {"data": "x"}) for n in range(6)]
    assert "pauses" not in bag(tmp_path / "few.bag", {"/a": STRING}, few)
    stops: list[Row] = [("/a", n * SECOND // 10, {"data": "x"}) for n in range(100) if not 30 <= n < 70]
    fact = bag(tmp_path / "stops.bag", {"/a": STRING}, stops)["pauses"]["pauses"]
    assert fact.text == "no message for 4.1 s from +2.9 s on"


def test_times_that_go_back_are_counted(tmp_path: Path) -> None:
    times = [0, 1, 2, 5, 3, 4, 6, 6.5, 5.5]
    rows: list[Row] = [("/a", int(time * SECOND), {"data": "x"}) for time in times]
    found = bag(tmp_path / "a.bag", {"/a": STRING}, rows)
    assert found["pauses"]["backwards"].value == {"/a": 2}


def test_a_clock_that_was_not_set_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    with logreel.create(path) as writer:
        channel = writer.add_channel("/a", logreel.Schema(STRING, "ros1msg", define(STRING).text))
        for n in range(10):
            writer.write(channel, 100 * 24 * 3600 * SECOND + n * SECOND, {"data": "x"})
    recording = logreel.summary(path)["recording"]
    if "start" in recording:
        assert recording["start"].text.endswith("its clock was not set")
        assert recording["start"].level is not None


def test_a_vehicle_on_a_table_has_no_height_and_no_distance(shared: Path) -> None:
    for name in ("sample", "corrupt_actuator_armed_wrong_size", "sample_appended_multiple"):
        flight = logreel.summary(shared / f"data/ulog/{name}.ulg")["flight"]
        assert flight["armed"].text == "never"
        assert not {"distance", "height", "speed", "climb", "tilt"} & {fact.key for fact in flight}


def test_a_touch_of_the_ground_is_no_landing(shared: Path) -> None:
    flight = logreel.summary(shared / "data/ulog/ekf_failure.ulg")["flight"]
    assert (flight["takeoffs"].value, flight["landings"].value) == (1, 1)
    assert len(flight["air"].value) == 1


def test_an_actor_that_is_set_to_another_place_has_not_driven_there(shared: Path) -> None:
    found = logreel.summary(shared / "data/carla/sr_DistanceBetweenVehicles_2021.log")
    fact = found["actors"]["vehicle_175"]
    assert fact.value["teleports"] == 1
    assert fact.value["distance"] < fact.value["max_speed"] * 24.7
    hero = found["actors"]["vehicle_174"]
    assert hero.value["teleports"] == 0
    assert "teleported" not in hero.text


def test_each_instrument_of_a_car_has_facts_of_its_own(shared: Path) -> None:
    found = logreel.summary(shared / "data/koblenz/k08_unknown_type_version_mark.log")["car"]
    assert len({fact.key for fact in found}) == len(found.facts) == 4
    pictures = logreel.summary(shared / "data/koblenz/k01_all_six.log")["pictures"]
    assert pictures["ImageM/0"].text == "5 pictures, one every 700 ms, none missing"


def test_what_was_lost_stands_before_other_problems(shared: Path) -> None:
    found = logreel.summary(shared / "data/rosbag/v20_dmg_cut_mid_chunk.bag")["recording"]["problems"]
    assert found.text == "the last 727 bytes are a cut record, and 1 more; 727 bytes lost"


def test_sections_of_real_logs_have_unique_keys_and_finite_numbers(shared: Path) -> None:
    folders = ("bddf", "carla", "carla/synthetic", "koblenz", "rosbag")
    paths = [
        path
        for folder in folders
        for path in sorted((shared / "data" / folder).iterdir())
        if path.suffix in (".bddf", ".log", ".bag")
    ]
    assert len(paths) > 50
    for path in paths:
        found = logreel.summary(path)
        for section in found:
            keys = [fact.key for fact in section]
            assert len(set(keys)) == len(keys), (path, section.key)
            for fact in section:
                assert "nan" not in fact.text.lower().split(), (path, fact)
                assert not fact.text.endswith(("and ", "and")), (path, fact)


def test_reports_of_crashes_of_the_processor_are_errors(shared: Path) -> None:
    fact = logreel.summary(shared / "data/ulog/sample_appended_multiple.ulg")["safety"]["hard_faults"]
    assert (len(fact.value), fact.level) == (3, 3)
