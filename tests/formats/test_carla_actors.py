"""Actors of a recording: their attributes, lifetimes and trajectories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import logreel
from conftest import SHARED
from logreel.errors import NotFoundError, UsageError
from logreel.layout.arrow_arrays import as_struct
from support.builders.sample_logs import tiny
from support.samples.carla.builder import Builder, eventful
from support.samples.carla.drive import BIKE, CAMERA, HERO, HERO_SPEED, VAN, drive, motion
from support.samples.rosbag.builder import drive as bag_drive


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(drive().bytes())


def vectors(table: pa.Table, name: str) -> np.ndarray:
    column = table[name].combine_chunks()
    return np.stack([member.to_numpy() for member in as_struct(column).flatten()], axis=-1)


def test_actors_have_type_role_lifetime_and_parent(log: logreel.Log) -> None:
    assert list(log.actors)[:3] == [1, 20, 21]
    hero = log.actor(HERO)
    assert (hero.id, hero.type, hero.description) == (HERO, "vehicle", "vehicle.tesla.model3")
    assert hero.attributes["role_name"] == "hero"
    assert (hero.start, hero.end, hero.parent) == (0, None, None)
    assert {a.type for a in log.actors.values()} == {
        "other", "vehicle", "walker", "traffic_light", "traffic_sign", "sensor",
    }  # fmt: skip
    camera, frames = log.actor(CAMERA), log["frames"]["elapsed"]
    assert (camera.parent, camera.start) == (HERO, round(frames[40] * 1e9))
    assert log.actor(BIKE).end == round(frames[480] * 1e9)
    with pytest.raises(NotFoundError, match=r"no actor '109'; nearest: 10"):
        log.actor(109)
    assert hero == logreel.open(drive().bytes()).actor(HERO)
    assert "trajectory" not in repr(hero)


def test_log_of_another_format_has_no_actors() -> None:
    log = logreel.open(tiny())
    assert log.actors == {}
    with pytest.raises(NotFoundError, match="no actor"):
        log.actor(1)


def test_trajectory_equals_the_formulas_of_the_sample(log: logreel.Log) -> None:
    table = log.actor(HERO).trajectory()
    seconds = log["frames"]["elapsed"]
    assert table["frame"].to_pylist() == list(range(1, len(seconds) + 1))
    assert table["time"].cast(pa.int64()).to_pylist() == np.rint(seconds * 1e9).astype(int).tolist()
    moves = [motion(HERO_SPEED, 0.0, t) for t in seconds.tolist()]
    where = [(m.x * 100, m.y * 100, 30.0) for m in moves]
    assert np.allclose(vectors(table, "location"), where, rtol=1e-6)
    assert np.allclose(
        np.linalg.norm(vectors(table, "velocity"), axis=1), [m.speed for m in moves], atol=1e-5
    )
    assert np.allclose(vectors(table, "angular_velocity")[:, 2], [m.turn for m in moves], atol=1e-4)
    # On the straight street the acceleration is along x; it is inexact where the slope of the speed changes.
    first = (seconds > 2.1) & (seconds < 7.9)
    assert np.allclose(vectors(table, "acceleration")[first, 0], 13 / 6, atol=1e-4)


def sources(table: pa.Table) -> dict[str, tuple[str, str]]:
    found = {}
    for field in table.schema:
        field_metadata = {k.decode(): v.decode() for k, v in (field.metadata or {}).items()}
        if field_metadata:
            found[field.name] = field_metadata["unit"], field_metadata["source"]
    return found


def test_trajectory_schema_has_units_and_sources(log: logreel.Log) -> None:
    assert sources(log.actor(HERO).trajectory()) == {
        "location": ("cm", "recorded"),
        "rotation": ("deg", "recorded"),
        "velocity": ("m/s", "recorded"),
        "angular_velocity": ("deg/s", "recorded"),
        "acceleration": ("m/s2", "from velocity"),
    }
    assert sources(log.actor(300).trajectory())["velocity"] == ("m/s", "from location")


def test_velocities_are_derived_from_locations() -> None:
    out = Builder(additional=False)
    for i, x in enumerate((0.0, 100.0, 400.0, 900.0)):
        frame = out.frame(i * 0.5).position(7, (x, 0.0, -x))
        if i == 0:
            frame.add(7, 1, "vehicle.a")
        if i == 2:
            frame.kinematics(7, (50.0, 0.0, 0.0), (1.0, 2.0, 3.0))
    table = logreel.open(out.bytes()).actor(7).trajectory()
    velocity, angular = vectors(table, "velocity"), vectors(table, "angular_velocity")
    assert velocity[:, 0].tolist() == [2.0, 4.0, 50.0, 10.0]
    assert velocity[:, 2].tolist() == [-2.0, -4.0, 0.0, -10.0]
    assert angular[2].tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(angular[[0, 1, 3]]).all()
    assert sources(table)["velocity"][1] == "recorded, 3 of 4 from location"


def test_single_position_has_no_velocity() -> None:
    out = Builder("0.9.4")
    out.frame(0.0).add(7, 1, "vehicle.a").add(8, 3, "traffic.light").position(7, (1.0, 2.0, 3.0))
    log = logreel.open(out.bytes())
    table = log.actor(7).trajectory()
    assert vectors(table, "location").tolist() == [[1.0, 2.0, 3.0]]
    assert np.isnan(vectors(table, "velocity")).all()
    empty = log.actor(8).trajectory()
    assert (empty.num_rows, empty.schema.names) == (0, table.schema.names)


def test_float64_vectors_stay_float64() -> None:
    table = logreel.open(eventful("0.10.0").bytes()).actor(10).trajectory()
    assert table.schema.field("location").type.field("x").type == pa.float64()
    assert table["location"][0].as_py() == {"x": 1000.0, "y": 2000.0, "z": 30.25}


def test_trajectory_in_ros_axes(log: logreel.Log) -> None:
    here, there = (one.actor(HERO).trajectory().slice(350) for one in (log, log.ros_axes()))
    signs = {
        "location": (0.01, -0.01, 0.01),
        "rotation": (1, -1, -1),
        "velocity": (1, -1, 1),
        "angular_velocity": (-1, 1, -1),
        "acceleration": (1, -1, 1),
    }
    for name, sign in signs.items():
        assert np.allclose(vectors(there, name), vectors(here, name) * sign, atol=1e-5), name
    assert sources(there)["location"] == ("m", "recorded")
    assert np.abs(vectors(there, "angular_velocity")).max() > 10
    derived = [one.actor(BIKE).trajectory() for one in (log, log.ros_axes())]
    assert np.allclose(
        vectors(derived[1], "velocity"), vectors(derived[0], "velocity") * (1, -1, 1), atol=1e-5
    )
    for ask in (logreel.carla.info, logreel.carla.MetricsLog, logreel.carla.Replay):
        with pytest.raises(UsageError, match="as recorded"):
            ask(log.ros_axes())


def test_questions_take_a_path_an_open_log_or_bytes(tmp_path: Path) -> None:
    data = drive(27.0).bytes()
    (tmp_path / "a.log").write_bytes(data)
    with logreel.open(data) as log:
        for ask in (logreel.carla.info, logreel.carla.collisions, logreel.carla.blocked):
            due = ask(log).rows()
            assert due or ask is logreel.carla.blocked
            assert (
                ask(tmp_path / "a.log").rows()
                == ask(str(tmp_path / "a.log")).rows()
                == ask(data).rows()
                == due
            )
    assert logreel.carla.Replay(tmp_path / "a.log").total == logreel.carla.Replay(data).total
    frames = logreel.carla.MetricsLog(data).get_total_frame_count()
    assert logreel.carla.MetricsLog(tmp_path / "a.log").get_total_frame_count() == frames
    for ask in (
        logreel.carla.info,
        logreel.carla.collisions,
        logreel.carla.blocked,
        logreel.carla.MetricsLog,
        logreel.carla.Replay,
    ):
        with pytest.raises(UsageError, match="a log of format rosbag, not a CARLA recording"):
            ask(bag_drive())
        with pytest.raises(FileNotFoundError):
            ask(tmp_path / "none.log")


def test_standing_actor_has_zero_velocity(log: logreel.Log) -> None:
    table = log.actor(VAN).trajectory()
    assert not vectors(table, "velocity").any()
    assert not vectors(table, "acceleration").any()


@pytest.mark.skipif(not (SHARED / "data/carla").is_dir(), reason="no CARLA recordings beside the repository")
def test_recorded_velocities_agree_with_locations() -> None:
    log = logreel.open(SHARED / "data/carla/sr_DistanceBetweenVehicles_2021.log")
    hero = next(a for a in log.actors.values() if a.attributes.get("role_name") == "hero")
    table = hero.trajectory()
    assert sources(table)["velocity"][1].startswith("recorded")
    seconds = table["time"].cast(pa.int64()).to_numpy() / 1e9
    differences = np.gradient(vectors(table, "location") / 100, seconds, axis=0)
    apart = np.linalg.norm(differences - vectors(table, "velocity"), axis=1)
    assert np.median(apart) < 0.1
