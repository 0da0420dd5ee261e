"""Channels of a bag: the connections of one topic, type and checksum are one channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.formats.rosbag.definitions import Definitions
from logreel.log.scan import ORIGINAL, ChannelInfo
from logreel.log.schema import Schema

#: Name of the index's side column with the number of each message's connection in its channel.
CONNECTION = "connection"
#: Checksums that say nothing.
UNSTATED = ("", "*")


@dataclass(frozen=True, slots=True)
class Connection:
    """A topic as one publisher declared it.

    key     number by which message records refer to it, or a hash of the names that they state instead
    header  further fields of the publisher's connection header, by name
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
    """The connections that share topic, type and checksum."""

    topic: str
    type: str
    md5: str
    definition: str
    connections: list[Connection] = field(default_factory=list)

    def metadata(self) -> dict[str, Any]:
        """Return the metadata of the channel: checksum, callers, latching, connections and their headers."""
        originals = [text for c in self.connections for name, text in c.header if name == ORIGINAL]
        return ({ORIGINAL: originals[0]} if originals else {}) | {
            "md5sum": self.md5,
            "callerids": sorted({c.caller for c in self.connections if c.caller}),
            "latching": any(c.latching for c in self.connections),
            "connections": len(self.connections),
            "headers": [dict(c.header) for c in self.connections],
        }


class Channels:
    """All channels of a bag, in the order of their first connections.

    number  channel number by connection key
    turn    number of the connection in its channel, by connection key
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._channels: list[Channel] = []
        self._by_identity: dict[tuple[str, str, str], int] = {}
        self.number: dict[int, int] = {}
        self.turn: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._channels)

    def add(self, connection: Connection) -> int:
        """Add *connection* and return its channel number; a key met before keeps its channel."""
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

    def choose_versions(self, payloads: Callable[[int], Sequence[NDArray[np.uint8]]]) -> None:
        """Choose the definitions of channels without checksum and definition by their first messages.

        payloads  returns the first messages of a channel by its number
        """
        for number, channel in enumerate(self._channels):
            if channel.md5 in UNSTATED and not channel.definition.strip():
                channel.definition = self._definitions.fitting(channel.type, partial(payloads, number))

    @property
    def are_several(self) -> bool:
        """True if some channel has several connections."""
        return len(self.turn) > len(self._channels)

    def infos(self) -> list[ChannelInfo]:
        """Return the ChannelInfos; the second, third … channel of a topic is named ``topic[1]``, ``topic[2]`` …"""
        seen: dict[str, int] = {}
        infos = []
        for channel in self._channels:
            n = seen[channel.topic] = seen.get(channel.topic, -1) + 1
            name = channel.topic + (f"[{n}]" if n else "")
            kind, md5, text = self._definitions.given(name, channel.type, channel.md5, channel.definition)
            metadata = channel.metadata() | {"md5sum": md5} | ({"topic": channel.topic} if n else {})
            layout = partial(self._definitions.layout, channel.topic, kind, md5, text)
            infos.append(ChannelInfo(name, Schema(kind, "ros1msg", text), layout, metadata))
        return infos
