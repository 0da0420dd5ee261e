"""Messages published through rospy arrive unchanged at a genuine recorder; skipped without ROS 1."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import logreel
from logreel.formats.rosbag.sample.builder import tiny
from logreel.schemas import ros1msg
from support.harness.cli_runner import Run, environment
from support.harness.live_sources import PATIENCE, wait_for
from support.harness.replaying import MS, NUMBER, Numbered, bag
from support.harness.ros_system import PACKAGES, RECORDER, RosSystem, has_rospy_here, require_ros, ros_system

PLAY = (
    f"import sys; sys.path.append({PACKAGES!r}); from logreel.cli import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosSystem]:
    require_ros(recorder=True)
    if not has_rospy_here():
        pytest.skip("rospy cannot be imported by this Python")
    with ros_system(tmp_path) as system:
        yield system


def play(ros: RosSystem, *args: str) -> subprocess.CompletedProcess[bytes]:
    env = {**ros.environment, **{k: environment()[k] for k in ("PYTHONPATH", "LOGREEL_CACHE")}}
    command = [sys.executable, "-c", PLAY, "play", *args]
    return subprocess.run(command, env=env, capture_output=True, timeout=PATIENCE)


def test_a_genuine_recorder_receives_exactly_the_messages(ros: RosSystem, tmp_path: Path) -> None:
    # Recorders have queues of a hundred messages per topic: no topic has more, so that none overflows.
    content = [Numbered(f"/{'abc'[n % 3]}", 5 * MS * n, n) for n in range(240)]
    logs = [
        bag(tmp_path / "sent.bag", [Numbered("/map", 0, 1000), *content], latched=("/map",)),
        logreel.open(tiny("1.1")),
    ]
    (tmp_path / "old.bag").write_bytes(tiny("1.1"))
    recorder = ros.start(str(RECORDER), "-a", "-O", "got.bag")
    active = tmp_path / "got.bag.active"
    wait_for(active.exists)
    options = ["--align", "start", "--to", "ros", "--set", f"wait={PATIENCE}", "--clock", "20"]
    done = play(ros, str(tmp_path / "sent.bag"), str(tmp_path / "old.bag"), *options)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: _complete(active, recorder))
    got = logreel.open(tmp_path / "got.bag")
    for ch in (ch for log in logs for ch in log.channels.values()):
        assert _payloads(got, ch.topic) == _payloads(ch.log, ch.topic)
        found = got[ch.topic]
        definition = ros1msg.define(ch.schema.name, ch.schema.text)
        assert (found.schema.name, found.schema.text) == (ch.schema.name, ch.schema.text or definition.text)
        assert found.metadata["md5sum"] == definition.md5
        assert bool(found.metadata["latching"]) == (ch.topic == "/map")
    clock = got["/clock"]["clock"]
    assert clock[0] == logs[0].start
    assert len(clock) >= 20


def _complete(active: Path, recorder: subprocess.Popen[bytes]) -> bool:
    """Make the recorder close its bag, after all messages have arrived."""
    time.sleep(2)
    recorder.send_signal(signal.SIGINT)
    recorder.wait(PATIENCE)
    return not active.exists()


def _payloads(log: logreel.Log, topic: str) -> list[bytes]:
    return [bytes(message.data) for message in log.messages(topic)]


def test_channels_of_other_encodings_are_left_out(ros: RosSystem, logs: Path) -> None:
    done = play(ros, str(logs / "flight.ulg"), "--to", "ros")
    assert done.returncode == 2
    assert b"no channel holds messages of ROS 1" in done.stderr


def test_a_missing_master_is_an_error(ros: RosSystem, logs: Path) -> None:
    ros.environment["ROS_MASTER_URI"] = "http://127.0.0.1:9"
    done = play(ros, str(logs / "flight.ulg"), "--to", "ros")
    assert done.returncode == 1
    assert b"no ROS master answers at http://127.0.0.1:9" in done.stderr


def test_a_missing_rospy_is_an_error(run: Run, tmp_path: Path) -> None:
    if "rospy" in sys.modules:
        pytest.skip("rospy is there")
    bag(tmp_path / "a.bag", [Numbered("/a", 0, 0)])
    done = run("play", tmp_path / "a.bag", "--to", "ros")
    assert done.code == 1
    assert "needs rospy" in done.err
    assert NUMBER.encoding == "ros1msg"
