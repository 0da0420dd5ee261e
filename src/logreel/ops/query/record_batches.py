"""Channels as record batches of bounded size, and any batch as flat columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from logreel.log.tables import Shape, batches, distinct, own_paths
from logreel.ops.json_values import plain

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel

#: A batch holds at most this many messages and about this many payload bytes.
ROWS, BYTES = 65536, 16 << 20
#: A batch of a few fields holds at most this many messages.
MOST = 1 << 20
#: An array of more values than this is one column of JSON text, not a column per value.
MAX_COLUMNS = 1024


def rows_per_piece(ch: Channel) -> int:
    """Messages that a batch of *ch* may hold, so that memory stays bounded however large a message is."""
    return max(1, min(ROWS, BYTES // max(1, ch.bytes // max(1, len(ch)))))


def pieces(
    ch: Channel,
    start: int | None = None,
    end: int | None = None,
    utc: bool = False,
    interpolate: bool = False,
    fields: list[str] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The table of *ch* in batches of bounded size: messages with start <= time < end (ns), in file order.

    utc, interpolate  as for ``Channel.to_arrow``
    fields            field paths; None: all
    """
    yield from batches(
        ch, rows_per_piece(ch), own_paths(ch, fields), start, end, Shape(True, utc, interpolate)
    )


def width_of(kind: pa.DataType) -> int:
    """How many columns a value of *kind* becomes when flattened."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return sum(width_of(kind.field(i).type) for i in range(kind.num_fields))
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * width_of(kind.value_type)
    return 1


def flatten(batch: pa.RecordBatch) -> tuple[list[str], list[pa.Array]]:
    """Names and arrays of *batch* with nested fields as columns of their own: ``q[0]``, ``esc[0].rpm``.

    Arrays whose length the data decides, or of more than MAX_COLUMNS values, stay one column of JSON text;
    bytes become base64 text. Every column is a plain Arrow array.
    """
    names: list[str] = []
    arrays: list[pa.Array] = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        for name, column in _flat(field.name, array):
            names.append(name)
            arrays.append(column)
    return distinct(names), arrays


def _flat(name: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_struct(kind):
        for i, child in enumerate(array.flatten()):
            yield from _flat(f"{name}.{kind.field(i).name}", child)
    elif pa.types.is_fixed_size_list(kind) and width_of(kind) <= MAX_COLUMNS:
        for i in range(kind.list_size):
            yield from _flat(f"{name}[{i}]", pc.list_element(array, i))
    elif pa.types.is_nested(kind):
        yield name, pa.array([None if v is None else json_text(v) for v in array.to_pylist()], pa.string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        yield name, pa.array([plain(v) for v in array.to_pylist()], pa.string())
    else:
        yield name, array


def json_text(value: Any) -> str:
    """*value* as one line of JSON, safe for any terminal: bytes as base64, NaN and infinities as strings."""
    return json.dumps(plain(value), separators=(", ", ": "), allow_nan=False)
