"""Message type of a Layout, and tables as its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.layout.arrow_arrays import as_fixed_list, as_list, as_struct, values_of
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, String, Struct, Time
from logreel.layout.nodes import Sequence as Counted
from logreel.schemas.protobuf.columns import Many, Values
from logreel.schemas.protobuf.describe import ProtoField, ProtoMessage

if TYPE_CHECKING:
    import pyarrow as pa

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


def values(layout: Layout, message: ProtoMessage, columns: Sequence[pa.ChunkedArray[Any]]) -> Values:
    """Return the columns of a table of *layout* as columns of *message*; nulls become zero or empty.

    message  ``descriptor_from_layout(layout, name)``
    """
    arrays = [_joined(column) for column in columns]
    members = list(layout.record.visible())
    if not isinstance(layout.root, Counted):
        return _members(members, message, arrays)
    inner = message.fields[0].kind
    if not arrays or not isinstance(inner, ProtoMessage):
        return {}
    return {RECORDS: Many(_offsets(arrays[0]), _members(members, inner, [as_list(a).values for a in arrays]))}


def _joined(column: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    import pyarrow as pa

    found = column.chunks[0] if column.num_chunks == 1 else column.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _members(members: Sequence[Any], message: ProtoMessage, arrays: Sequence[pa.Array[Any]]) -> Values:
    return {
        made.name: _value(f.node, array, made.kind)
        for f, made, array in zip(members, message.fields, arrays, strict=True)
    }


def _value(node: Node, array: pa.Array[Any], kind: Any) -> Any:
    import pyarrow as pa

    match node:
        case Scalar(type="bool"):
            return _numbers(array.cast(pa.uint8()))
        case Scalar():
            return _numbers(array)
        case Time():
            return _numbers(array.cast(pa.int64()))
        case FixedArray(item=Scalar(type="char")) | String() | Bytes() | Rest():
            return _bytes(array)
        case Counted(item=Scalar(type="char" | "uint8")):
            return _bytes(array)
        case FixedArray(item=item, count=n):
            offsets = np.arange(len(array) + 1, dtype=np.int64) * n
            if kind == "bytes" and isinstance(item, Scalar):
                return Many(offsets, _numbers(as_fixed_list(array).flatten()))
            return _many(offsets, item, as_fixed_list(array).flatten(), kind)
        case Counted(item=item):
            return _many(_offsets(array), item, as_list(array).values, kind)
        case Struct():
            return _members(list(node.visible()), kind, as_struct(array).flatten())
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def _many(offsets: Any, item: Node, flat: pa.Array[Any], kind: Any) -> Many:
    nested = isinstance(kind, ProtoMessage) and not isinstance(item, Struct)
    found = _value(item, flat, kind.fields[0].kind if nested else kind)
    return Many(offsets, {ROW: found} if nested else found)


def _numbers(array: pa.Array[Any]) -> Any:
    return (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)


def _bytes(array: pa.Array[Any]) -> Many:
    return Many(_offsets(array), values_of(array.buffers()[2], np.uint8))


def _offsets(array: pa.Array[Any]) -> Any:
    data = array.buffers()[1]
    if data is None or not data.size:
        return np.zeros(len(array) + 1, np.int64)
    return values_of(data, np.int32, len(array) + 1, 4 * array.offset).astype(np.int64)
