"""``logreel record --from ros`` next to the genuine ``rosbag record``; skipped without ROS 1."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import logreel
from logreel.errors import LogError
from support.harness.cli_runner import environment
from support.harness.live_sources import PATIENCE, wait_for
from support.harness.ros_system import RECORDER, RosSystem, require_ros, ros_system
from support.oracles.genuine_rosbag import connections, genuine

#: Messages published at RATE per second by several nodes; LOGREEL_SOAK=N: N thousand.
SOAK, RATE = int(os.environ.get("LOGREEL_SOAK", "0")), 5000


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosSystem]:
    require_ros(recorder=True)
    with ros_system(tmp_path) as system:
        yield system


def start_recording(ros: RosSystem, *args: str) -> subprocess.Popen[bytes]:
    env = {k: environment()[k] for k in ("PYTHONPATH", "LOGREEL_CACHE")}
    # The node of the recorder needs no PYTHONPATH.
    command = [sys.executable, "-m", "logreel", "record", "--from", "ros", *args]
    return ros.start(*command, env={**ros.environment, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def count(path: Path, topics: set[str]) -> int:
    """Return the number of messages in a bag that may be growing."""
    try:
        with logreel.open(path) as log:
            return sum(
                len(ch) for ch in log.channels.values() if ch.metadata.get("topic", ch.topic) in topics
            )
    except (LogError, OSError):
        return 0


def payload(n: int) -> bytes:
    """Return the message that a talker publishes for *n*: an empty layout, and two numbers."""
    return bytes(8) + (2).to_bytes(4, "little") + n.to_bytes(8, "little") + (7).to_bytes(8, "little")


def test_the_same_as_rosbag_record_at_the_same_time(ros: RosSystem, tmp_path: Path) -> None:
    genuine("std_msgs")
    # Chunks of 1 KB, so that messages are in the file soon.
    theirs = ros.start(str(RECORDER), "-a", "-O", "theirs.bag", "--chunksize=1")
    ours = start_recording(ros, "ours.bag")
    wait_for((tmp_path / "ours.bag.active").exists)
    wait_for((tmp_path / "theirs.bag.active").exists)
    first, second = ros.talker("first"), ros.talker("second")
    # Two publishers of a topic, a latched topic, and one that comes and goes. (Of types that conflict, rosbag records
    # the first one only.)
    for talker, topic, kind in (
        (first, "/a", "std_msgs/UInt64MultiArray"),
        (second, "/a", "std_msgs/UInt64MultiArray"),
        (first, "/c", "std_msgs/UInt8"),
        (first, "/filler", "std_msgs/UInt64MultiArray"),
        (first, "/brief", "std_msgs/UInt8"),
    ):
        talker.advertise(topic, kind)
        talker.await_subscribers(topic, 2)
    first.advertise("/map", "std_msgs/String", latch=True)
    first.publish("/map", range(1))
    begun = time.time_ns()
    # rosbag has a queue of a hundred messages for each topic.
    first.publish("/brief", range(5))
    first.publish("/a", range(60), 300)
    second.publish("/a", range(60, 120), 300)
    first.publish("/c", range(20))
    first.unadvertise("/brief")
    topics = {"/a", "/c", "/map", "/brief"}
    total = 5 + 120 + 20 + 1

    def all_there(path: Path) -> bool:
        if count(path, topics) < total:
            first.publish("/filler", range(40), 200)
            return False
        return True

    for name in ("ours.bag.active", "theirs.bag.active"):
        wait_for(lambda name=name: all_there(tmp_path / name))  # type: ignore[misc]
    ended = time.time_ns()
    for recorder in (ours, theirs):
        recorder.send_signal(signal.SIGINT)
        recorder.wait(PATIENCE)
    assert ours.returncode == 0, ours.stderr.read()
    wait_for((tmp_path / "theirs.bag").exists)
    found, expected = (
        [one for one in connections(tmp_path / name) if one.topic in topics]
        for name in ("ours.bag", "theirs.bag")
    )
    assert [one._replace(times=[]) for one in found] == [one._replace(times=[]) for one in expected]
    assert len(found) == 5
    assert sum(len(one.payloads) for one in found) == total
    for one in found:
        assert one.times == sorted(one.times)
        assert one.topic == "/map" or begun <= one.times[0]
        assert one.times[-1] <= ended
    with logreel.open(tmp_path / "ours.bag") as log:
        assert not log.problems


def test_topics_by_name_and_pattern_and_parts_of_a_log(ros: RosSystem, tmp_path: Path) -> None:
    talker = ros.talker()
    options = [
        "-t",
        "/a",
        "-t",
        "/b*",
        "-x",
        "/b2",
        "--limit",
        "50",
        "--split-size",
        "6000",
        "--repeat-latched",
    ]
    recorder = start_recording(ros, "out.bag", *options)

    def parts() -> list[Path]:
        return sorted(tmp_path.glob("out_*.bag*"), key=lambda path: int(path.stem.split(".")[0][4:]))

    # A name is subscribed before it is published.
    wait_for(lambda: "/a" in ros.subscribers())
    for topic in ("/a", "/b1", "/b2", "/c"):
        talker.advertise(topic, latch=topic == "/b1")
    for topic in ("/b1", "/b2", "/c"):
        talker.publish(topic, range(1))
    wait_for(lambda: any(count(path, {"/b1"}) for path in parts()))
    talker.await_subscribers("/a")
    talker.publish("/a", range(100))
    wait_for(lambda: sum(count(path, {"/a"}) for path in parts()) >= 50)
    recorder.send_signal(signal.SIGTERM)
    recorder.wait(PATIENCE)
    assert recorder.returncode == 0, recorder.stderr.read()
    assert len(parts()) > 1
    payloads = []
    for path in parts():
        with logreel.open(path) as log:
            assert {"/b1"} <= set(log.channels) <= {"/a", "/b1"}
            # The latched message is in each part.
            assert [bytes(one.data) for one in log["/b1"]] == [payload(0)]
            payloads += [bytes(one.data) for one in log.messages(order="file") if one.channel.topic == "/a"]
    assert payloads == [payload(n) for n in range(50)]


def test_types_that_conflict_keep_their_topic_also_when_a_bag_is_continued(
    ros: RosSystem, tmp_path: Path
) -> None:
    genuine("std_msgs")
    # At last, another publisher of a type that the bag has.
    for turn, name in enumerate(("first", "first", "third")):
        talkers = [ros.talker(name), ros.talker("second")]
        recorder = start_recording(
            ros, "out.bag", "-t", "/a", "--flush", "0.1s", *["--append"][: min(turn, 1)]
        )
        for talker, kind in zip(talkers, ("std_msgs/UInt8", "std_msgs/String"), strict=True):
            talker.advertise("/a", kind)
            talker.await_subscribers("/a")
            talker.publish("/a", range(turn, turn + 1))
        wait_for(lambda turn=turn: count(tmp_path / "out.bag.active", {"/a"}) == 2 * turn + 2)  # type: ignore[misc]
        recorder.send_signal(signal.SIGINT)
        recorder.wait(PATIENCE)
        assert recorder.returncode == 0, recorder.stderr.read()
        for talker in talkers:
            talker.quit()
    found = {one.header["callerid"]: one for one in connections(tmp_path / "out.bag")}
    assert {one.topic for one in found.values()} == {"/a"}
    assert found["/first"].payloads == [b"\x00", b"\x01"]
    assert found["/second"].payloads == [b"\x01\x00\x00\x000", b"\x01\x00\x00\x001", b"\x01\x00\x00\x002"]
    assert found["/third"].payloads == [b"\x02"]
    types = {caller: one.header["type"] for caller, one in found.items()}
    assert types == {"/first": "std_msgs/UInt8", "/second": "std_msgs/String", "/third": "std_msgs/UInt8"}
    assert len(logreel.open(tmp_path / "out.bag")) == 2


def test_another_format_has_the_decoded_messages(ros: RosSystem, tmp_path: Path) -> None:
    talker = ros.talker()
    recorder = start_recording(ros, "out.ulg", "-t", "/a")
    talker.advertise("/a", "std_msgs/UInt8")
    talker.await_subscribers("/a")
    talker.publish("/a", range(100))
    wait_for(lambda: count(tmp_path / "out.ulg.active", {"/a"}) >= 100)
    recorder.send_signal(signal.SIGINT)
    recorder.wait(PATIENCE)
    assert recorder.returncode == 0, recorder.stderr.read()
    with logreel.open(tmp_path / "out.ulg") as log:
        assert log["/a"]["data"].tolist() == list(range(100))


def test_a_killed_recorder_leaves_its_messages_and_no_node(ros: RosSystem, tmp_path: Path) -> None:
    talker = ros.talker()
    recorder = start_recording(ros, "out.bag", "-t", "/a", "--flush", "0.1s")
    talker.advertise("/a")
    talker.await_subscribers("/a")
    talker.publish("/a", range(100))
    wait_for(lambda: count(tmp_path / "out.bag.active", {"/a"}) >= 100)
    recorder.kill()
    wait_for(lambda: "/a" not in ros.subscribers())
    with logreel.open(tmp_path / "out.bag.active") as log:
        assert [bytes(one.data) for one in log["/a"]] == [payload(n) for n in range(100)]


def test_a_missing_master_leaves_no_file(tmp_path: Path, ros: RosSystem) -> None:
    ros.environment["ROS_MASTER_URI"] = "http://127.0.0.1:9"
    recorder = start_recording(ros, "out.bag")
    assert b"no ROS master answers at http://127.0.0.1:9" in recorder.communicate(timeout=PATIENCE)[1]
    assert recorder.returncode == 1
    assert not list(tmp_path.glob("out*"))


def test_thousands_of_messages_per_second_are_recorded_without_loss(ros: RosSystem, tmp_path: Path) -> None:
    total = 1000 * SOAK
    if not total:
        pytest.skip("LOGREEL_SOAK=N records N thousand messages at 5000 per second")
    recorder = start_recording(ros, "out.bag", "--json")
    wait_for((tmp_path / "out.bag.active").exists)
    talkers = [ros.talker(name) for name in ("one", "two")]
    for number, talker in enumerate(talkers):
        talker.advertise(f"/t{number}")
        talker.await_subscribers(f"/t{number}")
    with ThreadPoolExecutor() as pool:
        for number, talker in enumerate(talkers):
            pool.submit(talker.publish, f"/t{number}", range(total // 2), RATE / 2)
    wait_for(lambda: count(tmp_path / "out.bag.active", {"/t0", "/t1"}) >= total // 2 * 2)
    recorder.send_signal(signal.SIGINT)
    done = json.loads(recorder.communicate(timeout=PATIENCE)[0])
    assert (done["lost"], done["skipped"]) == (0, [])
    with logreel.open(tmp_path / "out.bag") as log:
        for number in range(2):
            values = log[f"/t{number}"].to_arrow(fields=["data"])["data"]
            assert [one[0] for one in values.to_pylist()] == list(range(total // 2))
