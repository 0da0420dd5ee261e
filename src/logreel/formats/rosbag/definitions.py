"""Layouts of the messages of a bag: by the connection's definition, else by a given or standard one of its type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import DefinitionError, Problem, UsageError
from logreel.io.source import Source
from logreel.kernels import layout as kernel
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.layout.program import compile_layout
from logreel.log.scan import ORIGINAL, ChannelInfo, Noted, Schema
from logreel.schemas import ros1msg

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Definitions:
    """Layouts of the connections of one bag; each definition that cannot be used is added to *problems* once.

    Precedence: the bag's own text, definitions that the user gave, standard messages.
    """

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._noted = Noted()

    @cached_property
    def _registry(self) -> ros1msg.DefinitionRegistry:
        return ros1msg.DefinitionRegistry.of(self._source.definitions)

    def given(self, topic: str, type_name: str, md5: str, text: str) -> tuple[str, str, str]:
        """Return type, checksum and text of channel *topic*: those of the bag, completed by those that the user gave.

        Raises UsageError if the given type is no type name of ROS 1.
        """
        stated = self._source.types.get(topic)
        if stated is None and not self._source.definitions:
            return type_name, md5, text
        if stated is not None and stated != type_name:
            if not ros1msg.is_type(stated):
                raise UsageError(f"{stated!r:.80} is no type of ROS 1, which look like 'package/Name'")
            type_name = stated
        definition, summed = ros1msg.as_read(type_name, text, md5, self._registry)
        # A type that the user gave also decides the checksum.
        return type_name, summed if stated is not None else md5, definition

    def fitting(self, type_name: str, payloads: Callable[[], Sequence[NDArray[np.uint8]]]) -> str:
        """Return the text of an earlier version of a type that fits all *payloads*, for bags without checksums.

        Empty if the version that is used otherwise fits, if there is no other version, or if none fits.
        """
        try:
            versions = list(self._registry.versions(type_name))
        except DefinitionError:
            return ""
        if len(versions) < 2:
            return ""
        samples = payloads()
        for number, candidate in enumerate(versions):
            if _fits(ros1msg.layout(candidate), samples):
                return candidate.text if number else ""
        return ""

    def layout(self, topic: str, type_name: str, md5: str, text: str) -> Layout:
        """Return the Layout of a channel's messages; RAW if no definition can be used, which is reported."""
        try:
            definition = ros1msg.define(type_name, text, md5, self._registry)
            layout = ros1msg.layout(definition)
        except DefinitionError as error:
            text = f"{topic}: {error.text}; its messages are raw bytes (definitions can be given on opening)"
            self._note("definition", text)
            return RAW
        if not definition.matches(md5):
            self._note("md5", f"{topic}: its definition has md5 {definition.md5}, the bag states {md5}")
        return layout

    def _note(self, code: str, text: str) -> None:
        problem = Problem(code, 0, 0, False, text)
        self._noted.add(self._problems, problem)


def _fits(layout: Layout, payloads: Sequence[NDArray[np.uint8]]) -> bool:
    """Return whether each payload ends where its content does."""
    if any(len(payload) < layout.measure.least for payload in payloads):
        return False
    program = compile_layout(layout)
    stop = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
    start = stop - np.array([len(payload) for payload in payloads], np.int64)
    status = np.zeros(len(payloads), np.uint8)
    data = np.concatenate([np.zeros(0, np.uint8), *payloads])
    kernel.count(data, start, stop, program.ops, np.zeros(len(program.columns), np.int64), status)
    return bool((status == kernel.OK).all())


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
class BagChannel:
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
        self._channels: list[BagChannel] = []
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
            self._channels.append(BagChannel(*identity, connection.definition))
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
            type_name, md5, text = self._definitions.given(
                name, channel.type, channel.md5, channel.definition
            )
            metadata = channel.metadata() | {"md5sum": md5} | ({"topic": channel.topic} if n else {})
            layout = partial(self._definitions.layout, channel.topic, type_name, md5, text)
            infos.append(ChannelInfo(name, Schema(type_name, "ros1msg", text), layout, metadata))
        return infos
