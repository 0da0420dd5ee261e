"""The door between payload bytes and Arrow: types, fixed-size columns, and any Layout by the walker."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Seq

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.model.assemble import arrow_field, build_fields, list_array
from logreel.model.columns import numpy_column
from logreel.model.layout import FixedArray, Layout, Node, Sequence, Struct
from logreel.model.paths import steps_of

__all__ = ["assemble_fixed", "numpy_column", "pick", "schema_of"]

Steps = tuple[str | int, ...]


def schema_of(layout: Layout, fields: Iterable[str] | None = None, explode: bool = True) -> list[pa.Field]:
    """One Arrow field per visible top-level member, or per path in *fields*, in that order.

    A unit is in the field's metadata under ``unit``. *explode* False: where one message holds many records,
    every type is a list. Raises TopicError (a KeyError) for an unknown path.
    """
    if fields is None:
        found = [arrow_field(f) for f in layout.record.visible()]
    else:
        part = layout.project(fields := list(fields))
        found = [_picked_field(part, path) for path in fields]
    if explode or not isinstance(layout.root, Sequence):
        return found
    return [f.with_type(pa.list_(f.type)) for f in found]


def _picked_field(layout: Layout, path: str) -> pa.Field:
    steps = steps_of(layout, path)
    node: Node = layout.record
    unit = ""
    for name in steps:
        while isinstance(node, FixedArray | Sequence):
            node = node.item
        if isinstance(name, str) and isinstance(node, Struct):
            member = next(f for f in node.visible() if f.name == name)
            node, unit = member.node, member.unit
    top = next(f for f in layout.record.visible() if f.name == steps[0])
    empty = pa.array([], arrow_field(top).type)
    return pa.field(path, pick(empty, steps[1:]).type, metadata={"unit": unit} if unit else None)


def assemble_fixed(
    layout: Layout, columns: Seq[NDArray[np.uint8]], rows: int, fields: Iterable[str] | None = None
) -> list[pa.Array]:
    """Arrow arrays of *rows* fixed-size messages, as ``schema_of(layout, fields)`` describes them.

    columns  per leaf of ``layout.leaves`` (with *fields*: of ``layout.project(fields).leaves``) a contiguous
             uint8[rows * len(leaf.runs) * leaf.width], as the gather kernel fills it

    The arrays share the memory of *columns* except for bool, Time and text. Raises ValueError if a column has
    another size.
    """
    fields = None if fields is None else list(fields)
    part = layout if fields is None else layout.project(fields)
    for leaf, column in zip(part.leaves, columns, strict=True):
        if column.dtype != np.uint8 or column.shape != (rows * len(leaf.runs) * leaf.width,):
            raise ValueError(f"{'.'.join(leaf.path)}: {column.shape} bytes do not hold {rows} rows")
    arrays = build_fields(part.record, iter(columns), rows)
    return arrays if fields is None else pick_fields(part, arrays, fields)


def pick_fields(layout: Layout, arrays: list[pa.Array], fields: Iterable[str]) -> list[pa.Array]:
    """One array per path in *fields*, out of the top-level *arrays* of *layout*."""
    top = dict(zip((f.name for f in layout.record.visible()), arrays, strict=True))
    steps = [steps_of(layout, path) for path in fields]
    return [pick(top[str(first)], rest) for first, *rest in steps]


def pick(array: pa.Array, steps: Seq[str | int]) -> pa.Array:
    """What lies at *steps* below *array*; a name goes through lists, an index takes one item of each.

    An item beyond the end of a shorter list is null. Raises UsageError for an index into text or bytes.
    """
    if not steps:
        return array
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        return pick(_item(array, step), rest)
    if pa.types.is_struct(array.type):
        return pick(array.field(step), rest)
    child = pick(array.values, steps)
    if pa.types.is_fixed_size_list(array.type):
        kind = pa.list_(child.type, array.type.list_size)
        return pa.Array.from_buffers(kind, len(array), [None], 0, children=[child])
    return list_array(np.asarray(array.offsets), child)


def _item(array: pa.Array, index: int) -> pa.Array:
    if pa.types.is_fixed_size_list(array.type):
        at = np.arange(len(array), dtype=np.int64) * array.type.list_size + index
        return array.values.take(pa.array(at))
    if not pa.types.is_list(array.type):
        raise UsageError(f"there are no items to take by index in {array.type}")
    at = np.asarray(array.offsets)[:-1].astype(np.int64) + index
    beyond = np.asarray(pc.list_value_length(array)) <= index
    return array.values.take(pa.array(at, mask=beyond))
