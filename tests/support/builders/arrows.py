"""Arrow values in the notation of the oracle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from logreel.layout.layout import Layout


def plain(array: pa.Array) -> list[Any]:
    """Return the values of *array*; times as int ns, which ``datetime`` cannot hold."""
    return [value_of(value) for value in array]


def value_of(value: Any) -> Any:
    kind: pa.DataType = value.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return value.value
    if pa.types.is_struct(kind):
        return {kind.field(i).name: value_of(value[i]) for i in range(kind.num_fields)}
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return [value_of(item) for item in value.values]
    return value.as_py()


def same(a: Any, b: Any) -> bool:
    """Return whether two values are equal to the bit, NaN included."""
    return repr(a) == repr(b)


def rows_of(layout: Layout, arrays: list[pa.Array]) -> list[dict[str, Any]]:
    """Return one dict per row with the top-level members."""
    names = [f.name for f in layout.record.visible()]
    return [dict(zip(names, row, strict=True)) for row in zip(*map(plain, arrays), strict=True)]
