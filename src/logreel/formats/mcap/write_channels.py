"""Channel and schema records of channels that are written."""

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

#: Encodings of schemas that are useless without their bytes.
COMPILED = ("protobuf", "flatbuffer")


@dataclass(frozen=True, slots=True)
class Declared:
    """A channel as it is written; *encoding*: message encoding."""

    topic: str
    schema: Schema
    encoding: str
    metadata: Mapping[str, str]
    layout: Callable[[], Layout]


def declare(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Declared:
    """Return the channel to be written: topic, completed schema, message encoding and metadata as text."""
    encoding = metadata.get(ENCODING)
    if not isinstance(encoding, str):
        encoding = message_encoding(schema)
    entries, stated = dict(metadata), str(metadata.get("topic", topic))
    # The second, third … channel of a topic is named with an instance number in square brackets.
    if re.fullmatch(re.escape(stated) + r"\[\d+\]", topic):
        entries.pop("topic")
    else:
        stated = topic
    full = complete(schema, str(metadata.get("md5sum", "*")))
    if full != schema:
        entries[ADDED] = True
    elif schema.encoding in COMPILED and not schema.raw:
        # Other tools would try to use an empty schema of such an encoding.
        entries[UNDEFINED], full = schema.encoding, Schema(schema.name, "")
    return Declared(
        stated,
        full,
        encoding,
        metadata_to_text(_with_callerid(entries)),
        partial(_layout, stated, schema, full, encoding),
    )


def _with_callerid(entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata with ``callerid``, which other tools read, if there is one caller."""
    callers = entries.get("callerids")
    if not isinstance(callers, list) or len(callers) != 1 or "callerid" in entries:
        return entries
    return {**entries, "callerid": str(callers[0])}


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
        text = f"messages of encoding {encoding or 'not given'!r} are given as bytes"
        raise DefinitionError(text)
    return found
