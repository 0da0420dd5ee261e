"""Sink that publishes messages in a ROS 1 system through rospy, as unchanged bytes."""

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
    """Publishes each message with topic, type, hash, definition and latching of its channel.

    node  name of the node; a number is added to make it unique
    wait  maximum seconds to wait until every topic has a subscriber

    The master is found through ROS_MASTER_URI. A slow subscriber slows the replay down; nothing is dropped. Channels of
    other encodings than ROS 1 are left out.
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
        """Create the node and a publisher for each topic, and wait for subscribers."""
        self._rospy.init_node(self._node, anonymous=True, disable_signals=True)
        by_topic: dict[str, tuple[str, Any]] = {}
        for ch in player.channels:
            try:
                kind, latch = self._message_class(ch), bool(ch.metadata.get("latching"))
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
        self._wait_for_subscribers()

    def message(self, message: Message) -> None:
        """Publish one message."""
        publisher = self._publishers.get(message.channel)
        if publisher is not None:
            raw = publisher.data_class()
            raw._buff = bytes(message.data)
            publisher.publish(raw)

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

    def _publisher(self, topic: str, kind: Any, latch: bool) -> Any:
        with warnings.catch_warnings():
            # Without a queue, publish sends at once and drops nothing; rospy warns about it.
            warnings.simplefilter("ignore", SyntaxWarning)
            return self._rospy.Publisher(topic, kind, latch=latch, queue_size=None)

    def _wait_for_subscribers(self) -> None:
        """Wait until every topic has a subscriber."""
        until = time.monotonic() + self._wait
        waiting = set(self._publishers.values())
        while waiting and time.monotonic() < until:
            waiting = {one for one in waiting if not one.get_num_connections()}
            time.sleep(0.02)


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
    try:
        return importlib.import_module("rospy"), importlib.import_module("rosgraph")
    except ImportError as error:
        text = (
            f"the sink 'ros' needs rospy of ROS 1 (Debian: python3-rospy), which cannot be imported: {error}"
        )
        raise LogError(text) from error
