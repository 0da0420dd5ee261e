"""Columns of payloads: of fixed-size Layouts, and of any Layout by the walker, as Arrow arrays or in NumPy arrays."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from collections.abc import Sequence as Seq
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.io.arrays import I64, repeated
from logreel.layout.layout import Layout
from logreel.layout.nodes import MAX_SIZE, Sequence
from logreel.layout.numpy_columns import Buffers
from logreel.layout.program import LEFTOVER, TOO_MANY, Crowded, batches, fit_together, unsound, walk

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from logreel.layout.program import Program

TOO_SHORT = "the message ends too early for its definition"
CROWDED = "the message claims more items without bytes than it has bytes, and 65536 more"
HUGE = "the message is larger than 2 GiB"


def schema_of(
    layout: Layout, fields: Iterable[str] | None = None, explode: bool = True
) -> list[pa.Field[Any]]:
    """Return one Arrow field per visible top-level member, or per path in *fields*; see Projection.arrow_fields."""
    from logreel.layout.projection import Projection

    return Projection(layout, fields).arrow_fields(explode)


class SelectedFields(Protocol):
    """The fields of a Layout that are read: Arrow arrays in a Projection, Columns in NumpyFields."""

    @property
    def part(self) -> Layout:
        """The Layout with only these fields visible: what kernels and PayloadDecoders read."""
        ...

    @property
    def program(self) -> Program:
        """The Program that walks one message and copies these fields."""
        ...

    def build(self, buffers: Buffers, rows: int) -> list[Any]:
        """Return the next *rows* values of every visible member of *part* from column buffers."""
        ...

    def select(self, columns: Seq[Any]) -> list[Any]:
        """Return one column per field, from one per visible member of *part* as a PayloadDecoder gives it."""
        ...

    def lists(self, offsets: NDArray[Any], column: Any) -> Any:
        """Return lists of the values of *column*, cut at *offsets*."""
        ...

    def take(self, column: Any, rows: I64, absent: NDArray[np.bool_]) -> Any:
        """Return the values at *rows*, none where *absent* is True."""
        ...

    def joined(self, parts: Seq[Any]) -> Any:
        """Return columns of one field, one after another."""
        ...


def assemble_fixed(projection: SelectedFields, columns: Seq[NDArray[np.uint8]], rows: int) -> list[Any]:
    """Return the columns of *rows* fixed-size messages, as ``projection.arrow_fields()`` describes them.

    columns  per leaf of ``projection.part.leaves`` a contiguous uint8[rows * len(leaf.runs) * leaf.width], as the
             gather kernel fills it

    They share the memory of *columns* except for bool, Time and text. Raises ValueError if a column has
    another size.
    """
    part = projection.part
    for leaf, column in zip(part.leaves, columns, strict=True):
        if column.dtype != np.uint8 or column.shape != (rows * len(leaf.runs) * leaf.width,):
            raise ValueError(f"{'.'.join(leaf.path)}: {column.shape} bytes do not hold {rows} rows")
    return projection.select(projection.build(iter(columns), rows))


@dataclass(frozen=True, slots=True)
class Decoded:
    """Messages of any Layout as columns.

    arrays    one per column: Arrow arrays as ``Projection.arrow_fields`` describes them, a ChunkedArray where one Array
              cannot hold them; or Columns; or ``PlainValues``. PayloadDecoders may return any of them
    kept      int64[k]: the messages that decoded, or None if all did
    bad       (message, reason) of every message that did not
    leftover  int64[l]: messages that decoded, with bytes left over
    records   int64[k]: number of records of each message kept, or None where rows are messages
    """

    arrays: Seq[Any]
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
    layout: Layout | SelectedFields,
    source: NDArray[np.uint8],
    start: I64,
    stop: I64,
    explode: bool = True,
    records: I64 | None = None,
) -> Decoded:
    """Decode messages of any Layout, of fixed size too, into columns.

    layout   what to read: NumpyFields for Columns, a Projection for Arrow arrays, or a Layout for arrays of all fields;
             other fields are walked over, not copied
    source   uint8[b]   the bytes that contain the messages
    start    int64[n]   message i is source[start[i]:stop[i]]
    stop     int64[n]
    explode  False: where one message contains many records, one row of lists per message
    records  see ``walk``

    Never raises for damaged payloads: messages that end too early are left out and listed in ``bad``.
    """
    projection = _all_fields(layout) if isinstance(layout, Layout) else layout
    program = projection.program
    start = np.ascontiguousarray(start, np.int64)
    stop = np.ascontiguousarray(stop, np.int64)
    status = np.zeros(len(start), np.uint8)
    pieces, found, huge = [], [], set[int]()
    todo = deque([slice(0, len(start))])
    if not fit_together(start, stop):
        is_huge = stop - start > MAX_SIZE
        # The kernel rejects messages that end before they start as short.
        stop = np.where(is_huge, np.int64(-1), stop)
        todo, huge = deque(batches(start, stop)), {*np.flatnonzero(is_huge).tolist()}
    while todo:
        rows = todo.popleft()
        counts_known = None if records is None else records[rows]
        try:
            buffers, good = walk(program, source, start[rows], stop[rows], status[rows], None, counts_known)
        except Crowded:
            middle = (rows.start + rows.stop) // 2
            todo.extendleft((slice(middle, rows.stop), slice(rows.start, middle)))
            continue
        arrays, counts = _piece(projection, iter(buffers), good, explode)
        pieces.append(arrays)
        found.append(counts)
    many = isinstance(projection.part.root, Sequence) and explode
    bad = np.flatnonzero(unsound(status))
    why = {TOO_MANY: CROWDED}
    whole = [*pieces[0]]
    if len(pieces) > 1:
        whole = [projection.joined(column) for column in zip(*pieces, strict=True)]
    return Decoded(
        whole,
        np.flatnonzero(~unsound(status)) if len(bad) else None,
        [(row, HUGE if row in huge else why.get(int(status[row]), TOO_SHORT)) for row in bad.tolist()],
        np.flatnonzero(status == LEFTOVER),
        np.concatenate(found) if many else None,
    )


def _all_fields(layout: Layout) -> SelectedFields:
    from logreel.layout.projection import Projection

    return Projection(layout)


def select_decoded(projection: SelectedFields, got: Decoded, explode: bool) -> Decoded:
    """Return *got*, which has one flat column per visible member of ``projection.part``, with one per field.

    explode  False: where one message contains many records, one row of lists per message
    """
    arrays = projection.select(got.arrays)
    if explode or got.records is None:
        return replace(got, arrays=arrays)
    offsets = np.concatenate([[0], np.cumsum(got.records)]).astype(np.int32)
    return replace(got, arrays=[projection.lists(offsets, array) for array in arrays], records=None)


def _piece(
    projection: SelectedFields, buffers: Buffers, messages: int, explode: bool
) -> tuple[list[Any], I64]:
    """Return the columns of one batch, and the number of records of each of its messages."""
    part = projection.part
    many = isinstance(part.root, Sequence)
    offsets = next(buffers) if many else np.arange(1, dtype=np.int32)
    arrays = projection.select(projection.build(buffers, int(offsets[-1]) if many else messages))
    if many and not explode:
        arrays = [projection.lists(offsets, array) for array in arrays]
    return arrays, np.diff(offsets).astype(np.int64)
