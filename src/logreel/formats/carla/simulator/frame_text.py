"""Lines that describe a frame, in the words of ``show_recorder_file_info``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from logreel.errors import DefinitionError
from logreel.formats.carla.simulator.info import EVENTS
from logreel.formats.carla.simulator.packet_text import texts
from logreel.formats.carla.simulator.printing import number
from logreel.formats.carla.simulator.wording import wording
from logreel.layout.nodes import Sequence as Counted

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log, Message


def frames(log: Log) -> Callable[[Sequence[Message]], list[str]]:
    """Return a function that describes the packets of a frame: records per kind, then each event."""
    words = wording(None, log.metadata, log.channels)

    @cache
    def event_texts(topic: str) -> dict[int, str]:
        """Return the text of each packet of a channel of events, by payload offset."""
        return dict(zip(log.index.offsets(log[topic].number).tolist(), texts(log[topic], words), strict=True))

    def describe(packets: Sequence[Message]) -> list[str]:
        title, counts, events = "", list[str](), list[str]()
        for packet in packets:
            topic = packet.channel.topic
            if topic == "frames":
                frame = packet.decode()
                title = f"Frame {frame['frame']} at {number(frame['elapsed'])} seconds"
            elif topic in EVENTS:
                events += event_texts(topic).get(packet.offset or 0, "").split("\n")[:-1]
            else:
                counts.append(f"{topic} {_record_count(packet)}".rstrip())
        return [": ".join(filter(None, [title, ", ".join(counts)])), *events]

    return describe


def _record_count(packet: Message) -> str:
    """Return the number of records that a packet states; empty if its kind has no count."""
    counted = _has_count(packet.channel) and len(packet.data) >= 2
    return str(int.from_bytes(packet.data[:2], "little")) if counted else ""


def _has_count(ch: Channel) -> bool:
    try:
        return isinstance(ch.layout.root, Counted)
    except DefinitionError:
        return False
