"""Selected fields of a Layout, resolved once for all messages that are read."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import as_fixed_list, as_list, as_struct, row_numbers
from logreel.layout.arrow_from_buffers import arrow_field, arrow_of, build_fields, list_array
from logreel.layout.nodes import Sequence
from logreel.layout.numpy_columns import Buffers, FieldsOfLayout, unit_at

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Projection(FieldsOfLayout):
    """The fields of a Layout that are read, and the Arrow columns that they become."""

    @cached_property
    def _records_fields(self) -> list[pa.Field[Any]]:
        if self.fields is None:
            return [arrow_field(f) for f in self.layout.record.visible()]
        return [
            self._field(*field_and_steps) for field_and_steps in zip(self.fields, self._steps, strict=True)
        ]

    def arrow_fields(self, explode: bool = True) -> list[pa.Field[Any]]:
        """One Arrow field per column; a unit is in its metadata under ``unit``.

        explode  False: where one message holds many records, every type is a list
        """
        if explode or not isinstance(self.layout.root, Sequence):
            return self._records_fields
        return [f.with_type(pa.list_(f.type)) for f in self._records_fields]

    def _field(self, path: str, steps: Seq[str | int]) -> pa.Field[Any]:
        record = self.part.record
        top = next(f for f in record.visible() if f.name == steps[0])
        # pyarrow imports pandas, if it is installed, to convert a Python list.
        empty = pa.nulls(0, arrow_field(top).type)
        arrow_type = arrow_select(empty, steps[1:]).type
        unit = unit_at(record, steps)
        return pa.field(path, arrow_type, metadata={"unit": unit} if unit else None)

    def build(self, buffers: Buffers, rows: int) -> list[Any]:
        """See SelectedFields."""
        return build_fields(self.part.record, buffers, rows)

    def select(self, columns: Seq[Any]) -> list[Any]:
        """Return one array per column, from one array or Column per visible member of ``part``."""
        members = list(self.part.record.visible())
        arrays = [arrow_of(f.node, column) for f, column in zip(members, columns, strict=True)]
        if self.fields is None:
            return arrays
        top = dict(zip((f.name for f in members), arrays, strict=True))
        return [arrow_select(top[str(first)], rest) for first, *rest in self._steps]

    def lists(self, offsets: NDArray[Any], column: Any) -> Any:
        """See SelectedFields."""
        return list_array(offsets, column)

    def take(self, column: Any, rows: I64, absent: NDArray[np.bool_]) -> Any:
        """See SelectedFields."""
        return column.take(row_numbers(rows, absent))

    def joined(self, parts: Seq[Any]) -> Any:
        """See SelectedFields."""
        return pa.chunked_array(list(parts))


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
        return arrow_select(_member(array, step), rest)
    child = arrow_select(as_list(array).values, steps)
    if pa.types.is_fixed_size_list(array.type):
        list_type = pa.list_(child.type, array.type.list_size)
        return pa.Array.from_buffers(list_type, len(array), [None], 0, children=[child])
    return list_array(np.asarray(as_list(array).offsets), child)


def _member(array: pa.Array[Any], name: str) -> pa.Array[Any]:
    if not array.null_count:
        return as_struct(array).field(name)
    # Members of nulls are nulls. Importing it takes as long as a small log.
    import pyarrow.compute as pc

    member: pa.Array[Any] = pc.struct_field(array, [name])
    return member


def _item(array: pa.Array[Any], index: int) -> pa.Array[Any]:
    if pa.types.is_fixed_size_list(array.type):
        at = np.arange(len(array), dtype=np.int64) * array.type.list_size + index
        return as_fixed_list(array).values.take(row_numbers(at))
    if not pa.types.is_list(array.type):
        raise UsageError(f"there are no items to take by index in {array.type}")
    at = np.asarray(as_list(array).offsets)[:-1].astype(np.int64) + index
    beyond = np.diff(as_list(array).offsets) <= index
    if array.null_count:
        beyond |= np.asarray(array.is_null())
    return as_list(array).values.take(row_numbers(at, beyond))
