"""Schemas of series that can hold the messages of a given Layout."""

from __future__ import annotations

from logreel.formats.bddf.content_types import JSON
from logreel.formats.bddf.descriptors import POD_TYPES
from logreel.layout.layout import Layout
from logreel.layout.nodes import Scalar, Sequence, Struct
from logreel.log.schema import Schema
from logreel.schemas.json.from_layout import json_schema


def schema_from_layout(layout: Layout) -> Schema:
    """Return a POD schema if each record is one number named ``value``, else JSON with a JSON Schema.

    PODs store no field names, so other names could not be read back.
    """
    pod = _pod_type(layout)
    return Schema(JSON, JSON, json_schema(layout)) if pod is None else Schema(pod, "bddf")


def _pod_type(layout: Layout) -> str | None:
    fields = list(layout.root.visible()) if isinstance(layout.root, Struct) else []
    if [f.name for f in fields] != ["records"] or not isinstance(fields[0].node, Sequence):
        return None
    record = fields[0].node.item
    members = list(record.visible()) if isinstance(record, Struct) else []
    if [f.name for f in members] != ["value"] or not isinstance(members[0].node, Scalar):
        return None
    kind = members[0].node.type
    return kind if kind in POD_TYPES[1:] and kind != "bool" else None
