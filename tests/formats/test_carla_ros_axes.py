"""ROS axes and units, actor states, and text lines of CARLA recordings."""

from __future__ import annotations

import json

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from logreel.lenses import ActorPose, lenses
from support.samples.carla.builder import Builder, eventful
from support.samples.ulog.builder import tiny


def unit(log: logreel.Log, topic: str, path: str) -> bytes:
    return (log.table(topic, [path]).schema.field(path).metadata or {}).get(b"unit", b"")


@pytest.mark.parametrize("release", ["0.9.16", "0.10.0"])
def test_ros_axes_convert_every_vector(release: str) -> None:
    log = logreel.open(eventful(release).bytes())
    ros = log.ros_axes()
    signs = {
        ("position", "location"): (0.01, -0.01, 0.01),
        ("actors", "location"): (0.01, -0.01, 0.01),
        ("bounding_boxes", "origin"): (0.01, -0.01, 0.01),
        ("bounding_boxes", "extent"): (0.01, 0.01, 0.01),
        ("trigger_volumes", "origin"): (0.01, -0.01, 0.01),
        ("velocity", "linear"): (1, -1, 1),
        ("velocity", "angular"): (-1, 1, -1),
    }
    for (topic, field), factors in signs.items():
        for axis, factor in zip("xyz", factors, strict=True):
            path = f"{field}.{axis}"
            assert np.allclose(ros[topic][path], log[topic][path] * factor, equal_nan=True), path
            assert ros[topic][path].dtype == log[topic][path].dtype
            assert unit(ros, topic, path) == unit(log, topic, path).replace(b"cm", b"m")
    for name, factor in (("roll", 1), ("pitch", -1), ("yaw", -1)):
        path = f"rotation.{name}"
        assert np.array_equal(ros["position"][path], log["position"][path] * factor)
    assert np.allclose(ros["walker"]["speed"], log["walker"]["speed"] / 100)
    assert ros["vehicle_control"]["steer"].tolist() == log["vehicle_control"]["steer"].tolist()
    (bones,) = ros.table("bones").slice(3, 1)["bones"].to_pylist()
    assert bones[1]["location"]["z"] == pytest.approx(0.937)
    assert bones[1]["rotation"] == {"roll": 1.0, "pitch": -2.0, "yaw": -3.0}


def test_ros_axes_convert_physics() -> None:
    data = eventful("0.9.16").bytes()
    plain, ros = (logreel.open(data, ros_axes=on).table("physics").to_pylist()[0] for on in (False, True))
    for a, b in zip(plain["wheels"], ros["wheels"], strict=True):
        assert b["radius"] == pytest.approx(a["radius"] / 100)
        assert b["position"]["y"] == pytest.approx(-a["position"]["y"] / 100)
        assert b["max_steer_angle"] == a["max_steer_angle"]
    assert ros["center_of_mass"]["y"] == -plain["center_of_mass"]["y"]
    assert ros["mass"] == plain["mass"]


def test_ros_axes_of_messages_equal_those_of_tables() -> None:
    log = logreel.open(eventful().bytes(), ros_axes=True)
    for topic in ("position", "bones", "physics", "walker", "actors", "velocity", "vehicle_control"):
        message = next(log.messages([topic]))
        row = log.table(topic).drop_columns("time").to_pylist()[0]
        first = {k: v for k, v in row.items() if k != "frame"}
        assert json.dumps(_rounded(message.decode()["records"][0])) == json.dumps(_rounded(first)), topic


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {k: _rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def test_only_recordings_not_yet_converted_have_ros_axes() -> None:
    with pytest.raises(UsageError, match="no other axes"):
        logreel.open(tiny()).ros_axes()
    log = logreel.open(eventful().bytes())
    assert log.has_other_axes
    assert not log.ros_axes().has_other_axes
    assert log.ros_axes().actors[10].description == "vehicle.lincoln.mkz"


def test_actor_states_have_poses_boxes_and_kinds() -> None:
    log = logreel.open(eventful().bytes())
    (lens,) = lenses(log["position"])
    assert isinstance(lens, ActorPose)
    states = lens.states(log["position"])
    assert states.id.tolist()[:3] == [10, 12, 20]
    assert states.position[0].tolist() == pytest.approx([10.0, -20.0, 0.3025])
    assert (states.kind[0], states.model[0]) == ("vehicle", "vehicle.lincoln.mkz")
    assert states.size[0].tolist() == pytest.approx([4.904, 2.06, 1.478])
    assert states.centre[0].tolist() == pytest.approx([0.06, 0.0, 0.747])
    assert np.isnan(states.size[1]).all()
    assert np.linalg.norm(states.rotation, axis=1) == pytest.approx(1.0)
    time, position, _ = states.track(20)
    assert time.tolist() == [0, 50_000_000, 100_000_000, 150_000_000]
    assert position[:, 1].tolist() == pytest.approx([-25.0, -25.07, -25.14, -25.21])
    assert lenses(log["actors"]) == []


@pytest.mark.parametrize(
    ("turn", "ahead", "up"),
    [
        ((0.0, 0.0, 90.0), (0, -1, 0), (0, 0, 1)),  # clockwise from above: the car looks right
        ((0.0, 90.0, 0.0), (0, 0, 1), (-1, 0, 0)),  # nose up
        ((90.0, 0.0, 0.0), (1, 0, 0), (0, -1, 0)),  # right side down
    ],
)
def test_quaternions_equal_simulator_rotations_in_ros_axes(
    turn: tuple[float, ...], ahead: tuple[float, ...], up: tuple[float, ...]
) -> None:
    out = Builder()
    out.frame(0.0).position(1, (0.0, 0.0, 0.0), turn)
    log = logreel.open(out.bytes())
    (lens,) = lenses(log["position"])
    x, y, z, w = lens.states(log["position"]).rotation[0]
    assert (1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)) == pytest.approx(ahead)
    assert (2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)) == pytest.approx(up)


def test_events_become_text_lines() -> None:
    out = eventful()
    out.frames[1].add(40, 0, "static.prop.barrel")
    out.frames[3].collision(5, 10, 20, (True, False))
    lines = [(line.time, line.level, line.text) for line in logreel.open(out.bytes()).text]
    assert lines == [
        (0, 5, "the recording begins with 8 actors"),
        (0, 5, "sensor.other.collision (30) is attached to vehicle.lincoln.mkz (10)"),
        (50_000_000, 5, "static.prop.barrel (40) appears"),
        (100_000_000, 5, "vehicle.nissan.patrol (11) is removed"),
        (100_000_000, 4, "vehicle.lincoln.mkz (10) hits walker.pedestrian.0001 (20)"),
        (100_000_000, 4, "vehicle.lincoln.mkz (10) hits something"),
    ]
