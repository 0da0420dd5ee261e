"""Updates of many messages at once, as columns of Arrow: fields taken over, renamed, scaled or added.

What cannot be done by columns raises NotColumnsError, also for single values that do not fit; messages are then
migrated one by one, which either works or gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logreel.layout.arrow_from_buffers import arrow_type
from logreel.layout.nodes import Node, Struct
from logreel.ops.migrate.rule import Columns, ColumnUpdate, Implicit, NestedColumns, NotColumnsError
from logreel.ops.migrate.types import REAL_NUMBERS, FieldType, TypeVersion

#: Whole numbers of at most 32 bits, whose products with factors below 2**31 fit 64 bits.
_SMALL = {"int8", "uint8", "int16", "uint16", "int32", "uint32"}
_FACTOR = 1 << 30


def node_of(version: TypeVersion, path: Sequence[str]) -> Node:
    """Return the node of a field below structs that are no arrays."""
    node: Node = version.layout.root
    for name in path:
        if not isinstance(node, Struct):
            raise NotColumnsError
        node = next(f.node for f in node.visible() if f.name == name)
    return node


def constant_column(value: Any, node: Node, count: int) -> Any:
    """Return *count* times the same value; *node*: of the field, with texts as text."""
    try:
        single: Any = pa.array([value], arrow_type(node))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError):
        raise NotColumnsError from None
    return single.take(pa.array(np.zeros(count, np.int64)))


def implicit_columns(rule_update: Implicit, nested: NestedColumns) -> ColumnUpdate:
    """Return the update of columns without a rule."""
    changes: dict[str, Callable[[Any], Any]] = {}
    for name, before, field_type in rule_update.nested:
        if before.nested is None or field_type.nested is None:
            raise NotColumnsError
        update = nested.convert_columns(before.nested, field_type.nested)
        if update is not None:
            changes[name] = part_update(field_type, update)
    names = list(rule_update.new.fields)

    def apply(columns: Columns, count: int) -> Columns:
        return {name: changes[name](columns[name]) if name in changes else columns[name] for name in names}

    return apply


def part_update(field_type: FieldType, update: ColumnUpdate) -> Callable[[Any], Any]:
    """Return the update of a column of parts of messages, or of arrays of these."""

    def of_structs(array: Any) -> Any:
        names = [array.type.field(n).name for n in range(array.type.num_fields)]
        made = update(dict(zip(names, array.flatten(), strict=True)), len(array))
        if not made:
            raise NotColumnsError
        return pa.StructArray.from_arrays(list(made.values()), list(made))

    return over_items(field_type, of_structs)


def over_items(field_type: FieldType, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return *change* for columns of *field_type*: of its values, or of the items of its arrays."""
    if not field_type.array:
        return change
    if field_type.count is not None:
        count = field_type.count
        return lambda array: pa.FixedSizeListArray.from_arrays(change(array.flatten()), count)

    def of_lists(array: Any) -> Any:
        offsets = array.offsets
        first = offsets[0].as_py() if len(offsets) else 0
        if first or array.offset:
            raise NotColumnsError
        return pa.ListArray.from_arrays(offsets, change(array.flatten()))

    return of_lists


def member(columns: Columns, path: Sequence[str]) -> Any:
    """Return the column at *path*, below structs that are no arrays."""
    column = columns[path[0]]
    for name in path[1:]:
        if not pa.types.is_struct(column.type):
            raise NotColumnsError
        column = column.flatten()[column.type.get_field_index(name)]
    return column


def number_update(
    old: FieldType, new: FieldType, scale: float, offset: float, clamp: bool, low: int, high: int
) -> Callable[[Any], Any]:
    """Return the update of a column of numbers; *low*, *high*: range of a new whole number."""
    if "bool" in (old.base, new.base) or new.is_bytes != old.is_bytes or old.is_bytes:
        raise NotColumnsError
    is_whole, was_whole = new.base not in REAL_NUMBERS, old.base not in REAL_NUMBERS
    exact = was_whole and isinstance(scale, int) and isinstance(offset, int)
    changes = scale != 1 or offset != 0
    if (exact and changes and (old.base not in _SMALL or max(abs(scale), abs(offset)) > _FACTOR)) or (
        is_whole and not exact and "64" in new.base
    ):
        raise NotColumnsError
    target = np.dtype(new.base)

    def change(array: Any) -> Any:
        values: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        if changes:
            # Numbers are scaled as Python does: as whole ones, or as real ones of 64 bits.
            values = values.astype(np.int64 if exact else np.float64) * scale + offset
        if is_whole:
            return pa.array(_whole(values, clamp, low, high).astype(target))
        if not np.isfinite(values).all():
            return pa.array(values.astype(target))
        with np.errstate(over="ignore"):
            made = values.astype(target)
        if not np.isfinite(made).all():
            raise NotColumnsError
        return pa.array(made)

    return over_items(new, change)


def _whole(values: NDArray[Any], clamp: bool, low: int, high: int) -> NDArray[Any]:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise NotColumnsError
        values = np.rint(values)
    if clamp:
        clipped: NDArray[Any] = np.clip(values, max(low, _least(values)), min(high, _most(values)))
        return clipped
    if len(values) and not (low <= values.min().item() and values.max().item() <= high):
        raise NotColumnsError
    return values


def _least(values: NDArray[Any]) -> float:
    return np.finfo(values.dtype).min if values.dtype.kind == "f" else int(np.iinfo(values.dtype).min)


def _most(values: NDArray[Any]) -> float:
    return np.finfo(values.dtype).max if values.dtype.kind == "f" else int(np.iinfo(values.dtype).max)


def is_struct_path(version: TypeVersion, path: Sequence[str]) -> bool:
    """Return whether *path* is below structs that are no arrays."""
    at: TypeVersion | None = version
    for n, name in enumerate(path):
        field_type = None if at is None else at.fields.get(name)
        if field_type is None or (field_type.array and n + 1 < len(path)):
            return False
        at = field_type.nested
    return True
