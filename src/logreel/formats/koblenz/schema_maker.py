"""Schemas of new Koblenz logs: message types, named by topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, UsageError
from logreel.formats.koblenz.definitions import MessageType, registered_types
from logreel.formats.koblenz.own_types import class_name, definition_of
from logreel.formats.koblenz.write_kinds import kind_of
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Scalar, String, Struct
from logreel.log.schema import Schema
from logreel.write.payloads import Payloads
from logreel.write.schema_maker import Abilities, SchemaMaker, TextChannel, TextColumns

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT = Layout(
    Struct((Field("level", Scalar("int32")), Field("source", String()), Field("text", String()))), "TextM"
)


def _text_columns(lines: TextColumns) -> dict[str, Any]:
    import pyarrow as pa

    return {"level": pa.array(lines.level.astype(np.int32)), "source": lines.source, "text": lines.text}


def _latin_1(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return text as strings of its bytes in Latin-1; in UTF-8 what has none."""
    import pyarrow as pa

    rows = [_bytes_of(str(text)) for text in column.to_pylist()]
    raw = pa.array(rows, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.offset)


def _bytes_of(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


class KoblenzSchemaMaker(SchemaMaker):
    """Message types; *layouts* are those of the channels, one field ``payload`` for types without description."""

    encoding = "koblenz"
    abilities = Abilities()

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.layouts: list[Layout] = []
        #: Names of the fields of each channel whose texts are Latin-1.
        self.latin_1: list[frozenset[str]] = []
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

    def encode(self, number: int, table: pa.Table, records: I64 | None = None) -> Payloads:
        """Return the payloads of messages; texts are Latin-1 where they were in the log that is written again."""
        for name in self.latin_1[number] & {*table.column_names}:
            at = table.column_names.index(name)
            table = table.set_column(at, name, _latin_1(table.column(name)))
        return super().encode(number, table, records)

    def layout(self, number: int) -> Layout:
        """Return the Layout of the channel's type."""
        return self.layouts[number]
