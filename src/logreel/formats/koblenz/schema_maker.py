"""Schemas of new Koblenz logs: message types, named by topics."""

from __future__ import annotations

from typing import Any

import numpy as np

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.definitions import MessageType, registered_types
from logreel.formats.koblenz.own_types import class_name, definition_of
from logreel.formats.koblenz.write_kinds import kind_of
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, String, Struct
from logreel.log.schema import Schema
from logreel.write.schema_maker import Abilities, SchemaMaker, TextChannel, TextColumns

_TEXT = Layout(
    Struct((Field("level", Scalar("int32")), Field("source", String()), Field("text", String()))), "TextM"
)


def _text_columns(lines: TextColumns) -> dict[str, Any]:
    import pyarrow as pa

    return {"level": pa.array(lines.level.astype(np.int32)), "source": lines.source, "text": lines.text}


class KoblenzSchemaMaker(SchemaMaker):
    """Message types; *layouts* are those of the channels, one field ``payload`` for types without description."""

    encoding = "koblenz"
    abilities = Abilities()

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.layouts: list[Layout] = []
        #: Types that the log describes, by id.
        self.own: dict[int, MessageType] = {}

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the type that *topic* begins with, whatever the fields are."""
        schema = Schema(topic.partition("/")[0].partition("@")[0], self.encoding)
        try:
            kind_of(topic, schema, {})
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a type of its own named after *topic*, with a description of its fields."""
        return Schema(topic, self.encoding, definition_of(layout))

    def text_channel(self) -> TextChannel:
        """Return a type of its own for lines of text, with syslog levels; -1: unknown."""
        schema = Schema("TextM", self.encoding, definition_of(_TEXT))
        return TextChannel("TextM", schema, tuple(range(8)), -1, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return the class name of a type for *topic*: topics are types."""
        return class_name(topic, registered_types().keys() | self.own.keys())

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's type."""
        return self.layouts[number]
