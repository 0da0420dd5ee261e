"""Channels of one log in one table, sampled at the same times."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.io.arrays import I64
from logreel.layout.arrow_arrays import (
    as_struct,
    buffer_of,
    item_type,
    metadata_of,
    row_numbers,
    text_metadata,
)
from logreel.log.columns import RowOptions, own_paths
from logreel.log.log import Log
from logreel.log.tables import TableReader, as_numpy, column_values, distinct, time_column
from logreel.log.times import SECOND, Length, Time, duration_ns, interval, shift_of
from logreel.log.topic_fields import fields_by_topic
from logreel.ops.query.record_batches import BYTES, ROWS, as_slice
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel

METHODS = ("previous", "nearest")
#: Ways to take values between the rows before and after a time.
BETWEEN = ("linear", "slerp")
#: Words in the names of arrays of four numbers that are quaternions, in any order of their numbers: ``q_d``.
QUATERNIONS = {"q", "quat", "quaternion", "orientation", "rotation", "attitude"}
#: Angles (rad) below which two rotations count as one: the sine of 0 cannot be divided by.
_LEAST_ANGLE = 1e-9
#: Most rows of a table: one wrong time in a log must not make a table without end.
MOMENTS = 10**9
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(k?)(?:Hz)?", re.IGNORECASE)
_FAR = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Alignment:
    """Times of the rows of an aligned table, and how rows of channels are matched to them.

    method     ``previous``: the last row at or before the time; ``nearest``: the closest row, the earlier of two;
               ``linear``: floats on the line between the rows before and after the time, null without one of them,
               everything else as ``previous``; ``slerp``: as ``linear``, and quaternions by spherical interpolation
    rate       rows per second, from the start on: a number, or text such as ``50Hz``
    clock      instead of *rate*: the topic whose message times are used
    tolerance  largest distance in time, between two rows of the farther one: ns, or text such as ``20ms``; None: no
               limit
    """

    method: str = "previous"
    rate: str | float | None = None
    clock: str | None = None
    tolerance: Length | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS + BETWEEN:
            raise UsageError(f"{self.method!r} is no way to align; known: {', '.join(METHODS + BETWEEN)}")
        if (self.rate is None) == (self.clock is None):
            raise UsageError("give either a rate or a channel as clock to align to")
        if self.within is not None and self.within < 0:
            raise UsageError(f"the tolerance {self.tolerance!r} is less than nothing")

    @cached_property
    def within(self) -> int | None:
        """Tolerance in ns, or None."""
        return None if self.tolerance is None else duration_ns(self.tolerance)

    @cached_property
    def hertz(self) -> Fraction:
        """Rate in Hz; raises UsageError if it cannot be read."""
        text = str(self.rate)
        match = _RATE.fullmatch(text.strip())
        rate = Fraction(match[1]) * (1000 if match[2] else 1) if match else Fraction(0)
        if not 0 < rate <= SECOND:
            raise UsageError(f"cannot read the rate {text!r}: write 50Hz, 0.5Hz or 1kHz")
        return rate


def align(
    src: Openable | Log,
    topics: str | Iterable[str] | Mapping[str, Iterable[str]] | None = None,
    *,
    rate: str | float | None = None,
    clock: str | None = None,
    method: str = "previous",
    tolerance: Length | None = None,
    start: Time | None = None,
    end: Time | None = None,
    utc: bool = False,
    interpolate: bool = False,
    definitions: Definitions = (),
) -> pa.Table:
    """Return channels as one ``pyarrow.Table`` with a row per time: ``time``, and ``topic.field`` for each field.

    src      an open Log, or anything that ``logreel.open`` takes
    topics   names or patterns, fields of them as ``topic.field`` or ``topic:field,field``, or a mapping of names to
             field paths; None: all but the reserved ones
    rate, clock, method, tolerance  times of the rows, and how channels are matched to them: see ``Alignment``
    start, end  interval of the rows: ns, or texts; messages before *start* are matched, too
    utc, interpolate  as for ``Channel.to_arrow``
    definitions  as for ``logreel.open``

    Columns of a channel are null where it has no message within the tolerance. Raises UsageError, TopicError, and
    DefinitionError for a channel that cannot be decoded.
    """
    import pyarrow as pa

    how = Alignment(method, rate, clock, tolerance)
    with as_open_log(src, definitions) as log:
        chosen: Mapping[str, Iterable[str] | None] = (
            topics
            if isinstance(topics, Mapping)
            else dict.fromkeys(ch.topic for ch in log.match(None))
            if topics is None
            else fields_by_topic(log, topics)
        )
        channels = [(ch := log[topic], own_paths(ch, paths)) for topic, paths in chosen.items()]
        schema, batches = aligned(log, channels, how, interval(log, start, end), utc, interpolate)
        return pa.Table.from_batches(batches, schema)


def aligned(
    log: Log,
    channels: list[tuple[Channel, list[str] | None]],
    how: Alignment,
    span: tuple[int | None, int | None] = (None, None),
    utc: bool = False,
    interpolate: bool = False,
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the schema and the batches (bounded in size) of ``align``; *channels* with field paths, None: all."""
    import pyarrow as pa

    if not channels:
        raise UsageError("there is no channel to align", path=log.name)
    shift_of(log, utc)
    count, moments = _sample_times(log, how, span)
    followers = [
        ChannelSampler(ch, fields, how, RowOptions(True, utc, interpolate)) for ch, fields in channels
    ]
    fields = [field for follower in followers for field in follower.fields]
    fields = [f.with_name(n) for f, n in zip(fields, distinct([f.name for f in fields]), strict=True)]
    any_channel = channels[0][0]
    clock = pa.field("time", time_column(any_channel, np.zeros(0, np.int64), utc).type)
    metadata = {"source": log.name, "epoch": log.epoch, "method": how.method}
    schema = pa.schema([clock, *fields], metadata=text_metadata(metadata))

    def batches() -> Iterator[pa.RecordBatch]:
        lo = 0
        while lo < count:
            at = moments(lo, min(lo + ROWS, count))
            while len(at) > 1 and sum(follower.weight(at) for follower in followers) > BYTES:
                at = at[: len(at) // 2]
            arrays = [array for follower in followers for array in follower.at(at)]
            yield pa.RecordBatch.from_arrays([time_column(any_channel, at, utc), *arrays], schema=schema)
            lo += len(at)

    return schema, batches()


def _sample_times(
    log: Log, how: Alignment, span: tuple[int | None, int | None]
) -> tuple[int, Callable[[int, int], I64]]:
    """Return the number of rows, and a function that returns the times (ns) of rows lo to hi."""
    if how.clock is not None:
        ch = log[how.clock]
        times = np.sort(ch.times[log.index.rows_between(ch.number, *span)])
        return len(times), lambda lo, hi: times[lo:hi]
    first = log.start if span[0] is None else span[0]
    end = log.end + 1 if span[1] is None and log.end is not None else span[1]
    if first is None or end is None or end <= first:
        return 0, lambda lo, hi: np.zeros(0, np.int64)
    return regular_times(log, first, end, how.hertz)


def regular_times(log: Log, first: int, end: int, hertz: Fraction) -> tuple[int, Callable[[int, int], I64]]:
    """Return how many moments of a rate there are from *first* (ns) on before *end*, and a function.

    The function returns int64[hi - lo]: the times (ns) of moments lo to hi. UsageError for more than ``MOMENTS``.
    """
    period = SECOND / hertz
    count = -((first - end) // period)
    if count > MOMENTS:
        text = f"from {first} ns to {end} ns there are {count} moments of {hertz} Hz, more than {MOMENTS}"
        raise UsageError(f"{text}: choose an interval, or a lower rate", path=log.name)
    # Integer arithmetic does not drift.
    return count, lambda lo, hi: np.array(
        [first + i * period.numerator // period.denominator for i in range(lo, hi)], np.int64
    )


def times_in_order(ch: Channel) -> tuple[I64, I64 | None]:
    """Return the times (ns) of the messages of *ch* in order, and the row of each; None: rows are in order."""
    times, rows = ch.times, ch.log.index.rows_between(ch.number, None, None)
    # A log may be limited to some of its messages.
    is_all = isinstance(rows, slice) and rows == slice(0, len(ch))
    if is_all and (times[1:] >= times[:-1]).all():
        return times, None
    picked = np.arange(len(ch), dtype=np.int64)[rows]
    order: I64 = picked[np.argsort(times[picked], kind="stable")]
    return times[order], order


class Matched(NamedTuple):
    """Columns of a channel at some times.

    columns  Arrow arrays with a row per time; null where no row matches
    times    int64[n] ns of the row that matched; any number where none does
    matched  bool[n]: where a row matched
    """

    columns: list[pa.Array[Any]]
    times: I64
    matched: NDArray[np.bool_]


class ChannelSampler:
    """One channel, sampled at ascending times.

    fields  Arrow fields of its columns, named ``topic.field``, with unit, topic, field and type as metadata
    """

    def __init__(self, ch: Channel, paths: list[str] | None, how: Alignment, shape: RowOptions) -> None:
        self._ch, self._how = ch, how
        self._reader = TableReader(ch, paths, shape)
        self._dense = TableReader(ch, paths, RowOptions(True, False, shape.interpolate, gaps=False))
        self._times, self._order = times_in_order(ch)
        self.fields = [_named(field, ch) for field in self._reader.projection.arrow_fields()]

    def weight(self, at: I64) -> int:
        """Return the approximate number of bytes that the rows take."""
        lo, hi = self._candidate_messages(at)
        rows = len(at) if self._ch.is_uniform else hi - lo
        return rows * (self._ch.bytes // max(1, len(self._ch)))

    def at(self, at: I64) -> list[pa.Array[Any]]:
        """Return the columns at the times *at*."""
        method, within = self._how.method, self._how.within
        if method in METHODS:
            return self.matched(at, method, within).columns
        before, after = self.matched(at, "previous", within), self.matched(at, "next", within)
        span = (after.times - before.times).astype(np.float64)
        part = np.divide((at - before.times).astype(np.float64), span, out=np.zeros(len(at)), where=span > 0)
        return [
            _between(field.name, first, last, part, method == "slerp")
            for field, first, last in zip(self.fields, before.columns, after.columns, strict=True)
        ]

    def matched(self, at: I64, method: str, within: int | None = None) -> Matched:
        """Return the columns at the times *at*, and which rows they are from.

        method  as of ``pick``
        """
        if not len(at):
            none = np.zeros(0, np.int64)
            return _taken(self._reader.read(slice(0, 0)), none, none, none)
        how = (method, within)
        return self._from_single_rows(at, *how) if self._ch.is_uniform else self._from_decoded_rows(at, *how)

    def _from_single_rows(self, at: I64, method: str, within: int | None) -> Matched:
        """Return the columns if each message is one row: only the matching messages are decoded."""
        picked = pick(self._times, at, method, within)
        rows = picked if self._order is None else np.where(picked < 0, -1, self._order[picked])
        wanted, place = np.unique(rows, return_inverse=True)
        none = int(len(wanted) > 0 and wanted[0] < 0)
        table = self._reader.read(as_slice(wanted[none:]))
        return _taken(table, place.reshape(-1) - none, self._times, picked)

    def _from_decoded_rows(self, at: I64, method: str, within: int | None) -> Matched:
        """Return the columns if messages hold several rows or may be broken: decode all messages around, then match."""
        lo, hi = self._candidate_messages(at)
        while True:
            table, times = self._rows(lo, hi)
            before = lo > 0 and (not len(times) or times[0] > at[0])
            after = hi < len(self._times) and (not len(times) or times[-1] < at[-1])
            if not before and not (after and method != "previous"):
                break
            # The matching message is broken: look further.
            lo, hi = (
                max(0, lo - (hi - lo)) if before else lo,
                min(len(self._times), 2 * hi - lo) if after else hi,
            )
        rows = pick(times, at, method, within)
        return _taken(table, rows, times, rows)

    def _candidate_messages(self, at: I64) -> tuple[int, int]:
        """Return the messages, by time, that can match: from one before the first time to one after the last."""
        lo = int(self._times.searchsorted(at[0], "right")) - 1
        return max(0, lo), min(len(self._times), int(self._times.searchsorted(at[-1], "right")) + 1)

    def _rows(self, lo: int, hi: int) -> tuple[pa.Table, I64]:
        """Return the rows of messages *lo* to *hi* by time, and their times on the clock of the log, ns."""

        rows: Any = slice(lo, hi) if self._order is None else as_slice(np.sort(self._order[lo:hi]))
        table = self._dense.read(rows).combine_chunks()
        column = table.column(0)
        times = np.concatenate([np.zeros(0, np.int64), *map(as_numpy, column.chunks)])
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            table, times = table.take(row_numbers(order)), times[order]
        return table, times


def pick(times: I64, at: I64, method: str, within: int | None) -> I64:
    """Return int64[m]: index of the one of the ascending *times* that matches each time of *at*, or -1.

    method  ``previous`` and ``nearest``: as for ``Alignment``; ``next``: the first row at or after the time
    within  largest distance in ns, None: no limit
    """
    n = len(times)
    if n == 0:
        return np.full(len(at), -1, np.int64)
    if method == "next":
        after = times.searchsorted(at, "left")
        ahead = np.where(after == n, _FAR, (times[np.minimum(after, n - 1)] - at).view(np.uint64))
        return np.where((after == n) | (within is not None and ahead > np.uint64(within or 0)), -1, after)
    before = times.searchsorted(at, "right") - 1
    # Differences need 64 bits.
    gap = np.where(before < 0, _FAR, (at - times[np.maximum(before, 0)]).view(np.uint64))
    chosen = before
    if method == "nearest":
        after = times.searchsorted(at, "left")
        ahead = np.where(after == n, _FAR, (times[np.minimum(after, n - 1)] - at).view(np.uint64))
        chosen, gap = np.where(gap <= ahead, before, after), np.minimum(gap, ahead)
    far = chosen < 0 if within is None else (chosen < 0) | (gap > np.uint64(within))
    return np.where(far, -1, chosen)


def _taken(table: pa.Table, rows: I64, times: I64, picked: I64) -> Matched:
    """Return the columns of *table* except the time at *rows*, null for row -1, with the *times* that were *picked*."""
    where = row_numbers(rows, rows < 0)
    taken = table.select(range(1, table.num_columns)).take(where).columns
    at = times[np.maximum(picked, 0)] if len(times) else np.zeros(len(picked), np.int64)
    return Matched([column.combine_chunks() for column in taken], at, picked >= 0)


def _between(
    name: str, before: pa.Array[Any], after: pa.Array[Any], part: NDArray[np.float64], spherical: bool
) -> pa.Array[Any]:
    """Return the values of a column between two rows, of the same type; see ``Alignment``.

    name       path of the column; its last name says whether four numbers are a quaternion
    part       float64[n]: how far from *before* to *after*, 0 to 1
    spherical  quaternions by spherical interpolation
    """
    import pyarrow as pa

    arrow_type = before.type
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        members = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        firsts, lasts = (
            [as_struct(array).field(i) for i in range(arrow_type.num_fields)] for array in (before, after)
        )
        if spherical and sorted(member.name for member in members) == list("wxyz"):
            ends = [
                np.stack([column_values(array) for array in columns_at_end], axis=1)
                for columns_at_end in (firsts, lasts)
            ]
            turned = _slerp(ends[0], ends[1], part)
            arrays = [_floats(turned[:, i], member.type) for i, member in enumerate(members)]
        else:
            arrays = [
                _between(f"{name}.{member.name}", first, last, part, spherical)
                for member, first, last in zip(members, firsts, lasts, strict=True)
            ]
        return _absent_in_either(pa.StructArray.from_arrays(arrays, fields=members), before, after)
    values = arrow_type
    while pa.types.is_fixed_size_list(values):
        values = item_type(values)
    if not pa.types.is_floating(values):
        return before
    first, last = column_values(before), column_values(after)
    if spherical and first.shape[1:] == (4,) and _is_quaternion(name):
        mixed = _slerp(first, last, part)
    else:
        mixed = _linear(first, last, part.reshape(-1, *[1] * (first.ndim - 1)))
    return _absent_in_either(_floats(mixed, arrow_type), before, after)


def _is_quaternion(name: str) -> bool:
    return not QUATERNIONS.isdisjoint(re.split(r"[_\[\]]", name.rpartition(".")[2].lower()))


def _linear(first: NDArray[Any], last: NDArray[Any], part: NDArray[np.float64]) -> NDArray[np.float64]:
    first, last = np.asarray(first, np.float64), np.asarray(last, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        # At the time of a row its own value counts, also if the next one is NaN or infinite.
        return np.where(part == 0, first, first + (last - first) * part)


def _slerp(first: NDArray[Any], last: NDArray[Any], part: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quaternions float64[n, 4] of norm 1 on the shortest way from *first* to *last*, NaN without rotation."""
    # Not imported for the other ways.
    from logreel.lenses.rotation import angle_between, unit

    (a, _), (b, _) = unit(np.asarray(first, np.float64)), unit(np.asarray(last, np.float64))
    # Of a quaternion and its negative, which are the same rotation, the nearer one is the shortest way.
    b = np.where((a * b).sum(axis=1, keepdims=True) < 0, -b, b)
    angle = np.maximum(angle_between(a, b) / 2, _LEAST_ANGLE)
    shares = np.sin(np.stack([(1 - part) * angle, part * angle]))[..., None]
    turned = (shares[0] * a + shares[1] * b) / np.sin(angle)[:, None]
    return np.where((part == 0)[:, None], a, turned)


def _floats(values: NDArray[np.float64], arrow_type: pa.DataType) -> pa.Array[Any]:
    """Return numbers as an Arrow array of *arrow_type*: floats, or lists of fixed size of these."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(arrow_type):
        items = _floats(values.reshape(-1, *values.shape[2:]), item_type(arrow_type))
        lists: pa.Array[Any] = pa.Array.from_buffers(arrow_type, len(values), [None], children=[items])
        return lists
    with np.errstate(over="ignore"):
        dense = np.ascontiguousarray(values, arrow_type.to_pandas_dtype())
    return pa.Array.from_buffers(arrow_type, len(dense), [None, buffer_of(dense)])


def _absent_in_either(values: pa.Array[Any], before: pa.Array[Any], after: pa.Array[Any]) -> pa.Array[Any]:
    """Return *values*, null in the rows in which *before* or *after* is null."""
    if not before.null_count and not after.null_count:
        return values
    absent = as_numpy(before.is_null()) | as_numpy(after.is_null())
    return values.take(row_numbers(np.arange(len(values), dtype=np.int64), absent))


def _named(field: pa.Field[Any], ch: Channel) -> pa.Field[Any]:
    meta = text_metadata({"topic": ch.topic, "field": field.name, "type": ch.schema.name})
    meta = metadata_of(field) | meta
    return field.with_name(f"{ch.topic}.{field.name}").with_metadata(meta).with_nullable(True)
