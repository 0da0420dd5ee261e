"""Arrow arrays from column buffers, for the gather kernel and the walker: one recursion over the nodes.

Buffers are in the order of the tree: a number or char array has its bytes, a counted sequence its offsets and then
the buffers of its items, text and opaque bytes their offsets and then bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from logreel.layout.arrow_arrays import buffer_of
from logreel.layout.nodes import (
    Bytes,
    Field,
    FixedArray,
    Node,
    Rest,
    Scalar,
    Sequence,
    String,
    Struct,
    Time,
)
from logreel.layout.numpy_columns import (
    ARRAY,
    LIST,
    TEXT,
    Buffers,
    Column,
    PlainValues,
    cut_text,
    replaced_text,
    typed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NUMBERS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "char": pa.int8(),
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int16": pa.int16(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
}


def arrow_type(node: Node) -> pa.DataType:
    """Return the Arrow type of *node*."""
    match node:
        case Scalar(type=t):
            return _NUMBERS[t]
        case Time(signed=signed):
            return pa.duration("ns") if signed else pa.timestamp("ns")
        case FixedArray(item=Scalar(type="char")) | String() | Rest(text=True):
            return pa.string()
        case Sequence(item=Scalar(type="char" | "uint8")) | Bytes() | Rest():
            return pa.binary()
        case FixedArray(item=item, count=n):
            return pa.list_(arrow_type(item), n)
        case Sequence(item=item):
            return pa.list_(arrow_type(item))
        case Struct():
            return pa.struct([arrow_field(f) for f in node.visible()])
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def arrow_field(f: Field, kind: pa.DataType | None = None) -> pa.Field[Any]:
    """Return the Arrow field of a visible member, of type *kind* if given; a unit is stored in its metadata."""
    kind = arrow_type(f.node) if kind is None else kind
    return pa.field(f.name, kind, metadata={"unit": f.unit} if f.unit else None)


def build(node: Node, buffers: Buffers, length: int) -> pa.Array[Any]:
    """Return the next *length* values of *node*, with the type that ``arrow_type`` returns.

    Types are built from those of the children: ``arrow_type`` at every level would build them repeatedly.
    """
    match node:
        case Scalar(type="bool"):
            bits = np.packbits(next(buffers) != 0, bitorder="little")
            return pa.Array.from_buffers(pa.bool_(), length, [None, buffer_of(bits)], 0)
        case Scalar():
            return pa.Array.from_buffers(arrow_type(node), length, [None, buffer_of(next(buffers))], 0)
        case Time(signed=signed):
            ns = typed("duration" if signed else "time", next(buffers))
            return pa.Array.from_buffers(arrow_type(node), length, [None, buffer_of(ns)], 0)
        case FixedArray(item=Scalar(type="char"), count=n):
            return text_array(*cut_text(next(buffers).reshape(length, n)))
        case FixedArray(item=item, count=n):
            child = build(item, buffers, length * n)
            return pa.Array.from_buffers(pa.list_(child.type, n), length, [None], 0, children=[child])
        case Struct():
            children = build_fields(node, buffers, length)
            members = zip(node.visible(), children, strict=True)
            kind = pa.struct([arrow_field(f, child.type) for f, child in members])
            return pa.Array.from_buffers(kind, length, [None], 0, children=children)
        case String() | Rest(text=True):
            return text_array(next(buffers), next(buffers))
        case Bytes() | Rest() | Sequence(item=Scalar(type="char" | "uint8")):
            return _blob_array(pa.binary(), next(buffers), next(buffers))
        case Sequence(item=item):
            offsets = next(buffers)
            return list_array(offsets, build(item, buffers, int(offsets[-1])))
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def build_fields(struct: Struct, buffers: Buffers, length: int) -> list[pa.Array[Any]]:
    """Return the visible members of *struct*, *length* values each."""
    return [build(f.node, buffers, length) for f in struct.visible()]


def arrow_of(node: Node, column: Any) -> Any:
    """Return a Column, or the values of PlainValues, of *node* as an Arrow array; anything else as it is."""
    if isinstance(column, PlainValues):
        return pa.array(column.values, arrow_type(column.node), from_pandas=False)
    return _array_of(node, column) if isinstance(column, Column) else column


def _array_of(node: Node, column: Column) -> pa.Array[Any]:
    n, valid, data = column.length, column.valid, column.data
    bits = None if valid is None else buffer_of(np.packbits(valid, bitorder="little"))
    match node:
        case Struct():
            children = [_array_of(f.node, c) for f, c in zip(node.visible(), column.children, strict=True)]
            fields = [arrow_field(f, c.type) for f, c in zip(node.visible(), children, strict=True)]
            return pa.Array.from_buffers(pa.struct(fields), n, [bits], children=children)
        case FixedArray(item=item, count=count) if column.type == ARRAY:
            child = _array_of(item, column.item)
            return pa.Array.from_buffers(pa.list_(child.type, count), n, [bits], children=[child])
        case Sequence(item=item) if column.type == LIST:
            child = _array_of(item, column.item)
            return pa.Array.from_buffers(
                pa.list_(child.type), n, [bits, buffer_of(column.ends)], children=[child]
            )
    if column.type == TEXT:
        strings = text_array(column.ends, column.values)
        return (
            strings if bits is None else pa.Array.from_buffers(pa.string(), n, [bits, *strings.buffers()[1:]])
        )
    data = np.packbits(column.values, bitorder="little") if column.type == "bool" else column.values
    buffers = [buffer_of(np.ascontiguousarray(data))]
    if column.offsets is not None:
        buffers.insert(0, buffer_of(column.offsets))
    return pa.Array.from_buffers(arrow_type(node), n, [bits, *buffers])


def list_array(offsets: NDArray[np.int32], child: pa.Array[Any]) -> pa.Array[Any]:
    """Return lists of the values of *child*, split at *offsets*."""
    kind = pa.list_(child.type)
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, buffer_of(offsets)], 0, children=[child])


def _blob_array(kind: pa.DataType, offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array[Any]:
    return pa.Array.from_buffers(kind, len(offsets) - 1, [None, buffer_of(offsets), buffer_of(data)], 0)


def text_array(offsets: NDArray[np.int32], data: NDArray[np.uint8]) -> pa.Array[Any]:
    """Return strings, with U+FFFD in place of what is not UTF-8."""
    strings = _blob_array(pa.string(), offsets, data)
    if _is_ascii(data):
        return strings
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return _blob_array(pa.string(), *replaced_text(offsets, data))
    return strings


def _is_ascii(data: NDArray[np.uint8]) -> bool:
    word_bytes = len(data) // 8 * 8
    words = np.bitwise_or.reduce(data[:word_bytes].view(np.uint64), initial=np.uint64(0))
    tail = np.bitwise_or.reduce(data[word_bytes:], initial=np.uint8(0))
    return not (int(words) & 0x8080808080808080 or int(tail) & 0x80)
