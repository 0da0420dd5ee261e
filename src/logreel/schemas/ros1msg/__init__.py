"""ROS 1 message definitions: parsing, checksums, known definitions, Layouts."""

from __future__ import annotations

from logreel.schemas.ros1msg.definition import (
    Constant,
    Definition,
    FieldLine,
    MessageDefinition,
    is_type,
    parse_message,
    spellings,
)
from logreel.schemas.ros1msg.known import Known
from logreel.schemas.ros1msg.layouts import (
    FIELD,
    PACKAGE,
    definition_from_layout,
    layout,
    portable,
    topic_name,
    type_name,
)
from logreel.schemas.ros1msg.registry import DefinitionRegistry, as_read, define, full_text, parse, standard

__all__ = [
    "FIELD",
    "PACKAGE",
    "Constant",
    "Definition",
    "DefinitionRegistry",
    "FieldLine",
    "Known",
    "MessageDefinition",
    "as_read",
    "define",
    "definition_from_layout",
    "full_text",
    "is_type",
    "layout",
    "parse",
    "parse_message",
    "portable",
    "spellings",
    "standard",
    "topic_name",
    "type_name",
]
