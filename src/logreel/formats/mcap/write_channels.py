"""From a channel that is to be written to what an MCAP says about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from logreel.errors import DefinitionError
from logreel.formats.mcap.channels import ADDED, ENCODING, UNDEFINED, metadata_to_text
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.registry.registry import formats
from logreel.schemas.common import complete, message_encoding

#: Encodings of schemas that are nothing without their bytes.
COMPILED = ("protobuf", "flatbuffer")


@dataclass(frozen=True, slots=True)
class Declared:
    """A channel; *encoding* is that of its messages."""

    topic: str
    schema: Schema
    encoding: str
    metadata: Mapping[str, str]
    layout: Callable[[], Layout]


def declare(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Declared:
    """What to write of a channel."""
    encoding = metadata.get(ENCODING)
    if not isinstance(encoding, str):
        encoding = message_encoding(schema)
    told, stated = dict(metadata), str(metadata.get("topic", topic))
    # Channels of a topic that has others before have an instance number behind its name, in square brackets.
    if re.fullmatch(re.escape(stated) + r"\[\d+\]", topic):
        told.pop("topic")
    else:
        stated = topic
    full = complete(schema, str(metadata.get("md5sum", "*")))
    if full != schema:
        told[ADDED] = True
    elif schema.encoding in COMPILED and not schema.raw:
        # Others take a schema of such an encoding to describe the messages.
        told[UNDEFINED], full = schema.encoding, Schema(schema.name, "")
    return Declared(
        stated,
        full,
        encoding,
        metadata_to_text(_hinted(told)),
        partial(_layout, stated, schema, full, encoding),
    )


def _hinted(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, with what other tools look for in the metadata of channels of ROS 1."""
    callers = told.get("callerids")
    if not isinstance(callers, list) or len(callers) != 1 or "callerid" in told:
        return told
    return {**told, "callerid": str(callers[0])}


def _layout(topic: str, schema: Schema, full: Schema, encoding: str) -> Layout:
    if (schema.encoding, encoding) == ("ros1msg", "ros1"):
        from logreel.schemas import ros1msg

        return ros1msg.layout(ros1msg.parse(full.text, full.name))
    if (schema.encoding, encoding) == ("ros2msg", "cdr"):
        from logreel.schemas import ros2msg

        return ros2msg.layout(schema.name, schema.text)
    own = formats().get(schema.encoding)
    found = own.layout(schema, topic) if own is not None and own.layout is not None else None
    if found is None:
        text = f"messages of encoding {encoding or 'that nobody names'!r} are given as bytes"
        raise DefinitionError(text)
    return found
