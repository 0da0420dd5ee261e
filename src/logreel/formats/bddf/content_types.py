"""Content types of message series, and the annotation that holds a JSON Schema."""

from __future__ import annotations

import base64
from collections.abc import Mapping

PROTOBUF, JSON = "application/protobuf", "application/json"
#: Annotation of a series of JSON messages: the JSON Schema of their fields.
JSON_SCHEMA = "logreel:json_schema"
#: The same in files of earlier versions; keys without an organization are reserved.
OLD_JSON_SCHEMA = "json_schema"


#: Annotation of a series that was a channel of another format: what it was there, as JSON.
BEFORE = "logreel:original"
#: Annotation of a series of protobuf messages: base64 of a FileDescriptorSet of their type.
DESCRIPTORS = "logreel:file_descriptor_set"


def own_descriptors(annotations: Mapping[str, str]) -> bytes:
    """Return the FileDescriptorSet among the annotations of a series; empty if there is none that is valid base64."""
    try:
        return base64.b64decode(annotations.get(DESCRIPTORS, ""), validate=True)
    except ValueError:
        return b""


def schema_in_annotations(annotations: Mapping[str, str]) -> str | None:
    """Return the JSON Schema among the annotations of a series, or None."""
    return annotations.get(JSON_SCHEMA, annotations.get(OLD_JSON_SCHEMA))
