"""JSON Schema of a Layout, and JSON text of fields."""

from __future__ import annotations

import json
import math
from typing import Any

from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, Sequence, String, Struct

_MAX_UINT64 = (1 << 64) - 1


def json_schema(layout: Layout) -> str:
    """Return the JSON Schema of objects with the visible fields of *layout*.

    Bytes become base64 text, arrays become lists, the records of a message of many records the list ``records``.
    """
    root = _node_schema(layout.root)
    if not isinstance(layout.root, Struct):
        root = {"type": "object", "properties": {"records": root}}
    return json.dumps(root, ensure_ascii=False, separators=(",", ":"))


def _node_schema(node: Node) -> dict[str, Any]:
    match node:
        case Scalar(type="bool"):
            return {"type": "boolean"}
        case Scalar(type="float32" | "float64"):
            return {"type": "number"}
        case Scalar(type="uint64"):
            return {"type": "integer", "minimum": 0, "maximum": _MAX_UINT64}
        case String() | Rest(text=True) | FixedArray(item=Scalar(type="char")):
            return {"type": "string"}
        case Bytes() | Rest() | Sequence(item=Scalar(type="uint8" | "char")):
            return {"type": "string", "contentEncoding": "base64"}
        case Sequence(item=item) | FixedArray(item=item):
            return {"type": "array", "items": _node_schema(item)}
        case Struct():
            members = {f.name: _node_schema(f.node) for f in node.visible()}
            return {"type": "object", "properties": members}
        case _:
            return {"type": "integer"}


def json_bytes(fields: dict[str, Any]) -> bytes:
    """Return *fields* as JSON in UTF-8; NaN and infinities become the texts ``NaN``, ``Infinity``, ``-Infinity``."""
    return json.dumps(_finite(fields), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
