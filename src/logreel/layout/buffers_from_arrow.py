"""Column buffers from Arrow arrays: the inverse of ``arrow_from_buffers``, in the same order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.layout.arrow_arrays import as_fixed_list, as_list, as_struct, values_of
from logreel.layout.nodes import Bytes, FixedArray, Node, Rest, Scalar, Sequence, String, Struct, Time

Buffer = NDArray[Any]


def buffers_from_arrow(node: Node, array: pa.Array[Any], name: str) -> Iterator[Buffer]:
    """Yield the buffers of *array*, of type ``arrow_type(node)``, as ``arrow_from_buffers.build`` takes them.

    name  of the field, for errors

    Raises UsageError for missing values, and for values that do not fit the bytes of *node*.
    """
    if array.null_count:
        raise UsageError(f"{name}: {array.null_count} values are missing; a message has every field")
    match node:
        case Scalar(type="bool"):
            yield _bytes(array.cast(pa.uint8()))
        case Scalar():
            yield _bytes(array)
        case Time(signed=signed):
            yield _time_words(_bytes(array).view(np.int64), signed, name)
        case FixedArray(item=Scalar(type="char"), count=n):
            yield _padded(array, n, name)
        case FixedArray(item=item):
            yield from buffers_from_arrow(item, as_fixed_list(array).flatten(), name)
        case Struct():
            for f, child in zip(node.visible(), as_struct(array).flatten(), strict=True):
                yield from buffers_from_arrow(f.node, child, f"{name}.{f.name}" if name else f.name)
        case String() | Bytes() | Rest() | Sequence(item=Scalar(type="char" | "uint8")):
            offsets = _offsets(array)
            yield offsets
            yield values_of(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
        case Sequence(item=item):
            offsets = _offsets(array)
            yield offsets
            first, last = int(offsets[0]), int(offsets[-1])
            yield from buffers_from_arrow(item, as_list(array).values.slice(first, last - first), name)
        case _:
            raise TypeError(f"{type(node).__name__} is never shown")


def _bytes(array: pa.Array[Any]) -> NDArray[np.uint8]:
    """Return the values of an array of numbers or times as bytes."""
    width = array.type.bit_width // 8
    return values_of(array.buffers()[1], np.uint8, len(array) * width, array.offset * width)


def _offsets(array: pa.Array[Any]) -> NDArray[np.int32]:
    data = array.buffers()[1]
    if data is None or not data.size:
        return np.zeros(1, np.int32)
    return values_of(data, np.int32, len(array) + 1, 4 * array.offset)


def _time_words(ns: NDArray[np.int64], signed: bool, name: str) -> NDArray[np.uint8]:
    seconds, rest = np.divmod(ns, 10**9)
    limits = np.iinfo(np.int32 if signed else np.uint32)
    if len(ns) and not limits.min <= int(seconds.min()) <= int(seconds.max()) <= limits.max:
        raise UsageError(f"{name}: times outside of what {limits.bits} bits of seconds can hold")
    return np.stack([seconds, rest], axis=1).astype("<i4" if signed else "<u4").view(np.uint8).ravel()


def _padded(array: pa.Array[Any], width: int, name: str) -> NDArray[np.uint8]:
    """Return texts as rows of *width* bytes, padded with NUL."""
    out = np.zeros((len(array), width), np.uint8)
    offsets = _offsets(array).astype(np.int64)
    length = np.diff(offsets)
    if len(length) and int(length.max()) > width:
        raise UsageError(f"{name}: a text of {int(length.max())} bytes where {width} fit")
    data = array.buffers()[2]
    if data is not None and data.size:
        inside = np.arange(width) < length[:, None]
        out[inside] = values_of(data, np.uint8)[offsets[0] : offsets[-1]]
    return out.ravel()
