"""Definition languages: each is one object, which reads and writes messages whose schemas are in that language.

A ``Language`` is registered by the name that schemas have in ``Schema.encoding``; other packages add theirs by entry
points of the group ``logreel.languages``. Whoever meets a schema asks ``language_of``. Languages that belong to one log
format, such as ``ulog``, are not here: their Format has a ``layout``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from logreel.dataclass import dataclass, field
from logreel.errors import DefinitionError, UsageError
from logreel.layout.layout import Layout
from logreel.log.scan import PayloadDecoder, Schema
from logreel.registry.registry import Registry

if TYPE_CHECKING:
    from pathlib import Path

    from logreel.schemas import ros1msg
    from logreel.schemas.protobuf.types import Types
    from logreel.schemas.ros2msg import Ros2Definition

T = TypeVar("T")

#: Languages that other tools write, but nothing here reads: the encoding of their messages, and whether schemas are
#: bytes. Their channels are copied as bytes.
UNREAD = {"omgidl": ("cdr", False), "flatbuffer": ("flatbuffer", True)}
_CONSTANT = re.compile(r"\s*[A-Za-z]\w*\s+([A-Za-z_]\w*)\s*=\s*[^\s#]", re.ASCII)
_IDL_CONSTANT = re.compile(r"^\s*const\s+[\w\s:<>]*?([A-Za-z_]\w*)\s*=", re.ASCII | re.MULTILINE)


class DecoderWithLayout(PayloadDecoder, Protocol):
    """A PayloadDecoder that says which Layout its result has."""

    @property
    def layout(self) -> Layout: ...


class Serializer(NamedTuple):
    """How messages of one type are made: their fields as a Layout, and the payload of a dict with these fields.

    payload  None: the Layout encodes payloads itself
    """

    layout: Layout
    payload: Callable[[dict[str, Any]], bytes] | None = None


@dataclass(frozen=True)
class Hints:
    """What is known of the messages of a log besides their schemas.

    definitions  files and folders with definitions that the user gave
    checksum     checksum of the definition that the log states; ``*``: none
    note         called with a sentence about what is missing
    cache        what languages keep for further channels of the same log
    encapsulation  first two bytes of the messages, which say how those in CDR are encoded; empty: unknown
    samples      returns first messages of the channel, where definitions leave open how they are encoded
    """

    definitions: tuple[Path, ...] = ()
    checksum: str = "*"
    note: Callable[[str], object] = lambda text: None
    cache: dict[str, Any] = field(default_factory=dict)
    encapsulation: bytes = b""
    samples: Callable[[], Iterable[bytes]] = tuple

    def kept(self, key: str, make: Callable[[], T]) -> T:
        """Return what *make* returned for this *key* first."""
        if key not in self.cache:
            self.cache[key] = make()
        value: T = self.cache[key]
        return value


#: For schemas that no log is around.
NO_HINTS = Hints()


@dataclass(frozen=True)
class Language:
    """One definition language; subclasses read and write it. All methods may raise DefinitionError.

    name        of the language, as ``Schema.encoding``
    encoding    name of the encoding of its messages, in MCAP and Foxglove
    binary      True: schemas are bytes (``Schema.raw``), and useless without them
    schemaless  True: messages in this encoding may be read although their channel has no schema of the language
    """

    name: str
    encoding: str
    binary: bool = False
    schemaless: bool = False

    def layout(self, schema: Schema, hints: Hints = NO_HINTS) -> Layout | None:
        """Return the Layout of payloads with this schema; None: a decoder reads them, or nothing does."""
        return None

    def decoder(self, schema: Schema, hints: Hints = NO_HINTS) -> DecoderWithLayout | None:
        """Return the decoder of payloads that no Layout describes; None: nothing reads them."""
        return None

    def serializer(self, schema: Schema) -> Serializer | None:
        """Return how messages with this schema are made from fields; None: they are given as bytes."""
        layout = self.layout(schema)
        return None if layout is None else Serializer(layout)

    def schema_from_layout(self, layout: Layout, name: str) -> Schema:
        """Return a schema called *name* for messages with the fields of *layout*."""
        raise DefinitionError(f"definitions in the language {self.name} are not made from fields")

    def type_name(self, topic: str) -> str:
        """Return a name for the type of the messages of *topic*."""
        return topic

    def given(self, schema: Schema, type_name: str | None, hints: Hints) -> tuple[Schema, str]:
        """Return the schema of a channel as the user completes it, and the checksum of its definition.

        type_name  type that the user gave for the topic; None: that of *schema*

        Raises UsageError if *type_name* is no type name of the language.
        """
        return schema, hints.checksum

    def complete(self, schema: Schema, checksum: str = "*") -> Schema:
        """Return *schema*, with a known definition of its type if it has none; *checksum*: of the definition."""
        return schema

    def portable(self, schema: Schema) -> Schema:
        """Return *schema* with a definition that parsers of other tools read, where those of earlier releases fail."""
        return schema

    def constants(self, schema: Schema) -> list[str]:
        """Return the names of constants in the definition, also in those of nested types.

        Values of enumerations that are decoded to their names are not meant: they are part of the messages.
        """
        return []


# --------------------------------------------------------------------------------------------------------- built in


def _constants_of_msg(schema: Schema) -> list[str]:
    return [match[1] for line in schema.text.splitlines() if (match := _CONSTANT.match(line))]


class _Ros1(Language):
    """Definitions of ROS 1 (``.msg``); what a text lacks comes from known definitions."""

    def constants(self, schema: Schema) -> list[str]:
        return _constants_of_msg(schema)

    def layout(self, schema: Schema, hints: Hints = NO_HINTS) -> Layout | None:
        from logreel.schemas import ros1msg

        if schema.encoding != self.name:
            return None
        return ros1msg.layout(ros1msg.define(schema.name, schema.text, hints.checksum, self._registry(hints)))

    def _registry(self, hints: Hints) -> ros1msg.DefinitionRegistry:
        from logreel.schemas import ros1msg

        if not hints.definitions:
            return ros1msg.standard()
        # Descriptors may come from a module, whose name is no file.
        paths = (path for path in hints.definitions if path.is_dir() or path.suffix == ".msg")
        return hints.kept(self.name, lambda: ros1msg.DefinitionRegistry.of(paths))

    def serializer(self, schema: Schema) -> Serializer:
        from logreel.schemas import ros1msg

        return Serializer(ros1msg.layout(ros1msg.parse(schema.text, schema.name)))

    def schema_from_layout(self, layout: Layout, name: str) -> Schema:
        from logreel.schemas import ros1msg

        return Schema(name, self.name, ros1msg.definition_from_layout(layout, name))

    def type_name(self, topic: str) -> str:
        from logreel.schemas import ros1msg

        return ros1msg.type_name(topic)

    def given(self, schema: Schema, type_name: str | None, hints: Hints) -> tuple[Schema, str]:
        from logreel.schemas import ros1msg

        if type_name is not None and not ros1msg.is_type(type_name):
            raise UsageError(f"{type_name!r:.80} is no type of ROS 1, which look like 'package/Name'")
        name = type_name or schema.name
        text, checksum = ros1msg.as_read(name, schema.text, hints.checksum, self._registry(hints))
        return Schema(name, self.name, text), checksum if type_name is not None else hints.checksum

    def complete(self, schema: Schema, checksum: str = "*") -> Schema:
        from logreel.schemas import ros1msg

        try:
            return Schema(schema.name, self.name, ros1msg.full_text(schema.name, md5=checksum))
        except DefinitionError:
            return schema

    def portable(self, schema: Schema) -> Schema:
        """Return *schema* as ``ros1msg.portable`` spells it."""
        if not schema.text:
            return schema
        from logreel.schemas import ros1msg

        text = ros1msg.portable(schema.text, schema.name)
        return schema if text == schema.text else Schema(schema.name, self.name, text)


class _NoLayoutError(Exception):
    """Raised inside of ``_Cdr.layout`` where no Layout describes the messages."""


class _Cdr(Language):
    """A language whose messages are CDR: a Layout describes those of the usual encodings, a decoder reads all."""

    def _definitions(self, schema: Schema) -> Mapping[str, Ros2Definition]:
        """Return the types that a schema defines, by ``pkg/Type``."""
        raise NotImplementedError

    def layout(self, schema: Schema, hints: Hints = NO_HINTS) -> Layout | None:
        from logreel.layout.layout import shared
        from logreel.schemas import ros2msg

        begin = hints.encapsulation or ros2msg.LITTLE

        def make() -> Layout:
            messages = self._definitions(schema)
            if not ros2msg.plain(schema.name, messages, begin):
                raise _NoLayoutError
            return ros2msg.layout_of(schema.name, messages, begin)

        try:
            return shared((self.name, schema.name, schema.text, begin), make)
        except _NoLayoutError:
            return None

    def decoder(self, schema: Schema, hints: Hints = NO_HINTS) -> DecoderWithLayout:
        from logreel.schemas.cdr import CdrDecoder

        return CdrDecoder(schema.name, self._definitions(schema), hints.samples)


class _Ros2(_Cdr):
    """Definitions of ROS 2 (``.msg``), whose messages are CDR."""

    def _definitions(self, schema: Schema) -> Mapping[str, Ros2Definition]:
        from logreel.schemas import ros2msg

        return ros2msg.parse(schema.text, schema.name)

    def constants(self, schema: Schema) -> list[str]:
        return _constants_of_msg(schema)

    def schema_from_layout(self, layout: Layout, name: str) -> Schema:
        from logreel.schemas import ros2msg

        return Schema(name, self.name, ros2msg.definition_from_layout(layout, name))

    def type_name(self, topic: str) -> str:
        from logreel.schemas import ros2msg

        return ros2msg.type_name(topic)

    def given(self, schema: Schema, type_name: str | None, hints: Hints) -> tuple[Schema, str]:
        if schema.text and type_name is None:
            return schema, hints.checksum
        from logreel.schemas import ros2msg

        paths = [path for path in hints.definitions if path.is_dir() or path.suffix == ".msg"]
        own = hints.kept(self.name, lambda: ros2msg.given(paths))
        name = type_name or schema.name
        return Schema(name, self.name, ros2msg.full_text(name, own)), hints.checksum

    def complete(self, schema: Schema, checksum: str = "*") -> Schema:
        from logreel.schemas import ros2msg

        if schema.text:
            return schema
        try:
            return Schema(schema.name, self.name, ros2msg.full_text(schema.name, {}))
        except DefinitionError:
            return schema


class _Ros2Idl(_Cdr):
    """IDL of ROS 2, whose messages are CDR."""

    def _definitions(self, schema: Schema) -> Mapping[str, Ros2Definition]:
        from logreel.schemas import ros2idl

        return ros2idl.parse(schema.text, schema.name)

    def constants(self, schema: Schema) -> list[str]:
        return _IDL_CONSTANT.findall(schema.text)


class _Protobuf(Language):
    """Sets of protobuf descriptors."""

    def decoder(self, schema: Schema, hints: Hints = NO_HINTS) -> DecoderWithLayout:
        """Return a decoder by the descriptor of the type; without one it shows fields by number, and notes that."""
        from logreel.schemas.protobuf.payload_decoder import ProtobufDecoder, WireDecoder
        from logreel.schemas.protobuf.types import Types

        descriptor = Types(hints.definitions, schema.raw).find(schema.name)
        if descriptor is None:
            hints.note(f"nothing describes {schema.name or 'messages'}; their fields are shown by number")
            return WireDecoder()
        return ProtobufDecoder(descriptor)

    def serializer(self, schema: Schema) -> Serializer:
        from logreel.schemas.protobuf.types import Types

        descriptor = Types(own=schema.raw).find(schema.name)
        if descriptor is None:
            raise DefinitionError(f"its definition does not contain {schema.name or 'a type'!r}")
        return protobuf_serializer(descriptor)

    def schema_from_layout(self, layout: Layout, name: str) -> Schema:
        from logreel.schemas.protobuf.encoder import descriptor_from_layout
        from logreel.schemas.protobuf.types import descriptor_set

        return Schema.of(name, self.name, descriptor_set(descriptor_from_layout(layout, name)))

    def given(self, schema: Schema, type_name: str | None, hints: Hints) -> tuple[Schema, str]:
        if schema.raw:
            return schema, hints.checksum
        types = hints.kept(self.name, partial(self._types, hints))
        return Schema.of(schema.name, self.name, types.set_of(schema.name)), hints.checksum

    def _types(self, hints: Hints) -> Types:
        from logreel.schemas.protobuf.types import Types

        try:
            return Types(hints.definitions)
        except DefinitionError as error:
            hints.note(error.text)
            return Types()

    def complete(self, schema: Schema, checksum: str = "*") -> Schema:
        from logreel.schemas.protobuf.types import Types

        return Schema.of(schema.name, self.name, Types().set_of(schema.name))


class _JsonSchema(Language):
    """JSON Schemas; JSON without a schema has one field with its text."""

    def decoder(self, schema: Schema, hints: Hints = NO_HINTS) -> DecoderWithLayout:
        from logreel.schemas.jsonschema import JsonDecoder

        return JsonDecoder(schema.text if schema.encoding == self.name else "")

    def serializer(self, schema: Schema) -> Serializer:
        """Return the Serializer of objects that a JSON Schema describes.

        Raises DefinitionError for a schema without properties, or with properties of no single type, whose values
        tables have as text.
        """
        from logreel.schemas.jsonschema import JsonDecoder, json_bytes

        decoder = JsonDecoder(schema.text)
        if not decoder.has_fields or decoder.has_untyped:
            raise DefinitionError("its JSON schema does not give each field a type")
        return Serializer(decoder.layout, json_bytes)

    def schema_from_layout(self, layout: Layout, name: str) -> Schema:
        from logreel.schemas.jsonschema import json_schema

        return Schema(name, self.name, json_schema(layout))


_BUILT_IN = (
    _Ros1("ros1msg", "ros1", schemaless=True),
    _Ros2("ros2msg", "cdr"),
    _Ros2Idl("ros2idl", "cdr"),
    _JsonSchema("jsonschema", "json", schemaless=True),
    _Protobuf("protobuf", "protobuf", binary=True),
)
#: All languages by name. Those of other packages are instances of subclasses of Language.
LANGUAGES = Registry(
    "definition language",
    "logreel.languages",
    {language.name: language for language in _BUILT_IN},
    Language,
    lambda language: language.name,
)


def language_named(name: str) -> Language | None:
    """Return the language called *name*; None for the language of a log format, and for one that nobody knows."""
    language = LANGUAGES.get(name) if name else None
    if language is None and name in UNREAD:
        encoding, binary = UNREAD[name]
        return Language(name, encoding, binary)
    return language


def language_of(schema: Schema, encoding: str, schemaless: bool = False) -> Language | None:
    """Return the language that reads messages in *encoding* with *schema*; None if there is none.

    schemaless  True: also one that does not need the schema
    """
    language = language_named(schema.encoding)
    if language is not None and language.encoding == encoding:
        return language
    if not schemaless:
        return None
    return next(
        (one for one in LANGUAGES.all().values() if one.schemaless and one.encoding == encoding), None
    )


def language_by_encoding(encoding: str) -> Language | None:
    """Return the usual language of schemas of messages in *encoding*; None if there is none."""
    for language in LANGUAGES.all().values():
        if language.encoding == encoding:
            return language
    return next((language_named(name) for name, (known, _) in UNREAD.items() if known == encoding), None)


def message_encoding(schema: Schema) -> str:
    """Return the encoding of messages of a schema, by its name in MCAP and Foxglove."""
    language = language_named(schema.encoding)
    return schema.encoding if language is None else language.encoding


def constants(schema: Schema) -> list[str]:
    """Return the names of the constants in a definition, see ``Language.constants``."""
    language = language_named(schema.encoding)
    return [] if language is None else language.constants(schema)


def portable(schema: Schema) -> Schema:
    """Return *schema* for parsers of other tools, see ``Language.portable``."""
    language = language_named(schema.encoding)
    return schema if language is None else language.portable(schema)


def complete(schema: Schema, checksum: str = "*") -> Schema:
    """Return *schema*, with a known definition of its type if it has none.

    checksum  checksum of the ROS 1 definition; ``*``: any
    """
    language = None if schema.raw else language_named(schema.encoding)
    return schema if language is None else language.complete(schema, checksum)


def protobuf_serializer(descriptor: Any) -> Serializer:
    """Return the Serializer of a type, from its Descriptor of the protobuf library."""
    from logreel.schemas.protobuf.layouts import ProtoLayout
    from logreel.schemas.protobuf.types import message_class

    layout = ProtoLayout(descriptor).layout
    return Serializer(layout, partial(_protobuf_payload, message_class(descriptor), layout.name))


def _protobuf_payload(make: Callable[[], Any], name: str, fields: dict[str, Any]) -> bytes:
    from google.protobuf.message import DecodeError

    from logreel.schemas.protobuf.layouts import fill

    message = make()
    try:
        fill(message, fields)
    except (ValueError, TypeError, DecodeError) as error:
        raise UsageError(f"{name}: {error}") from None
    return bytes(message.SerializePartialToString())
