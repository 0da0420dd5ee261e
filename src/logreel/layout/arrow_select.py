"""Selection of parts of Arrow arrays by field path."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logreel.errors import UsageError
from logreel.layout.arrow_arrays import as_fixed_list, as_list, as_struct, row_numbers
from logreel.layout.arrow_from_buffers import list_array


def arrow_select(array: pa.Array[Any], steps: Seq[str | int]) -> pa.Array[Any]:
    """Return the part of *array* at *steps*; a name goes through lists, an index takes one item of each.

    An item beyond the end of a shorter list is null. Raises UsageError for an index into text or bytes.
    """
    if not steps:
        return array
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        return arrow_select(_item(array, step), rest)
    if pa.types.is_struct(array.type):
        # Members of nulls are nulls.
        return arrow_select(
            pc.struct_field(array, [step]) if array.null_count else as_struct(array).field(step), rest
        )
    child = arrow_select(as_list(array).values, steps)
    if pa.types.is_fixed_size_list(array.type):
        kind = pa.list_(child.type, array.type.list_size)
        return pa.Array.from_buffers(kind, len(array), [None], 0, children=[child])
    return list_array(np.asarray(as_list(array).offsets), child)


def _item(array: pa.Array[Any], index: int) -> pa.Array[Any]:
    if pa.types.is_fixed_size_list(array.type):
        at = np.arange(len(array), dtype=np.int64) * array.type.list_size + index
        return as_fixed_list(array).values.take(row_numbers(at))
    if not pa.types.is_list(array.type):
        raise UsageError(f"there are no items to take by index in {array.type}")
    at = np.asarray(as_list(array).offsets)[:-1].astype(np.int64) + index
    beyond = np.asarray(pc.list_value_length(array)) <= index
    return as_list(array).values.take(row_numbers(at, beyond))
