"""Curves: numeric fields over time, with no more points than a drawing can show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.log.brief import Brief
from logreel.log.tables import as_numpy, flattened
from logreel.log.times import Time, interval
from logreel.ops.query.topic_fields import fields_by_topic

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel, Log

F64 = NDArray[np.float64]
#: Arrays with more items than this are not drawn as a whole.
MAX_ITEMS = 32
#: Most curves that one name may mean.
MAX_CURVES = 64
#: Fields that repeat the time of the message; drawn only if they are named.
STAMPS = ("timestamp", "header.stamp")


@dataclass(frozen=True, slots=True, repr=False)
class Curve(Brief):
    """One numeric field over time.

    unit    as stated by the schema, or empty
    times   int64[n] ns of the log's clock, in order
    values  float64[n]; NaN: no value
    count   number of messages or records, of which the points are the extrema if ``reduced`` was called
    """

    topic: str
    field: str
    unit: str
    times: I64
    values: NDArray[np.float64]
    count: int

    @property
    def name(self) -> str:
        """``topic.field``."""
        return f"{self.topic}.{self.field}"

    def reduced(self, pixels: int) -> Curve:
        """Return the curve with at most four points for each of *pixels* equal intervals: first, least, greatest, last.

        A line through these points covers the same pixels as one through all.
        """
        if len(self.times) <= 4 * pixels:
            return self
        rows = extrema(self.times, self.values, pixels)
        return replace(self, times=self.times[rows], values=self.values[rows])


def curves(
    log: Log, wanted: str | Iterable[str], start: Time | None = None, end: Time | None = None
) -> list[Curve]:
    """Return the curves of fields of *log*.

    wanted      ``topic.field``, ``topic:field,field`` or topics, whose numeric fields are all meant; see
                ``fields_by_topic``. An array is one curve for each item
    start, end  as for ``Channel.to_arrow``

    Raises UsageError for text, and for arrays of changing length; TopicError and NotFoundError for unknown names.
    """
    lo, hi = interval(log, start, end)
    found: list[Curve] = []
    for topic, fields in fields_by_topic(log, wanted).items():
        found += channel_curves(log[topic], fields, lo, hi)
        if len(found) > MAX_CURVES:
            raise UsageError(
                f"{wanted!r} means more than {MAX_CURVES} curves: choose fields, such as {found[0].name}",
                path=log.name,
            )
    return found


def channel_curves(ch: Channel, fields: list[str] | None, lo: int | None, hi: int | None) -> Iterator[Curve]:
    """Yield the curves of fields of one channel, with lo <= time < hi (ns); see ``curves``."""
    import pyarrow as pa

    table = ch.to_arrow(fields, *(None if t is None else int(t) for t in (lo, hi)))
    times = np.asarray(table.column(0).combine_chunks().cast(pa.int64()))
    order = None if np.all(times[1:] >= times[:-1]) else np.argsort(times, kind="stable")
    drawn = False
    for field, column in list(zip(table.schema, table.columns, strict=True))[1:]:
        found = False
        flat = flattened(one_column(field, column))
        for one, values in zip(flat.schema, flat.columns, strict=True):
            unit = (one.metadata or {}).get(b"unit", b"").decode()
            for name, numbers in sample_numbers(one.name, values.combine_chunks()):
                if fields is None and name in STAMPS:
                    continue
                found = drawn = True
                yield _curve(ch.topic, name, unit, times, numbers, order)
        if fields is not None and not found:
            raise UsageError(why_no_curve(ch, field.name, column.type), path=ch.log.name)
    if not drawn:
        raise UsageError(f"{ch.topic!r} has no numeric field", path=ch.log.name)


def one_column(field: pa.Field[Any], column: Any) -> pa.Table:
    """Return a table of one column."""
    import pyarrow as pa

    return pa.table([column], schema=pa.schema([field]))


def _curve(
    topic: str, name: str, unit: str, times: I64, numbers: NDArray[np.float64], order: I64 | None
) -> Curve:
    if order is not None:
        times, numbers = times[order], numbers[order]
    return Curve(topic, name, unit, times, numbers, len(times))


def sample_numbers(name: str, array: Any) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the path and the values of each curve of a column; nothing for text and other columns without numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        if kind.list_size <= MAX_ITEMS:
            for i in range(kind.list_size):
                yield from sample_numbers(f"{name}[{i}]", pc.list_element(array, i))
        return
    if pa.types.is_duration(kind) or pa.types.is_timestamp(kind):
        yield name, _as_float(array.cast("int64")) / 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
    elif pa.types.is_boolean(kind):
        yield name, _as_float(array.cast("int8"))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        yield name, _as_float(array)


def _as_float(array: Any) -> NDArray[np.float64]:
    # Values of damaged messages may be signalling NaN.
    with np.errstate(invalid="ignore"):
        values: NDArray[np.float64] = as_numpy(array).astype(np.float64, copy=False)
    return values


def why_no_curve(ch: Channel, name: str, kind: Any) -> str:
    """Return a sentence why a field of this Arrow type is no single curve."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return (
            f"{ch.topic}.{name} has {kind.list_size} items: choose some of them, such as {ch.topic}.{name}[0]"
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return (
            f"{ch.topic}.{name} has arrays of changing length: choose an item, such as {ch.topic}.{name}[0]"
        )
    return f"{ch.topic}.{name} is no number, but {kind}"


def pixel_edges(start: int, end: int, pixels: int) -> I64:
    """Return int64[pixels + 1] ns: bounds of equal intervals of start <= time < end."""
    edges: I64 = start + ((end - start) / pixels * np.arange(pixels + 1)).astype(np.int64)
    return edges


def extrema(times: I64, values: F64, pixels: int) -> I64:
    """Return the rows of the first, least, greatest and last value in each of *pixels* equal intervals of time.

    times   int64[n] in order
    values  float64[n]; NaN is neither least nor greatest

    Returns int64[m] in order, m <= 4 * pixels.
    """
    edges = pixel_edges(int(times[0]), int(times[-1]) + 1, pixels)
    return extrema_between(times, values, edges)


def extrema_between(times: I64, values: F64, edges: I64) -> I64:
    """Return the same for the intervals between *edges*, int64[pixels + 1] ns; *times* are in the outer ones."""
    first = np.unique(np.searchsorted(times, edges[:-1]))
    first = first[first < len(times)]
    last = np.append(first[1:], len(times)) - 1
    interval_of = np.repeat(np.arange(len(first)), last - first + 1)
    rows = [first, last]
    for least in (np.fmin, np.fmax):
        equal = np.flatnonzero(values == least.reduceat(values, first)[interval_of])
        rows.append(equal[np.unique(interval_of[equal], return_index=True)[1]])
    return np.unique(np.concatenate(rows))
