"""Arrow arrays of payloads: types, columns of fixed-size Layouts, and of any Layout by the walker."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from logreel.io.parallel import repeated
from logreel.layout.arrow_from_buffers import Buffers, arrow_field, build_fields, list_array
from logreel.layout.arrow_select import arrow_select, arrow_select_fields
from logreel.layout.layout import Layout
from logreel.layout.nodes import MAX_SIZE, FixedArray, Node, Sequence, Struct
from logreel.layout.paths import steps_of
from logreel.layout.program import compile_layout
from logreel.layout.walker import LEFTOVER, TOO_MANY, Crowded, batches, unsound, walk

I64 = NDArray[np.int64]

TOO_SHORT = "the message ends too early for its definition"
CROWDED = "the message claims more items without bytes than it has bytes, and 65536 more"
HUGE = "the message is larger than 2 GiB"


def schema_of(layout: Layout, fields: Iterable[str] | None = None, explode: bool = True) -> list[pa.Field]:
    """Return one Arrow field per visible top-level member, or per path in *fields*, in that order.

    A unit is stored in the metadata of the field as ``unit``. *explode* False: where one message contains many
    records, every type is a list. Raises NotFoundError (a KeyError) for an unknown path.
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
    steps = steps_of(layout.record, path)
    node: Node = layout.record
    unit = ""
    for name in steps:
        while isinstance(node, FixedArray | Sequence):
            node = node.item
        if isinstance(name, str) and isinstance(node, Struct):
            member = next(f for f in node.visible() if f.name == name)
            node, unit = member.node, member.unit
    top = next(f for f in layout.record.visible() if f.name == steps[0])
    # An array from a Python list would import pandas where it is installed.
    empty = pa.nulls(0, arrow_field(top).type)
    return pa.field(path, arrow_select(empty, steps[1:]).type, metadata={"unit": unit} if unit else None)


def assemble_fixed(
    layout: Layout, columns: Seq[NDArray[np.uint8]], rows: int, fields: Iterable[str] | None = None
) -> list[pa.Array]:
    """Return Arrow arrays of *rows* fixed-size messages, as ``schema_of(layout, fields)`` describes them.

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
    return arrays if fields is None else arrow_select_fields(part, arrays, fields)


@dataclass(frozen=True, slots=True)
class Decoded:
    """Messages of any Layout as Arrow arrays.

    arrays    one per field, as ``schema_of`` describes them; a ChunkedArray where one Array cannot hold them
    kept      int64[k]: the messages that decoded, or None if all did
    bad       (message, reason) of every message that did not
    leftover  int64[l]: messages that decoded, with bytes left over
    records   int64[k]: number of records of each message kept, or None where rows are messages
    """

    arrays: list[pa.Array | pa.ChunkedArray]
    kept: I64 | None
    bad: list[tuple[int, str]]
    leftover: I64
    records: I64 | None

    def times(self, times: I64) -> I64:
        """Return the time of every row, given int64[n] times of all messages."""
        kept = times if self.kept is None else times[self.kept]
        if self.records is None or (self.records == 1).all():
            return kept
        return repeated(kept, self.records)


def decode_variable(
    layout: Layout,
    source: NDArray[np.uint8],
    start: I64,
    stop: I64,
    fields: Iterable[str] | None = None,
    explode: bool = True,
    records: I64 | None = None,
) -> Decoded:
    """Return messages as Arrow arrays; works for Layouts of fixed size too.

    source   uint8[b]   the bytes that contain the messages
    start    int64[n]   message i is source[start[i]:stop[i]]
    stop     int64[n]
    fields   paths of leaves or groups, None: all; other fields are skipped, not copied
    explode  False: where one message contains many records, one row of lists per message
    records  see ``walk``

    Never raises for damaged payloads: messages that end too early are left out and listed in ``bad``.
    Raises NotFoundError (a KeyError) for an unknown path.
    """
    fields = None if fields is None else list(fields)
    part = layout if fields is None else layout.project(fields)
    program = compile_layout(part)
    start = np.ascontiguousarray(start, np.int64)
    huge = np.asarray(stop) - start > MAX_SIZE
    # The kernel rejects messages that end before they start as short.
    stop = np.where(huge, np.int64(-1), stop)
    status = np.zeros(len(start), np.uint8)
    pieces, found = [], []
    todo = deque(list(batches(start, stop)) or [slice(0)])
    while todo:
        rows = todo.popleft()
        told = None if records is None else records[rows]
        try:
            buffers, good = walk(program, source, start[rows], stop[rows], status[rows], None, told)
        except Crowded:
            middle = (rows.start + rows.stop) // 2
            todo.extendleft((slice(middle, rows.stop), slice(rows.start, middle)))
            continue
        arrays, counts = _piece(part, iter(buffers), good, fields, explode)
        pieces.append(arrays)
        found.append(counts)
    many = isinstance(layout.root, Sequence) and explode
    bad = np.flatnonzero(unsound(status))
    why = {TOO_MANY: CROWDED}
    whole = pieces[0]
    if len(pieces) > 1:
        whole = [pa.chunked_array(list(column)) for column in zip(*pieces, strict=True)]
    return Decoded(
        whole,
        np.flatnonzero(~unsound(status)) if len(bad) else None,
        [(row, HUGE if huge[row] else why.get(int(status[row]), TOO_SHORT)) for row in bad.tolist()],
        np.flatnonzero(status == LEFTOVER),
        np.concatenate(found) if many else None,
    )


def as_asked(layout: Layout, got: Decoded, fields: list[str] | None, explode: bool) -> Decoded:
    """Return *got*, one flat array per visible member of *layout*, with only *fields* and as *explode* says."""
    arrays = got.arrays
    if fields is not None:
        arrays = arrow_select_fields(layout, arrays, fields)
    if explode or got.records is None:
        return replace(got, arrays=arrays)
    offsets = np.concatenate([[0], np.cumsum(got.records)]).astype(np.int32)
    return replace(got, arrays=[list_array(offsets, array) for array in arrays], records=None)


def _piece(
    layout: Layout, buffers: Buffers, messages: int, fields: list[str] | None, explode: bool
) -> tuple[list[pa.Array], I64]:
    """Return the arrays of one batch, and the number of records of each of its messages."""
    many = isinstance(layout.root, Sequence)
    offsets = next(buffers) if many else np.arange(1, dtype=np.int32)
    arrays = build_fields(layout.record, buffers, int(offsets[-1]) if many else messages)
    if fields is not None:
        arrays = arrow_select_fields(layout, arrays, fields)
    if many and not explode:
        arrays = [list_array(offsets, array) for array in arrays]
    return arrays, np.diff(offsets).astype(np.int64)
