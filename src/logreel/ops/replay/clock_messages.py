"""The channel ``/clock`` with the time of a replay."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from logreel.errors import UsageError
from logreel.index.block_table import Blocks
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.log.log import Channel, Message
from logreel.log.scan import ChannelInfo, Scan
from logreel.log.schema import Schema
from logreel.log.times import SECOND
from logreel.registry.format import Format
from logreel.registry.open import log_of
from logreel.schemas import ros1msg

TOPIC, TYPE, DEFINITION = "/clock", "rosgraph_msgs/Clock", "time clock\n"
_SCHEMA = Schema(TYPE, "ros1msg", DEFINITION)


def clock_channel(channels: Sequence[Channel], epoch: str, topic: str = TOPIC) -> Channel:
    """Return a channel ``/clock`` of a separate log; raises UsageError if *channels* have its *topic* already."""
    if any(ch.topic == topic for ch in channels):
        raise UsageError(f"the log has a channel {topic} already: leave it out with exclude, -x {topic}")
    info = ChannelInfo(topic, _SCHEMA, lambda: ros1msg.layout(ros1msg.define(TYPE, DEFINITION)))
    source = Source(b"", TOPIC)
    index = MessageIndex(
        Chunks(source), Blocks.empty(1), [ChannelRules(lambda index: np.zeros(0, np.int64), 8)]
    )
    scan = Scan("", epoch, None, None, [info], index, [])
    fmt = Format("clock", "clock", (), lambda source: False, lambda source, saved: None)
    return log_of(source, fmt, scan)[topic]


def clock_message(channel: Channel, time: int) -> Message:
    """Return a message of ``/clock`` with *time* (ns), limited to the range of ROS times, 0 to 2^32 s."""
    second, rest = divmod(min(max(time, 0), (1 << 32) * SECOND - 1), SECOND)
    return Message(time, channel, memoryview(struct.pack("<II", second, rest)))
