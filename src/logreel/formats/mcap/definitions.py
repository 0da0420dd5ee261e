"""Layouts and decoders of the messages of an MCAP, by message encoding and schema encoding."""

from __future__ import annotations

from dataclasses import replace

from logreel.errors import DefinitionError, Problem
from logreel.formats.mcap.records import Channel
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.scan import Noted, PayloadDecoder
from logreel.log.schema import Schema
from logreel.registry.registry import layout_by_format
from logreel.schemas.languages import Hints, language_of

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Decoders:
    """Layouts and PayloadDecoders of one file's channels; each unusable definition is added to *problems* once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._hints = Hints(tuple(source.definitions), note=self._note)
        self._noted = Noted()
        self._decoded: dict[int, tuple[Layout, PayloadDecoder | None]] = {}

    def given(self, topic: str, channel: Channel, schema: Schema, md5: str) -> tuple[Schema, str]:
        """Return schema and md5 of the channel named *topic*: those of the file, completed by what the user gave.

        Raises UsageError if the given type is no type name of the language.
        """
        type_name = self._source.types.get(topic)
        if type_name is None and not self._source.definitions:
            return schema, md5
        language = language_of(schema, channel.encoding, schemaless=not schema.encoding)
        if language is None:
            return schema, md5
        return language.given(schema, type_name, replace(self._hints, checksum=md5))

    def find(self, channel: Channel, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        """Return Layout and PayloadDecoder of a channel's messages; None: the Layout describes their bytes."""
        if channel.id not in self._decoded:
            try:
                self._decoded[channel.id] = self._make(channel, schema)
            except DefinitionError as error:
                self._note(f"{channel.topic}: {error.text}; its messages are raw bytes")
                self._decoded[channel.id] = RAW, None
        return self._decoded[channel.id]

    def _make(self, channel: Channel, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        language = language_of(schema, channel.encoding, schemaless=True)
        if language is not None:
            hints = replace(self._hints, checksum=channel.metadata.get("md5sum", "*"))
            layout = language.layout(schema, hints)
            if layout is not None:
                return layout, None
            decoder = language.decoder(schema, hints)
            if decoder is not None:
                return decoder.layout, decoder
        return layout_by_format(schema, channel.topic) or RAW, None

    def _note(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, text)
        self._noted.add(self._problems, problem)
