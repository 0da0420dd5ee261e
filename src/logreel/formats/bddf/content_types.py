"""Content types of message series, and the annotation that holds a JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping

PROTOBUF, JSON = "application/protobuf", "application/json"
#: Annotation of a series of JSON messages: the JSON Schema of their fields.
JSON_SCHEMA = "logreel:json_schema"
#: The same in files of earlier versions; keys without an organization are reserved.
OLD_JSON_SCHEMA = "json_schema"


def json_schema(annotations: Mapping[str, str]) -> str | None:
    """Return the JSON Schema among the annotations of a series, or None."""
    return annotations.get(JSON_SCHEMA, annotations.get(OLD_JSON_SCHEMA))
