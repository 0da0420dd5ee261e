"""Layouts and decoders of the messages of an MCAP, by message encoding and schema encoding."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from logreel.errors import DefinitionError, Problem, UsageError
from logreel.formats.mcap.records import Channel
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Struct
from logreel.log.noted import Noted
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.schema import Schema
from logreel.registry.registry import formats
from logreel.schemas import ros1msg

if TYPE_CHECKING:
    from logreel.schemas.protobuf.types import Types

#: Layout of messages without a usable definition.
RAW = Layout(Struct((Field("data", Rest()),)), "raw")


class Decoders:
    """Layouts and PayloadDecoders of one file's channels; each unusable definition is added to *problems* once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._noted = Noted()
        self._found: dict[int, tuple[Layout, PayloadDecoder | None]] = {}

    def given(self, topic: str, channel: Channel, schema: Schema, md5: str) -> tuple[Schema, str]:
        """Return schema and md5 of the channel named *topic*: those of the file, completed by what the user gave.

        Raises UsageError if the given type is no type name of ROS 1.
        """
        kind, paths = self._source.types.get(topic), self._source.definitions
        if kind is None and not paths:
            return schema, md5
        if channel.encoding == "ros1" and schema.encoding in ("", "ros1msg"):
            if kind is not None and not ros1msg.is_type(kind):
                raise UsageError(f"{kind!r:.80} is no type of ROS 1, which look like 'package/Name'")
            name = kind or schema.name
            text, summed = ros1msg.as_read(name, schema.text, md5, self._registry)
            return Schema(name, "ros1msg", text), summed if kind is not None else md5
        if (channel.encoding, schema.encoding) == ("protobuf", "protobuf") and not schema.raw:
            return Schema.of(schema.name, schema.encoding, self._types.set_of(schema.name)), md5
        return schema, md5

    def find(self, channel: Channel, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        """Return Layout and PayloadDecoder of a channel's messages; None: the Layout describes their bytes."""
        if channel.id not in self._found:
            try:
                self._found[channel.id] = self._make(channel, schema)
            except DefinitionError as error:
                self._note(f"{channel.topic}: {error.text}; its messages are raw bytes")
                self._found[channel.id] = RAW, None
        return self._found[channel.id]

    def _make(self, channel: Channel, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        match channel.encoding, schema.encoding:
            case "ros1", "ros1msg":
                found = ros1msg.define(
                    schema.name, schema.text, channel.metadata.get("md5sum", "*"), self._registry
                )
                return ros1msg.layout(found), None
            case "protobuf", "protobuf":
                return self._protobuf(schema)
            case "json", _:
                from logreel.schemas.json.payload_decoder import JsonDecoder

                body = JsonDecoder(schema.text if schema.encoding == "jsonschema" else "")
                return body.layout, body
            case "cdr", "ros2msg":
                from logreel.schemas import ros2msg

                return ros2msg.layout(schema.name, schema.text), None
        own = formats().get(schema.encoding)
        known = own.layout(schema, channel.topic) if own is not None and own.layout is not None else None
        return known or RAW, None

    def _protobuf(self, schema: Schema) -> tuple[Layout, PayloadDecoder | None]:
        from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder
        from logreel.schemas.protobuf.types import Types

        descriptor = Types(self._source.definitions, schema.raw).find(schema.name)
        if descriptor is None:
            self._note(f"nothing describes {schema.name or 'messages'}; their fields are shown by number")
            return WireDecoder.layout, WireDecoder()
        body = ProtobufDecoder(descriptor)
        return body.layout, body

    @cached_property
    def _types(self) -> Types:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(self._source.definitions)
        except DefinitionError as error:
            self._note(error.text)
            return Types()

    @cached_property
    def _registry(self) -> ros1msg.Registry:
        # Descriptors may come from a module, whose name is no file.
        paths = self._source.definitions
        return ros1msg.Registry.of(path for path in paths if path.is_dir() or path.suffix == ".msg")

    def _note(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, text)
        self._noted.add(self._problems, problem)
