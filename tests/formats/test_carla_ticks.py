"""The steps of a replay equal those worked out in plain Python from the rules, on all sample recordings."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import logreel
from formats.test_carla_samples import REAL, SYNTHETIC, sample
from logreel.errors import NotFoundError, UsageError
from support.harness.examples import half
from support.oracles import carla as carla_oracle
from support.oracles import carla_queries
from support.oracles.carla_replay import Options, ticks
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import BIKE, CAMERA, HERO, LEAD, WALKER, drive
from support.samples.carla.records import RELEASES

carla: Any = logreel.carla


def same(one: Any, other: Any) -> bool:
    """Return whether two plain values are equal; NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@lru_cache(8)
def read(data: bytes) -> carla_oracle.Recording:
    """Return what the plain reader reads, once for each recording that is shared."""
    return carla_oracle.read(data)


def compare(data: bytes, delta: float, options: Options) -> int:
    """Assert that the steps equal the plain ones; return their number."""
    replay = carla.Replay(
        logreel.open(data),
        options.start,
        options.duration,
        options.factor,
        ignore_hero=options.ignore_hero,
        ignore_spectator=options.ignore_spectator,
        replay_sensors=options.sensors,
    )
    got = list(replay.ticks(delta, stop=True))
    want = ticks(read(data), delta, options)
    assert [(t.time, t.frame, t.stopped) for t in got] == [(t.time, t.frame, t.stopped) for t in want]
    for tick, due in zip(got, want, strict=True):
        assert set(tick.poses) == set(due.poses)
        actors = sorted(due.poses)
        poses = [(*tick.poses[actor].location, *tick.poses[actor].rotation) for actor in actors]
        wanted = [due.poses[actor] for actor in actors]
        # One comparison for each step: there are ten thousands of poses.
        np.testing.assert_allclose(poses, wanted, rtol=0, atol=1e-6)
        assert same(list(tick.created), due.created)
        assert tick.destroyed == due.destroyed
        assert tick.attached == due.attached
        assert same(dict(tick.applied), due.applied)
        assert same(tick.weather, due.weather)
        assert tick.visual_time == due.visual_time
        assert same(list(tick.collisions), due.collisions)
    assert [t.number for t in got] == list(range(len(got)))
    return len(got)


CHOICES = [
    (0.05, Options()),
    (0.21, Options(factor=1.5, sensors=True, ignore_spectator=False)),
    (0.1, Options(start=-1.3, factor=3.0, ignore_hero=True)),
    (0.07, Options(start=0.4, duration=1.1, sensors=True)),
]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("choice", range(len(CHOICES)))
def test_ticks_of_every_release_follow_the_rules(release: str, choice: int) -> None:
    delta, options = CHOICES[choice]
    assert compare(eventful(release, frames=24).bytes(), delta, options) > 1


@pytest.mark.parametrize("seed", range(half(4)))
@pytest.mark.parametrize("choice", range(len(CHOICES)))
def test_ticks_of_random_scenes_follow_the_rules(seed: int, choice: int) -> None:
    delta, options = CHOICES[choice]
    compare(carla_queries.scene(seed + 10).bytes(), 4 * delta, options)


@pytest.mark.parametrize(("delta", "options"), [(0.35, Options(sensors=True)), (0.3, Options(start=-2.0))])
def test_ticks_of_the_drive_follow_the_rules(delta: float, options: Options) -> None:
    compare(drive(9.0).bytes(), delta, options)


@pytest.mark.parametrize("name", REAL + SYNTHETIC)
@pytest.mark.parametrize(
    ("delta", "options"), [(1.7, Options()), (0.04, Options(-0.3, factor=1.3, sensors=True))]
)
def test_ticks_of_the_shared_recordings_follow_the_rules(name: str, delta: float, options: Options) -> None:
    compare(sample(name).read_bytes(), delta, options)


def test_events_of_skipped_frames_are_applied_but_their_states_are_not() -> None:
    out = Builder("0.9.16")
    for i in range(6):
        frame = out.frame(i * 0.1)
        if i == 0:
            frame.add(10, 1, "vehicle.a")
        if i == 1:
            frame.add(11, 1, "vehicle.b").vehicle(10, steer=0.5)
        if i == 2:
            frame.parent(11, 10)
        if i == 3:
            frame.remove(11).vehicle(10, steer=0.25)
        frame.visual_time(float(i))
    first, second, *_ = carla.Replay(logreel.open(out.bytes())).ticks(0.4)
    assert [a["id"] for a in first.created] == [10]
    assert [a["id"] for a in second.created] == [11]
    assert second.attached == [(11, 10)]
    assert second.destroyed == [11]
    assert second.visual_time == 4.0
    assert dict(second.applied) == {}
    assert set(second.poses) == {10}


def test_states_are_applied_once_per_frame() -> None:
    replay = carla.Replay(logreel.open(drive(1.0).bytes()))
    some = [len(tick.applied.get("vehicle_control", ())) for tick in replay.ticks(0.02)]
    frames = [tick.frame for tick in replay.ticks(0.02)]
    assert [bool(n) for n in some] == [a != b for a, b in zip(frames, [0, *frames], strict=False)]


def test_an_id_used_again_is_another_actor() -> None:
    out = Builder()
    for i in range(6):
        frame = out.frame(float(i))
        if i in (0, 4):
            frame.add(7, 1, f"vehicle.{i}", (float(i), 0.0, 0.0))
        if i == 2:
            frame.remove(7)
    replay = carla.Replay(logreel.open(out.bytes()))
    found = list(replay.ticks(1.0))
    assert [sorted(tick.poses) for tick in found] == [[7], [7], [], [], [7]]
    assert [sorted(replay.poses(float(i))) for i in range(5)] == [[7], [7], [], [], [7]]
    assert found[4].created[0]["description"] == "vehicle.4"


def test_spectator_follows_an_actor_with_the_given_offset() -> None:
    log = logreel.open(drive(3.0).bytes())
    plain = carla.Replay(log)
    # A step shorter than a frame skips none, so that the poses are those at any time.
    for tick in carla.Replay(log, follow=LEAD).ticks(0.04):
        due = plain.follow(LEAD, tick.time)
        assert tick.spectator.location == pytest.approx(due.location)
        assert tick.spectator.rotation == pytest.approx(due.rotation)
    near = next(carla.Replay(log, follow=LEAD, offset=(0.0, 0.0, 1.0), pitch=0.0).ticks(0.25))
    pose = near.poses[LEAD]
    assert near.spectator.location == pytest.approx((pose.location.x, pose.location.y, pose.location.z + 100))
    assert next(plain.ticks(0.25)).spectator is None
    with pytest.raises(NotFoundError, match="no actor"):
        carla.Replay(log, follow=99)


def test_collisions_are_recorded_but_not_applied() -> None:
    hits = [t for t in carla.Replay(logreel.open(drive().bytes()), start=25.0).ticks(0.05) if t.collisions]
    assert {(c["actor1"], c["actor2"]) for t in hits for c in t.collisions} == {(HERO, LEAD), (LEAD, HERO)}
    assert all("collisions" not in t.applied for t in hits)
    assert "not applied" in hits[0].line()
    assert hits[0].to_dict()["not_applied"]["collisions"] == list(hits[0].collisions)


def test_the_line_of_a_step_names_the_first_of_many_new_actors() -> None:
    tick = carla.Tick(0.0, 1, {}, created=[{"id": i, "description": f"vehicle.{i}"} for i in range(170)])
    assert len(tick.line()) < 160
    assert "create 3 vehicle.3, create 166 more" in tick.line()
    assert "create 1 vehicle.1, create 2" in tick.line()


def test_the_last_step_stops_vehicles_and_walkers() -> None:
    replay = carla.Replay(logreel.open(drive(2.5).bytes()), replay_sensors=True)
    *before, last = replay.ticks(0.1, stop=True)
    assert last.stopped
    assert not any(t.stopped for t in before)
    assert {c["id"] for c in last.applied["vehicle_control"]} == {HERO, LEAD, BIKE, 103}
    assert all(c["throttle"] == c["brake"] == c["steer"] == 0.0 for c in last.applied["vehicle_control"])
    assert last.applied["walker"] == [{"id": WALKER, "speed": 0.0}]
    assert CAMERA in last.poses


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": math.nan},
        {"duration": math.inf},
        {"time_factor": math.inf},
        {"offset": (0.0, math.nan, 0.0)},
    ],
)
def test_numbers_that_are_not_finite_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        carla.Replay(logreel.open(drive(0.5).bytes()), **wrong)


def test_damaged_packets_are_skipped() -> None:
    data = bytearray(drive(1.0).bytes())
    for at in range(2000, len(data), 997):
        data[at] ^= 0xFF
    log = logreel.open(bytes(data))
    assert log.problems
    assert len(list(carla.Replay(log).ticks(0.05, stop=True))) > 5
