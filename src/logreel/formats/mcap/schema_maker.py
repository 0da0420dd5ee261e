"""Schemas and channel records of new MCAPs: ROS 1 definitions if none is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.formats.mcap.definitions import ADDED, ENCODING, UNDEFINED, metadata_to_text
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.scan import Schema
from logreel.registry.registry import formats, layout_by_format
from logreel.schemas.languages import Serializer, complete, language_named, language_of, message_encoding
from logreel.write.format_writer import (
    Abilities,
    Payloads,
    PayloadSplitter,
    SchemaMaker,
    serialize_rows,
    topic_without_number,
)

#: Layout of messages given by fields, and how payloads come of messages in this Layout; None: they are the payloads.
Fields = tuple[Layout, PayloadSplitter | None]


@dataclass(frozen=True)
class McapChannel:
    """A channel as it is written.

    encoding     message encoding
    make_fields  returns the Layout of messages given by fields, and how payloads come of these; see ``fields``
    """

    topic: str
    schema: Schema
    encoding: str
    metadata: Mapping[str, str]
    make_fields: Callable[[], Fields]

    @cached_property
    def fields(self) -> Fields:
        """The Layout of messages given by fields, and the PayloadSplitter; None: the Layout encodes payloads.

        Raises DefinitionError for messages that are only given as bytes.
        """
        return self.make_fields()


def declare(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> McapChannel:
    """Return the channel to be written: topic, completed schema, message encoding and metadata as text."""
    encoding = metadata.get(ENCODING)
    if not isinstance(encoding, str):
        encoding = message_encoding(schema)
    entries, stated = dict(metadata), topic_without_number(topic, metadata)
    if stated != topic:
        entries.pop("topic")
    full = complete(schema, str(metadata.get("md5sum", "*")))
    if full != schema:
        entries[ADDED] = True
    elif not schema.raw and (language := language_named(schema.encoding)) is not None and language.binary:
        # Other tools would try to use an empty schema of such an encoding.
        entries[UNDEFINED], full = schema.encoding, Schema(schema.name, "")
    return McapChannel(
        stated,
        full,
        encoding,
        metadata_to_text(_with_callerid(entries)),
        partial(_fields, stated, schema, full, encoding),
    )


def _with_callerid(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata with ``callerid``, which other tools read, if there is one caller."""
    callers = entries.get("callerids")
    if not isinstance(callers, list) or len(callers) != 1 or "callerid" in entries:
        return entries
    return {**entries, "callerid": str(callers[0])}


def _fields(topic: str, schema: Schema, full: Schema, encoding: str) -> Fields:
    language = language_of(schema, encoding)
    serializer = None if language is None else language.serializer(full)
    if serializer is not None:
        return serializer.layout, _splitter(serializer)
    layout = layout_by_format(schema, topic)
    if layout is None:
        text = f"messages of encoding {encoding or 'not given'!r} are given as bytes"
        raise DefinitionError(text)
    return layout, None


def _splitter(serializer: Serializer) -> PayloadSplitter | None:
    layout, payload = serializer
    if payload is None:
        return None

    def split(data: NDArray[np.uint8], start: I64) -> Payloads:
        return serialize_rows(layout, payload, data, start[:-1], np.diff(start))

    return PayloadSplitter((), split)


class McapSchemaMaker(SchemaMaker):
    """ROS 1 definitions; *channels* are those declared, by number."""

    encoding = "ros1msg"
    #: Those of protobuf, into which messages of other formats are converted for other tools.
    abilities = Abilities(re.compile(r"[A-Za-z_][A-Za-z0-9_]*"), nested_arrays=False)

    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.channels: list[McapChannel] = []

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
