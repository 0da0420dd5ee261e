"""Connections become channels: those of one topic and one definition are one channel."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from logreel.formats.rosbag.definitions import Definitions
from logreel.log.scan import ChannelInfo
from logreel.log.schema import Schema

#: What the index calls the number of the connection that a message came by.
CONNECTION = "connection"


@dataclass(frozen=True, slots=True)
class Connection:
    """A topic as one publisher declared it; *key* is what message records refer to it by.

    header  what else the publisher said of itself, by name
    """

    key: int
    topic: str
    type: str
    md5: str
    definition: str = ""
    caller: str = ""
    latching: bool = False
    header: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Channel:
    """Connections that share topic, type and definition."""

    topic: str
    type: str
    md5: str
    definition: str
    connections: list[Connection] = field(default_factory=list)

    def metadata(self) -> dict[str, Any]:
        """What the bag tells about the channel besides its definition."""
        return {
            "md5sum": self.md5,
            "callerids": sorted({c.caller for c in self.connections if c.caller}),
            "latching": any(c.latching for c in self.connections),
            "connections": len(self.connections),
            "headers": [dict(c.header) for c in self.connections],
        }


class Channels:
    """All channels of a bag, in the order in which their connections were met."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._channels: list[Channel] = []
        self._by_identity: dict[tuple[str, str, str], int] = {}
        #: By key: the channel of a connection, and which of the channel's connections it is.
        self.number: dict[int, int] = {}
        self.turn: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def add(self, connection: Connection) -> int:
        """The channel number of *connection*; a key met before keeps its channel."""
        if connection.key in self.number:
            return self.number[connection.key]
        identity = (connection.topic, connection.type, connection.md5)
        if identity not in self._by_identity:
            self._by_identity[identity] = len(self._channels)
            self._channels.append(Channel(*identity, connection.definition))
        number = self._by_identity[identity]
        channel = self._channels[number]
        self.turn[connection.key] = len(channel.connections)
        channel.connections.append(connection)
        channel.definition = channel.definition or connection.definition
        self.number[connection.key] = number
        return number

    @property
    def are_several(self) -> bool:
        """Whether a channel has several connections."""
        return len(self.turn) > len(self._channels)

    def infos(self) -> list[ChannelInfo]:
        """Channels as the model wants them; further definitions of a topic are marked by an instance number."""
        seen: dict[str, int] = {}
        infos = []
        for channel in self._channels:
            n = seen[channel.topic] = seen.get(channel.topic, -1) + 1
            name = channel.topic + (f"[{n}]" if n else "")
            kind, md5, text = self._definitions.given(name, channel.type, channel.md5, channel.definition)
            told = channel.metadata() | {"md5sum": md5} | ({"topic": channel.topic} if n else {})
            layout = partial(self._definitions.layout, channel.topic, kind, md5, text)
            infos.append(ChannelInfo(name, Schema(kind, "ros1msg", text), layout, told))
        return infos
