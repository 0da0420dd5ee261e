"""Statistics of channels: rates, gaps, and values of fields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import asdict, dataclass
from logreel.errors import DefinitionError
from logreel.log.log import Log
from logreel.log.scan import Brief
from logreel.log.times import Time, interval, mean_rate
from logreel.log.topic_fields import FieldsByTopic, fields_by_topic
from logreel.meaning.gaps import gaps_of, steps_of
from logreel.ops.json_values import to_json_values
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log

if TYPE_CHECKING:
    from logreel.layout.numpy_columns import Column
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel

#: Number of gaps listed, the longest ones; all are counted.
GAPS_LISTED = 20


@dataclass(frozen=True, slots=True)
class Gap:
    """Long interval between two messages (ns)."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Period:
    """Time between consecutive messages in ns; *std* is the jitter."""

    min: int
    median: float
    mean: float
    max: int
    std: float


@dataclass(frozen=True, slots=True)
class FieldStats:
    """Values of one numeric field over all messages and array items.

    min, max, mean, rms  without NaN; None if there are no other values; *rms* is the root of the mean of the squares
    """

    path: str
    count: int
    nan: int
    min: int | float | None
    max: int | float | None
    mean: float | None
    rms: float | None


def distance(several: Sequence[FieldStats | None]) -> float | None:
    """Return how far the statistics of one field of several logs are apart: 0 for equal ones, at most 1.

    That is the greatest distance of two least values, means, greatest values or root mean squares, as a share of the
    range of all values. None if fewer than two logs have finite values.
    """
    known = [
        numbers
        for one_log in several
        if one_log is not None
        and (numbers := [one_log.min, one_log.mean, one_log.max, one_log.rms])
        and all(number is not None and math.isfinite(number) for number in numbers)
    ]
    if len(known) < 2:
        return None
    table = np.array(known, np.float64)
    # Root mean squares are distances from zero.
    extent = float(max(table[:, 2].max() - table[:, 0].min(), np.ptp(table[:, 3])))
    return float(np.ptp(table, axis=0).max()) / extent if extent else 0.0


@dataclass(frozen=True, slots=True, repr=False)
class ChannelStats(Brief):
    """Statistics of one channel.

    rate          messages per second between the earliest and the latest, or None
    period        None with fewer than two messages
    gaps          the longest GAPS_LISTED gaps, by time; *gap_count* counts all, *gap_ns* is their total length
    out_of_order  messages with an earlier time than the previous message in the file
    duplicates    messages with the same time as another one
    fields        None if not requested, or if the definition cannot be used
    """

    topic: str
    messages: int
    bytes: int
    rate: float | None
    period_ns: Period | None
    gap_count: int
    gap_ns: int
    gaps: tuple[Gap, ...]
    out_of_order: int
    duplicates: int
    fields: tuple[FieldStats, ...] | None

    def as_dict(self) -> dict[str, Any]:
        """Return one entry of ``stats --json``."""
        data: dict[str, Any] = to_json_values(asdict(self))
        return data


def stats(
    log: Openable | Log,
    topics: str | Iterable[str] | Mapping[str, list[str] | None] | None = None,
    *,
    start: Time | None = None,
    end: Time | None = None,
    fields: bool = False,
    exclude: str | Iterable[str] = (),
    where: str | Iterable[str] = (),
) -> list[ChannelStats]:
    """Return statistics of each channel with messages in the interval.

    log     an open Log, or anything that ``logreel.open`` takes
    topics  names or shell patterns; None: all but the reserved ones. ``topic.field``, ``topic:field,field``, or a
            mapping of names to field paths, selects fields whose values are counted, too; None as paths: no fields
    start, end  ns, or texts; half-open interval
    fields  True: also count the values of all numeric fields, which decodes all messages
    exclude  channels to leave out, as *topics* without fields
    where   only messages that meet conditions in SQL, as for ``slice``

    Raises TopicError, and UsageError for a time that cannot be read or an interval outside of the log.
    """
    with as_open_log(log) as opened:
        first, last = interval(opened, start, end)
        paths: FieldsByTopic = {}
        if isinstance(topics, Mapping):
            paths = topics
        elif topics is not None:
            paths = fields_by_topic(opened, topics)
        without = {ch.topic for ch in opened.match(exclude)}
        names = [
            ch.topic
            for ch in opened.match(None if topics is None else list(paths))
            if ch.topic not in without
        ]
        with selected_log(opened, Selection(names if where else None, where=where)) as part:
            several = (
                channel_stats(part[name], first, last, fields=fields, paths=paths.get(name))
                for name in names
                if name in part.channels and len(part[name])
            )
            return [channel for channel in several if channel.messages]


def channel_stats(
    ch: Channel,
    start: int | None = None,
    end: int | None = None,
    *,
    fields: bool = False,
    paths: list[str] | None = None,
) -> ChannelStats:
    """Return statistics of the messages of one channel with start <= time < end (ns).

    fields  True: also of the values of all numeric fields
    paths   also of the values of these fields
    """
    fields = fields or paths is not None
    index = ch.log.index
    rows = index.rows_between(ch.number, start, end)
    times = ch.times[rows]
    is_complete = len(times) == len(ch)
    late = int(np.count_nonzero(times[1:] < times[:-1]))
    ordered = np.sort(times) if late else times
    steps = steps_of(ordered)
    period, rate, gaps = None, None, np.zeros(0, np.int64)
    if len(steps):
        median = float(np.median(steps))
        period = Period(
            int(steps.min()),
            median,
            float(steps.mean()),
            int(steps.max()),
            float(steps.std(dtype=np.float64)),
        )
        rate = mean_rate(len(steps), int(steps.sum()))
        gaps = gaps_of(steps)
    longest = np.sort(gaps[np.argsort(steps[gaps], kind="stable")[-GAPS_LISTED:]])
    return ChannelStats(
        topic=ch.topic,
        messages=len(times),
        bytes=ch.bytes if is_complete else int(index.sizes(ch.number)[rows].sum()),
        rate=rate,
        period_ns=period,
        gap_count=len(gaps),
        gap_ns=sum(steps[gaps].tolist()),
        gaps=tuple(Gap(int(ordered[i]), int(ordered[i + 1])) for i in longest),
        out_of_order=late,
        duplicates=int(np.count_nonzero(steps == 0)),
        fields=field_stats(ch, paths, start, end) if fields and len(times) else None,
    )


class _Tally:
    """Running count, minimum, maximum and sum of one field."""

    def __init__(self) -> None:
        self.count = self.nan = 0
        self.min: int | float | None = None
        self.max: int | float | None = None
        self.sum = self.squares = 0.0

    def add(self, values: NDArray[Any]) -> None:
        self.count += len(values)
        if values.dtype.kind == "f":
            bad = np.isnan(values)
            if bad.any():
                values = values[~bad]
                self.nan += int(np.count_nonzero(bad))
        if not len(values):
            return
        low, high = values.min().item(), values.max().item()
        self.min = low if self.min is None else min(self.min, low)
        self.max = high if self.max is None else max(self.max, high)
        with np.errstate(all="ignore"):
            self.sum += float(values.sum(dtype=np.float64))
            wide = values.astype(np.float64, copy=False)
            self.squares += float(np.dot(wide, wide))

    def result(self, path: str) -> FieldStats:
        n = self.count - self.nan
        mean, rms = (self.sum / n, math.sqrt(self.squares / n)) if n else (None, None)
        return FieldStats(path, self.count, self.nan, self.min, self.max, mean, rms)


def field_stats(
    ch: Channel, paths: list[str] | None = None, start: int | None = None, end: int | None = None
) -> tuple[FieldStats, ...] | None:
    """Return statistics of all numeric fields of *ch*, in bounded memory; None if its definition cannot be used.

    paths  only these fields and their members
    start, end  only of messages with start <= time < end (ns)
    """
    from logreel.log.columns import PLAIN, ColumnReader, own_paths
    from logreel.ops.query.record_batches import rows_per_batch

    tallies: dict[str, _Tally] = {}
    try:
        reader = ColumnReader(ch, own_paths(ch, paths), PLAIN)
        for rows in reader.batches(ch.log.index.rows_between(ch.number, start, end), rows_per_batch(ch)):
            for name, column in zip(reader.names, rows.columns, strict=True):
                _tally(name, column, tallies)
    except DefinitionError:
        return None
    return tuple(tally.result(path) for path, tally in tallies.items())


def _tally(path: str, column: Column, tallies: dict[str, _Tally]) -> None:
    """Add *column* to the tallies: one per item for arrays of up to 16 items in all messages."""
    from logreel.layout.numpy_columns import ARRAY, LIST, STRUCT

    if column.type == STRUCT:
        for name in column.names:
            _tally(f"{path}.{name}", column.member(name), tallies)
    elif column.type == ARRAY and column.size <= 16:
        for i in range(column.size):
            _tally(f"{path}[{i}]", column.select((i,)), tallies)
    elif column.type in (ARRAY, LIST):
        _tally(f"{path}[]", column.present().all_items(), tallies)
    elif column.type.startswith(("int", "uint", "float", "char")):
        tallies.setdefault(path, _Tally()).add(column.present().values)
