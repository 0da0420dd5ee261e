"""Schemas of channels of new bags: ROS 1 definitions."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.rosbag.write_channels import ENCODING, TYPE, Declared
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.schemas import ros1msg
from logreel.write.schema_maker import Abilities, SchemaMaker, TextChannel, TextColumns

LOG = "rosgraph_msgs/Log"


def _text_columns(lines: TextColumns) -> dict[str, Any]:
    import pyarrow as pa

    n = len(lines.time)
    none, zero = pa.array([""] * n, pa.string()), pa.array(np.zeros(n, np.uint32))
    stamp = pa.array(lines.time, pa.timestamp("ns"))
    return {
        "header": pa.StructArray.from_arrays([zero, stamp, none], ["seq", "stamp", "frame_id"]),
        "level": pa.array(lines.level.astype(np.int8)),
        "name": lines.source,
        "msg": lines.text,
        "file": none,
        "function": none,
        "line": zero,
        "topics": pa.array([[]] * n, pa.list_(pa.string())),
    }


class BagSchemaMaker(SchemaMaker):
    """ROS 1 definitions; *channels* are those declared, by number."""

    encoding = ENCODING
    abilities = Abilities(ros1msg.FIELD, nested_arrays=False)

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.channels: list[Declared] = []

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

    def text_channel(self) -> TextChannel:
        """Return ``/rosout``, whose levels are bits."""
        return TextChannel("/rosout", Schema(LOG, ENCODING), (16, 16, 16, 8, 4, 2, 2, 1), 2, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return *topic* as a name of ROS: ``/sensor/imu_1`` for ``sensor/imu[1]``."""
        return ros1msg.topic_name(topic)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's definition."""
        found = self.channels[number].layout
        if found is None:
            raise DefinitionError("the channel has no definition: its messages are bytes")
        return found
