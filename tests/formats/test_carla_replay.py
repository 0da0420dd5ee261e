"""A replay shows what the simulator shows: values worked out by hand, and a plain simulation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from logreel.formats.carla.simulator.values import Rotation
from support.oracles import carla as carla_oracle
from support.oracles import carla_queries
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import drive

carla: Any = logreel.carla


def straight() -> Any:
    """Return a recording: a car moves 100 cm per frame of 0.5 s and turns by 180 degrees; a lamp; a hero; a sensor."""
    out = Builder()
    for i in range(5):
        frame = out.frame(i * 0.5)
        if i == 0:
            frame.add(1, 0, "spectator").add(2, 3, "traffic.traffic_light", (5.0, 6.0, 7.0))
            frame.add(10, 1, "vehicle.a").add(11, 1, "vehicle.b", values={"role_name": "hero"})
            frame.add(30, 5, "sensor.lidar")
        if i == 2:
            frame.add(12, 1, "vehicle.c", (9.0, 9.0, 9.0))
        if i == 3:
            frame.remove(11)
        frame.position(1, (0.0, 0.0, 0.0)).position(10, (100.0 * i, 0.0, 0.0), (0.0, 0.0, 170.0 + 20 * i))
        if i < 3:
            frame.position(11, (0.0, 10.0 * i, 0.0))
    return logreel.open(out.bytes())


def place(pose: Any) -> tuple[float, float]:
    return pose.location.x, pose.rotation.yaw


def test_poses_equal_values_worked_out_by_hand() -> None:
    replay = carla.Replay(straight())
    assert (replay.total, replay.start, replay.end) == (2.0, 0.0, 2.0)
    # No frame is loaded before the first one, which shows its own poses.
    assert place(replay.poses(0.0)[10]) == place(replay.poses(0.4)[10]) == (0.0, 170.0)
    assert place(replay.poses(0.5)[10]) == (0.0, 170.0)
    assert place(replay.poses(0.75)[10]) == (50.0, 180.0)
    assert place(replay.poses(1.875)[10]) == (275.0, 225.0)
    # The last frame is never current.
    assert place(replay.poses(2.0)[10]) == place(replay.poses(99.0)[10]) == (300.0, 230.0)
    assert replay.poses(-0.1) == {}


def test_actors_exist_from_addition_to_removal() -> None:
    log = straight()
    assert set(carla.Replay(log).poses(0.7)) == {2, 10, 11}
    assert set(carla.Replay(log).poses(1.2)) == {2, 10, 11, 12}
    assert set(carla.Replay(log).poses(1.5)) == {2, 10, 12}
    assert set(carla.Replay(log, ignore_hero=True).poses(0.7)) == {2, 10}
    assert set(carla.Replay(log, ignore_spectator=False).poses(0.7)) == {1, 2, 10, 11}
    assert set(carla.Replay(log, replay_sensors=True).poses(0.7)) == {2, 10, 11, 30}
    assert carla.Replay(log).poses(1.0)[2].location == (5.0, 6.0, 7.0)
    assert carla.Replay(log).poses(1.0)[12].location == (9.0, 9.0, 9.0)


def test_angles_are_interpolated_the_shorter_way() -> None:
    out = Builder()
    for i, yaw in enumerate((175.0, -175.0, 175.0, 0.0)):
        out.frame(float(i)).add(7, 1, "v").position(7, (0.0, 0.0, 0.0), (0.0, 0.0, yaw))
    replay = carla.Replay(logreel.open(out.bytes()))
    assert replay.poses(1.5)[7].rotation.yaw == 180.0
    assert replay.poses(2.5)[7].rotation.yaw == -180.0


def test_start_and_duration_limit_the_replay() -> None:
    log = straight()
    assert [t.time for t in carla.Replay(log).ticks(0.5)] == [0.0, 0.5, 1.0, 1.5]
    assert [t.time for t in carla.Replay(log, start=-1.0).ticks(0.5)] == [1.0, 1.5]
    assert [t.time for t in carla.Replay(log, 0.5, 0.75).ticks(0.5)] == [0.5, 1.0]
    assert [t.time for t in carla.Replay(log, 1.75, 9.0).ticks(0.5)] == [1.75]
    assert [t.time for t in carla.Replay(log, -99.0).ticks(2.0)] == [0.0]
    assert [t.frame for t in carla.Replay(log, time_factor=1.5).ticks(0.5)] == [1, 2, 4]
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="time factor"):
            carla.Replay(log, time_factor=wrong)
        with pytest.raises(UsageError, match="step"):
            next(carla.Replay(log).ticks(wrong))


def test_fast_replay_does_not_interpolate() -> None:
    ticks = list(carla.Replay(straight(), time_factor=2.0).ticks(0.15))
    assert [t.poses[10].location.x for t in ticks] == [0.0, 0.0, 0.0, 0.0, 100.0, 200.0, 200.0]


@pytest.mark.parametrize(("delta", "factor"), [(0.1, 1.0), (0.3, 1.0), (0.7, 1.5), (0.2, 2.5), (1.7, 1.0)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ticks_equal_a_plain_simulation(seed: int, delta: float, factor: float) -> None:
    data = carla_queries.scene(seed).bytes()
    ticks = list(carla.Replay(logreel.open(data), time_factor=factor, replay_sensors=True).ticks(delta))
    want = carla_queries.replay(carla_oracle.read(data), delta, factor)
    assert [(t.time, t.frame) for t in ticks] == [(time, frame) for time, frame, _ in want]
    for tick, (_, _, poses) in zip(ticks, want, strict=True):
        assert set(tick.poses) == set(poses)
        for actor, pose in tick.poses.items():
            assert (*pose.location, *pose.rotation) == pytest.approx(poses[actor], abs=1e-9)


def test_poses_equal_ticks_that_skip_no_frame() -> None:
    replay = carla.Replay(logreel.open(drive(12.0).bytes()))
    for tick in replay.ticks(0.04):
        poses = replay.poses(tick.time)
        assert set(poses) == set(tick.poses)
        assert poses[100] == tick.poses[100]


def test_follow_gives_the_camera_pose() -> None:
    replay = carla.Replay(straight())
    # At 0.75 s the car looks along -x: the camera is behind it, at +x, and looks down.
    camera = replay.follow(10, 0.75)
    assert camera.location == pytest.approx((1050.0, 0.0, 500.0))
    assert (camera.rotation.pitch, abs(camera.rotation.yaw)) == pytest.approx((-25.0, 180.0))
    near = replay.follow(10, 0.75, offset=(0.0, 1.0, 0.0), pitch=0.0)
    assert near.location == pytest.approx((50.0, -100.0, 0.0))
    assert replay.follow(99, 0.75) is None
    assert replay.follow(11, 1.9) is None


@pytest.mark.parametrize("rotation", [(0, 0, 0), (10, 20, 30), (-170, -80, 179), (5, 89, -90)])
def test_rotation_round_trips_through_axes(rotation: tuple[float, float, float]) -> None:
    frame = Rotation(*rotation).axes()
    assert frame.rotation() == pytest.approx(rotation)
    assert all(math.isclose(sum(x * x for x in axis), 1.0) for axis in frame)


def test_axes_equal_values_worked_out_by_hand() -> None:
    def rounded(rotation: tuple[float, float, float]) -> Iterator[tuple[float, ...]]:
        return (tuple(round(x, 9) + 0.0 for x in axis) for axis in Rotation(*rotation).axes())

    # Yaw turns x towards y, pitch lifts x, roll lowers y.
    assert next(rounded((0, 0, 90))) == (0.0, 1.0, 0.0)
    assert next(rounded((0, 90, 0))) == (0.0, 0.0, 1.0)
    assert list(rounded((90, 0, 0)))[1] == (0.0, 0.0, -1.0)


def test_replay_without_frames_shows_nothing() -> None:
    for data in (Builder().bytes(), eventful(frames=2).bytes()[:60]):
        replay = carla.Replay(logreel.open(data))
        assert replay.poses(0.0) == {}
        assert list(replay.ticks(0.1)) == []
