"""Selection of the messages for which a condition on times can be true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from logreel.io.arrays import I64
from logreel.ops.query.filter_rows import filter_rows
from logreel.ops.query.intervals import merge_intervals

Rows = slice | I64
#: Function that returns an expression that holds for all rows with times between two numbers, both included.
Known = Callable[[int, int], pc.Expression]

#: Parts that a range of rows is divided into; parts at an edge are divided again.
PARTS = 16


def referenced_columns(condition: pc.Expression, schema: pa.Schema, given: Iterable[str]) -> list[str]:
    """Return the columns of *schema* that *condition* uses and that are not in *given*."""
    empty = schema.empty_table()
    given = set(given)

    def enough(names: set[str]) -> bool:
        try:
            filter_rows(empty.select([name for name in schema.names if name in names]), condition)
        except pa.ArrowInvalid:
            return False
        return True

    others = [name for name in schema.names if name not in given]
    if enough(given):
        return []
    # Each test takes a time that grows with the columns, so halves are tested before single columns.
    everything, used, waiting = {*schema.names}, [], [others]
    if not enough(everything):
        return others
    while waiting:
        some = waiting.pop()
        if enough(everything - {*some}):
            continue
        if len(some) == 1:
            used += some
        else:
            half = len(some) // 2
            waiting += [some[half:], some[:half]]
    return used


def matching_rows(condition: pc.Expression, schema: pa.Schema, times: I64, known: Known, rows: Rows) -> Rows:
    """Return those of *rows* for which *condition* can be true: all that match, and few that do not.

    Arrow skips files of a dataset if a condition excludes their known values. Here each "file" is a range of messages,
    and is never opened.

    schema  the columns that the condition can use
    times   int64[n] of all messages, in any order
    """
    picked = times[rows]
    order = None if (picked[1:] >= picked[:-1]).all() else np.argsort(picked, kind="stable")
    ascending = picked if order is None else picked[order]
    found = list(_matching_ranges(condition, schema, ascending, known, 0, len(ascending)))
    if order is None and len(found) == 1 and isinstance(rows, slice):
        first = rows.indices(len(times))[0]
        return slice(first + found[0][0], first + found[0][1])
    each = np.concatenate([np.zeros(0, np.int64), *(np.arange(lo, hi) for lo, hi in found)])
    chosen = each if order is None else np.sort(order[each])
    return chosen + rows.indices(len(times))[0] if isinstance(rows, slice) else rows[chosen]


def _matching_ranges(
    condition: pc.Expression, schema: pa.Schema, times: I64, known: Known, first: int, stop: int
) -> Iterator[tuple[int, int]]:
    """Yield the ranges of ascending *times* from *first* to *stop* for which *condition* can be true, in order."""
    cuts = np.unique(np.linspace(first, stop, PARTS + 1).astype(np.int64))
    low, high = times[cuts[:-1]].tolist(), times[cuts[1:] - 1].tolist()
    kept = possible_parts(condition, schema, [known(a, b) for a, b in zip(low, high, strict=True)])
    for a, b in merge_intervals([(i, i + 1) for i in kept]):
        lo, hi = int(cuts[a]), int(cuts[b])
        if stop - first <= PARTS:
            yield lo, hi
            continue
        # Only parts at an edge can match in part.
        inner, outer = int(cuts[a + 1]), int(cuts[b - 1])
        ranges = [*_matching_ranges(condition, schema, times, known, lo, inner)]
        if inner < hi:
            ranges += [(inner, outer)] if inner < outer else []
            ranges += _matching_ranges(condition, schema, times, known, outer, hi)
        yield from merge_intervals(ranges)


def possible_parts(condition: pc.Expression, schema: pa.Schema, known: list[pc.Expression]) -> list[int]:
    """Return the indices in *known* for which *condition* can be true."""
    nowhere, form = pyarrow.fs.LocalFileSystem(), ds.IpcFileFormat()
    parts = [
        form.make_fragment(str(i), filesystem=nowhere, partition_expression=one)
        for i, one in enumerate(known)
    ]
    all_parts = ds.FileSystemDataset(parts, schema, form)
    return sorted(int(part.path) for part in all_parts.get_fragments(filter=condition))
