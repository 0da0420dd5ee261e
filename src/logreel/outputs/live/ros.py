"""Messages for the nodes of a ROS 1 system, published through rospy as the bytes that they are."""

from __future__ import annotations

import importlib
import time
import warnings
from typing import TYPE_CHECKING, Any

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.ops.replay import Sink
from logreel.schemas import ros1msg

if TYPE_CHECKING:
    from logreel.log.log import Channel, Message
    from logreel.ops.replay import PlayerControls

ENCODING = "ros1msg"


class Ros(Sink):
    """Publishes each message under the topic, type, hash and definition that its channel has; latched ones latch.

    node  name of the node; a number is added to make it unique
    wait  seconds to wait at most until every topic has a subscriber; 0: none

    The master is found as every node finds it (ROS_MASTER_URI). A slow subscriber slows the replay down; nothing is
    dropped. Channels that are not of ROS 1 are left out.
    """

    def __init__(self, node: str = "logreel_play", wait: float = 0.0) -> None:
        self._node, self._wait = node, wait
        self._rospy, master = _imported()
        if not master.is_master_online():
            raise LogError(
                f"no ROS master answers at {master.get_master_uri()}: start roscore, or set ROS_MASTER_URI"
            )
        self._publishers: dict[Channel, Any] = {}

    def open(self, player: PlayerControls) -> None:
        """Make a node, and a publisher for each channel; wait for subscribers where told to."""
        self._rospy.init_node(self._node, anonymous=True, disable_signals=True)
        by_topic: dict[str, tuple[str, Any]] = {}
        for ch in player.channels:
            try:
                kind, latch = self._kind(ch), bool(ch.metadata.get("latching"))
            except DefinitionError as error:
                self.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
                continue
            topic = ch.topic.partition("[")[0]
            md5, publisher = by_topic.get(topic, (kind._md5sum, None))
            if md5 != kind._md5sum:
                self.skipped.append(
                    f"channel {ch.topic!r} was left out: {topic} has another type in this replay"
                )
                continue
            if publisher is None:
                publisher = self._publisher(topic, kind, latch)
                by_topic[topic] = kind._md5sum, publisher
            self._publishers[ch] = publisher
        if not self._publishers:
            raise UsageError("no channel holds messages of ROS 1")
        self._meet()

    def message(self, message: Message) -> None:
        """Publish one message."""
        publisher = self._publishers.get(message.channel)
        if publisher is not None:
            raw = publisher.data_class()
            raw._buff = bytes(message.data)
            publisher.publish(raw)

    def close(self) -> None:
        """Leave the system."""
        self._rospy.signal_shutdown("the replay is over")

    def _kind(self, ch: Channel) -> Any:
        """A class of messages that rospy takes for that of *ch* and sends as bytes."""
        if ch.schema.encoding != ENCODING:
            raise DefinitionError(f"its messages are of {ch.schema.encoding}, not of ROS 1")
        md5, text = _identity(ch)
        content = {"_type": ch.schema.name, "_md5sum": md5, "_full_text": text, "__slots__": []}
        return type("Raw", (self._rospy.AnyMsg,), content)

    def _publisher(self, topic: str, kind: Any, latch: bool) -> Any:
        with warnings.catch_warnings():
            # Without a queue each message is sent before the next one, so that none is dropped; rospy asks for one.
            warnings.simplefilter("ignore", SyntaxWarning)
            return self._rospy.Publisher(topic, kind, latch=latch, queue_size=None)

    def _meet(self) -> None:
        """Wait until every topic has a subscriber."""
        until = time.monotonic() + self._wait
        waiting = set(self._publishers.values())
        while waiting and time.monotonic() < until:
            waiting = {one for one in waiting if not one.get_num_connections()}
            time.sleep(0.02)


def _identity(ch: Channel) -> tuple[str, str]:
    """Hash and definition of the messages of *ch*, as nodes of today know them.

    Bags of version 1.1 have hashes of another kind. A hash that does not fit the definition is kept: so did whoever
    sent the messages.
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
    try:
        return importlib.import_module("rospy"), importlib.import_module("rosgraph")
    except ImportError as error:
        text = (
            f"the sink 'ros' needs rospy of ROS 1 (Debian: python3-rospy), which cannot be imported: {error}"
        )
        raise LogError(text) from error
