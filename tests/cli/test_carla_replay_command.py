"""``logreel carla replay`` prints the steps of a replay, or plays them to sinks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.harness.cli_runner import Run, environment
from support.samples.carla.drive import HERO, LEAD, drive

carla: Any = logreel.carla


@pytest.fixture
def town(tmp_path: Path) -> Path:
    path = tmp_path / "town.log"
    path.write_bytes(drive(3.0).bytes())
    return path


def test_text_has_a_line_per_step(run: Run, town: Path) -> None:
    done = run("carla", "replay", town, "--delta", "0.5")
    assert (done.code, done.err) == (0, "")
    with logreel.open(town) as log:
        steps = list(carla.Replay(log).ticks(0.5, stop=True))
    assert done.out.splitlines() == [tick.line() for tick in steps]
    assert "create 100 vehicle.tesla.model3" in done.out


def test_json_has_an_object_per_step(run: Run, town: Path) -> None:
    done = run(
        "carla", "replay", town, "-s", "-2", "-d", "1", "-x", "1.5", "-c", LEAD, "--offset", "0,0,2", "--pitch", "0",
        "-i", "--move-spectator", "--spawn-sensors", "--json",
    )  # fmt: skip
    rows = [json.loads(line) for line in done.out.splitlines()]
    with logreel.open(town) as log:
        replay = carla.Replay(
            log, -2.0, 1.0, 1.5, follow=LEAD, offset=(0.0, 0.0, 2.0), pitch=0.0,
            ignore_hero=True, ignore_spectator=False, replay_sensors=True,
        )  # fmt: skip
        due = [tick.to_dict() for tick in replay.ticks(0.05, stop=True)]
    assert rows == json.loads(json.dumps(due))
    ids = {one["id"] for one in rows[0]["poses"]}
    assert HERO not in ids
    assert {1, 400} <= ids
    assert rows[-1]["stopped"]
    assert rows[0]["time_ns"] == 1_000_000_000 + round((replay.total - 3.0) * 1e9)


def test_camera_0_follows_no_actor(run: Run, town: Path) -> None:
    done = run("carla", "replay", town, "-c", "0", "--delta", "1", "--json")
    assert all(json.loads(line)["spectator"] is None for line in done.out.splitlines())


def test_stdout_gets_the_messages_of_the_steps(run: Run, town: Path) -> None:
    done = run("carla", "replay", town, "--delta", "0.5", "-x", "1.9", "--to", "stdout")
    messages = [json.loads(line) for line in done.out.splitlines()]
    poses = [m for m in messages if m["topic"] == "position"]
    with logreel.open(town) as log:
        steps = list(carla.Replay(log, time_factor=1.9).ticks(0.5))
    assert [m["time_ns"] for m in poses] == [tick.time_ns for tick in steps]
    for message, tick in zip(poses, steps, strict=True):
        got = {one["id"]: one["location"]["x"] for one in message["data"]["records"]}
        assert got == pytest.approx({actor: pose.location.x for actor, pose in tick.poses.items()}, rel=1e-6)
    assert "played" in done.err


def test_frames_describe_each_step(run: Run, town: Path) -> None:
    done = run("carla", "replay", town, "--delta", "0.5", "-x", "1.9", "--to", "frames")
    lines = done.out.splitlines()
    assert sum(line.startswith("Frame ") for line in lines) == 4
    assert " Create 100: vehicle.tesla.model3 (1) at (-15000, 200, 30)" in lines


def test_rerun_gets_boxes_of_actors_where_the_steps_show_them(run: Run, town: Path, tmp_path: Path) -> None:
    pytest.importorskip("rerun")
    from support.builders.recordings import entities

    target = tmp_path / "x.rrd"
    done = run("carla", "replay", town, "-x", "20", "-s", "2.8", "--to", "rerun", "--set", f"save={target}")
    assert done.code == 0
    found = entities(target)
    assert [path for path in found if path.startswith("/position")]
    assert any("Box" in name for entity in found.values() for name in entity.values)


def test_written_steps_are_a_recording_with_a_frame_per_step(tmp_path: Path) -> None:
    log = logreel.open(drive(3.0).bytes())
    replay = carla.Replay(log, follow=LEAD)
    path = tmp_path / "steps.log"
    steps = list(replay.ticks(0.25))
    assert carla.write_ticks(replay, path, 0.25) == len(steps)
    with logreel.open(path) as written:
        assert not written.problems
        assert written.metadata["map"] == "Town03"
        assert written["frames"]["elapsed"].tolist() == pytest.approx([t.time for t in steps])
        assert written["bounding_boxes"]["id"].tolist() == [100, 101, 102, 103, 200]
        camera = written.actors.get(1)
        assert camera is None
        rows = written.table("position").to_pylist()
        spectator = [row["location"]["x"] for row in rows if row["id"] == 1]
        assert spectator == pytest.approx([t.spectator.location.x for t in steps])
    with pytest.raises(logreel.LogError, match="exists"):
        carla.write_ticks(replay, path, 0.25)
    carla.write_ticks(replay, path, 1.0, force=True)


@pytest.mark.parametrize("release", ["0.9.4", "0.9.16", "0.10.0"])
def test_written_steps_keep_doors_bones_and_weather(release: str, tmp_path: Path) -> None:
    from support.samples.carla.builder import eventful

    log = logreel.open(eventful(release).bytes())
    replay = carla.Replay(log)
    steps = list(replay.ticks(0.02))
    carla.write_ticks(replay, tmp_path / "steps.log", 0.02)
    with logreel.open(tmp_path / "steps.log") as written:
        assert not written.problems
        for topic in ("doors", "bones", "wheels", "bikers", "walker", "scene_lights"):
            records = [one for tick in steps for one in tick.applied.get(topic, ())]
            rows = len(written.table(topic)) if topic in written.channels else 0
            assert rows == len(records), topic
        weather = [tick.weather for tick in steps if tick.weather is not None]
        assert len(weather) == (len(written["weather"]) if "weather" in written.channels else 0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--offset", "1,2,3"], "--follow"),
        (["-c", "101", "--offset", "1,2"], "three numbers"),
        (["-c", "99"], "no actor"),
        (["--delta", "0"], "greater than 0"),
        (["-x", "0"], "greater than 0"),
        (["--to", "null", "-x", "1e-9"], "steps"),
        (["--set", "save=x"], "--to"),
        (["--to", "null", "--json"], "leave one of them out"),
        (["--to", "nothing"], "no sink"),
        (["--to", "null", "--set", "x"], "NAME=VALUE"),
    ],
)
def test_wrong_options_are_refused(run: Run, town: Path, options: list[str], text: str) -> None:
    done = run("carla", "replay", town, *options)
    assert done.code in (1, 2)
    assert text in done.err
    assert done.out == ""


def test_recordings_without_complete_frames_have_no_steps(run: Run, tmp_path: Path) -> None:
    from support.samples.carla.builder import Builder

    empty, one = Builder(), Builder()
    one.frame(0.0)
    for out in (empty, one):
        path = tmp_path / "x.log"
        path.write_bytes(out.bytes())
        for options in ((), ("--json",), ("--to", "null"), ("--to", "frames")):
            done = run("carla", "replay", path, *options)
            assert (done.code, done.out) == (0, "")


def test_a_damaged_recording_is_replayed_as_far_as_it_goes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "cut.log"
    path.write_bytes(drive(2.0).bytes()[:-1000])
    done = run("carla", "replay", path)
    assert done.code == 3
    assert len(done.out.splitlines()) == 40


def test_a_stopped_replay_leaves_no_temporary_file(tmp_path: Path, town: Path) -> None:
    """Stop the process while it computes steps."""

    command = [sys.executable, "-m", "logreel", "carla", "replay", str(town), "-x", "1e-4", "--to", "null"]
    folder = tmp_path / "temporary"
    folder.mkdir()
    with subprocess.Popen(
        command, env={**environment(), "TMPDIR": str(folder)}, stderr=subprocess.PIPE
    ) as process:
        end = time.monotonic() + 60
        while not any(folder.glob("*/*")) and time.monotonic() < end:
            time.sleep(0.02)
        assert any(folder.iterdir())
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    assert not any(folder.iterdir())
