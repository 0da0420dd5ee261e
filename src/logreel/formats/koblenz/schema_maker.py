"""Schemas of new Koblenz logs: message types, named by topics."""

from __future__ import annotations

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.write_kinds import kind_of
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.schema_maker import SchemaMaker


class KoblenzSchemaMaker(SchemaMaker):
    """Message types; *layouts* are those of the channels, one field ``payload`` for types without description."""

    encoding = "koblenz"

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.layouts: list[Layout] = []

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return the type that *topic* begins with, whatever the fields are."""
        schema = Schema(topic.partition("/")[0].partition("@")[0], self.encoding)
        try:
            kind_of(topic, schema, {})
        except UsageError as error:
            raise DefinitionError(error.text) from None
        return schema

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's type."""
        return self.layouts[number]
