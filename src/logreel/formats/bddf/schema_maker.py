"""Schemas of new BDDF files: types of series, and Layouts of messages that are written by fields."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.formats.bddf.content_types import own_descriptors
from logreel.formats.bddf.descriptors import MessageType, Series
from logreel.formats.bddf.from_layout import schema_from_layout
from logreel.formats.bddf.input_layout import InputLayout
from logreel.formats.bddf.payload_decoders import distinct_names
from logreel.formats.bddf.signals import TICK, Signals
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.payloads import Payloads
from logreel.write.schema_maker import Abilities, PayloadSplitter, SchemaMaker, TextChannel, TextColumns

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.schemas.protobuf.describe import Message
    from logreel.schemas.protobuf.types import Types


TEXT = "bosdyn.api.TextMessage"
#: Fields of a line of text, in the order of their numbers, and their kinds; the level is an enumeration.
_TEXT_KINDS = {"message": "string", "timestamp": "time", "source": "string", "level": "int32"}


def _text_columns(lines: TextColumns) -> dict[str, Any]:
    import pyarrow as pa

    return {
        "message": lines.text,
        "timestamp": pa.array(lines.time),
        "source": lines.source,
        "level": pa.array(lines.level.astype(np.int32)),
    }


def _text_payloads(table: pa.Table) -> Payloads:
    """Return messages of the type TextMessage."""
    from logreel.schemas.protobuf.columns import encode, texts
    from logreel.schemas.protobuf.describe import Field, Message

    fields = (Field(name, n, kind) for n, (name, kind) in enumerate(_TEXT_KINDS.items(), 1))
    values = dict[str, Any]()
    for name, kind in _TEXT_KINDS.items():
        column = table.column(name)
        values[name] = texts(list(map(str, column.to_pylist()))) if kind == "string" else np.asarray(column)
    data, start = encode(Message(TEXT, tuple(fields)), values, len(table))
    return Payloads(data, start[:-1], np.diff(start))


class BddfSchemaMaker(SchemaMaker):
    """Makes types of series.

    series   declared series, by channel number
    signals  schemas of signals known so far, written or of source logs: readers compute the values of ticks by them
    """

    abilities = Abilities(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"))

    def __init__(self, title: str, definitions: Iterable[str | os.PathLike[str]]) -> None:
        super().__init__(title)
        self.series: list[Series] = []
        self.signals: list[Signals] = []
        self._input_layouts: dict[int, InputLayout] = {}
        self._definitions = tuple(definitions)
        self._types: Types | None = None
        #: Types made for messages that are encoded from columns, with their Layouts, by definition.
        self._made: dict[bytes, tuple[Message, Layout]] = {}

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a POD type if each record is one number named ``value``, else JSON with a JSON Schema."""
        return schema_from_layout(layout)

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a POD type as ``schema_from_layout`` does, else a protobuf type, which the series describes."""
        from logreel.schemas.protobuf.describe import descriptor_set
        from logreel.schemas.protobuf.from_layout import descriptor_from_layout, identifier

        pod = schema_from_layout(layout)
        if pod.encoding == "bddf":
            return pod
        message = descriptor_from_layout(layout, f"logreel.{identifier(topic.strip('/~'))}")
        found = Schema.of(message.name, "protobuf", descriptor_set(message))
        self._made[found.raw] = message, layout
        return found

    def encode(self, number: int, table: pa.Table, records: I64 | None = None) -> Payloads:
        """Return the payloads of messages; those of types made here are encoded from columns at once."""
        if is_message(self.series[number], TEXT) and table.column_names == list(_TEXT_KINDS):
            return _text_payloads(table)
        made = self._made.get(own_descriptors(self.series[number].annotations))
        if made is None:
            return super().encode(number, table, records)
        from logreel.schemas.protobuf.columns import encode
        from logreel.schemas.protobuf.from_layout import values

        message, layout = made
        names = [f.name for f in layout.record.visible()]
        data, start = encode(message, values(layout, message, [table.column(n) for n in names]), len(table))
        return Payloads(data, start[:-1], np.diff(start))

    def text_channel(self) -> TextChannel:
        """Return a series of TextMessage: debug, information, warning, error."""
        return TextChannel("text", Schema(TEXT, "protobuf"), (4, 4, 4, 4, 3, 2, 2, 1), 0, _text_columns)

    def topic_for(self, topic: str) -> str:
        """Return *topic* without the tilde of reserved channels."""
        return topic.lstrip("~") or "channel"

    def accepts_schema(self, schema: Schema) -> bool:
        """Return whether *schema* is a content type, protobuf, or a type of plain values."""
        return schema.encoding in ("bddf", "protobuf") or "/" in schema.encoding

    def layout(self, number: int) -> Layout:
        """Return the Layout: additional indexes, then samples, ``text``, ``data``, or fields of a described type."""
        return self._input_layout(number).layout

    def splitter(self, number: int) -> PayloadSplitter | None:
        """Return how to split off additional indexes and to encode JSON and protobuf; None: not needed."""
        return self._input_layout(number).splitter

    def computed_fields(self, number: int) -> Collection[str]:
        """Return the fields with the values of signals, which readers compute for ticks."""
        if not self.signals or not is_message(self.series[number], TICK):
            return ()
        return distinct_names([one.name for one in self.signals], self._input_layout(number).fields)

    def _input_layout(self, number: int) -> InputLayout:
        if number not in self._input_layouts:
            self._input_layouts[number] = InputLayout(self.series[number], self._find)
        return self._input_layouts[number]

    def _find(self, name: str) -> Any:
        from logreel.schemas.protobuf.types import Types

        if self._types is None:
            self._types = Types(map(Path, self._definitions))
        return self._types.find(name)


def is_message(series: Series, name: str) -> bool:
    """Return whether messages of *series* are of the message type called *name*."""
    return isinstance(series.type, MessageType) and series.type.name == name
