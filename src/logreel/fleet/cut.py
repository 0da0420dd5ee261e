"""How one log is divided into pieces of bounded size by its index: topics, then windows of time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from logreel.errors import LogError, TopicError, UsageError
from logreel.fleet.log_part import open_part
from logreel.fleet.options import PlanOptions
from logreel.fleet.source_files import Fingerprint, fingerprint
from logreel.index.block_table import TIME_MIN
from logreel.index.channel_index import TIMES_AT_ONCE
from logreel.index.ranges import Rows
from logreel.io.arrays import I64
from logreel.io.remote.address import is_url
from logreel.log.times import time_ns

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


#: What is done with an open log and the names of channels.
Look = Callable[["Log", Iterable[str]], None]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some channels of a log in a window of time (ns of its clock, half-open), and what the index says they hold."""

    topics: tuple[str, ...]
    start: int | None
    end: int | None
    bytes: int
    messages: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The pieces of one log; none if it cannot be opened, for which *error* is the reason, or if nothing is wanted."""

    fingerprint: Fingerprint | None
    pieces: tuple[Piece, ...]
    error: str = ""


class _Load(NamedTuple):
    """A channel with the messages of the interval: how many, and their payload bytes."""

    ch: Channel
    messages: int
    bytes: int


def error_text(error: BaseException) -> str:
    """Return what an error says, without the path, for a row of the catalogue."""
    if isinstance(error, LogError):
        return error.text
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return f"{type(error).__name__}: {error}"


def cut_log(path: str, options: PlanOptions, passing: Collection[int] = (), look: Look | None = None) -> Cut:
    """Return the pieces of about ``options.target_bytes`` of the log at *path*; one if it is downloaded as a whole.

    passing  error numbers of faults that may pass, for which OSError is raised, and also MemoryError if there are any;
             all else that is wrong with the file is in the result
    look     called with the log, while it is open, and the topics of its pieces
    """
    mark = None
    try:
        mark = fingerprint(path)
        with open_part(path, options.definitions, options.types) as log:
            try:
                first, last = _interval(log, options)
                channels = _chosen(log, options.topics)
            except UsageError as error:
                return Cut(mark, (), error.text)
            loads = [_load(log, ch, first, last) for ch in channels]
            if first is not None or last is not None:
                loads = [one for one in loads if one.messages]
            # Each task would download all of it again.
            is_downloaded = is_url(path) and not log.index.reads_in_ranges
            target = sys.maxsize if is_downloaded else options.target_bytes
            cut = Cut(mark, tuple(_pieces(log, loads, first, last, target)))
            if look is not None:
                look(log, dict.fromkeys(topic for piece in cut.pieces for topic in piece.topics))
            return cut
    except (LogError, OSError, MemoryError) as error:
        # Memory that ends says nothing about the log.
        if (isinstance(error, OSError) and error.errno in passing) or (
            passing and isinstance(error, MemoryError)
        ):
            raise
        return Cut(mark, (), error_text(error))


def _interval(log: Log, options: PlanOptions) -> tuple[int | None, int | None]:
    """Return the interval in ns of the clock of *log*, empty where the end comes before the start in a short log.

    Raises UsageError for wall-clock times if the log does not tell how its clock relates to UTC.
    """
    if log.start is None:
        return None, None
    first, last = (None if t is None else time_ns(t, log) for t in (options.start, options.end))
    return first, last if first is None or last is None else max(first, last)


def _chosen(log: Log, topics: Sequence[str] | None) -> list[Channel]:
    """Return the channels that any of *topics* selects, in file order; a log may have none of some."""
    found: dict[str, Channel] = {}
    for topic in [None] if topics is None else topics:
        with suppress(TopicError):
            found |= {ch.topic: ch for ch in log.match(topic)}
    return [ch for name, ch in log.channels.items() if name in found]


def _load(log: Log, ch: Channel, first: int | None, last: int | None) -> _Load:
    """Return how much of a channel lies in the interval."""
    count = len(ch)
    size = ch.bytes if log.index.sizes_are_cheap else None
    if size is None:
        # Sizes of compressed messages are known only after decompression.
        size = log.size * count // max(1, sum(map(len, log.channels.values())))
    if first is None and last is None:
        return _Load(ch, count, size)
    rows: Any = log.index.rows_between(ch.number, first, last, keep=False)
    inside = len(range(*rows.indices(count))) if isinstance(rows, slice) else len(rows)
    return _Load(ch, inside, size * inside // max(1, count))


def _pieces(log: Log, loads: list[_Load], first: int | None, last: int | None, target: int) -> list[Piece]:
    """Return large channels divided by time, and groups of small ones, in order of the first channel of each."""
    found: list[Piece] = []
    group: list[_Load] = []

    def close() -> None:
        if group:
            names = tuple(one.ch.topic for one in group)
            total = sum(one.bytes for one in group), sum(one.messages for one in group)
            found.append(Piece(names, first, last, *total))
            group.clear()

    for load in loads:
        if load.bytes > target and load.messages > 1:
            close()
            found += _windows(log, load, first, last, target)
            continue
        if sum(one.bytes for one in group) + load.bytes > target:
            close()
        group.append(load)
    close()
    return found


def _windows(log: Log, load: _Load, first: int | None, last: int | None, target: int) -> list[Piece]:
    """Return windows of one channel with about equal numbers of messages.

    The first and the last window have the bounds of the interval, so that together they hold each of its messages
    once, in any order of times.
    """
    ch = load.ch
    count = min(-(-load.bytes // target), load.messages)
    at = np.arange(1, count, dtype=np.int64) * load.messages // count
    rows = log.index.rows_between(ch.number, first, last, keep=False)
    earliest, found = _ordered_times(log, ch, rows, at)
    edges = [int(t) for t in np.unique(found) if t > earliest]
    # Numbers of messages before each edge.
    before = np.zeros(len(edges), np.int64)
    for times in _times_of(log, ch, rows):
        before += np.sort(times).searchsorted(edges)
    bounds = [first, *edges, last]
    places = [0, *before.tolist(), load.messages]
    return [
        Piece((ch.topic,), bounds[n], bounds[n + 1], load.bytes * m // max(1, load.messages), m)
        for n, m in enumerate(np.diff(places).tolist())
    ]


def _times_of(log: Log, ch: Channel, rows: Rows) -> Iterator[I64]:
    """Yield int64[k]: the times of messages at *rows*, TIMES_AT_ONCE at most."""
    first, last = (rows.start, rows.stop) if isinstance(rows, slice) else (0, len(rows))
    for lo in range(first, last, TIMES_AT_ONCE):
        hi = min(lo + TIMES_AT_ONCE, last)
        some = np.arange(lo, hi, dtype=np.int64) if isinstance(rows, slice) else rows[lo:hi]
        yield log.index.times_at(ch.number, some)


def _ordered_times(log: Log, ch: Channel, rows: Rows, at: I64) -> tuple[int, I64]:
    """Return the earliest time of the messages at *rows*, and int64[k]: those at places *at* in the order of time.

    Only if times go back, all of them are in memory at once.
    """
    done, found, firsts, latest = 0, list[I64](), list[int](), TIME_MIN
    for times in _times_of(log, ch, rows):
        if int(times[0]) < latest or np.any(times[1:] < times[:-1]):
            ordered = np.sort(np.concatenate(list(_times_of(log, ch, rows))))
            return int(ordered[0]), ordered[at]
        found.append(times[at[(at >= done) & (at < done + len(times))] - done])
        firsts.append(int(times[0]))
        done, latest = done + len(times), int(times[-1])
    return firsts[0], np.concatenate(found)
