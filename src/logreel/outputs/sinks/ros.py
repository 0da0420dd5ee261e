"""Sink that publishes messages in a ROS 1 system through rospy, as unchanged bytes."""

from __future__ import annotations

import importlib
import json
import os
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.log.times import SECOND
from logreel.ops.record.sources.ros import PYTHON, interpreters
from logreel.ops.replay import Sink
from logreel.schemas import ros1msg

if TYPE_CHECKING:
    from logreel.log.log import Channel, Message
    from logreel.ops.replay import PlayerControls

ENCODING = "ros1msg"
#: Seconds in which another Python has to say where its modules are.
ASK_SECONDS = 30.0


class Ros(Sink):
    """Publishes each message with topic, type, hash, definition and latching of its channel.

    node   name of the node; a number is added to make it unique
    wait   maximum seconds to wait until every topic has a subscriber
    queue  messages per topic that wait for slow subscribers, then the oldest are dropped; 0: a slow subscriber slows
           the replay down, and nothing is dropped
    rate_control  topic of the ROS system that controls the rate: the replay waits while it is more than *max_delay*
           seconds after the stamp of the last message there; for messages without header, after the time at which the
           message arrived

    rospy is that of this Python, of LOGREEL_ROS_PYTHON, or of the system, as for ``record --from ros``; the last two
    must have the version of this Python. The master is found through ROS_MASTER_URI.

    Latched topics are latched, also those that are latched by their name only (``/tf_static``); subscribers that come
    later get all messages in force. Channels of other encodings than ROS 1 are left out.
    """

    follows = True
    #: As ``rosbag play``: subscribers need this time to connect.
    delay = 0.2

    def __init__(
        self,
        node: str = "logreel_play",
        wait: float = 0.0,
        queue: int = 0,
        rate_control: str = "",
        max_delay: float = 1.0,
    ) -> None:
        if queue < 0 or not max_delay >= 0:
            raise UsageError("the queue and the delay of the sink 'ros' are not negative")
        self._node, self._wait, self._queue = node, wait, queue
        self._control, self._max_delay = rate_control, max_delay
        self._stamps: dict[str, bool] = {}
        self._rospy, master = _imported()
        if not master.is_master_online():
            raise LogError(
                f"no ROS master answers at {master.get_master_uri()}: start roscore, or set ROS_MASTER_URI"
            )
        self._publishers: dict[Channel, Any] = {}

    def open(self, player: PlayerControls) -> None:
        """Create the node and a publisher for each topic, and wait for subscribers."""
        self._player = player
        self._rospy.init_node(self._node, anonymous=True, disable_signals=True)
        self._by_topic: dict[str, tuple[str, Any]] = {}
        self.add_channels(player.channels)
        if not self._publishers and not player.grows:
            raise UsageError("no channel holds messages of ROS 1")
        self._wait_for_subscribers()
        if self._control:
            self._limit(player.start_time)
            self._rospy.Subscriber(self._control, self._rospy.AnyMsg, self._controlled)

    def add_channels(self, channels: Sequence[Channel]) -> None:
        """Create the publishers for channels."""
        latched, by_topic = {_topic(ch) for ch in channels if self._player.is_latched(ch)}, self._by_topic
        for ch in channels:
            try:
                message_class = self._message_class(ch)
            except DefinitionError as error:
                self.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
                continue
            topic = _topic(ch)
            own_md5 = message_class._md5sum
            md5, publisher = by_topic.get(topic, (own_md5, None))
            if md5 != own_md5:
                self.skipped.append(
                    f"channel {ch.topic!r} was left out: {topic} has another type in this replay"
                )
                continue
            if publisher is None:
                publisher = self._publisher(topic, message_class, topic in latched)
                by_topic[topic] = own_md5, publisher
            self._publishers[ch] = publisher

    def moved(self, time: int) -> None:
        """Let the replay continue from *time* without waiting for the topic that controls the rate."""
        if self._control:
            self._limit(time)

    def message(self, message: Message) -> None:
        """Publish one message."""
        publisher = self._publishers.get(message.channel)
        if publisher is not None:
            publisher.publish(_raw(publisher, message))

    def close(self) -> None:
        """Shut the node down."""
        self._rospy.signal_shutdown("the replay is over")

    def _message_class(self, ch: Channel) -> Any:
        """Return a message class for rospy with the type of *ch*, which is sent as bytes."""
        if ch.schema.encoding != ENCODING:
            raise DefinitionError(f"its messages are of {ch.schema.encoding}, not of ROS 1")
        md5, text = _identity(ch)
        content = {"_type": ch.schema.name, "_md5sum": md5, "_full_text": text, "__slots__": []}
        return type("Raw", (self._rospy.AnyMsg,), content)

    def _publisher(self, topic: str, message_class: Any, latch: bool) -> Any:
        listener = self._listener() if latch else None
        with warnings.catch_warnings():
            # Without a queue, publish sends at once and drops nothing; rospy warns about it.
            warnings.simplefilter("ignore", SyntaxWarning)
            publisher = self._rospy.Publisher(
                topic,
                message_class,
                subscriber_listener=listener,
                latch=latch,
                queue_size=self._queue or None,
            )
        if listener is not None:
            listener.publisher = publisher
        return publisher

    def _listener(self) -> Any:
        """Return an object that sends the messages in force to each new subscriber, before the last message.

        rospy itself keeps one message per topic, but several of ``/tf_static`` can be in force.
        """
        sink = self

        class Listener(self._rospy.SubscribeListener):  # type: ignore[misc, name-defined]
            publisher: Any = None

            def peer_subscribe(self, topic: str, publish: Any, publish_to_peer: Any) -> None:
                impl = self.publisher and self.publisher.impl
                if impl and impl.latch is not None:
                    sink.send_in_force(self.publisher, publish_to_peer)

        return Listener()

    def send_in_force(self, publisher: Any, send: Any) -> None:
        impl = publisher.impl
        with impl.publock:
            # Sending to one subscriber changes the message that rospy keeps for later ones.
            last = impl.latch
            for ch in [ch for ch, other in self._publishers.items() if other is publisher]:
                for message in self._player.in_force(ch):
                    if message.data != last._buff:
                        send(_raw(publisher, message))
            impl.latch = last

    def _controlled(self, message: Any) -> None:
        """Let the replay go on after a message of the topic that controls the rate."""
        time = stamp(message, self._stamps)
        self._limit(self._player.position if time is None else time)

    def _limit(self, time: int) -> None:
        self._player.limit = time + int(self._max_delay * SECOND)

    def _wait_for_subscribers(self) -> None:
        """Wait until every topic has a subscriber."""
        until = time.monotonic() + self._wait
        waiting = set(self._publishers.values())
        while waiting and time.monotonic() < until:
            waiting = {publisher for publisher in waiting if not publisher.get_num_connections()}
            time.sleep(0.02)


def _topic(ch: Channel) -> str:
    """Return the topic to publish on, without the number of a further channel of that topic."""
    return ch.topic.partition("[")[0]


def _raw(publisher: Any, message: Message) -> Any:
    """Return a message for rospy with the unchanged bytes of *message*."""
    raw = publisher.data_class()
    raw._buff = bytes(message.data)
    return raw


def stamp(message: Any, known: dict[str, bool]) -> int | None:
    """Return the stamp of a received message in ns; None if it does not begin with a header.

    known  whether messages of a type begin with a header, by MD5 sum; filled in
    """
    head = message._connection_header
    md5 = head["md5sum"]
    if md5 not in known:
        try:
            fields = ros1msg.define(head["type"], head.get("message_definition", "")).root.fields
            known[md5] = bool(fields) and fields[0].type in ("Header", "std_msgs/Header")
        except DefinitionError:
            known[md5] = False
    if not known[md5] or len(message._buff) < 12:
        return None
    second: int
    rest: int
    _, second, rest = struct.unpack_from("<III", message._buff)
    return second * SECOND + rest


def _identity(ch: Channel) -> tuple[str, str]:
    """Return MD5 sum and definition of the messages of *ch*, as current nodes know them.

    Bags of version 1.1 have other hashes. A hash that does not match the definition is kept, since the original
    publisher used it, too.
    """
    stated = str(ch.metadata.get("md5sum") or "*")
    try:
        definition = ros1msg.define(ch.schema.name, ch.schema.text, stated)
    except DefinitionError:
        if len(stated) != 32:
            raise
        return stated, ch.schema.text
    return definition.md5 if definition.matches(stated) else stated, ch.schema.text or definition.text


def _imported() -> tuple[Any, Any]:
    """Return the modules rospy and rosgraph of this Python, or of another one of the same version that has them.

    Its folders come after all others in ``sys.path``. Raises LogError with what was tried.
    """
    tried = []
    for python, packages in interpreters():
        added = []
        if python != sys.executable:
            try:
                added = [folder for folder in _folders_of(python, packages) if folder not in sys.path]
            except LogError as error:
                tried.append(f"{python}: {error.text}")
                continue
        sys.path += added
        try:
            return importlib.import_module("rospy"), importlib.import_module("rosgraph")
        except ImportError as error:
            sys.path[:] = [folder for folder in sys.path if folder not in added]
            tried.append(f"{python}: {error}")
    raise LogError(
        "the sink 'ros' needs rospy of ROS 1 (Debian: python3-rospy); "
        f"{PYTHON} names a Python that has it. Tried {'; '.join(tried)}"
    )


def _folders_of(python: str, packages: str) -> list[str]:
    """Return the folders in which *python* finds modules, and *packages*; raises LogError if it is of no use here."""
    code = "import json, sys; import rospy; print(json.dumps([list(sys.version_info[:2]), sys.path]))"
    paths = os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH", "")]))
    try:
        done = subprocess.run(
            [python, "-c", code],
            capture_output=True, text=True, timeout=ASK_SECONDS, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LogError(f"it cannot be asked: {error}") from error
    if done.returncode:
        raise LogError(done.stderr.strip().rpartition("\n")[2] or f"it ended with code {done.returncode}")
    version, folders = json.loads(done.stdout)
    if version != list(sys.version_info[:2]):
        raise LogError(
            "its rospy is for Python {}.{}, this is Python {}.{}".format(*version, *sys.version_info)
        )
    return [folder for folder in folders if os.path.isdir(folder)]
