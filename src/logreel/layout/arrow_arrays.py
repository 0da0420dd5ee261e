"""Typed access to nested Arrow arrays, their types and their memory.

Arrow's annotations give ``Array`` to an array of any type: these functions name the class where the type is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Array = pa.Array[Any]
    Column = pa.Array[Any] | pa.ChunkedArray[Any]

S = TypeVar("S", bound=np.generic)


def as_list(array: Array) -> pa.ListArray[Any]:
    """Return *array*, which has lists of any length."""
    return cast("pa.ListArray[Any]", array)


def as_fixed_list(array: Array) -> pa.FixedSizeListArray[Any, Any]:
    """Return *array*, which has lists of one length."""
    return cast("pa.FixedSizeListArray[Any, Any]", array)


def as_struct(array: Array) -> pa.StructArray:
    """Return *array*, which has structs."""
    return cast("pa.StructArray", array)


def item_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the items of a list type."""
    return cast("pa.DataType", cast("pa.ListType[Any]", kind).value_type)


def buffer_of(values: NDArray[Any]) -> pa.Buffer:
    """Return the memory of a contiguous array as an Arrow buffer, without a copy."""
    import pyarrow as pa

    return pa.py_buffer(cast("Any", values))


def values_of(
    buffer: pa.Buffer | None, dtype: type[S] | np.dtype[S], count: int = -1, offset: int = 0
) -> NDArray[S]:
    """Return *count* values of an Arrow buffer from byte *offset* on, without a copy; -1: all. None has none."""
    if buffer is None or not buffer.size:
        return np.zeros(0, dtype)
    return np.frombuffer(cast("bytes", buffer), dtype, count, offset)


def row_numbers(rows: NDArray[np.integer[Any]], absent: NDArray[np.bool_] | None = None) -> pa.Int64Array:
    """Return row numbers for ``take`` as int64; null where *absent* is True."""
    import pyarrow as pa

    return pa.array(rows, pa.int64(), mask=absent)


def item_numbers(count: int) -> pa.Array[Any]:
    """Return the numbers of *count* items for ``list_element``; to convert one of Python, pyarrow imports pandas."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.int32(), count, [None, buffer_of(np.arange(count, dtype=np.int32))])


def empty_table(schema: pa.Schema) -> pa.Table:
    """Return a table without rows; to make that of ``Schema.empty_table``, pyarrow imports pandas."""
    import pyarrow as pa

    return pa.Table.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)


def text_metadata(metadata: Mapping[str, str]) -> dict[bytes | str, bytes | str]:
    """Return texts as metadata of a schema or field; what is no valid Unicode, as in names of files, is escaped."""
    return {key: value.encode("utf-8", "backslashreplace") for key, value in metadata.items()}


def metadata_of(one: pa.Schema | pa.Field[Any]) -> dict[bytes | str, bytes | str]:
    """Return the metadata of a schema or field, empty if it has none."""
    return cast("dict[bytes | str, bytes | str]", one.metadata or {})


def fixed_list_type(item: pa.DataType | pa.Field[Any], length: int) -> pa.DataType:
    """Return the type of lists of *length* items."""
    import pyarrow as pa

    return cast("pa.DataType", pa.list_(item, length))
