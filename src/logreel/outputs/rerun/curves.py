"""Numeric fields of any channel as curves of Rerun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.layout.arrow_arrays import as_fixed_list, as_struct
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct
from logreel.lenses import F64
from logreel.lenses.base import times_of
from logreel.log.tables import DENSE, as_numpy, batches
from logreel.ops.query.record_batches import rows_per_batch
from logreel.outputs.rerun.scene import Scene

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel

#: Maximum length of arrays that become curves.
_MOST = 64


def number_fields(ch: Channel) -> list[str]:
    """Return the fields of *ch* with numbers, also in structs and arrays of fixed size."""
    return [f.name for f in ch.layout.record.visible() if _has_numbers(f.node)]


def show_numbers(scene: Scene, ch: Channel, fields: list[str]) -> int:
    """Send the numbers of these *fields*; return the number of rows."""
    import rerun

    done = 0
    for batch in batches(ch, rows_per_batch(ch), fields, scene.job.start, scene.job.end, DENSE):
        times = times_of(batch)
        for name, column in zip(fields, batch.columns[1:], strict=True):
            for path, values in _curves((name,), column):
                scene.send(scene.path(ch, *path), times, done, rerun.Scalars.columns(scalars=values))
        done += len(batch)
        scene.job.advance(len(batch))
        scene.flush()
    return done


def _has_numbers(node: Node) -> bool:
    if isinstance(node, Struct):
        return any(_has_numbers(f.node) for f in node.visible())
    if isinstance(node, FixedArray):
        return node.count <= _MOST and _has_numbers(node.item)
    return isinstance(node, Scalar) and node.type != "char"


def _curves(path: tuple[str, ...], array: pa.Array[Any]) -> Iterator[tuple[tuple[str, ...], F64]]:
    """Yield path and values of all numbers in *array*: float64[n] or [n, k]."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_struct(kind):
        for i, child in enumerate(as_struct(array).flatten()):
            yield from _curves((*path, kind.field(i).name), child)
    elif pa.types.is_fixed_size_list(kind) and kind.list_size <= _MOST:
        if _is_number(kind.value_type):
            yield path, _values(as_fixed_list(array).flatten()).reshape(len(array), kind.list_size)
        else:
            for i in range(kind.list_size):
                yield from _curves((*path[:-1], f"{path[-1]}[{i}]"), pc.list_element(array, i))
    elif _is_number(kind):
        yield path, _values(array)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _values(array: pa.Array[Any]) -> F64:
    # Signalling NaNs cause warnings.
    with np.errstate(invalid="ignore"):
        return as_numpy(array).astype(np.float64)
