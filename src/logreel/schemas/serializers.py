"""Serializers of messages that no Layout can encode: protobuf and JSON, from dicts of their fields."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from logreel.errors import DefinitionError, UsageError
from logreel.layout.layout import Layout


class Serializer(NamedTuple):
    """How messages of one type are made: their fields as a Layout, and the payload of a dict with these fields."""

    layout: Layout
    payload: Callable[[dict[str, Any]], bytes]


def protobuf_serializer(descriptor: Any) -> Serializer:
    """Return the Serializer of a type, from its Descriptor of the protobuf library."""
    from google.protobuf import message_factory

    from logreel.schemas.protobuf.layouts import Shape

    layout = Shape(descriptor).layout
    return Serializer(
        layout, partial(_protobuf_payload, message_factory.GetMessageClass(descriptor), layout.name)
    )


def _protobuf_payload(make: Callable[[], Any], name: str, fields: dict[str, Any]) -> bytes:
    from google.protobuf.message import DecodeError

    from logreel.schemas.protobuf.fill import fill

    message = make()
    try:
        fill(message, fields)
    except (ValueError, TypeError, DecodeError) as error:
        raise UsageError(f"{name}: {error}") from None
    return bytes(message.SerializePartialToString())


def json_serializer(schema: str) -> Serializer:
    """Return the Serializer of objects that a JSON Schema describes.

    Raises DefinitionError for a schema without properties, or with properties of no single type, whose values tables
    have as text.
    """
    from logreel.schemas.json.from_layout import json_bytes
    from logreel.schemas.json.payload_decoder import JsonDecoder

    decoder = JsonDecoder(schema)
    if not decoder.has_fields or decoder.has_untyped:
        raise DefinitionError("its JSON schema does not give each field a type")
    return Serializer(decoder.layout, json_bytes)
