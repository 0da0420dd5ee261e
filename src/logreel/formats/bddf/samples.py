"""Messages as a Layout has them to payloads: without counts, numbers of samples, and what lies beside a payload."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from logreel.model.heads import joined
from logreel.model.index import I64
from logreel.model.layout import Layout
from logreel.model.sink import Payloads


def opened(layout: Layout, k: int, many: bool, data: NDArray[np.uint8], start: I64) -> Payloads:
    """Payloads, and the *k* additional indexes that come before each; *many*: that of many samples.

    data, start  as ``Wrapping.open`` has it
    """
    first, size = start[:-1], np.diff(start)
    if not many:
        return Payloads(data, first + 8 * k, size - 8 * k, _numbers(data, first, k))
    # A count, then for each sample the additional indexes, its number, and the value.
    lead = 8 * k + 4
    width = _width(layout)
    count = (size - 4) // width
    number = np.arange(int(count.sum()), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
    records = np.repeat(first + 4, count) + width * number
    values = joined(data, records + lead, np.full(len(records), width - lead, np.int64))
    size = count * (width - lead)
    beside = np.zeros((len(count), k), np.int64)
    beside[count > 0] = _numbers(data, (first + 4)[count > 0], k)
    return Payloads(values, np.cumsum(size) - size, size, beside if k else None)


def _width(layout: Layout) -> int:
    size = Layout(layout.record, layout.name).size
    if size is None:
        raise TypeError("samples have one size")
    return size


def _numbers(data: NDArray[np.uint8], at: I64, k: int) -> I64:
    """int64[n, k]: the numbers that begin at *at*."""
    raw = joined(data, at, np.full(len(at), 8 * k, np.int64))
    found: I64 = raw.view("<i8").astype(np.int64).reshape(len(at), k)
    return found
