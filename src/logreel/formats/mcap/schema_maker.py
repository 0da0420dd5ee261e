"""Schemas of channels of new MCAPs: ROS 1 definitions if none is given."""

from __future__ import annotations

import re

from logreel.errors import DefinitionError
from logreel.formats.mcap.write_channels import Declared
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.registry.registry import formats
from logreel.schemas.languages import language_named
from logreel.write.schema_maker import Abilities, PayloadSplitter, SchemaMaker


class McapSchemaMaker(SchemaMaker):
    """ROS 1 definitions; *channels* are those declared, by number."""

    encoding = "ros1msg"
    #: Those of protobuf, into which messages of other formats are converted for other tools.
    abilities = Abilities(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), nested_arrays=False)

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.channels: list[Declared] = []

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a ROS 1 type named after the topic."""
        language = language_named(self.encoding)
        if language is None:
            raise DefinitionError(f"no definition language {self.encoding!r} is known")
        return language.schema_from_layout(layout, name or language.type_name(topic))

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's definition; raises DefinitionError where payloads do not follow one."""
        return self.channels[number].fields[0]

    def splitter(self, number: int) -> PayloadSplitter | None:
        """Return how protobuf and JSON messages are serialized; None for other channels."""
        try:
            return self.channels[number].fields[1]
        except DefinitionError:
            return None

    def accepts_schema(self, schema: Schema) -> bool:
        """Return whether other tools may know the language of *schema*: it is of no single log format."""
        return schema.encoding not in formats()
