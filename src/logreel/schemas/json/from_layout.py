"""From a Layout to a JSON Schema of the same fields, and from fields to JSON text."""

from __future__ import annotations

import json
import math
from typing import Any

from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, Sequence, String, Struct

_MAX_UINT64 = (1 << 64) - 1


def json_schema(layout: Layout) -> str:
    """The schema of objects with the visible fields of *layout*; those of a message of many records are ``records``.

    Bytes become text in base64, arrays of any size lists.
    """
    root = _described(layout.root)
    if not isinstance(layout.root, Struct):
        root = {"type": "object", "properties": {"records": root}}
    return json.dumps(root, ensure_ascii=False, separators=(",", ":"))


def _described(node: Node) -> dict[str, Any]:
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
            return {"type": "array", "items": _described(item)}
        case Struct():
            members = {f.name: _described(f.node) for f in node.visible()}
            return {"type": "object", "properties": members}
        case _:
            return {"type": "integer"}


def written(fields: dict[str, Any]) -> bytes:
    """*fields* as JSON; numbers that JSON has no digits for are the texts ``NaN``, ``Infinity``, ``-Infinity``."""
    return json.dumps(_told(fields), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _told(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_told(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
