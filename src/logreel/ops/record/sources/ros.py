"""Live source: topics of a ROS 1 system, received through rospy as unchanged bytes."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import IO, Any

from logreel.errors import LogError, UsageError
from logreel.io.platform import widen_pipe
from logreel.log.scan import Schema
from logreel.ops.record.source import BUFFER_BYTES, Feed, LiveChannel
from logreel.ops.record.sources import ros_node
from logreel.ops.record.sources.ros_node import HEAD

#: Names the Python that has rospy.
PYTHON = "LOGREEL_ROS_PYTHON"
#: Python of the system, and where releases of ROS keep their packages for it.
SYSTEM_PYTHON, PACKAGES = "/usr/bin/python3", "/opt/ros/*/lib/python3/dist-packages"
#: Exit code of a node without rospy.
NO_ROSPY = 3
#: Bytes read from the node at once, and the capacity of its pipe.
READ_BYTES = 1 << 20
#: Last bytes of the error messages of the node that are kept.
ERROR_BYTES = 4096
#: Longest wait for frames in seconds, after which the source sees that the recording stops.
PATIENCE = 0.2
#: Seconds that a node has to end.
LEAVE_SECONDS = 5.0


def interpreters(python: str = "") -> Iterator[tuple[str, str]]:
    """Yield interpreters that may have rospy, with a folder of packages to be added.

    python  the only one to try; empty: LOGREEL_ROS_PYTHON, else this Python, else that of the system
    """
    chosen = python or os.environ.get(PYTHON, "")
    if chosen:
        yield chosen, ""
        return
    with contextlib.suppress(ValueError):
        if importlib.util.find_spec("rospy") is not None:
            yield sys.executable, ""
    yield SYSTEM_PYTHON, ""
    for folder in sorted(glob.glob(PACKAGES), reverse=True):
        yield SYSTEM_PYTHON, folder


class RosSource:
    """Topics of a ROS 1 system.

    address  URI of the master, such as ``http://robot:11311``; empty: that of ROS_MASTER_URI
    topics   topics to be subscribed before they are published, as ``rosbag record TOPIC`` does; others are subscribed
             when the master knows a publisher, if the recording wants them
    node     only topics that this node subscribes, as ``rosbag record --node`` does; empty: all
    python   path of a Python that has rospy; empty: LOGREEL_ROS_PYTHON, else this Python, else that of the system
    as_node  name of the recording node; a number is added to make it unique
    buffer   bytes of messages that may wait in the recording node

    Each publisher is a channel, with type, checksum, definition and the other fields of its connection header. Times
    are those of receipt, from ``/clock`` if ``/use_sim_time`` is set. Ends when the recording node is shut down, and
    when the master and all publishers are gone.
    """

    def __init__(
        self,
        address: str = "",
        *,
        topics: Sequence[str] = (),
        node: str = "",
        python: str = "",
        as_node: str = "logreel_record",
        buffer: int = BUFFER_BYTES,
    ) -> None:
        if address and not address.startswith("http://"):
            raise UsageError(f"{address!r} is no address of a ROS master, such as http://127.0.0.1:11311")
        self.name = f"ros:{address}" if address else "ros"
        self._address, self._topics, self._python = address, tuple(topics), python
        self._settings = {"node": as_node, "about": node, "most": buffer}
        self._channels: dict[int, LiveChannel | None] = {}
        #: Bytes of an incomplete frame, and how many it needs.
        self._parts: list[bytes] = []
        self._have = self._need = 0
        self._errors = b""
        #: Why the node ended; None: it did not say.
        self._reason: str | None = None
        #: Whether topics could be subscribed.
        self._was_ready = False

    def run(self, feed: Feed) -> None:
        """Record until the recording stops or messages can no longer come.

        Raises LogError without rospy or a master, and if the node fails.
        """
        tried = []
        for python, packages in interpreters(self._python):
            with self._started(python, packages) as node:
                self._follow(node, feed)
            if node.returncode != NO_ROSPY:
                break
            tried.append(f"{python}: {self._errors.decode('utf-8', 'replace').strip()[-200:]}")
            self._errors = b""
        else:
            raise LogError(
                "the source 'ros' needs rospy of ROS 1 (Debian: python3-rospy); "
                f"{PYTHON} names a Python that has it. Tried {'; '.join(tried)}"
            )
        if self._reason is None:
            text = self._errors.decode("utf-8", "replace").strip()
            raise LogError(f"the ROS node ended with code {node.returncode}: {text[-500:] or 'no message'}")
        if self._reason:
            if not self._was_ready:
                raise LogError(self._reason)
            feed.note(self._reason)

    @contextlib.contextmanager
    def _started(self, python: str, packages: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start the node; at the end, wait until it has ended."""
        environment = dict(os.environ)
        if self._address:
            environment["ROS_MASTER_URI"] = self._address
        if packages:
            paths = environment.get("PYTHONPATH", "")
            environment["PYTHONPATH"] = f"{packages}:{paths}" if paths else packages
        pipe = subprocess.PIPE
        try:
            node = subprocess.Popen(
                [python, ros_node.__file__], stdin=pipe, stdout=pipe, stderr=pipe, env=environment, bufsize=0
            )
        except OSError as error:
            raise LogError(f"{python} cannot be started: {error.strerror}") from error
        with node:
            try:
                yield node
            finally:
                with contextlib.suppress(OSError):
                    _pipe(node.stdin).close()
                try:
                    node.wait(LEAVE_SECONDS)
                except subprocess.TimeoutExpired:
                    node.kill()

    # ----------------------------------------------------------------------------------------------- frames

    def _follow(self, node: subprocess.Popen[bytes], feed: Feed) -> None:
        """Read frames and error messages of the node until both end."""
        stdin, stdout, stderr = _pipe(node.stdin), _pipe(node.stdout), _pipe(node.stderr)
        widen_pipe(stdout.fileno(), READ_BYTES)
        self._command(stdin, self._settings)
        asked = False
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ, self._take)
            selector.register(stderr, selectors.EVENT_READ, self._take_error)
            while selector.get_map():
                for key, _ in selector.select(PATIENCE):
                    data = os.read(key.fd, READ_BYTES)
                    if data:
                        key.data(data, stdin, feed)
                    else:
                        selector.unregister(key.fileobj)
                if feed.stopping and not asked:
                    # The node writes what it has, and ends.
                    asked = True
                    with contextlib.suppress(OSError):
                        stdin.close()

    def _command(self, stdin: IO[bytes], what: Any) -> None:
        # A node that ended says why.
        with contextlib.suppress(OSError, ValueError):
            stdin.write(json.dumps(what).encode() + b"\n")

    def _take_error(self, data: bytes, stdin: IO[bytes], feed: Feed) -> None:
        self._errors = (self._errors + data)[-ERROR_BYTES:]

    def _take(self, data: bytes, stdin: IO[bytes], feed: Feed) -> None:
        """Handle the complete frames of the bytes so far."""
        self._parts.append(data)
        self._have += len(data)
        if self._have < self._need:
            return
        data = b"".join(self._parts) if len(self._parts) > 1 else data
        at, unpack, channels, put = 0, HEAD.unpack_from, self._channels, feed.put
        last = len(data) - HEAD.size
        while at <= last:
            frame_type, number, time, size = unpack(data, at)
            begin = at + HEAD.size
            if begin + size > len(data):
                self._need = HEAD.size + size
                break
            at = begin + size
            if frame_type == ros_node.MESSAGE:
                channel = channels[number]
                if channel is not None:
                    put(channel, time, data[begin:at])
            else:
                self._control(frame_type, number, time, json.loads(data[begin:at]), stdin, feed)
        else:
            self._need = HEAD.size
        rest = data[at:]
        self._parts, self._have = [rest] if rest else [], len(rest)

    def _control(
        self, frame_type: int, number: int, time: int, what: Any, stdin: IO[bytes], feed: Feed
    ) -> None:
        """Handle a frame that is no message."""
        match frame_type:
            case ros_node.READY:
                self._was_ready = True
                for topic in self._topics:
                    self._command(stdin, ("subscribe", topic))
            case ros_node.TOPICS:
                for topic in what:
                    if feed.wants(topic):
                        self._command(stdin, ("subscribe", topic))
            case ros_node.CONNECTION:
                self._channels[number] = declare(feed, what["topic"], what["header"])
            case ros_node.LOST:
                channel = self._channels[number]
                if channel is not None:
                    feed.lose(channel, what, time)
            case ros_node.NOTE:
                feed.note(what)
                feed.say(f"{self.name}: {what}")
            case ros_node.END:
                self._reason = what


def declare(feed: Feed, topic: str, header: dict[str, str]) -> LiveChannel | None:
    """Declare the channel of the publisher with a connection header."""
    latched = header.get("latching") == "1"
    schema = Schema(header.get("type", ""), "ros1msg", header.get("message_definition", ""))
    metadata = {
        "md5sum": header.get("md5sum", "*"),
        "callerids": [header["callerid"]] if header.get("callerid") else [],
        "latching": latched,
        "headers": [header],
    }
    return feed.channel(topic, schema, metadata, latched=latched)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise LogError("the ROS node has no pipe")
    return pipe
