"""Channels as polars LazyFrames, which decode only what a query needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import MissingDependencyError
from logreel.layout.nodes import path_text
from logreel.log.columns import RowOptions, Rows
from logreel.log.log import Log
from logreel.log.tables import TableReader, empty_table, time_column
from logreel.log.topic_match import is_pattern
from logreel.ops.query.record_batches import BYTES, MOST, as_slice
from logreel.registry.open import open_log, several_logs

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Channel


def scan_polars(log: Openable | Log, topic: str, *, utc: bool = False, definitions: Definitions = ()) -> Any:
    """Return a ``polars.LazyFrame`` of a channel, which decodes only what a query needs.

    log    an open Log, or a file; a list, a folder or a pattern means many logs, whose rows stand one after the other
           with a column ``log``; columns that one lacks are null
    topic  the channel; a pattern or condition as for ``Log.match``, such as ``type=sensor_msgs/Imu``, gives all
           channels that it selects one after the other, with a column ``topic``; columns that one lacks are null
    utc    wall-clock times
    definitions  as for ``logreel.open``

    It has the columns of ``channel.to_arrow()``, in file order. It decodes only the columns that the query needs, only
    messages that meet the conditions on ``time`` alone, and no more rows than the query takes from the beginning.

    Raises TopicError, DefinitionError, MissingDependencyError without polars.
    """
    try:
        import polars as pl
        import polars.io.plugins
    except ImportError as error:
        raise MissingDependencyError("polars", "polars") from error
    several = several_logs(log)
    if len(several) > 1:
        frames = []
        for item in several:
            opened = item if isinstance(item, Log) else open_log(item, definitions=definitions)
            frame = scan_polars(opened, topic, utc=utc)
            frames.append(frame.with_columns(log=pl.lit(opened.name)))
        return pl.concat(frames, how="diagonal_relaxed")
    log = several[0]
    opened = log if isinstance(log, Log) else open_log(log, definitions=definitions)
    if topic in opened or not is_pattern(topic):
        return _scan(opened[topic], utc)
    lazy_frames = [_scan(ch, utc).with_columns(topic=pl.lit(ch.topic)) for ch in opened.match(topic)]
    return pl.concat(lazy_frames, how="diagonal_relaxed")


def _scan(ch: Channel, utc: bool) -> Any:
    """Return the LazyFrame of one channel."""
    import polars as pl
    from polars.io.plugins import register_io_source

    empty = empty_table(ch, RowOptions(utc=utc))
    every = [path_text((f.name,)) for f in ch.layout.record.visible()]

    def source(columns: list[str] | None, predicate: Any, count: int | None, _: int | None) -> Iterator[Any]:
        # polars limits the rows before it applies the predicate.
        limited = predicate is None or count is not None
        rows = slice(0, len(ch)) if limited else _rows(ch, predicate, utc)
        needed = set(empty.column_names if columns is None else columns)
        if predicate is not None:
            needed |= {*predicate.meta.root_names()}
        paths = {
            name: path for name, path in zip(empty.column_names[1:], every, strict=True) if name in needed
        }
        for frame in _frames(ch, paths, rows, RowOptions(utc=utc, clock="time" in needed), count):
            filtered = frame if predicate is None else frame.filter(predicate)
            yield filtered if columns is None else filtered.select(columns)

    return register_io_source(source, schema=pl.DataFrame(empty).schema)


def _frames(
    ch: Channel, paths: dict[str, str], rows: Rows, shape: RowOptions, count: int | None
) -> Iterator[Any]:
    """Yield the first *count* rows of the messages *rows* as frames of bounded size."""
    import polars as pl
    import pyarrow as pa

    left = count
    most = MOST if left is None else max(1, min(MOST, left))
    for batch in TableReader(ch, [*paths.values()], shape).batches(rows, most, BYTES):
        frame: Any = pl.from_arrow(pa.Table.from_batches([batch]).rename_columns(["time", *paths]))
        # polars cannot take over slices of arrays with lists of fixed size.
        frame = frame if left is None else frame.head(left)
        yield frame
        if left is not None:
            left -= frame.height
            if left == 0:
                return


def _rows(ch: Channel, predicate: Any, utc: bool) -> Rows:
    """Return the messages that meet those conditions of *predicate* that use ``time`` alone."""
    import polars as pl

    parts = [part for part in conjuncts(predicate) if {*part.meta.root_names()} == {"time"}]
    if not parts:
        return slice(0, len(ch))
    times = pl.DataFrame({"time": pl.from_arrow(time_column(ch, ch.times, utc))})
    passed = np.flatnonzero(times.select(pl.all_horizontal(parts).fill_null(False)).to_series().to_numpy())
    return as_slice(passed)


def conjuncts(predicate: Any) -> Iterator[Any]:
    """Yield the conditions that *predicate* combines with "and"."""
    inputs = predicate.meta.pop()
    if len(inputs) == 2 and any(predicate.meta.eq(a & b) for a, b in (inputs, inputs[::-1])):
        for part in inputs:
            yield from conjuncts(part)
    else:
        yield predicate
