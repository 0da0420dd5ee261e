"""Slices with the messages in force at their start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logreel

S = 10**9
T0 = 1_700_000_000 * S


def transforms(*frames: str, x: float = 0.0) -> dict[str, Any]:
    """A message of transforms from ``map`` to each of *frames*."""
    place = {
        "translation": {"x": x, "y": 0.0, "z": 0.0},
        "rotation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
    }
    header = {"seq": 0, "stamp": 0, "frame_id": "map"}
    return {"transforms": [{"header": header, "child_frame_id": one, "transform": place} for one in frames]}


def bag(path: Path, **metadata: Any) -> Path:
    """Static transforms of three publishers in the first second, a value every 0.1 s for ten seconds, and texts."""
    with logreel.create(path, flush_every=None) as w:
        static = w.add_channel("/tf_static", logreel.Schema("tf2_msgs/TFMessage", "ros1msg"), metadata)
        value = w.add_channel("/x", logreel.Schema("std_msgs/Float64", "ros1msg"))
        described = w.add_channel("/arm/robot_description", logreel.Schema("std_msgs/String", "ros1msg"))
        mode = w.add_channel("/mode", logreel.Schema("std_msgs/String", "ros1msg"))
        w.write(static, T0 + 1, transforms("laser", "camera"))
        w.write(static, T0 + 2, transforms("imu"))
        w.write(static, T0 + 3, transforms("camera", x=2.0))
        w.write(static, T0 + 4, transforms("imu", x=3.0))
        w.write(described, T0 + 5, {"data": "<robot/>"})
        w.write(mode, T0 + 6, {"data": "idle"})
        for i in range(100):
            w.write(value, T0 + i * S // 10 + 10, {"data": float(i)})
    return path


@pytest.mark.parametrize("suffix", [".bag", ".mcap"])
def test_static_transforms_are_kept_though_the_log_says_nothing_of_latching(
    suffix: str, tmp_path: Path
) -> None:
    source, out = bag(tmp_path / f"a{suffix}"), tmp_path / f"b{suffix}"
    done = logreel.slice(source, out, start="+5s", keep_latched=True)
    log = logreel.open(out)
    found = [
        sorted((t["child_frame_id"]) for t in m.decode()["transforms"]) for m in log.messages("/tf_static")
    ]
    # That of the imu alone is superseded; camera and laser were told together, and the laser's still holds.
    assert found == [["camera", "laser"], ["camera"], ["imu"]]
    assert len(log["/arm/robot_description"]) == 1
    assert len(log["/mode"]) == 0
    assert any("'/tf_static' counts as latched by its name" in note for note in done.notes)


@pytest.mark.parametrize("suffix", [".bag", ".mcap"])
def test_messages_in_force_do_not_move_the_start(suffix: str, tmp_path: Path) -> None:
    source, out = bag(tmp_path / f"a{suffix}"), tmp_path / f"b{suffix}"
    done = logreel.slice(source, out, start="+5s", end="+7s", keep_latched=True)
    log = logreel.open(out)
    assert log.start == log["/x"].times[0]
    assert set(log["/tf_static"].times.tolist()) == {log.start}
    assert [m.channel.topic for m in log.messages()][:4].count("/tf_static") == 3
    assert log.end is not None
    assert log.end - (log.start or 0) < 2 * S
    assert any("3 of '/tf_static'" in note and "1 of '/arm/robot_description'" in note for note in done.notes)


def test_topics_can_be_given_as_latched(tmp_path: Path, run: Any) -> None:
    source, out = bag(tmp_path / "a.bag"), tmp_path / "b.bag"
    logreel.slice(source, out, start="+5s", latched="/mode")
    assert [m.decode()["data"] for m in logreel.open(out).messages("/mode")] == ["idle"]
    assert len(logreel.open(out)["/tf_static"]) == 3
    found = run("slice", str(source), "-o", str(tmp_path / "c.bag"), "-S", "+5s", "--latched", "/mode")
    assert found.code == 0
    assert (tmp_path / "c.bag").read_bytes() == out.read_bytes()
    with pytest.raises(logreel.TopicError):
        logreel.slice(source, out, start="+5s", latched="/node", force=True)


def test_each_publisher_of_a_latched_topic_holds(tmp_path: Path) -> None:
    for name in "ab":
        with logreel.create(tmp_path / f"{name}.bag", flush_every=None) as w:
            told = {"callerids": [f"/{name}"], "latching": True}
            mode = w.add_channel("/mode", logreel.Schema("std_msgs/String", "ros1msg"), told)
            for i in range(4):
                w.write(mode, T0 + i * S + ord(name), {"data": f"{name}{i}"})
    logreel.merge([tmp_path / "a.bag", tmp_path / "b.bag"], tmp_path / "c.bag")
    logreel.slice(tmp_path / "c.bag", tmp_path / "d.bag", start=T0 + 2 * S, keep_latched=True)
    found = [m.decode()["data"] for m in logreel.open(tmp_path / "d.bag").messages("/mode")]
    assert found == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_transient_local_topics_of_ros_2_are_latched(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.mcap", flush_every=None) as w:
        told = {"offered_qos_profiles": "- history: 1\n  depth: 1\n  reliability: 1\n  durability: 1\n"}
        mode = w.add_channel("/mode", logreel.Schema("std_msgs/String", "ros1msg"), told)
        other = w.add_channel("/x", logreel.Schema("std_msgs/Float64", "ros1msg"))
        w.write(mode, T0, {"data": "idle"})
        w.write(other, T0 + S, {"data": 1.0})
    logreel.slice(tmp_path / "a.mcap", tmp_path / "b.mcap", start="+0.5s", keep_latched=True)
    assert len(logreel.open(tmp_path / "b.mcap")["/mode"]) == 1


def test_a_slice_without_messages_of_its_channels_is_written_with_a_note(tmp_path: Path) -> None:
    source, out = bag(tmp_path / "a.bag"), tmp_path / "b.bag"
    done = logreel.slice(source, out, topics="/mode", start="+5s", end="+6s")
    assert done.messages == 0
    assert done.notes == ("no message of the chosen channels lies in the interval",)
    assert len(logreel.open(out)["/mode"]) == 0
