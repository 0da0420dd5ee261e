"""What decodes the payloads of a message series: by its content type, the user's descriptors, or what we know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from logreel.errors import DefinitionError, Problem
from logreel.formats.bddf.messages import MessageType
from logreel.io.source import Source
from logreel.schemas.json.payload_decoder import JsonDecoder
from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder

if TYPE_CHECKING:
    from logreel.schemas.protobuf.types import Types

PROTOBUF, JSON = "application/protobuf", "application/json"
#: The annotation of a series of JSON that says which fields its messages have: a JSON Schema.
JSON_SCHEMA = "logreel:json_schema"
#: What files of earlier versions call it; keys without an organization are reserved.
OLD_JSON_SCHEMA = "json_schema"


def json_schema(annotations: Mapping[str, str]) -> str | None:
    """The JSON Schema among the annotations of a series, if there is one."""
    return annotations.get(JSON_SCHEMA, annotations.get(OLD_JSON_SCHEMA))


class Payloads:
    """Bodies of the protobuf series of one log; what cannot be used is recorded as a Problem, once."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self._source, self._problems = source, problems
        self._bodies: dict[str, ProtobufDecoder | WireDecoder] = {}

    @cached_property
    def _types(self) -> Types:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(self._source.definitions)
        except DefinitionError as error:
            self._note(error.text)
            return Types()

    def given(self, kind: MessageType) -> bytes:
        """The descriptors of a type that the user gave, which BDDF has no place for; empty where there are none."""
        if not self._source.definitions or kind.content_type != PROTOBUF:
            return b""
        return self._types.set_of(kind.name)

    def _note(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, text)
        if problem not in self._problems:
            self._problems.append(problem)

    def body(self, topic: str, kind: MessageType) -> ProtobufDecoder | WireDecoder:
        """What decodes the messages of a series: by their fields where the type is described, else by number."""
        if kind.name not in self._bodies:
            self._bodies[kind.name] = self._make(topic, kind.name)
        return self._bodies[kind.name]

    def json(self, topic: str, schema: str) -> JsonDecoder | None:
        """What decodes JSON of this JSON Schema; None where that tells no fields."""
        try:
            body = JsonDecoder(schema)
        except DefinitionError as error:
            self._note(f"{topic}: {error.text}; its messages are shown as text")
            return None
        return body if body.has_fields else None

    def _make(self, topic: str, name: str) -> ProtobufDecoder | WireDecoder:
        descriptor = self._types.find(name) if name else None
        if descriptor is None:
            said = f"{topic}: nothing describes {name or 'its messages'}"
            self._note(
                f"{said}; its fields are shown by number (a file with descriptors can be given when the log is opened)"
            )
            return WireDecoder()
        try:
            return ProtobufDecoder(descriptor)
        except DefinitionError as error:
            self._note(f"{topic}: {error.text}; its fields are shown by number")
            return WireDecoder()
