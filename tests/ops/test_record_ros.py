"""Recording from genuine ROS 1 systems: master, rospy publishers, ``rosbag record``; skipped without ROS 1."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from logreel.errors import LogError, UsageError
from logreel.ops.record.sources import live_source, names_source, ros_node
from logreel.ops.record.sources.ros import RosSource
from support.harness.live_sources import RunningSource, wait_for
from support.harness.ros_system import RosSystem, require_ros, ros_system


@pytest.fixture
def ros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RosSystem]:
    require_ros()
    with ros_system(tmp_path) as system:
        for name in ("ROS_MASTER_URI", "ROS_IP", "ROS_HOME", "ROS_LOG_DIR"):
            monkeypatch.setenv(name, system.environment[name])
        yield system


def payload(n: int) -> bytes:
    """Return the message that a talker publishes for *n*: an empty layout, and two numbers."""
    return bytes(8) + (2).to_bytes(4, "little") + n.to_bytes(8, "little") + (7).to_bytes(8, "little")


def test_publishers_that_come_go_and_return_are_recorded_completely(ros: RosSystem) -> None:
    with RunningSource(RosSource()) as running:
        first, second = ros.talker("first"), ros.talker("second")
        first.advertise("/a")
        first.await_subscribers("/a")
        first.publish("/a", range(100))
        # A second publisher of the topic, and a topic that appears while recording.
        second.advertise("/a")
        second.advertise("/b", "std_msgs/String", latch=True)
        second.publish("/b", range(1))
        second.await_subscribers("/a")
        second.await_subscribers("/b")
        second.publish("/a", range(100, 200))
        running.until(201)
        first.unadvertise("/a")
        second.quit()
        # A publisher that returns.
        first.advertise("/a")
        first.await_subscribers("/a")
        first.publish("/a", range(200, 300))
        got = running.until(301)
        channels = running.feed.channels
    assert running.error is None
    assert [one.data for one in got if one.topic == "/a"] == [payload(n) for n in range(300)]
    assert [one.data for one in got if one.topic == "/b"] == [b"\x01\x00\x00\x000"]
    assert [one.time for one in got] == sorted(one.time for one in got)
    # Each publisher is a channel; one that returns has the same one.
    assert sorted((one.topic, *one.metadata["callerids"]) for one in channels) == [
        ("/a", "/first"),
        ("/a", "/second"),
        ("/b", "/second"),
    ]
    for one in channels:
        header = one.metadata["headers"][0]
        assert set(header) == {"callerid", "latching", "md5sum", "message_definition", "topic", "type"}
        assert one.latched == one.metadata["latching"] == (one.topic == "/b")
        assert (one.schema.name, one.schema.encoding) == (header["type"], "ros1msg")
        assert one.schema.text == header["message_definition"]


def test_types_that_conflict_are_channels_of_their_own(ros: RosSystem) -> None:
    with RunningSource(RosSource()) as running:
        first, second = ros.talker("first"), ros.talker("second")
        first.advertise("/a", "std_msgs/UInt8")
        first.await_subscribers("/a")
        second.advertise("/a", "std_msgs/String")
        second.await_subscribers("/a")
        first.publish("/a", range(3))
        second.publish("/a", range(2))
        got = running.until(5)
        types = [one.schema.name for one in running.feed.channels]
    assert sorted(types) == ["std_msgs/String", "std_msgs/UInt8"]
    assert sorted((types[one.channel], one.data) for one in got) == [
        ("std_msgs/String", b"\x01\x00\x00\x000"),
        ("std_msgs/String", b"\x01\x00\x00\x001"),
        ("std_msgs/UInt8", b"\x00"),
        ("std_msgs/UInt8", b"\x01"),
        ("std_msgs/UInt8", b"\x02"),
    ]


def test_only_wanted_topics_are_subscribed(ros: RosSystem) -> None:
    talker = ros.talker()
    for topic in ("/a", "/b", "/c"):
        talker.advertise(topic)
    with RunningSource(RosSource(), wants=lambda topic: topic != "/b") as running:
        for topic in ("/a", "/c"):
            talker.await_subscribers(topic)
        assert talker.ask("connections", "/b") == 0
        talker.publish("/c", range(1))
        assert [one.topic for one in running.until(1)] == ["/c"]


def test_named_topics_are_subscribed_before_they_are_published(ros: RosSystem) -> None:
    with RunningSource(RosSource(topics=["a", "/b"]), wants=lambda topic: False):
        wait_for(lambda: {"/a", "/b"} <= set(ros.subscribers()))
    # The node signs off at the end.
    assert not {"/a", "/b"} & set(ros.subscribers())


def test_topics_that_a_node_subscribes(ros: RosSystem) -> None:
    listener = (
        "import rospy; from std_msgs.msg import UInt64MultiArray as M; rospy.init_node('listener');"
        "rospy.Subscriber('/a', M, print); rospy.spin()"
    )
    talker = ros.talker()
    for topic in ("/a", "/b"):
        talker.advertise(topic)
    with RunningSource(RosSource(node="listener")) as running:
        # The node appears while recording.
        ros.start("/usr/bin/python3", "-c", listener)
        talker.await_subscribers("/a", 2)
        talker.publish("/a", range(2))
        talker.publish("/b", range(1))
        assert [one.topic for one in running.until(2)] == ["/a", "/a"]
        assert talker.ask("connections", "/b") == 0


def test_a_master_that_dies_ends_the_recording_after_the_last_publisher(ros: RosSystem) -> None:
    talker = ros.talker()
    talker.advertise("/a")
    with RunningSource(RosSource()) as running:
        talker.await_subscribers("/a")
        ros.master.kill()
        wait_for(lambda: running.feed.notes)
        assert "the ROS master does not answer" in running.feed.notes[0]
        # Publishers need no master to send.
        talker.publish("/a", range(10))
        running.until(10)
        talker.process.kill()
        running.wait()
    assert running.error is None
    assert running.feed.notes[-1] == "ros: the ROS master and all publishers are gone"
    assert len(running.messages) == 10


def test_a_master_that_returns_is_used_further(ros: RosSystem) -> None:
    first = ros.talker("first")
    first.advertise("/a")
    with RunningSource(RosSource()) as running:
        first.await_subscribers("/a")
        ros.master.kill()
        ros.master.wait()
        wait_for(lambda: running.feed.notes)
        ros.start_master()
        second = ros.talker("second")
        second.advertise("/a")
        second.await_subscribers("/a")
        second.publish("/a", range(5))
        first.publish("/a", range(5, 10))
        got = running.until(10)
        running.stop()
    assert sorted(one.data for one in got) == sorted(payload(n) for n in range(10))


def test_a_node_that_is_shut_down_ends_the_recording(ros: RosSystem) -> None:
    talker = ros.talker()
    talker.advertise("/a")
    with RunningSource(RosSource(as_node="ours")) as running:
        talker.await_subscribers("/a")
        (name,) = ros.subscribers()["/a"]
        assert name.startswith("/ours")
        ros.shut_down(name)
        running.wait()
    assert running.error is None
    assert "the node was shut down" in running.feed.notes[-1]


def test_simulated_time_is_used_and_awaited(ros: RosSystem) -> None:
    talker = ros.talker("talker", **{"/use_sim_time": True})
    talker.advertise("/a")
    with RunningSource(RosSource(), wants=lambda topic: topic == "/a") as running:
        wait_for(lambda: running.feed.notes)
        assert "waiting for /clock" in running.feed.notes[0]
        talker.set_clock(123.5)
        talker.await_subscribers("/a")
        talker.publish("/a", range(1))
        assert running.until(1)[0].time == 123_500_000_000


def test_what_does_not_fit_into_the_queues_is_counted(ros: RosSystem) -> None:
    talker = ros.talker()
    talker.advertise("/a")
    with RunningSource(RosSource(buffer=2000), most=2000) as running:
        talker.await_subscribers("/a")
        talker.publish("/a", range(2000))

        # A loss in the node is reported with the next message that fits, or at the end.
    assert running.feed.channels[0].lost
    assert len(running.messages) + running.feed.channels[0].lost == 2000


def test_a_missing_master_is_an_error(ros: RosSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_MASTER_URI", "http://127.0.0.1:9")
    with RunningSource(RosSource()) as running:
        running.wait()
    assert isinstance(running.error, LogError)
    assert "no ROS master answers at http://127.0.0.1:9" in str(running.error)


def test_the_address_names_a_master(ros: RosSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_MASTER_URI", "http://127.0.0.1:9")
    talker = ros.talker()
    talker.advertise("/a")
    with RunningSource(live_source(f"ros:http://127.0.0.1:{ros.port}")) as running:
        talker.await_subscribers("/a")
    assert running.error is None


def test_an_environment_without_rospy_is_an_error() -> None:
    with RunningSource(RosSource(python=sys.executable)) as running:
        running.wait()
    if running.error is None or "needs rospy" not in str(running.error):
        pytest.skip("rospy is there")
    assert "Debian: python3-rospy" in str(running.error)
    assert "No module named" in str(running.error)


def test_a_python_that_cannot_be_started_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGREEL_ROS_PYTHON", "/nonexistent/python")
    with RunningSource(RosSource()) as running:
        running.wait()
    assert "/nonexistent/python cannot be started" in str(running.error)


def test_a_node_that_fails_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 7\n")
    program.chmod(0o755)
    with RunningSource(RosSource(python=os.fspath(program))) as running:
        running.wait()
    assert str(running.error) == "the ROS node ended with code 7: broken"


def test_frames_of_any_size_are_put_together(tmp_path: Path) -> None:
    header = {"type": "a/B", "md5sum": "*", "message_definition": "", "callerid": "/c", "latching": "1"}
    payloads = [bytes([n % 256]) * (1 << n) for n in range(24)] + [b""] + [b"x"] * 1000

    def frame(kind: int, content: bytes, stamp: int = 0) -> bytes:
        return ros_node.HEAD.pack(kind, 0, stamp, len(content)) + content

    (tmp_path / "frames").write_bytes(
        frame(ros_node.CONNECTION, json.dumps({"topic": "/a", "header": header}).encode())
        + b"".join(frame(ros_node.MESSAGE, one, n) for n, one in enumerate(payloads))
        + frame(ros_node.LOST, b"3", 7)
        + frame(ros_node.END, b'""')
    )
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\ncat '{tmp_path}/frames'\n")
    program.chmod(0o755)
    with RunningSource(RosSource(python=os.fspath(program))) as running:
        running.wait()
    assert running.error is None
    assert [(one.time, one.data) for one in running.messages] == list(enumerate(payloads))
    (channel,) = running.feed.channels
    assert (channel.lost, channel.latched, channel.metadata["callerids"]) == (3, True, ["/c"])


def test_addresses() -> None:
    assert live_source("ros").name == "ros"
    assert names_source("ros")
    assert not names_source("./ros")
    with pytest.raises(UsageError, match="no address of a ROS master"):
        live_source("ros:robot")
