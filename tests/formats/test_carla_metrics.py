"""Metrics of frames equal what was recorded for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import NotFoundError, UsageError
from support.builders.sample_logs import tiny
from support.oracles import carla as carla_oracle
from support.oracles.carla import Recording
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import BIKE, CAMERA, HERO, LEAD, LIGHTS, WALKER, drive

carla: Any = logreel.carla


@pytest.fixture(scope="module")
def metrics() -> Any:
    return carla.MetricsLog(drive().bytes())


@pytest.fixture(scope="module")
def plain() -> Recording:
    return carla_oracle.read(drive().bytes())


def record(plain: Recording, kind: str, actor: int, frame: int) -> Any:
    return next((one for one in plain.frames[frame - 1].records(kind) if one["id"] == actor), None)


def test_frame_times_and_counts(metrics: Any, plain: Recording) -> None:
    assert metrics.get_total_frame_count() == len(plain.frames)
    for frame in (1, 300, len(plain.frames)):
        recorded = plain.frames[frame - 1]
        assert metrics.get_elapsed_time(frame) == recorded.elapsed
        assert metrics.get_delta_time(frame) == recorded.duration
        assert metrics.get_platform_time(frame) == recorded.records("PlatformTime")[0]["seconds"]
    for frame in (0, -1, len(plain.frames) + 1, 1 << 70):
        assert metrics.get_elapsed_time(frame) is None
        assert metrics.get_platform_time(frame) is None
        assert metrics.get_actor_transform(HERO, frame) is None
        assert metrics.get_vehicle_control(HERO, frame) is None


def test_actor_ids_attributes_and_lifetimes(metrics: Any, plain: Recording) -> None:
    assert metrics.get_ego_vehicle_id() == HERO
    assert metrics.get_actor_ids_with_role_name("autopilot") == [101, 102, 103]
    assert metrics.get_actor_ids_with_type_id("traffic.traffic_light") == list(LIGHTS)
    assert metrics.get_actor_ids_with_type_id("vehicle.*") == [100, 101, 102, 103]
    walker = metrics.get_actor_attributes(WALKER)
    born = record(plain, "EventAdd", WALKER, 1)
    assert walker.pop("location") == pytest.approx([x / 100 for x in born["location"].values()])
    assert walker == {
        "type_id": "walker.pedestrian.0012", "role_name": "pedestrian", "speed": "1.4", "created": 1,
    }  # fmt: skip
    assert metrics.get_actor_attributes(BIKE)["destroyed"] == 481
    assert metrics.get_actor_attributes(CAMERA)["parent"] == HERO
    assert metrics.get_actor_alive_frames(HERO) == (1, 595)
    assert metrics.get_actor_alive_frames(BIKE) == (1, 480)
    with pytest.raises(NotFoundError, match="no actor"):
        metrics.get_actor_attributes(7)
    assert carla.MetricsLog(Builder().bytes()).get_ego_vehicle_id() is None


def test_boxes_and_collisions_equal_the_recording(metrics: Any) -> None:
    box = metrics.get_actor_bounding_box(HERO)
    assert box.extent == pytest.approx((2.35, 0.92, 0.72))
    assert metrics.get_traffic_light_trigger_volume(LIGHTS[0]).extent == pytest.approx((2.5, 1.2, 1.5))
    assert metrics.get_actor_bounding_box(LIGHTS[0]) is None
    assert metrics.get_actor_collisions(HERO) == {515: [LEAD], 516: [LEAD], 517: [LEAD]}
    assert metrics.get_actor_collisions(WALKER) == {}


@pytest.mark.parametrize("frame", [1, 200, 595])
def test_motion_of_a_frame_equals_the_plain_reader(metrics: Any, plain: Recording, frame: int) -> None:
    recorded, moved = record(plain, "Position", HERO, frame), record(plain, "Kinematics", HERO, frame)
    pose = metrics.get_actor_transform(HERO, frame)
    assert pose.location == pytest.approx([x / 100 for x in recorded["location"].values()])
    assert pose.rotation._asdict() == recorded["rotation"]
    assert metrics.get_actor_velocity(HERO, frame) == tuple(moved["linear"].values())
    assert metrics.get_actor_angular_velocity(HERO, frame) == tuple(moved["angular"].values())
    both = metrics.get_actors_transforms([HERO, LIGHTS[0]], frame)
    assert both == {HERO: pose, LIGHTS[0]: None}
    assert metrics.get_actors_velocity([HERO], frame) == {HERO: metrics.get_actor_velocity(HERO, frame)}
    spin = metrics.get_actors_angular_velocity([300], frame)
    assert spin == {300: None}
    assert metrics.get_actors_acceleration([300], frame) == {300: (0.0, 0.0, 0.0)}


def test_arrays_of_whole_tracks(metrics: Any) -> None:
    track = metrics.get_all_actor_transforms(BIKE)
    assert track.shape == (595, 6)
    assert np.isnan(track[480:]).all()
    assert not np.isnan(track[:480]).any()
    assert (*track[9],) == pytest.approx(sum(metrics.get_actor_transform(BIKE, 10), ()))
    part = metrics.get_all_actor_velocities(HERO, 100, 102)
    assert part.tolist() == [list(metrics.get_actor_velocity(HERO, f)) for f in (100, 101, 102)]
    assert metrics.get_all_actor_accelerations(HERO, 100, 100)[0].tolist() == list(
        metrics.get_actor_acceleration(HERO, 100)
    )
    assert metrics.get_all_actor_angular_velocities(HERO, -5, 9).shape == (9, 3)
    assert metrics.get_all_actor_velocities(HERO, 9, 5).shape == (0, 3)


def test_distances_of_two_actors(metrics: Any) -> None:
    apart = metrics.get_distances(HERO, LEAD)
    assert apart.shape == (595,)
    assert apart[0] == pytest.approx(14.0)
    # The cars touch in the frame of the recorded collision.
    assert (np.flatnonzero(apart < 4.7) + 1)[0] == 515
    assert np.isnan(metrics.get_distances(HERO, BIKE)[480:]).all()


@pytest.mark.parametrize("frame", [1, 250, 420])
def test_controls_and_lights_equal_the_plain_reader(metrics: Any, plain: Recording, frame: int) -> None:
    recorded = record(plain, "AnimVehicle", HERO, frame)
    control = metrics.get_vehicle_control(HERO, frame)
    assert control._asdict() == {k: v for k, v in recorded.items() if k != "id"}
    assert not control.reverse
    assert (
        metrics.get_walker_speed(WALKER, frame) == record(plain, "AnimWalker", WALKER, frame)["speed"] / 100
    )
    state = record(plain, "State", LIGHTS[1], frame)
    assert metrics.get_traffic_light_state(LIGHTS[1], frame) == ("Red", "Yellow", "Green")[state["state"]]
    assert metrics.get_traffic_light_elapsed_time(LIGHTS[1], frame) == state["elapsed"]
    assert metrics.is_traffic_light_frozen(LIGHTS[1], frame) is False
    assert metrics.get_traffic_light_state_time(LIGHTS[1], "Green", frame) == 8.0
    lights = metrics.get_vehicle_lights(HERO, frame)
    assert lights[:2] == ["Position", "LowBeam"]
    assert metrics.is_vehicle_light_active("Brake", HERO, frame) == ("Brake" in lights)
    assert metrics.get_scene_light_state(1, frame) == (
        False, 5000.0, pytest.approx((0.95, 0.81, 0.53, 1.0)), "Street",
    )  # fmt: skip


def test_physics_equals_the_plain_reader(metrics: Any, plain: Recording) -> None:
    recorded = record(plain, "PhysicsControl", HERO, 1)
    del recorded["id"]
    assert metrics.get_vehicle_physics_control(HERO) == recorded
    assert metrics.get_vehicle_physics_control(WALKER) is None
    assert carla.MetricsLog(eventful("0.10.0").bytes()).get_vehicle_physics_control(10) is None


def test_physics_after_an_undecodable_record() -> None:
    out = Builder("0.9.16")
    first = out.frame(0.0).add(10, 1, "vehicle.a").physics(10)
    first.records["PhysicsControl"] = [bytes(first.records["PhysicsControl"][0])[:-40]]
    out.frame(0.05).physics(10)
    log = logreel.open(out.bytes())
    assert log["physics"].to_arrow()["id"].to_pylist() == [None, 10]
    metrics = carla.MetricsLog(log)
    assert metrics.get_vehicle_physics_control(10, 1) is None
    recorded = metrics.get_vehicle_physics_control(10, 2)
    assert recorded is not None
    assert recorded["max_rpm"] == 5800.0


def test_missing_values_are_none() -> None:
    metrics = carla.MetricsLog(eventful("0.9.4").bytes())
    assert metrics.get_vehicle_control(10, 1) is None
    assert metrics.get_vehicle_lights(10, 1) is None
    assert metrics.is_vehicle_light_active("Brake", 10, 1) is None
    assert metrics.get_walker_speed(20, 1) is None
    assert metrics.get_scene_light_state(-1, 1) is None
    assert metrics.get_traffic_light_state_time(2, "Red") is None
    assert metrics.get_traffic_light_state(10, 1) is None
    assert metrics.is_traffic_light_frozen(10, 1) is None
    assert metrics.get_traffic_light_elapsed_time(10, 1) is None
    assert metrics.get_traffic_light_trigger_volume(2) is None
    assert metrics.get_vehicle_physics_control(10) is None
    assert metrics.get_platform_time(1) is None


def test_invalid_arguments_of_metrics_are_refused() -> None:
    with pytest.raises(UsageError, match="format ulog"):
        carla.MetricsLog(tiny())
    with pytest.raises(UsageError, match="no time of state 'Blue'"):
        carla.MetricsLog(eventful().bytes()).get_traffic_light_state_time(2, "Blue")
