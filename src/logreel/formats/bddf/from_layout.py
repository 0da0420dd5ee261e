"""From a Layout to the type of a series that holds the same fields."""

from __future__ import annotations

from logreel.formats.bddf.messages import POD_TYPES
from logreel.formats.bddf.payloads import JSON
from logreel.layout.layout import Layout
from logreel.layout.nodes import Scalar, Sequence, Struct
from logreel.log.schema import Schema
from logreel.schemas.json.from_layout import json_schema


def schema_from_layout(layout: Layout) -> Schema:
    """Plain values where messages are records of nothing but a number called ``value``; else JSON with its schema.

    Plain values have no names of their own, so nothing else comes back from them as it was.
    """
    plain = _plain(layout)
    return Schema(JSON, JSON, json_schema(layout)) if plain is None else Schema(plain, "bddf")


def _plain(layout: Layout) -> str | None:
    fields = list(layout.root.visible()) if isinstance(layout.root, Struct) else []
    if [f.name for f in fields] != ["records"] or not isinstance(fields[0].node, Sequence):
        return None
    record = fields[0].node.item
    members = list(record.visible()) if isinstance(record, Struct) else []
    if [f.name for f in members] != ["value"] or not isinstance(members[0].node, Scalar):
        return None
    kind = members[0].node.type
    return kind if kind in POD_TYPES[1:] and kind != "bool" else None
