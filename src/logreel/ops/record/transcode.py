"""Messages of one definition language for logs of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logreel.errors import DefinitionError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Rest, Scalar, Struct
from logreel.log.schema import Schema
from logreel.registry.registry import formats, layout_by_format
from logreel.schemas.languages import language_of, message_encoding

#: Function from the payload of a message to its fields.
Decode = Callable[[bytes], dict[str, Any]]


def layout_of_schema(schema: Schema, topic: str, encoding: str | None = None) -> Layout:
    """Return the Layout of payloads with this schema; raises DefinitionError if its language has none.

    encoding  encoding of the messages; None: the usual one of the schema
    """
    encoding = encoding or message_encoding(schema)
    language = language_of(schema, encoding)
    layout = (None if language is None else language.layout(schema)) or layout_by_format(schema, topic)
    if layout is None:
        exchange = next((fmt for fmt in formats().values() if fmt.exchange), None)
        advice = f"; {exchange.title} (*{exchange.suffixes[0]}) holds it" if exchange is not None else ""
        raise DefinitionError(
            f"messages of encoding {encoding!r} cannot be converted while recording{advice}"
        )
    return layout


def decoder(layout: Layout) -> Decode:
    """Return a function that decodes payloads of *layout*; it raises DamagedError for invalid ones."""
    decode = layout.decoder()
    return lambda payload: decode(memoryview(payload))


def is_raw(schema: Schema | Layout) -> bool:
    """Return whether a source knows nothing about its payloads: a definition that the user gives applies to them."""
    if not isinstance(schema, Layout) or not isinstance(schema.root, Struct) or len(schema.root.fields) != 1:
        return False
    node = schema.root.fields[0].node
    return isinstance(node, Rest) or (isinstance(node, FixedArray) and node.item == Scalar("uint8"))


def checker(layout: Layout) -> Callable[[bytes], bytes]:
    """Return a function that returns a payload; it raises UsageError or DamagedError if that does not fit *layout*."""
    size, decode = layout.size, layout.decoder()

    def check(payload: bytes) -> bytes:
        if size is None:
            decode(memoryview(payload))
        elif len(payload) != size:
            raise UsageError(f"a message of {len(payload)} bytes instead of {size}")
        return payload

    return check
