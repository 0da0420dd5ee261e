"""Messages published through rospy arrive unchanged at a genuine recorder; skipped without ROS 1."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import logreel
from logreel.outputs.sinks.ros import stamp
from logreel.schemas import ros1msg
from support.harness.cli_runner import Run, environment
from support.harness.live_sources import PATIENCE, wait_for
from support.harness.replaying import BASE, MS, NUMBER, Numbered, bag, number
from support.harness.ros_system import RECORDER, RosSystem, has_rospy_here, require_ros, ros_system
from support.samples.rosbag.builder import tiny

#: Genuine ``rosbag play``.
GENUINE = RECORDER.with_name("play")
#: The sink finds the rospy of the system, as ``record --from ros`` does.
PLAY = "import sys; from logreel.cli import main; sys.exit(main(sys.argv[1:]))"


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


def test_options_give_the_topics_that_genuine_rosbag_play_gives(ros: RosSystem, tmp_path: Path) -> None:
    if not GENUINE.exists():
        pytest.skip("no rosbag play here (Debian: rosbag)")
    content = [Numbered(f"/{'abc'[n % 3]}", 50 * MS * n, n) for n in range(30)]
    bag(tmp_path / "sent.bag", [Numbered("/map", 0, 1000), *content], latched=("/map",)).close()
    options = ["-p", "robot", "/robot/a:=/left", "-s", "0.52", "-u", "0.6", "-q", "-d", "2.5"]
    found = []
    for which in ("genuine", "own"):
        recorder = ros.start(str(RECORDER), "-a", "-x", "/rosout.*|/clock", "-O", f"{which}.bag")
        active = tmp_path / f"{which}.bag.active"
        wait_for(active.exists)
        # The recorder looks for new topics once a second.
        if which == "genuine":
            assert ros.start(str(GENUINE), str(tmp_path / "sent.bag"), *options).wait(PATIENCE) == 0
        else:
            done = play(ros, str(tmp_path / "sent.bag"), *options, "--to", "ros")
            assert done.returncode == 0, done.stderr
        wait_for(lambda active=active, recorder=recorder: _complete(active, recorder))
        with logreel.open(tmp_path / f"{which}.bag") as got:
            channels = got.channels.values()
            found.append({ch.topic: ([*map(number, ch)], bool(ch.metadata["latching"])) for ch in channels})
    assert found[0] == found[1]
    assert found[1]["/left"] == ([12, 15, 18, 21], False)
    assert found[1]["/robot/map"] == ([1000], True)


def test_a_log_that_is_still_written_is_played_to_a_genuine_recorder(ros: RosSystem, tmp_path: Path) -> None:
    recorder = ros.start(str(RECORDER), "-a", "-x", "/rosout.*", "-O", "got.bag")
    active = tmp_path / "got.bag.active"
    wait_for(active.exists)
    with logreel.create(tmp_path / "x.bag") as w:

        def write(topic: int, values: range) -> None:
            for n in values:
                w.write(topic, BASE + n * MS, struct.pack("<i", n))
            w.flush()

        first = w.add_channel("/a", NUMBER)
        write(first, range(1))
        line = ["play", "-f", str(tmp_path / "x.bag"), "--to", "ros", "-r", "0", "--prefix", "robot"]
        line += ["--rename", "/b:=/two", "--latched", "/b", "--keep-alive", "--delay", "3s"]
        env = {**ros.environment, **{k: environment()[k] for k in ("PYTHONPATH", "LOGREEL_CACHE")}}
        player = ros.start(sys.executable, "-c", PLAY, *line, env=env)
        wait_for(lambda: "/robot/a" in ros.published())
        wait_for(lambda: "/robot/a" in ros.subscribers())
        write(first, range(1, 60))
        second = w.add_channel("/b", NUMBER)
        write(second, range(60, 61))
        wait_for(lambda: "/two" in ros.published())
    # Latched: the recorder gets it although it connects later.
    wait_for(lambda: "/two" in ros.subscribers())
    wait_for(lambda: _complete(active, recorder))
    assert player.poll() is None
    player.send_signal(signal.SIGINT)
    assert player.wait(PATIENCE) in (0, 130)
    with logreel.open(tmp_path / "got.bag") as got:
        assert [*map(number, got["/robot/a"])] == list(range(60))
        assert [*map(number, got["/two"])] == [60]
        assert bool(got["/two"].metadata["latching"])


def test_subscribers_that_come_later_get_all_transforms_in_force(ros: RosSystem, tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag") as w:
        static = w.add_channel("/tf_static", logreel.Schema("tf2_msgs/TFMessage", "ros1msg"))
        mode = w.add_channel("/mode", logreel.Schema("std_msgs/String", "ros1msg"))
        for n, frame in enumerate(["laser", "camera", "laser", "imu"]):
            header = {"seq": 0, "stamp": 0, "frame_id": "map"}
            place = {
                "translation": {"x": float(n), "y": 0.0, "z": 0.0},
                "rotation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0},
            }
            one = {"header": header, "child_frame_id": frame, "transform": place}
            w.write(static, BASE + n, {"transforms": [one]})
        w.write(mode, BASE + 10, {"data": "idle"})
    assert not logreel.open(tmp_path / "a.bag")["/tf_static"].metadata.get("latching")
    line = ["play", str(tmp_path / "a.bag"), "--to", "ros", "-i", "--keep-alive"]
    env = {**ros.environment, **{k: environment()[k] for k in ("PYTHONPATH", "LOGREEL_CACHE")}}
    player = ros.start(sys.executable, "-c", PLAY, *line, env=env)
    wait_for(lambda: "/tf_static" in ros.published())
    time.sleep(1)
    # The genuine recorder comes when everything has been played.
    recorder = ros.start(str(RECORDER), "/tf_static", "/mode", "-O", "late.bag")
    active = tmp_path / "late.bag.active"
    wait_for(active.exists)
    wait_for(lambda: _complete(active, recorder))
    assert player.poll() is None
    player.send_signal(signal.SIGINT)
    assert player.wait(PATIENCE) == 130
    late = logreel.open(tmp_path / "late.bag")
    assert list(late) == ["/tf_static"]
    assert bool(late["/tf_static"].metadata["latching"])
    shown = [m.decode()["transforms"][0] for m in late["/tf_static"]]
    assert sorted((one["child_frame_id"], one["transform"]["translation"]["x"]) for one in shown) == [
        ("camera", 1.0), ("imu", 3.0), ("laser", 2.0)
    ]  # fmt: skip


def test_a_topic_of_the_system_controls_the_rate(ros: RosSystem, tmp_path: Path) -> None:
    bag(tmp_path / "a.bag", [Numbered("/a", 100 * MS * n, n) for n in range(40)]).close()
    talker = ros.talker("controller")
    talker.advertise("/done", "std_msgs/UInt64MultiArray")
    line = ["play", str(tmp_path / "a.bag"), "--to", "ros", "-r", "20"]
    line += ["--rate-control-topic", "/done", "--rate-control-max-delay", "1"]
    env = {**ros.environment, **{k: environment()[k] for k in ("PYTHONPATH", "LOGREEL_CACHE")}}
    player = ros.start(sys.executable, "-c", PLAY, *line, env=env, stderr=subprocess.PIPE)
    talker.await_subscribers("/done")
    time.sleep(2)
    # Four seconds of the log take 0.2 s; each message of the controller allows one second more.
    assert player.poll() is None
    for n in range(10):
        talker.publish("/done", range(n, n + 1))
        time.sleep(0.3)
        if player.poll() is not None:
            break
    assert n >= 2
    assert player.wait(PATIENCE) == 0
    assert b"played 40 messages" in player.stderr.read()


def test_stamps_of_the_controlling_topic_count(ros: RosSystem) -> None:
    class Received:
        _connection_header: ClassVar = {
            "type": "geometry_msgs/PoseStamped", "md5sum": "d3812c3cbc69362b77dc0b19b345f8f5",
            "message_definition": "Header header\nPose pose\n",
        }  # fmt: skip
        _buff = struct.pack("<III", 7, 12, 500) + bytes(60)

    class Plain:
        _connection_header: ClassVar = {
            "type": "std_msgs/Int32", "md5sum": "da5909fbe378aeaf85e547e830cc1bb7", "message_definition": "int32 data\n"
        }  # fmt: skip
        _buff = struct.pack("<i", 3)

    known: dict[str, bool] = {}
    assert stamp(Received(), known) == 12 * 10**9 + 500
    assert stamp(Plain(), known) is None
    assert sorted(known.values()) == [False, True]


def test_channels_of_other_encodings_are_left_out(ros: RosSystem, logs: Path) -> None:
    done = play(ros, str(logs / "flight.ulg"), "--to", "ros")
    assert done.returncode == 2
    assert b"no channel holds messages of ROS 1" in done.stderr


def test_a_missing_master_is_an_error(ros: RosSystem, logs: Path) -> None:
    ros.environment["ROS_MASTER_URI"] = "http://127.0.0.1:9"
    done = play(ros, str(logs / "flight.ulg"), "--to", "ros")
    assert done.returncode == 1
    assert b"no ROS master answers at http://127.0.0.1:9" in done.stderr


def test_a_missing_rospy_is_an_error(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "rospy" in sys.modules:
        pytest.skip("rospy is there")
    monkeypatch.setenv("LOGREEL_ROS_PYTHON", str(tmp_path / "nowhere"))
    bag(tmp_path / "a.bag", [Numbered("/a", 0, 0)])
    done = run("play", tmp_path / "a.bag", "--to", "ros")
    assert done.code == 1
    assert "needs rospy of ROS 1" in done.err
    assert "LOGREEL_ROS_PYTHON names a Python that has it. Tried " in done.err
    assert "nowhere" in done.err
    assert NUMBER.encoding == "ros1msg"


def test_the_sink_finds_the_rospy_of_the_system(tmp_path: Path) -> None:
    """Without a master it says so, which rospy is asked for."""
    command = [
        sys.executable,
        "-c",
        "import logreel.outputs.sinks.ros as r; print(r._imported()[0].__file__)",
    ]
    if subprocess.run(["/usr/bin/python3", "-c", "import rospy"], capture_output=True).returncode:
        pytest.skip("the system has no rospy")
    done = subprocess.run(command, capture_output=True, env=environment(), timeout=PATIENCE)
    if b"is for Python" in done.stderr:
        pytest.skip("its Python has another version")
    assert done.returncode == 0, done.stderr
    assert b"rospy" in done.stdout
