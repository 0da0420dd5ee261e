"""Schemas of new ULogs: format definitions."""

from __future__ import annotations

import re
from typing import Any, cast

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.ulog.from_layout import FIELD, definition_from_layout
from logreel.formats.ulog.information import MAX_SIZE
from logreel.formats.ulog.topic_names import UNFIT
from logreel.index.rules import FieldAt
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.schema_maker import Abilities, SchemaMaker, TextChannel, TextColumns

_INSTANCE = re.compile(r"(.*)\[(\d{1,3})\]\Z", re.DOTALL)


class UlogSchemaMaker(SchemaMaker):
    """Format definitions named after topics; the field ``timestamp`` is the time of a message."""

    encoding = "ulog"
    fixed_size = True
    abilities = Abilities(FIELD, False, False, True, MAX_SIZE - 2 - 8, "timestamp")
    time_unit = 1000
    keeps_metadata = False

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self._channels: list[tuple[str, Layout | None, FieldAt | None]] = []

    def add_channel(self, name: str, layout: Layout | None, stamp: FieldAt | None) -> None:
        """Add the next channel: name of its format, Layout (None: undefined), and where its ``timestamp`` is."""
        self._channels.append((name, layout, stamp))

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a format of the topic's name, followed by one for each nested struct."""
        if topic.startswith("~"):
            return Schema(topic, self.encoding)
        base = UNFIT.sub("-", base_name(topic)[0])
        return Schema(base, self.encoding, definition_from_layout(layout, base))

    def schema_from_text(self, topic: str, text: str, file: str) -> Schema:
        """Return the Schema of format texts, one per line; the first is that of the topic."""
        return Schema(base_name(topic)[0], self.encoding, text)

    def text_channel(self) -> TextChannel:
        """Return the channel of logged strings: syslog levels; a source is in brackets, as PX4 writes it."""
        return TextChannel("~text", Schema("~text", self.encoding), tuple(range(8)), 6, _text_columns, False)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's format."""
        name, layout, _ = self._channels[number]
        if layout is None:
            raise DefinitionError(f"{name} has no definition: its messages are bytes")
        return layout

    def time_field(self, number: int) -> tuple[str, int] | None:
        """Return ``timestamp`` and its unit, mostly microseconds."""
        stamp = self._channels[number][2]
        return None if stamp is None else ("timestamp", stamp.mul)


def _text_columns(lines: TextColumns) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.compute as pc

    source, text = cast("pa.StringArray", lines.source), cast("pa.StringArray", lines.text)
    join: Any = pc.binary_join_element_wise
    named = join("[", source, "] ", text, "")
    return {
        "level": pa.array(lines.level.astype(np.uint8)),
        "tag": pa.array(np.zeros(len(lines.time), np.uint16)),
        "text": pc.if_else(pc.equal(source, pa.scalar("")), text, named),
    }


def base_name(topic: str) -> tuple[str, int]:
    """Return the name of a topic's format, and the instance number."""
    instance = _INSTANCE.match(topic)
    return (instance[1], int(instance[2])) if instance else (topic, 0)
