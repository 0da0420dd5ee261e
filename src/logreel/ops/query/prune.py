"""Which messages a condition on their times can be true for, whatever else it asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
from numpy.typing import NDArray

from logreel.ops.query.spans import joined

I64 = NDArray[np.int64]
Rows = slice | I64
#: What is known of the rows whose times lie between two numbers, both included.
Known = Callable[[int, int], pc.Expression]

#: A range of rows is looked at in so many parts, and those at its edges again.
PARTS = 16


def columns_of(condition: pc.Expression, schema: pa.Schema, given: Iterable[str]) -> list[str]:
    """The columns of *schema* that *condition* asks for and that *given* does not have."""
    empty = schema.empty_table()
    given = set(given)

    def enough(names: set[str]) -> bool:
        try:
            empty.select([name for name in schema.names if name in names]).filter(condition)
        except pa.ArrowInvalid:
            return False
        return True

    if enough(given):
        return []
    return [name for name in schema.names if name not in given and not enough({*schema.names} - {name})]


def rows_for(condition: pc.Expression, schema: pa.Schema, times: I64, known: Known, rows: Rows) -> Rows:
    """Those of *rows* that *condition* can be true for, as far as *known* tells; few too many, none too few.

    Arrow leaves out files of a data set that a condition excludes, by what is known of each. Here the files are
    stretches of messages, which are never opened.

    schema  the columns that the condition can ask for
    times   int64[n] of all messages, in any order
    """
    picked = times[rows]
    order = None if (picked[1:] >= picked[:-1]).all() else np.argsort(picked, kind="stable")
    ascending = picked if order is None else picked[order]
    found = list(_alive(condition, schema, ascending, known, 0, len(ascending)))
    if order is None and len(found) == 1 and isinstance(rows, slice):
        first = rows.indices(len(times))[0]
        return slice(first + found[0][0], first + found[0][1])
    each = np.concatenate([np.zeros(0, np.int64), *(np.arange(lo, hi) for lo, hi in found)])
    chosen = each if order is None else np.sort(order[each])
    return chosen + rows.indices(len(times))[0] if isinstance(rows, slice) else rows[chosen]


def _alive(
    condition: pc.Expression, schema: pa.Schema, times: I64, known: Known, first: int, stop: int
) -> Iterator[tuple[int, int]]:
    """The ranges of ascending *times* from *first* to *stop* that *condition* can be true for, in order."""
    cuts = np.unique(np.linspace(first, stop, PARTS + 1).astype(np.int64))
    low, high = times[cuts[:-1]].tolist(), times[cuts[1:] - 1].tolist()
    kept = _possible(condition, schema, [known(a, b) for a, b in zip(low, high, strict=True)])
    for a, b in joined([(i, i + 1) for i in kept]):
        lo, hi = int(cuts[a]), int(cuts[b])
        if stop - first <= PARTS:
            yield lo, hi
            continue
        # Only what lies at an edge can be partly out.
        inner, outer = int(cuts[a + 1]), int(cuts[b - 1])
        ranges = [*_alive(condition, schema, times, known, lo, inner)]
        if inner < hi:
            ranges += [(inner, outer)] if inner < outer else []
            ranges += _alive(condition, schema, times, known, outer, hi)
        yield from joined(ranges)


def _possible(condition: pc.Expression, schema: pa.Schema, known: list[pc.Expression]) -> list[int]:
    """The numbers of what is *known* that *condition* can be true for."""
    nowhere, form = pyarrow.fs.LocalFileSystem(), ds.IpcFileFormat()
    parts = [
        form.make_fragment(str(i), filesystem=nowhere, partition_expression=one)
        for i, one in enumerate(known)
    ]
    all_parts = ds.FileSystemDataset(parts, schema, form)
    return sorted(int(part.path) for part in all_parts.get_fragments(filter=condition))
