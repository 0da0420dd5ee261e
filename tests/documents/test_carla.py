"""What the simulator's documents say about recordings, one test for each capability.

Documents: "Recorder" (adv_recorder), "Recorder binary file format" (ref_recorder_binary_file_format), the methods of
the client in "Python API", and "Metrics module" of the scenario runner.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.carla.builder import Builder
from support.samples.carla.drive import BIKE, CAMERA, HERO, LIGHTS, WALKER, drive

carla: Any = logreel.carla
DRIVE = drive().bytes()


@pytest.fixture
def town(tmp_path: Path) -> Path:
    path = tmp_path / "town.log"
    path.write_bytes(DRIVE)
    return path


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(DRIVE)


Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return put


# -------------------------------------------------------------------------------------------------- Recorder


def test_a_recording_has_creation_and_removal_of_actors(log: logreel.Log) -> None:
    """Actors are recorded when they are created and destroyed (Recorder, "Recording")."""
    assert len(log["actors"].to_arrow()) == 14
    assert log["actor_removals"]["id"].tolist() == [BIKE]


def test_a_recording_has_boxes_and_trigger_volumes(log: logreel.Log) -> None:
    """Actors have bounding boxes, traffic lights trigger boxes (Recorder, "Recording")."""
    assert HERO in log["bounding_boxes"]["id"]
    assert set(log["trigger_volumes"]["id"]) == set(LIGHTS)


def test_a_recording_has_states_and_times_of_traffic_lights(log: logreel.Log) -> None:
    """Traffic lights are recorded with changes of state and with their times (Recorder, "Recording")."""
    assert set(log["traffic_lights"]["state"].tolist()) == {0, 1, 2}
    assert log["traffic_light_times"]["green"].tolist() == [8.0] * 4


def test_a_recording_has_motion_lights_and_physics_of_vehicles(log: logreel.Log) -> None:
    """Vehicles have pose, linear and angular velocity, lights, and physics (Recorder, "Recording")."""
    for topic in ("position", "velocity", "vehicle_lights", "physics"):
        assert HERO in log[topic]["id"]


def test_a_recording_has_motion_of_pedestrians(log: logreel.Log) -> None:
    """Pedestrians have pose, and linear and angular velocity (Recorder, "Recording")."""
    assert log.actor(WALKER).trajectory()["velocity"].to_pylist()[100]["y"] == pytest.approx(1.4)


def test_a_recording_has_lights_of_buildings_and_streets(log: logreel.Log) -> None:
    """The states of lights of buildings and streets are recorded (Recorder, "Recording")."""
    assert log["scene_lights"]["group"].tolist() == [2] * 6


def test_additional_data_is_optional() -> None:
    """By default only what a playback needs is stored (Recorder, "Recording")."""
    out = Builder("0.9.15")
    out.frame(0.0).add(10, 1, "vehicle.a").position(10, (1.0, 2.0, 3.0))
    out.frame(0.1).position(10, (2.0, 2.0, 3.0))
    plain = logreel.open(out.bytes())
    assert "velocity" not in plain.channels or not len(plain["velocity"].to_arrow())
    assert plain.actor(10).trajectory().num_rows == 2
    assert [sorted(tick.poses) for tick in carla.Replay(plain).ticks(0.05)] == [[10], [10]]


def test_a_playback_starts_at_a_time(run: Run, town: Path) -> None:
    """A positive start counts from the beginning (Recorder, "Simulation playback", start)."""
    done = run("carla", "replay", town, "-s", "12", "--json")
    assert json.loads(done.out.partition("\n")[0])["time_ns"] == 12_000_000_000


def test_a_negative_start_counts_from_the_end(run: Run, town: Path) -> None:
    """A negative start counts from the end (Recorder, "Simulation playback", start)."""
    done = run("carla", "replay", town, "-s", "-2", "--json")
    end = logreel.open(town).end
    assert end is not None
    assert json.loads(done.out.partition("\n")[0])["time_ns"] == pytest.approx(end - 2_000_000_000, abs=1)


def test_a_playback_has_a_duration_and_0_means_to_the_end(run: Run, town: Path) -> None:
    """The seconds to play; 0 is all (Recorder, "Simulation playback", duration)."""
    part = run("carla", "replay", town, "-s", "5", "-d", "1.5", "--delta", "0.5").out.splitlines()
    assert [line.split()[0] for line in part] == ["5.000", "5.500", "6.000", "6.500"]
    whole = run("carla", "replay", town, "-d", "0", "--delta", "5").out.splitlines()
    assert [line.split()[0] for line in whole] == [
        "0.000",
        "5.000",
        "10.000",
        "15.000",
        "20.000",
        "25.000",
        "30.000",
    ]


def test_the_camera_follows_an_actor_unless_its_id_is_0(run: Run, town: Path) -> None:
    """The camera focuses on the actor with the id; with 0 the spectator moves freely (…, follow_id)."""
    for number, follows in ((HERO, True), (0, False)):
        done = run("carla", "replay", town, "-c", number, "-d", "0.1", "--json")
        assert all((json.loads(line)["spectator"] is not None) is follows for line in done.out.splitlines())


def test_sensors_are_replayed_on_request(log: logreel.Log) -> None:
    """Sensors are in the playback only if they are asked for (Python API, replay_file, replay_sensors)."""
    for sensors in (False, True):
        tick = next(carla.Replay(log, start=5.0, replay_sensors=sensors).ticks(0.05))
        assert (CAMERA in tick.poses) is sensors


def test_the_hero_can_be_left_out(log: logreel.Log) -> None:
    """The hero vehicle can be ignored in a playback (Python API, set_replayer_ignore_hero)."""
    assert HERO not in next(carla.Replay(log, ignore_hero=True).ticks(0.05)).poses


def test_the_spectator_can_be_replayed(log: logreel.Log) -> None:
    """The recorded spectator is ignored by default (Python API, set_replayer_ignore_spectator)."""
    assert 1 not in next(carla.Replay(log).ticks(0.05)).poses
    assert 1 in next(carla.Replay(log, ignore_spectator=False).ticks(0.05)).poses


def test_actors_appear_and_disappear_in_a_playback(log: logreel.Log) -> None:
    """Actors of the recording are created, and destroyed as recorded (Recorder, "Recording")."""
    ticks = list(carla.Replay(log).ticks(0.05))
    assert HERO in [actor["id"] for actor in ticks[0].created]
    assert [tick.destroyed for tick in ticks if tick.destroyed] == [[BIKE]]


def test_pedestrians_stop_when_a_playback_ends(log: logreel.Log) -> None:
    """At the end of the playback pedestrians stop (Recorder, "Recording", note)."""
    *_, last = carla.Replay(log, 5.0, 1.0).ticks(0.05, stop=True)
    assert last.applied["walker"] == [{"id": WALKER, "speed": 0.0}]


@pytest.mark.parametrize("factor", [0.5, 1.0, 20.0])
def test_a_time_factor_sets_the_speed(log: logreel.Log, factor: float) -> None:
    """Below 1 it is slow motion, above 1 fast motion (Recorder, "Setting a time factor")."""
    first, second, *_ = carla.Replay(log, time_factor=factor).ticks(0.05)
    assert second.time - first.time == pytest.approx(0.05 * factor)


def test_fast_playback_does_not_interpolate(log: logreel.Log) -> None:
    """With a high time factor, positions are updated without interpolation (…, "Setting a time factor")."""
    recorded = set(log["position"]["location.x"].tolist())
    fast = [t.poses[HERO].location.x for t in carla.Replay(log, 4.0, time_factor=3.0).ticks(0.013)]
    slow = [t.poses[HERO].location.x for t in carla.Replay(log, 4.0, 1.0).ticks(0.013)]
    assert set(fast) <= recorded
    assert not set(slow) <= recorded


def test_file_info_has_opening_frames_and_closing(run: Run, town: Path) -> None:
    """Map, date and time; events with ids; number of frames and duration (Recorder, "Recorded file")."""
    lines = run("carla", "info", town).out.splitlines()
    assert lines[:3] == ["Version: 1", "Map: Town03", "Date: 11/14/23 22:13:21"]
    assert " Create 100: vehicle.tesla.model3 (1) at (-15000, 200, 30)" in lines
    assert "  role_name = hero" in lines
    assert lines[-2:] == ["Frames: 595", "Duration: 29.975 seconds"]


def test_file_info_shows_frames_with_events_or_all(run: Run, town: Path) -> None:
    """By default only frames with events are shown, on request all (Recorder, "Recorded file", show_all)."""
    some, everything = (run("carla", "info", town, *more).out.count("Frame ") for more in ((), ("--all",)))
    assert some == 6
    assert everything == 595


@pytest.mark.parametrize(
    ("kinds", "count"), [("hv", 1), ("vv", 2), ("va", 2), ("aa", 2), ("wv", 0), ("to", 0)]
)
def test_collisions_are_filtered_by_kinds_of_actors(run: Run, town: Path, kinds: str, count: int) -> None:
    """Two letters select hero, vehicle, walker, traffic light, other or any (Recorder, "Collisions")."""
    lines = run("carla", "collisions", town, *kinds).out.splitlines()
    assert len(lines) == 5 + count + 3
    assert lines[4].split() == ["Time", "Types", "Id", "Actor", "1", "Id", "Actor", "2"]


def test_a_collision_can_be_replayed_some_seconds_before(log: logreel.Log) -> None:
    """A playback that starts seconds before a collision shows it (Recorder, "Collisions")."""
    (hit,) = carla.collisions(log, "h", "v").rows()
    ticks = list(carla.Replay(log, hit["time_ns"] / 1e9 - 2, 4.0, follow=hit["id1"]).ticks(0.05))
    assert any(c["actor1"] == hit["id1"] for tick in ticks for c in tick.collisions)
    assert all(tick.spectator is not None for tick in ticks)


def test_blocked_actors_have_a_least_time_and_distance(run: Run, town: Path) -> None:
    """Actors that move less than a distance for a time, sorted by duration (Recorder, "Blocked actors")."""
    found = run("carla", "blocked", town, "5", "100", "--json").json["blocked"]
    durations = [row["duration_s"] for row in found]
    assert durations == sorted(durations, reverse=True)
    assert min(durations) >= 5
    assert not run("carla", "blocked", town, "60", "100", "--json").json["blocked"]


def test_blocked_has_the_documented_defaults(log: logreel.Log) -> None:
    """Without arguments it is 30 seconds and 10 centimetres (Recorder, "Blocked actors")."""
    assert carla.blocked(log).text() == carla.blocked(log, 30, 10).text()


# ------------------------------------------------------------------------------- Recorder binary file format


def test_texts_have_a_length_and_no_end(log: logreel.Log) -> None:
    """A text is its length and its characters, without a null character (…, "Strings in binary")."""
    assert DRIVE[28:34] == b"Town03"
    assert DRIVE[26:28] == struct.pack("<H", 6)
    assert log.metadata["map"] == "Town03"


def test_the_header_has_version_date_and_map(log: logreel.Log) -> None:
    """The header has a version, a magic text, a date, and the map (…, "Info header")."""
    assert log.metadata["format_version"] == 1
    assert log.metadata["date"] == "2023-11-14T22:13:21+00:00"


def test_packets_of_users_are_skipped_by_their_size() -> None:
    """A reader ignores packets by their size; ids over 100 are for users (…, "Packets")."""
    out = Builder()
    out.frame(0.0).packet(150, b"abc").position(7, (1.0, 2.0, 3.0))
    found = logreel.open(out.bytes())
    assert bytes(found["packet_150"][0].data) == b"abc"
    assert found["position"]["id"].tolist() == [7]


def test_elapsed_plus_duration_is_the_next_frame(log: logreel.Log) -> None:
    """Elapsed time plus duration is the elapsed time of the next frame (…, "Frame Start")."""
    frames = log["frames"].to_numpy()
    assert (frames["elapsed"][:-1] + frames["duration"][:-1] == frames["elapsed"][1:]).all()


def test_actors_have_type_pose_description_and_attributes(log: logreel.Log) -> None:
    """A created actor has id, type, pose, description and attributes (…, "Event Add")."""
    row = next(row for row in log.table("actors").to_pylist() if row["id"] == HERO)
    assert (row["type"], row["description"], row["location"]["x"]) == (1, "vehicle.tesla.model3", -15000.0)
    assert {"type": 3, "name": "role_name", "value": "hero"} in row["attributes"]


def test_several_actors_are_destroyed_in_one_frame() -> None:
    """A packet lists all actors that are destroyed in a frame (…, "Event Del")."""
    out = Builder()
    frame = out.frame(0.0)
    for actor in (100, 101, 120):
        frame.add(actor, 1, "vehicle.a")
    out.frame(0.1).remove(100).remove(101).remove(120)
    out.frame(0.2)
    found = logreel.open(out.bytes())
    assert found["actor_removals"]["id"].tolist() == [100, 101, 120]
    assert list(carla.Replay(found).ticks(0.1))[1].destroyed == [100, 101, 120]


def test_attachments_name_child_and_parent(log: logreel.Log) -> None:
    """The first id is the child, the second the parent (…, "Event Parent")."""
    assert log.actor(CAMERA).parent == HERO


def test_a_pair_can_collide_several_times_in_a_frame() -> None:
    """The same pair can collide more than once in a frame (…, "Event Collision")."""
    out = Builder()
    out.frame(0.0).add(1, 1, "vehicle.a").add(2, 1, "vehicle.b").collision(0, 1, 2).collision(1, 1, 2)
    assert len(carla.info(logreel.open(out.bytes())).rows()) == 4


def test_controls_and_walker_speeds_are_set_at_playback(log: logreel.Log) -> None:
    """Throttle, steering, brake, handbrake, gear, and walker speed are set at playback (…, "… animation")."""
    tick = next(carla.Replay(log, start=6.0).ticks(0.05))
    control = next(one for one in tick.applied["vehicle_control"] if one["id"] == HERO)
    assert set(control) == {"id", "steer", "throttle", "brake", "handbrake", "gear"}
    assert tick.applied["walker"] == [{"id": WALKER, "speed": 140.0}]


def test_frames_without_positions_or_states_can_be_played() -> None:
    """All packets but start and end of a frame are optional (…, "Frame Layout")."""
    out = Builder()
    out.frame(0.0).add(1, 1, "vehicle.a", (5.0, 6.0, 7.0))
    out.frame(0.1)
    out.frame(0.2)
    ticks = list(carla.Replay(logreel.open(out.bytes()), ignore_spectator=False).ticks(0.1))
    assert [tick.poses[1].location.x for tick in ticks] == [5.0, 5.0]


# ------------------------------------------------------------------------------------------- Metrics module


def test_frames_of_an_actor_start_at_1() -> None:
    """Frames are numbered from 1 (…, get_actor_alive_frames)."""
    assert carla.MetricsLog(DRIVE).get_actor_alive_frames(HERO) == (1, 595)
