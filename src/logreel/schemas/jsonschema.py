"""JSON messages: Layout nodes of a JSON Schema, and decoding to columns and plain values, also without a schema.

Formats whose messages are JSON call it, besides ``schemas.languages``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logreel.errors import DamagedError, DefinitionError, Problem
from logreel.index.gather import PayloadRange
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.layout.nodes import (
    MAX_DEPTH,
    MAX_LEAVES,
    Bytes,
    Field,
    FixedArray,
    Node,
    Rest,
    Scalar,
    Sequence,
    String,
    Struct,
)
from logreel.log.scan import decoded, payloads

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded


#: Layout of messages without known fields: the whole text.
TEXT = Layout(Struct((Field("json", Rest(text=True)),)), "json")


class JsonDecoder:
    """Decodes payloads that are JSON objects.

    schema  their JSON Schema; without properties, tables have one column ``json`` with the whole text

    Raises DefinitionError for a schema that is no JSON, or describes too many fields.
    """

    def __init__(self, schema: str = "") -> None:
        self.layout, fit, self.has_untyped = TEXT, None, False
        try:
            node, fit, self.has_untyped = shape(json.loads(schema)) if schema.strip() else (None, None, False)
        except (ValueError, RecursionError) as error:
            raise DefinitionError(f"its JSON schema cannot be used: {error}") from None
        self._fit: Fit | None = None
        if isinstance(node, Struct):
            self.layout, self._fit = Layout(node, "json"), fit

    @property
    def has_fields(self) -> bool:
        """True if the schema names fields."""
        return self._fit is not None

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Decode a batch of payloads; payloads that are not JSON objects are skipped (see PayloadDecoder).

        Members whose values do not have the type of the schema are null.
        """
        if self._fit is None:
            return decoded(
                layout, [{"json": d.decode("utf-8", "replace")} for d in payloads(piece)], [], len(rows)
            )
        found: list[dict[str, Any]] = []
        bad: list[tuple[int, str]] = []
        for i, data in enumerate(payloads(piece)):
            try:
                found.append(self._fit(self._object(data)))
            except (ValueError, RecursionError) as error:
                bad.append((i, f"no JSON object: {error}"))
        return decoded(layout, found, bad, len(rows))

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one payload; a value that is no object becomes ``{"json": value}``."""
        try:
            value = json.loads(bytes(data))
        except (ValueError, RecursionError) as error:
            text = f"no JSON: {error}"
            raise DamagedError(Problem("payload", 0, len(data), True, text)) from None
        return value if isinstance(value, dict) else {"json": value}

    def _object(self, data: bytes) -> dict[str, Any]:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError(f"it is {type(value).__name__}")
        return value


#: Converts any value to the type of a column; None if it has another type.
Fit = Callable[[Any], Any]
_INT64, _UINT64 = range(-(1 << 63), 1 << 63), range(1 << 64)


def shape(schema: Any) -> tuple[Node | None, Fit, bool]:
    """Return the Node of a JSON Schema, None if it describes no type, and the function that converts values to it.

    The third value says whether there are properties of no single type, whose values become JSON text.

    Understands type, properties, items, ``$ref`` to ``$defs`` or ``definitions``, and alternatives with null. Raises
    DefinitionError for a schema with too many parts.
    """
    maker = _Maker(schema)
    return *maker.node(schema, 0), maker.has_untyped


class _Maker:
    def __init__(self, root: Any) -> None:
        self.root, self.parts, self.has_untyped = root, 0, False

    def node(self, schema: Any, depth: int) -> tuple[Node | None, Fit]:
        self.parts += 1
        if self.parts > MAX_LEAVES // 8:
            raise DefinitionError("its JSON schema has too many parts")
        schema = self.resolved(schema)
        if not isinstance(schema, dict) or depth > MAX_DEPTH // 2:
            return None, _nothing
        kinds = schema.get("type")
        kinds = [k for k in (kinds if isinstance(kinds, list) else [kinds]) if k != "null"]
        match kinds:
            case ["object"] | [None] if isinstance(schema.get("properties"), dict):
                return self.object(schema["properties"], depth)
            case ["array"]:
                node, fit = self.node(schema.get("items"), depth + 1)
                return (None, fit) if node is None else (Sequence(node), _many(fit))
            case ["string"]:
                return String(), _text
            case ["boolean"]:
                return Scalar("bool"), lambda value: value if isinstance(value, bool) else None
            case ["integer"] if _is_wide(schema):
                return Scalar("uint64"), _natural
            case ["integer"]:
                return Scalar("int64"), _integer
            case ["number"] | ["integer", "number"] | ["number", "integer"]:
                return Scalar("float64"), _number
        return None, _nothing

    def resolved(self, schema: Any) -> Any:
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, dict):
                return schema
            for word in ("anyOf", "oneOf"):
                real = [s for s in schema.get(word) or [] if s != {"type": "null"}]
                if len(real) == 1:
                    schema = real[0]
            reference = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str) or not f"{reference}/".startswith("#/"):
                return schema
            schema = self.root
            for step in reference.split("/")[1:]:
                schema = schema.get(step) if isinstance(schema, dict) else None
        return None

    def object(self, properties: dict[str, Any], depth: int) -> tuple[Node | None, Fit]:
        fields, fits = [], []
        for name, one in properties.items():
            node, fit = self.node(one, depth + 1)
            if node is None:
                # Values without a type become JSON text.
                node, fit, self.has_untyped = String(), _shown, True
            fields.append(Field(str(name), node))
            fits.append((str(name), fit))
        if not fields:
            return None, _nothing
        return (
            Struct(tuple(fields)),
            lambda value: (
                {name: fit(value.get(name)) for name, fit in fits} if isinstance(value, dict) else None
            ),
        )


def _nothing(value: Any) -> Any:
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_wide(schema: dict[str, Any]) -> bool:
    """Return whether integers of *schema* need uint64."""
    least, most = schema.get("minimum"), schema.get("maximum")
    return isinstance(least, int) and least >= 0 and isinstance(most, int) and most not in _INT64


def _integer(value: Any) -> int | None:
    return _whole(value, _INT64)


def _natural(value: Any) -> int | None:
    return _whole(value, _UINT64)


def _whole(value: Any, among: range) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value in among else None


def _number(value: Any) -> float | None:
    # NaN and infinities are often written as text, because JSON has no such numbers.
    if isinstance(value, str) and value.lower().lstrip("+-") in ("nan", "infinity", "inf"):
        return float(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if abs(value) < 1e308 or isinstance(value, float) else math.inf


def _shown(value: Any) -> str | None:
    import json

    return None if value is None else json.dumps(value, ensure_ascii=False)


def _many(fit: Fit) -> Fit:
    return lambda value: [fit(one) for one in value] if isinstance(value, list) else None


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
