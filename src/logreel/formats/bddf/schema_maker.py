"""Schemas of new BDDF files: types of series, and Layouts of messages that are written by fields."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logreel.formats.bddf.descriptors import MessageType, Series
from logreel.formats.bddf.from_layout import schema_from_layout
from logreel.formats.bddf.input_layout import InputLayout
from logreel.formats.bddf.payload_decoders import distinct_names
from logreel.formats.bddf.signals import TICK, Signals
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.schema_maker import PayloadSplitter, SchemaMaker

if TYPE_CHECKING:
    from logreel.schemas.protobuf.types import Types


class BddfSchemaMaker(SchemaMaker):
    """Makes types of series.

    series   declared series, by channel number
    signals  schemas of signals known so far, written or of source logs: readers compute the values of ticks by them
    """

    def __init__(self, title: str, definitions: Iterable[str | os.PathLike[str]]) -> None:
        super().__init__(title)
        self.series: list[Series] = []
        self.signals: list[Signals] = []
        self._input_layouts: dict[int, InputLayout] = {}
        self._definitions = tuple(definitions)
        self._types: Types | None = None

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a POD type if each record is one number named ``value``, else JSON with a JSON Schema."""
        return schema_from_layout(layout)

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
