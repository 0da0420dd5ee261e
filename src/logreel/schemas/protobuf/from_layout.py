"""Message type of a Layout, and tables as its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.layout.numpy_columns import Column, column_of
from logreel.schemas.protobuf.columns import Many, Values
from logreel.schemas.protobuf.describe import ProtoField, ProtoMessage

_SCALARS = {
    "bool": "bool",
    "char": "int32",
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint32",
    "uint16": "uint32",
    "uint32": "uint32",
    "uint64": "uint64",
    "float32": "float",
    "float64": "double",
}
#: Fixed arrays of more uint8 become bytes, shorter ones numbers.
OPAQUE = 64
#: Field of a message with many records, and field of a row of an array of arrays.
RECORDS, ROW = "records", "values"


def descriptor_from_layout(layout: Layout, name: str) -> ProtoMessage:
    """Return a message type of this full name with a field for each visible field of *layout*."""
    if isinstance(layout.root, Counted):
        record = _message(layout.record, f"{name}.Record")
        return ProtoMessage(name, (ProtoField(RECORDS, 1, record, True),))
    return _message(layout.record, name)


def type_name(*parts: str) -> str:
    """Return the full name of these parts, made valid."""
    return ".".join(identifier(part) for part in parts)


def identifier(text: str) -> str:
    """Return *text* as a valid name of a field or a type."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if re.match("[A-Za-z_]", name) else f"_{name}"


def _message(struct: Struct, name: str) -> ProtoMessage:
    members = list(struct.visible())
    names = _names(f.name for f in members)
    used, fields = set(names), []
    for number, (label, f) in enumerate(zip(names, members, strict=True), 1):
        inner = "".join(part.capitalize() for part in label.split("_")) or "Value"
        while inner in used:
            inner += "_"
        kind, repeated = _kind(f.node, f"{name}.{inner}")
        if isinstance(kind, ProtoMessage):
            used.add(inner)
        fields.append(ProtoField(label, number, kind, repeated))
    return ProtoMessage(name, tuple(fields))


def _names(names: Iterable[str]) -> list[str]:
    """Return valid field names that differ from each other."""
    found: list[str] = []
    for name in map(identifier, names):
        n, label = 1, name
        while label in found:
            n, label = n + 1, f"{name}_{n + 1}"
        found.append(label)
    return found


def _kind(node: Node, name: str) -> tuple[str | ProtoMessage, bool]:
    """Return the field kind of *node*, and whether it is repeated; *name*: of a new type, if one is needed."""
    match node:
        case Scalar(type=t):
            return _SCALARS[t], False
        case Time(signed=signed):
            return "duration" if signed else "time", False
        case FixedArray(item=Scalar(type="char")) | String() | Rest(text=True):
            return "string", False
        case FixedArray(item=Scalar(type="uint8"), count=n) if n > OPAQUE:
            return "bytes", False
        case Bytes() | Rest() | Counted(item=Scalar(type="char" | "uint8")):
            return "bytes", False
        case FixedArray(item=item) | Counted(item=item):
            kind, repeated = _kind(item, name)
            if not repeated:
                return kind, True
            # Protobuf has no arrays of arrays: each row is a message.
            return ProtoMessage(name, (ProtoField(ROW, 1, _kind(item, f"{name}.Row")[0], True),)), True
        case Struct():
            return _message(node, name), False
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def values(layout: Layout, message: ProtoMessage, columns: Sequence[Any]) -> Values:
    """Return columns of *layout* as columns of *message*; what is missing becomes zero or empty.

    message  ``descriptor_from_layout(layout, name)``
    columns  as ``Column.settled`` returns them, or of an Arrow table
    """
    members = list(layout.record.visible())
    columns = [c if isinstance(c, Column) else column_of(layout.root, c).settled() for c in columns]
    if not isinstance(layout.root, Counted):
        return _members(members, message, columns)
    inner = message.fields[0].kind
    if not columns or not isinstance(inner, ProtoMessage):
        return {}
    records = _members(members, inner, [column.item for column in columns])
    return {RECORDS: Many(columns[0].ends.astype(np.int64), records)}


def _members(members: Sequence[Any], message: ProtoMessage, columns: Sequence[Column]) -> Values:
    return {
        made.name: _value(f.node, column, made.kind)
        for f, made, column in zip(members, message.fields, columns, strict=True)
    }


def _value(node: Node, column: Column, kind: Any) -> Any:
    match node:
        case Scalar(type="bool"):
            return column.values.view(np.uint8)
        case Scalar() | Time():
            return column.values
        case FixedArray(item=Scalar(type="char")) | String() | Bytes() | Rest():
            return _bytes(column)
        case Counted(item=Scalar(type="char" | "uint8")):
            return _bytes(column)
        case FixedArray(item=item, count=n):
            offsets = np.arange(len(column) + 1, dtype=np.int64) * n
            if kind == "bytes" and isinstance(item, Scalar):
                return Many(offsets, column.item.values)
            return _many(offsets, item, column.item, kind)
        case Counted(item=item):
            return _many(column.ends.astype(np.int64), item, column.item, kind)
        case Struct():
            return _members(list(node.visible()), kind, column.children)
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def _many(offsets: Any, item: Node, flat: Column, kind: Any) -> Many:
    nested = isinstance(kind, ProtoMessage) and not isinstance(item, Struct)
    found = _value(item, flat, kind.fields[0].kind if nested else kind)
    return Many(offsets, {ROW: found} if nested else found)


def _bytes(column: Column) -> Many:
    return Many(column.ends.astype(np.int64), column.values)
