"""What any tool has to know to read messages: how they are encoded, and their whole definition."""

from __future__ import annotations

from logreel.errors import DefinitionError
from logreel.log.schema import Schema

#: The encoding of messages, by that of their schema, where the two have different names.
ENCODINGS = {
    "ros1msg": "ros1",
    "ros2msg": "cdr",
    "ros2idl": "cdr",
    "omgidl": "cdr",
    "jsonschema": "json",
}


def message_encoding(schema: Schema) -> str:
    """How messages of a schema are encoded, as MCAP and Foxglove call it."""
    return ENCODINGS.get(schema.encoding, schema.encoding)


def portable(schema: Schema) -> Schema:
    """Return *schema* with a definition that parsers of other tools read, where those of earlier releases confuse them.

    Applies to definitions of ROS 1; see ``ros1msg.portable``.
    """
    if schema.encoding != "ros1msg" or not schema.text:
        return schema
    from logreel.schemas import ros1msg

    text = ros1msg.portable(schema.text, schema.name)
    return schema if text == schema.text else Schema(schema.name, schema.encoding, text)


def complete(schema: Schema, md5: str = "*") -> Schema:
    """The same; with the definition of a message that the log did not carry, where it is known.

    md5  what a definition of ROS 1 has to be summed up to; ``*``: anything
    """
    if schema.raw:
        return schema
    if schema.encoding == "protobuf":
        from logreel.schemas.protobuf.types import Types

        return Schema.of(schema.name, schema.encoding, Types().set_of(schema.name))
    if schema.encoding != "ros1msg":
        return schema
    from logreel.schemas import ros1msg

    try:
        return Schema(schema.name, schema.encoding, ros1msg.full_text(schema.name, md5=md5))
    except DefinitionError:
        return schema
