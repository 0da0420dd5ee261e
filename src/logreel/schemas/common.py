"""Message encodings and complete definitions, for files and connections that other tools read."""

from __future__ import annotations

import re

from logreel.errors import DefinitionError
from logreel.log.schema import Schema

#: Message encoding by schema encoding, where they have different names.
ENCODINGS = {
    "ros1msg": "ros1",
    "ros2msg": "cdr",
    "ros2idl": "cdr",
    "omgidl": "cdr",
    "jsonschema": "json",
}
_CONSTANT = re.compile(r"\s*[A-Za-z]\w*\s+([A-Za-z_]\w*)\s*=\s*[^\s#]", re.ASCII)


def constants(schema: Schema) -> list[str]:
    """Return the names of the constants in a definition of ROS 1 or 2, also those of nested types; else none.

    Values of enumerations in protobuf are decoded to their names, so that they are part of the messages.
    """
    if schema.encoding not in ("ros1msg", "ros2msg"):
        return []
    return [found[1] for line in schema.text.splitlines() if (found := _CONSTANT.match(line))]


def message_encoding(schema: Schema) -> str:
    """Return the encoding of messages of a schema, by its name in MCAP and Foxglove."""
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
    """Return *schema*, with a known definition of its type if it has none.

    md5  checksum of the ROS 1 definition; ``*``: any
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
