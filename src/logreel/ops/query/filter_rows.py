"""Selection of the rows of a table for which an expression of Arrow is true."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero


def filter_rows(table: pa.Table, condition: pc.Expression) -> pa.Table:
    """Return the rows of *table* for which *condition* is true, in their order.

    `pyarrow.Table.filter` does the same in threads of Arrow, for which it waits forever if they cannot be started.
    Raises pyarrow.ArrowInvalid for a condition that does not fit the columns.
    """
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    node = acero.Declaration("filter", acero.FilterNodeOptions(condition), [source])
    return node.to_table(use_threads=False)
