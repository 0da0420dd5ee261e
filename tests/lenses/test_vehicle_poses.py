"""Poses of flight controllers: frames, axes, resets, unknown positions, and what other tools get of them."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.lenses.motion import body_of
from logreel.lenses.vehicle import vehicle_poses
from support.builders.px4_poses import ENU, FLU, SECOND_US, START_US, px4, quaternion, wanted
from support.builders.recordings import entities
from support.oracles.frames import matrix
from support.samples.ulog.builder import Builder


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("suffix", "child"), [("", "base_link"), ("_groundtruth", "base_link_groundtruth")])
def test_poses_as_the_plain_rules(old: bool, suffix: str, child: str) -> None:
    frames = logreel.transforms(px4(old=old, suffix=suffix))
    assert frames.frames == sorted(["map", child])
    assert frames.links[child].rate == pytest.approx(50, rel=0.05)
    times = np.array([START_US + n * SECOND_US // 50 for n in range(190)])
    found = frames.lookup("map", child, times * 1000)
    for n, us in enumerate(times.tolist()):
        # The motion is not linear between two positions, but nearly so.
        np.testing.assert_allclose(found.matrix[n], wanted(us), atol=2e-3)


def test_names_of_the_bodies() -> None:
    names = {
        "vehicle_attitude": "base_link",
        "vehicle_local_position": "base_link",
        "/fmu/out/vehicle_attitude": "base_link",
        "vehicle_attitude_setpoint": "base_link_setpoint",
        "vehicle_local_position_setpoint": "base_link_setpoint",
        "trajectory_setpoint": "base_link_trajectory_setpoint",
        "vehicle_odometry": "base_link_odometry",
        "estimator_attitude": "base_link_estimator",
        "estimator_attitude[1]": "base_link_estimator_1",
        "estimator_local_position[1]": "base_link_estimator_1",
    }
    assert {topic: body_of(topic) for topic in names} == names


def test_poses_are_not_interpolated_across_a_reset() -> None:
    frames = logreel.transforms(px4(reset_at=2.0))
    times = START_US * 1000 + np.arange(0, 3_800_000_000, 7_000_000)
    north = frames.lookup("map", "base_link", times).translation[:, 1]
    smooth = np.interp(times, [START_US * 1000, (START_US + 4 * SECOND_US) * 1000], [0, 12])
    jumped = north - smooth
    # Either before or after the jump, never between.
    assert ((np.abs(jumped) < 0.4) | (np.abs(jumped - 100) < 0.4)).all()
    assert (jumped > 50).sum() > 100
    assert [one.code for one in frames.tree.findings] == ["tf-jump"]


def test_times_without_a_valid_position_are_left_out() -> None:
    frames = logreel.transforms(px4(unknown_until=1.5))
    # A first value is taken to hold for half a second before it.
    assert frames.links["base_link"].start == pytest.approx((START_US + SECOND_US) * 1000, abs=3e7)


def test_attitude_and_height_are_shown_if_the_position_is_never_valid() -> None:
    frames = logreel.transforms(px4(never=True))
    found = frames.lookup("map", "base_link", (START_US + SECOND_US) * 1000)
    np.testing.assert_allclose(found.translation, [0, 0, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.matrix[:3, :3], wanted(START_US + SECOND_US)[:3, :3], atol=1e-6)
    assert "never known" in frames.notes[0]


def test_wanted_attitudes_count_only_where_they_are_valid() -> None:
    out = Builder(start_us=START_US).flags()
    out.format("vehicle_attitude_setpoint:uint64_t timestamp;float[4] q_d;bool q_d_valid;")
    out.subscribe("vehicle_attitude_setpoint", 0)
    for n in range(4):
        out.data(0, struct.pack("<Q4f?", START_US + n * SECOND_US, *quaternion(1, 0, 0), n > 1))
    (pose,) = vehicle_poses(logreel.open(out.bytes()))
    assert pose.child == "base_link_setpoint"
    assert len(pose.track().time) == 2


def test_a_local_frame_without_north_is_odom() -> None:
    out = Builder(start_us=START_US).flags()
    out.format(
        "vehicle_odometry:uint64_t timestamp;float[3] position;float[4] q;uint8_t pose_frame;uint8_t reset_counter;"
    )
    out.subscribe("vehicle_odometry", 0)
    q = quaternion(0.5, 0.2, -0.1)
    for n, kind in enumerate((1, 2)):
        out.data(0, struct.pack("<Q3f4fBB", START_US + n, 1, 2, -3, *q, kind, 0))
    (pose,) = vehicle_poses(logreel.open(out.bytes()))
    found = pose.track()
    assert found.frame.tolist() == ["map", "odom"]
    w, x, y, z = q
    turn = np.array(matrix((1, 2, -3), (x, y, z, w)))
    for n, axes in enumerate((ENU, FLU)):
        np.testing.assert_allclose(found.position[n], axes @ (1, 2, -3), atol=1e-6)
        got = np.array(matrix(found.position[n], found.rotation[n]))
        np.testing.assert_allclose(got[:3, :3], axes @ turn[:3, :3] @ FLU, atol=1e-6)


def test_trajectory_setpoints_have_a_heading() -> None:
    out = Builder(start_us=START_US).flags()
    out.format(
        "trajectory_setpoint:uint64_t timestamp;float[3] position;float[3] velocity;float yaw;float yawspeed;"
    )
    out.subscribe("trajectory_setpoint", 0)
    nan = float("nan")
    for n, (x, yaw) in enumerate(((1.0, 0.0), (2.0, np.pi / 2), (3.0, nan), (nan, 0.0))):
        out.data(0, struct.pack("<Q8f", START_US + n, x, 0, 0, 0, 0, 0, yaw, 0))
    frames = logreel.transforms(out.bytes())
    found = frames.lookup("map", "base_link_trajectory_setpoint", [START_US * 1000, START_US * 1000 + 1000])
    # Heading north is along y of the map, heading east along x.
    np.testing.assert_allclose(np.degrees(found.euler[:, 2]), [90, 0], atol=1e-5)
    assert len(frames.links["base_link_trajectory_setpoint"]) == 2


def test_other_tools_get_poses_and_transforms_in_mcap(tmp_path: Path) -> None:
    pytest.importorskip("mcap_protobuf.decoder", reason="needs mcap-protobuf-support")
    from mcap.reader import make_reader
    from mcap_protobuf.decoder import DecoderFactory

    (tmp_path / "a.ulg").write_bytes(px4())
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.mcap")
    found: dict[str, list[Any]] = {}
    with (tmp_path / "a.mcap").open("rb") as file:
        for _, channel, _, message in make_reader(
            file, decoder_factories=[DecoderFactory()]
        ).iter_decoded_messages():
            found.setdefault(channel.topic, []).append(message)
    transforms, poses = found["vehicle_attitude/FrameTransform"], found["vehicle_local_position/PoseInFrame"]
    assert (len(transforms), len(poses)) == (200, 40)
    for n, one in enumerate(transforms[:190]):
        assert (one.parent_frame_id, one.child_frame_id) == ("map", "base_link")
        us = START_US + n * SECOND_US // 50
        assert one.timestamp.ToNanoseconds() == us * 1000
        np.testing.assert_allclose(plain(one.translation, one.rotation), wanted(us), atol=2e-3)
    for n, one in enumerate(poses[:38]):
        assert one.frame_id == "map"
        us = START_US + n * SECOND_US // 10
        np.testing.assert_allclose(plain(one.pose.position, one.pose.orientation), wanted(us), atol=2e-3)
    # And logreel reads the same frames from it.
    again = logreel.transforms(tmp_path / "a.mcap")
    assert again.frames == ["base_link", "map"]
    assert len(again.links["base_link"]) == 200


def plain(place: Any, turn: Any) -> np.ndarray:
    return np.array(matrix((place.x, place.y, place.z), (turn.x, turn.y, turn.z, turn.w)))


def test_rerun_gets_the_pose_in_the_map(tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="needs rerun-sdk")
    (tmp_path / "a.ulg").write_bytes(px4())
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.rrd")
    found = entities(tmp_path / "a.rrd")
    values = found["/vehicle_local_position"].values
    moves, turns = values["Transform3D:translation"], values["Transform3D:quaternion"]
    assert len(moves) == 40
    for n, (place, turn) in enumerate(zip(moves[:38], turns[:38], strict=True)):
        got = np.array(matrix(np.ravel(place), np.ravel(turn)))
        np.testing.assert_allclose(got, wanted(START_US + n * SECOND_US // 10), atol=2e-3)
    assert {str(np.ravel(one)[0]) for one in values["Transform3D:parent_frame"]} == {"map"}
    assert {str(np.ravel(one)[0]) for one in values["Transform3D:child_frame"]} == {"base_link"}


def test_real_flights_as_the_plain_rules(shared: Path) -> None:
    """The attitude of every real flight, message by message, and its position at the messages of the position."""
    seen = 0
    for path in sorted((shared / "data" / "ulog").glob("*.ulg")):
        log = logreel.open(path)
        if log.problems:
            continue
        for pose in vehicle_poses(log):
            ch, lens = pose.attitude
            if not lens.attitude or pose.child not in ("base_link", "base_link_groundtruth"):
                continue
            found = pose.track(source=ch)
            q = np.asarray(ch[lens.attitude], np.float64)
            for n in range(0, len(found.time), 97):
                w, x, y, z = q[found.row[n]] / np.linalg.norm(q[found.row[n]])
                want = ENU @ np.array(matrix((0, 0, 0), (x, y, z, w)))[:3, :3] @ FLU
                got = np.array(matrix((0, 0, 0), found.rotation[n]))[:3, :3]
                np.testing.assert_allclose(got, want, atol=1e-6)
                seen += 1
            if pose.position is None or not pose.has_position():
                continue
            at, own = pose.position
            found = pose.track(source=at)
            x, y, z = (np.asarray(at[name], np.float64)[found.row] for name in own.position)
            np.testing.assert_allclose(found.position, np.stack([y, x, -z], axis=-1))
    assert seen > 50
