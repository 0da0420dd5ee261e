"""A genuine ROS 1 system for tests: a master, and programs connected to it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest

from support.harness.live_sources import PATIENCE, wait_for

#: Python of the system, and where Debian keeps its packages.
SYSTEM_PYTHON, PACKAGES = "/usr/bin/python3", "/usr/lib/python3/dist-packages"
RECORDER = Path("/usr/lib/rosbag/record")


class RosSystem:
    """A ROS master, and programs connected to it; *environment* is theirs."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        self.environment = {
            **os.environ,
            "ROS_MASTER_URI": f"http://127.0.0.1:{self.port}",
            "ROS_IP": "127.0.0.1",
            "ROS_HOME": str(folder / "home"),
            "ROS_LOG_DIR": str(folder / "log"),
        }
        self.environment.pop("PYTHONPATH", None)
        self._folder, self._stack = folder, stack
        self.start_master()

    def start_master(self) -> None:
        self.master = self.start("rosmaster", "--core", "-p", str(self.port))

        def listens() -> bool:
            with socket.socket() as one:
                return one.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for(listens)

    def start(self, *command: str, **options: Any) -> subprocess.Popen[bytes]:
        nothing = subprocess.DEVNULL
        usual = {"env": self.environment, "cwd": self._folder, "stdout": nothing, "stderr": nothing}
        process = subprocess.Popen(command, **{**usual, **options})
        # The last one is called first.
        self._stack.enter_context(process)
        self._stack.callback(process.kill)
        return process

    def subscribers(self) -> dict[str, list[str]]:
        """Return the names of the nodes that subscribe each topic."""
        with ServerProxy(self.environment["ROS_MASTER_URI"]) as master:
            state: Any = master.getSystemState("/tests")
        return dict(state[2][1])

    def published(self) -> set[str]:
        """Return the topics that some node publishes."""
        with ServerProxy(self.environment["ROS_MASTER_URI"]) as master:
            state: Any = master.getSystemState("/tests")
        return {topic for topic, _ in state[2][0]}

    def shut_down(self, node: str) -> None:
        """Do what ``rosnode kill`` does."""
        with ServerProxy(self.environment["ROS_MASTER_URI"]) as master:
            found: Any = master.lookupNode("/tests", node)
        with ServerProxy(found[2]) as proxy:
            proxy.shutdown("/tests", "killed")

    def talker(self, name: str = "talker", **parameters: Any) -> Talker:
        """Start a node that publishes on command; *parameters* are set at the master first."""
        pipe = subprocess.PIPE
        process = self.start(
            SYSTEM_PYTHON, "-c", TALKER, name, json.dumps(parameters), stdin=pipe, stdout=pipe
        )
        return Talker(process)


class Talker:
    """A rospy node in another process that publishes on command."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.name = self._answer()

    def _answer(self) -> Any:
        line = self.process.stdout.readline()
        assert line, "the talker ended"
        return json.loads(line)

    def ask(self, *command: Any) -> Any:
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        self.process.stdin.flush()
        return self._answer()

    def advertise(self, topic: str, kind: str = "std_msgs/UInt64MultiArray", latch: bool = False) -> None:
        self.ask("advertise", topic, kind, latch)

    def await_subscribers(self, topic: str, count: int = 1) -> None:
        """Wait until *topic* has subscribers."""
        wait_for(lambda: self.ask("connections", topic) >= count)

    def publish(self, topic: str, values: range, rate: float = 0) -> None:
        """Publish a message for each of *values*; *rate*: messages/s, 0: without pauses."""
        self.ask("publish", topic, values.start, values.stop, rate)

    def unadvertise(self, topic: str) -> None:
        self.ask("unadvertise", topic)

    def set_clock(self, seconds: float) -> None:
        """Publish a simulated time."""
        self.ask("clock", seconds)

    def quit(self) -> None:
        """Shut the node down."""
        self.process.stdin.close()
        self.process.wait(PATIENCE)


TALKER = """
import json, os, sys, time, warnings
import genpy, roslib.message, rosgraph, rospy
pipe = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
master = rosgraph.Master("/tests")
for key, value in json.loads(sys.argv[2]).items():
    master.setParam(key, value)
rospy.init_node(sys.argv[1], disable_signals=True)

def answer(what):
    pipe.write(json.dumps(what) + chr(10))
    pipe.flush()

warnings.simplefilter("ignore")
answer(rospy.get_name())
publishers, clock = {}, None
for line in sys.stdin:
    command, *args = json.loads(line)
    result = None
    if command == "advertise":
        topic, kind, latch = args
        # Without a queue, publish sends at once and drops nothing.
        publishers[topic] = rospy.Publisher(topic, roslib.message.get_message_class(kind), latch=latch, queue_size=None)
    elif command == "unadvertise":
        publishers.pop(args[0]).unregister()
    elif command == "connections":
        result = publishers[args[0]].get_num_connections()
    elif command == "clock":
        from rosgraph_msgs.msg import Clock
        if clock is None:
            clock = rospy.Publisher("/clock", Clock, queue_size=None, latch=True)
        clock.publish(Clock(genpy.Time.from_sec(args[0])))
    else:
        topic, begin, end, rate = args
        publisher = publishers[topic]
        message = publisher.data_class()
        due = time.monotonic()
        for n in range(begin, end):
            message.data = n if not isinstance(message.data, list) else [n, 7]
            if isinstance(publisher.data_class().data, str):
                message.data = str(n)
            publisher.publish(message)
            if rate:
                due += 1 / rate
                left = due - time.monotonic()
                if left > 0:
                    time.sleep(left)
    answer(result)
rospy.signal_shutdown("")
"""


def require_ros(recorder: bool = False) -> None:
    """Skip the test without a genuine master, rospy, and *recorder*: ``rosbag record``."""
    if not shutil.which("rosmaster") or (recorder and not RECORDER.exists()):
        pytest.skip("no ROS 1 here (Debian: python3-rosmaster, rosbag)")
    test = "import rospy, rosgraph_msgs.msg, std_msgs.msg"
    if (
        not Path(SYSTEM_PYTHON).exists()
        or subprocess.run([SYSTEM_PYTHON, "-c", test], capture_output=True).returncode
    ):
        pytest.skip(f"{SYSTEM_PYTHON} has no rospy (Debian: python3-rospy, python3-std-msgs)")


def has_rospy_here() -> bool:
    """Return whether this Python can import rospy with Debian's packages."""
    code = f"import sys; sys.path.append({PACKAGES!r}); import rospy"
    return not subprocess.run([sys.executable, "-c", code], capture_output=True).returncode


@contextmanager
def ros_system(folder: Path) -> Iterator[RosSystem]:
    """Start a master; end it and all programs at the end."""
    with ExitStack() as stack:
        yield RosSystem(folder, stack)
