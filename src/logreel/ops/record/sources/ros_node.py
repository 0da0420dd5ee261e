"""Program that receives messages of ROS 1 through rospy, and writes them to a pipe; ``ros.py`` starts it.

It runs in a process of its own, with a Python that has rospy: most environments have none, and rospy allows one node
per process. It needs Python 3.8 and nothing of logreel. Commands come as lines of JSON from standard input, whose end
is the command to end. Frames go to standard output: HEAD, then as many bytes as it says.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    # The folder of this file has modules with common names.
    del sys.path[0]

import contextlib
import importlib
import json
import os
import signal
import struct
import threading
import time
from collections import deque
from typing import Any

#: Head of a frame: kind, number of a connection, time in ns, size of the content.
HEAD = struct.Struct("<BIQI")
#: Kinds of frames. READY: topics can be subscribed. TOPICS: published topics that are new, a list. CONNECTION: number
#: and header of a connection. MESSAGE: a payload. LOST: number of messages that did not fit into the buffer. NOTE: a
#: sentence. END: the last frame, with a sentence why the node ended, or nothing.
READY, TOPICS, CONNECTION, MESSAGE, LOST, NOTE, END = range(1, 8)
#: Seconds between two questions to the master for topics.
POLL = 0.5
#: Unanswered questions after which the master is regarded as lost.
PATIENCE = 6
#: Seconds that frames are collected before they are written.
GATHER = 0.005
#: Seconds that messages on their way are awaited at the end.
SETTLE = 0.1
#: Seconds to sign off at the master.
PATIENCE_TO_LEAVE = 3
#: Bytes that rospy reads from a publisher at once.
READ_BYTES = 1 << 18
#: Largest part of the frames that is written at once.
WRITE_BYTES = 1 << 20


class FrameOutput:
    """Frames on their way to the pipe, at most *most* bytes of messages; others are lost and counted."""

    def __init__(self, descriptor: int, most: int) -> None:
        self._descriptor, self._most = descriptor, most
        self._parts: deque[bytes] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._lost: dict[int, int] = {}
        self._open = True
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def frame(self, frame_type: int, content: Any, number: int = 0) -> None:
        """Append a frame with *content* as JSON; it always fits."""
        data = json.dumps(content).encode()
        with self._changed:
            self._parts.append(HEAD.pack(frame_type, number, 0, len(data)) + data)
            self._changed.notify()

    def message(self, number: int, stamp: int, data: bytes) -> None:
        """Append a message of connection *number*, received at *stamp* ns."""
        size = len(data)
        with self._changed:
            if self._bytes and self._bytes + size > self._most:
                self._lost[number] = self._lost.get(number, 0) + 1
                return
            if self._lost:
                self._append_lost(stamp)
            if not self._parts:
                self._changed.notify()
            self._parts.append(HEAD.pack(MESSAGE, number, stamp, size))
            self._parts.append(data)
            self._bytes += size + HEAD.size

    def _append_lost(self, stamp: int) -> None:
        for number, count in self._lost.items():
            data = json.dumps(count).encode()
            self._parts.append(HEAD.pack(LOST, number, stamp, len(data)) + data)
        self._lost = {}

    def close(self) -> None:
        """Write what is left."""
        with self._changed:
            self._append_lost(time.time_ns())
            self._open = False
            self._changed.notify()
        self._thread.join()

    def _send(self) -> None:
        while True:
            with self._changed:
                while not self._parts and self._open:
                    self._changed.wait()
            # Few large writes cost less than many small ones.
            if self._open:
                time.sleep(GATHER)
            with self._changed:
                parts, self._parts, self._bytes = self._parts, deque(), 0
                if not parts and not self._open:
                    return
            # When the recorder is gone, so is standard input, whose end ends this node.
            with contextlib.suppress(OSError):
                self._write(parts)

    def _write(self, parts: deque[bytes]) -> None:
        while parts:
            batch, size = [], 0
            while parts and size < WRITE_BYTES:
                size += len(parts[0])
                batch.append(parts.popleft())
            rest = memoryview(b"".join(batch))
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


class Node:
    """A node that subscribes topics on command.

    rospy, rosgraph  the modules
    about            node whose subscribed topics count as published; empty: all published topics of the system
    """

    def __init__(self, rospy: Any, rosgraph: Any, out: FrameOutput, about: str) -> None:
        self._rospy, self._rosgraph, self._out = rospy, rosgraph, out
        self._about = about
        self._master = rosgraph.Master(rospy.get_name())
        self._subscribers: dict[str, Any] = {}
        self._connections: dict[tuple[tuple[str, str], ...], int] = {}
        #: Of changes to subscribers, which wait for the master; receiving does not.
        self._lock = threading.RLock()
        self._number_lock = threading.Lock()
        self._known: set[str] = set()
        self._unanswered = 0
        self._simulated = rospy.rostime.is_wallclock() is False

    def await_clock(self, stopping: threading.Event) -> None:
        """Wait for a simulated time, without which messages have no time."""
        if self._simulated and not self._rospy.get_rostime():
            self._out.frame(NOTE, "/use_sim_time is set: waiting for /clock")
            while not self._rospy.get_rostime() and not stopping.wait(0.05):
                pass

    def subscribe(self, topic: str) -> None:
        """Subscribe *topic*, whatever its type."""
        topic = self._rospy.resolve_name(topic)
        cache: dict[int, tuple[Any, int]] = {}
        simulated, get_time, wall = self._simulated, self._rospy.get_rostime, time.time_ns
        message, number_of = self._out.message, self._number

        def receive(received: Any) -> None:
            stamp = get_time().to_nsec() if simulated else wall()
            header = received._connection_header
            known = cache.get(id(header))
            if known is None or known[0] is not header:
                # The header is kept, so that no other one gets its id.
                known = cache[id(header)] = header, number_of(topic, header)
            message(known[1], stamp, received._buff)

        with self._lock:
            if topic not in self._subscribers:
                self._subscribers[topic] = self._rospy.Subscriber(
                    topic, self._rospy.AnyMsg, receive, buff_size=READ_BYTES
                )

    def unsubscribe(self, topic: str) -> None:
        """End the subscription of *topic*."""
        with self._lock:
            subscriber = self._subscribers.pop(self._rospy.resolve_name(topic), None)
            if subscriber is not None:
                subscriber.unregister()

    def _number(self, topic: str, header: Any) -> int:
        """Return the number of the connection with *header*; a publisher that returns has the same."""
        named = {str(name): str(value) for name, value in header.items()}
        key = (("", topic), *sorted(named.items()))
        with self._number_lock:
            number = self._connections.get(key)
            if number is None:
                number = self._connections[key] = len(self._connections)
                self._out.frame(CONNECTION, {"topic": topic, "header": named}, number)
            return number

    def look(self) -> str:
        """Ask the master for topics; return why the node has to end, or nothing."""
        try:
            topics = self._published()
            known = self._is_registered()
        except Exception as error:  # of sockets, HTTP, XML, or the master's answer
            self._unanswered += 1
            if self._unanswered == PATIENCE:
                self._out.frame(
                    NOTE,
                    f"the ROS master does not answer; messages of connected publishers are recorded: {error}",
                )
            lost = self._unanswered >= PATIENCE
            return "the ROS master and all publishers are gone" if lost and not self._has_publishers() else ""
        if self._unanswered >= PATIENCE:
            self._out.frame(NOTE, "the ROS master answers again")
        self._unanswered = 0
        if not known:
            self._register_again()
        fresh = [topic for topic in topics if topic not in self._known]
        self._known.update(fresh)
        if fresh:
            self._out.frame(TOPICS, fresh)
        return ""

    def _published(self) -> list[str]:
        if not self._about:
            return [str(topic) for topic, _ in self._master.getPublishedTopics("")]
        try:
            address = self._master.lookupNode(self._rospy.resolve_name(self._about))
        except self._rosgraph.MasterError:
            # The node does not exist yet.
            return []
        proxy = importlib.import_module("xmlrpc.client").ServerProxy(address)
        try:
            code, text, published = proxy.getSubscriptions(self._rospy.get_name())
        except OSError:
            # The node has crashed, and the master does not know.
            return []
        if code != 1:
            raise RuntimeError(text)
        return [str(topic) for topic, _ in published]

    def _is_registered(self) -> bool:
        """Return whether the master knows this node; one that was started again does not."""
        try:
            self._master.lookupNode(self._rospy.get_name())
        except self._rosgraph.MasterError:
            return False
        return True

    def _has_publishers(self) -> bool:
        """Return whether another node is connected; this one publishes its own log messages."""
        own = self._rospy.get_node_uri()
        for subscriber in list(self._subscribers.values()):
            for connection in list(getattr(subscriber.impl, "connections", ())):
                # rospy tries for ever to reach publishers that have crashed.
                if connection.socket is not None and connection.endpoint_id != own:
                    return True
        return False

    def _register_again(self) -> None:
        """Subscribe the topics at another master; connections that exist go on."""
        own = self._rospy.get_node_uri()
        node = importlib.import_module("xmlrpc.client").ServerProxy(own)
        for topic, subscriber in list(self._subscribers.items()):
            publishers = self._master.registerSubscriber(topic, "*", own)
            connected = [
                connection.endpoint_id for connection in list(getattr(subscriber.impl, "connections", ()))
            ]
            # As the master does it when a publisher appears.
            node.publisherUpdate("/master", topic, sorted({*publishers, *connected}))


def main() -> int:
    """Run the node with the settings in the first line of standard input; return 0, or 3 without rospy."""
    pipe = os.dup(1)
    # What libraries print must not get into the frames.
    os.dup2(2, 1)
    # The recorder gets these signals, too, and decides when to end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    try:
        rospy, rosgraph = importlib.import_module("rospy"), importlib.import_module("rosgraph")
    except ImportError as error:
        sys.stderr.write(f"rospy cannot be imported: {error}\n")
        return 3
    settings = json.loads(sys.stdin.readline())
    out = FrameOutput(pipe, settings["most"])
    reason = _run(rospy, rosgraph, out, settings)
    out.frame(END, reason)
    out.close()
    sys.stderr.flush()
    # Threads of rospy may wait for publishers that are gone.
    os._exit(0)


def _run(rospy: Any, rosgraph: Any, out: FrameOutput, settings: Any) -> str:
    """Record until standard input ends, or messages can no longer come; return why, or nothing."""
    if not rosgraph.is_master_online():
        return f"no ROS master answers at {rosgraph.get_master_uri()}: start roscore, or set ROS_MASTER_URI"
    rospy.init_node(settings["node"], anonymous=True, disable_signals=True, log_level=rospy.ERROR)
    node = Node(rospy, rosgraph, out, settings["about"])
    stopping = threading.Event()
    reasons: list[str] = []

    def look() -> None:
        try:
            node.await_clock(stopping)
            out.frame(READY, rospy.get_name())
            reason = ""
            while not reason and not stopping.wait(POLL):
                reason = (
                    "the node was shut down, e.g. by rosnode kill" if rospy.is_shutdown() else node.look()
                )
            reasons.append(reason)
        except Exception as error:
            reasons.append(f"the node failed: {error!r}")
        stopping.set()

    threading.Thread(target=_commands, args=(node, out, stopping), daemon=True).start()
    # A master whose computer is gone does not answer for minutes.
    threading.Thread(target=look, daemon=True).start()
    stopping.wait()
    time.sleep(SETTLE)
    # Then rospy waits for its threads, which are not needed any more.
    signed_off = threading.Event()
    rospy.core.add_preshutdown_hook(lambda reason: signed_off.set())
    threading.Thread(target=rospy.signal_shutdown, args=("the recording is over",), daemon=True).start()
    signed_off.wait(PATIENCE_TO_LEAVE)
    return reasons[0] if reasons else ""


def _commands(node: Node, out: FrameOutput, stopping: threading.Event) -> None:
    """Follow the commands ``[name, topic]`` until standard input ends."""
    for line in sys.stdin:
        name, topic = json.loads(line)
        try:
            (node.subscribe if name == "subscribe" else node.unsubscribe)(topic)
        except Exception as error:  # of names and sockets
            out.frame(NOTE, f"{topic}: {error}")
    stopping.set()


if __name__ == "__main__":
    sys.exit(main())
