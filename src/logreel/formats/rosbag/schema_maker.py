"""Connections of new bags: topic, type, checksum and ROS 1 definition of each channel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, LogError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import String
from logreel.layout.numpy_columns import STRUCT, TIME, Column, from_values, list_column
from logreel.log.log import Channel
from logreel.log.scan import ORIGINAL, Schema
from logreel.schemas import ros1msg
from logreel.write.format_writer import Abilities, SchemaMaker, TextChannel, TextColumns, topic_without_number

if TYPE_CHECKING:
    from logreel.schemas.ros1to2 import Conversion

ENCODING = "ros1msg"
TYPE = re.compile(r"[A-Za-z]\w*/[A-Za-z]\w*|\*", re.ASCII)
_MD5 = re.compile(r"[0-9a-f]{32}|\*")
#: QoS of a topic of ROS 2 that is latched in ROS 1.
_LATCHED = re.compile(r"^[- ]*durability: *(?:1|transient_local) *$", re.MULTILINE)
#: Fields of a connection that are not part of the publisher's header here.
_OWN = {"type", "md5sum", "message_definition"}


@dataclass(frozen=True, slots=True)
class NewConnection:
    """A channel as it is written; *headers*: one dict for each connection with the publisher's header fields."""

    topic: str
    type: str
    md5: str
    text: str
    headers: tuple[Mapping[str, str], ...]
    layout: Layout | None


def declare(
    topic: str,
    schema: Schema,
    metadata: Mapping[str, Any],
    notes: list[str] | None = None,
    renew: bool = False,
) -> NewConnection:
    """Return the channel to be written; raise DefinitionError or UsageError for a channel that a bag cannot contain.

    notes  None: invalid topics, types and checksums raise; else they are kept as in the (damaged) source log, and a
           sentence for each is added
    renew  replace ``*`` and checksums of releases before 0.6 by the one that tools of today compute from the definition
    """
    if schema.encoding != ENCODING:
        raise DefinitionError(f"channel {topic!r} of a bag needs a schema of encoding 'ros1msg'")
    true_topic, stated = topic_without_number(topic, metadata), str(metadata.get("md5sum", ""))
    wrong: list[LogError] = []
    if not true_topic.isprintable() or not true_topic.strip():
        text = f"{true_topic!r:.80} cannot be the topic of a bag: printable characters only"
        wrong.append(UsageError(text))
    if not TYPE.fullmatch(schema.name):
        text = f"{schema.name!r:.80} is no type of ROS 1, which look like 'package/Name'"
        wrong.append(DefinitionError(text))
    if stated and not _MD5.fullmatch(stated):
        text = f"channel {topic!r}: {stated!r:.40} is no md5sum: 32 digits of 0-9 a-f, or '*'"
        wrong.append(UsageError(text))
    if wrong and notes is None:
        raise wrong[0]
    layout, text, md5 = _define(schema, stated, notes is not None, renew)
    headers = _headers(true_topic, metadata, notes is not None)
    try:
        "".join((text, *(value for header in headers for value in header.values()))).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"channel {topic!r}: what it says of itself is no text: {error.reason}") from None
    if notes is not None:
        notes += [f"channel {topic!r} is kept as the log has it: {error.text}" for error in wrong]
    return NewConnection(true_topic, schema.name, md5, text, headers, layout)


def has_same_checksum(schema: Schema, other: Schema) -> bool:
    """Return whether two schemas of one type have the same checksum; False if a definition cannot be used."""
    try:
        first, second = (ros1msg.define(s.name, s.text, "*", ros1msg.standard()) for s in (schema, other))
    except DefinitionError:
        return False
    return first.md5 == second.md5


def _define(schema: Schema, stated: str, tolerant: bool, renew: bool) -> tuple[Layout | None, str, str]:
    """Return Layout (None: raw bytes), text and checksum of a type, by its own text or else the known definition."""
    try:
        defined = ros1msg.define(schema.name, schema.text, stated or "*", ros1msg.standard())
        layout = ros1msg.layout(defined)
    except DefinitionError:
        if not stated and not tolerant:
            raise
        return None, schema.text, stated
    # Other tools do not know the definitions that this text leaves out.
    text = defined.text if defined.borrowed or not schema.text.strip() else schema.text
    # A definition that contradicts the stated checksum leaves it as it is: readers report that.
    is_old = renew and stated != defined.md5 and defined.matches(stated)
    return layout, text, defined.md5 if is_old else stated or defined.md5


def _headers(topic: str, metadata: Mapping[str, Any], tolerant: bool) -> tuple[Mapping[str, str], ...]:
    """Return the header of each connection, from ``headers`` or else from ``callerids`` and ``latching``."""
    stated = metadata.get("headers")
    if stated is None:
        latching = {"latching": "1"} if metadata.get("latching") else {}
        if ORIGINAL in metadata:
            latching[ORIGINAL] = str(metadata[ORIGINAL])
        callers = [{"callerid": str(caller)} for caller in metadata.get("callerids", ())]
        return tuple({"topic": topic, **caller, **latching} for caller in callers or [{}])
    if not all(isinstance(header, Mapping) for header in stated):
        raise UsageError("metadata 'headers' is a list with a dict for each connection")
    headers = [
        {str(name): str(value) for name, value in header.items() if name not in _OWN} for header in stated
    ]
    if not tolerant and any("=" in name or not name for header in headers for name in header):
        raise UsageError("the names in metadata 'headers' must not be empty or hold '='")
    return tuple(headers) or ({"topic": topic},)


LOG = "rosgraph_msgs/Log"


def _text_columns(lines: TextColumns) -> dict[str, Column]:
    n = len(lines.time)
    none, zero = from_values(String(), [""] * n), Column("uint32", n, np.zeros(n, np.uint32))
    header = (zero, Column(TIME, n, lines.time), none)
    return {
        "header": Column(STRUCT, n, children=header, names=("seq", "stamp", "frame_id")),
        "level": Column("int8", n, lines.level.astype(np.int8)),
        "name": lines.source,
        "msg": lines.text,
        "file": none,
        "function": none,
        "line": zero,
        "topics": list_column(np.zeros(n + 1, np.int32), from_values(String(), [])),
    }


class BagSchemaMaker(SchemaMaker):
    """ROS 1 definitions; *channels* are those declared, by number."""

    encoding = ENCODING
    abilities = Abilities(ros1msg.FIELD, nested_arrays=False)

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.channels: list[NewConnection] = []

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the type *name*; empty: a type of package ``logreel``, named after the topic."""
        name = name or ros1msg.type_name(topic)
        return Schema(name, ENCODING, ros1msg.definition_from_layout(layout, name))

    def schema_from_text(self, topic: str, text: str, file: str) -> Schema:
        """Return the type of a ``.msg`` file: ``pkg/Type`` if it is in ``pkg/msg`` or ``pkg``, else after the topic."""
        path = PurePath(file)
        folder = path.parent.parent.name if path.parent.name == "msg" else path.parent.name
        name = f"{folder or ros1msg.PACKAGE}/{path.stem}"
        return Schema(name if TYPE.fullmatch(name) else ros1msg.type_name(topic), ENCODING, text)

    def counterpart(self, channel: Channel) -> tuple[Conversion | None, dict[str, Any]]:
        """Return the type of ROS 1 for one of ROS 2; topics whose last messages late subscribers get are latched."""
        if channel.schema.encoding not in ("ros2msg", "ros2idl"):
            return None, {}
        # Loaded here, because other logs do not need it.
        from logreel.schemas import ros1to2

        qos = str(channel.metadata.get("offered_qos_profiles", ""))
        return ros1to2.to_ros1(channel.schema), {"latching": True} if _LATCHED.search(qos) else {}

    def text_channel(self) -> TextChannel:
        """Return ``/rosout``, whose levels are bits."""
        return TextChannel("/rosout", Schema(LOG, ENCODING), (16, 16, 16, 8, 4, 2, 2, 1), 2, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return *topic* as a name of ROS: ``/sensor/imu_1`` for ``sensor/imu[1]``."""
        return ros1msg.topic_name(topic)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's definition."""
        layout = self.channels[number].layout
        if layout is None:
            raise DefinitionError("the channel has no definition: its messages are bytes")
        return layout
